"""Priors: the URDF with its uncertainty, and the errors of the sensors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from com_identification.exceptions import IdentificationError
from com_identification.settings import IdentificationSettings, SensorPriors
from com_model import Foot, RobotModel
from com_model.arrays import Array, Flags, as_array, freeze
from com_model.geometry.rotations import skew
from com_model.shapes.urdf_shapes import ShapeReader

# (K, 3) unit axes of a body's frame: x, y, z, the diagonals of a cube's faces and its own. Hulls
# are bounded by where they end along these; the first three alone make boxes.
_DIAGONALS = np.array(
    [a for a in product((-1, 0, 1), repeat=3) if a > (0, 0, 0) and np.dot(a, a) > 1]
)
BOUND_AXES = np.vstack(
    (np.eye(3), _DIAGONALS / np.linalg.norm(_DIAGONALS, axis=1)[:, None])
)


@dataclass(frozen=True, eq=False)
class BodyPriors:
    """Prior means and standard deviations of masses and centres of mass; 0: known.

    The mass of a body without mass stays 0. Prior errors of mass and centre of mass are
    independent, so those of the first moment m c are not: h = m c_0 + m_0 (c - c_0) to first
    order.

    Attributes:
        mass: (B,) kg.
        com: (B, 3) m, in the body's frame; 0 of a body without mass.
        mass_std: (B,) kg.
        com_std: (B, 3) m.
        com_low: (B, K) m, least com along BOUND_AXES; -inf for no bound.
        com_high: (B, K) m, the most; inf for none.
        covariance: (4 B, 4 B) of m and h, where errors are not independent.
    """

    mass: Array
    com: Array
    mass_std: Array
    com_std: Array
    com_low: Array
    com_high: Array
    covariance: Array | None = None

    def __post_init__(self) -> None:
        freeze(self)
        for name in ("mass_std", "com_std"):
            if not (getattr(self, name) >= 0.0).all():
                raise IdentificationError(
                    f"{name}: expected standard deviations, 0 or more"
                )
        along = self.com @ BOUND_AXES.T
        if not ((self.com_low <= along) & (along <= self.com_high)).all():
            raise IdentificationError(
                "the prior centres of mass are not all within their bounds"
            )

    @property
    def parameters(self) -> Array:
        """(4 B,) m_k (kg) and h_k (kg m) of the means."""
        return np.column_stack((self.mass, self.mass[:, None] * self.com)).ravel()

    @cached_property
    def used(self) -> Flags:
        """(4 B,) True where a parameter is not known; U of them."""
        spread = np.column_stack((self.mass_std, self.mass[:, None] * self.com_std))
        return np.asarray((spread > 0.0).ravel())

    @property
    def count(self) -> int:
        """Number U of parameters that are not known."""
        return int(self.used.sum())

    @cached_property
    def factor(self) -> Array:
        """(4 B, U) with theta = parameters + factor @ x, x in prior standard deviations."""
        if self.covariance is not None:
            scale = np.sqrt(np.diag(self.covariance))[self.used]
            own = self.covariance[np.ix_(self.used, self.used)] / np.outer(scale, scale)
            values, axes = np.linalg.eigh(own)
            root = np.zeros((len(self.used), len(scale)))
            root[self.used] = scale[:, None] * axes * np.sqrt(np.maximum(values, 1e-12))
            return root
        count = len(self.mass)
        factor = np.zeros((count, 4, count, 4))
        for k in range(count):
            factor[k, :, k, 0] = self.mass_std[k] * np.array([1.0, *self.com[k]])
            factor[k, 1:, k, 1:] = np.diag(self.mass[k] * self.com_std[k])
        return np.asarray(factor.reshape(4 * count, 4 * count)[:, self.used])

    def values(self, x: Array) -> Array:
        """Returns the masses (kg) and first moments (kg m), theta (4 B,).

        Args:
            x: (U,) in prior standard deviations from the means.
        """
        return np.asarray(self.parameters + self.factor @ x)

    def limits(self) -> tuple[Array, Array, Array]:
        """Returns the physical limits G theta <= g: positive masses, CoMs within their hulls.

        Linear in theta, since the bounds of c = h / m are low m <= axes h <= high m.

        Returns:
            G (R, 4 B), g (R,), and the body of each row (R,).
        """
        K, rows, right, owner = len(BOUND_AXES), [], [], []
        for k in np.flatnonzero(self.mass > 0.0):
            own = np.zeros((2 * K + 1, len(self.mass), 4))
            own[:K, k, 0], own[K:-1, k, 0] = self.com_low[k], -self.com_high[k]
            own[:K, k, 1:], own[K:-1, k, 1:] = -BOUND_AXES, BOUND_AXES
            own[-1, k, 0] = -1.0
            bounded = np.isfinite(own).all(axis=(1, 2))
            rows.append(own.reshape(len(own), -1)[bounded])
            # a mass is at least 5 % of the URDF's
            right.append(np.append(np.zeros(2 * K), -0.05 * self.mass[k])[bounded])
            owner.append(np.full(int(bounded.sum()), k))
        return np.vstack(rows), np.concatenate(right), np.concatenate(owner)


def loaded_priors(priors: BodyPriors, difference: float, variance: float) -> BodyPriors:
    """Priors of a robot that may carry a load of which the URDF knows nothing.

    The load's variance on the heaviest body is what the sensors' errors leave of the square of the
    difference; its place is uncertain by the body's size.

    Args:
        priors: by the URDF.
        difference: kg, weight on the feet over gravity less the URDF's mass.
        variance: kg^2, of that difference by the priors of sensors and bodies.
    """
    load, b = np.sqrt(max(difference**2 - variance, 0.0)), int(np.argmax(priors.mass))
    if load == 0.0 or priors.covariance is not None or priors.mass_std[b] == 0.0:
        return priors
    mass_std, com_std = priors.mass_std.copy(), priors.com_std.copy()
    mass_std[b] = np.hypot(mass_std[b], load)
    # times the size of a cube of water
    shift = load / priors.mass[b] * np.cbrt(priors.mass[b] / 1000.0)
    com_std[b] = np.where(com_std[b] > 0.0, np.hypot(com_std[b], shift), 0.0)
    return replace(priors, mass_std=mass_std, com_std=com_std)


def urdf_priors(
    model: RobotModel,
    com_std: ArrayLike,
    mass_std_fraction: ArrayLike = 0.0,
    shape_margin: float | None = None,
) -> BodyPriors:
    """Makes priors whose means are the URDF's values.

    The bounds of a body's centre of mass are those of the hull of its primitive shapes along
    BOUND_AXES, widened by the margin; bodies with meshes or without shapes have none.

    Args:
        model: the robot, B bodies.
        com_std: m, a number, (B,) or (B, 3).
        mass_std_fraction: standard deviation over the mass, a number or (B,); 0: masses are
            known.
        shape_margin: m, outside of the shapes' hull; None: no bounds.
    """
    bodies = model.bodies
    mass = bodies.mass
    com = np.divide(
        bodies.first_moment,
        mass[:, None],
        out=np.zeros((bodies.count, 3)),
        where=mass[:, None] > 0,
    )
    std = np.asarray(com_std, dtype=float)
    std = std[:, None] if std.ndim == 1 else std
    low = np.full((bodies.count, len(BOUND_AXES)), -np.inf)
    high = -low
    if shape_margin is not None:
        along = com @ BOUND_AXES.T
        low, high = _extents(model)
        low, high = (
            np.minimum(low - shape_margin, along),
            np.maximum(high + shape_margin, along),
        )
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

    Args:
        model: the robot.
        settings: the sections `prior` and `links` are used.

    Raises:
        ConfigError: they name a link that does not exist, or one without mass.
    """
    settings.check(model)
    prior, count = settings.prior, model.bodies.count
    mass = np.array(model.bodies.mass)
    # the edge of a cube of water, 1000 kg/m^3
    size = np.cbrt(mass / 1000.0)
    com_std = np.clip(prior.com_std_fraction * size, 0.005, 0.02)  # m
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
    return priors if margin is None else _bound_others(model, priors, margin)


