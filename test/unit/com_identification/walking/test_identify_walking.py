"""Identification from walking: finds what is wrong, and refuses what it cannot use."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from walk_recording import COULOMB, Recorded, record

from com_bags import WalkLog
from com_identification.commands.walk_identification import report_text
from com_identification.exceptions import WalkError
from com_identification.walking import identify, preparation
from com_identification.walking.fit import check_payload, undetermined
from com_identification.walking.identify import WalkResult
from com_identification.walking.log import walking_parts
from com_identification.walking.preparation import check_loads
from com_identification.walking.report import report_page
from com_identification.walking.unknowns import (
    FRICTIONS,
    GAIN_STD,
    DesignMatrix,
    Scale,
    Unknowns,
    corrected_urdf,
    make_unknowns,
)
from com_model import RobotModel, Sesc
from com_model.actuators import ActuatorModel
from com_model.dynamics.kinematics import body_poses
from com_model.robots import load_robot

pytestmark = pytest.mark.slow

DRIVE = ActuatorModel().filled(8.0, "unknown")


def _com(model, q: np.ndarray) -> np.ndarray:
    R, p = body_poses(model.bodies, q)
    bodies = model.bodies
    return (
        bodies.mass @ p + np.einsum("bij,bj->i", R, bodies.first_moment)
    ) / bodies.mass.sum()


def test_finds_a_wrong_trunk_and_says_how_well(
    recorded: Recorded, result: WalkResult
) -> None:
    assert result.accepted, [gate for gate in result.gates if not gate.passed]
    rng = np.random.default_rng(1)
    for _ in range(20):
        q = result.posture + rng.uniform(-0.3, 0.3, len(result.posture))
        com, C = result.com(q)
        error = com - _com(recorded.true, q)
        assert (
            np.linalg.norm(_com(recorded.believed, q) - _com(recorded.true, q)) > 8e-3
        )
        assert np.linalg.norm(error) < 1.5e-3
        assert (np.abs(error) < 4.0 * np.sqrt(np.diag(C)) + 1e-5).all()
    mass, std = result.total_mass
    assert mass == pytest.approx(recorded.true.mass)
    assert std == pytest.approx(0.05, rel=0.01)
    coulomb = result.unknowns.joints(result.z, "coulomb")
    np.testing.assert_allclose(coulomb, COULOMB, atol=0.15)


def test_without_weighing_the_mass_is_known_as_the_mean_gain_is(
    result: WalkResult,
) -> None:
    z, C, rho, _ = identify.with_scale(result.unknowns, result.fit, Scale(), 1.0)
    g = result.unknowns.mass_direction(z)
    assert rho == 1.0
    assert (
        np.hypot(0.05, 0.03 / np.sqrt(12)) <= np.sqrt(g @ C @ g) < 0.06
    )  # alike, and each


@pytest.mark.parametrize("factor", [0.63, 1.4])
def test_torques_in_another_unit_are_refused_without_weighing(
    recorded: Recorded, factor: float
) -> None:
    log = replace(recorded.log, effort=factor * recorded.log.effort)
    result = identify.identify_walking([log], recorded.believed, recorded.config)
    assert not result.accepted
    (gate,) = [gate for gate in result.gates if not gate.passed and gate.required]
    assert "another unit" in gate.text


def test_armatures_that_the_base_shows_are_found_and_others_are_not() -> None:
    """The base's rows show together what a joint's own show one by one."""
    model, _ = load_robot("go2")
    n = model.n_joints
    unknowns = make_unknowns(model, n * [DRIVE], np.ones(n, dtype=np.bool_))
    X = np.zeros((2 * n + 6, unknowns.gain_columns.stop + 2 * n + 6))
    joint = np.concatenate([np.full(6, -1), np.arange(n), np.arange(n)])
    made = DesignMatrix(X, joint, np.zeros(len(X)))
    own = unknowns.joint_slice("armature")
    at = unknowns.gain_columns.start - len(FRICTIONS) * n
    seen = {
        0: (0.03, 0.0),
        1: (0.01, 0.0),
        2: (0.0, 0.03),
        3: (0.0, 0.07),
    }  # of the noise
    for j, (base, alone) in seen.items():
        X[:6, at + j] = base / unknowns.std[own][j]
        X[6 + j, at + j] = X[6 + n + j, at + j] = alone / unknowns.std[own][j]
    kept = undetermined(made, unknowns)[own]
    assert kept.tolist() == [False, True, True, False] + [True] * (n - 4)


def test_the_legs_alone_hold_the_scale_of_torques() -> None:
    """Arms that hang cannot make up for legs whose gains are all too low."""
    model, _ = load_robot("talos")
    n = model.n_joints
    legs = np.array([name.startswith("leg") for name in model.joint_names])
    unknowns = make_unknowns(model, n * [DRIVE], legs)
    z = unknowns.mean + unknowns.std * np.random.default_rng(3).standard_normal(
        len(unknowns.std)
    )
    gains = unknowns.joints(z, "gain")
    assert 0 < legs.sum() < n
    assert gains[legs].mean() == pytest.approx(1.0, abs=1e-12)
    assert abs(gains[~legs].mean() - 1.0) > 1e-3
    stds = unknowns.joint_stds(np.diag(unknowns.std**2), "gain")
    np.testing.assert_allclose(stds[~legs], GAIN_STD)


def test_scale_keeps_relative_gains() -> None:
    """Masses, friction and torque biases get the factor; gains relative to their mean do not."""
    model, _ = load_robot("go2")
    n = model.n_joints
    unknowns = make_unknowns(model, n * [DRIVE], np.ones(n, dtype=np.bool_))
    z = unknowns.mean + unknowns.std * np.random.default_rng(5).standard_normal(
        len(unknowns.std)
    )
    scaled = unknowns.scaled(z, 1.1)
    assert unknowns.total_mass(scaled) == pytest.approx(1.1 * unknowns.total_mass(z))
    for kind in ("armature", "coulomb", "viscous", "torque_bias"):
        np.testing.assert_allclose(
            unknowns.joints(scaled, kind), 1.1 * unknowns.joints(z, kind)
        )
    np.testing.assert_array_equal(
        unknowns.joints(scaled, "gain"), unknowns.joints(z, "gain")
    )


def test_what_is_kept_is_part_of_the_covariance(
    recorded: Recorded, result: WalkResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All else moves with a knee's friction that is kept, and is as uncertain as that makes it."""
    at = result.unknowns.joint_slice("coulomb").start + 2
    off, step = np.eye(len(result.z))[at], 0.2

    def prior(*arguments: Any) -> Unknowns:
        made = make_unknowns(*arguments)
        std = made.std * (1.0 + 3.0 * off)  # of a drive that nobody knows
        return replace(made, mean=made.mean + shift * std * off, std=std)

    shift = 0.0
    monkeypatch.setattr(preparation, "make_unknowns", prior)
    monkeypatch.setattr(identify, "undetermined", lambda rows, unknowns: off > 0.0)
    kept = recorded.identify()
    shift = step
    moved = (recorded.identify().z - kept.z) / step  # for one standard deviation
    alone = kept.inflation * np.diag(kept.fit.covariance)
    own = (moved**2 > alone) & (off == 0.0)
    assert own.sum() > 3
    # what is not known of it over how far the others move; half of that, as weights change, too
    part = (np.diag(kept.covariance) - alone)[own] / moved[own] ** 2
    assert 0.25 < np.median(part) < 1.5


