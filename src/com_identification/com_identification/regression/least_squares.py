"""Maximum a posteriori by weighted least squares: priors of the bodies, bounds, outliers.

The parameters are whitened, x = (theta - prior mean) / prior standard deviation, so that the prior
is |x|^2:

  minimise  |x|^2 + sum over the postures p of rho(|W_p (r_p - A_p x)|^2),   low <= x <= high

with W_p^T W_p the inverse covariance of the posture's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import lsq_linear
from scipy.stats import chi2

from com_identification.exceptions import IdentificationError
from com_identification.settings import IdentificationSettings
from com_model import RobotModel
from com_model.arrays import Array, as_array, freeze
from com_model.shapes.urdf_shapes import ShapeReader

_CONFIDENT = 0.99  # fraction of inliers that have full weight
_NO_NOISE = "the noise of some readings is 0: give every sensor a standard deviation above 0"
_ROUNDS = 30  # of reweighting
_CONVERGED = 1e-4  # change of a weight
_LEAST_MASS_FRACTION = 0.05  # of the URDF's: the lower bound


@dataclass(frozen=True, eq=False)
class BodyPriors:
    """Means and standard deviations of masses and centres of mass; 0: known.

    A body without mass stays without. Prior errors of mass and centre of mass are independent, so
    those of the first moment m c are not: h = m c_0 + m_0 (c - c_0) to first order.

    Attributes:
        mass: (B,) kg.
        com: (B, 3) m, in the body's frame; 0 of a body without mass.
        mass_std: (B,) kg.
        com_std: (B, 3) m.
        com_low: (B, 3) m, bounds of the centre of mass; -inf for none.
        com_high: (B, 3) m; inf for none.
    """

    mass: Array
    com: Array
    mass_std: Array
    com_std: Array
    com_low: Array
    com_high: Array

    def __post_init__(self) -> None:
        freeze(self)
        for name in ("mass_std", "com_std"):
            if not (getattr(self, name) >= 0.0).all():
                raise IdentificationError(f"{name}: expected standard deviations, 0 or more")
        if not ((self.com_low <= self.com) & (self.com <= self.com_high)).all():
            raise IdentificationError("the prior centres of mass are not all within their bounds")

    @property
    def parameters(self) -> Array:
        """(4 B,) m_k and h_k of the means."""
        return np.column_stack((self.mass, self.mass[:, None] * self.com)).ravel()

    @property
    def used(self) -> Array:
        """(4 B,) True where a parameter is not known."""
        spread = np.column_stack((self.mass_std, self.mass[:, None] * self.com_std))
        return np.asarray((spread > 0.0).ravel())

    @property
    def factor(self) -> Array:
        """(4 B, 4 B) theta = parameters + factor @ x with x of unit covariance."""
        count = len(self.mass)
        factor = np.zeros((count, 4, count, 4))
        for k in range(count):
            factor[k, :, k, 0] = self.mass_std[k] * np.array([1.0, *self.com[k]])
            factor[k, 1:, k, 1:] = np.diag(self.mass[k] * self.com_std[k])
        return factor.reshape(4 * count, 4 * count)

    def bounds(self, masses: Array) -> tuple[Array, Array]:
        """Bounds of x (4 B,), low and high, with the CoM's taken at given masses.

        x_c = (m / m_0) (c - c_0) / std, so the bounds of c move with the mass.

        Args:
            masses: (B,) kg.
        """
        low, high = np.full((2, len(self.mass), 4), np.inf)
        low = -low
        with np.errstate(divide="ignore", invalid="ignore"):
            low[:, 0] = -(1.0 - _LEAST_MASS_FRACTION) * self.mass / self.mass_std
            scale = (masses / self.mass)[:, None] / self.com_std
            low[:, 1:] = scale * (self.com_low - self.com)
            high[:, 1:] = scale * (self.com_high - self.com)
        low[np.isnan(low)], high[np.isnan(high)] = -np.inf, np.inf
        return low.ravel(), high.ravel()


def urdf_priors(
    model: RobotModel,
    com_std: ArrayLike,
    mass_std_fraction: ArrayLike = 0.0,
    shape_margin: float | None = None,
) -> BodyPriors:
    """Makes priors with the URDF for the mean.

    Args:
        model: The robot.
        com_std: m, a number or (B,) or (B, 3), standard deviation of the centres of mass.
        mass_std_fraction: A number or (B,), standard deviation of a mass over the mass; 0: masses
            are known.
        shape_margin: m, how far outside the box around its primitive shapes a body's centre of
            mass may be; bodies with meshes or without shapes have no bounds. None: no bounds.
    """
    bodies = model.bodies
    mass = bodies.mass
    com = np.divide(
        bodies.first_moment, mass[:, None], out=np.zeros((bodies.count, 3)), where=mass[:, None] > 0
    )
    std = np.asarray(com_std, dtype=float)
    std = std[:, None] if std.ndim == 1 else std
    low, high = np.full((bodies.count, 3), -np.inf), np.full((bodies.count, 3), np.inf)
    if shape_margin is not None:
        low, high = _boxes(model)
        low, high = np.minimum(low - shape_margin, com), np.maximum(high + shape_margin, com)
    fraction = np.broadcast_to(mass_std_fraction, mass.shape)
    return BodyPriors(
        mass=mass,
        com=com,
        mass_std=mass * as_array("mass_std_fraction", fraction, (None,)),
        com_std=np.broadcast_to(std, com.shape),
        com_low=low,
        com_high=high,
    )


def body_priors(model: RobotModel, settings: IdentificationSettings) -> BodyPriors:
    """Makes the priors that the settings describe: the URDF, and what differs for some links.

    Raises:
        ConfigError: The settings name a link that the model has not, or one without mass.
    """
    settings.check(model)
    prior, count = settings.prior, model.bodies.count
    mass = np.array(model.bodies.mass)
    com_std = np.full(count, prior.com_std)
    mass_std_fraction = np.full(count, prior.mass_std_fraction)
    for name, link in settings.links.items():
        body = model.bodies.body_of_link[model.link_index(name)]
        mass[body] = mass[body] if link.mass is None else link.mass
        if link.com_std is not None:
            com_std[body] = link.com_std
        if link.mass_std_fraction is not None:
            mass_std_fraction[body] = link.mass_std_fraction
    margin = prior.shape_margin if prior.bounded else None
    priors = urdf_priors(model, com_std, mass_std_fraction, margin)
    return replace(priors, mass=mass, mass_std=mass * mass_std_fraction)


def _boxes(model: RobotModel) -> tuple[Array, Array]:
    """Boxes around the shapes of the bodies, low and high (B, 3) m; infinite where not known."""
    reader = ShapeReader(model.xml, model.path)
    bodies = model.bodies
    low, high = np.full((bodies.count, 3), np.inf), np.full((bodies.count, 3), -np.inf)
    known = np.ones(bodies.count, dtype=np.bool_)
    for i, name in enumerate(model.link_names):
        b, box = bodies.body_of_link[i], reader.bounds(name) if name in reader.links else None
        if box is not None:
            R, p = bodies.R_body_link[i], bodies.p_body_link[i]
            center, half = p + R @ (box[0] + box[1]) / 2, np.abs(R) @ (box[1] - box[0]) / 2
            low[b], high[b] = np.minimum(low[b], center - half), np.maximum(high[b], center + half)
        elif model.link_masses[i] > 0.0:
            known[b] = False
    known &= np.isfinite(low).all(axis=1)
    low[~known], high[~known] = -np.inf, np.inf
    return low, high


class WhitenedParameters:
    """Parameters x of bodies and sensors in prior standard deviations: x has unit covariance.

    Args:
        priors: Of the bodies.
        sensor_stds: (S,) of the sensors' errors; 0: not estimated.
    """

    def __init__(self, priors: BodyPriors, sensor_stds: Array) -> None:
        self.priors = priors
        self.used = priors.used
        self.sensed = sensor_stds > 0.0
        self.factor = priors.factor[:, self.used]
        self.spread = sensor_stds[self.sensed]
        self.bodies = int(self.used.sum())
        self.count = self.bodies + len(self.spread)

    def values(self, x: Array) -> tuple[Array, Array]:
        """Returns masses and first moments (4 B,) and the sensors' errors (S,) of x."""
        errors = np.zeros(len(self.sensed))
        errors[self.sensed] = self.spread * x[self.bodies :]
        return self.priors.parameters + self.factor @ x[: self.bodies], errors

    def columns(self, bodies: Array, errors: Array) -> Array:
        """Converts rows by theta and by errors to rows by x."""
        return np.hstack((bodies @ self.factor, errors[:, self.sensed] * self.spread))

    def bounds(self, x: Array) -> tuple[Array, Array]:
        """Returns bounds of x, those of the CoM at the masses of x."""
        masses = self.values(x)[0][::4]
        free = np.full(len(self.spread), np.inf)
        low, high = self.priors.bounds(masses)
        return np.append(low[self.used], -free), np.append(high[self.used], free)


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
