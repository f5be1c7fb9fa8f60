"""Ways in time: from rest to rest, through all points, never too fast."""

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

from com_model.postures import SHORTEST, time_path


def spline(way, timed):
    times = np.append(0.0, timed.time)
    positions = np.vstack((way[:1], timed.q))
    velocities = np.vstack((np.zeros((1, way.shape[1])), timed.qd))
    return CubicHermiteSpline(times, positions, velocities)


@pytest.mark.parametrize("count", [2, 3, 12])
def test_it_goes_through_the_points_within_the_speeds(count):
    rng = np.random.default_rng(count)
    way = np.cumsum(rng.uniform(-0.1, 0.3, (count, 4)), axis=0)
    speeds = np.array([0.2, 0.5, 1.0, 2.0])
    timed = time_path(way, speeds)
    np.testing.assert_array_equal(timed.q, way[1:])
    np.testing.assert_allclose(timed.qd[-1], 0.0, atol=1e-12)
    assert (np.diff(np.append(0.0, timed.time)) > 0.0).all()
    motion = spline(way, timed)
    at = np.linspace(0.0, timed.end, 2000)
    assert (np.abs(motion(at, 1)) <= 1.5 * speeds).all()
    assert (np.abs(timed.qd) <= speeds + 1e-12).all()


def test_two_points_are_a_cubic_as_fast_as_allowed():
    timed = time_path([[0.0, 1.0], [0.6, 0.4]], 0.3)
    motion = spline(np.array([[0.0, 1.0], [0.6, 0.4]]), timed)
    speeds = np.abs(motion(np.linspace(0.0, timed.end, 1001), 1))
    assert speeds.max() == pytest.approx(0.3, rel=1e-3)


def test_no_way_at_all_takes_the_shortest_time():
    assert time_path(np.zeros((2, 3)), 1.0).end == pytest.approx(SHORTEST)


@pytest.mark.parametrize(("way", "speed"), [([[0.0]], 1.0), ([[0.0], [1.0]], 0.0)])
def test_bad_ways(way, speed):
    with pytest.raises(ValueError, match="two points or more, and speeds above 0"):
        time_path(way, speed)
