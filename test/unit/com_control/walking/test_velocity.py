"""Walks by a velocity: planned again step by step, without a jump, for as long as one likes."""

import numpy as np
import pytest

from com_control.exceptions import PlanError
from com_control.walking.biped import sole_center
from com_control.walking.velocity import KEPT, TURN, VelocityWalker
from com_control.walking.walk import WalkRequest
from com_control.walking.walk_plan import find_stance
from com_control.walking.walker import Walker

pytestmark = pytest.mark.slow
REQUEST = WalkRequest(
    step_time=0.8, double_support=0.2, step_length=0.15, method="exact"
)
DT = 0.02  # s
STOP = np.zeros(3)


@pytest.fixture(scope="module")
def parts(robots):
    biped, oracle = robots("itu_biped")
    return biped, oracle, Walker(biped)


def follow(parts, velocity_at):
    """Walks, planned 0.2 s ahead, until the velocity is 0: joint positions, and the last walk."""
    biped, _, walker = parts
    by_velocity = VelocityWalker(walker, REQUEST, find_stance(biped, biped.posture))
    walk, t, rows = by_velocity.begin(velocity_at(0), biped.posture), 0.0, []
    while t < walk.duration:
        rows.append(walk.path.sample(t)[0])
        velocity = velocity_at(walk.steps_made(t))
        if by_velocity.due(walk, t + 0.2, velocity):
            changed = by_velocity.plan_further(walk, t + 0.2, velocity)
            assert len(changed.plan.steps) <= KEPT + 5
            assert changed.instant(t - changed.later).step == walk.step_at(t)
            t, walk = t - changed.later, changed
        t += DT
    return np.array(rows), walk


def test_a_long_way_with_turns_is_without_jumps(parts):
    biped, oracle, _ = parts
    left, on, back = (0.1, 0.0, 0.3), (0.15, 0.05, 0.0), (-0.1, 0.0, -0.2)

    def velocity_at(step):
        return np.array(left if step < 10 else on if step < 20 else back) * (step < 30)

    q, walk = follow(parts, velocity_at)
    assert 31 <= walk.steps <= 33
    assert (np.abs(np.diff(q, axis=0)) <= DT * biped.model.velocity_limits * 1.01).all()
    assert ((q >= biped.model.lower - 1e-9) & (q <= biped.model.upper + 1e-9)).all()
    soles, com = oracle.place(q[-1], np.eye(3), np.zeros(3))
    away = soles[0][:, :3].T @ (np.mean([sole[:, 3] for sole in soles], axis=0) - com)
    assert (
        np.abs(away[:2] - [sole_center(biped)[0], 0.0]).max() < 2e-3
    )  # it stands between them


def test_it_goes_as_fast_as_it_is_told_and_no_further_than_a_step(parts):
    _, walk = follow(parts, lambda step: np.array([0.08, 0.0, 0.0]) * (step < 12))
    assert walk.plan.steps[-1].x == pytest.approx(0.08 * (walk.steps - 1), abs=0.09)
    assert walk.plan.steps[-1].yaw == pytest.approx(0.0, abs=1e-12)
    _, walk = follow(parts, lambda step: np.array([9.0, 0.0, -9.0]) * (step < 4))
    turns = np.diff([step.yaw for step in walk.plan.steps])
    assert (np.abs(turns) <= TURN + 1e-9).all()
    places = np.array([step.position for step in walk.plan.steps])
    assert np.linalg.norm(np.diff(places, axis=0), axis=1).max() < 0.4


def test_what_cannot_be_walked_is_walked_more_slowly_or_refused(parts):
    biped, _, walker = parts
    stance = find_stance(biped, biped.posture)
    far = VelocityWalker(walker, WalkRequest(step_length=0.9, method="exact"), stance)
    walk = far.begin(np.array([0.5, 0.0, 0.0]), biped.posture)
    assert 0.1 < walk.plan.steps[0].x < 0.45
    low = VelocityWalker(walker, WalkRequest(com_height=2.0, method="exact"), stance)
    with pytest.raises(PlanError, match="is not feasible"):
        low.begin(np.array([0.1, 0.0, 0.0]), biped.posture)


def test_zero_shortens_a_walk_and_an_old_one_is_not_planned_again(parts):
    biped, _, walker = parts
    by_velocity = VelocityWalker(walker, REQUEST, find_stance(biped, biped.posture))
    walk = by_velocity.begin(np.array([0.1, 0.0, 0.0]), biped.posture)
    assert walk.steps == 3
    shorter = by_velocity.plan_further(walk, 0.5, STOP)
    assert shorter.steps == 2
    assert not by_velocity.due(shorter, 0.6, STOP)
    with pytest.raises(PlanError, match="ends before"):
        by_velocity.plan_further(walk, walk.duration, STOP)