def test_a_result_shows_itself(result: WalkResult) -> None:
    line, head, rows = result.facts()
    assert f"{result.total_mass[0]:.4g} ±" in line
    assert rows[0][0] == result.model.bodies.names[0]
    assert len(rows[0]) == len(head)
    assert float(rows[0][2]) == pytest.approx(result.theta[0, 0], abs=5e-4)
    before = result.unknowns.theta(result.unknowns.mean)[0]
    moved = result.theta[0, 1:4] / result.theta[0, 0] - before[1:4] / before[0]
    assert [float(v) for v in rows[0][3:]] == pytest.approx(1e3 * moved, abs=0.05)


def test_the_report_names_what_stays_at_the_urdf(result: WalkResult) -> None:
    text = report_text(result)
    assert "stays at the URDF" in text
    assert "by the weighed mass" in text
    assert "held-out torques" in text
    assert "<table>" in report_page(result)


def _late(log: WalkLog, joints: np.ndarray) -> np.ndarray:
    return (log.time > 14.0)[:, None] & joints


BAD = {
    "these joints of the legs report no torque": lambda log: {
        "effort": np.full_like(log.effort, np.nan)
    },
    "legs report no torque, or one that stays as it is for 2 s: FL_hip": lambda log: {
        "effort": np.zeros_like(log.effort)
    },
    "or one that stays as it is for 2 s: FL_calf_joint. Expected": lambda log: {
        "effort": np.where(np.arange(12) == 2, 1.5, log.effort)
    },
    "stays as it is for 2 s: FL_calf_joint": lambda log: {
        "effort": np.where(_late(log, np.arange(12) == 2), 0.0, log.effort)
    },
    "report no torque, or .* FL_calf_joint": lambda log: {
        "effort": np.where(np.arange(12) == 2, np.nan, log.effort)
    },
    "the feet are above the trunk": lambda log: {
        name: getattr(log, name) * [1.0, -1.0, -1.0]
        for name in ("angular_velocity", "specific_force", "up")
    },
    "orientation and accelerometer differ by 180 degrees": lambda log: {"up": -log.up},
    "the accelerometer reads 1.* gravity in g. Expected m/s": lambda log: {
        "specific_force": log.specific_force / 9.81
    },
    "the accelerometer reads 0.0 m/s": lambda log: {
        "specific_force": log.specific_force - [0.0, 0.0, 9.81]
    },
    "it is in deg/s. Expected rad/s": lambda log: {
        "angular_velocity": np.degrees(log.angular_velocity)
    },
    "the gyroscope reads 6.99, rms, and the trunk turns 0.12 rad/s": lambda log: {
        "angular_velocity": np.degrees(log.angular_velocity),
        "up": None,
    },
    "orientation turns -?0.[0-2][0-9] times as fast as the gyroscope": lambda log: {
        "angular_velocity": log.angular_velocity * [1.0, -1.0, 1.0]
    },
    "the positions are in degrees": lambda log: {"position": np.degrees(log.position)},
    "carry 3.* times .* in another unit": lambda log: {"effort": 3.0 * log.effort},
    "carry 0.4.* times .* are motor currents": lambda log: {"effort": 0.4 * log.effort},
    "they are in kgf cm": lambda log: {"effort": 100.0 / 9.80665 * log.effort},
    "FL_foot.* would pull at the ground": lambda log: {
        "effort": np.where(np.arange(12) < 3, -1.0, 1.0) * log.effort
    },
    "have the opposite sign": lambda log: {"effort": -log.effort},
    "expected a recording of walking": lambda log: {
        "position": log.position[:1] + 1e-3 * log.position,
        "velocity": 1e-3 * log.velocity,
    },
    "the robot falls": lambda log: {
        "up": np.where(log.time[:, None] > 26.0, [1.0, 0.0, 0.0], log.up)
    },
    "of the samples are missing": lambda log: {
        name: getattr(log, name)[(log.time % 1.0) < 0.5] for name in vars(log)
    },
    "s in all: expected": lambda log: {
        name: getattr(log, name)[:2000] for name in vars(log)
    },
    "times a second: expected": lambda log: {
        name: getattr(log, name)[::5] for name in vars(log)
    },
}


