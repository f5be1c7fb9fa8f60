"""Humanoids of any build: feet and CoM at once, checked by Pinocchio."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_control.walking import newton_ik as kernels
from com_control.walking.com_ik import ComIk
from com_control.walking.pelvis_map import LIMITED, STALLED
from com_model import ComModelError, ShapeError

pytestmark = pytest.mark.slow

ROBOTS = ["itu_biped", "hoap2", "talos", "romeo", "icub", "offset"]


@pytest.mark.parametrize("name", ROBOTS)
def test_feet_and_com_are_met(humanoid, shake, name):
    biped, oracle = humanoid(name)
    ik, rng = ComIk(biped), np.random.default_rng(30)
    assert ik.closed == (name not in ("icub", "offset"))
    for _ in range(15):
        q = shake(biped, rng, 0.25)
        arms = [
            i
            for i in range(len(q))
            if i not in np.concatenate([x.joints for x in biped.legs])
        ]
        q[arms] = np.clip(
            q[arms] + rng.uniform(-0.2, 0.2, len(arms)),
            biped.model.lower[arms],
            biped.model.upper[arms],
        )
        R, p = Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3)
        feet, com = oracle.place(q, R, p)
        ik.set_upper_body(q)
        found = ik.solve(com, feet, R)
        assert found.reached, found.reason
        assert found.reason == ""
        root = biped.root_in_pelvis(found.q)
        pelvis_R = found.R_world_root @ root[0].T
        pelvis_p = found.p_world_root - pelvis_R @ root[1]
        np.testing.assert_allclose(pelvis_R, R, atol=1e-12)
        feet_again, com_again = oracle.place(found.q, pelvis_R, pelvis_p)
        np.testing.assert_allclose(com_again, com, atol=1.01e-9)
        np.testing.assert_allclose(feet_again, feet, atol=2e-9)
        np.testing.assert_array_equal(found.q[arms], q[arms])
        assert (found.q >= biped.model.lower - 1e-9).all()
        assert (found.q <= biped.model.upper + 1e-9).all()


@pytest.mark.parametrize("name", ["itu_biped", "offset"])
def test_out_of_reach_is_reported_with_the_nearest(humanoid, name):
    biped, oracle = humanoid(name)
    ik = ComIk(biped)
    feet, com = oracle.place(biped.posture, np.eye(3), np.zeros(3))
    target = com + np.array([0.0, 0.0, 0.2])
    found = ik.solve(target, feet)
    assert not found.reached
    assert np.isnan(found.q).all()
    assert np.isnan(found.p_world_root).all()
    assert "the nearest CoM that can be reached is " in found.reason
    assert 0.01 < np.linalg.norm(found.nearest - target) < 0.2
    inside = found.nearest + 0.02 * (com - found.nearest)
    assert ik.solve(inside, feet).reached


def test_feet_that_no_pose_allows(humanoid):
    biped, oracle = humanoid("offset")
    feet, com = oracle.place(biped.posture, np.eye(3), np.zeros(3))
    feet[0, 0, 3] += 3.0
    found = ComIk(biped).solve(com, feet)
    assert not found.reached
    assert np.isnan(found.nearest).all()
    assert "feet and CoM come no nearer than" in found.reason
    assert found.reason.endswith("no CoM can be reached with these feet")


def test_nan_is_never_solved(humanoid):
    for name in ("itu_biped", "offset"):
        biped, oracle = humanoid(name)
        ik = ComIk(biped)
        feet, com = oracle.place(biped.posture, np.eye(3), np.zeros(3))
        com[2] -= 0.01
        first = ik.step(com, feet)
        assert first.outcome == 0
        assert ik.step(np.array([0.0, np.nan, 0.4]), feet).outcome != 0
        wrong = feet.copy()
        wrong[1, 0, 3] = np.nan
        assert ik.step(com, wrong).outcome != 0
        again = ik.step(com, feet)
        assert again.outcome == 0
        np.testing.assert_allclose(again.q, first.q, atol=1e-6)


def test_bad_arguments(humanoid):
    ik = ComIk(humanoid("offset")[0])
    feet = np.zeros((2, 3, 4))
    with pytest.raises(ComModelError, match=r"feet\[0\] \(left\) is not a rotation"):
        ik.solve(np.zeros(3), feet)
    with pytest.raises(ShapeError, match=r"com: expected shape \(3,\)"):
        ik.solve(np.zeros(2), feet)
    assert ik.solve(np.full(3, np.nan), feet).reason == "the target is not finite"


@pytest.mark.parametrize("name", ["itu_biped", "icub", "offset"])
def test_steps_follow_a_path(humanoid, name):
    biped, oracle = humanoid(name)
    ik = ComIk(biped)
    feet, com = oracle.place(biped.posture, np.eye(3), np.zeros(3))
    down = np.array([0.0, 0.0, -0.02])
    for s in np.linspace(0.0, 1.0, 20):
        target = com + down + 0.01 * np.array([np.sin(6 * s), np.cos(6 * s), 0.0])
        point = ik.step(target, feet)
        assert point.outcome == 0
        assert point.error <= 1e-9
        q = biped.posture.copy()
        q[np.concatenate([leg.joints for leg in biped.legs])] = point.q
        feet_again, com_again = oracle.place(q, np.eye(3), point.pelvis)
        np.testing.assert_allclose(com_again, target, atol=2e-9)
        np.testing.assert_allclose(feet_again, feet, atol=2e-9)
    assert ik.step(com + np.array([0.0, 0.0, 1.0]), feet).outcome != 0
    assert ik.step(target, feet).outcome == 0


def test_com_jacobian_is_the_derivative(humanoid):
    biped, _ = humanoid("icub")
    ik, rng, h = ComIk(biped), np.random.default_rng(31), 1e-6
    feet = np.zeros((2, 3, 4))
    feet[:, :, :3] = np.eye(3)
    target = kernels.Target(np.zeros(3), np.eye(3), feet)
    state = np.concatenate([np.zeros(3), *(leg.nominal for leg in biped.legs)])
    state[3:] += rng.uniform(-0.2, 0.2, 12)

    def evaluate(state):
        out = kernels.make_linearization()
        kernels.linearize(ik._robot[0], target, state, out)
        return out.K, out.errors[12:]

    K, _ = evaluate(state)
    for i in range(12):
        step = np.zeros(15)
        step[3 + i] = h
        rate = -(evaluate(state + step)[1] - evaluate(state - step)[1]) / (2 * h)
        np.testing.assert_allclose(K[i // 6, :, i % 6], rate, atol=1e-9)


@pytest.mark.parametrize("name", ["talos", "icub", "offset"])
def test_a_path_is_solved_as_its_points_are(humanoid, name):
    biped, oracle = humanoid(name)
    feet, com = oracle.place(biped.posture, np.eye(3), np.zeros(3))
    turns = np.linspace(0.0, 2.0 * np.pi, 20)
    path = (
        com
        - [0.0, 0.0, 0.005]
        + 0.01 * np.column_stack((np.sin(turns), np.cos(turns), 0 * turns))
    )
    ik, many = ComIk(biped), len(turns)
    found = ik.solve_path(
        path, np.tile(feet, (many, 1, 1, 1)), np.tile(np.eye(3), (many, 1, 1))
    )
    assert not found.outcomes.any()
    q = ik.full(found.q)
    for i in range(many):
        feet_again, com_again = oracle.place(q[i], np.eye(3), found.pelvis[i])
        np.testing.assert_allclose(com_again, path[i], atol=1.01e-9)
        np.testing.assert_allclose(feet_again, feet, atol=1e-8)


def test_a_step_is_damped_least_squares():
    rng = np.random.default_rng(6)
    for damping in (1e-14, 1e-3):
        J, X = rng.normal(size=(6, 6)), rng.normal(size=(6, 4))
        expected = np.linalg.solve(J.T @ J + damping * np.eye(6), J.T @ X)
        kernels.solve_damped(J, damping, X)
        np.testing.assert_allclose(X, expected, rtol=1e-8)
        A, c, x = rng.normal(size=(3, 3)), rng.normal(size=3), np.empty(3)
        kernels.solve_three(A, c, x)
        np.testing.assert_allclose(A @ x, c, atol=1e-12)
    kernels.solve_damped(np.zeros((6, 6)), 0.0, X)
    kernels.solve_three(np.zeros((3, 3)), c, x)  # a leg that cannot move: no exception


def test_a_step_beyond_the_limits_reports_the_leg(humanoid):
    biped, oracle = humanoid("offset")
    ik = ComIk(biped)
    feet, com = oracle.place(biped.posture, np.eye(3), np.zeros(3))
    assert ik.step(com, feet).outcome == 0
    turned = feet.copy()
    turned[0, :, :3] = Rotation.from_euler("z", 1.0).as_matrix()  # the limit is 0.8 rad
    assert ik.step(com, turned).outcome & LIMITED
    turned = feet.copy()
    turned[1, :, :3] = Rotation.from_euler("z", -1.0).as_matrix()
    assert ik.step(com, turned).outcome & (LIMITED << 4)
    assert ik.step(com + 0.5, feet).outcome & STALLED
    again = ik.step(com, feet)
    assert again.outcome == 0
    feet_again, com_again = oracle.place(ik.full(again.q), np.eye(3), again.pelvis)
    np.testing.assert_allclose(com_again, com, atol=1.01e-9)
    np.testing.assert_allclose(feet_again, feet, atol=1e-8)


def test_a_smooth_path_is_extrapolated_and_a_jump_is_not():
    last, before = np.full(15, 0.3), np.full(15, 0.28)
    states = np.array([last, before])
    kernels.predict_state(states)
    np.testing.assert_allclose(states, [np.full(15, 0.32), last])
    before[4] = 0.0
    states = np.array([last, before])
    kernels.predict_state(states)
    np.testing.assert_array_equal(states, [last, last])
