"""Joint angles of a planned walk, and walks whose zero moment point (ZMP) is the planned one.

The pendulum of a plan has all its mass in one point. Swinging legs have angular momentum, which
moves the ZMP by dZMP, centimetres when steps are quick. A shift x of the CoM moves the ZMP by

  x - k h x'',  h = (c_z - z_ground) / (g + c_z'')

with k = 1 for a pendulum. The trunk of a robot moves more than its CoM, and higher up: k is
about 1.5, and different forwards and sideways. So each pass solves x - k h x'' = -dZMP, a
tridiagonal system in the samples, for a CoM that is stationary before and after the walk;
inverse kinematics and inverse dynamics follow; and the resulting motion of the ZMP determines k
of the next pass (least squares over the walk). With k fixed at 1 half of the error would remain
at each pass.

The wrench of the ground is the root wrench of the whole robot's inverse dynamics. With its force
F and its moment N about the world's origin, the ZMP on the plane z = h is where it has no
horizontal moment:

  p_x = (h F_x - N_y) / F_z,  p_y = (h F_y + N_x) / F_z

Velocities and accelerations are central differences of the samples; before the first sample and
after the last one the robot stands. Joint targets are cubics through points (JointPath), checked
against the limits of the URDF: the velocity of a cubic has its extremes at the points, or between
them where its acceleration vanishes.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_banded

from com_control.exceptions import PlanError
from com_control.walking.biped import Biped, heading_to_pelvis
from com_control.walking.com_ik import ComIk
from com_control.walking.walk_plan import Samples, WalkPlan
from com_model.arrays import Array, FrozenArrays, as_array
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.geometry.rotations import rotation_vectors
from com_model.joint_path import JointPath
from com_model.model import RobotModel

_ZERO = 1e-9  # rad or m; a shorter distance takes no time
MAX_APPROACH_TIME = 120.0  # s


@dataclass(frozen=True, eq=False)
class WalkJoints(FrozenArrays):
    """A walk in joint angles at N times; arrays are read-only.

    Attributes:
        time: (N,) s.
        q: (N, n) rad or m, all joints of the robot.
        qd: (N, n) rad/s or m/s, by differences.
        pelvis: (N, 3) m, origin of the pelvis' frame in the world.
        R_pelvis: (N, 3, 3) its orientation.
        com_errors: (N,) m.
    """

    time: Array
    q: Array
    qd: Array
    pelvis: Array
    R_pelvis: Array
    com_errors: Array


def solve_joints(ik: ComIk, samples: Samples, since: float = 0.0) -> WalkJoints:
    """Computes the joint angles of a walk, within the limits of the URDF.

    Args:
        ik: of the robot.
        samples: CoM, feet and pelvis' orientation over time.
        since: s, from which on it will be walked: earlier parts are not checked.

    Returns:
        The joint angles at the samples' times.

    Raises:
        PlanError: a point is out of reach, or beyond the limits of a joint's position or speed;
            the message names the time and the joint.
    """
    R_pelvis = np.ascontiguousarray(samples.R_pelvis @ heading_to_pelvis(ik.biped))
    path = ik.solve_path(samples.com, samples.feet, R_pelvis)
    bad = np.flatnonzero(path.outcomes * (samples.time >= since))
    if len(bad):
        i = int(bad[0])
        found = ik.solve(samples.com[i], samples.feet[i], R_pelvis[i])
        reason = found.reason or "the solution is not reached from the point before"
        raise PlanError(
            f"the walk is not feasible at {samples.time[i]:.3f} s: {reason}: make the steps "
            "shorter or lower, or let the CoM be at another height"
        )
    q = ik.full(path.q)
    qd = np.gradient(q, samples.time, axis=0)
    check_path(ik.biped.model, JointPath(samples.time, q, qd).after(since - 1e-9))
    return WalkJoints(samples.time, q, qd, path.pelvis, path.R_pelvis, path.errors)


@dataclass(frozen=True, eq=False)
class RobotPath:
    """Motion of a whole robot, at N times dt apart.

    Attributes:
        dt: s.
        q: (N, n) joint positions, rad or m.
        R_root: (N, 3, 3) orientation of the root link in the world.
        p_root: (N, 3) m, its origin.
    """

    dt: float
    q: Array
    R_root: Array
    p_root: Array


def ground_wrench(dynamics: Dynamics, path: RobotPath) -> Array:
    """Wrench of the ground on a robot along a motion.

    Args:
        dynamics: of the robot.
        path: its motion.

    Returns:
        (N, 6) force N, moment N m about the world's origin.
    """
    count = len(as_array("path.q", path.q, (None, dynamics.model.n_joints)))
    R = as_array("path.R_root", path.R_root, (count, 3, 3))
    p = as_array("path.p_root", path.p_root, (count, 3))
    qd, qdd = differences(path.q, path.dt)
    turns = np.zeros((count + 1, 3))  # from sample to sample, in the rotating axes
    turns[1:-1] = rotation_vectors(R[:-1].transpose(0, 2, 1) @ R[1:])
    omega, omega_dot = (
        0.5 * (turns[1:] + turns[:-1]) / path.dt,
        np.diff(turns, axis=0) / path.dt**2,
    )
    acceleration = differences(p, path.dt)[1] + [0.0, 0.0, GRAVITY]
    specific_force = np.einsum("nji,nj->ni", R, acceleration)
    own = dynamics.root_wrenches((path.q, qd, qdd), (omega, omega_dot, specific_force))
    wrench = np.einsum("nij,nkj->nki", R, own.reshape(count, 2, 3))
    wrench[:, 1] += np.cross(p, wrench[:, 0])
    return wrench.reshape(count, 6)


def multi_body_zmp(
    dynamics: Dynamics, path: RobotPath, height: ArrayLike = 0.0
) -> Array:
    """The zero moment point of a robot along a motion, with all its bodies.

    Args:
        dynamics: of the robot.
        path: its motion.
        height: m, of the ground, one or (N,).

    Returns:
        (N, 3) m, in the world.

    Raises:
        PlanError: the ground would have to pull the robot down, or nearly.
    """
    wrench = ground_wrench(dynamics, path)
    F, N = wrench[:, :3], wrench[:, 3:]
    weight = dynamics.model.mass * GRAVITY
    least = int(np.argmin(F[:, 2]))
    # fraction of the weight that the ground must give in a plan: the ZMP divides by that force
    if not F[least, 2] > 0.05 * weight:
        raise PlanError(
            f"at {least * path.dt:.3f} s the ground would carry {F[least, 2]:.1f} N of a robot of "
            f"{weight:.1f} N: there is no ZMP; let the CoM rise and fall more slowly"
        )
    h = np.broadcast_to(np.asarray(height, dtype=float), len(F))
    x = (h * F[:, 0] - N[:, 1]) / F[:, 2]
    y = (h * F[:, 1] + N[:, 0]) / F[:, 2]
    return np.column_stack((x, y, h))


def differences(values: Array, dt: float) -> tuple[Array, Array]:
    """First and second derivatives of samples, stationary before and after.

    Args:
        values: (N, ...) samples.
        dt: s, between them.

    Returns:
        (N, ...) per s, and per s^2.
    """
    before = np.concatenate((values[:1], values[:-1]))
    after = np.concatenate((values[1:], values[-1:]))
    return (after - before) / (2.0 * dt), (after - 2.0 * values + before) / dt**2


@dataclass(frozen=True, eq=False)
class RefinedWalk(FrozenArrays):
    """A walk whose ZMP, with all bodies, is the planned one; arrays are read-only.

    Attributes:
        joints: joint angles at N times.
        samples: the plan at these times, with the corrected CoM.
        zmp: (N, 3) m, of the robot with all its bodies in this motion.
        errors: (P + 1,) m, largest distance of the ZMP to the planned one, before the first
            correction and after each.
        reason: why the error is not within the tolerance; "" when it is.
    """

    joints: WalkJoints
    samples: Samples
    zmp: Array
    errors: Array
    reason: str


def refine(
    ik: ComIk,
    plan: WalkPlan,
    dt: float = 0.01,
    passes: int = 6,
    since: float = 0.0,
) -> RefinedWalk:
    """Computes joint angles with which the robot's ZMP is the planned one.

    When a correction exceeds the robot's reach or limits, or increases the error of the ZMP, the
    best walk so far is returned, with a reason.

    Args:
        ik: of the robot.
        plan: the walk.
        dt: s, between samples.
        passes: largest number of corrections; 0: the walk as planned, with its ZMP.
        since: s, from which on it will be walked: see solve_joints.

    Returns:
        The walk with the smallest error.

    Raises:
        PlanError: the walk as planned cannot be walked, before any correction; or passes, dt are
            out of bounds.
    """
    if not passes >= 0:
        raise PlanError(f"passes is {passes}: give 0 or more")
    time, dynamics = plan.grid(dt), Dynamics(ik.biped.model)
    dt = float(time[1] - time[0])

    def solve(samples: Samples) -> RefinedWalk:
        joints = solve_joints(ik, samples, since)
        zmp = multi_body_zmp(
            dynamics, robot_path(ik.biped, joints, dt), samples.zmp[:, 2]
        )
        error = np.linalg.norm(zmp[:, :2] - samples.zmp[:, :2], axis=1).max()
        return RefinedWalk(joints, samples, zmp, np.array([error]), "")

    done = [solve(plan.sample(time))]
    lever, reason = np.ones(2), ""
    # m, distance of the robot's ZMP to the planned one that counts as met
    near_enough = 1e-4
    while done[-1].errors[0] > near_enough and len(done) <= passes:
        now = done[-1]
        shift = correction(
            now.samples, now.zmp[:, :2] - now.samples.zmp[:, :2], lever, dt
        )
        try:
            done.append(solve(_shifted(now.samples, shift, dt)))
        except PlanError as error:
            reason = f"a correction of the CoM leads out of reach: {error}"
            break
        lever = _lever(now.samples, shift, done[-1].zmp[:, :2] - now.zmp[:, :2], dt)
    best = min(done, key=lambda one: float(one.errors[0]))
    reason = reason or (
        f"the ZMP stays {1e3 * best.errors[0]:.3g} mm from the planned one after {len(done) - 1} "
        f"passes, {1e3 * near_enough:.3g} mm were wanted"
    )
    errors = np.concatenate([one.errors for one in done])
    return replace(
        best, errors=errors, reason="" if errors.min() <= near_enough else reason
    )


def robot_path(biped: Biped, joints: WalkJoints, dt: float) -> RobotPath:
    """The motion of the root link in a walk; joints above the legs keep their posture.

    Args:
        biped: the robot.
        joints: of the walk.
        dt: s, between samples.
    """
    R, p = biped.root_in_pelvis(joints.q[0])
    return RobotPath(
        dt, joints.q, joints.R_pelvis @ R, joints.pelvis + joints.R_pelvis @ p
    )


def correction(samples: Samples, away: Array, lever: Array, dt: float) -> Array:
    """Shift x of the CoM with x - k h x'' = -away, stationary at both ends.

    Args:
        samples: of the walk, for the pendulum's h.
        away: (N, 2) m, of the ZMP from the planned one.
        lever: k (2,), along x and y.
        dt: s, between samples.

    Returns:
        (N, 2) m.
    """
    shift = np.empty_like(away)
    for axis in range(2):
        weight = lever[axis] * _pendulum(samples) / dt**2
        bands = np.zeros((3, len(weight)))
        bands[0, 1:], bands[2, :-1] = -weight[:-1], -weight[1:]
        bands[1] = 1.0 + 2.0 * weight
        bands[1, [0, -1]] -= weight[[0, -1]]
        shift[:, axis] = solve_banded((1, 1), bands, -away[:, axis])
    return shift


def _pendulum(samples: Samples) -> Array:
    """The pendulum's h = height / (g + acceleration) (N,) s^2."""
    height = samples.com[:, 2] - samples.zmp[:, 2]
    return np.asarray(height / (GRAVITY + samples.com_acceleration[:, 2]))


