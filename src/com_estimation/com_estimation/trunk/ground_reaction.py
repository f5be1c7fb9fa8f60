"""Forces of the ground on the feet, from joint torques or from force sensors in the feet.

All vectors are in the axes of the root link. tau is the torque that an actuator applies to its
joint; f is the force of the ground on the foot. With J the Jacobian of the contact point, a leg's
equations of motion are tau + J^T f = ID(q, qd, qdd), hence

  f = J^-T (ID - tau),   and for a leg taken as massless   f = -J^-T tau.

The latter is [Ding] eq. 21, where the minus sign is in the convention for tau.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from com_estimation.trunk.interface import Sample
from com_estimation.trunk.motion import Motion, MotionFilter, cross
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array, Flags
from com_model.contact import CONTACT_LOAD, ContactState
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.dynamics.link_frames import LinkFrames
from com_model.legs import LEGS, Leg

TORQUE, INVERSE_DYNAMICS, SENSOR = "torque", "inverse_dynamics", "sensor"
METHODS = (TORQUE, INVERSE_DYNAMICS, SENSOR)


# of a leg's Jacobian: beyond it torques do not show the foot's force
LARGEST_CONDITION = 100.0
LEG_NAMES = tuple(f"{side}_{end}" for side, end in LEGS)
_LEVEL = np.array([0.0, 0.0, 1.0])
BANDWIDTH = 250.0  # rad/s, of the filter that all signals go through


@dataclass(frozen=True, eq=False)
class GroundReaction:
    """Forces of the ground on the four feet; NaN where unknown.

    Attributes:
        forces: (4, 3) N, root axes.
        std: (4, 3) N, standard deviations of their components.
        contact: (4,) the feet that stand, as far as known.
        method: "torque", "inverse_dynamics" or "sensor".
        covariance: (4, 3, 3) N^2, of each force; None when only std is known.
        problems: why forces are unknown, and how to fix it.
    """

    forces: Array
    std: Array
    contact: Flags
    method: str
    covariance: Array | None = None
    problems: tuple[str, ...] = ()


class Contacts(NamedTuple):
    """Where the feet touch the ground, root frame.

    Attributes:
        points: (4, 3) m, the lowest points of the balls.
        jacobians: (4, 3, 3) m/rad or m/m, of the feet's points there, by their legs' joints.
    """

    points: Array
    jacobians: Array


class LegGeometry:
    """Contact points of four legs and their Jacobians.

    Args:
        model: the robot.
        legs: its legs, with the balls of their feet.
    """

    def __init__(self, model: RobotModel, legs: Sequence[Leg]) -> None:
        self.joints = np.array([leg.joints for leg in legs])
        names, balls = (
            [model.bodies.names[leg.body] for leg in legs],
            [leg.ball for leg in legs],
        )
        self._balls = LinkFrames(model, names, balls)
        self._balls.motions(
            model.neutral
        )  # its kernel is loaded before the first sample
        self._radii = np.array([leg.radius for leg in legs])[:, None]

    def contacts(self, q: Array, up: Array) -> Contacts:
        """Contact points and their Jacobians at one configuration.

          x = x_ball - r up,   column j of J = v_j - w_j x r up, with v_j, w_j those of the ball

        The contact point is the bottom of the ball, not its centre: the columns are those of the
        material point that touches the ground.

        Args:
            q: (n,) joint positions, rad or m.
            up: (3,) unit vector against gravity, root axes.

        Returns:
            Points and Jacobians in the root frame.
        """
        _, balls, jacobian = self._balls.motions(q)
        down, columns = -self._radii * up, jacobian.transpose(0, 2, 1)
        own = columns[np.arange(len(balls))[:, None], self.joints]  # (4, 3, 6)
        moves = own[..., :3] + cross(own[..., 3:], down[:, None])
        return Contacts(balls + down, moves.transpose(0, 2, 1))


def torque_forces(
    jacobians: Array,
    efforts: Array,
    leg_torques: Array | None = None,
    names: Sequence[str] = LEG_NAMES,
) -> GroundReaction:
    """Forces from joint torques, f = J^-T (ID - tau).

    Without leg_torques the legs are assumed massless ([Ding] eq. 21), which leaves out the
    torques that carry and swing them: a leg of mass m_l in the air seems to be pushed by some
    m_l (g + acceleration of its mass).

    The covariance is A diag((0.02 tau)^2 + (0.5 N m)^2) A^T with A = J^-T.

    Args:
        jacobians: (4, 3, 3) of the contact points, root axes.
        efforts: tau (4, 3) N m, by leg.
        leg_torques: ID (4, 3) N m, torques from inverse dynamics without contacts; None:
            massless legs.
        names: of the four legs, for the texts of problems.

    Returns:
        Forces on the feet, NaN for a leg near a singularity (a straight knee) or without
        efforts. No foot counts as in contact.
    """
    condition = np.linalg.cond(jacobians, "fro")  # |J| |J^-1|
    regular, inverse = condition <= LARGEST_CONDITION, np.full(jacobians.shape, np.nan)
    inverse[regular] = np.linalg.inv(jacobians[regular]).transpose(0, 2, 1)  # J^-T
    needed = -efforts if leg_torques is None else leg_torques - efforts
    variance = (0.02 * efforts) ** 2 + 0.5**2
    covariance = np.einsum("lij,lj,lkj->lik", inverse, variance, inverse)
    return GroundReaction(
        forces=np.einsum("lij,lj->li", inverse, needed),
        std=np.sqrt(np.einsum("lii->li", covariance)),
        contact=np.zeros(len(jacobians), dtype=np.bool_),
        method=TORQUE if leg_torques is None else INVERSE_DYNAMICS,
        covariance=covariance,
        problems=_torque_problems(condition, needed, names),
    )


def _torque_problems(
    condition: Array, torques: Array, names: Sequence[str]
) -> tuple[str, ...]:
    problems = []
    for name, number, torque in zip(names, condition.tolist(), torques, strict=True):
        if np.isnan(number):
            problems.append(f"{name}: joint positions are not known")
        elif number > LARGEST_CONDITION:
            problems.append(
                f"{name}: the leg is nearly straight (condition number {number:.0f} > "
                f"{LARGEST_CONDITION:.0f}), so torques do not show the force on its foot: bend its "
                "knee"
            )
        elif np.isnan(torque).any():
            problems.append(
                f"{name}: not all efforts are known: check effort in joint_states"
            )
    return tuple(problems)


def sensor_forces(measured: Array) -> GroundReaction:
    """Forces of the ground from sensors in the feet ([Ding] eq. 20).

    A sensor between foot and shank measures the ground's force minus the force that carries and
    accelerates the foot itself. The standard deviation of a component is 2 % of it and 1 N.

    Args:
        measured: (4, 3) N, root axes; NaN where unknown.

    Returns:
        The forces with their covariance. No foot counts as in contact.
    """
    std = np.sqrt((0.02 * measured) ** 2 + 1.0)
    contact, covariance = (
        np.zeros(len(measured), dtype=np.bool_),
        std[:, :, None] ** 2 * np.eye(3),
    )
    return GroundReaction(measured, std, contact, SENSOR, covariance)


class ReactionSource:
    """Forces of the ground on the four feet of a moving robot, by a method chosen by name.

    Args:
        model: the robot.
        legs: its four legs.
        method: "torque" ([Ding] eq. 21), "inverse_dynamics" or "sensor" ([Ding] eq. 20).
        armature: (n,) kg m^2 or kg, reflected inertia of the drives; None: none.

    Raises:
        ValueError: there is no such method.
    """

    def __init__(
        self,
        model: RobotModel,
        legs: Sequence[Leg],
        method: str,
        armature: ArrayLike | None = None,
    ) -> None:
        if method not in METHODS:
            raise ValueError(
                f"no method {method!r} for forces: expected one of {METHODS}"
            )
        self._method = method
        self._names = [leg.name for leg in legs]
        self._geometry = LegGeometry(model, legs)
        self._dynamics = Dynamics(model, armature)

    def at(self, motion: Motion) -> tuple[GroundReaction, Array]:
        """Forces and contact points at one motion.

        Where gravity is unknown, the lowest point of a ball is taken along -z of the root link,
        and forces from torques are exact except for the ball's radius.

        Args:
            motion: filtered motion of the robot.

        Returns:
            The forces, and the contact points (4, 3) m in the root frame; NaN where unknown.
        """
        up = motion.up if np.isfinite(motion.up).all() else _LEVEL
        contacts, joints = self._geometry.contacts(motion.q, up), self._geometry.joints
        if self._method == SENSOR:
            return sensor_forces(motion.foot_forces), contacts.points
        needed = None
        if self._method == INVERSE_DYNAMICS:
            state = motion.q, motion.qd, motion.qdd
            root = motion.omega, motion.omega_dot, motion.specific_force
            needed = self._dynamics.inverse_dynamics(state, root)[1][joints]
        efforts = motion.efforts[joints]
        found = torque_forces(contacts.jacobians, efforts, needed, self._names)
        return found, contacts.points

    def unknown(self) -> GroundReaction:
        """Forces before the first sample: all NaN, no contact."""
        nothing = np.full((4, 3), np.nan)
        return GroundReaction(
            nothing, nothing, np.zeros(4, dtype=np.bool_), self._method
        )


def clear_feet(points: Array, up: Array, least: float = 0.03) -> Flags:
    """Which feet are above the ground, by the posture alone.

    A foot is clear when it is higher than the lowest one, and above the plane through the other
    three, which counts on a slope: height of left front minus right front minus left hind plus
    right hind, with its sign.

    Args:
        points: (4, 3) m, contact points in the order of legs.LEGS, root axes.
        up: (3,) unit vector against gravity, root axes.
        least: height over the distance of diagonal feet; uneven ground and the legs' give are
            below 0.03, a ninth of the hips' height in a step is twice that.

    Returns:
        (4,) flags; True where points are unknown.
    """
    heights = points @ up
    twist = heights[0] - heights[1] - heights[2] + heights[3]
    above = np.minimum(
        twist * np.array([1.0, -1.0, -1.0, 1.0]), heights - heights.min()
    )
    return np.asarray(~(above < least * np.linalg.norm(points[0] - points[3])))


class ForceMeter:
    """Measures the ground's forces on four feet, and their contact, at its own rate.

    It does not depend on an estimator: forces are known while the samples of one are held back.

    Args:
        model: the robot.
        config: its feet, IMU and servos.
        legs: its four legs.
        method: "torque", "inverse_dynamics" or "sensor".
        rate_hz: 1/s, highest rate of samples that are used; the others are skipped.
        contact_load: fraction of the weight from which a foot is in contact, see ContactState.
        bandwidth: rad/s, of the filter.

    Attributes:
        latest: forces at the last sample that was used.
        points: (4, 3) m, contact points of the feet, root frame.
        motion: the filtered motion at that time; None before the first one.
        tilt: rad, of the root link against gravity; NaN when unknown.
        load: fraction of the robot's weight that the feet carry together; NaN when unknown.
        lift: over g, of the specific force against gravity; NaN when unknown.
        clear: (4,) feet that are above the ground, see clear_feet.
    """

    def __init__(
        self,
        model: RobotModel,
        config: RobotConfig,
        legs: Sequence[Leg],
        method: str,
        rate_hz: float = 200.0,
        contact_load: float = CONTACT_LOAD,
        bandwidth: float = BANDWIDTH,
    ) -> None:
        self._filter = MotionFilter(model, config, bandwidth)
        rotors = config.rotors(model.joint_names)
        self._source = ReactionSource(model, legs, method, rotors)
        self._weight = model.mass * GRAVITY
        self._contact = ContactState(self._weight, contact_load, len(legs))
        self._period = 1.0 / rate_hz
        self.reset()

    def reset(self) -> None:
        """Forgets all samples."""
        self._filter.reset()
        self._contact.reset()
        self._time = -np.inf
        self.tilt = self.load = self.lift = np.nan
        self.clear = np.ones(4, dtype=np.bool_)
        self.motion: Motion | None = None
        self.latest = self._source.unknown()
        self.points = np.full((len(self.latest.forces), 3), np.nan)

    @property
    def known(self) -> Flags:
        """(4,) feet whose contact is known."""
        return self._contact.known

    def update(self, sample: Sample) -> GroundReaction | None:
        """Processes a sample.

        Args:
            sample: sensor readings of one instant.

        Returns:
            The forces; None when the sample is not due, or has the time of the one before.
        """
        # a sample may be early by 0.1 ms and still be due
        if 0.0 <= sample.time - self._time < self._period - 1e-4:
            return None
        self._time = sample.time
        motion = self._filter.update(sample)
        if motion is None:
            return None
        self.motion = motion
        found, self.points = self._source.at(motion)
        level = not np.isfinite(motion.up).all()
        up = _LEVEL if level else motion.up
        self.tilt = np.nan if level else float(np.arccos(np.clip(up[2], -1.0, 1.0)))
        self.clear = clear_feet(self.points, up)
        loads = found.forces @ up
        self.load = float(loads.sum()) / self._weight
        self.lift = float(motion.specific_force @ up) / GRAVITY
        self.latest = replace(found, contact=self._contact.update(sample.time, loads))
        return self.latest
