"""The most probable unknowns of a walk, and a realistic covariance.

  min over z of  1/(2c) x(z)^T H x(z) + 1/2 |(z - z0) / s|^2 - 1/c sum_j k_j ln g_j,   H = X^T W
  X

The errors are those of the reading of joint j, and g_j multiplies it: least squares alone would
choose g_j and all else of that joint too small, the more the less its torque is above its noise.
The density of its readings, with g_j to the power of k_j, corrects exactly that: k_j is the sum
of the squared residuals of its rows, and a part of that of the base's, by the squares of the
torques in them.

W are Huber's weights by the scale of the residuals of the base's rows and of each joint's: drives
differ, and large residuals of one must not reduce the weight of another. Rows of one gait share
its errors of the model: c, the tempering, is the largest ratio of the scores' variance over
blocks to the information, in the directions that the data dominate; twice that where the
recording has too few blocks for scores of 10 s.
"""

from dataclasses import dataclass

import numpy as np

from com_identification.walking.unknowns import FRICTIONS, DesignMatrix, Unknowns
from com_model.arrays import Array, Flags
from com_model.bodies import Indices

_LEAST = 0.01  # of the gains
_VISIBLE = 0.02, 0.05  # of the noise of the base's rows, of a joint's own
_DOMINATED = 10.0  # information over the prior's
_BLOCKS = (1, 2, 4)  # blocks of rows that make one of the scores, 5, 10, 20 s


@dataclass(frozen=True, eq=False)
class WalkFit:
    """Estimate and covariance of the unknowns of a walk.

    Attributes:
        z: (Z,) see Unknowns.
        covariance: (Z, Z).
        tempering: c.
        information: (K, P, P) H of each block.
        dominated: number of directions that the data dominate.
    """

    z: Array
    covariance: Array
    tempering: float
    information: Array
    dominated: int


def fit(rows: DesignMatrix, unknowns: Unknowns, start: Array | None = None) -> WalkFit:
    """Finds the most probable unknowns and their covariance.

    Args:
        rows: whitened rows of all windows.
        unknowns: with their priors.
        start: (Z,) where the search begins; None: the prior's mean.
    """
    z = unknowns.mean if start is None else start
    c, n, base = 1.0, unknowns.model.n_joints, rows.base
    for _ in range(3):
        residual = rows.X @ unknowns.coefficients(z)
        weights = huber_weights(residual, rows.joint)
        H, squares = block_information(rows, weights), weights * residual**2
        torques = (weights * base) @ rows.X[:, unknowns.gain_columns] ** 2
        k = squares[base].sum() * torques / torques.sum()
        k += np.bincount(rows.joint[~base], squares[~base], n)
        z = descend(H.sum(axis=0), unknowns, z, c, k)
        found = _temperings(H, unknowns, z)
        c = max([1.0, *found]) * (2.0 if len(found) < 2 else 1.0)
    z = descend(H.sum(axis=0), unknowns, z, c, k)
    D = unknowns.jacobian(z)
    data = (D.T @ H.sum(axis=0) @ D) / c
    relative = np.outer(unknowns.std, unknowns.std) * data
    A = relative + np.eye(len(z))
    covariance = np.linalg.inv((A + A.T) / 2.0) * np.outer(unknowns.std, unknowns.std)
    dominated = int((np.linalg.eigvalsh(relative) > _DOMINATED).sum())
    return WalkFit(z, (covariance + covariance.T) / 2.0, c, H, dominated)