def test_a_slow_driver_costs_accuracy_and_the_report_says_so(
    recorded: Recorded, result: WalkResult
) -> None:
    log = recorded.log
    found = recorded.identify(**{n: getattr(log, n)[::2] for n in vars(log)})
    assert "come 100 times a second: motion up to 40 Hz is used" in report_text(found)
    assert "times a second" not in report_text(result)
    (com, C), true = found.com(found.posture), recorded.true
    expected = Sesc(true).com(found.posture)
    assert (np.abs(com - expected) < 3.0 * np.sqrt(np.diag(C))).all()
    assert np.trace(C) > np.trace(result.com(found.posture)[1])


def test_a_recording_of_two_runs_is_two_recordings(recorded: Recorded) -> None:
    log = recorded.log
    twice = WalkLog(*(np.concatenate((v, v)) for v in vars(log).values()))  # type: ignore[arg-type]
    twice.time[len(log.time) :] += log.time[-1] + 30.0
    first, second = walking_parts(twice)
    assert len(first.time) == len(second.time) == len(walking_parts(log)[0].time)
    assert second.time[0] - first.time[-1] > 29.0


@pytest.mark.parametrize("message", BAD)
def test_refuses_what_it_cannot_use(recorded: Recorded, message: str) -> None:
    with pytest.raises(WalkError, match=message):
        recorded.identify(**BAD[message](recorded.log))


