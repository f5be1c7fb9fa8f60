"""Robot configurations: what is read, what is filled in, and the message of each mistake."""

import numpy as np
import pytest

from com_model import ConfigError, RobotConfig, RobotModel, ServoGains, UnknownNameError

URDF = """
<robot name="biped"><link name="base"><inertial><mass value="1"/></inertial></link>
  <link name="l_sole"/><link name="r_sole"/><link name="imu"/>
  <joint name="l_hip" type="revolute"><parent link="base"/><child link="l_sole"/>
    <limit lower="-0.2" upper="0.2" velocity="1" effort="1"/></joint>
  <joint name="r_hip" type="continuous"><parent link="base"/><child link="r_sole"/></joint>
  <joint name="mount" type="fixed"><parent link="base"/><child link="imu"/></joint>
</robot>"""

FULL = """
name: biped
urdf: ../urdf/biped.urdf
root_link: base
feet:
  l_sole: {side: left, corners: [[0.1, 0.05], [0.1, -0.05], [-0.1, -0.05]],
           wrench: {topic: left/ft, frame: base, sign: -1}}
  r_sole: {radius: 0.02, center: [0.0, 0.01, 0.03], end: hind}
imu: {link: imu}
joint_groups: {legs: [l_hip, r_hip], none: []}
posture: {l_hip: -0.35, r_hip: 1}
servo:
  default: {stiffness: 60.0, damping: 1.0, armature: 0.001, effort: 20.0}
  joints: {l_hip: {stiffness: 10}}
encoder: {counts_per_degree: 209, signs: {l_hip: -1}}
"""


@pytest.fixture
def model():
    return RobotModel.from_urdf(URDF)


@pytest.fixture
def config(tmp_path):
    (tmp_path / "config").mkdir()
    file = tmp_path / "config" / "biped.yaml"
    file.write_text(FULL)
    return RobotConfig.from_file(file)


def problem(data):
    with pytest.raises(ConfigError) as error:
        RobotConfig.from_dict({"name": "r", **data} if isinstance(data, dict) else data)
    return str(error.value)


def test_a_full_file(config, tmp_path, model):
    assert config.name == "biped"
    assert config.urdf == tmp_path / "urdf" / "biped.urdf"
    assert config.root_link == "base"
    assert config.imu_link == "imu"
    assert config.joint_groups == {"legs": ("l_hip", "r_hip"), "none": ()}
    assert config.posture == {"l_hip": -0.35, "r_hip": 1.0}
    assert config.encoder_counts_per_degree == 209
    assert config.encoder_signs == {"l_hip": -1}
    left, right = config.feet
    assert (left.frame, left.side, left.radius) == ("l_sole", "left", 0.0)
    np.testing.assert_array_equal(
        left.corners, [[0.1, 0.05], [0.1, -0.05], [-0.1, -0.05]]
    )
    assert (left.wrench_topic, left.wrench_frame, left.wrench_sign) == (
        "left/ft",
        "base",
        -1,
    )
    assert (right.side, right.corners.shape, right.radius) == ("", (0, 2), 0.02)
    assert (left.end, right.end) == ("", "hind")
    np.testing.assert_array_equal(left.center, [0, 0, 0])
    np.testing.assert_array_equal(right.center, [0, 0.01, 0.03])
    assert (right.wrench_topic, right.wrench_frame, right.wrench_sign) == (
        "r_sole/wrench",
        "r_sole",
        1,
    )
    config.attach(model)


def test_gains_fill_in_the_default(config):
    assert config.servo.gains("l_hip") == ServoGains(10.0, 1.0, 0.001, 20.0)
    assert config.servo.gains("r_hip") == ServoGains(60.0, 1.0, 0.001, 20.0)


def test_the_posture_is_clipped_into_the_limits(config, model):
    np.testing.assert_array_equal(config.nominal_posture(model), [-0.2, 1.0])


def test_a_name_is_enough(model):
    config = RobotConfig.from_dict({"name": "r"})
    assert (config.urdf, config.root_link, config.imu_link) == (None, None, None)
    assert config.feet == ()
    assert config.servo.gains("l_hip") is None
    assert config.encoder_counts_per_degree is None
    assert config.encoder_signs == {}
    config.attach(model)
    np.testing.assert_array_equal(config.nominal_posture(model), [0, 0])


