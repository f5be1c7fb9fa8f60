"""Corrects a walk's CoM until the ZMP of the whole robot is the one that was planned.

The pendulum of the plan has all its mass in one point. Swinging legs have angular momentum, which
moves the ZMP by dZMP, centimetres when steps are quick. A shift x of the CoM moves the ZMP by

  x - k h x'',  h = (c_z - z_ground) / (g + c_z'')

with k = 1 for a pendulum. The trunk of a robot moves more than its CoM, and higher up: k is about
1.5, and other forwards than sideways. So each pass solves x - k h x'' = -dZMP, a tridiagonal system
in the samples, for a CoM that is stationary before and after the walk; inverse kinematics and
inverse dynamics follow; and how the ZMP moved gives the next pass k (least squares over the walk).
With k left at 1 an error of which half stays at each pass would be the price.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_banded

from com_control.exceptions import PlanError
from com_control.walking.biped import Biped
from com_control.walking.com_ik import TOLERANCE, ComIk
from com_control.walking.joint_path import WalkJoints, solve_joints
from com_control.walking.walk_plan import Samples, WalkPlan
from com_control.walking.whole_body_ik import WholeBodyIk
from com_control.walking.zmp import RobotPath, differences, multi_body_zmp
from com_model.arrays import Array, freeze
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import Dynamics

PASSES = 6
ZMP_TOLERANCE = 1e-4
"""m, largest distance of the robot's ZMP to the planned one that counts as met."""

_LEVERS = 0.5, 3.0  # least and greatest k


@dataclass(frozen=True, eq=False)
class RefinedWalk:
    """A walk whose ZMP, with all bodies, is the planned one; arrays are read-only.

    Attributes:
        joints: Joint angles at N times.
        samples: The plan at these times, with the corrected CoM.
        com_reference: (N, 3) m, the corrected CoM.
        zmp_reference: (N, 3) m, the planned ZMP.
        zmp: (N, 3) m, of the robot with all its bodies when it moves so.
        errors: (P + 1,) m, largest distance of zmp to zmp_reference before the first correction and
            after each.
        mean_errors: (P + 1,) m, its mean over time, likewise.
        converged: The last error is within the tolerance.
        reason: Why not; "" when it is.
    """

    joints: WalkJoints
    samples: Samples
    com_reference: Array
    zmp_reference: Array
    zmp: Array
    errors: Array
    mean_errors: Array
    converged: bool
    reason: str

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, eq=False)
class _Pass:
    """A walk and its ZMP."""

    samples: Samples
    joints: WalkJoints
    zmp: Array

    @property
    def away(self) -> Array:
        """(N, 2) m, of the ZMP from the planned one."""
        return self.zmp[:, :2] - self.samples.zmp[:, :2]

    @property
    def error(self) -> float:
        """m, the largest."""
        return float(np.linalg.norm(self.away, axis=1).max())

    @property
    def mean_error(self) -> float:
        """m, over time."""
        return float(np.linalg.norm(self.away, axis=1).mean())


def refine(
    ik: ComIk | WholeBodyIk,
    plan: WalkPlan,
    dt: float = 0.01,
    passes: int = PASSES,
    tolerance: float = ZMP_TOLERANCE,
    com_tolerance: float = TOLERANCE,
) -> RefinedWalk:
    """Finds joint angles with which the robot's ZMP is the planned one.

    When a correction leads out of the robot's reach or limits, or away from the planned ZMP, the
    best walk up to then is what comes back, not converged.

    Args:
        ik: The robot's solver.
        plan: The walk.
        dt: s, between two points.
        passes: Corrections, at most; 0: the walk as planned, with its ZMP.
        tolerance: m, of the ZMP.
        com_tolerance: m, of the CoM in the inverse kinematics.

    Raises:
        PlanError: The walk as planned cannot be walked, before any correction; or passes, dt are
            out of bounds.
    """
    if not passes >= 0:
        raise PlanError(f"passes is {passes}: give 0 or more")
    time = plan.grid(dt)
    solver = _Solver(ik, Dynamics(ik.biped.model), float(time[1] - time[0]), com_tolerance)
    best = now = solver.solve(plan.sample(time))
    errors, means, reason = [now.error], [now.mean_error], ""
    lever = np.ones(2)
    for _ in range(passes):
        if now.error <= tolerance:
            break
        shift = correction(now.samples, now.away, lever, solver.dt)
        try:
            new = solver.solve(_shifted(now.samples, shift, solver.dt))
        except PlanError as error:
            reason = f"a correction of the CoM leads out of reach: {error}"
            break
        lever = _lever(now.samples, shift, new.away - now.away, solver.dt)
        now = new
        errors.append(now.error)
        means.append(now.mean_error)
        best = now if now.error < best.error else best
    return _result(best, errors, means, tolerance, reason)


