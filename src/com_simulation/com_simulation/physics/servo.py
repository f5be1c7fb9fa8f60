"""Position servos: gains from a robot's configuration, else such that any robot holds still."""

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from com_model import RobotModel, ServoGains
from com_model.arrays import Array

NATURAL_FREQUENCY = 30.0  # rad/s, of a joint under a default servo
SAG = 0.002  # rad or m, at most, of a default servo whose joint carries its load out sideways
SMALLEST_INERTIA = 1e-5  # kg m^2 or kg, so that a joint without masses has a servo too
ARMATURE_FRACTION = 0.05  # reflected inertia of a default drive over the inertia that it moves
FASTEST = 0.2  # natural frequency times physics step, at most: contacts are blind to the damping
SPARE_EFFORT = 1.2  # a limit from the URDF must leave this over what the posture needs


@dataclass(frozen=True, eq=False)
class Servos:
    """Position servos, tau = stiffness (target - q) - damping qd, |tau| <= effort."""

    stiffness: Array  # (n,) N m/rad or N/m
    damping: Array  # (n,) N m s/rad or N s/m
    armature: Array  # (n,) kg m^2 or kg, inertia of the drive, seen at the joint
    effort: Array  # (n,) N m or N; inf where there is no limit


def joint_loads(
    robot: RobotModel, mj: mujoco.MjModel, data: mujoco.MjData, load_fraction: Array
) -> Array:
    """Measures what each joint carries in the nominal posture, (4, n), by its axis.

    Rows: the inertia of what it moves, kg m^2 or kg; the weight of that times its distance, N m or
    N; the torque of gravity, N m or N; the inertia of the bodies beyond the joint.

    A joint moves the bodies beyond it; one between the base and a foot on the ground moves all the
    others as well, and the greater of the two loads counts: the whole for gains, what the
    foot carries for the torque of the posture, `load_fraction` (n,) of the weight. Joints that
    mimic it add their own.
    """
    loads = np.zeros((4, robot.n_joints))
    for body in range(1, robot.bodies.count):
        joint, multiplier = robot.bodies.q_index[body], abs(robot.bodies.multiplier[body])
        beyond = np.zeros(robot.bodies.count, dtype=bool)
        beyond[body : robot.bodies.subtree_end[body]] = True
        load = subtree = _load_about(mj, data, body, beyond)
        if load_fraction[joint] > 0:
            others = _load_about(mj, data, body, ~beyond)
            load = np.maximum(load, others * [1.0, 1.0, load_fraction[joint], 1.0])
        squared = multiplier**2
        loads[:, joint] += np.array([squared, multiplier, multiplier, 0.0]) * load
        loads[3, joint] += squared * subtree[0]
    return loads


def _load_about(mj: mujoco.MjModel, data: mujoco.MjData, body: int, which: Array) -> Array:
    """Inertia, moment, gravity torque (and inertia again), (4,), of bodies about a body's joint."""
    joint = mj.body_jntadr[body + 1]
    axis = data.xaxis[joint]
    mass = mj.body_mass[1:][which]
    weight = np.linalg.norm(mj.opt.gravity) * mass.sum()
    if mj.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE:
        torque = abs(axis @ mj.opt.gravity) * mass.sum()
        return np.array([mass.sum(), weight, torque, mass.sum()])
    arms = data.xipos[1:][which] - data.xanchor[joint]
    across = np.cross(axis, arms)
    principal_axes = data.ximat[1:][which].reshape(-1, 3, 3)
    spin = (axis @ principal_axes) ** 2 * mj.body_inertia[1:][which]
    inertia = spin.sum() + (mass * (across**2).sum(axis=1)).sum()
    moment = np.linalg.norm(mass @ across) * np.linalg.norm(mj.opt.gravity)
    torque = abs(mass @ across @ mj.opt.gravity)
    return np.array([inertia, moment, torque, inertia])


def make_servos(
    robot: RobotModel, loads: Array, step: float, gains: Callable[[str], ServoGains | None]
) -> Servos:
    """Takes the gains of a configuration, and others that hold the robot still, critically damped.

    stiffness = max(w^2 I, m g d / sag),  damping = 2 sqrt(stiffness I)

    The armature keeps the free end of a stiff joint slow enough for the physics. An effort limit in
    the URDF that could not carry the nominal posture does not count. What the configuration says
    of a joint (RobotConfig.servo.gains) comes in their place.
    """
    moved, moment, torque, subtree = loads
    inertia = np.maximum(moved, SMALLEST_INERTIA)
    stiffness = np.maximum(NATURAL_FREQUENCY**2 * inertia, moment / SAG)
    least = ARMATURE_FRACTION * np.maximum(subtree, SMALLEST_INERTIA)
    armature = np.maximum(least, stiffness * (step / FASTEST) ** 2 - subtree)
    limits = robot.effort_limits
    weak = limits < SPARE_EFFORT * torque + 1e-9
    damping, effort = 2.0 * np.sqrt(stiffness * inertia), np.where(weak, np.inf, limits)
    servos = Servos(stiffness, damping, armature, effort)
    for i, name in enumerate(robot.joint_names):
        given = gains(name)
        for key, array in vars(servos).items():
            value = getattr(given, key, None)
            if value is not None:
                array[i] = value
    return servos
