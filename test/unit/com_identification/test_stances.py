"""Postures on flat feet, checked by Pinocchio's poses and centre of mass."""

import numpy as np
import pytest

from com_identification.exceptions import IdentificationError
from com_identification.regression.stances import FlatStance
from com_identification.regression.statics import Statics
from com_model import Foot
from com_model.dynamics.kinematics import link_pose
from com_model.robots import load_robot


@pytest.fixture(scope="module")
def stance(hoap2):
    return FlatStance(Statics(hoap2[0]), hoap2[1])


@pytest.fixture(scope="module")
def robot(perturbed):
    return perturbed(np.random.default_rng(0), 0.0)[0]


def test_both_soles_are_on_one_ground_and_the_com_above_the_target(
    hoap2, stance, robot
):
    model, _ = hoap2
    rng, found = np.random.default_rng(0), 0
    for _ in range(30):
        start = 0.6 * rng.uniform(model.lower, model.upper)
        targets = stance.middles(start[None]) + np.array([0.01, -0.005])
        Q, stands = stance.solve_all(start[None], targets)
        if not stands[0]:
            continue
        found += 1
        q, target = Q[0], targets[0]
        assert (model.lower <= q).all()
        assert (q <= model.upper).all()
        (R, p), (R_r, p_r) = robot.frame(q, "l_sole"), robot.frame(q, "r_sole")
        np.testing.assert_allclose(R_r[:, 2], R[:, 2], atol=1e-9)
        assert (p_r - p) @ R[:, 2] == pytest.approx(0.0, abs=1e-9)
        np.testing.assert_allclose((R.T @ (robot.com(q) - p))[:2], target, atol=1e-9)
    assert found > 20


@pytest.mark.parametrize("kept", [False, True])
def test_slopes_are_finite_differences(hoap2, stance, kept):
    model, _ = hoap2
    if kept:
        stance = FlatStance(Statics(model), hoap2[1], 0.8 * model.neutral - 0.1)
    q, target, step = model.neutral + 0.3, np.array([0.01, 0.02]), 1e-6
    slope = stance.residuals(q[None], target[None])[1][0]
    assert len(slope) == (8 if kept else 5)
    for j in range(model.n_joints):
        e = step * np.eye(model.n_joints)[j]
        there = stance.residuals(np.array([q + e, q - e]), np.tile(target, (2, 1)))[0]
        np.testing.assert_allclose(
            slope[:, j], (there[0] - there[1]) / (2 * step), atol=1e-8
        )


def test_feet_keep_their_places_to_each_other(hoap2, robot):
    model, _ = hoap2
    rest = model.neutral.copy()
    rest[[model.joint_index("LLEG_JOINT1"), model.joint_index("RLEG_JOINT1")]] = [
        0.2,
        -0.3,
    ]
    stance, rng = FlatStance(Statics(model), hoap2[1], rest), np.random.default_rng(2)

    def places(q):
        (R, p), (R_r, p_r) = robot.frame(q, "l_sole"), robot.frame(q, "r_sole")
        return R.T @ R_r, R.T @ (p_r - p)

    starts = rest + 0.5 * rng.uniform(
        model.lower - rest, model.upper - rest, (40, len(rest))
    )
    targets = stance.middles(starts)
    Q, found = stance.solve_all(starts, targets)
    assert found.sum() > 10
    for q, start, target in zip(Q[found], starts[found], targets[found], strict=True):
        for there, here in zip(places(rest), places(q), strict=True):
            np.testing.assert_allclose(here, there, atol=1e-9)
        R, p = robot.frame(q, "l_sole")
        np.testing.assert_allclose((R.T @ (robot.com(q) - p))[:2], target, atol=1e-9)
        alone, stands = stance.solve_all(start[None], target[None])
        assert stands.all()
        np.testing.assert_allclose(alone[0], q, atol=1e-9)
    np.testing.assert_allclose(stance.projections(Q[found]), targets[found], atol=1e-9)


def test_a_posture_that_fits_stays(hoap2, stance):
    q = hoap2[0].neutral
    Q, stands = stance.solve_all(q[None])
    assert stands.all()
    np.testing.assert_array_equal(Q[0], q)
    assert stance.margin(q) > 0.005


def test_what_is_out_of_reach_gives_none(hoap2, stance):
    assert not stance.solve_all(hoap2[0].neutral[None], np.array([[1.0, 0.0]]))[1].any()


@pytest.mark.parametrize("kept", [False, True])
def test_ball_feet_are_on_one_plane(kept):
    model, config = load_robot("scalf2")
    rest = config.nominal_posture(model)
    stance, rng = (
        FlatStance(Statics(model), config.feet, rest if kept else None),
        np.random,
    )
    starts = rest + rng.default_rng(3).normal(0.0, 0.15, (20, model.n_joints))
    targets = stance.middles(starts) + np.array([0.02, -0.01])
    Q, found = stance.solve_all(starts, targets)
    assert found.sum() > 10

    def balls(q):
        return np.array([link_pose(model, q, foot.frame)[1] for foot in config.feet])

    def distances(q):
        return np.linalg.norm(balls(q)[:, None] - balls(q), axis=2)

    np.testing.assert_allclose(stance.projections(Q[found]), targets[found], atol=1e-9)
    for q, up in zip(Q[found], stance.up_directions(Q[found]), strict=True):
        assert np.ptp(balls(q) @ up) < 1e-9
        assert up @ stance.up_directions(rest[None])[0] > 0.8
        if kept:
            np.testing.assert_allclose(distances(q), distances(rest), atol=1e-9)
    q, step = starts[0], 1e-6
    slope = stance.residuals(q[None], targets[:1])[1][0]
    assert len(slope) == (8 if kept else 3)
    for j in range(model.n_joints):
        e = step * np.eye(model.n_joints)[j]
        there = stance.residuals(np.array([q + e, q - e]), np.tile(targets[0], (2, 1)))[
            0
        ]
        np.testing.assert_allclose(
            slope[:, j], (there[0] - there[1]) / (2 * step), atol=1e-8
        )


def test_too_few_feet_are_refused(hoap2):
    statics = Statics(hoap2[0])
    point = Foot("l_sole", "left", np.zeros((0, 2)), 0.02, "", "l_sole", 1)
    with pytest.raises(
        IdentificationError, match="one foot or more, each with corners, or three"
    ):
        FlatStance(statics, [])
    with pytest.raises(
        IdentificationError, match="got l_sole, l_sole without corners: give the"
    ):
        FlatStance(statics, [point, point])
