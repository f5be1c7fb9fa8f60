"""Result of an identification, its problems in words, and which combinations it determines.

Identifiability of masses and centres of mass is a rank, and unobservable combinations in words.
Some combinations are unobservable in every static posture. Along the axis a of a revolute joint,
child and parent do not move relative to each other: h_child += a, h_parent -= R a changes no
first moment. A mass at a joint's origin belongs to either side. The height of the CoM of a body
that is never tilted is unobservable, and of two bodies that never rotate relative to each other
only the sum is observable.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from scipy.linalg import svd

from com_identification.regression.statics import Statics
from com_model.arrays import Array, FrozenArrays
from com_model.bodies import PRISMATIC
from com_model.text import Facts, Shown, signed_mm

RANK_TOLERANCE = 1e-9  # of the largest singular value
_CONSTANT = 1e-6  # change of a direction

Candidate = tuple[str, Array]  # words, (4 B,) direction of the parameters


def examine(
    statics: Statics, root: Array, factor: Array, informed: int, Q: Array, up: Array
) -> "Identifiability":
    """Computes rank, condition number and the unobservable combinations.

    Args:
        statics: of the robot.
        root: (R, U) whitened rows of all postures.
        factor: (4 B, U) derivatives of the parameters by x.
        informed: number of combinations that the data determine better than the prior.
        Q: (P, n) rad or m, of the postures.
        up: (P, 3) unit vectors against gravity in root axes; NaN where not known.
    """
    count = root.shape[1]
    _, s, Vt = (
        svd(root, lapack_driver="gesvd")
        if root.size
        else (0, np.zeros(0), np.eye(count))
    )
    largest = float(s.max(initial=0.0))
    rank = int(np.sum(s > RANK_TOLERANCE * largest)) if largest > 0.0 else 0
    null = Vt[rank:]
    R = statics.poses(Q).R
    several = _heights(statics, R, up), _together(statics, R)
    # combinations that may be unobservable, the simplest to explain first
    candidates = list(chain(_along_axes(statics), *several, _exchanges(statics)))
    # of a direction, outside of the null space
    lost = _words(statics, null, factor, candidates, 1e-7)
    # a third: the data reduce a standard deviation by 5 %
    informative = int(np.sum(s > 1.0 / 3.0))
    # fraction outside of the null space, for weakly observable combinations
    weak = _words(statics, Vt[informative:], factor, candidates, 0.1)
    condition = largest / float(s[rank - 1]) if rank else float("nan")
    left = tuple(text for text in weak if text not in lost)
    return Identifiability(count, rank, condition, informed, tuple(lost), left)


def rank_of(matrix: Array, scale: Array) -> int:
    """Rank of rows with columns times scale, to RANK_TOLERANCE of the largest singular value.

    Args:
        matrix: (R, U) rows.
        scale: (U,) of the columns.
    """
    s = np.linalg.svd(matrix * scale, compute_uv=False)
    return int(np.sum(s > RANK_TOLERANCE * s.max(initial=0.0))) if s.size else 0


def redundancy(statics: Statics, root: Array, factor: Array, Q: Array) -> str:
    """Returns a warning where postures are redundant, with joints to move; else "".

    They are redundant where they determine less than half of the combinations that postures can
    determine. Encoder noise alone makes postures differ, and the rank large. So only singular
    values above a thousandth of the largest count.

    Args:
        statics: of the robot.
        root: (R, U) rows whitened by the noise of the readings alone.
        factor: (4 B, U) derivatives of the parameters by x.
        Q: (P, n) rad or m, of the postures.
    """
    possible = best_rank(statics, factor)
    s = np.linalg.svd(root, compute_uv=False)
    # singular values above a thousandth of the largest are clearly determined
    clear = int(np.sum(s > 1e-3 * s.max(initial=0.0)))
    if 2 * clear >= possible:
        return ""
    names = statics.model.joint_names
    # a joint whose range is less than a degree was not moved
    unmoved = [names[j] for j in np.flatnonzero(np.ptp(Q, axis=0) < np.radians(1.0))]
    fix = (
        f"move {', '.join(unmoved)}"
        if unmoved
        else "bend every joint differently in each"
    )
    return (
        f"{len(Q)} postures determine {clear} of {possible} combinations, the rest stays as "
        f"uncertain as it was: the postures are few or redundant; add different ones, and {fix}."
    )


def best_rank(statics: Statics, factor: Array) -> int:
    """Returns the rank of many postures if all components of the first moment were measured.

    Args:
        statics: of the robot.
        factor: (4 B, U) derivatives of the parameters by x.
    """
    rng = np.random.default_rng(0)
    model = statics.model
    low, high = np.maximum(model.lower, -np.pi), np.minimum(model.upper, np.pi)
    Q = rng.uniform(low, np.maximum(low, high), (2 + factor.shape[1], model.n_joints))
    columns = statics.first_moment(statics.poses(Q)).reshape(-1, len(factor))
    mass = statics.mass()[None] * max(float(np.abs(columns).max()), 1.0)
    rows = np.vstack((columns, mass)) @ factor
    return rank_of(rows, np.ones(rows.shape[1]))


def _words(
    statics: Statics,
    null: Array,
    factor: Array,
    candidates: Iterable[Candidate],
    tolerance: float,
) -> list[str]:
    """Describes a null space: known combinations first, the rest by its largest parts."""
    words: list[str] = []
    found = np.zeros((0, null.shape[1]))
    to_x = np.linalg.pinv(factor)
    for text, direction in candidates:
        if len(found) == len(null):
            break
        x = to_x @ direction
        if np.abs(factor @ x - direction).max() > 1e-9 * np.abs(direction).max():
            continue  # it needs a parameter that is known
        x = x / np.linalg.norm(x)
        outside = x - null.T @ (null @ x)
        new = x - found.T @ (found @ x)
        if (
            np.linalg.norm(outside) < tolerance
            and np.linalg.norm(new) > 2.0 * tolerance
        ):
            found = np.vstack((found, new / np.linalg.norm(new)))
            words.append(text)
    rest = null - (null @ found.T) @ found
    _, s, vt = np.linalg.svd(rest, full_matrices=False)
    return words + [_by_parts(statics, factor @ x) for x in _sparse(vt[s > 0.5])]


def _sparse(basis: Array) -> Array:
    """Clears each vector of the others' largest entries (Gauss and Jordan)."""
    basis = basis.copy()
    for i in range(len(basis)):
        pivot = int(np.argmax(np.abs(basis[i])))
        basis[i] /= basis[i, pivot]
        for j in range(len(basis)):
            if j != i:
                basis[j] -= basis[j, pivot] * basis[i]
    return basis


