"""The solver: against closed forms, with bounds and with postures that do not fit."""

import numpy as np
import pytest
from scipy.optimize import minimize

from com_identification.regression.least_squares import Block, scale_noise, solve, whiten

RNG = np.random.default_rng(0)
FREE = np.full(4, -np.inf), np.full(4, np.inf)


def problem(postures=30, rows=3, noise=1.0):
    truth = RNG.normal(size=4)
    matrices = RNG.normal(size=(postures, rows, 4))
    right = matrices @ truth + noise * RNG.normal(size=(postures, rows))
    return truth, [Block(a, b) for a, b in zip(matrices, right, strict=True)]


def test_is_the_posterior_of_a_gaussian():
    _, blocks = problem()
    A, b = np.vstack([x.matrix for x in blocks]), np.concatenate([x.right for x in blocks])
    found = solve(blocks, *FREE, loss="none")
    covariance = np.linalg.inv(A.T @ A + np.eye(4))
    np.testing.assert_allclose(found.x, covariance @ A.T @ b, atol=1e-12)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-12)
    assert found.variance_factor == pytest.approx(1.0, abs=0.35)
    assert not found.at_bound.any()


def test_without_data_it_is_the_prior():
    found = solve([], *FREE)
    np.testing.assert_array_equal(found.x, np.zeros(4))
    np.testing.assert_allclose(found.covariance, np.eye(4))
    assert np.isnan(found.variance_factor)


def test_bounds_give_the_best_point_inside():
    _, blocks = problem()
    free = solve(blocks, *FREE, loss="none").x
    low, high = free - 0.5, free - np.array([0.2, -1.0, 0.1, -1.0])
    found = solve(blocks, low, high, loss="none")

    def cost(x):
        return x @ x + sum(np.sum((c.right - c.matrix @ x) ** 2) for c in blocks)

    best = minimize(cost, (low + high) / 2, bounds=list(zip(low, high, strict=True)), tol=1e-12)
    np.testing.assert_allclose(found.x, best.x, atol=1e-4)
    assert found.at_bound.tolist() == [True, False, True, False]


@pytest.mark.parametrize("loss", ["huber", "tukey"])
def test_gross_errors_lose_their_weight(loss):
    truth, blocks = problem()
    wrong = [Block(x.matrix, x.right + (40.0 if i < 4 else 0.0)) for i, x in enumerate(blocks)]
    plain, robust = (solve(wrong, *FREE, loss=name) for name in ("none", loss))
    assert (robust.weights[:4] < 0.2).all()
    assert np.mean(robust.weights[4:]) > 0.95
    assert np.linalg.norm(robust.x - truth) < 0.3 * np.linalg.norm(plain.x - truth)


def test_a_model_that_fits_nowhere_leaves_no_posture_out():
    """Noise said to be a hundredth of what it is: all err, so none is an outlier."""
    _, blocks = problem(noise=100.0)
    found = solve(blocks, *FREE, loss="tukey")
    assert found.variance_factor > 1e3
    assert np.mean(found.weights) > 0.9


def test_whitening_gives_unit_noise():
    A, b = RNG.normal(size=(3, 4)), RNG.normal(size=3)
    L = np.array([[1.0, 0, 0], [50.0, 2.0, 0], [0.1, 0.3, 1e-3]])
    block = whiten(A, b, L @ L.T)
    inverse = np.linalg.inv(L @ L.T)
    np.testing.assert_allclose(block.matrix.T @ block.matrix, A.T @ inverse @ A, rtol=1e-6)
    np.testing.assert_allclose(block.right @ block.right, b @ inverse @ b, rtol=1e-6)


def test_larger_noise_makes_worse_what_the_data_determine_and_nothing_else():
    _, blocks = problem()
    half = [Block(block.matrix * [1.0, 1.0, 1.0, 0.0], block.right) for block in blocks]
    scaled = [Block(block.matrix / 3.0, block.right / 3.0) for block in half]
    covariance = scale_noise(solve(half, *FREE, loss="none").covariance, 9.0)
    expected = solve(scaled, *FREE, loss="none").covariance
    np.testing.assert_allclose(covariance, expected, rtol=1e-9, atol=1e-12)
    assert covariance[3, 3] == pytest.approx(1.0)  # the prior's
