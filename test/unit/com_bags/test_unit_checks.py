"""Recordings in other units than those of ROS are refused by the name of the unit."""

import dataclasses

import numpy as np
import pandas
import pytest
import yaml
from standing_recording import record_standing

from com_bags import UnitError, WalkLog, check_units
from com_estimation.commands import trunk_bag


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