def _lever(samples: Samples, shift: Array, moved: Array, dt: float) -> Array:
    """The k (2,) for which a shift (N, 2) of the CoM best explains the ZMP's motion (N, 2)."""
    push = _pendulum(samples)[:, None] * differences(shift, dt)[1]
    squares = np.sum(push * push, axis=0)
    found = np.sum((shift - moved) * push, axis=0) / np.where(
        squares > 0.0, squares, 1.0
    )
    return np.asarray(np.clip(np.where(squares > 0.0, found, 1.0), 0.5, 3.0))


def _shifted(samples: Samples, shift: Array, dt: float) -> Samples:
    moved = np.column_stack((shift, np.zeros(len(shift))))
    velocity, acceleration = differences(moved, dt)
    return replace(
        samples,
        com=samples.com + moved,
        com_velocity=samples.com_velocity + velocity,
        com_acceleration=samples.com_acceleration + acceleration,
    )


def plan_approach(
    start: Array,
    goal: Array,
    model: RobotModel,
    min_duration: float,
    speed_fraction: float,
) -> JointPath:
    """Path from one posture to another along a straight line, stationary at both ends.

    Args:
        start: (n,) rad or m, as measured: noise and biases of encoders may put a
            joint 0.02 rad or m beyond its limit.
        goal: (n,) rad or m.
        model: the robot, with the limits of its joints.
        min_duration: s, shortest duration.
        speed_fraction: largest fraction of each joint's speed limit.

    Returns:
        The path, from time 0.

    Raises:
        PlanError: a joint on the way may not move, or so slowly that it would take too long.
    """
    within = np.clip(start, model.lower, model.upper)
    start = np.where(np.abs(within - start) <= 0.02, within, start)
    way = goal - start
    limits = np.maximum(speed_fraction * model.velocity_limits, 1e-9)
    # of a quintic's speed over its mean speed
    needed = np.where(np.abs(way) > _ZERO, 1.875 * np.abs(way) / limits, 0.0)
    j = int(np.argmax(needed))
    if needed[j] > MAX_APPROACH_TIME:
        raise PlanError(
            f"the way to the walk's first posture is {abs(way[j]):.3f} {_unit(model, int(j))} for "
            f"{model.joint_names[j]}, whose speed limit is {model.velocity_limits[j]:.3g} "
            f"{_unit(model, int(j))}/s: "
            "correct the limit in the URDF, or bring the robot to its nominal posture"
        )
    span = max(min_duration, float(needed[j]))
    return JointPath.through([start, goal], span, 0.01)  # s between its points


