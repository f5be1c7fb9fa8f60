"""The filter of all signals: exact on lines, right derivatives, honest about what is missing."""

import numpy as np
import pytest
from scipy import signal

from com_estimation.trunk.interface import Sample
from com_estimation.trunk.motion import MotionFilter, StateVariableFilter
from com_model import ConfigError, RobotConfig

A = 200.0  # rad/s


def run(signals, dt=0.001):
    """Filter output after each sample, (steps, 3): value, rate, rise of one signal."""
    filtered = StateVariableFilter(A, 1)
    filtered.start(signals[:1])
    rows = []
    for value in signals[1:]:
        filtered.update(dt, np.array([value]))
        rows.append(np.ravel(filtered.read()))
    return np.array(rows)


def test_it_is_the_continuous_filter_for_lines_between_samples():
    rng = np.random.default_rng(0)
    u = np.concatenate(([0.0], rng.normal(size=300)))
    t = np.arange(len(u)) * 0.001
    den = np.poly([-A] * 3)
    rows = run(u)
    for k, num in enumerate(([A**3], [A**3, 0.0], [A**3, 0.0, 0.0])):
        _, expected, _ = signal.lsim((num, den), u, t, interp=True)
        known = ~np.isnan(rows[:, k])
        assert known.sum() > 200
        np.testing.assert_allclose(
            rows[known, k], expected[1:][known], atol=1e-6 * A**k
        )


@pytest.mark.parametrize("dt", [0.0005, 0.005])
def test_value_and_derivatives_of_a_sine_come_late_by_the_delay(dt):
    t = np.arange(0.0, 1.0, dt)
    w = 2.0 * np.pi
    rows = run(np.sin(w * t), dt)
    late = t[1:] - StateVariableFilter(A, 1).delay
    np.testing.assert_allclose(rows[-100:, 0], np.sin(w * late[-100:]), atol=0.003)
    np.testing.assert_allclose(
        rows[-100:, 1], w * np.cos(w * late[-100:]), atol=0.003 * w
    )
    np.testing.assert_allclose(
        rows[-100:, 2], -w * w * np.sin(w * late[-100:]), atol=0.01 * w * w
    )


def test_nothing_is_known_until_a_signal_has_been_for_long_enough():
    rows = run(np.full(100, 3.0))
    settled = round(12.0 / A / 0.001)
    assert np.isnan(rows[: settled - 1]).all()
    np.testing.assert_allclose(
        rows[settled + 1 :], [[3.0, 0.0, 0.0]] * (99 - settled - 1)
    )


def test_one_missing_value_makes_only_its_signal_unknown_for_a_while():
    filtered = StateVariableFilter(A, 2)
    filtered.start(np.ones(2))
    for _ in range(100):
        filtered.update(0.001, np.ones(2))
    filtered.update(0.001, np.array([np.nan, 1.0]))
    np.testing.assert_array_equal(np.isnan(filtered.read()[0]), [True, False])
    for _ in range(70):
        filtered.update(0.001, np.ones(2))
    np.testing.assert_allclose(filtered.read()[0], 1.0)


def sample(time, n, **changes):
    still = {
        "time": time, "position": np.zeros(n), "effort": np.zeros(n), "velocity": np.zeros(n),
        "angular_velocity": np.zeros(3), "specific_force": np.array([0.0, 0.0, 9.81]),
        "R_world_imu": np.eye(3),
    }  # fmt: skip
    return Sample(**(still | changes))


def test_the_imu_is_turned_and_moved_to_the_root(light_quadruped):
    """Mounted at (0.1, 0.05, 0.02), turned by 90 degrees about z; the robot spins about z."""
    model, config = light_quadruped
    motion = MotionFilter(model, config, A)
    spin = np.array([0.0, 0.0, 2.0])
    R_root_imu = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    felt_at_imu = np.array([0.0, 0.0, 9.81]) + np.cross(
        spin, np.cross(spin, [0.1, 0.05, 0.02])
    )
    tilt = np.array([[1.0, 0.0, 0.0], [0.0, 0.8, -0.6], [0.0, 0.6, 0.8]])
    for k in range(200):
        now = motion.update(
            sample(
                0.001 * k,
                model.n_joints,
                angular_velocity=R_root_imu.T @ spin,
                specific_force=R_root_imu.T @ felt_at_imu,
                R_world_imu=tilt @ R_root_imu,
                foot_forces=np.arange(12.0).reshape(4, 3),
            )
        )
    np.testing.assert_allclose(now.omega, spin, atol=1e-9)
    np.testing.assert_allclose(now.omega_dot, 0.0, atol=1e-9)
    np.testing.assert_allclose(now.specific_force, [0.0, 0.0, 9.81], atol=1e-9)
    np.testing.assert_allclose(now.up, [0.0, 0.6, 0.8], atol=1e-9)
    np.testing.assert_allclose(
        now.foot_forces, np.arange(12.0).reshape(4, 3), atol=1e-9
    )
    assert now.time == pytest.approx(0.199 - 3.0 / A)


def test_a_gap_or_time_that_goes_back_starts_the_filter_anew(light_quadruped):
    model, config = light_quadruped
    motion = MotionFilter(model, config, A)
    n = model.n_joints

    def feed(start):
        for k in range(100):
            now = motion.update(sample(start + 0.001 * k, n))
        return now

    assert np.isfinite(feed(0.0).q).all()
    assert motion.update(sample(0.099, n)) is None
    assert np.isnan(motion.update(sample(0.5, n)).q).all()
    assert np.isfinite(feed(0.501).q).all()
    assert np.isnan(motion.update(sample(0.2, n)).q).all()


def test_an_imu_on_a_leg_is_refused(light_quadruped):
    model, config = light_quadruped
    feet = {
        f.frame: {"side": f.side, "end": f.end, "radius": 0.03} for f in config.feet
    }
    wrong = RobotConfig.from_dict(
        {"name": "x", "feet": feet, "imu": {"link": "left_front_hip"}}
    )
    with pytest.raises(ConfigError, match="'left_front_hip' moves against the trunk"):
        MotionFilter(model, wrong, A)
