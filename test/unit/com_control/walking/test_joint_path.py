"""Joint paths: cubics, halts, ways between postures, limits."""

from dataclasses import replace

import numpy as np
import pytest

from com_control.exceptions import PlanError
from com_control.walking.walk_joints import check_path, plan_approach
from com_model.joint_path import JointPath


def wave(count=60, n=12, scale=0.05):
    t = np.linspace(0.0, 1.0, count)
    phase = np.arange(n)
    q = scale * np.sin(6.0 * t[:, None] + phase)
    return JointPath(t, q, 6.0 * scale * np.cos(6.0 * t[:, None] + phase))


def test_a_path_is_met_between_its_points():
    path = wave()
    for t in (0.013, 0.5, 0.991):
        q, qd = path.sample(t)
        np.testing.assert_allclose(q, 0.05 * np.sin(6.0 * t + np.arange(12)), atol=1e-7)
        np.testing.assert_allclose(qd, 0.3 * np.cos(6.0 * t + np.arange(12)), atol=1e-5)
        step = 1e-6
        difference = (path.sample(t + step)[0] - path.sample(t - step)[0]) / (
            2.0 * step
        )
        np.testing.assert_allclose(qd, difference, atol=1e-6)


def test_it_rests_before_and_after():
    path = wave()
    for t, k in ((-1.0, 0), (2.0, -1)):
        q, qd = path.sample(t)
        np.testing.assert_array_equal(q, path.q[k])
        np.testing.assert_array_equal(qd, 0.0)


def test_what_is_left_and_what_follows():
    path = wave()
    left = path.after(0.5)
    assert left.time[0] > 0.5
    assert left.end == path.end
    assert path.after(3.0).time.tolist() == [3.0]
    np.testing.assert_array_equal(path.after(3.0).qd, 0.0)
    both = path.followed_by(path.shifted(1.0))
    assert (np.diff(both.time) > 0.0).all()
    assert len(both.time) == 2 * len(path.time) - 1
    assert not path.q.flags.writeable


def test_a_halt_keeps_to_the_path_and_ends_at_rest():
    path = wave()
    halted = path.halted(0.3, 0.2)
    q, qd = path.sample(0.3)
    np.testing.assert_allclose(halted.q[0], q)
    np.testing.assert_allclose(halted.qd[0], qd)
    np.testing.assert_array_equal(halted.qd[-1], 0.0)
    np.testing.assert_allclose(halted.q[-1], path.sample(0.4)[0])
    slopes = np.gradient(halted.q, halted.time, axis=0)
    np.testing.assert_allclose(halted.qd[1:-1], slopes[1:-1], atol=1e-3)
    assert np.abs(halted.qd).max() <= np.abs(path.qd).max() + 1e-9


def test_a_lead_takes_the_time_that_speeds_need(robots):
    model = robots("itu_biped")[0].model
    start, goal = np.zeros(12), np.zeros(12)
    goal[3] = 1.0
    way = plan_approach(start, goal, model, 0.1, 0.25)
    assert way.end == pytest.approx(1.875 / (0.25 * 12.0))
    assert np.abs(way.qd).max() == pytest.approx(0.25 * 12.0, rel=1e-2)
    np.testing.assert_array_equal(way.q[[0, -1]], [start, goal])
    assert plan_approach(start, start, model, 0.5, 0.25).end == 0.5


def test_limits_are_those_of_the_urdf(robots):
    model = robots("itu_biped")[0].model
    time, zeros = np.array([0.0, 0.1]), np.zeros((2, 12))
    check_path(model, JointPath(time, zeros, zeros))
    q = zeros.copy()
    q[1, 3] = 2.5
    kinds = tuple(
        "prismatic" if j == 3 else kind for j, kind in enumerate(model.joint_types)
    )
    with pytest.raises(PlanError, match=r"l_knee_joint would be at 2\.500 m at"):
        check_path(replace(model, joint_types=kinds), JointPath(time, q, zeros))
    with pytest.raises(
        PlanError, match=r"l_knee_joint would be at 2\.500 rad at 0\.100 s, its lim"
    ):
        check_path(model, JointPath(time, q, zeros))
    q[1, 3] = 1.0  # 15 rad/s in the middle of the cubic, with no speed at its ends
    with pytest.raises(
        PlanError, match=r"at 0\.000 s l_knee_joint would move with 15\.00 rad/s"
    ):
        check_path(model, JointPath(time, q, zeros))
    q[1, 3] = np.nan
    with pytest.raises(
        PlanError, match=r"target of l_knee_joint at 0\.100 s is not a finite"
    ):
        check_path(model, JointPath(time, q, zeros))
