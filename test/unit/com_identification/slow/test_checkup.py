"""Check-up: each cause is named from exact recordings, a healthy robot is not, advice."""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from shipped_robot import SHARE
from slow_recording import make_robot, sway

from com_identification.commands import checkup
from com_identification.slow.checkup import check_up
from com_identification.walking.causes import Cause, CheckUp
from com_model import RobotModel
from com_model.urdf.editing import Inertial, edit_inertials

ZEROS = {"hoap3": 2.0, "scalf2": 4.0}  # degrees
KNEES = {"hoap3": "R_LFE_R_KN_joint", "scalf2": "rf_kfe_joint"}


def faulty(kind, seed, name="hoap3"):
    """A robot with small errors and one large one."""
    robot = make_robot(seed, 0.4, name)
    errors, model = robot.errors, robot.true
    knee = model.joint_names.index(KNEES[name])
    if kind == "encoder zero":
        zero = errors.zero.copy()
        zero[knee] += np.deg2rad(ZEROS[name])
        return replace(robot, errors=replace(errors, zero=zero))
    if kind == "torque scale":
        gain = errors.gain.copy()
        gain[knee] *= 1.25
        return replace(robot, errors=replace(errors, gain=gain))
    if kind == "IMU tilt":
        tilt = errors.mounting + np.deg2rad([0.0, 2.5, 0.0])
        return replace(robot, errors=replace(errors, mounting=tilt))
    if kind == "floor slope":
        return replace(
            robot, errors=replace(errors, slope=errors.slope + np.deg2rad([2.0, 0.0]))
        )
    if kind == "payload":
        heavy = model.link_names[int(np.argmax(model.link_masses))]
        i = model.link_index(heavy)
        place = model.link_coms[i] + [0.0, 0.005, 0.01]
        loaded = Inertial(
            1.25 * model.link_masses[i], place, 1.25 * model.link_inertias[i]
        )
        xml = edit_inertials(model.xml, {heavy: loaded})
        return replace(robot, true=RobotModel.from_urdf(xml, model.frames))
    return robot


@pytest.mark.parametrize("name", KNEES)
@pytest.mark.parametrize(
    "kind", ["payload", "encoder zero", "torque scale", "IMU tilt", "floor slope"]
)
def test_a_large_cause_is_named(name, kind):
    robot = faulty(kind, 1, name)
    found = check_up([sway(robot, 40.0)], robot.believed, robot.config, robot.true.mass)
    assert found.named is not None
    assert found.named.kind == kind
    assert not found.healthy
    if found.named.joint:
        assert found.named.joint == KNEES[name]
    assert sum(
        cause.probability for cause in found.causes
    ) + found.none == pytest.approx(1.0)
    heaviest = float(robot.believed.bodies.mass.max())
    expected = {"payload": 0.25 * heaviest, "encoder zero": ZEROS[name]}
    expected["floor slope"] = 2.0
    if kind in expected:
        number = float(found.named.size.split()[0].strip(",+"))
        assert number == pytest.approx(expected[kind], rel=0.2, abs=0.2)


@pytest.mark.parametrize("name", KNEES)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_healthy_robot_is_not_accused(name, seed):
    robot = faulty("none", seed, name)
    found = check_up([sway(robot, 40.0)], robot.believed, robot.config, robot.true.mass)
    assert found.named is None
    assert found.healthy
    assert found.text.startswith("healthy: no cause moves the CoM by more than")
    most = {"hoap3": 0.01, "scalf2": 0.03}  # m; SCALF-II weighs 300 kg
    assert 0.0005 < found.bound < most[name]


@pytest.mark.parametrize("turned", [2.2, -2.2])  # degrees
def test_a_sole_on_its_edge_is_not_taken_for_the_floor(turned):
    # the zero of the left ankle pitches the robot and lifts the front of its right sole: both
    # soles look tilted as on a slope
    robot = faulty("none", 1)
    ankles = [f"{side}_KN_{side}_AFE_joint" for side in "LR"]
    zero = robot.errors.zero.copy()
    zero[robot.true.joint_names.index(ankles[0])] -= np.deg2rad(turned)
    robot = replace(robot, errors=replace(robot.errors, zero=zero))
    log = sway(robot, 40.0, raised=(ankles[1], -np.deg2rad(turned)))
    found = check_up([log], robot.believed, robot.config, robot.true.mass)
    assert found.named is None or found.named.joint == ankles[0]
    zero = next(cause for cause in found.causes if cause.kind == "encoder zero")
    assert zero.joint in ankles
    assert "turn the robot round" in found.text


def test_what_cannot_be_told_apart_comes_with_advice():
    causes = (
        Cause("encoder zero", "knee", 0.5, "+1.0 deg"),
        Cause("IMU tilt", "", 0.45, "+1.0, +0.0 deg"),
    )
    text = CheckUp(causes, 0.05, 0.004, "hang it").text
    assert text == (
        "cannot tell encoder zero of knee (+1.0 deg) from IMU tilt (+1.0, +0.0 deg): lay a spirit "
        "level on the IMU's link (0.1 degrees)"
    )
    swapped = (
        replace(causes[0], kind="torso CoM", joint=""),
        replace(causes[1], kind="payload"),
    )
    assert CheckUp(swapped, 0.05, 0.004, "hang it").text.endswith(": hang it")
    alone = (causes[0], replace(causes[1], probability=0.01))
    assert "from nothing" in CheckUp(alone, 0.49, 0.004, "hang it").text


def test_the_command_names_files_that_it_cannot_read(tmp_path, capsys):
    assert checkup.main([str(tmp_path / "nothing"), "--robot", "hoap3"]) == 2
    assert "checkup: " in capsys.readouterr().err


def test_the_command_prints_all_causes(monkeypatch, capsys, tmp_path):
    robot = faulty("encoder zero", 1)
    log = sway(robot, 40.0)
    settings = yaml.safe_load((SHARE / "config" / "hoap3.yaml").read_text())
    settings["urdf"] = str(SHARE / "urdf" / "hoap3.urdf")
    settings["imu"] = {"link": robot.believed.root_link}
    config = tmp_path / "robot.yaml"
    config.write_text(yaml.safe_dump(settings))
    monkeypatch.setattr(checkup, "read_log", lambda *_: log)
    words = ["sway.mcap", "--robot", settings["urdf"], "--config", str(config)]
    assert checkup.main([*words, "--mass", f"{robot.true.mass:.3f}"]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"encoder zero of {KNEES['hoap3']} (")
    for kind in ("payload", "torso CoM", "torque scale", "outside pull", "none"):
        assert kind in out