def _by_parts(statics: Statics, direction: Array) -> str:
    kinds = ("mass", "x", "y", "z")
    scale = np.abs(direction).reshape(-1, 4)
    scale = scale / np.maximum(scale.max(axis=0), 1e-300)  # kg and kg m do not compare
    # three parts of a combination are listed
    order = np.argsort(-scale.ravel(), kind="stable")[:3]
    parts = []
    for i in order[scale.ravel()[order] > 1e-3]:
        name = statics.labels[i // 4]
        sign = "+" if direction[i] > 0 else "-"
        parts.append(f"{sign}{name} {'mass' if i % 4 == 0 else 'm c_' + kinds[i % 4]}")
    return "only together: " + ", ".join(parts) + " ..."


def _direction(statics: Statics, *parts: tuple[int, float, Array]) -> Array:
    """(4 B,) with mass and first moment of some bodies."""
    result = np.zeros((statics.bodies.count, 4))
    for body, mass, moment in parts:
        result[body, 0] += mass
        result[body, 1:] += moment
    return result.ravel()


def _along_axes(statics: Statics) -> Iterator[Candidate]:
    bodies = statics.bodies
    for j in range(1, bodies.count):
        p, R, a = int(bodies.parent[j]), bodies.R[j], bodies.axis[j]
        pair = f"{statics.labels[j]} and {statics.labels[p]}"
        direction = _direction(statics, (j, 0.0, a), (p, 0.0, -R @ a))
        yield f"{pair}: slides along the axis of {bodies.joint_names[j]}", direction
        if bodies.joint_type[j] == PRISMATIC:
            for axis, e in zip("xyz", np.eye(3), strict=True):
                direction = _direction(statics, (j, 0.0, e), (p, 0.0, -R @ e))
                yield (
                    (
                        f"{pair}: only together along {axis} of {statics.labels[j]} "
                        f"({bodies.joint_names[j]} does not rotate)"
                    ),
                    direction,
                )


def _heights(statics: Statics, R: Array, up: Array) -> Iterator[Candidate]:
    known = np.isfinite(up).all(axis=1)
    if not known.any():
        return
    local = np.einsum("pbij,pi->pbj", R[known], up[known])
    for b in np.flatnonzero(np.ptp(local, axis=0).max(axis=1) < _CONSTANT):
        yield (
            f"{statics.labels[b]}: the height of its centre of mass (it is never tilted)",
            _direction(statics, (int(b), 0.0, local[0, b])),
        )


def _together(statics: Statics, R: Array) -> Iterator[Candidate]:
    """Pairs of bodies with a direction that both keep: all three, or one."""
    names = statics.labels
    for i in range(len(names)):
        turned = np.einsum("pji,pbjk->bpik", R[:, i], R)  # R_i_b
        shift = turned - turned[:, :1]
        squares, axes = np.linalg.eigh(np.einsum("bpik,bpil->bkl", shift, shift))
        fixed = squares < len(R) * _CONSTANT**2
        for b in range(i + 1, len(names)):
            count = int(fixed[b].sum())
            if count == 0 or len(R) == 1:
                continue
            how = (
                "do not rotate relative to each other"
                if count == 3
                else "keep one direction"
            )
            for v in np.eye(3) if count == 3 else axes[b].T[fixed[b]]:
                yield (
                    f"{names[i]} and {names[b]}: only together along {_axis(v)} (they {how})",
                    _direction(statics, (b, 0.0, v), (i, 0.0, -turned[b, 0] @ v)),
                )


def _axis(v: Array) -> str:
    place = int(np.argmax(np.abs(v)))
    if abs(v[place]) > 1.0 - 1e-6:
        return "xyz"[place]
    return "(" + ", ".join(f"{x:.2f}" for x in v) + ")"


def _exchanges(statics: Statics) -> Iterator[Candidate]:
    bodies = statics.bodies
    for j in range(1, bodies.count):
        p = int(bodies.parent[j])
        direction = _direction(statics, (j, 1.0, np.zeros(3)), (p, -1.0, -bodies.d[j]))
        yield (
            (f"{statics.labels[j]} and {statics.labels[p]}: mass at the origin of ")
            + bodies.joint_names[j],
            direction,
        )


@dataclass(frozen=True, eq=False)
class Identifiability:
    """What the postures determine, whatever the prior.

    Attributes:
        unknowns: number of the bodies' parameters that are estimated, U.
        rank: combinations of them that the data determine.
        condition: largest over smallest singular value of the whitened rows within that
            rank.
        informed: combinations that the data determine better than the prior.
        lost: a few words for each unobservable combination.
        weak: a few words for each weakly observable one: its standard deviation is 95 % of
            the prior's or more.
    """

    unknowns: int
    rank: int
    condition: float
    informed: int
    lost: tuple[str, ...]
    weak: tuple[str, ...] = ()


Progress = Callable[[float, str], None]
"""Receives the fraction of the time that is over, 0 to 1, and the present step in words."""


BODY_CHANGES = ("body", "URDF, kg", "kg", *("CoM " + axis + ", mm" for axis in "xyz"))
"""Titles of the columns of body_changes."""


def body_changes(
    names: Iterable[str], before: Array, mass: Array, moved: Array
) -> list[tuple[str, ...]]:
    """Writes the changes of B bodies as rows of a table.

    Args:
        names: of the bodies.
        before: (B,) kg.
        mass: (B,) kg, now.
        moved: (B, 3) m, by which the CoMs moved.
    """
    return [
        (name, f"{old:.3f}", f"{new:.3f}", *signed_mm(offset))
        for name, old, new, offset in zip(names, before, mass, moved, strict=True)
    ]


@dataclass(frozen=True)
class Residual:
    """Distance between the model's CoM and the feet's measurement of its horizontal position.

    Attributes:
        mean: m, of the distances.
        rms: m.
        maximum: m.
        count: number of postures; where 0, the others are NaN.
    """

    mean: float
    rms: float
    maximum: float
    count: int

    @classmethod
    def from_distances(cls, distances: Array) -> "Residual":
        """Summarises distances.

        Args:
            distances: (P,) m; NaN values are left out.
        """
        distances = distances[np.isfinite(distances)]
        if not len(distances):
            return cls(np.nan, np.nan, np.nan, 0)
        return cls(
            float(np.mean(distances)),
            float(np.sqrt(np.mean(np.square(distances)))),
            float(np.max(distances)),
            len(distances),
        )


@dataclass(frozen=True)
class Residuals:
    """The residuals of one set of postures; see Identification.

    Attributes:
        prior_residual: with the prior's parameters.
        residual: after the fit.
        held_out: of postures that were left out of the fit.
    """

    prior_residual: Residual
    residual: Residual
    held_out: Residual


@dataclass(frozen=True, eq=False, repr=False)
class Identification(FrozenArrays, Shown):
    """Masses and centres of mass of a robot's bodies; arrays are read-only.

    A body is a link with all that fixed joints tie to it; its frame is that link's. Combinations
    that the data do not determine keep the prior's value and standard deviation.

    Attributes:
        bodies: B names, of each body's first link.
        mass, mass_std: (B,) kg, and standard deviations after the data.
        com, com_std: (B, 3) m, each in its body's frame; NaN of a body without mass.
        prior_mass, prior_mass_std, prior_com, prior_com_std: The same before the data.
        parameters: (4 B,) m_k kg and h_k = m_k c_k kg m, body by body.
        covariance: (4 B, 4 B) of the parameters.
        total_mass, total_mass_std: kg.
        sensor_errors: Constant errors by kind and name, in the units of SensorErrors.
        sensor_stds, sensor_prior_stds: Their standard deviations after and before the data.
        identifiability: Rank, condition number, what stays unknown.
        residual: Of the postures that were used, after the fit.
        prior_residual: Of the same postures with the prior's parameters.
        held_out: Of postures that were left out of the fit; NaN if not asked for.
        without_outliers: The three residuals without the outliers.
        prediction_std: m, standard deviation of the horizontal CoM in such postures, RMS length.
        prediction_shift: m, between the URDF's and the identified CoM there, RMS length.
        variance_factor: Mean square of the readings' difference from the URDF over what the priors
            allow: 1 or less where the priors cover the errors.
        variance_limit: Above it the errors are larger than the priors.
        cause: The likeliest cause of errors larger than the priors, in words; else empty.
        scales: Standard deviation of each class of errors by the data over its prior's.
        tempering: 1 or more, by which the postures' information was divided, because their
            residuals scatter more than expected.
        weights: (P,) of the postures; below 0.5 one counts as an outlier.
        outliers: Indices of the outliers.
        at_bound: Names of the bodies whose centre of mass is at a bound.
        redundancy: A warning with the rank where the postures are few or redundant: what they do
            not determine keeps the URDF's uncertainty.
    """

    bodies: tuple[str, ...]
    mass: Array
    com: Array
    mass_std: Array
    com_std: Array
    prior_mass: Array
    prior_com: Array
    prior_mass_std: Array
    prior_com_std: Array
    parameters: Array
    covariance: Array
    total_mass: float
    total_mass_std: float
    sensor_errors: Mapping[str, Mapping[str, float]]
    sensor_stds: Mapping[str, Mapping[str, float]]
    sensor_prior_stds: Mapping[str, Mapping[str, float]]
    identifiability: Identifiability
    residual: Residual
    prior_residual: Residual
    held_out: Residual
    without_outliers: Residuals
    prediction_std: float
    prediction_shift: float
    variance_factor: float
    variance_limit: float
    cause: str
    scales: Mapping[str, float]
    tempering: float
    weights: Array
    outliers: tuple[int, ...]
    at_bound: tuple[str, ...] = field(default=())

    def facts(self) -> Facts:
        """Mass and residuals; of each body the masses and how far its CoM moved."""
        return Facts(
            f"{self.total_mass:.4g} ± {self.total_mass_std:.2g} kg; residual of postures "
            f"{1e3 * self.residual.rms:.2f} mm (URDF {1e3 * self.prior_residual.rms:.2f} mm)",
            BODY_CHANGES,
            body_changes(
                self.bodies, self.prior_mass, self.mass, self.com - self.prior_com
            ),
        )

    redundancy: str = ""


def by_body(theta: Array, covariance: Array) -> tuple[Array, Array, Array, Array]:
    """Splits parameters into masses and CoMs: c = h / m, dc = (dh - c dm) / m.

    Args:
        theta: (4 B,) masses kg and first moments kg m, body by body.
        covariance: (4 B, 4 B) of them.

    Returns:
        Masses (B,) kg, CoMs (B, 3) m and the standard deviations of both; NaN for the CoM of a body
        without mass.
    """
    mass, moment = theta.reshape(-1, 4)[:, 0], theta.reshape(-1, 4)[:, 1:]
    com = np.full(moment.shape, np.nan)
    com_std = np.full(moment.shape, np.nan)
    for k in np.flatnonzero(mass > 0.0):
        com[k] = moment[k] / mass[k]
        slope = np.column_stack((-com[k], np.eye(3))) / mass[k]
        own = covariance[4 * k : 4 * k + 4, 4 * k : 4 * k + 4]
        com_std[k] = np.sqrt(np.maximum(np.diag(slope @ own @ slope.T), 0.0))
    return mass, com, np.sqrt(np.maximum(np.diag(covariance)[::4], 0.0)), com_std


def issues_of(found: Identification) -> list[str]:
    """Returns the problems of a result, with how to fix them; empty: the status is OK.

    Args:
        found: the result.
    """
    issues, good = [], found.without_outliers
    if found.redundancy:
        issues.append(found.redundancy)
    if found.variance_factor > found.variance_limit:
        issues.append(
            "The readings differ from what the URDF and the sensors may do by "
            f"{np.sqrt(found.variance_factor):.1f} times what the priors allow; the standard "
            f"deviations are too small. Likeliest: {found.cause}."
        )
    elif found.cause:
        issues.append(
            f"An error is far larger than its prior. Likeliest: {found.cause}."
        )
    if good.held_out.rms > good.prior_residual.rms:
        issues.append(
            f"Postures that were left out are predicted to {1e3 * good.held_out.rms:.2f} mm, "
            f"worse than by the URDF ({1e3 * good.prior_residual.rms:.2f} mm): capture more."
        )
    if found.at_bound:
        issues.append(
            f"The centre of mass of {', '.join(found.at_bound)} would be outside of the link's "
            "shape: check the sensors and the shapes, or set prior.bounded to false."
        )
    if 3 * len(found.outliers) > len(found.weights):
        issues.append(
            f"{len(found.outliers)} of {len(found.weights)} postures are inconsistent with the "
            "others: see the problems in the answer of get_postures."
        )
    return issues
