"""Recordings in other units than those of ROS are refused by the name of the unit."""

import dataclasses

import numpy as np
import pandas
import pytest
import yaml
from standing_recording import record_standing

from com_bags import UnitError, WalkLog, check_units
from com_bags.unit_checks import check_forces
from com_estimation.commands import trunk_bag
from com_model.dynamics.link_frames import LinkFrames


@pytest.fixture(scope="module")
def go2():
    return record_standing("go2")


@pytest.fixture(scope="module")
def log(go2):
    up = np.array(go2.force)
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    readings = go2.position, None, go2.effort, go2.gyro, go2.force, up
    return WalkLog(go2.time, *readings)


def check(log, robot):
    check_units(log, robot.model, robot.config.feet, robot.model.root_link)


@pytest.mark.parametrize("oriented", [True, False])
@pytest.mark.parametrize("scale", [0.7, 1.0, 1.5])
def test_units_of_ros_pass_also_with_a_load(log, go2, oriented, scale):
    log = log if oriented else dataclasses.replace(log, up=None)
    check(dataclasses.replace(log, effort=scale * log.effort), go2)


HIP_LEGS = np.repeat([-1.0, 1.0, 1.0, 1.0], 3)


@pytest.mark.parametrize(
    ("field", "factor", "unit"),
    [
        ("position", 180.0 / np.pi, "deg"),
        ("angular_velocity", 180.0 / np.pi, "deg/s"),
        ("specific_force", 1.0 / 9.80665, "g"),
        ("specific_force", 1000.0 / 9.80665, "mg"),
        ("effort", 0.48, "A"),
        ("effort", 2.1, "A"),
        ("effort", 1.0 / 9.80665, "kgf m"),
        ("effort", 100.0 / 9.80665, "kgf cm"),
        ("effort", 1000.0, "N mm"),
        ("effort", HIP_LEGS, "sign"),
    ],
)
def test_another_unit_is_named(log, go2, field, factor, unit):
    other = dataclasses.replace(log, **{field: factor * getattr(log, field)})
    with pytest.raises(UnitError) as caught:
        check(other, go2)
    assert caught.value.unit == unit
    assert unit in ("sign", "deg") or f"{unit}" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"up": lambda up: up[:, [1, 2, 0]]}, "orientation and accelerometer differ"),
        ({"up": lambda up: -up}, "differ by 1[78][0-9] degrees"),
        (
            {
                name: lambda v: v * [1.0, -1.0, -1.0]
                for name in ("up", "specific_force", "angular_velocity")
            },
            "the feet are above the trunk",
        ),
        (
            {"angular_velocity": lambda v: v * [-1.0, -1.0, 1.0]},
            "orientation turns -.* times as fast as the gyroscope",
        ),
        (
            {"specific_force": lambda v: v - [0.0, 0.0, 9.8]},
            "was gravity subtracted",
        ),
        (
            {"angular_velocity": lambda v: v + 500.0, "up": lambda up: None},
            "rad/s, rms",
        ),
        ({"effort": lambda v: -v}, "they have the opposite sign"),
        ({"effort": lambda v: 4.0 * v}, "motor currents"),
    ],
)
def test_axes_and_signs_that_contradict_each_other_are_named(log, go2, changes, words):
    """A quaternion in another order, axes flipped, gravity removed, a gyroscope's bias."""
    other = {name: change(getattr(log, name)) for name, change in changes.items()}
    with pytest.raises(UnitError, match=words):
        check(dataclasses.replace(log, **other), go2)


@pytest.mark.parametrize(
    ("factors", "unit"),
    [
        ([1.0] * 4, ""),
        ([0.7] * 4, ""),  # a wrong mass is no unit
        ([0.0] * 4, ""),  # it hangs
        ([1.0 / 9.80665] * 4, "kgf"),
        ([1.0 / 4.4482216] * 4, "lbf"),
        ([1e3] * 4, "mN"),
        ([-1.0] * 4, "sign"),
        ([1.0, -1.0, 1.0, 1.0], "sign"),
    ],
)
def test_force_sensors_in_another_unit_are_named(go2, factors, unit):
    feet, weight = go2.config.feet, go2.model.mass * 9.81
    q = go2.config.nominal_posture(go2.model)
    wrenches = np.zeros((4, 6))
    R = LinkFrames(go2.model, [f.wrench_frame for f in feet]).poses(q)[0]
    wrenches[:, :3] = 0.25 * weight * R[:, 2] * np.array(factors)[:, None]
    readings = go2.model, feet, q, wrenches, np.array([0.0, 0.0, 9.81])
    if not unit:
        check_forces(*readings)
        return
    with pytest.raises(UnitError) as caught:
        check_forces(*readings)
    assert caught.value.unit == unit


def test_a_robot_that_hangs_is_no_unit(log, go2):
    check(dataclasses.replace(log, effort=0.01 * log.effort), go2)


@pytest.mark.parametrize("part", [0.3, 0.6])
def test_a_robot_that_lies_for_a_while_has_no_other_unit(log, go2, part):
    effort = log.effort.copy()
    effort[: round(part * len(effort))] *= 0.2  # the trunk is on the ground
    check(dataclasses.replace(log, effort=effort), go2)


def test_trunk_bag_says_amperes(go2, tmp_path, capsys):
    columns = {"t": go2.time}
    for name, values in (("q", go2.position), ("tau", 0.48 * go2.effort)):
        columns |= {f"{name}_{i}": values[:, i] for i in range(12)}
    for name, values in (("w", go2.gyro), ("a", go2.force)):
        columns |= {f"{name}_{x}": values[:, i] for i, x in enumerate("xyz")}
    pandas.DataFrame(columns).to_csv(tmp_path / "log.csv", index=False)
    names = list(go2.model.joint_names)
    joints = {"names": names, "position": "q_*", "effort": "tau_*"}
    imu = {
        k: [f"{v}_{x}" for x in "xyz"]
        for k, v in (("gyro", "w"), ("acceleration", "a"))
    }
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(yaml.safe_dump({"time": "t", "joints": joints, "imu": imu}))
    words = [str(tmp_path / "log.csv"), "--robot", "go2", "--mapping", str(mapping)]
    assert trunk_bag.main(words) == 2
    assert "carry 0.48 times the weight" in capsys.readouterr().err
