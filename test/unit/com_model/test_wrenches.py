"""The convention of force sensors, and its inverse."""

from types import SimpleNamespace

import numpy as np

from com_model.robot_config import ground_wrenches, wrench_signs

FEET = (SimpleNamespace(wrench_sign=1), SimpleNamespace(wrench_sign=-1))


def test_a_sensor_that_reads_the_robot_on_the_ground_is_turned_round():
    readings = np.arange(1.0, 25.0).reshape(2, 2, 6)
    wrenches = ground_wrenches(readings, FEET)
    np.testing.assert_array_equal(wrenches[:, 0], readings[:, 0])
    np.testing.assert_array_equal(wrenches[:, 1], -readings[:, 1])
    np.testing.assert_array_equal(
        ground_wrenches(readings[..., :3], FEET), wrenches[..., :3]
    )


def test_it_is_its_own_inverse():
    wrenches = np.random.default_rng(1).normal(size=(5, 2, 6))
    np.testing.assert_array_equal(
        ground_wrenches(ground_wrenches(wrenches, FEET), FEET), wrenches
    )


def test_a_robot_without_feet():
    assert wrench_signs(()).shape == (0, 1)
