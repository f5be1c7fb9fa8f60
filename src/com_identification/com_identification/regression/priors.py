"""What is known of masses and centres of mass before any posture: the URDF, within its errors."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from com_identification.exceptions import IdentificationError
from com_identification.settings import IdentificationSettings
from com_model import RobotModel
from com_model.arrays import Array, as_array, freeze
from com_model.shapes.urdf_shapes import ShapeReader

_WATER = 1000.0  # kg/m^3
_COM_STD = (0.005, 0.02)  # m
_LEAST_MASS_FRACTION = 0.05  # of the URDF's: the lower bound


@dataclass(frozen=True, eq=False)
class BodyPriors:
    """Means and standard deviations of masses and centres of mass; 0: known.

    A body without mass stays without. Prior errors of mass and centre of mass are independent, so
    those of the first moment m c are not: h = m c_0 + m_0 (c - c_0) to first order.
    """

    mass: Array  # (B,) kg
    com: Array  # (B, 3) m, in the body's frame; 0 of a body without mass
    mass_std: Array  # (B,) kg
    com_std: Array  # (B, 3) m
    com_low: Array  # (B, 3) m, bounds of the centre of mass; -inf for none
    com_high: Array  # (B, 3) m; inf for none

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

    def limits(self) -> tuple[Array, Array, Array]:
        """Physical limits G theta <= g: masses positive, centres of mass within their boxes.

        Linear in theta, since the box of c = h / m is low m <= h <= high m. Returns G (K, 4 B), g
        (K,), and the body of each row (K,).
        """
        rows, right, owner = [], [], []
        for k in np.flatnonzero(self.mass > 0.0):
            own = np.zeros((7, len(self.mass), 4))
            own[:3, k, 0], own[3:6, k, 0] = self.com_low[k], -self.com_high[k]
            own[:3, k, 1:], own[3:6, k, 1:] = -np.eye(3), np.eye(3)
            own[6, k, 0] = -1.0
            bounded = np.isfinite(own).all(axis=(1, 2))
            rows.append(own.reshape(7, -1)[bounded])
            right.append(np.append(np.zeros(6), -_LEAST_MASS_FRACTION * self.mass[k])[bounded])
            owner.append(np.full(int(bounded.sum()), k))
        return np.vstack(rows), np.concatenate(right), np.concatenate(owner)


class WhitenedParameters:
    """Parameters x of the bodies in prior standard deviations: x has unit covariance."""

    def __init__(self, priors: BodyPriors) -> None:
        self.priors = priors
        self.used = priors.used
        self.factor = priors.factor[:, self.used]
        self.count = int(self.used.sum())

    def values(self, x: Array) -> Array:
        """Returns masses and first moments (4 B,) of x."""
        return np.asarray(self.priors.parameters + self.factor @ x)


def urdf_priors(
    model: RobotModel,
    com_std: ArrayLike,
    mass_std_fraction: ArrayLike = 0.0,
    shape_margin: float | None = None,
) -> BodyPriors:
    """Makes priors with the URDF for the mean.

    com_std, m, is a number, (B,) or (B, 3), mass_std_fraction a number or (B,); 0: masses are
    known. A body's centre of mass may be shape_margin, m, outside the box around its primitive
    shapes; None, and bodies with meshes or without shapes: no bounds.
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

    Raises ConfigError where they name a link that the model has not, or one without mass.
    """
    settings.check(model)
    prior, count = settings.prior, model.bodies.count
    mass = np.array(model.bodies.mass)
    size = np.cbrt(mass / _WATER)
    com_std = np.clip(prior.com_std_fraction * size, *_COM_STD)
    com_std *= prior.com_std_fraction > 0.0
    mass_std_fraction = np.full(count, prior.mass_std_fraction)
    for name, link in settings.links.items():
        body = model.bodies.body_of_link[model.link_index(name)]
        if link.mass is not None:
            mass[body], mass_std_fraction[body] = link.mass, 0.0
        if link.com_std is not None:
            com_std[body] = link.com_std
        if link.mass_std_fraction is not None:
            mass_std_fraction[body] = link.mass_std_fraction
    margin = prior.shape_margin if prior.bounded else None
    priors = urdf_priors(model, com_std, mass_std_fraction, margin)
    priors = replace(priors, mass=mass, mass_std=mass * mass_std_fraction)
    return priors if margin is None else _bound_by_inertia(model, priors, margin)


def _bound_by_inertia(model: RobotModel, priors: BodyPriors, margin: float) -> BodyPriors:
    """Bounds bodies without primitive shapes by the boxes of their links' inertia, and a margin."""
    bodies, low, high = model.bodies, priors.com_low.copy(), priors.com_high.copy()
    unknown = ~np.isfinite(low).all(axis=1)
    low[unknown], high[unknown] = priors.com[unknown], priors.com[unknown]
    for link, center, axes, half in solid_boxes(model):
        b = bodies.body_of_link[link]
        if unknown[b]:
            R = bodies.R_body_link[link]
            middle = bodies.p_body_link[link] + R @ center
            reach = np.abs(R @ axes) @ half + margin
            low[b] = np.minimum(low[b], middle - reach)
            high[b] = np.maximum(high[b], middle + reach)
    free = unknown & (low == high).all(axis=1)  # no inertia either
    low[free], high[free] = -np.inf, np.inf
    return replace(priors, com_low=low, com_high=high)


def solid_boxes(model: RobotModel) -> list[tuple[int, Array, Array, Array]]:
    """Finds the solid boxes with mass and inertia of the links: link, centre, axes, half sizes.

    Half sizes a, b, c of a solid box: I_a = m (b^2 + c^2) / 3, so a^2 = 3 (I_b + I_c - I_a) / 2m.
    """
    found = []
    for link in range(len(model.link_names)):
        mass, inertia = float(model.link_masses[link]), model.link_inertias[link]
        if mass <= 0.0 or not np.isfinite(inertia).all():
            continue
        moments, axes = np.linalg.eigh(inertia)
        square = 1.5 * (moments.sum() - 2.0 * moments) / mass
        if (square > 0.0).all():
            found.append((link, model.link_coms[link], axes, np.sqrt(square)))
    return found


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