def test_an_orientation_that_never_changes_is_none(
    recorded: Recorded, result: WalkResult
) -> None:
    """A driver without a filter publishes the identity."""
    up = np.tile([0.0, 0.0, 1.0], (len(recorded.log.time), 1))
    found, unknown = recorded.identify(up=up), recorded.identify(up=cast(Any, None))
    assert found.accepted
    np.testing.assert_array_equal(found.z, unknown.z)
    assert "orientation never changes in 1 of 1 recordings" in report_text(found)
    for each in (unknown, result):
        assert "never changes" not in report_text(each)


@pytest.mark.parametrize("lost", ["effort", "position", "held joints", "held IMU"])
def test_a_moment_without_readings_says_nothing(
    recorded: Recorded, result: WalkResult, lost: str
) -> None:
    log, gap = recorded.log, (recorded.log.time > 14.0) & (recorded.log.time < 15.5)
    first = int(np.argmax(gap))
    if lost in ("effort", "position"):  # of one joint
        missing = gap[:, None] & (np.arange(12) == 2)
        changes = {lost: np.where(missing, np.nan, getattr(log, lost))}
    else:  # a driver repeats the last one
        imu = ("angular_velocity", "specific_force", "up")
        names = imu if lost == "held IMU" else ("position", "velocity", "effort")
        values = {name: getattr(log, name) for name in names}
        changes = {k: np.where(gap[:, None], v[first], v) for k, v in values.items()}
    found = recorded.identify(**changes)
    assert found.accepted
    q = result.posture
    off, std = (
        found.com(q)[0] - _com(recorded.true, q),
        np.sqrt(np.diag(result.com(q)[1])),
    )
    assert (np.abs(off) < 0.3 * std).all()


