"""Whatever is asked for, a walk obeys the robot's limits and does not jump, or is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicHermiteSpline

from com_control.exceptions import PlanError
from com_control.walking.footsteps import Footstep
from com_control.walking.walk import METHODS, WalkRequest
from com_control.walking.walk_joints import MAX_APPROACH_TIME, plan_approach
from com_control.walking.walker import Walker
from com_model import RobotModel

FINE = 1e-3  # s
STRANGE = st.sampled_from(
    (
        math.nan,
        math.inf,
        -math.inf,
        1e308,
        -1e300,
        1e150,
        1e9,
        100.0,
        -5.0,
        0.0,
        1e-12,
        1e-300,
    )
)
NUMBERS = (
    *("step_length", "side_step", "turn", "climb", "half_width"),
    *("step_time", "double_support", "step_height", "com_height"),
)


def requests(**numbers):
    return st.builds(WalkRequest, method=st.sampled_from(METHODS), **numbers)


def moderate():
    """Walks of which about half can be walked."""
    return requests(
        steps=st.integers(1, 5),
        first=st.sampled_from(("left", "right")),
        step_length=st.floats(-0.25, 0.35),
        side_step=st.sampled_from((0.0, 0.06, -0.04)),
        turn=st.sampled_from((0.0, 0.25, -0.4)),
        climb=st.sampled_from((0.0, 0.03, -0.02)),
        step_time=st.floats(0.25, 1.2),
        double_support=st.floats(0.05, 0.4),
    )


@pytest.fixture(scope="module")
def walker(robots):
    return Walker(robots("itu_biped")[0])


def fine(path):
    """Positions and velocities, as a drive meets them between the points."""
    t = np.arange(path.time[0], path.end, FINE)
    cubics = CubicHermiteSpline(path.time, path.q, path.qd)
    return cubics(t), cubics(t, 1)


def obeys(model, path):
    q, qd = fine(path)
    assert np.isfinite(path.q).all()
    assert np.isfinite(path.qd).all()
    assert (q >= model.lower - 1e-6).all()
    assert (q <= model.upper + 1e-6).all()
    assert (np.abs(qd) <= model.velocity_limits * 1.00001).all()
    assert (
        np.abs(np.diff(q, axis=0)) <= model.velocity_limits * FINE * 1.00001
    ).all(), "a jump"
    return float(np.abs(np.diff(qd, axis=0)).max())


@settings(max_examples=40, deadline=None)
@given(
    moderate(),
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=2),
    st.floats(0.0, 1.0),
)
def test_walks_stops_and_halts_obey_every_limit(walker, request_, fractions, halt):
    model, posture = walker.biped.model, walker.biped.posture
    try:
        walk = walker.plan(request_, posture)
    except PlanError:
        return
    rough = obeys(model, walk.path)
    for t in (fraction * walk.duration for fraction in fractions):
        stopped = walker.plan_stop(walk, t)
        assert obeys(model, stopped.path) < 3.0 * rough + 0.05, (
            "its velocity does not jump either"
        )
        for time in (0.0, 0.5 * t, t):
            same = stopped.path.sample(time)[0], walk.path.sample(time)[0]
            np.testing.assert_allclose(*same, atol=1e-3)
    obeys(model, walk.path.halted(halt * walk.duration, 0.3))


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(NUMBERS), STRANGE, min_size=1, max_size=3))
def test_strange_numbers_are_refused_or_obey(walker, numbers):
    try:
        walk = walker.plan(
            WalkRequest(steps=2, method="exact", **numbers), walker.biped.posture
        )
    except PlanError:
        return
    obeys(walker.biped.model, walk.path)


@pytest.mark.parametrize("name", ["x", "y", "z", "yaw"])
def test_a_footstep_out_of_this_world(name):
    with pytest.raises(
        PlanError, match=rf"{name} of a footstep is 1e\+300: give at most 1e\+06"
    ):
        Footstep("left", **({"x": 0.0, "y": 0.0} | {name: 1e300}))


def test_a_walk_too_long_for_one_plan(walker):
    with pytest.raises(
        PlanError, match=r"200 steps would take longer than 300 s.*at most 185"
    ):
        walker.plan(WalkRequest(steps=200), walker.biped.posture)


def test_a_way_of_a_joint_that_may_not_move(walker):
    model = walker.biped.model
    xml = model.xml.replace('velocity="12"', 'velocity="0"')
    assert xml != model.xml
    fixed = RobotModel.from_urdf(xml)
    goal = np.zeros(model.n_joints)
    assert plan_approach(goal, goal, fixed, 1.0, 0.25).end == 1.0, "none moves"
    with pytest.raises(
        PlanError, match="l_knee_joint, whose speed limit is 0 rad/s: correct"
    ):
        plan_approach(
            goal, np.where(np.arange(model.n_joints) == 3, 0.1, 0.0), fixed, 1.0, 0.25
        )
    assert MAX_APPROACH_TIME < 1000.0, "nor are points made for it without end"