def _unit(model: RobotModel, joint: int) -> str:
    """Unit of a joint's position: m of a prismatic joint, else rad."""
    return "m" if model.joint_types[joint] == "prismatic" else "rad"


def check_path(model: RobotModel, path: JointPath) -> None:
    """Checks that targets are finite and within each joint's limits of position and speed.

    Args:
        model: the robot, with the limits of its joints.
        path: the targets.

    Raises:
        PlanError: they are not; with the time, the joint, and its limit.
    """
    bad = np.argwhere(~(np.isfinite(path.q) & np.isfinite(path.qd)))
    if len(bad):
        i, j = bad[0]
        raise PlanError(
            f"the target of {model.joint_names[j]} at {path.time[i]:.3f} s is not a finite number"
        )
    over = np.maximum(model.lower - path.q, path.q - model.upper)
    i, j = np.unravel_index(int(np.argmax(over)), over.shape)
    if over[i, j] > _ZERO:
        raise PlanError(
            f"{model.joint_names[j]} would be at {path.q[i, j]:.3f} {_unit(model, int(j))} at "
            f"{path.time[i]:.3f} s, its limits are {model.lower[j]:.3f} to "
            f"{model.upper[j]:.3f}: make steps shorter or lower, or let the CoM be at "
            "another height"
        )
    speeds = np.maximum(np.abs(path.qd), _inner_speeds(path))
    # of a speed limit
    excess = speeds - model.velocity_limits * (1.0 + 1e-6) - _ZERO
    i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
    if excess[i, j] > 0.0:
        raise PlanError(
            f"at {path.time[i]:.3f} s {model.joint_names[j]} would move with {speeds[i, j]:.2f} "
            f"{_unit(model, int(j))}/s, its limit is {model.velocity_limits[j]:.2f}: "
            "give the steps more time"
        )


def clip_to_limits(model: RobotModel, path: JointPath) -> JointPath:
    """The path, with positions that exceed a limit by rounding clipped to it.

    Args:
        model: the robot, with the limits of its joints.
        path: that has passed check_path.
    """
    return JointPath(path.time, np.clip(path.q, model.lower, model.upper), path.qd)


def _inner_speeds(path: JointPath) -> Array:
    """Largest speeds (N, n) inside the cubics that begin at each point; 0 for the last."""
    speeds = np.zeros_like(path.q)
    if len(path.time) < 2:
        return speeds
    h = np.diff(path.time)[:, None]
    mean, v, w = np.diff(path.q, axis=0) / h, path.qd[:-1], path.qd[1:]
    # v + 2 bend s + 3 twist s^2
    bend, twist = 3.0 * mean - 2.0 * v - w, v + w - 2.0 * mean
    with np.errstate(divide="ignore", invalid="ignore"):
        s = np.clip(np.nan_to_num(-bend / (3.0 * twist)), 0.0, 1.0)
    speeds[:-1] = np.abs(v + s * (2.0 * bend + 3.0 * twist * s))
    return speeds
