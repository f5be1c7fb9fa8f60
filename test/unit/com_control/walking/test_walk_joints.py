"""Walks in joint angles: within the limits, or refused before the first step."""

import numpy as np
import pytest
from baselines.paper_walk import paper_walk

from com_control.exceptions import PlanError
from com_control.walking.biped import heading_to_pelvis
from com_control.walking.com_ik import ComIk
from com_control.walking.footsteps import WalkParameters
from com_control.walking.walk import WalkRequest, make_plan
from com_control.walking.walk_joints import solve_joints
from com_control.walking.walk_plan import Timing, find_stance


def test_the_walk_of_the_paper(robots):
    biped, oracle = robots("itu_biped")
    plan = paper_walk()
    walk = solve_joints(ComIk(biped), plan.sample(plan.grid(0.01)))
    samples = plan.sample(walk.time)
    assert walk.com_errors.max() <= 1e-9
    for i in range(0, len(walk.time), 50):
        feet, com = oracle.place(walk.q[i], walk.R_pelvis[i], walk.pelvis[i])
        np.testing.assert_allclose(feet, samples.feet[i], atol=1e-9)
        np.testing.assert_allclose(com, samples.com[i], atol=2e-9)
    assert (walk.q >= biped.model.lower).all()
    assert (walk.q <= biped.model.upper).all()
    assert (np.abs(walk.qd) <= biped.model.velocity_limits).all()
    np.testing.assert_allclose(walk.qd[[0, -1]], 0.0, atol=5e-3)
    assert not walk.q.flags.writeable


@pytest.mark.parametrize(("name", "length"), [("talos", 0.2), ("hoap2", 0.05)])
def test_humanoids_walk(robots, stance_of, name, length):
    biped, oracle = robots(name)
    half, height = stance_of(biped, 0.98)
    timing = Timing(com_height=height, step_height=0.1 * height, min_width=half)
    plan = paper_walk(WalkParameters(step_length=length, half_width=half), timing)
    walk = solve_joints(ComIk(biped), plan.sample(plan.grid(0.01)))
    samples = plan.sample(walk.time)
    for i in range(0, len(walk.time), 130):
        feet, com = oracle.place(walk.q[i], walk.R_pelvis[i], walk.pelvis[i])
        np.testing.assert_allclose(feet, samples.feet[i], atol=1e-9)
        np.testing.assert_allclose(com, samples.com[i], atol=2e-9)


def test_steps_that_are_too_long_are_refused(robots):
    plan = paper_walk(WalkParameters(step_length=0.6))
    message = (
        r"is not feasible at \d\.\d+ s: the (left|right) leg is too short.*nearest CoM"
    )
    with pytest.raises(PlanError, match=message):
        solve_joints(ComIk(robots("itu_biped")[0]), plan.sample(plan.grid(0.01)))


def test_steps_that_are_too_quick_are_refused(robots):
    walk = WalkParameters(step_length=0.2)
    plan = paper_walk(walk, Timing(step_time=0.12, double_support=0.05))
    message = (
        r"would move with \d+\.\d+ rad/s, its limit is 12\.00: give the steps more time"
    )
    with pytest.raises(PlanError, match=message):
        solve_joints(ComIk(robots("itu_biped")[0]), plan.sample(plan.grid(0.01)))


def test_a_com_that_is_too_high_is_refused(robots):
    plan = paper_walk(timing=Timing(com_height=0.8))
    with pytest.raises(PlanError, match=r"at 0\.000 s: the left leg is too short"):
        solve_joints(ComIk(robots("itu_biped")[0]), plan.sample(plan.grid(0.01)))


def test_a_pelvis_that_looks_backwards(robots):
    """The x axis of iCub's root link points backwards; it walks forwards all the same."""
    biped, oracle = robots("icub")
    stance = find_stance(biped, biped.posture)
    request = WalkRequest(steps=2, step_length=0.05, com_height=0.95 * stance.com[2])
    plan = make_plan(request, biped, stance)
    walk = solve_joints(ComIk(biped), plan.sample(plan.grid(0.02)))
    np.testing.assert_array_equal(heading_to_pelvis(biped), np.diag([-1.0, -1.0, 1.0]))
    samples = plan.sample(walk.time)
    assert samples.com[-1, 0] > samples.com[0, 0]
    for i in range(0, len(walk.time), 40):
        feet, com = oracle.place(walk.q[i], walk.R_pelvis[i], walk.pelvis[i])
        np.testing.assert_allclose(feet, samples.feet[i], atol=1e-8)
        np.testing.assert_allclose(com, samples.com[i], atol=2e-9)
    for name in ("itu_biped", "talos", "hoap2"):
        np.testing.assert_array_equal(heading_to_pelvis(robots(name)[0]), np.eye(3))