def _bound_others(model: RobotModel, priors: BodyPriors, margin: float) -> BodyPriors:
    """Bounds bodies not of primitive shapes by their links' meshes, or inertia, and a margin."""
    reader, solids = ShapeReader(model.xml, model.path), solid_boxes(model)
    bodies, low, high = model.bodies, priors.com_low.copy(), priors.com_high.copy()
    unknown = ~np.isfinite(low).all(axis=1)
    low[unknown] = high[unknown] = priors.com[unknown] @ BOUND_AXES.T
    for link, center, axes, half in solids:
        b = bodies.body_of_link[link]
        if unknown[b]:
            directions = BOUND_AXES @ bodies.R_body_link[link]
            reach = np.abs(directions @ axes) @ half
            ends = _mesh_extents(reader, model, link, directions)
            least, most = ends or (
                directions @ center - reach,
                directions @ center + reach,
            )
            origin = BOUND_AXES @ bodies.p_body_link[link]
            low[b] = np.minimum(low[b], origin + least - margin)
            high[b] = np.maximum(high[b], origin + most + margin)
    free = unknown & (low == high).all(axis=1)  # no inertia either
    low[free], high[free] = -np.inf, np.inf
    return replace(priors, com_low=low, com_high=high)


def _mesh_extents(
    reader: ShapeReader, model: RobotModel, link: int, axes: Array
) -> tuple[Array, Array] | None:
    """Where a link's shapes end along axes (K, 3), if its mass and inertia may be inside them.

    They may if the URDF's centre of mass is between all ends, and the radius of gyration r about
    it, r^2 = tr I / 2m, is at most half the diagonal of the first three axes' box, and at least a
    twentieth. This excludes a mesh in another unit or frame, and an inertia that was never filled
    in.
    """
    name, com = model.link_names[link], axes @ model.link_coms[link]
    ends = reader.bounds(name, axes, meshes=True) if name in reader.links else None
    if ends is None or not ((ends[0] <= com) & (com <= ends[1])).all():
        return None
    radius = np.sqrt(
        np.trace(model.link_inertias[link]) / (2.0 * model.link_masses[link])
    )
    diagonal = np.linalg.norm((ends[1] - ends[0])[:3])
    # shapes may span up to 20 radii of gyration
    return ends if 2.0 * radius <= diagonal <= 20.0 * radius else None


