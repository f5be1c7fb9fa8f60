"""Wrong configurations are found where they are loaded; those that ship raise no alarm."""

import re
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml

from com_model import ConfigError, RobotConfig, RobotModel
from com_model.checks.config_check import check_config

pytestmark = pytest.mark.slow

CONFIGS = Path(__file__).resolve().parents[3] / "src" / "robot_descriptions" / "config"
EXAMPLES = Path(
    str(
        distribution("example-robot-data").locate_file(
            "cmeel.prefix/share/example-robot-data"
        )
    )
)


def load(name, change=None):
    """Model, configuration and path of the URDF; `change` edits the file's data."""
    file = CONFIGS / f"{name}.yaml"
    data = yaml.safe_load(file.read_text())
    named = re.search(r"[\w/.-]+\.urdf", file.read_text().partition("\nname:")[0])
    urdf = data.pop("urdf", None)
    if urdf:
        path = CONFIGS / urdf
    else:
        path = min(
            EXAMPLES.rglob(f"*/{Path(named[0]).name}"),
            key=lambda p: named[0] not in str(p),
        )
    if change:
        change(data)
    return RobotModel.from_file(path), RobotConfig.from_dict(data), path


def issues(name, change=None):
    return {x.element: x.message for x in check_config(*load(name, change))}


@pytest.mark.parametrize(
    "name", [path.stem for path in sorted(CONFIGS.glob("*.yaml")) if path.stem != "any"]
)
def test_configurations_that_ship_raise_no_alarm(name):
    assert issues(name) == {}


def turn(angle, axis):
    def change(data):
        for name, foot in list(data["feet"].items()):
            rpy = [0.0, 0.0, 0.0]
            rpy[axis] = angle
            data["feet"][f"{name}_2"] = foot | {"link": name, "rpy": rpy}
            del data["feet"][name]
            foot.pop("wrench", None)

    return change


def test_feet_that_are_turned_by_90_degrees_are_refused():
    for axis in (0, 1):
        with pytest.raises(ConfigError, match=r"feet: .* [89]\d degrees off .*rpy"):
            issues("hoap3", turn(1.5708, axis))
    with pytest.raises(ConfigError, match=r"1[78]\d degrees off the soles' z axes"):
        issues("hoap3", turn(3.1416, 0))


def test_soles_whose_x_axes_do_not_point_forwards():
    message = issues("hoap3", turn(1.5708, 2))["feet.<foot>.side"]
    assert "90 degrees off what the x axes of the soles would have it" in message
    assert (
        "left feet are on the right side"
        in issues("hoap3", turn(3.1416, 2))["feet.<foot>.side"]
    )

    def one_foot(data):
        foot = data["feet"].pop("r_sole")
        data["feet"]["r_sole_2"] = foot | {"link": "r_sole", "rpy": [0, 0, 1.5708]}

    assert (
        "turned by 90 degrees against that of l_sole"
        in issues("hoap2", one_foot)["feet.r_sole_2"]
    )


G1 = EXAMPLES / "robots" / "g1_description" / "urdf" / "g1_29dof_rev_1_0.urdf"


def g1(**keys):
    corners = [[0.12, 0.03], [0.12, -0.03], [-0.05, -0.03], [-0.05, 0.03]]
    link = "{}_ankle_roll_link"
    feet = {
        (f"{side}_sole" if keys else link.format(side)): {
            "side": side,
            "corners": corners,
        }
        | ({"link": link.format(side)} if keys else {})
        | keys
        for side in ("left", "right")
    }
    config = RobotConfig.from_dict({"name": "g1", "feet": feet})
    return {
        x.element: x.message for x in check_config(RobotModel.from_file(G1), config, G1)
    }


def test_ankles_as_feet_are_off_the_sole():
    found = g1()
    assert set(found) == {"feet.left_ankle_roll_link", "feet.right_ankle_roll_link"}
    for message in found.values():
        assert re.match(
            r"the lowest point of the foot's shapes is 3\d mm below its sole", message
        )
    assert g1(xyz=[0.0, 0.0, -0.035]) == {}


def swap_sides(data):
    other = {"left": "right", "right": "left"}
    for foot in data["feet"].values():
        foot["side"] = other[foot["side"]]


def test_left_and_right_front_and_hind_swapped():
    assert set(issues("hoap2", swap_sides)) == {
        "feet.<foot>.side",
        "joint_groups.left_leg",
        "joint_groups.right_leg",
    }
    assert "left feet are on the right" in issues("go2", swap_sides)["feet.<foot>.side"]

    def swap_ends(data):
        for foot in data["feet"].values():
            foot["end"] = {"front": "hind", "hind": "front"}[foot["end"]]

    assert "the x axis of the root link" in issues("go2", swap_ends)["feet.<foot>.end"]


def shin(data):
    foot = data["feet"].pop("r_sole")
    data["feet"]["shin"] = foot | {"link": "RLEG4", "xyz": [0, 0, -0.1]}


def test_a_foot_above_the_ankle():
    model, config, path = load("hoap2", shin)
    found = [x for x in check_config(model, config, path) if x.element == "feet.shin"]
    text = " ".join(f"{x.message}. {x.fix}" for x in found)
    assert "joints move below it: RLEG_JOINT5, RLEG_JOINT6" in text
    assert "e.g. 'RLEG6'" in text
    assert "expected the same to 2 %" in text


@pytest.mark.parametrize(
    ("change", "entry", "message"),
    [
        (
            lambda d: d["posture"].update(LLEG_JOINT5=-0.2),
            "feet.l_sole",
            "its z axis is 5 deg",
        ),
        (
            lambda d: d["posture"].update(LLEG_JOINT4=0.9),
            "feet.l_sole",
            "above the lowest one",
        ),
        (
            lambda d: d["imu"].update(link="LLEG4"),
            "imu.link",
            "'LLEG4' is on the leg of l_sole",
        ),
        (
            lambda d: [
                f.update(corners=[[-0.3, 1], [-0.3, -1], [-0.2, 0]])
                for f in d["feet"].values()
            ],
            "posture",
            "outside the support of the feet",
        ),
    ],
)
def test_posture_and_imu(change, entry, message):
    model, config, path = load("hoap2", change)
    found = [x.message for x in check_config(model, config, path) if x.element == entry]
    assert any(message in text for text in found), found


def test_a_foot_on_the_trunk():
    def change(data):
        data["feet"]["seat"] = {
            "link": "base_link",
            "radius": 0.01,
            "center": [0, 0, -0.36],
        }

    found = [
        x.message
        for x in check_config(*load("hoap2", change))
        if x.element == "feet.seat"
    ]
    assert "no joint of its own moves it" in found


def test_the_masses_of_the_legs():
    model, config, _ = load("hoap2")
    heavy = re.sub(
        r'(<link name="LLEG\d".*?<mass value=")', r"\g<1>9", model.xml, flags=re.S
    )
    found = {
        x.element: x.message for x in check_config(RobotModel.from_urdf(heavy), config)
    }
    assert re.match(
        r"its leg is .* kg heavy, that of l_sole .* kg", found["feet.r_sole"]
    )
