"""What a recording shows of a URDF: steady strides, frictions that are never negative, verdicts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls
from walk_recording import Recorded

from com_bags import BagError, WalkLog, in_bursts, spread_bursts
from com_identification.exceptions import WalkError
from com_identification.walking.combination import judge_walk
from com_identification.walking.delays import Delays, find_delays
from com_identification.walking.evidence import against_urdf, assess_walk
from com_identification.walking.log import directions, find_gait, stride_time
from com_identification.walking.low_band import _bounded, trunk_values
from com_identification.walking.unknowns import Scale

PERIOD, STRIDE = 0.005, 0.43  # s


def _trot(seconds: float) -> np.ndarray:
    time = np.arange(round(seconds / PERIOD)) * PERIOD
    phase = np.array([0.0, 0.5, 0.25, 0.75])
    turn = 2.0 * np.pi * (time[:, None] / STRIDE + phase)
    return 0.2 * np.sin(turn) + 0.05 * np.sin(2.0 * turn + phase)


def test_the_stride_is_the_shortest_time_after_which_the_joints_move_as_before() -> (
    None
):
    assert stride_time(_trot(4.0), PERIOD) == pytest.approx(STRIDE, rel=2e-3)


def test_strides_between_standing_and_rising_are_found() -> None:
    trot, still = _trot(8.0), np.zeros((800, 4))
    rise = np.linspace(0.0, 0.9, 400)[:, None] * np.ones(4)
    gait = find_gait(np.vstack((still, rise, 0.9 + trot, 0.9 + still)), PERIOD)
    walked = np.zeros(len(gait.steady), dtype=bool)
    walked[1200:2800] = True
    near = round(2.0 * STRIDE / PERIOD)
    assert gait.steady[: 1200 - near].mean() < 0.05
    assert gait.steady[2800 + near :].mean() < 0.05
    assert gait.steady[walked].mean() > 0.9
    whole = gait.whole(np.ones_like(gait.steady))
    assert 10 <= len(whole) <= 8.0 / STRIDE
    assert walked[np.isin(gait.stride, whole)].all()


def test_stamps_of_a_link_that_delivers_bursts_are_recognised() -> None:
    time = np.arange(2000) * PERIOD
    late = np.ceil(time / 0.1) * 0.1 + 1e-5 * np.arange(2000)
    assert in_bursts(late)
    assert not in_bursts(time + 0.3 * PERIOD * np.random.default_rng(0).random(2000))


def test_samples_of_bursts_are_spread_evenly_within_each_run() -> None:
    time = np.arange(2000) * PERIOD
    time[1000:] += 60.0
    late = np.ceil(time / 0.1) * 0.1 + 1e-5 * (np.arange(2000) % 20)
    steps = np.diff(spread_bursts(late))
    assert steps[999] > 59.0
    assert np.quantile(np.delete(steps, 999), [0.05, 0.95]) == pytest.approx(
        PERIOD, rel=0.1
    )
    assert (steps > 0.0).all()
    assert spread_bursts(time) is time


def test_a_walk_that_does_not_repeat_is_one() -> None:
    rng = np.random.default_rng(1)
    steps = np.repeat(rng.normal(size=(60, 4)), round(0.2 / PERIOD), axis=0)
    still = np.zeros((800, 4))
    gait = find_gait(np.vstack((still, 0.2 * steps, still)), PERIOD)
    assert gait.steady[800:-800].mean() < 0.5
    assert gait.walks[1000:-1000].all()
    assert not gait.walks[:300].any()


def test_the_part_between_two_times_is_used() -> None:
    time, rows = 5.0 + np.arange(100) * 0.1, np.zeros((100, 3))
    log = WalkLog(time, rows, None, rows, rows, rows)
    part = log.between(2.0, 4.0)
    assert (part.time[0], part.time[-1]) == pytest.approx((7.0, 9.0))
    assert len(part.position) == len(part.time) == 21
    assert len(log.between(None, None).time) == 100
    with pytest.raises(
        BagError, match=r"between 20 and inf s: expected times up to 9\.9 s"
    ):
        log.between(20.0, None)


def test_bounded_solutions_are_those_of_nonnegative_least_squares() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        A, b = rng.normal(size=(12, 4)), rng.normal(size=12)
        w = _bounded(A.T @ A, A.T @ b, np.eye(4), np.zeros(4))
        assert w.min() > -1e-8
        best = nnls(A, b)[1]
        assert np.linalg.norm(A @ w - b) <= 1.05 * best + 1e-9


def test_friction_reverses_after_a_distance_however_fast() -> None:
    """As Dahl says: 1 - 2 exp(-x / distance) behind a reversal."""
    there = np.linspace(0.0, 0.1, 4000)
    back = np.linspace(0.1, 0.094, 600)[1:]
    q, distance = np.concatenate((there, back))[:, None], 0.002
    sign = directions(q, distance)[:, 0]
    assert sign[4000 - 1] == pytest.approx(1.0, abs=1e-3)
    turned = 0.1 - back
    expected = 2.0 * np.exp(-turned / distance) - 1.0
    np.testing.assert_allclose(sign[4000:], expected, atol=0.02)
    slow = np.repeat(q, 5, axis=0)  # the same way at a fifth of the speed
    np.testing.assert_allclose(directions(slow, distance)[::5, 0], sign, atol=1e-12)
    assert np.abs(directions(100.0 * q[::50], distance)).max() <= 1.0


def test_late_torques_are_shifted_by_even_times_where_stamps_come_in_bursts() -> None:
    time = np.arange(2000) * PERIOD
    bursts = np.ceil(time / 0.1) * 0.1 + 1e-5 * (np.arange(2000) % 20)
    rows = np.zeros((2000, 3))
    late = np.sin(3.0 * (time - 0.02))[:, None] * np.ones(3)
    log = WalkLog(bursts, rows, None, late, rows, rows)
    back = Delays(0.02, 0.0).aligned(log)
    error = (back.effort[:, 0] - np.sin(3.0 * time))[20:-20]
    assert np.abs(error).max() < 0.01


@pytest.mark.parametrize(("sigmas", "differs"), [(2.3, False), (4.0, True)])
def test_one_value_of_four_beyond_two_standard_deviations_corrects_nothing(
    recorded: Recorded, sigmas: float, differs: bool
) -> None:
    found = assess_walk([recorded.log], recorded.believed, recorded.config)
    u, std = found.unknowns, 0.01 * found.unknowns.std
    z = u.mean.copy()
    z[7] += sigmas * std[7]  # x of the trunk's CoM
    values, spread, off, far = against_urdf(u, z, np.diag(std**2))
    np.testing.assert_allclose(off, [0.0, sigmas, 0.0, 0.0], atol=1e-6)
    assert spread[1, 1] == pytest.approx(std[7] ** 2)
    assert values[0] == pytest.approx(recorded.believed.mass)
    assert far == differs


@pytest.mark.slow
@pytest.mark.parametrize("turn", [0.0015, 0.003, None])
def test_drives_that_lose_torque_to_their_load_bias_nothing(
    recorded: Recorded, turn: float | None
) -> None:
    """Friction of 15 and 30 % of the torque, with a law that is none of those that are tried."""
    log, mu = recorded.log, np.tile([0.15, 0.15, 0.3], 4)
    assert log.velocity is not None
    drives = [recorded.config.actuators.of(j) for j in recorded.true.joint_names]
    load = np.array([drive.load_friction or 0.0 for drive in drives])
    lossless = log.effort * (
        1.0 - load * np.tanh(log.velocity / 0.02) * np.sign(log.effort)
    )
    gain = np.repeat([1.03, 0.98, 0.97, 1.02], 3)
    sign = np.tanh(log.velocity / 0.1)
    if turn is not None:
        sign = directions(log.position, turn)
    effort = gain * lossless / (1.0 - mu * sign * np.sign(lossless))
    lossy = replace(log, effort=effort)
    scale = Scale(recorded.true.mass)
    judged = judge_walk([lossy], recorded.believed, recorded.config, scale)
    found, true = judged.evidence, recorded.true.bodies
    assert found is not None
    assert found.com is not None
    assert found.com_std is not None
    off = found.com - true.first_moment[0] / true.mass[0]
    assert (np.abs(off) < 2.5 * found.com_std).all()
    assert (found.com_std[1:] < 0.010).all()
    assert not any("put on" in note for note in found.notes)
    assert found.halves is not None
    assert found.halves < 3.0


@pytest.mark.slow
def test_mass_and_trunk_are_found_within_their_standard_deviations(
    recorded: Recorded,
) -> None:
    logs, scale = [recorded.log], Scale(recorded.true.mass)
    found = assess_walk(logs, recorded.believed, recorded.config, scale)
    assert found.verdict.value in repr(found)
    assert all(reason in str(found.facts().rows) for reason in found.reasons)
    true = recorded.true.bodies
    expected = np.append(recorded.true.mass, true.first_moment[0] / true.mass[0])
    values, slopes = trunk_values(found.unknowns, found.z)
    std = np.sqrt(np.diag(slopes @ found.covariance @ slopes.T))
    assert (np.abs(values - expected) < 2.5 * std).all()
    assert std[0] < 0.1
    assert (std[1:3] < 0.015).all()
    free = assess_walk(logs, recorded.believed, recorded.config)
    assert free.mass_std > 0.04 * free.mass  # no motion shows the common gain
    assert abs(free.mass - recorded.true.mass) < 2.0 * free.mass_std


@pytest.mark.slow
def test_without_an_imu_only_steady_strides_count(recorded: Recorded) -> None:
    unknown = np.full_like(recorded.log.specific_force, np.nan)
    log = replace(
        recorded.log, angular_velocity=unknown, specific_force=unknown, up=None
    )
    assert not log.has_imu
    with pytest.raises(
        WalkError, match=r"steady strides.*an IMU and 15 strides for the CoM"
    ):
        assess_walk([log], recorded.believed, recorded.config)


@pytest.mark.slow
@pytest.mark.parametrize(("torques", "imu"), [(0.02, 0.0), (0.0, 0.02)])
def test_late_torques_and_a_late_imu_are_named_and_shifted(
    recorded: Recorded, torques: float, imu: float
) -> None:
    def later(values: np.ndarray, delay: float) -> np.ndarray:
        time = recorded.log.time
        return np.column_stack([np.interp(time - delay, time, v) for v in values.T])

    log = recorded.log
    assert log.up is not None
    late = replace(
        log,
        effort=later(log.effort, torques),
        angular_velocity=later(log.angular_velocity, imu),
        specific_force=later(log.specific_force, imu),
        up=later(log.up, imu),
    )
    found = find_delays([late], recorded.believed, recorded.config)
    assert found == pytest.approx((torques, imu), abs=0.004)
    who = "torques" if torques else "readings of the IMU"
    assert str(found).startswith(f"{who} come ")
    back = found.aligned(late)
    inside = slice(50, -50)
    error = np.abs(back.effort - log.effort)[inside].mean()
    assert error < 0.3 * np.abs(late.effort - log.effort)[inside].mean() + 1e-12


@pytest.mark.slow
def test_a_recording_without_delays_stays_as_it_is(recorded: Recorded) -> None:
    found = find_delays([recorded.log], recorded.believed, recorded.config)
    assert found == (0.0, 0.0)
    assert not str(found)
