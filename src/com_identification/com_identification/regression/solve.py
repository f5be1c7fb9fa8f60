"""Maximum a posteriori by weighted least squares: prior, bounds, outliers.

The parameters are whitened, x = (theta - prior mean) / prior standard deviation, so that the prior
is |x|^2:

  minimise  |x|^2 + sum over the postures p of rho(|W_p (r_p - A_p x)|^2),   low <= x <= high

with W_p^T W_p the inverse covariance of the posture's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import lsq_linear
from scipy.stats import chi2

from com_identification.exceptions import IdentificationError
from com_model.arrays import Array

_CONFIDENT = 0.99  # fraction of inliers that have full weight
_NO_NOISE = "the noise of some readings is 0: give every sensor a standard deviation above 0"
_ROUNDS = 30  # of reweighting
_CONVERGED = 1e-4  # change of a weight


@dataclass(frozen=True, eq=False)
class Block:
    """The whitened rows of one posture: right = matrix @ x + noise of unit covariance."""

    matrix: Array
    right: Array


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of solve().

    Attributes:
        x: (U,) in prior standard deviations from the prior mean.
        covariance: (U, U) of x without regard to the bounds.
        weights: (P,) of the postures, 1 where one fits, 0 where it is left out.
        distances: (P,) square root of each posture's weighted squared residual per row.
        variance_factor: Weighted squared residual over its degrees of freedom: 1 where the noise is
            as large as specified; NaN without degrees of freedom.
        at_bound: (U,) True where x is at a bound.
    """

    x: Array
    covariance: Array
    weights: Array
    distances: Array
    variance_factor: float
    at_bound: NDArray[np.bool_]


def whiten(matrix: Array, right: Array, covariance: Array) -> Block:
    """Divides rows by the square root of their covariance.

    Raises:
        IdentificationError: The covariance is not positive definite: some noise is 0.
    """
    scale = np.sqrt(np.diag(covariance))
    if not (scale > 0.0).all():
        raise IdentificationError(_NO_NOISE)
    try:
        factor = cholesky(covariance / np.outer(scale, scale), lower=True)
    except np.linalg.LinAlgError as error:
        raise IdentificationError(_NO_NOISE) from error
    root = np.linalg.inv(factor) / scale
    return Block(root @ matrix, root @ right)


def solve(blocks: Sequence[Block], low: Array, high: Array, loss: str = "tukey") -> Solution:
    """Finds the most probable x; see the module.

    Args:
        blocks: One for each posture.
        low: (U,) bounds; -inf for none.
        high: (U,).
        loss: "none": all postures have full weight. "huber": outliers have less.
            "tukey": gross outliers have none (started from "huber").
    """
    stages: dict[str, tuple[Callable[[Array], Array], ...]]
    stages = {"none": (), "huber": (_huber,), "tukey": (_huber, _tukey)}
    weights = np.ones(len(blocks))
    x = _bounded(blocks, weights, low, high)
    for weight_of in stages[loss]:
        for _ in range(_ROUNDS):
            before = weights
            weights = weight_of(_excess(blocks, x))
            x = _bounded(blocks, weights, low, high)
            if np.abs(weights - before).max(initial=0.0) < _CONVERGED:
                break
    return _solution(blocks, weights, x, low, high)


def scale_noise(covariance: Array, factor: float) -> Array:
    """Returns the covariance (U, U) of x for a noise whose variance is larger by a factor.

    The information is C^-1 - 1 of the data and 1 of the prior: with C = V diag(c) V^T,

      (1 + (C^-1 - 1) / factor)^-1 = V diag(factor c / (1 - c + factor c)) V^T
    """
    values, vectors = np.linalg.eigh(covariance)
    values = np.clip(values, 0.0, 1.0)
    return np.asarray(vectors * (factor * values / (1.0 - values + factor * values)) @ vectors.T)


def _squared_residual(block: Block, x: Array) -> tuple[float, int]:
    residual = block.right - block.matrix @ x
    return float(residual @ residual), len(residual)


@cache
def _limit(fraction: float, rows: int) -> float:
    """Squared residual that this fraction of inliers with so many rows stays below."""
    return float(chi2.ppf(fraction, rows))


def _excess(blocks: Sequence[Block], x: Array) -> Array:
    """Squared residuals over what 99 of 100 inliers stay below, (P,).

    Where the median residual is larger than the noise explains, the limit grows with it: a model
    that fits nowhere is no reason to reject all postures.
    """
    residuals = [_squared_residual(block, x) for block in blocks]
    scale = (
        float(np.median([chi / _limit(0.5, rows) for chi, rows in residuals])) if residuals else 1.0
    )
    return np.array([chi / _limit(_CONFIDENT, rows) for chi, rows in residuals]) / max(1.0, scale)


def _huber(excess: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(np.maximum(excess, 1.0)))


def _tukey(excess: Array) -> Array:
    """1 within the limit, falling to 0 at nine times its square."""
    return np.clip(1.0 - np.maximum(excess - 1.0, 0.0) / 8.0, 0.0, 1.0) ** 2


def _normal(blocks: Sequence[Block], weights: Array, count: int) -> tuple[Array, Array]:
    information, right = np.eye(count), np.zeros(count)
    for block, weight in zip(blocks, weights, strict=True):
        information += weight * (block.matrix.T @ block.matrix)
        right += weight * (block.matrix.T @ block.right)
    return information, right


def _bounded(blocks: Sequence[Block], weights: Array, low: Array, high: Array) -> Array:
    information, right = _normal(blocks, weights, len(low))
    x = np.asarray(cho_solve(cho_factor(information), right))
    if ((x >= low) & (x <= high)).all():
        return x
    root = cholesky(information)
    target = solve_triangular(root, right, trans="T")
    return np.asarray(lsq_linear(root, target, (low, high), method="bvls").x)


def _solution(
    blocks: Sequence[Block], weights: Array, x: Array, low: Array, high: Array
) -> Solution:
    information, _ = _normal(blocks, weights, len(low))
    covariance = np.linalg.inv(information)
    residuals = [_squared_residual(block, x) for block in blocks]
    squared = sum(w * chi for w, (chi, _) in zip(weights, residuals, strict=True))
    rows = sum(w * count for w, (_, count) in zip(weights, residuals, strict=True))
    freedom = rows - (len(low) - float(np.trace(covariance)))
    return Solution(
        x=x,
        covariance=(covariance + covariance.T) / 2.0,
        weights=weights,
        distances=np.sqrt([chi / count for chi, count in residuals]),
        variance_factor=squared / freedom if freedom > 0.5 else float("nan"),
        at_bound=(x <= low) | (x >= high),
    )