@dataclass(frozen=True)
class _Solver:
    """Inverse kinematics and dynamics of one robot."""

    ik: ComIk | WholeBodyIk
    dynamics: Dynamics
    dt: float
    tolerance: float

    def solve(self, samples: Samples) -> _Pass:
        joints = solve_joints(self.ik, samples, self.tolerance)
        path = robot_path(self.ik.biped, joints, self.dt)
        zmp = multi_body_zmp(self.dynamics, path, samples.zmp[:, 2])
        return _Pass(samples, joints, zmp)


def robot_path(biped: Biped, joints: WalkJoints, dt: float) -> RobotPath:
    """The motion of the root link in a walk; what is above the legs keeps its posture."""
    R, p = biped.root_in_pelvis(joints.q[0])
    return RobotPath(dt, joints.q, joints.R_pelvis @ R, joints.pelvis + joints.R_pelvis @ p)


def correction(samples: Samples, away: Array, lever: Array, dt: float) -> Array:
    """Shift x (N, 2) m of the CoM with x - k h x'' = -away, stationary at both ends.

    Args:
        samples: The walk.
        away: (N, 2) m, of the ZMP from the planned one.
        lever: (2,) k, forwards and sideways.
        dt: s, between two samples.
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
    """The pendulum's h (N,) s^2."""
    height = samples.com[:, 2] - samples.zmp[:, 2]
    return np.asarray(height / (GRAVITY + samples.com_acceleration[:, 2]))


def _lever(samples: Samples, shift: Array, moved: Array, dt: float) -> Array:
    """The k (2,) by which a shift (N, 2) of the CoM explains how far the ZMP moved (N, 2)."""
    push = _pendulum(samples)[:, None] * differences(shift, dt)[1]
    squares = np.sum(push * push, axis=0)
    found = np.sum((shift - moved) * push, axis=0) / np.where(squares > 0.0, squares, 1.0)
    return np.asarray(np.clip(np.where(squares > 0.0, found, 1.0), *_LEVERS))


def _shifted(samples: Samples, shift: Array, dt: float) -> Samples:
    moved = np.column_stack((shift, np.zeros(len(shift))))
    velocity, acceleration = differences(moved, dt)
    return replace(
        samples,
        com=samples.com + moved,
        com_velocity=samples.com_velocity + velocity,
        com_acceleration=samples.com_acceleration + acceleration,
    )


def _result(
    best: _Pass, errors: list[float], means: list[float], tolerance: float, reason: str
) -> RefinedWalk:
    converged = best.error <= tolerance
    if not converged and not reason:
        reason = (
            f"the ZMP stays {1e3 * best.error:.3g} mm from the planned one after "
            f"{len(errors) - 1} passes, {1e3 * tolerance:.3g} mm were wanted"
        )
    return RefinedWalk(
        joints=best.joints,
        samples=best.samples,
        com_reference=best.samples.com.copy(),
        zmp_reference=best.samples.zmp.copy(),
        zmp=best.zmp,
        errors=np.array(errors),
        mean_errors=np.array(means),
        converged=converged,
        reason="" if converged else reason,
    )