def test_parts_in_which_the_robot_is_carried_are_left_out(
    recorded: Recorded, result: WalkResult
) -> None:
    effort = recorded.log.effort.copy()
    effort[2000:2600] *= 0.02
    found, q = recorded.identify(effort=effort), result.posture
    assert found.accepted
    assert np.linalg.norm(found.com(q)[0] - _com(recorded.true, q)) < 1.5e-3
    effort[: len(effort) // 2] *= 0.02
    with pytest.raises(WalkError, match="the robot is carried, lies or hangs"):
        recorded.identify(effort=effort)


@pytest.mark.parametrize(
    ("added", "at", "change"),
    [(-1.0, (0.0, 0.0, 0.1), "-0.9"), (0.4, (0.25, 0.0, 0.1), "")],
)
def test_a_payload_that_changes_half_way_is_named(
    added: float, at: tuple, change: str
) -> None:
    words = f"about 15 s into the recordings the load on the trunk changes by {change}"
    with pytest.raises(WalkError, match=words):
        record(added, at).identify()


def _check_payload(off: np.ndarray, stds: np.ndarray) -> None:
    """Blocks (K, 4) off by parts of a robot of 10 kg, and what they are known to (K, 4)."""
    unknowns = SimpleNamespace(
        total_mass=lambda z: 10.0, coefficients=lambda z: np.eye(5)[4]
    )
    information = np.zeros((len(off), 5, 5))
    information[:, range(4), range(4)] = 1.0 / (10.0 * stds) ** 2
    information[:, :4, 4] = -10.0 * off * information[:, range(4), range(4)]
    found = SimpleNamespace(information=information, z=np.zeros(1))
    check_payload(cast(Any, found), cast(Any, unknowns), 5.0 * np.arange(len(off)))


STDS = np.tile([1e-3, 2e-4, 2e-4, 3e-4], (12, 1))


@pytest.mark.parametrize(
    ("axis", "cause"),
    [(0, "something was put on"), (2, "put on"), (3, "does not look like a load")],
)
def test_a_step_of_the_vertical_moment_alone_is_no_load(axis: int, cause: str) -> None:
    off = STDS * np.random.default_rng(0).standard_normal((12, 4))
    _check_payload(off, STDS)
    off[7:, axis] += 0.012
    with pytest.raises(WalkError, match=f"about 35 s .*{cause}"):
        _check_payload(off, STDS)


def test_blocks_that_tell_little_make_no_step() -> None:
    """Treading in place shows the vertical moment ten times less than walks that follow."""
    rng, stds = np.random.default_rng(0), STDS.copy()
    stds[:2, 3] = 2e-3
    off = stds * rng.standard_normal((12, 4))
    off[:2, 3] = [
        3.8e-3,
        4.4e-3,
    ]  # two standard deviations, over what is a step elsewhere
    _check_payload(off, stds)
    with pytest.raises(WalkError, match="about 10 s"):
        _check_payload(off, STDS)


def test_healthy_blocks_make_a_step_in_few_recordings() -> None:
    """Blocks of 5 s of one gait share half of the variance of their errors."""
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(2000):
        gaits = np.repeat(rng.standard_normal((6, 4)), 2, axis=0)
        off = 20.0 * STDS * (gaits + rng.standard_normal((12, 4)))  # all are large
        try:
            _check_payload(off, STDS)
        except WalkError:
            alarms += 1
    print(f"{alarms} false alarms of 2000")
    assert alarms <= 15  # 0.2 % are expected


def test_an_instant_of_free_fall_is_no_robot_that_is_carried() -> None:
    up = np.tile([0.0, 0.0, 1.0], (1000, 1))
    force = 9.81 * up
    force[500, 2] = 1e-3  # a foot lands elsewhere: its load is off by some newtons
    loads = 10.0 * force[:, 2:] - 5.0
    data = SimpleNamespace(motion=SimpleNamespace(force=force, up=up), period=0.002)
    check_loads([cast(Any, data)], [(loads, loads > 0.0)], 10.0)


def _is_a_body(inertia: np.ndarray) -> bool:
    moments = np.linalg.eigvalsh(inertia)
    return bool(
        moments[0] >= 0.0 and moments[2] <= (1.0 + 1e-6) * (moments[0] + moments[1])
    )


def test_the_corrected_urdf_has_the_bodies_that_were_found(
    recorded: Recorded, result: WalkResult
) -> None:
    xml = corrected_urdf(recorded.believed, result.unknowns.eta(result.z))
    model = RobotModel.from_urdf(xml)
    bodies, order = model.bodies, ([0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2])
    np.testing.assert_allclose(bodies.mass, result.theta[:, 0])
    np.testing.assert_allclose(bodies.first_moment, result.theta[:, 1:4], atol=1e-9)
    # some inertias of the URDF are no body's, and become so
    inertia = bodies.inertia[:, order[0], order[1]]
    np.testing.assert_allclose(inertia, result.theta[:, 4:], rtol=1e-2, atol=1e-6)
    for before, after in zip(
        recorded.believed.link_inertias, model.link_inertias, strict=True
    ):
        if _is_a_body(before):
            assert _is_a_body(after)
