"""The most probable unknowns of a walk, a realistic covariance, and the tests of both.

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

The tests are at the end: residuals held out, drives near what is usual, parts that agree, and a
load on the trunk that does not change during the recordings.
"""

from dataclasses import dataclass, replace

import numpy as np

from com_identification.exceptions import WalkError
from com_identification.walking.kernels import IMU
from com_identification.walking.log import GOOD_RATE
from com_identification.walking.unknowns import (
    FRICTIONS,
    KINDS,
    DesignMatrix,
    Scale,
    Unknowns,
)
from com_model.arrays import Array, Flags, Indices
from com_model.text import listing

_LEAST = 0.01  # of the gains


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
    c = 1.0
    for _ in range(3):
        residual = rows.X @ unknowns.coefficients(z)
        weights = huber_weights(residual, rows.joint)
        H = block_information(rows, weights)
        k = gain_powers(rows, unknowns, weights * residual**2, weights, rows.base)
        z = descend(H.sum(axis=0), unknowns, z, c, k)
        D, x = unknowns.jacobian(z) * unknowns.std, unknowns.coefficients(z)
        found = temperings(H, D, x)
        c = max([1.0, *found]) * (2.0 if len(found) < 2 else 1.0)
    z = descend(H.sum(axis=0), unknowns, z, c, k)
    # directions with ten times the prior's information are dominated by the data
    return posterior(unknowns, z, H, c, 10.0)


def gain_powers(
    rows: DesignMatrix, unknowns: Unknowns, squares: Array, weights: Array, base: Flags
) -> Array:
    """Powers (n,) of the gains in the density of the readings; see the top of this file.

    Args:
        rows: whitened.
        unknowns: with their priors.
        squares: (R,) weighted squares of the residuals.
        weights: (R,) of the rows.
        base: (R,) rows of the base, in which all torques are.
    """
    own = rows.joint >= 0
    n = unknowns.model.n_joints
    k: Array = np.bincount(rows.joint[own], squares[own], n).astype(np.float64)
    torques: Array = (weights * base) @ rows.X[:, unknowns.gain_columns] ** 2
    total = float(torques.sum())
    if total > 0.0:
        k = k + squares[base].sum() * torques / total
    return k


def posterior(
    unknowns: Unknowns, z: Array, information: Array, c: float, dominating: float
) -> WalkFit:
    """Covariance of the most probable unknowns, by the information of the rows and the priors.

    Args:
        unknowns: with their priors.
        z: (Z,) the most probable ones.
        information: (K, P, P) H of each block.
        c: tempering.
        dominating: information over the prior's, from which a direction is that of the data.
    """
    D, scale = unknowns.jacobian(z), np.outer(unknowns.std, unknowns.std)
    relative = scale * ((D.T @ information.sum(axis=0) @ D) / c)
    A = relative + np.eye(len(z))
    covariance = np.linalg.inv((A + A.T) / 2.0) * scale
    dominated = int((np.linalg.eigvalsh(relative) > dominating).sum())
    return WalkFit(z, (covariance + covariance.T) / 2.0, c, information, dominated)