def solid_boxes(model: RobotModel) -> list[tuple[int, Array, Array, Array]]:
    """Returns the solid boxes that have the links' masses and inertias.

    Half sizes a, b, c of a solid box: I_a = m (b^2 + c^2) / 3, so a^2 = 3 (I_b + I_c - I_a) /
    2m. An inertia that makes the box lighter than foam is a placeholder: it says nothing of the
    size (the fingers of some iCubs would be 0.8 m long, and touch everything).

    Args:
        model: the robot; links without mass, or whose inertia no box has or is a placeholder, are
            left out.

    Returns:
        For each box the link's index, its centre (3,) m, axes (3, 3) and half sizes (3,) m, in
        the link's frame.
    """
    found = []
    foam = 10.0  # kg/m^3
    for link in range(len(model.link_names)):
        mass, inertia = float(model.link_masses[link]), model.link_inertias[link]
        if mass <= 0.0 or not np.isfinite(inertia).all():
            continue
        moments, axes = np.linalg.eigh(inertia)
        square = 1.5 * (moments.sum() - 2.0 * moments) / mass
        if (square > 0.0).all():
            half = np.sqrt(square)
            if mass > foam * 8.0 * half.prod():
                found.append((link, model.link_coms[link], axes, half))
    return found


def _extents(model: RobotModel) -> tuple[Array, Array]:
    """Where the bodies' primitive shapes end along BOUND_AXES, (B, K) m; infinite: not known."""
    reader = ShapeReader(model.xml, model.path)
    bodies = model.bodies
    low = np.full((bodies.count, len(BOUND_AXES)), np.inf)
    high, known = -low, np.ones(bodies.count, dtype=np.bool_)
    for i, name in enumerate(model.link_names):
        b, directions = bodies.body_of_link[i], BOUND_AXES @ bodies.R_body_link[i]
        ends = reader.bounds(name, directions) if name in reader.links else None
        if ends is not None:
            origin = BOUND_AXES @ bodies.p_body_link[i]
            low[b], high[b] = (
                np.minimum(low[b], origin + ends[0]),
                np.maximum(high[b], origin + ends[1]),
            )
        elif model.link_masses[i] > 0.0:
            known[b] = False
    known &= np.isfinite(low).all(axis=1)
    low[~known], high[~known] = -np.inf, np.inf
    return low, high


