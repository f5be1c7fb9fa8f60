"""Priors of the bodies: the URDF and its standard deviations; parameters whitened by them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from com_identification.exceptions import IdentificationError
from com_identification.settings import IdentificationSettings
from com_model import RobotModel
from com_model.arrays import Array, as_array, freeze
from com_model.urdf.shapes import SCHEMA_WITH_SHAPES, bounds_of
from com_model.urdf.xml_reader import read_xml

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
    node, _ = read_xml(model.xml, SCHEMA_WITH_SHAPES)
    links = {link.attributes["name"]: link for link in node.all("link")}
    bodies = model.bodies
    low, high = np.full((bodies.count, 3), np.inf), np.full((bodies.count, 3), -np.inf)
    known = np.ones(bodies.count, dtype=np.bool_)
    for i, name in enumerate(model.link_names):
        b, box = bodies.body_of_link[i], bounds_of(links[name])
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
