"""Bags of a robot that rests in postures: what is in them is what statics and the truth say."""

import json

import numpy as np
import pytest
from rosbags.highlevel import AnyReader

from com_demos.record_bag import main
from com_identification.regression.stances import FlatStance
from com_identification.regression.statics import Statics
from com_model import RobotConfig, RobotModel, link_poses
from com_model.dynamics import GRAVITY
from com_model.postures import write_postures
from com_model.robots import find_robot
from com_model.sesc.sesc import Sesc

pytestmark = pytest.mark.slow

BIPED = ["--rest", "0.6", "--settle", "0.3", "--rate", "100"]
TOPICS = {
    "/joint_states": "sensor_msgs/msg/JointState",
    "/imu": "sensor_msgs/msg/Imu",
    "/l_sole/wrench": "geometry_msgs/msg/WrenchStamped",
    "/r_sole/wrench": "geometry_msgs/msg/WrenchStamped",
    "/ground_truth/com": "com_msgs/msg/CenterOfMass",
}


def biped():
    files = find_robot("biped3")
    return RobotModel.from_file(files.urdf), RobotConfig.from_file(files.config)


def write_biped_postures(path, asymmetric=False):
    model, _ = biped()
    rows = np.zeros((3, model.n_joints))
    names = [
        model.joint_index(name) for name in ("l_knee", "r_knee", "l_ankle", "r_ankle")
    ]
    rows[:, names] = [
        [0.25, 0.25, -0.2, -0.2],
        [-0.2, -0.2, 0.25, 0.25],
        [0.1, 0.1, 0, 0],
    ]
    if asymmetric:
        rows[1, names] = [0.25, 0.0, -0.2, 0.0]
    write_postures(path, model, rows)
    return rows


def read(folder):
    """Messages of a bag by topic: [(stamp, message)]."""
    received = {topic: [] for topic in TOPICS}
    with AnyReader([folder / "bag"]) as reader:
        kinds = {
            connection.topic: connection.msgtype for connection in reader.connections
        }
        for connection, stamp, data in reader.messages():
            message = reader.deserialize(data, connection.msgtype)
            header = message.header.stamp
            assert header.sec * 10**9 + header.nanosec == stamp
            received[connection.topic].append((stamp, message))
    assert kinds == TOPICS
    return received


def marks(folder):
    lines = (folder / "marks.csv").read_text().splitlines()
    assert lines[0] == "start,end,label"
    return [
        (float(a), float(b), label)
        for a, b, label in (line.split(",") for line in lines[1:])
    ]


