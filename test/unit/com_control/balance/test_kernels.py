"""Soles against the plain kinematics, their Jacobians against differences, the bounded minimum."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.spatial.transform import Rotation

from com_control.balance import kernels
from com_control.balance.soles import Soles
from com_control.exceptions import BalanceError
from com_model import link_pose

pytestmark = pytest.mark.slow


def test_soles_and_their_jacobians(model, config, posture):
    soles = Soles(model, config.feet)
    q = posture + np.random.default_rng(0).uniform(-0.1, 0.1, model.n_joints)
    poses = soles.poses(q)
    step = 1e-6
    for i, foot in enumerate(config.feet):
        R, p = link_pose(model, q, foot.frame)
        np.testing.assert_allclose(poses.R[i], R, atol=1e-12)
        np.testing.assert_allclose(poses.p[i], p, atol=1e-12)
        numeric = np.empty((6, model.n_joints))
        for j in range(model.n_joints):
            ends = []
            for sign in (-1.0, 1.0):
                moved = q.copy()
                moved[j] += sign * step
                ends.append(link_pose(model, moved, foot.frame))
            numeric[:3, j] = (ends[1][1] - ends[0][1]) / (2.0 * step)
            turn = Rotation.from_matrix(ends[1][0] @ ends[0][0].T).as_rotvec()
            numeric[3:, j] = turn / (2.0 * step)
        np.testing.assert_allclose(poses.jacobian[i], numeric, atol=1e-8)


def test_shares_go_to_the_sole_below_the_com(model, config, posture):
    soles = Soles(model, config.feet)
    poses = soles.poses(posture)
    up = poses.R[0, :, 2]
    middle = poses.p.mean(axis=0) + 0.25 * up
    np.testing.assert_allclose(soles.weights(poses, middle, up), 0.5, atol=1e-9)
    left, right = soles.weights(poses, poses.p[0] + 0.25 * up, up)
    assert left > 0.98
    assert left + right == pytest.approx(1.0)


def test_feet_must_be_there_and_move(model, config):
    with pytest.raises(BalanceError, match=r"no feet: name them .* feet\.<frame>"):
        Soles(model, [])
    fixed = type(config.feet[0])(**{**vars(config.feet[0]), "frame": model.root_link})
    with pytest.raises(BalanceError, match="is fixed to the root 'base_link'"):
        Soles(model, [fixed])


def problem(rng, n=12, rows=15):
    A, b = rng.normal(size=(rows, n)), 3.0 * rng.normal(size=rows)
    A[0] *= 100.0
    bounds = np.sort(rng.uniform(-0.5, 0.5, (2, n)), axis=0)
    return A, b, bounds[0], bounds[1]


@pytest.mark.parametrize("seed", range(30))
def test_bounded_minimum_is_that_of_scipy(seed, monkeypatch):
    A, b, lower, upper = problem(np.random.default_rng(seed))
    x = np.empty(len(lower))
    assert kernels.bounded_minimum(A.T @ A, -A.T @ b, lower, upper, x) > 0
    expected = lsq_linear(A, b, (lower, upper), method="bvls", tol=1e-14).x
    np.testing.assert_allclose(x, expected, atol=1e-7)
    assert ((lower <= x) & (x <= upper)).all()
    plain = np.empty(len(lower))
    monkeypatch.setattr(
        kernels, "_set_free", kernels._set_free.py_func
    )  # alone it takes seconds
    kernels.bounded_minimum.py_func(A.T @ A, -A.T @ b, lower, upper, plain)
    np.testing.assert_allclose(x, plain, atol=1e-12)


def test_bounds_that_leave_nothing():
    A, b, lower, upper = problem(np.random.default_rng(1))
    lower[3] = upper[3]
    x = np.empty(len(lower))
    assert kernels.bounded_minimum(A.T @ A, -A.T @ b, lower, upper, x) > 0
    assert x[3] == lower[3]
    assert kernels.bounded_minimum(A.T @ A, -A.T @ b, lower, lower, x) == 1
    np.testing.assert_array_equal(x, lower)