def test_it_is_frozen_and_a_copy():
    corners = [[0.1, 0.0], [0.2, 0.0], [0.0, 0.1]]
    source = {"name": "r", "posture": {"a": 1.0}, "feet": {"f": {"corners": corners}}}
    config = RobotConfig.from_dict(source)
    corners[0][0], source["posture"]["a"] = 9.0, 9.0
    assert config.feet[0].corners[0, 0] == 0.1
    assert config.posture == {"a": 1.0}
    with pytest.raises(TypeError):
        config.posture["a"] = 2.0
    with pytest.raises(ValueError, match="read-only"):
        config.feet[0].corners[0] = 0.0
    with pytest.raises(AttributeError):
        config.name = "s"


PROBLEMS = {
    "no mapping": ([], "robot configuration: expected keys with values, got a list []"),
    "no name": (
        {"name": None},
        "robot configuration: name: is missing: give the name of the robot",
    ),
    "unknown key": (
        {"feets": {}},
        "robot configuration: unknown key 'feets'; did you mean 'feet'? valid keys: actuators, "
        "encoder, feet, imu, joint_groups, kind, name, posture, root_link, servo, trot, trunk, "
        "urdf, walking",
    ),
    "unknown key of a foot": (
        {"feet": {"l_sole": {"edges": []}}},
        "robot configuration: feet.l_sole: unknown key 'edges'; "
        "valid keys: center, corners, end, link, radius, rpy, side, size, wrench, xyz",
    ),
    "unknown key of a wrench": (
        {"feet": {"l": {"wrench": {"Topic": "t"}}}},
        "robot configuration: feet.l.wrench: unknown key 'Topic'; did you mean 'topic'? "
        "valid keys: frame, sign, topic",
    ),
    "unknown gain": (
        {"servo": {"default": {"kp": 1}}},
        "robot configuration: servo.default: unknown key 'kp'; "
        "valid keys: armature, damping, effort, stiffness",
    ),
    "side": (
        {"feet": {"l": {"side": "port"}}},
        "robot configuration: feet.l.side: expected one of left, right, center, got 'port'",
    ),
    "corner": (
        {"feet": {"l": {"corners": [[1, 2, 3]]}}},
        "robot configuration: feet.l.corners: expected rows of 2 numbers, got a list [1, 2, 3]",
    ),
    "corners and radius": (
        {"feet": {"l": {"corners": [[1, 2]], "radius": 0.1}}},
        "robot configuration: feet.l: "
        "give corners or size (a flat sole) or radius (a point foot), not both",
    ),
    "end": (
        {"feet": {"l": {"end": "rear"}}},
        "robot configuration: feet.l.end: expected one of front, hind, got 'rear'",
    ),
    "center": (
        {"feet": {"l": {"center": [1, 2], "radius": 0.1}}},
        "robot configuration: feet.l.center: expected 3 numbers, got a list [1, 2]",
    ),
    "center of what": (
        {"feet": {"l": {"center": 0.1, "radius": 0.1}}},
        "robot configuration: feet.l.center: expected 3 numbers, got 0.1",
    ),
    "text in the center": (
        {"feet": {"l": {"center": [0, 0, "x"], "radius": 0.1}}},
        "robot configuration: feet.l.center: expected a number, got the text 'x': "
        "write it with a point, like 1.0e-3, without quotes or unit",
    ),
    "center without radius": (
        {"feet": {"l": {"center": [0, 0, 0.02]}}},
        "robot configuration: feet.l.center: give the radius of the ball that has this center",
    ),
    "NaN": (
        {"posture": {"a": float("nan")}},
        "robot configuration: posture.a: expected a finite number",
    ),
    "number with exponent only": (
        {"posture": {"a": "1e-3"}},
        "robot configuration: posture.a: expected a number, got the text '1e-3': "
        "write it with a point, like 1.0e-3, without quotes or unit",
    ),
    "truth": (
        {"posture": {"a": True}},
        "robot configuration: posture.a: expected a number, got true or false True",
    ),
    "negative gain": (
        {"servo": {"joints": {"a": {"damping": -1}}}},
        "robot configuration: servo.joints.a.damping: expected at least 0, got -1",
    ),
    "sign": (
        {"encoder": {"signs": {"a": 2}}},
        "robot configuration: encoder.signs.a: expected 1 or -1, got 2",
    ),
    "name": (
        {"imu": {"link": False}},
        "robot configuration: imu.link: expected text, got true or false False: write it in quotes",
    ),
    "key": (
        {"posture": {1: 0.5}},
        "robot configuration: posture: the key 1 is 1: write it in quotes",
    ),
    "joint twice": (
        {"joint_groups": {"legs": ["a", "b", "a"]}},
        "robot configuration: joint_groups.legs: 'a' is there twice",
    ),
    "one name": (
        {"joint_groups": {"legs": "a"}},
        "robot configuration: joint_groups.legs: expected a list, got the text 'a'",
    ),
    "control characters": (
        {"urdf": "a\0b"},
        "robot configuration: urdf: expected one line of text, got 'a\\x00b'",
    ),
    "huge number": (
        {"posture": {"a": 10**400}},
        "robot configuration: posture.a: expected a finite number",
    ),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_mistakes_name_the_key_and_what_it_expects(case):
    data, message = PROBLEMS[case]
    assert problem(data) == message


FILES = {
    "key twice": (
        "name: a\nname: b\n",
        "is not plain YAML: the key 'name' is there twice (line 2",
    ),
    "aliases": (
        "name: &x a\nurdf: *x\n",
        "is not plain YAML: aliases are not read (line 2, colum",
    ),
    "tags": (
        "name: !!python/object/apply:os.system [ls]",
        "tags are not read",
    ),
    "syntax": (
        "name: [",
        "is not plain YAML: expected the node content, but found '<stream end>'",
    ),
    "depth": ("name: " + "[" * 20000, "is not plain YAML: it nests too deep"),
    "empty": ("", "expected keys with values, got nothing"),
    "binary": ("name: \x01", "is not plain YAML"),
    "size": ("# " + "x" * 2**18, "is larger than 256 KiB. Is this the file?"),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_not_plain_yaml_are_refused(case, tmp_path):
    text, message = FILES[case]
    file = tmp_path / "robot.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        RobotConfig.from_file(file)
    assert str(error.value).startswith(f"{file}: ")
    assert message in str(error.value)


def test_files_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"does not exist\. Give the path of a YAML file"
    ):
        RobotConfig.from_file(tmp_path / "none.yaml")
    with pytest.raises(
        ConfigError, match=r"is not a regular file\. Give the path of a YAML file"
    ):
        RobotConfig.from_file(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"root_link": "hip"}, "root_link: the URDF's root is 'base', not 'hip'"),
        (
            {"feet": {"l_solle": {}}},
            "feet.l_solle: no link 'l_solle', did you mean 'l_sole'? "
            "valid: base, l_sole, r_sole, imu",
        ),
        (
            {"feet": {"l_sole": {"wrench": {"frame": "x"}}}},
            "feet.l_sole.wrench.frame: no link 'x';",
        ),
        ({"imu": {"link": "gyro"}}, "imu.link: no link 'gyro'; valid: base"),
        (
            {"joint_groups": {"legs": ["l_hip", "hip"]}},
            "joint_groups.legs.hip: no moving joint 'hip', did you mean 'r_hip'? "
            "valid: l_hip, r_hip",
        ),
        (
            {"posture": {"mount": 0}},
            "posture.mount: no moving joint 'mount'; valid: l_hip, r_hip",
        ),
        (
            {"servo": {"joints": {"x": {}}}},
            "servo.joints.x: no moving joint 'x'; valid: l_hip",
        ),
        (
            {"encoder": {"signs": {"x": 1}}},
            "encoder.signs.x: no moving joint 'x'; valid: l_hip",
        ),
    ],
)
def test_names_that_the_robot_has_not_are_found(data, message, model):
    config = RobotConfig.from_dict({"name": "r", **data})
    with pytest.raises(ConfigError) as error:
        config.attach(model)
    assert message in str(error.value)


def test_the_posture_of_another_robot_is_refused(model):
    with pytest.raises(UnknownNameError, match="no joint 'x'; valid: l_hip, r_hip"):
        RobotConfig.from_dict({"name": "r", "posture": {"x": 1}}).nominal_posture(model)