def undetermined(rows: DesignMatrix, unknowns: Unknowns) -> Flags:
    """Returns the armatures and viscous frictions that rows do not determine, as a mask (Z,).

    Those of joints that hardly move: one prior standard deviation changes neither the base's rows
    nor the joint's own by 2 and 5 % of their noise, rms; errors of the model change them by more.

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
            np.sqrt(part) / limit
            for part, limit in zip(parts, (0.02, 0.05), strict=True)
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


def temperings(H: Array, D: Array, x: Array) -> list[float]:
    """Returns the variance of the scores over the information, by number of blocks in a score.

    Args:
        H: (K, P, P) information of each block.
        D: (P, Z) derivatives of the coefficients, whose prior has a standard deviation of 1.
        x: (P,) coefficients.
    """
    values, axes = np.linalg.eigh(D.T @ H.sum(axis=0) @ D)
    strong = values > 10.0
    scores = (H @ x) @ D @ axes[:, strong]
    result = []
    for size in (1, 2, 4):  # blocks of rows that make a score
        count = len(scores) // size
        # four scores or more, each of `size` blocks
        if count < 4 or not strong.any():
            continue
        sums = np.add.reduceat(scores[: count * size], size * np.arange(count), axis=0)
        sums -= sums.mean(axis=0)
        ratio = (sums**2).sum(axis=0) / values[strong] * count / (count - 1)
        result.append(float(ratio.mean()))
    return result


URDF_MASS = "URDF's mass"
_LEAST_BLOCKS = 2  # on each side of a step of the load
_LOAD_CHANGE = np.array(
    [0.01, 0.003, 0.003, 0.003]
)  # of the mass; m, first moment over it


class LoadChangeError(WalkError):
    """The load on the trunk steps during the recordings, or seems to."""


def check_payload(found: WalkFit, unknowns: Unknowns, starts: Array) -> None:
    """Checks that mass and first moment of the trunk do not step during the recordings.

    Each block i says by how much these four differ from the fit of all, d_i, with a variance
    s_i^2. For a step between blocks, by the means m of those before and after it,

      T^2 = (m_2 - m_1)^2 / (v (1 / W_1 + 1 / W_2)),   W = sum 1 / s_i^2 of each side,
      v = 2 max(1, sum (d_i - m)^2 / s_i^2 / (K - 2))

    The largest T of all steps and components is above 6 in 0.2 % of recordings in which half
    of the variance of a block's error is that of its gait, in 4 % where it is 90 %; the step must
    also be large. The moment's vertical component alone is no load: flexible joints make it step.

    Args:
        found: the fit to all rows.
        unknowns: with their priors.
        starts: (K,) s, of the blocks.

    Raises:
        LoadChangeError: they do; says when.
    """
    H, mass, trunk = found.information, unknowns.total_mass(found.z), slice(0, 4)
    if len(H) < 2 * _LEAST_BLOCKS:
        return
    x, own = unknowns.coefficients(found.z), H[:, trunk, trunk]
    off = -np.linalg.solve(own, (H[:, trunk] @ x)[..., None])[..., 0] / mass
    weight = mass**2 / np.diagonal(np.linalg.inv(own), axis1=1, axis2=2)

    def sums(values: Array) -> tuple[Array, Array]:
        """Of the blocks before and after each of the steps."""
        before = np.cumsum(values, axis=0)
        inner = before[_LEAST_BLOCKS - 1 : -_LEAST_BLOCKS]
        return inner, before[-1] - inner

    weights, moments, squares = sums(weight), sums(weight * off), sums(weight * off**2)
    left = [s - m**2 / w for w, m, s in zip(weights, moments, squares, strict=True)]
    # of a block's variance, as of the covariance of all
    variance = 2.0 * np.maximum(1.0, (left[0] + left[1]) / (len(H) - 2))
    steps = moments[1] / weights[1] - moments[0] / weights[0]
    size = np.abs(steps) / np.sqrt(variance * (1.0 / weights[0] + 1.0 / weights[1]))
    best = int(size.max(axis=1).argmax())
    limit = 6.0  # standard deviations
    changed = (size[best] > limit) & (np.abs(steps[best]) > _LOAD_CHANGE)
    if changed.any():
        kg, *moment = (f"{value:+.2f}" for value in mass * steps[best])
        cause = "something was put on, taken off, or slipped"
        if not changed[:3].any():
            cause = "it does not look like a load; joints or feet give way, or the IMU is late"
        raise LoadChangeError(
            f"about {starts[_LEAST_BLOCKS + best]:.0f} s into the recordings the load on the trunk "
            f"changes by {kg} kg, its first moment by {' '.join(moment)} kg m: {cause}. Identify "
            "the parts before and after that separately"
        )


@dataclass(frozen=True)
class AcceptanceTest:
    """One test of a result.

    Attributes:
        name: of the test.
        text: what was found, and what to do where it failed.
        passed: whether it passed.
        required: whether nothing is exported where it failed.
    """

    name: str
    text: str
    passed: bool
    required: bool = True


def accept(
    found: WalkFit, unknowns: Unknowns, held: DesignMatrix, scale: Scale, rate: float
) -> tuple[AcceptanceTest, ...]:
    """Runs the tests on a fit before its scale is set.

    Args:
        found: the fit, before its scale is set.
        unknowns: with their priors.
        held: rows that the fit has not seen.
        scale: the mass that was weighed.
        rate: Hz, of the recordings; a slow one misses parts of touch-downs, and residuals vary.
    """
    # of healthy robots 1.5 to 3.6
    varies = 6.0 * max(1.0, GOOD_RATE / rate)
    z = found.z
    x, fixed = unknowns.coefficients(z), unknowns.std.copy()
    # masses of the URDF, with 1e-4 of their prior standard deviations
    fixed[: unknowns.joint_slice(FRICTIONS[0]).start] *= 1e-4
    total, tempering = found.information.sum(axis=0), found.tempering
    friction = replace(unknowns, std=fixed)
    urdf = unknowns.coefficients(descend(total, friction, unknowns.mean, tempering))
    ours, before = (unexplained(held, own, unknowns.gain_columns) for own in (x, urdf))
    size = np.abs(held.X @ x)
    medians = [
        float(np.median(size[own])) if own.any() else 0.0
        for own in (held.base, ~held.base)
    ]
    order = np.arange(len(found.information))
    whitened = 0.5, 0.67  # of joints: the median of noise as large as assumed
    gates = [
        AcceptanceTest(
            "held-out torques",
            f"{ours:.1f} % of the torques are not explained in the part that was held out, by the "
            f"URDF with friction fitted {before:.1f} %, the limit",
            bool(ours <= before),
        ),
        AcceptanceTest(
            "residuals",
            f"medians {medians[0]:.2f} (base) and {medians[1]:.2f} (joints), limits "
            f"{whitened[0]} and {whitened[1]}",
            bool((np.array(medians) < whitened).all()),
        ),
        AcceptanceTest(
            "tempering",
            f"residuals of a gait vary {found.tempering:.1f} times as they should, limit "
            f"{varies:.3g} at {rate:.0f} Hz: above, something is not modelled (soft ground, "
            "flexible joints, a late IMU, a payload that changed)",
            found.tempering < varies,
        ),
        nuisances(unknowns, z),
        agreement(found, unknowns, order % 2 == 0, "odd and even blocks"),
        agreement(found, unknowns, order < len(order) / 2, "first and second half"),
    ]
    # a weighed mass may be 3 % off
    name, limit, mass = "weighed mass", 0.03, scale.mass
    if mass is None:
        name, mass, own = URDF_MASS, unknowns.model.mass, unknowns.mean
        # 2.5 prior standard deviations of the mass
        limit = 2.5 * float(np.linalg.norm(unknowns.mass_direction(own) * unknowns.std))
    rho = mass / unknowns.total_mass(z)
    gates.append(
        AcceptanceTest(
            name,
            f"the {name} is {100.0 * (rho - 1.0):+.1f} % off that of torques with a mean gain of "
            f"1, limit {100.0 * limit:.0f} %: above, torques have a wrong scale or another unit, "
            "or the robot has another load. Weigh it as it walks: --mass KG",
            bool(abs(np.log(rho)) < limit),
        )
    )
    return tuple(gates)


def unexplained(rows: DesignMatrix, x: Array, gains: slice) -> float:
    """Returns the residual over the torques' part of the rows, rms, %.

    Args:
        rows: whitened rows.
        x: (P,) all coefficients.
        gains: columns of the torques.
    """
    torques = rows.X[:, gains] @ x[gains]
    return float(100.0 * np.linalg.norm(rows.X @ x) / np.linalg.norm(torques))


def nuisances(unknowns: Unknowns, z: Array) -> AcceptanceTest:
    """Tests whether friction, gains, biases, encoder and IMU errors are near what is usual.

    Args:
        unknowns: with their priors.
        z: (Z,) the estimate.
    """
    off = (z - unknowns.mean) / unknowns.std
    names, joints = [], np.array(unknowns.model.joint_names)
    most = 4.0  # prior standard deviations; one of 75 normal values exceeds it in 0.5 % of robots
    for kind in KINDS:
        own = off[unknowns.joint_slice(kind)]
        if kind == "gain":
            own = (unknowns.joints(z, kind) - 1.0) / unknowns.std[
                unknowns.joint_slice(kind)
            ][0]
        names += [f"{kind} of {joint}" for joint in joints[np.abs(own) > most]]
    for name, own in (("accelerometer bias", off[-IMU:-3]), ("IMU mounting", off[-3:])):
        names += [name] * bool((np.abs(own) > most).any())
    text = "friction, gains, biases, encoders, IMU within 4 standard deviations of what is usual"
    return AcceptanceTest(
        "nuisances", f"too large: {listing(names, 6)}" if names else text, not names
    )


def agreement(
    found: WalkFit, unknowns: Unknowns, first: Flags, what: str
) -> AcceptanceTest:
    """Tests whether two parts of the recording have the same estimates in the best directions.

    Args:
        found: the fit.
        unknowns: with their priors.
        first: (K,) blocks of the first part.
        what: the two parts, in words.
    """
    s, z = unknowns.std, found.z
    D, x = unknowns.jacobian(z) * s, unknowns.coefficients(z)
    estimates, covariances = [], []
    for part in (first, ~first):
        H = found.information[part].sum(axis=0) / found.tempering
        covariances.append(np.linalg.inv(D.T @ H @ D + np.eye(len(z))))
        estimates.append(-covariances[-1] @ (D.T @ (H @ x) + (z - unknowns.mean) / s))
    # the 20 best determined directions
    best = np.linalg.eigh(D.T @ found.information.sum(axis=0) @ D)[1][:, -20:]
    difference = best.T @ (estimates[0] - estimates[1])
    variance = np.einsum("ik,ij,jk->k", best, covariances[0] + covariances[1], best)
    rms = float(np.sqrt((difference**2 / variance).mean()))
    change = float(unknowns.mass_direction(z) * s @ (estimates[1] - estimates[0]))
    most = 3.0  # standard deviations
    step = 0.04  # of the mass
    return AcceptanceTest(
        f"agreement of {what}",
        f"differ by {rms:.1f} standard deviations, limit {most:g}; masses by "
        f"{100.0 * change:+.1f} %, limit {100.0 * step:g} %. A payload changed, or the model "
        "lacks something",
        rms < most and abs(change) < step,
    )
