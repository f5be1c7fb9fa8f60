"""The curve through the rows and the pace along it, against differences and sampled extremes."""

from copy import copy

import numpy as np
import pytest

from com_control.exceptions import MotionError
from com_control.motion.motion import Motion, PathTiming


def sampled(path, count=20001):
    times = np.linspace(path.time[0] - 0.01, path.end + 0.01, count)
    values = [path.sample(t) for t in times]
    return times, np.array([q for q, _ in values]), np.array([v for _, v in values])


@pytest.mark.parametrize("equal", [True, False])
def test_it_keeps_what_its_rows_keep(equal):
    """Positions, speeds and accelerations are no larger than the differences of the rows."""
    rng = np.random.default_rng(3)
    steps = np.full(30, 0.01) if equal else rng.uniform(0.004, 0.05, 30)
    times = np.concatenate(([0.0], np.cumsum(steps)))
    x = np.cumsum(rng.normal(0.0, 0.01, (31, 2)), axis=0)
    path = Motion(("a", "b"), times, x).path
    t, q, v = sampled(path)
    np.testing.assert_allclose(np.gradient(q, t, axis=0)[5:-5], v[5:-5], atol=0.02)
    speed = np.diff(x, axis=0) / steps[:, None]
    change = np.diff(np.vstack(([[0, 0]], speed, [[0, 0]])), axis=0)
    shorter = np.minimum(np.append(steps[:1], steps), np.append(steps, steps[-1:]))
    assert (q.max(axis=0) <= x.max(axis=0) + 1e-12).all()
    assert (np.abs(v).max(axis=0) <= np.abs(speed).max(axis=0) + 1e-12).all()
    most = np.abs(change / shorter[:, None]).max(axis=0)
    np.testing.assert_allclose(
        np.abs(np.diff(v, axis=0)).max(axis=0) / (t[1] - t[0]), most, 1e-6
    )


def test_it_is_near_its_rows_and_rests_at_both_ends():
    times, wave = 0.002 * np.arange(500), np.sin(np.arange(500) / 50.0)
    motion = Motion(("a",), times, wave[:, None])
    path = motion.path
    on = np.array([path.sample(t)[0][0] for t in times[1:-1]])
    corner = np.abs(np.diff(wave, 2)) / 8.0
    np.testing.assert_allclose(np.abs(on - wave[1:-1]), corner, atol=1e-12)
    for t, row in ((path.time[0], 0), (path.end, -1), (-9.0, 0), (9.0, -1)):
        q, v = path.sample(t)
        assert (q[0], v[0]) == (wave[row], 0.0)
    assert [motion.row_at(t) for t in (-1.0, 0.0, 0.0021, 0.998, 5.0)] == [
        1,
        1,
        2,
        500,
        500,
    ]


def test_one_row_and_none():
    path = Motion(("a", "b"), np.zeros(1), np.array([[0.3, np.nan]])).path
    q, v = path.sample(0.0)
    np.testing.assert_array_equal(q, [0.3, np.nan])
    assert v[0] == 0.0
    assert path.time.tolist() == [0.0]
    with pytest.raises(MotionError, match="without rows cannot be played"):
        _ = Motion(("a",), np.zeros(0), np.zeros((0, 1))).path


def test_the_pace_changes_smoothly_and_its_place_is_the_integral():
    pace = PathTiming(10.0, 0.5)
    pace.change(10.0, 1.0)
    before = pace.progress(10.3), pace.rate(10.3)
    slower = copy(pace)
    slower.change(10.3, 0.0)
    assert (slower.progress(10.3), slower.rate(10.3)) == pytest.approx(before)
    for item in (pace, slower):
        t = np.linspace(9.9, 12.0, 21001)
        rate, place = np.array([(item.rate(x), item.progress(x)) for x in t]).T
        if item is pace:
            assert np.abs(np.diff(rate)).max() / (t[1] - t[0]) == pytest.approx(
                3.0, rel=1e-3
            )
        # a copy that was changed at 10.3 knows nothing of before
        known = t > 10.3
        middle = 0.5 * (rate[1:] + rate[:-1]) * np.diff(t)
        integral = np.concatenate(([0.0], np.cumsum(middle[known[1:]])))
        np.testing.assert_allclose(
            place[known] - place[known][0], integral[:-1], atol=1e-4
        )
    assert pace.settled == pytest.approx(10.5)
    assert pace.progress(11.5) == pytest.approx(1.25)
    assert slower.rate(slower.settled) == 0.0
    assert slower.progress(99.0) == slower.progress(slower.settled)
