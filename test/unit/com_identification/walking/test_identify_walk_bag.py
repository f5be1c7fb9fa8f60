"""The command identify with bags of walking."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from html_page import assert_report
from lowstate import message, write_humble
from walk_recording import COULOMB, Recorded, standing_wrenches

from com_bags import WalkLog
from com_bags.robot_states import STATE_ROBOTS
from com_demos.bag_writer import BagWriter
from com_identification.commands import bag_inputs
from com_identification.commands.identify import main
from com_identification.health.changes import compare
from com_identification.health.records import HealthDatabase
from com_model import RobotModel, Sesc
from com_model.robots import find_robot
from com_simulation.physics.sensors import PRESETS

pytestmark = pytest.mark.slow

UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])
GO = "unitree_go/msg/LowState"
NO_FEET = np.zeros((10000, 0, 6))


def _write(
    recorded: Recorded,
    path: Path,
    effort: np.ndarray,
    log: WalkLog,
    wrenches: np.ndarray,
) -> None:
    """A bag of a robot whose feet have force sensors where there are wrenches (N, f, 6)."""
    feet = recorded.config.feet[: wrenches.shape[1]]
    world = SimpleNamespace(robot=recorded.believed, feet=feet, imu_link="base")
    nothing = np.zeros(3)
    with BagWriter(path, cast(Any, world), PRESETS["none"], 0) as bag:
        for k in range(len(effort)):
            up = UPRIGHT if log.up is None else _turn(log.up[k])
            reading = SimpleNamespace(
                time=float(log.time[k]),
                position=log.position[k],
                velocity=nothing if log.velocity is None else log.velocity[k],
                effort=effort[k],
                wrenches=wrenches[k],
                imu_orientation=up,
                angular_velocity=log.angular_velocity[k],
                specific_force=log.specific_force[k],
                mass=0.0,
                com=nothing,
                com_velocity=nothing,
                gravity=nothing,
            )
            bag.write(cast(Any, reading))


def _turn(up: np.ndarray) -> np.ndarray:
    """Orientation (x, y, z, w) of an IMU that has the vertical there."""
    found = np.append(np.cross(up, [0.0, 0.0, 1.0]), 1.0 + up[2])
    return found / np.linalg.norm(found)


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Go2's, with the feet and the IMU of the recording."""
    source = find_robot("go2").config
    assert source is not None
    text = source.read_text().replace("radius: 0.023", "radius: 0.0")
    (tmp_path / "go2.yaml").write_text(
        text.replace("imu: {link: imu}", "imu: {link: base}")
    )
    return str(tmp_path / "go2.yaml")


@pytest.mark.exhaustive
def test_bags_become_a_corrected_urdf_and_a_record(
    recorded: Recorded, tmp_path: Path, config: str
) -> None:
    _write(recorded, tmp_path / "bag", recorded.log.effort, recorded.log, NO_FEET)
    arguments = [str(tmp_path / "bag"), "--robot", "go2", "--config", config]
    arguments += ["--record", str(tmp_path / "robots.db"), "--serial", "7"]
    arguments += ["--mass", str(recorded.true.mass), "--output", str(tmp_path / "out")]
    assert main(arguments) == 0
    found = RobotModel.from_file(tmp_path / "out" / "corrected.urdf")
    assert found.mass == pytest.approx(recorded.true.mass, rel=5e-3)
    trunks = [
        m.bodies.first_moment[0] / m.bodies.mass[0] for m in (found, recorded.true)
    ]
    assert np.linalg.norm(trunks[0] - trunks[1]) < 5e-3
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"report.html", "corrected.urdf", "posterior.npz"}
    page = assert_report((tmp_path / "out" / "report.html").read_text())
    assert f" kg, {recorded.believed.mass:.2f} kg in the URDF" in page.paragraphs[0]
    _check_record(tmp_path / "robots.db", recorded)


