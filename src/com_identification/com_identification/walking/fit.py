"""The most probable unknowns of a walk, and an honest covariance.

  min over z of  1/(2c) x(z)^T H x(z) + 1/2 |(z - z0) / s|^2,   H = X^T W X

W are Huber's weights by the scale of the residuals of base and of joint rows. Rows of one gait
share its errors of the model: c, the tempering, is the largest ratio of the scores' variance over
blocks to the information, in the directions that the data dominate; twice that where the recording
has too few blocks for scores of 10 s.
"""

from dataclasses import dataclass

import numpy as np

from com_identification.walking.rows import Rows
from com_identification.walking.unknowns import Unknowns
from com_model.arrays import Array, Flags

_HUBER = 2.5  # standard deviations
_FLOOR = 0.3  # of the scales
_STEPS, _REWEIGHTINGS = 20, 3
_SETTLED = 1e-3  # prior standard deviations
_DOMINATED = 10.0  # information over the prior's
_BLOCKS = (1, 2, 4)  # blocks of rows that make one of the scores, 5, 10, 20 s
_LEAST_BLOCKS = 4


@dataclass(frozen=True, eq=False)
class Fit:
    """What the rows say."""

    z: Array  # (Z,)
    covariance: Array  # (Z, Z)
    tempering: float  # c
    information: Array  # (K, P, P) H of each block
    dominated: int  # number of directions that the data dominate


def fit(rows: Rows, unknowns: Unknowns, start: Array | None = None) -> Fit:
    """Finds z; see the module."""
    z = unknowns.mean if start is None else start
    c = 1.0
    for _ in range(_REWEIGHTINGS):
        residual = rows.X @ unknowns.coefficients(z)
        H = _information(rows, _huber(residual, rows.base))
        z = descend(H.sum(axis=0), unknowns, z, c)
        found = _temperings(H, unknowns, z)
        c = max([1.0, *found]) * (2.0 if len(found) < 2 else 1.0)
    z = descend(H.sum(axis=0), unknowns, z, c)
    D = unknowns.jacobian(z)
    data = (D.T @ H.sum(axis=0) @ D) / c
    relative = np.outer(unknowns.std, unknowns.std) * data
    A = relative + np.eye(len(z))
    covariance = np.linalg.inv((A + A.T) / 2.0) * np.outer(unknowns.std, unknowns.std)
    dominated = int((np.linalg.eigvalsh(relative) > _DOMINATED).sum())
    return Fit(z, (covariance + covariance.T) / 2.0, c, H, dominated)


def _huber(residual: Array, base: Flags) -> Array:
    """Weights (R,), with a scale of base rows and one of joint rows."""
    weights = np.empty(len(residual))
    for own in (base, ~base):
        size = np.abs(residual[own])
        scale = max(_FLOOR, 1.4826 * float(np.median(size))) if own.any() else 1.0
        weights[own] = np.minimum(1.0, _HUBER * scale / np.maximum(size, 1e-12)) / scale**2
    return weights


def _information(rows: Rows, weights: Array) -> Array:
    """X^T W X of each block, (K, P, P)."""
    root = np.sqrt(weights)[:, None]
    edges = np.flatnonzero(np.diff(rows.block, prepend=-1, append=-1))
    blocks = np.empty((len(edges) - 1, rows.X.shape[1], rows.X.shape[1]))
    for block, a, b in zip(blocks, edges[:-1], edges[1:], strict=True):
        X = rows.X[a:b] * root[a:b]
        np.matmul(X.T, X, out=block)
    return blocks


def descend(H: Array, unknowns: Unknowns, z: Array, c: float) -> Array:
    """Gauss-Newton steps on the posterior, halved where they do not descend."""
    s, mean = unknowns.std, unknowns.mean

    def cost(z: Array) -> float:
        x = unknowns.coefficients(z)
        return float(x @ H @ x) / c + float((((z - mean) / s) ** 2).sum())

    now = cost(z)
    for _ in range(_STEPS):
        D, x = unknowns.jacobian(z) * s, unknowns.coefficients(z)
        gradient = D.T @ (H @ x) / c + (z - mean) / s
        step = -s * np.linalg.solve(D.T @ H @ D / c + np.eye(len(z)), gradient)
        factor = 1.0
        while (there := cost(z + factor * step)) > now and factor > 1e-3:
            factor /= 2.0
        if there > now:
            break
        z, now = z + factor * step, there
        if np.abs(step / s).max() < _SETTLED:
            break
    return z


def _temperings(H: Array, unknowns: Unknowns, z: Array) -> list[float]:
    """Variance of the scores over the information, by number of blocks in a score."""
    D, x = unknowns.jacobian(z) * unknowns.std, unknowns.coefficients(z)
    values, axes = np.linalg.eigh(D.T @ H.sum(axis=0) @ D)
    strong = values > _DOMINATED
    scores = (H @ x) @ D @ axes[:, strong]
    result = []
    for size in _BLOCKS:
        count = len(scores) // size
        if count < _LEAST_BLOCKS or not strong.any():
            continue
        sums = np.add.reduceat(scores[: count * size], size * np.arange(count), axis=0)
        sums -= sums.mean(axis=0)
        ratio = (sums**2).sum(axis=0) / values[strong] * count / (count - 1)
        result.append(float(ratio.mean()))
    return result
