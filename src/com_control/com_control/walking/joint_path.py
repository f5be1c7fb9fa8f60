"""Joint targets over time: cubics through points, checked against the limits of the URDF.

Those of a whole walk come from inverse kinematics at each of its samples (solve_joints). The
velocity of a cubic has its extremes at the points, or between them where its acceleration
vanishes.
"""

import numpy as np

from com_control.exceptions import PlanError
from com_model.arrays import Array
from com_model.joint_path import JointPath
from com_model.model import RobotModel

_ZERO = 1e-9  # rad or m; a shorter distance takes no time
MAX_APPROACH_TIME = 120.0  # s


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
