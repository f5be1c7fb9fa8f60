"""Position servos and drives.

Gains come from a robot's configuration, or are chosen such that any robot stays at rest. Drives
have limits and backlash; limited targets move as fast as the drive can: [Cominoli] 4.5.2, "the
joint reaches max acceleration, then max speed, then slows down, and finally stops smoothly".
Targets within the limits are followed exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from com_model import RobotModel, ServoGains
from com_model.arrays import Array
from com_model.bodies import loads_about
from com_simulation.exceptions import WorldError

NATURAL_FREQUENCY = 30.0  # rad/s, of a joint under a default servo
SAG = 0.002  # rad or m, at most, of a default servo whose joint carries its load out sideways


@dataclass(frozen=True, eq=False)
class Servos:
    """Position servos, tau = stiffness (target - q) - damping qd, |tau| <= effort.

    Attributes:
        stiffness: (n,) N m/rad or N/m.
        damping: (n,) N m s/rad or N s/m.
        armature: (n,) kg m^2 or kg, inertia of the drive, seen at the joint.
        effort: (n,) N m or N; inf where there is no limit.
    """

    stiffness: Array
    damping: Array
    armature: Array
    effort: Array


def joint_loads(
    robot: RobotModel, mj: mujoco.MjModel, data: mujoco.MjData, load_fraction: Array
) -> Array:
    """Computes the load of each joint in the nominal posture, about its axis.

    A joint moves the bodies beyond it; one between the base and a foot on the ground moves all
    the others as well, and the larger of the two loads counts: the whole for gains, the foot's
    fraction for the torque of the posture. Joints that mimic it add their own.

    Args:
        robot: the robot.
        mj: its MuJoCo model.
        data: the nominal posture, with the poses of bodies computed.
        load_fraction: (n,) of the weight, carried by the foot beyond each joint; 0: no foot.

    Returns:
        (4, n) by row: the inertia that a joint moves, kg m^2 or kg; its weight times its
        distance, N m or N; the torque of gravity, N m or N; the inertia of the bodies beyond the
        joint.
    """
    loads, gravity = np.zeros((4, robot.n_joints)), mj.opt.gravity
    R, p = data.xmat[1:].reshape(-1, 3, 3), data.xpos[1:]
    for body in range(1, robot.bodies.count):
        joint, multiplier = (
            robot.bodies.q_index[body],
            abs(robot.bodies.multiplier[body]),
        )
        load, others = (
            np.array(
                [
                    inertia,
                    np.linalg.norm(lever) * np.linalg.norm(gravity),
                    abs(lever @ gravity),
                ]
            )
            for inertia, lever in loads_about(robot.bodies, R, p, body)
        )
        squared, subtree = multiplier**2, load[0]
        if load_fraction[joint] > 0:
            load = np.maximum(load, others * [1.0, 1.0, load_fraction[joint]])
        loads[:, joint] += np.array([squared, multiplier, multiplier, squared]) * [
            *load,
            subtree,
        ]
    return loads


def make_servos(
    robot: RobotModel,
    loads: Array,
    step: float,
    gains: Callable[[str], ServoGains | None],
) -> Servos:
    """Makes the servos: gains of the configuration; others keep the robot at rest.

    stiffness = max(w^2 I, m g d / sag),  damping = 2 sqrt(stiffness I)

    The default is critically damped. The armature keeps the free end of a stiff joint slow
    enough for the physics. An effort limit in the URDF that could not carry the nominal posture
    is ignored.

    Args:
        robot: the robot.
        loads: (4, n) by `joint_loads`.
        step: s, of the physics.
        gains: gains of the configuration by the name of a joint (RobotConfig.servo.gains), which
            replace the defaults; returns None: none.

    Returns:
        Gains, armatures and limits of the n joints.
    """
    moved, moment, torque, subtree = loads
    smallest = 1e-5  # kg m^2 or kg, so that a joint without masses has a servo too
    inertia = np.maximum(moved, smallest)
    stiffness = np.maximum(NATURAL_FREQUENCY**2 * inertia, moment / SAG)
    # reflected inertia of a default drive over the inertia that it moves
    least = 0.05 * np.maximum(subtree, smallest)
    # natural frequency times physics step, at most: contacts are blind to the damping
    armature = np.maximum(least, stiffness * (step / 0.2) ** 2 - subtree)
    limits = robot.effort_limits
    # a limit from the URDF must exceed the posture's torque by this factor
    weak = limits < 1.2 * torque + 1e-9
    damping, effort = 2.0 * np.sqrt(stiffness * inertia), np.where(weak, np.inf, limits)
    servos = Servos(stiffness, damping, armature, effort)
    for i, name in enumerate(robot.joint_names):
        given = gains(name)
        for key, array in vars(servos).items():
            value = getattr(given, key, None)
            if value is not None:
                array[i] = value
    return servos


KINDS = (("speed", "rad/s"), ("acceleration", "rad/s^2"))


class Drive:
    """Limits speed and acceleration of the targets of n joints, step by step.

    With the target c, the output x, the step h, and n steps to brake with a from d = |c - x|:

      v = c' + sgn(c - x) (d / (n h) + a h (n - 1) / 2),  n = ceil(sqrt(1/4 + 2 d / (a h^2)) -
      1/2)

    clipped to the limits. The servo's target is x + lag v, so that damping does not delay it.

    Args:
        robot: the robot.
        velocity: (n,) or one number, rad/s or m/s; inf: no limit.
        acceleration: (n,) or one number, rad/s^2 or m/s^2; inf: no limit.
        lag: s, damping over stiffness of the servos, (n,) or one number.

    Raises:
        WorldError: a limit is not above 0.
    """

    def __init__(
        self,
        robot: RobotModel,
        velocity: ArrayLike = np.inf,
        acceleration: ArrayLike = np.inf,
        lag: ArrayLike = 0.0,
    ) -> None:
        self._names, n = robot.joint_names, robot.n_joints
        self._limits = np.array(
            [np.broadcast_to(v, n) for v in (velocity, acceleration)], float
        )
        self._lag = np.array(lag, float)
        if not (self._limits > 0.0).all():
            raise WorldError("limits of speed and acceleration: give numbers above 0")
        self.reset(np.zeros(n))

    def reset(self, posture: Array) -> None:
        """Sets the drive to rest at a posture.

        Args:
            posture: (n,) rad or m.
        """
        self._c, self._x, self._v, self._rate = (
            posture,
            posture,
            0.0 * posture,
            0.0 * posture,
        )
        self._worst, self._when = np.zeros((2, 2, len(posture)))  # over the limits; s

    def settled(self, target: Array) -> bool:
        """Whether all joints rest at a target.

        Args:
            target: (n,) rad or m.
        """
        return bool((self._x == target).all() and not self._v.any())

    def step(self, target: Array, h: float, time: float = 0.0) -> Array:
        """Moves towards a target, within the limits of velocity and acceleration.

        Args:
            target: (n,) rad or m.
            h: s, step.
            time: s, simulated, for the report of targets beyond the limits.

        Returns:
            (n,) rad or m, targets of the servos.
        """
        most, a = self._limits
        rate, gap = (target - self._c) / h, self._c - self._x
        asked = np.abs([rate, (rate - self._rate) / h]) / self._limits
        self._when = np.where(asked > self._worst, time, self._when)
        self._worst = np.maximum(self._worst, asked)
        far, reach = np.abs(gap), np.minimum(a * h, 1e12)
        n = np.maximum(np.ceil(np.sqrt(0.25 + 2.0 * far / (reach * h)) - 0.5), 1.0)
        brake = far / (n * h) + reach * (n - 1.0) / 2.0
        v = np.clip(rate + np.sign(gap) * brake, -most, most)
        v = np.clip(v, self._v - a * h, self._v + a * h)
        reached = np.abs(v * h - (target - self._x)) < 1e-15
        self._x = np.where(reached, target, self._x + v * h)
        self._c, self._v, self._rate = target, v, rate
        return np.asarray(self._x + self._lag * v)

    def excess(self) -> dict[tuple[str, str], str]:
        """Targets beyond the limits so far.

        Returns:
            The worst one in words, by joint and kind of limit.
        """
        found = {}
        # relative, over a limit, by rounding
        for kind, i in np.argwhere(self._worst > 1.0 + 1e-6).tolist():
            limit, when, (name, unit) = (
                self._limits[kind, i],
                self._when[kind, i],
                KINDS[kind],
            )
            asked = f"{name} {self._worst[kind, i] * limit:.3g} {unit} asked for at {when:.3f} s"
            text = f"{self._names[i]}: {asked}, limit {limit:.3g}: it moves as fast as it can"
            found[self._names[i], name] = text
        return found


def backlash(robot: RobotModel, widths: ArrayLike) -> Callable[[mujoco.MjSpec], None]:
    """Makes an edit of build_world that adds backlash between drives and links.

    The servo, its armature and the encoder stay on the motor's side; the link moves freely
    within +- width / 2 of it, so that after a reversal it follows only when the play is passed.

    Args:
        robot: the robot.
        widths: rad or m, of all joints or of each (n,); 0: none.

    Returns:
        Changes a specification.

    Raises:
        WorldError: a width is less than 0.
    """
    given = np.array(np.broadcast_to(widths, robot.n_joints), float)
    if not (given >= 0.0).all():
        raise WorldError("backlash: give widths in rad or m, 0 or more")

    def edit(spec: mujoco.MjSpec) -> None:
        bodies = robot.bodies
        for i in np.flatnonzero(given):
            b = bodies.joint_names.index(robot.joint_names[i])
            motor = spec.joint(f"joint{b}")
            gap = spec.body(f"body{b}").add_joint(
                name=f"backlash{b}", axis=bodies.axis[b]
            )
            gap.type, gap.limited = motor.type, mujoco.mjtLimited.mjLIMITED_TRUE
            # kg m^2 or kg, of the link's side: MuJoCo divides by its inertia
            gap.range, gap.armature = [-given[i] / 2.0, given[i] / 2.0], 1e-5
            # s, time constant of the contact at the ends of the play
            gap.solref_limit = [max(0.004, 2.0 * spec.option.timestep), 1.0]
            # N m or N: without it the link rattles in its backlash
            bearing = spec.add_tendon(name=f"bearing{b}", frictionloss=0.02)
            for joint in (motor, gap):
                bearing.wrap_joint(joint.name, 1.0)

    return edit
