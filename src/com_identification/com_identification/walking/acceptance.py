"""Tests of results from walking, and of a load that changed during the recordings."""

from dataclasses import dataclass, replace

import numpy as np

from com_identification.exceptions import WalkError
from com_identification.walking.fit import WalkFit, descend
from com_identification.walking.kernels import IMU
from com_identification.walking.unknowns import (
    FRICTIONS,
    KINDS,
    DesignMatrix,
    Scale,
    Unknowns,
)
from com_model.arrays import Array, Flags
from com_model.text import listing

_WHITENED = 0.5, 0.67  # of joints: the median of noise as large as assumed
_TEMPERING = 6.0  # of healthy robots 1.5 to 3.6
_NUISANCE = 4.0  # prior standard deviations; one of 75 normal values exceeds it in 0.5 % of robots
_AGREEMENT, _CHANGED = 3.0, 0.04  # standard deviations; of the mass
URDF_MASS = "URDF's mass"
_LEAST_BLOCKS, _STEP = 2, 6.0  # on each side of a step of the load; standard deviations
_LOAD_CHANGE = np.array(
    [0.01, 0.003, 0.003, 0.003]
)  # of the mass; m, first moment over it


def check_payload(found: WalkFit, unknowns: Unknowns, starts: Array) -> None:
    """Checks that mass and first moment of the trunk do not step during the recordings.

    Each block i says by how much these four differ from the fit of all, d_i, with a variance
    s_i^2. For a step between blocks, by the means m of those before and after it,

      T^2 = (m_2 - m_1)^2 / (v (1 / W_1 + 1 / W_2)),   W = sum 1 / s_i^2 of each side,
      v = UNSEEN max(1, sum (d_i - m)^2 / s_i^2 / (K - 2))

    The largest T of all steps and components is above _STEP in 0.2 % of recordings in which half
    of the variance of a block's error is that of its gait, in 4 % where it is 90 %; the step must
    also be large. The moment's vertical component alone is no load: flexible joints make it step.

    Args:
        found: the fit to all rows.
        unknowns: with their priors.
        starts: (K,) s, of the blocks.

    Raises:
        WalkError: they do; says when.
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
    changed = (size[best] > _STEP) & (np.abs(steps[best]) > _LOAD_CHANGE)
    if changed.any():
        kg, *moment = (f"{value:+.2f}" for value in mass * steps[best])
        cause = "something was put on, taken off, or slipped"
        if not changed[:3].any():
            cause = "it does not look like a load; joints or feet give way, or the IMU is late"
        raise WalkError(
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
    found: WalkFit, unknowns: Unknowns, held: DesignMatrix, scale: Scale
) -> tuple[AcceptanceTest, ...]:
    """Runs the tests on a fit before its scale is set.

    Args:
        found: the fit, before its scale is set.
        unknowns: with their priors.
        held: rows that the fit has not seen.
        scale: the mass that was weighed.
    """
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
            f"{_WHITENED[0]} and {_WHITENED[1]}",
            bool((np.array(medians) < _WHITENED).all()),
        ),
        AcceptanceTest(
            "tempering",
            f"residuals of a gait vary {found.tempering:.1f} times as they should, limit "
            f"{_TEMPERING:g}: above, something is not modelled (soft ground, flexible joints, a "
            "late IMU, a payload that changed)",
            found.tempering < _TEMPERING,
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
    for kind in KINDS:
        own = off[unknowns.joint_slice(kind)]
        if kind == "gain":
            own = (unknowns.joints(z, kind) - 1.0) / unknowns.std[
                unknowns.joint_slice(kind)
            ][0]
        names += [f"{kind} of {joint}" for joint in joints[np.abs(own) > _NUISANCE]]
    for name, own in (("accelerometer bias", off[-IMU:-3]), ("IMU mounting", off[-3:])):
        names += [name] * bool((np.abs(own) > _NUISANCE).any())
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
    return AcceptanceTest(
        f"agreement of {what}",
        f"differ by {rms:.1f} standard deviations, limit {_AGREEMENT:g}; masses by "
        f"{100.0 * change:+.1f} %, limit {100.0 * _CHANGED:g} %. A payload changed, or the model "
        "lacks something",
        rms < _AGREEMENT and abs(change) < _CHANGED,
    )