def undetermined(rows: DesignMatrix, unknowns: Unknowns) -> Flags:
    """Returns the armatures and viscous frictions that rows do not determine, as a mask (Z,).

    Those of joints that hardly move: one prior standard deviation changes neither the base's rows
    nor the joint's own by _VISIBLE of their noise, rms; errors of the model change them by more.

    Args:
        rows: whitened rows.
        unknowns: with their priors.
    """
    result, n = np.zeros(len(unknowns.std), dtype=np.bool_), unknowns.model.n_joints
    base, first = rows.base, unknowns.gain_columns.start - len(FRICTIONS) * n
    count = np.maximum(np.bincount(rows.joint[~base], minlength=n), 1)
    for kind, at in (("armature", first), ("viscous", first + 2 * n)):
        squares, own = rows.X[:, at : at + n] ** 2, unknowns.joint_slice(kind)
        parts = squares[base].mean(axis=0), squares[~base].sum(axis=0) / count
        seen = [
            np.sqrt(part) / limit for part, limit in zip(parts, _VISIBLE, strict=True)
        ]
        result[own] = unknowns.std[own] * np.maximum(*seen) < 1.0
    return result


def huber_weights(residual: Array, joint: Indices, floor: float = 0.3) -> Array:
    """Returns weights, with a scale of base rows and one of the rows of each joint.

    Args:
        residual: (R,) whitened.
        joint: (R,) group of each row.
        floor: least scale.
    """
    weights = np.empty(len(residual))
    for own in (joint == j for j in np.unique(joint)):
        size = np.abs(residual[own])
        scale = max(floor, 1.4826 * float(np.median(size)))
        # Huber's threshold: 2.5 standard deviations
        weights[own] = np.minimum(1.0, 2.5 * scale / np.maximum(size, 1e-12)) / scale**2
    return weights


def block_information(rows: DesignMatrix, weights: Array) -> Array:
    """Returns X^T W X of each block, (K, P, P).

    Args:
        rows: whitened.
        weights: (R,).
    """
    root = np.sqrt(weights)[:, None]
    edges = np.flatnonzero(np.diff(rows.block, prepend=-1, append=-1))
    blocks = np.empty((len(edges) - 1, rows.X.shape[1], rows.X.shape[1]))
    for block, a, b in zip(blocks, edges[:-1], edges[1:], strict=True):
        X = rows.X[a:b] * root[a:b]
        np.matmul(X.T, X, out=block)
    return blocks


def descend(
    H: Array, unknowns: Unknowns, z: Array, c: float, k: Array | None = None
) -> Array:
    """Minimises the negative log posterior by Gauss-Newton steps, halved until they descend.

    Args:
        H: (P, P) information of the rows.
        unknowns: with their priors.
        z: (Z,) where the search begins.
        c: tempering.
        k: (n,) powers of the gains; None: 0.

    Returns:
        z (Z,).
    """
    s, mean, own = unknowns.std, unknowns.mean, unknowns.joint_slice("gain")
    pull = np.zeros(unknowns.model.n_joints) if k is None else k / c

    def cost(z: Array) -> float:
        x = unknowns.coefficients(z)
        logs = pull @ np.log(np.maximum(x[unknowns.gain_columns], _LEAST))
        return float(x @ H @ x / c + (((z - mean) / s) ** 2).sum() - 2.0 * logs)

    now = cost(z)
    for _ in range(20):
        D, x = unknowns.jacobian(z) * s, unknowns.coefficients(z)
        gradient = D.T @ (H @ x) / c + (z - mean) / s
        curvature = D.T @ H @ D / c + np.eye(len(z))
        G = D[unknowns.gain_columns, own] / np.maximum(
            x[unknowns.gain_columns, None], _LEAST
        )
        gradient[own] -= G.T @ pull
        curvature[own, own] += G.T @ (pull[:, None] * G)
        step = -s * np.linalg.solve(curvature, gradient)
        factor = 1.0
        while (there := cost(z + factor * step)) > now and factor > 1e-3:
            factor /= 2.0
        if there > now:
            break
        z, now = z + factor * step, there
        # prior standard deviations
        if np.abs(step / s).max() < 1e-3:
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
        # four scores or more, each of `size` blocks
        if count < 4 or not strong.any():
            continue
        sums = np.add.reduceat(scores[: count * size], size * np.arange(count), axis=0)
        sums -= sums.mean(axis=0)
        ratio = (sums**2).sum(axis=0) / values[strong] * count / (count - 1)
        result.append(float(ratio.mean()))
    return result
