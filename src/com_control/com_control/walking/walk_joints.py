"""Joint angles of a whole walk, or why the robot cannot walk it: before its first step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from com_control.walking.biped import Biped
from com_control.walking.com_ik import TOLERANCE, ComIk
from com_control.walking.exceptions import PlanError
from com_control.walking.leg_ik import LegIk
from com_control.walking.walk_plan import Samples, WalkPlan
from com_control.walking.whole_body import WholeBodyIk
from com_model.arrays import Array, freeze


@dataclass(frozen=True, eq=False)
class WalkJoints:
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

    def __post_init__(self) -> None:
        freeze(self)


def solve_walk(
    ik: ComIk | WholeBodyIk, plan: WalkPlan, dt: float = 0.01, tolerance: float = TOLERANCE
) -> WalkJoints:
    """Finds the joint angles of a walk, within the limits of the URDF.

    Args:
        ik: The robot's solver.
        plan: The walk.
        dt: s, between two points.
        tolerance: m, of the CoM.

    Raises:
        PlanError: A point is out of reach, or beyond the limits of a joint's position or speed;
            says when and which.
    """
    return joints_of(ik, plan.sample(plan.grid(dt)), tolerance)


def joints_of(
    ik: ComIk | WholeBodyIk, samples: Samples, tolerance: float = TOLERANCE
) -> WalkJoints:
    """As solve_walk, for samples at rising times; at least two."""
    R_pelvis = np.ascontiguousarray(samples.R_pelvis @ R_heading_pelvis(ik.biped))
    path = ik.solve_path(samples.com, samples.feet, R_pelvis, tolerance)
    bad = np.flatnonzero(path.outcomes)
    if len(bad):
        i = int(bad[0])
        found = ik.solve(samples.com[i], samples.feet[i], R_pelvis[i], tolerance)
        reason = found.reason or "the solution is not reached from the point before"
        raise PlanError(
            f"the walk cannot be walked at {samples.time[i]:.3f} s: {reason}: make the steps "
            "shorter or lower, or let the CoM be at another height"
        )
    _check_speeds(ik, samples.time, path.q)
    q = ik.full(path.q)
    qd = np.gradient(q, samples.time, axis=0)
    return WalkJoints(samples.time, q, qd, path.pelvis, R_pelvis, path.errors)


def R_heading_pelvis(biped: Biped) -> Array:
    """Orientation (3, 3) of the pelvis' frame in one whose x axis points where the soles point.

    Quarter turns about z: the pelvis of some URDFs has its x axis backwards.
    """
    soles = [LegIk(leg).pose(leg.nominal)[0][:, 0] for leg in biped.legs]
    x, y, _ = np.sum(soles, axis=0).tolist()
    quarters = round(np.arctan2(y, x) / (0.5 * np.pi)) % 4
    c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarters]
    return np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])


def _check_speeds(ik: ComIk | WholeBodyIk, time: Array, legs: Array) -> None:
    limits = np.concatenate([leg.velocity_limits for leg in ik.biped.legs])
    speeds = np.abs(np.diff(legs, axis=0)) / np.diff(time)[:, None]
    i, j = np.unravel_index(int(np.argmax(speeds / limits)), speeds.shape)
    if speeds[i, j] > limits[j]:
        name = [name for leg in ik.biped.legs for name in leg.joint_names][j]
        raise PlanError(
            f"the walk cannot be walked at {time[i]:.3f} s: {name} would turn with "
            f"{speeds[i, j]:.2f} rad/s, its limit is {limits[j]:.2f}: give the steps more time"
        )