def test_state_messages_of_a_go2_give_the_same_as_standard_ones(
    recorded: Recorded, tmp_path: Path, config: str
) -> None:
    log, model = recorded.log, recorded.believed
    go2 = next(robot for robot in STATE_ROBOTS if robot.name.startswith("Go2"))
    columns = [model.joint_names.index(name) for name in go2.joints]
    states = []
    for k in range(len(log.time)):
        motors = {
            slot: (float(log.position[k, j]), 0.0, float(log.effort[k, j]))
            for slot, j in enumerate(columns)
        }
        up = UPRIGHT if log.up is None else _turn(log.up[k])
        gyro, force = log.angular_velocity[k], log.specific_force[k]
        data = message(GO, 1000 + 5 * k, motors, up[[3, 0, 1, 2]], gyro, force)
        states.append((1_700_000_000_000_000_000 + 5_000_000 * k, data))
    write_humble(tmp_path / "state", "/lowstate", GO, states)
    _write(recorded, tmp_path / "standard", log.effort, log, NO_FEET)
    found = {}
    for name in ("state", "standard"):
        arguments = [str(tmp_path / name), "--robot", "go2", "--config", config]
        arguments += ["--mass", str(recorded.true.mass)]
        assert main([*arguments, "--output", str(tmp_path / f"{name}_out")]) == 0
        model = RobotModel.from_file(tmp_path / f"{name}_out" / "corrected.urdf")
        found[name] = model.bodies.first_moment[0] / model.bodies.mass[0]
    # 32 bits in place of 64
    np.testing.assert_allclose(found["state"], found["standard"], atol=1e-5)


def _check_record(path: Path, recorded: Recorded) -> None:
    (record,) = HealthDatabase(path).records("go2_description", "7")
    mass, com, mass_std, com_std = record.by_body
    true = recorded.true.bodies
    assert abs(mass[0] - true.mass[0]) < 3.0 * mass_std[0] < record.prior_mass_std[0]
    off = com[0] - true.first_moment[0] / true.mass[0]
    assert (np.abs(off) < 3.0 * com_std[0]).all()
    assert (com_std[0] < 0.3 * record.prior_com_std[0]).all()
    for value, std, prior_std in record.sensors["coulomb"].values():
        assert abs(value - COULOMB) < 0.1
        assert std < 0.13 < 0.5 * prior_std
    # a day later: the trunk's CoM is 40 mm further forward, and one joint rubs more
    parameters, sensors = (
        record.parameters.copy(),
        json.loads(json.dumps(dict(record.sensors))),
    )
    parameters[1] += 0.04 * mass[0]
    sensors["coulomb"]["FL_thigh_joint"][0] += 0.5
    later = replace(record, parameters=parameters, sensors=sensors, data_hash="2")
    found = {change.name: change for change in compare(record, later).changes}
    assert found["base"].value[0] == pytest.approx(0.04, abs=0.015)
    assert set(found) == {"base", "coulomb FL_thigh_joint"}


