"""What a recording shows of a URDF: steady strides, frictions that are never negative, verdicts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls
from walk_recording import Recorded

from com_bags import BagError, WalkLog, in_bursts, spread_bursts
from com_identification.exceptions import WalkError
from com_identification.walking.delays import find_delays
from com_identification.walking.evidence import assess_walk
from com_identification.walking.log import find_gait, stride_time
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


@pytest.mark.slow
def test_mass_and_trunk_are_found_within_their_standard_deviations(
    recorded: Recorded,
) -> None:
    logs, scale = [recorded.log], Scale(recorded.true.mass)
    found = assess_walk(logs, recorded.believed, recorded.config, scale)
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
