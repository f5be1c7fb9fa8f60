"""Forces of the ground on the feet, from joint torques or from force sensors in the feet.

All vectors are in the axes of the root link. tau is the torque that an actuator applies to its
joint; f is the force of the ground on the foot. With J the Jacobian of the contact point, a leg's
equations of motion are tau + J^T f = ID(q, qd, qdd), hence

  f = J^-T (ID - tau),   and for a leg taken as massless   f = -J^-T tau.

The latter is [Ding] eq. 21, where the minus sign is in the convention for tau.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from com_model import RobotModel
from com_model.arrays import Array, Flags
from com_model.bodies import PRISMATIC
from com_model.dynamics.link_frames import LinkFrames
from com_model.legs import Leg

TORQUE, INVERSE_DYNAMICS, SENSOR = "torque", "inverse_dynamics", "sensor"
METHODS = (TORQUE, INVERSE_DYNAMICS, SENSOR)


@dataclass(frozen=True)
class ForceNoise:
    """Standard deviations of what forces are made from."""

    relative: float = 0.02  # fraction of a torque, or of a component of a measured force
    torque: float = 0.5  # N m (N for a sliding joint), of each joint torque besides
    force: float = 1.0  # N, of each component of a foot sensor's force besides
    # condition number (Frobenius norm, 3 at best) of a leg's Jacobian beyond which joint
    # torques do not show the force on its foot
    largest_condition: float = 100.0


@dataclass(frozen=True, eq=False)
class GroundReaction:
    """Forces of the ground on the four feet; NaN where not known."""

    forces: Array  # (4, 3) N, root axes
    std: Array  # (4, 3) N, standard deviations of their components
    contact: Flags  # (4,) the feet that stand, as far as known
    method: str  # "torque", "inverse_dynamics" or "sensor"
    covariance: Array | None = None  # (4, 3, 3) N^2, of each force; None when only std is known
    problems: tuple[str, ...] = ()  # why forces are not known, and how to fix it


@dataclass(frozen=True, eq=False)
class Contacts:
    """Where the feet touch the ground, root frame."""

    points: Array  # (4, 3) m, the lowest points of the balls
    # (4, 3, 3) m/rad or m/m, of the points of the feet that are there now, by the joints of
    # their own legs
    jacobians: Array


class LegGeometry:
    """Contact points of four legs and their Jacobians.

    Args:
        legs: Its legs (com_model.legs.quadruped_legs).
    """

    def __init__(self, model: RobotModel, legs: Sequence[Leg]) -> None:
        bodies = model.bodies
        chain = _chain_bodies(model, legs)
        self.joints = np.array([leg.joints for leg in legs])
        self._frames = LinkFrames(model, [bodies.names[b] for b in chain.ravel()])
        self._axes = bodies.axis[chain]
        self._slides = (bodies.joint_type[chain] == PRISMATIC)[..., None]
        self._balls = np.array([leg.ball for leg in legs])
        self._radii = np.array([leg.radius for leg in legs])[:, None]

    def contacts(self, q: Array, up: Array) -> Contacts:
        """Contact points and Jacobians.

          x = x_ball - r up,   column j of J = z_j x (x - o_j), or z_j for a sliding joint

        The contact point is the bottom of the ball, not its centre: the columns are those of the
        material point that touches the ground.

        Args:
            q: (n,) rad or m.
            up: (3,) unit vector against gravity, root axes.
        """
        R, p = self._frames.poses(q)
        R, p = R.reshape(4, 3, 3, 3), p.reshape(4, 3, 3)
        balls = p[:, 2] + np.einsum("lij,lj->li", R[:, 2], self._balls)
        points = balls - self._radii * up
        axes = np.einsum("lkij,lkj->lki", R, self._axes)
        arms = points[:, None, :] - p
        columns = np.where(self._slides, axes, cross(axes, arms))
        return Contacts(points, columns.transpose(0, 2, 1))


def _chain_bodies(model: RobotModel, legs: Sequence[Leg]) -> NDArray[np.int64]:
    """The moving bodies of each leg, from hip to foot, (4, 3)."""
    chains = []
    for leg in legs:
        middle = int(model.bodies.parent[leg.body])
        chains.append((int(model.bodies.parent[middle]), middle, leg.body))
    return np.array(chains, dtype=np.int64)


def cross(a: Array, b: Array) -> Array:
    """Cross products along the last axis; numpy's own takes ten times as long for a few rows."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack((y * w - z * v, z * u - x * w, x * v - y * u), axis=-1)