@dataclass(frozen=True)
class Evidence:
    """Estimates of another method, such as the diagnosis of a walk.

    Attributes:
        errors: mean and standard deviation of constant errors by kind and name, in the units and
            with the signs of SensorErrors.
        coms: by body, (3,) and (3,) m, mean and standard deviation of its CoM less the URDF's, in
            its frame.
    """

    errors: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    coms: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)

    def applied(self, priors: BodyPriors, names: Sequence[str]) -> BodyPriors:
        """Returns priors of bodies that include the evidence on their CoMs.

        Args:
            priors: of the B bodies.
            names: of the bodies.
        """
        com, std = priors.com.copy(), priors.com_std.copy()
        for name, (shift, sigma) in self.coms.items():
            com[names.index(name)] += shift
            std[names.index(name)] = sigma
        along = com @ BOUND_AXES.T
        low, high = (
            np.minimum(priors.com_low, along),
            np.maximum(priors.com_high, along),
        )
        return replace(priors, com=com, com_std=std, com_low=low, com_high=high)


_AXES = ("fx", "fy", "fz", "mx", "my", "mz")
_OTHER = ~np.eye(6, dtype=np.bool_)
# name of the errors of a class; unit of a constant one, and of that of a prismatic joint
ERRORS: Mapping[str, tuple[str, ...]] = {
    "force_bias": ("biases of the force sensors", "N"),
    "moment_bias": ("biases of the moment sensors", "N m"),
    "wrench_gain": ("gains of the force sensors", "1"),
    "common_gain": ("the gain that all force sensors have in common", "1"),
    "pull": ("a pull from outside", "N"),
    "pull_moment": ("the moment of a pull from outside", "N m"),
    "crosstalk": ("crosstalk of the force sensors", "1, m or 1/m"),
    "sensor_position": ("positions of the force sensors", "m"),
    "sensor_rotation": ("orientations of the force sensors", "rad"),
    "joint_offset": ("zero offsets of the encoders", "rad", "m"),
    "compliance": ("elasticity of the joints", "rad/(N m)", "m/N"),
    "sole_compliance": ("elasticity of the soles", "rad/(N m)"),
    "effort_gain": ("gains of the joint efforts", "1"),
    "effort_offset": ("biases of the joint efforts", "N m", "N"),
    "slope": ("the slope of the floor", "rad"),
    "tilt": ("the mounting of the IMU", "rad"),
    "joint_repeatability": ("backlash of the joints",),
    "unevenness": ("an uneven floor",),
    "soles": ("soles that are not flat on one floor",),
    "friction": ("friction of the joints",),
    "drift": ("drift of the force sensors",),
}


def error_unit(model: RobotModel, kind: str, name: str) -> str:
    """Returns the unit of a constant error; "" if not known.

    Args:
        model: the robot.
        kind: of the error, such as joint_offset.
        name: of the sensor or joint.
    """
    _, revolute, *prismatic = ERRORS.get(kind, ("", ""))
    types = dict(zip(model.joint_names, model.joint_types, strict=True))
    return prismatic[0] if prismatic and types.get(name) == "prismatic" else revolute