def test_a_bag_without_torques_is_refused(
    recorded: Recorded, tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(
        recorded,
        tmp_path / "bag",
        np.zeros((100, recorded.believed.n_joints)),
        recorded.log,
        NO_FEET,
    )
    arguments = [str(tmp_path / "bag"), "--robot", "go2", "--config", config]
    assert main([*arguments, "--output", str(tmp_path / "out")]) == 1
    assert "effort" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("off", [0.0, 0.03])
def test_a_diagnosis_of_the_walk_counts_as_a_posture(
    recorded: Recorded,
    tmp_path: Path,
    config: str,
    off: float,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """--use walk --use-diagnosis: the CoM by wrenches of the same walk; one that is off fails."""
    model, rest = recorded.believed, recorded.config.nominal_posture(recorded.believed)
    shift = Sesc(recorded.true).com(rest) - Sesc(model).com(rest) + [off, 0.0, 0.0]
    vector = SimpleNamespace(x=shift[0], y=shift[1], z=shift[2])
    message = SimpleNamespace(
        com_correction=vector, covariance=25e-8 * np.eye(3).ravel()
    )
    monkeypatch.setattr(bag_inputs, "newest_message", lambda bags: message)
    _write(recorded, tmp_path / "bag", recorded.log.effort, recorded.log, NO_FEET)
    arguments = [
        str(tmp_path / "bag"),
        "--robot",
        "go2",
        "--config",
        config,
        "--use-diagnosis",
    ]
    arguments += ["--mass", str(recorded.true.mass), "--output", str(tmp_path / "out")]
    status, out = main([*arguments, "--use", "walk"]), capsys.readouterr().out
    assert status == int(off > 0.0), out
    assert (tmp_path / "out" / "corrected.urdf").exists() == (off == 0.0)
    assert "a known CoM in 1 postures (CoM of the diagnosis while walking)" in out
    assert bool(re.search("agreement of walk and postures +FAILED", out)) == (off > 0.0)
    if off == 0.0:
        found = RobotModel.from_file(tmp_path / "out" / "corrected.urdf")
        assert (
            np.linalg.norm(Sesc(found).com(rest) - Sesc(recorded.true).com(rest)) < 5e-4
        )


def _rest(recorded: Recorded, count: int) -> tuple[WalkLog, np.ndarray]:
    """Postures of the true robot, 2 s each and one between them, with noise."""
    rng, rate = np.random.default_rng(3), 100
    bodies, order = recorded.true.bodies, ([0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2])
    inertia = bodies.inertia[:, order[0], order[1]]
    theta = np.column_stack((bodies.mass, bodies.first_moment, inertia))
    nominal = recorded.config.nominal_posture(recorded.believed)
    targets = nominal + rng.uniform(-0.25, 0.25, (count, len(nominal)))
    times = 3.0 * np.arange(count)[:, None] + [0.0, 2.0]
    time = np.arange(0.0, times[-1, -1], 1.0 / rate)
    q = np.column_stack(
        [np.interp(time, times.ravel(), np.repeat(c, 2)) for c in targets.T]
    )
    lean = rng.uniform(-0.2, 0.2, (count, 2))
    ups = np.column_stack((lean, np.sqrt(1.0 - (lean**2).sum(axis=1))))
    up = np.column_stack(
        [np.interp(time, times.ravel(), np.repeat(c, 2)) for c in ups.T]
    )
    up /= np.linalg.norm(up, axis=1)[:, None]
    wrenches = np.array(
        [standing_wrenches(recorded, theta, *pair) for pair in zip(q, up, strict=True)]
    )
    wrenches += rng.normal(0.0, np.repeat([0.3, 0.01], 3), wrenches.shape)
    q = q + rng.normal(0.0, 2e-4, q.shape)
    up += rng.normal(0.0, 2e-4, up.shape)
    up /= np.linalg.norm(up, axis=1)[:, None]
    gyro, force = np.zeros((len(time), 3)), 9.81 * up + rng.normal(0.0, 1e-3, up.shape)
    return WalkLog(time, q, 0.0 * q, 0.0 * q, gyro, force, up), wrenches


@pytest.mark.exhaustive
def test_walking_and_resting_bags_become_one_result(
    recorded: Recorded, tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(recorded, tmp_path / "walk", recorded.log.effort, recorded.log, NO_FEET)
    rest, wrenches = _rest(recorded, 8)
    _write(recorded, tmp_path / "rest", rest.effort, rest, wrenches)
    arguments = [str(tmp_path / "walk"), "--robot", "go2", "--config", config]
    arguments += ["--mass", str(recorded.true.mass), "--output", str(tmp_path / "out")]
    both = [*arguments, "--use", "rest,walk", "--imu", "/imu"]
    assert main(both) == 2
    assert "no file has foot force sensors, to rest" in capsys.readouterr().err
    arguments = [str(tmp_path / "rest"), *both]
    assert main(arguments) == 0, capsys.readouterr()
    out = capsys.readouterr().out
    assert "8 resting postures on foot force sensors are part of the estimate" in out
    assert "agreement of walk and postures" in out
    found = RobotModel.from_file(tmp_path / "out" / "corrected.urdf")
    trunks = [
        m.bodies.first_moment[0] / m.bodies.mass[0] for m in (found, recorded.true)
    ]
    assert np.linalg.norm(trunks[0] - trunks[1]) < 5e-3