def means(received, begin, end):
    """Mean joint positions, efforts, wrenches (2, 6) and true CoM between two times (s)."""
    start = received["/joint_states"][0][0]

    def inside(topic):
        return [
            m
            for t, m in received[topic]
            if begin - 1e-6 <= (t - start) / 1e9 <= end + 1e-6
        ]

    joints = inside("/joint_states")
    wrenches = []
    for topic in ("/l_sole/wrench", "/r_sole/wrench"):
        values = [m.wrench for m in inside(topic)]
        rows = [
            [w.force.x, w.force.y, w.force.z, w.torque.x, w.torque.y, w.torque.z]
            for w in values
        ]
        wrenches.append(np.mean(rows, axis=0))
    truth = [m.position for m in inside("/ground_truth/com")]
    return (
        np.mean([m.position for m in joints], axis=0),
        np.mean([m.effort for m in joints], axis=0),
        np.array(wrenches),
        np.mean([[p.x, p.y, p.z] for p in truth], axis=0),
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A bag without noise, its postures, and what the command printed."""
    folder = tmp_path_factory.mktemp("biped3")
    rows = write_biped_postures(folder / "postures.yaml")
    words = [
        "--robot",
        "biped3",
        "--postures",
        str(folder / "postures.yaml"),
        "--output",
        str(folder / "run"),
    ]
    assert main([*words, *BIPED, "--noise", "none"]) == 0
    return folder / "run", rows, words


def test_at_rest_the_soles_say_where_the_true_com_is(recorded):
    """Force and moment of both feet balance the weight of the true model, not the believed one."""
    folder, _, _ = recorded
    received = read(folder)
    true, believed = (
        RobotModel.from_file(folder / f"{n}.urdf") for n in ("truth", "robot")
    )
    feet = biped()[1].feet
    visited = marks(folder)
    assert [label for _, _, label in visited] == ["p001", "p002", "p003"]
    for begin, end, _ in visited:
        q, _, wrenches, com = means(received, begin, end)
        R, p = link_poses(true, q)
        links = [true.link_index(foot.wrench_frame) for foot in feet]
        force = np.einsum("fij,fj->i", R[links], wrenches[:, :3])
        moments = np.einsum("fij,fj->fi", R[links], wrenches[:, 3:])
        lever = np.cross(p[links], np.einsum("fij,fj->fi", R[links], wrenches[:, :3]))
        moment = (moments + lever).sum(axis=0)
        weight = true.mass * GRAVITY
        assert np.linalg.norm(force) == pytest.approx(weight, rel=1e-3)
        np.testing.assert_allclose(Sesc(true).com(q), com, atol=1e-6)
        # The line of gravity through the CoM: its distance from that of the wrench, m.
        gaps = [np.cross(Sesc(m).com(q), force) - moment for m in (true, believed)]
        assert np.linalg.norm(gaps[0]) / weight < 2e-4
        assert np.linalg.norm(gaps[1]) / weight > 1e-3


def test_encoders_see_the_servos_sag(recorded):
    """tau = stiffness (target - q) at rest; the sag is not small."""
    folder, rows, _ = recorded
    received = read(folder)
    config = biped()[1]
    stiffness = config.servo.gains("l_knee").stiffness
    for (begin, end, _), target in zip(marks(folder), rows, strict=True):
        q, effort, _, _ = means(received, begin, end)
        np.testing.assert_allclose(effort, stiffness * (target - q), atol=0.02)
        assert np.abs(target - q).max() > 2e-4


def test_the_soles_stay_where_they_are(recorded):
    folder, _, _ = recorded
    model, config = biped()
    stance = FlatStance(Statics(model), config.feet, config.nominal_posture(model))
    for _, message in read(folder)["/joint_states"]:
        off, _ = stance.residuals(np.array(message.position)[None])
        assert np.abs(off).max() < 0.02


@pytest.mark.parametrize("by_truth", [False, True], ids=["same words", "its true URDF"])
def test_the_same_robot_gives_the_same_bag(recorded, tmp_path, capsys, by_truth):
    folder, _, words = recorded
    words = [*words[:-1], str(tmp_path / "again")]
    truth = ["--truth", str(folder / "truth.urdf")] if by_truth else []
    assert main([*words, *BIPED, "--noise", "none", *truth]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (figures["postures"], figures["marked"], figures["transfer"]) == (
        3,
        3,
        "stand",
    )
    for name in ("bag/bag.mcap", "robot.urdf", "truth.urdf", "marks.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (
            folder / name
        ).read_bytes(), name


def test_feet_that_move_take_a_hoist(tmp_path, capsys):
    write_biped_postures(tmp_path / "p.yaml", asymmetric=True)
    words = [
        "--robot",
        "biped3",
        "--postures",
        str(tmp_path / "p.yaml"),
        "--output",
        str(tmp_path / "run"),
    ]
    assert main([*words, *BIPED, "--transfer", "stand"]) == 2
    assert "let a hoist lift the robot" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert main([*words, *BIPED, "--storage", "sqlite3"]) in (0, 1)
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["transfer"] == "hoist"
    lifts = [m.wrench.force.z for _, m in read(tmp_path / "run")["/l_sole/wrench"]]
    assert (
        min(np.abs(np.convolve(lifts, np.ones(20) / 20, "valid"))) < 1.0
    )  # in the air


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"robot": "nobody"}, "robot 'nobody': unknown"),
        ({"--postures": "/nowhere.yaml"}, r"/nowhere\.yaml"),
        ({"--rest": "0"}, "rest is 0.0: give a number from 0.05 to 3600"),
    ],
)
def test_wrong_words(tmp_path, capsys, change, message):
    write_biped_postures(tmp_path / "p.yaml")
    options = {
        "--postures": str(tmp_path / "p.yaml"),
        "--output": str(tmp_path / "run"),
    }
    robot = change.pop("robot", "biped3")
    words = [word for pair in (options | change).items() for word in pair]
    assert main(["--robot", robot, *words]) == 2
    assert message.replace("\\", "") in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["p.yaml"]


def test_a_folder_that_is_there_stays(tmp_path, capsys):
    write_biped_postures(tmp_path / "p.yaml")
    (tmp_path / "run").mkdir()
    words = ["--postures", str(tmp_path / "p.yaml"), "--output", str(tmp_path / "run")]
    assert main(["--robot", "biped3", *words]) == 2
    assert "exists already: give another path, or remove it" in capsys.readouterr().err
