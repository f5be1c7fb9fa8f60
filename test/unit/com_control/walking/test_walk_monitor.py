"""Where a robot is in the frame of its walk, by the foot that stands; Pinocchio is the oracle."""

import numpy as np
import pytest

from com_control.walking.walk import WalkRequest
from com_control.walking.walk_monitor import Reading, WalkEstimator
from com_control.walking.walker import Walker


def wrenches(left, right):
    result = np.zeros((2, 6))
    result[:, 2] = left, right
    return result


@pytest.fixture(scope="module")
def walking(robots):
    biped, oracle = robots("itu_biped")
    return biped, oracle, Walker(biped).plan(WalkRequest(steps=3), biped.posture)


def test_a_robot_that_follows_is_where_the_plan_has_it(walking):
    biped, _, walk = walking
    viewer = WalkEstimator(biped)
    for i in range(0, len(walk.path.time), 61):
        planned = walk.instant(float(walk.path.time[i]))
        view = viewer.estimate(Reading(0.0, walk.path.q[i]), planned)
        np.testing.assert_allclose(view.com, planned.com, atol=1e-8)
        np.testing.assert_allclose(view.soles, planned.soles, atol=1e-8)
        assert np.isnan(view.zmp).all()


def test_the_foot_that_carries_more_says_where_the_robot_is(walking):
    biped, oracle, walk = walking
    q = walk.path.q[0].copy()
    q[biped.legs[0].joints[0]] += 0.05  # the left foot is turned against the right one
    planned = walk.instant(0.0)
    poses, com = oracle.place(q, np.eye(3), np.zeros(3))
    for foot, loads in ((0, (200.0, 100.0)), (1, (100.0, 200.0))):
        view = WalkEstimator(biped).estimate(Reading(0.0, q, wrenches(*loads)), planned)
        np.testing.assert_allclose(view.soles[foot], planned.soles[foot], atol=1e-12)
        R = planned.soles[foot, :, :3] @ poses[foot][:, :3].T
        expected = planned.soles[foot, :, 3] + R @ (com - poses[foot][:, 3])
        np.testing.assert_allclose(view.com, expected, atol=1e-9)


def test_a_foot_in_the_air_says_nothing_however_it_is_loaded(walking):
    biped, _, walk = walking
    middle = 0.5 * float(walk.plan.lift_offs[0] + walk.plan.touch_downs[0])
    planned = walk.instant(middle)
    assert planned.swing == "right"
    q = walk.path.sample(middle)[0]
    q[biped.legs[1].joints[3]] += 0.2
    view = WalkEstimator(biped).estimate(
        Reading(0.0, q, wrenches(10.0, 500.0)), planned
    )
    np.testing.assert_allclose(view.soles[0], planned.soles[0], atol=1e-12)


def test_before_the_first_walk_the_frame_lies_between_the_soles(walking):
    biped, _, _ = walking
    view = WalkEstimator(biped).estimate(
        Reading(0.0, biped.posture, wrenches(300.0, 100.0)), None
    )
    np.testing.assert_allclose(view.soles[:, :, 3].mean(axis=0), 0.0, atol=1e-12)
    assert view.zmp[1] == pytest.approx(0.5 * 0.065)
    q = biped.posture.copy()
    q[biped.legs[0].joints[3]] += 0.4
    assert WalkEstimator(biped).estimate(Reading(0.0, q), None) is None