def inverse_transposes(jacobians: Array) -> tuple[Array, Array]:
    """J^-T of 3x3 Jacobians, and their condition numbers |J| |J^-1| in the Frobenius norm.

    With columns a, b, c of J, those of J^-T are b x c, c x a, a x b over det J.

    Args:
        jacobians: (k, 3, 3).

    Returns:
        J^-T (k, 3, 3) and condition numbers (k,); a singular J has infinite ones.
    """
    a, b, c = jacobians[..., 0], jacobians[..., 1], jacobians[..., 2]
    columns = np.stack((cross(b, c), cross(c, a), cross(a, b)), axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = columns / np.sum(a * columns[..., 0], axis=-1)[:, None, None]
        condition = _norm(jacobians) * _norm(inverse)
    return inverse, np.where(np.isnan(condition) & np.isfinite(_norm(jacobians)), np.inf, condition)


def _norm(matrices: Array) -> Array:
    return np.asarray(np.sqrt(np.sum(matrices * matrices, axis=(-2, -1))))


def torque_forces(
    jacobians: Array,
    efforts: Array,
    leg_torques: Array | None = None,
    noise: ForceNoise | None = None,
    names: Sequence[str] = ("left_front", "right_front", "left_hind", "right_hind"),
) -> GroundReaction:
    """Forces from joint torques, f = J^-T (ID - tau).

    Without leg_torques the legs are taken as massless ([Ding] eq. 21), which leaves out what it
    takes to carry and to swing them: a leg of mass m_l in the air seems to be pushed by some
    m_l (g + acceleration of its mass).

    The covariance is A diag((relative tau)^2 + torque^2) A^T with A = J^-T.

    Args:
        jacobians: (4, 3, 3) of the contact points, root axes.
        efforts: (4, 3) N m, tau by leg.
        leg_torques: (4, 3) N m, what inverse dynamics asks of the joints without contacts, ID.
        names: Of the legs, for messages.

    Returns:
        Forces; NaN for a leg near a singularity (a straight knee) or without efforts. No foot is
        said to be in contact.
    """
    noise = noise or ForceNoise()
    inverse, condition = inverse_transposes(jacobians)
    inverse = np.where((condition > noise.largest_condition)[:, None, None], np.nan, inverse)
    needed = -efforts if leg_torques is None else leg_torques - efforts
    variance = (noise.relative * efforts) ** 2 + noise.torque**2
    covariance = np.einsum("lij,lj,lkj->lik", inverse, variance, inverse)
    return GroundReaction(
        forces=np.einsum("lij,lj->li", inverse, needed),
        std=np.sqrt(np.einsum("lii->li", covariance)),
        contact=np.zeros(len(jacobians), dtype=np.bool_),
        method=TORQUE if leg_torques is None else INVERSE_DYNAMICS,
        covariance=covariance,
        problems=_torque_problems(condition, needed, noise.largest_condition, names),
    )


def _torque_problems(
    condition: Array, torques: Array, largest: float, names: Sequence[str]
) -> tuple[str, ...]:
    problems = []
    for name, number, torque in zip(names, condition.tolist(), torques, strict=True):
        if np.isnan(number):
            problems.append(f"{name}: joint positions are not known")
        elif number > largest:
            problems.append(
                f"{name}: the leg is nearly straight (condition number {number:.0f} > "
                f"{largest:.0f}), so torques do not show the force on its foot: bend its knee"
            )
        elif np.isnan(torque).any():
            problems.append(f"{name}: not all efforts are known: check effort in joint_states")
    return tuple(problems)


def sensor_forces(
    measured: Array, R_root_sensor: Array, signs: Array, noise: ForceNoise | None = None
) -> GroundReaction:
    """Forces from sensors in the feet, f = sign R_root_sensor f_sensor ([Ding] eq. 20: sign -1).

    A sensor between foot and shank feels the ground's force less what carries and accelerates the
    foot itself.

    Args:
        measured: (4, 3) N, in each sensor's axes; NaN where not known.
        R_root_sensor: (4, 3, 3).
        signs: (4,) 1 where a sensor says the force of the ground on the robot, -1 of the robot on
            the ground.
    """
    noise = noise or ForceNoise()
    variance = (noise.relative * measured) ** 2 + noise.force**2
    covariance = np.einsum("lij,lj,lkj->lik", R_root_sensor, variance, R_root_sensor)
    return GroundReaction(
        forces=signs[:, None] * np.einsum("lij,lj->li", R_root_sensor, measured),
        std=np.sqrt(np.einsum("lii->li", covariance)),
        contact=np.zeros(len(measured), dtype=np.bool_),
        method=SENSOR,
        covariance=covariance,
    )