class SensorErrors:
    """The S constant errors of a robot's sensors as one vector, with their priors.

    Args:
        model: the robot.
        feet: its f feet.
        priors: standard deviations, to be scaled by weight and lever; see SensorPriors.
        gravity: m/s^2.

    Attributes:
        lever: m, half the length of a sole.
        weight: N, of the robot by its URDF.
        joint_scale: (n,) 1 of revolute joints, 0.1 (m/rad) of prismatic ones.
        friction: (n,) N m or N, standard deviation of each joint's friction.
        names: S pairs of kind and name.
        means: (S,) prior means, in the errors' units.
        stds: (S,) prior standard deviations; 0: there is no such error.
        kinds: slice of each kind in the vector.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        priors: SensorPriors,
        gravity: float,
    ) -> None:
        weight = gravity * model.mass
        corners = [
            np.ptp(foot.corners, axis=0).max() / 2.0
            for foot in feet
            if len(foot.corners)
        ]
        # 0.05 m, half a sole, where none is known
        self.lever = lever = float(np.mean(corners)) if corners else 0.05
        self.priors, self.weight = priors, weight
        prismatic = np.array([kind == "prismatic" for kind in model.joint_types])
        # m of a prismatic joint for a radian of a revolute one
        self.joint_scale = np.where(prismatic, 0.1, 1.0)
        torque = np.where(prismatic, weight / lever, weight)
        n, f = model.n_joints, len(feet)
        mixed = np.kron([[1.0, 1.0 / lever], [lever, 1.0]], np.ones((3, 3)))[_OTHER]
        names = [foot.frame for foot in feet]
        axes = [f"{name} {axis}" for name in names for axis in "xyz"]
        pairs = [f"{_AXES[i]} from {_AXES[j]}" for i, j in np.argwhere(_OTHER)]
        joints = list(model.joint_names)
        kinds: dict[str, tuple[list[str], Array]] = {
            "force_bias": (axes, np.full(3 * f, priors.force_bias * weight)),
            "moment_bias": (axes, np.full(3 * f, priors.moment_bias * weight)),
            "wrench_gain": (
                [f"{name} {axis}" for name in names for axis in _AXES],
                np.full(6 * f, priors.wrench_gain),
            ),
            "common_gain": (["all"], np.array([priors.common_gain])),
            "pull": (list("xyz"), np.full(3, priors.pull * weight)),
            "pull_moment": (list("xyz"), np.full(3, priors.pull_moment * weight)),
            "crosstalk": (
                [f"{name} {pair}" for name in names for pair in pairs],
                np.tile(priors.crosstalk * mixed, f),
            ),
            "sensor_position": (axes, np.full(3 * f, priors.sensor_position)),
            "sensor_rotation": (axes, np.full(3 * f, priors.sensor_rotation)),
            "joint_offset": (joints, priors.joint_offset * self.joint_scale),
            "compliance": (
                joints,
                priors.compliance * self.joint_scale / (torque * lever),
            ),
            "sole_compliance": (
                [f"{name} {axis}" for name in names for axis in "xy"],
                np.repeat([len(foot.corners) > 0 for foot in feet], 2)
                * (priors.sole_compliance / (weight * lever)),
            ),
            "effort_gain": (joints, np.full(n, priors.effort_gain)),
            "effort_offset": (joints, priors.effort_offset * torque),
            "slope": (["x", "y"], np.full(2, priors.slope)),
            "tilt": (["x", "y", "z"], np.full(3, priors.tilt)),
        }
        self.friction = priors.friction * torque
        self.stds = np.concatenate([stds for _, stds in kinds.values()])
        self.names = [
            (kind, name) for kind, (some, _) in kinds.items() for name in some
        ]
        self.means = np.zeros(len(self.names))
        ends = np.cumsum([len(some) for some, _ in kinds.values()])
        self.kinds = {
            kind: slice(int(end) - len(some), int(end))
            for end, (kind, (some, _)) in zip(ends, kinds.items(), strict=True)
        }

    @property
    def count(self) -> int:
        """Number S of constant errors."""
        return len(self.names)

    def learn(self, evidence: Evidence) -> None:
        """Replaces the priors of the errors that the evidence contains.

        Args:
            evidence: of another method.
        """
        for i, name in enumerate(self.names):
            known = self.means[i], self.stds[i]
            self.means[i], self.stds[i] = evidence.errors.get(name, known)

    def wrench_matrices(self, errors: Array) -> Array:
        """Returns 1 + E of each foot's sensor, (f, 6, 6): true wrench by the unbiased reading.

        Args:
            errors: (S,) in their units.
        """
        parts = {kind: errors[s] for kind, s in self.kinds.items()}
        position = parts["sensor_position"].reshape(-1, 3)
        common = 1.0 + float(parts["common_gain"][0])
        matrices = np.tile(common * np.eye(6), (len(position), 1, 1))
        for i, (t, phi) in enumerate(
            zip(position, parts["sensor_rotation"].reshape(-1, 3), strict=True)
        ):
            matrices[i] += np.kron(np.eye(2), skew(phi))
            matrices[i, 3:, :3] += skew(t)
            matrices[i] += np.diag(parts["wrench_gain"].reshape(-1, 6)[i])
            matrices[i][_OTHER] += parts["crosstalk"].reshape(-1, 30)[i]
        return matrices

    def unbiased(self, wrenches: Array, errors: Array) -> Array:
        """Returns readings (f, 6) N and N m less their biases.

        Args:
            wrenches: (f, 6) N and N m, as read, NaN counts as 0; (0, 6) without sensors: the
                result is 0.
            errors: (S,) in their units.
        """
        force, moment = (
            errors[self.kinds[kind]] for kind in ("force_bias", "moment_bias")
        )
        biases = np.hstack((force.reshape(-1, 3), moment.reshape(-1, 3)))
        return (
            np.nan_to_num(wrenches) - biases
            if len(wrenches)
            else np.zeros(biases.shape)
        )

    def by_name(self, values: Array) -> Mapping[str, dict[str, float]]:
        """Sorts values by kind and name; only those with a prior standard deviation above 0.

        Args:
            values: (S,) such as estimates or standard deviations.
        """
        result: dict[str, dict[str, float]] = {}
        for (kind, name), value, std in zip(self.names, values, self.stds, strict=True):
            if std > 0.0:
                result.setdefault(kind, {})[name] = float(value)
        return result

    def wrench_columns(
        self, maps: Array, sensors: Array, read: Array
    ) -> dict[str, Array]:
        """Returns the derivatives of -(maps @ true wrenches) by the wrenches' errors, by kind.

        Args:
            maps: (R, f, 6) from true wrenches in the sensors' axes to rows.
            sensors: (R, f, 6) from readings to rows.
            read: (f, 6) N and N m, readings less bias.

        Returns:
            (R, ...) arrays by kind.
        """
        pairs = np.einsum("rfi,fj->rfij", maps, read)
        force, moment = (
            np.array([skew(v) for v in part]).reshape(-1, 3, 3)
            for part in np.hsplit(read, 2)
        )
        by_force = np.einsum("rfi,fij->rfj", maps[:, :, :3], force)
        return {
            "force_bias": sensors[:, :, :3],
            "moment_bias": sensors[:, :, 3:],
            "wrench_gain": -np.einsum("rfii->rfi", pairs),
            "common_gain": -np.einsum("rfii->r", pairs),
            "crosstalk": -pairs[:, :, _OTHER],
            "sensor_position": np.einsum("rfi,fij->rfj", maps[:, :, 3:], force),
            "sensor_rotation": by_force
            + np.einsum("rfi,fij->rfj", maps[:, :, 3:], moment),
        }
