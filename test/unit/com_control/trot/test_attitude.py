"""Which way is up: the gyroscope between, the bias of a standing trunk, bad input."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_control.trot.attitude import MAX_BIAS, MAX_SLOPE, AttitudeFilter

DT = 0.001


def turned(x, y):
    return Rotation.from_euler("yx", [y, x]).as_matrix()


def test_the_bias_is_learnt_while_the_trunk_stands_and_left_out_afterwards():
    attitude = AttitudeFilter(1.0)
    rng = np.random.default_rng(1)
    for _ in range(1000):
        noisy = turned(0.002 + rng.normal(0.0, 0.0035), rng.normal(0.0, 0.0035))
        attitude.update(DT, noisy, np.zeros(3), parallel=True)
    assert attitude.bias[1] == pytest.approx(0.002, abs=4e-4)
    np.testing.assert_allclose(attitude.up[:2], 0.0, atol=4e-4)


def test_a_slope_is_no_bias():
    attitude = AttitudeFilter(1.0)
    for _ in range(1000):
        attitude.update(DT, turned(0.1, 0.0), np.zeros(3), parallel=True)
    assert np.linalg.norm(attitude.bias) == pytest.approx(MAX_BIAS)
    assert attitude.up[1] == pytest.approx(np.sin(0.1) - MAX_BIAS, rel=1e-2)
    np.testing.assert_allclose(attitude.normal(1.0), [0.0, 0.0, 1.0], atol=2e-4)
    np.testing.assert_allclose(attitude.normal(0.0), attitude.up)


def test_the_slope_follows_the_mean_of_a_trunk_that_rocks():
    attitude = AttitudeFilter(0.0, slope_time=0.5)
    for k in range(5000):
        rocking = 0.1 + 0.05 * np.sin(2.0 * np.pi * 2.0 * DT * k)
        attitude.update(DT, turned(rocking, 0.0), np.zeros(3))
    assert attitude.slope[1] == pytest.approx(np.sin(0.1), abs=0.01)
    assert attitude.slope[0] == pytest.approx(0.0, abs=1e-6)


def test_a_robot_that_lies_on_its_side_is_on_no_slope():
    attitude, lying = AttitudeFilter(0.0, slope_time=0.1), turned(0.5 * np.pi, 0.0)
    for parallel in (True, False):
        for _ in range(5000):
            attitude.update(DT, lying, np.zeros(3), parallel=parallel)
        assert np.linalg.norm(attitude.slope) == pytest.approx(MAX_SLOPE)
        np.testing.assert_allclose(np.linalg.norm(attitude.normal(1.0)), 1.0)


def test_the_gyroscope_carries_on_at_once():
    attitude = AttitudeFilter(10.0)
    for _ in range(300):
        attitude.update(DT, np.eye(3), np.zeros(3))
    for k in range(100):
        attitude.update(DT, turned(0.5 * DT * (k + 1), 0.0), np.array([0.5, 0.0, 0.0]))
    assert attitude.up[1] == pytest.approx(np.sin(0.05), rel=1e-2)


def test_unknown_input_leaves_it_as_it_is():
    attitude = AttitudeFilter(1.0)
    attitude.update(DT, turned(0.1, 0.0), None)
    before = attitude.up
    attitude.update(DT, np.full((3, 3), np.nan), np.full(3, np.nan))
    np.testing.assert_allclose(attitude.up, before)
