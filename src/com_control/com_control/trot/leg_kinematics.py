"""Inverse kinematics of a leg: hip abduction (HAA), hip flexion (HFE), knee (KFE); compiled.

The foot is the centre of its ball, in the frame of the root link. Damped Newton steps
(Levenberg-Marquardt) from a nearby posture move it to its target p,

    (J^T J + d tr(J^T J) / 3) dq = J^T (p - foot(q)),

for any placement of the joints in the URDF, or to the nearest point where p is out of reach. A
leg without abduction stays in its plane: a fictitious first joint stays at 0, targets and
velocities are projected onto the plane.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import cos, sin, sqrt
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from com_control.walking.biped import limit_problem
from com_control.walking.leg_ik import column, solve_three, vector
from com_model import GeometryError, Leg, RobotModel
from com_model.arrays import Array, FrozenArrays, as_array
from com_model.bodies import REVOLUTE
from com_model.compiled import compiled, entry_point
from com_model.geometry.vector_kernels import Vector, add, cross, dot, rotate, row, sub
from com_model.legs import JOINTS

_PARALLEL = 1e-9  # sine of the angle between axes that count as parallel


class Chain(NamedTuple):
    """The leg with all joints at 0, in the frame of the root link.

    Attributes:
        origin: (3,) m, of the first joint.
        axes: (3, 3) unit axes, as rows.
        links: (3, 3) m, rows: from joint to joint, and to the ball's centre.
    """

    origin: Array
    axes: Array
    links: Array


@njit
def find_ball(chain: Chain, q: Array, J: Array) -> Vector:
    """Centre of the ball and its Jacobian.

    Args:
        chain: the leg.
        q: (3,) rad.
        J: (3, 3) m/rad, set.

    Returns:
        The centre, m, root frame.
    """
    v = (0.0, 0.0, 0.0)
    for j in range(2, -1, -1):
        axis, c, s = row(chain.axes, j), cos(q[j]), sin(q[j])
        v = rotate(axis, c, s, add(row(chain.links, j), v))
        J[0, j], J[1, j], J[2, j] = cross(axis, v)
        for k in range(j + 1, 3):
            J[0, k], J[1, k], J[2, k] = rotate(axis, c, s, column(J, k))
    return add(vector(chain.origin), v)


@compiled()
def set_ball(chain: Chain, q: Array, p: Array, J: Array) -> None:
    """Sets position and Jacobian of a leg's ball; see find_ball.

    Args:
        chain: the leg.
        q: (3,) rad.
        p: (3,) m, set.
        J: (3, 3) m/rad, set.
    """
    p[0], p[1], p[2] = find_ball(chain, q, J)


@compiled()
def set_speeds(chain: Chain, q: Array, v: Array, speeds: Array) -> None:
    """Sets the joint velocities for a velocity of the ball.

    Args:
        chain: the leg.
        q: (3,) rad.
        v: (3,) m/s, of the ball.
        speeds: (3,) rad/s, set; NaN: the leg is singular.
    """
    J = np.empty((3, 3))
    find_ball(chain, q, J)
    a, b, c = column(J, 0), column(J, 1), column(J, 2)
    sizes = dot(a, a) * dot(b, b) * dot(c, c)
    solve_three(J, v, speeds)
    if abs(dot(a, cross(b, c))) <= 1e-12 * sqrt(sizes):
        speeds[:] = np.nan


@compiled()
def descend(chain: Chain, p: Array, tolerance: float, q: Array) -> float:
    """Moves the joints until the ball is at a target, or as near as it can be.

    Args:
        chain: the leg.
        p: (3,) m, the target.
        tolerance: m.
        q: (3,) rad, initial guess; overwritten.

    Returns:
        The remaining distance, m.
    """
    J, J_new, step = np.empty((3, 3)), np.empty((3, 3)), np.empty(3)
    target, damping = vector(p), 1e-12
    e = sub(target, find_ball(chain, q, J))
    size = sqrt(dot(e, e))
    longest = 0.5  # rad, longest step
    for _ in range(200):
        if size <= tolerance or damping > 1e8:
            break
        A = J.T @ J
        A += damping * np.trace(A) / 3.0 * np.eye(3)
        solve_three(A, J.T @ np.array(e), step)
        trial = q + step * min(1.0, longest / max(np.max(np.abs(step)), longest))
        e_new = sub(target, find_ball(chain, trial, J_new))
        size_new = sqrt(dot(e_new, e_new))
        if size_new < size:
            q[:], e, size, damping = trial, e_new, size_new, max(0.1 * damping, 1e-12)
            J, J_new = J_new, J
        else:
            damping *= 10.0
    return size


@dataclass(frozen=True, eq=False)
class LegSolution(FrozenArrays):
    """Joint angles for a foot position.

    Attributes:
        q: (n,) rad. Out of reach: those of the nearest point that was found, or NaN.
        reached: the foot is at its target.
        within_limits: all joints are within their limits.
        reason: why it is not reached, or which limit forbids it; "" when neither.
    """

    q: Array
    reached: bool
    within_limits: bool
    reason: str


class LegKinematics:
    """Kinematics of one leg of n = 3 or 2 revolute joints.

    Args:
        model: the robot.
        leg: with its joints and its ball.
        nominal: (n,) rad, posture from which solutions are searched by default.

    Attributes:
        leg: as given.
        normal: (3,) unit normal of the plane of a leg without abduction, else zeros.
        joint_names: n names.
        lower: (n,) rad, limits.
        upper: (n,) rad.
        nominal: as given.
        length: m, of the stretched leg.

    Raises:
        GeometryError: a joint is not revolute, or two joints do not turn in one plane.
    """

    def __init__(self, model: RobotModel, leg: Leg, nominal: ArrayLike) -> None:
        self.leg, self._chain = leg, _make_chain(model, leg)
        self._n = n = len(leg.joints)
        # (3,) unit normal of the plane that a leg without abduction keeps to, else zeros
        self.normal = self._chain.axes[1] if n < JOINTS else np.zeros(3)
        self.joint_names = tuple(model.joint_names[i] for i in leg.joints)
        self.lower, self.upper = model.lower[leg.joints], model.upper[leg.joints]
        self.nominal = as_array("nominal", nominal, (n,))
        self.length = float(np.linalg.norm(self._chain.links, axis=1).sum())
        three = np.empty(3)
        self._place = entry_point(set_ball, self._chain, three, three, np.empty((3, 3)))
        self._move = entry_point(set_speeds, self._chain, three, three, three)
        self._descend = entry_point(descend, self._chain, three, 0.0, three)

    def position(self, q: ArrayLike) -> Array:
        """Centre of the ball.

        Args:
            q: (n,) rad.

        Returns:
            (3,) m, root frame.
        """
        return self._ball(q)[0]

    def jacobian(self, q: ArrayLike) -> Array:
        """Derivative of position by the joint angles.

        Args:
            q: (n,) rad.

        Returns:
            (3, n) m/rad.
        """
        return self._ball(q)[1][:, -self._n :]

    def _ball(self, q: ArrayLike) -> tuple[Array, Array]:
        p, J = np.empty(3), np.empty((3, 3))
        self._place(self._chain, self._angles("q", q), p, J)
        return p, J

    def _angles(self, name: str, q: ArrayLike) -> Array:
        """All three angles of the chain, a copy."""
        return np.append(np.zeros(JOINTS - self._n), as_array(name, q, (self._n,)))

    def solve(self, p: ArrayLike, near: ArrayLike | None = None) -> LegSolution:
        """Finds joint angles for a foot position.

        Args:
            p: (3,) m, finite, root frame.
            near: (n,) rad, initial guess, which selects one of several solutions; None: nominal.

        Returns:
            The solution, or that of the nearest point with the reason.
        """
        target = np.array(as_array("p", p, (3,)))
        aside = float(self.normal @ (target - self._chain.origin))
        target -= aside * self.normal
        angles = self._angles("near", self.nominal if near is None else near)
        # Fractions of the leg's length: below 1e-13 nothing is gained, within 1e-9 a target counts
        # as reached, and a foot without abduction may miss its target by 0.02.
        error = self._descend(self._chain, target, 1e-13 * self.length, angles)
        reached, reason, q = error <= 1e-9 * self.length, "", angles[-self._n :]
        if not reached:
            reason = self._out_of_reach(target, angles, error)
        elif abs(aside) > 0.02 * self.length:
            reason = f"the {self.leg.name} leg has no abduction: {aside:.3f} m aside are left out"
        limit = limit_problem(self.joint_names, q, self.lower, self.upper)
        return LegSolution(q, reached, not limit, reason or limit)

    def velocity(self, q: ArrayLike, foot_velocity: ArrayLike) -> Array:
        """Joint velocities for a velocity of the foot.

        Args:
            q: (n,) rad, of the leg's joints.
            foot_velocity: (3,) m/s, root axes.

        Returns:
            (n,) rad/s; NaN where the leg is singular.
        """
        v = np.array(as_array("foot_velocity", foot_velocity, (3,)))
        v -= (self.normal @ v) * self.normal
        speeds = np.empty(3)
        self._move(self._chain, self._angles("q", q), v, speeds)
        return speeds[-self._n :]

    def _out_of_reach(self, p: Array, q: Array, error: float) -> str:
        """Why p is not reached; for parallel axes of flexion and knee with the reach."""
        (haa, hfe, knee), (hip, thigh, shank) = self._chain.axes, self._chain.links
        if np.linalg.norm(np.cross(hfe, knee)) <= _PARALLEL:
            l1, l2 = (np.linalg.norm(np.cross(hfe, link)) for link in (thigh, shank))
            back = np.array(
                rotate(tuple(haa), cos(q[0]), -sin(q[0]), tuple(p - self._chain.origin))
            )
            distance = np.linalg.norm(np.cross(hfe, back - hip))
            if not abs(l1 - l2) <= distance <= l1 + l2:
                return (
                    f"the target of the {self.leg.name} foot is {distance:.3f} m from the hip "
                    f"flexion joint, its reach is {abs(l1 - l2):.3f} to {l1 + l2:.3f} m"
                )
        return (
            f"the {self.leg.name} foot comes no nearer than {error:.3f} m to its target"
        )


def _make_chain(model: RobotModel, leg: Leg) -> Chain:
    bodies = model.bodies
    R, p = np.eye(3), np.zeros(3)
    axes, points = [], []
    for body in bodies.path_to(leg.body):
        if bodies.joint_type[body] != REVOLUTE:
            raise GeometryError(
                f"joint {bodies.joint_names[body]!r} of the {leg.name} leg is not revolute; only "
                "legs of revolute joints can be moved"
            )
        p, R = p + R @ bodies.d[body], R @ bodies.R[body]
        axes.append(R @ bodies.axis[body])
        points.append(p)
    points.append(p + R @ leg.ball)
    if len(axes) < JOINTS:
        normal, way = axes[0], points[-1] - points[0]
        ahead = np.cross(normal, way)
        if np.linalg.norm(np.cross(normal, axes[1])) > _PARALLEL or not ahead.any():
            raise GeometryError(
                f"the two joints of the {leg.name} leg do not turn in one plane"
            )
        axes.insert(0, ahead / np.linalg.norm(ahead))
        points.insert(
            0, points[0] + (normal @ way) * normal
        )  # beside the hip, in the foot's plane
    return Chain(
        points[0], np.array(axes), np.array([b - a for a, b in pairwise(points)])
    )
