"""Inverse kinematics of a leg: hip abduction (HAA), hip flexion (HFE), knee (KFE).

The foot is the centre of its ball, in the frame of the root link. With axes a0, a1, a2 and points
o0, o1, o2, p0 (joints and ball) of the leg at q = 0, the leg's plane turns about a0 and the foot
moves in it when a1 and a2 are parallel, n = a1:

    n . Rot(a0, -q0) (p - o0) = n . (p0 - o0)       gives q0, two solutions
    t = Rot(a0, -q0) (p - o0) - (o1 - o0) in the plane
    |t|^2 = l1^2 + l2^2 + 2 l1 l2 cos(q2')          gives q2, knee to the one or the other side
    q1 = angle of t - angle of l1 + Rot(q2) l2

Any placement of the joints that a URDF can say is covered; where a1 and a2 are not parallel, or a0
is parallel to them, damped Newton steps solve instead.
"""

from itertools import pairwise
from math import acos, atan2, cos, hypot, inf, pi, sin, sqrt

import numpy as np
from numpy.typing import ArrayLike

from com_control.leg_solution import LegSolution
from com_model.arrays import Array, as_array
from com_model.bodies import REVOLUTE
from com_model.exceptions import GeometryError
from com_model.geometry.vectors import Vector, add, cross, dot, rotate, sub
from com_model.legs import Leg
from com_model.model import RobotModel


def norm(a: Vector) -> float:
    """Length."""
    return sqrt(dot(a, a))


class LegChain:
    """The leg with all joints at 0, in the frame of the root link.

    Attributes:
        axes: Three unit axes.
        origin: m, of the first joint.
        links: m, from the first joint to the second, on to the third, on to the ball's centre.

    Raises:
        GeometryError: A joint of it does not turn.
    """

    def __init__(self, model: RobotModel, leg: Leg) -> None:
        bodies = model.bodies
        R, p = np.eye(3), np.zeros(3)
        axes, points = [], []
        for body in bodies.path_to(leg.body):
            if bodies.joint_type[body] != REVOLUTE:
                raise GeometryError(
                    f"joint {bodies.joint_names[body]!r} of the {leg.name} leg does not turn; "
                    "only legs of three revolute joints can be moved"
                )
            p = p + R @ bodies.d[body]
            R = R @ bodies.R[body]
            axes.append(_vector(R @ bodies.axis[body]))
            points.append(p)
        points.append(p + R @ leg.ball)
        self.axes = axes[0], axes[1], axes[2]
        self.origin = _vector(points[0])
        links = [_vector(b - a) for a, b in pairwise(points)]
        self.links = links[0], links[1], links[2]

    def position(self, q: Vector) -> Vector:
        """Centre of the ball, m, at joint angles q, rad."""
        (a0, a1, a2), (l0, l1, l2) = self.axes, self.links
        v = rotate(a2, cos(q[2]), sin(q[2]), l2)
        v = rotate(a1, cos(q[1]), sin(q[1]), add(l1, v))
        v = rotate(a0, cos(q[0]), sin(q[0]), add(l0, v))
        return add(self.origin, v)

    def position_and_jacobian(self, q: Vector) -> tuple[Vector, tuple[Vector, Vector, Vector]]:
        """Centre of the ball, and its derivatives by the three angles (columns), m/rad."""
        (a0, a1, a2), (l0, l1, l2) = self.axes, self.links
        c0, s0, c1, s1 = cos(q[0]), sin(q[0]), cos(q[1]), sin(q[1])
        v = rotate(a2, cos(q[2]), sin(q[2]), l2)
        j2 = rotate(a1, c1, s1, cross(a2, v))
        v = rotate(a1, c1, s1, add(l1, v))
        j1 = cross(a1, v)
        v = rotate(a0, c0, s0, add(l0, v))
        columns = cross(a0, v), rotate(a0, c0, s0, j1), rotate(a0, c0, s0, j2)
        return add(self.origin, v), columns


def _vector(values: np.ndarray) -> Vector:
    x, y, z = values.tolist()
    return x, y, z


_PARALLEL = 1e-9  # sine of the angle between axes that count as parallel
_EXACT = 1e-13  # fraction of the leg's length: below it nothing is polished
_REACHED = 1e-9  # fraction of the leg's length: error of a target that counts as reached
_LIMIT = 1e-9  # rad, over a limit that is still within


class LegKinematics:
    """Kinematics of one leg.

    Args:
        leg: One of quadruped_legs.
        nominal: (3,) rad, near which solutions are searched when nothing else is said; default:
            the middle of the joints' limits, or 0 where they have none.

    Raises:
        GeometryError: A joint of the leg does not turn.
    """

    def __init__(self, model: RobotModel, leg: Leg, nominal: ArrayLike | None = None) -> None:
        self.leg = leg
        self.chain = chain = LegChain(model, leg)
        self.joint_names = tuple(model.joint_names[i] for i in leg.joints)
        self.lower, self.upper = model.lower[leg.joints], model.upper[leg.joints]
        if nominal is None:
            both = np.isfinite(self.lower) & np.isfinite(self.upper)
            middle = 0.5 * (np.where(both, self.lower, 0.0) + np.where(both, self.upper, 0.0))
            nominal = np.clip(middle, self.lower, self.upper)
        self.nominal = as_array("nominal", nominal, (3,))
        self.length = sum(norm(link) for link in chain.links)
        self._bounds = tuple(zip(self.lower.tolist(), self.upper.tolist(), strict=True))
        self._planar = _Planar.of(chain)

    def position(self, q: ArrayLike) -> Array:
        """Centre of the ball (3,), m, at joint angles (3,), rad."""
        return np.array(self.chain.position(_three("q", q)))

    def jacobian(self, q: ArrayLike) -> Array:
        """Derivative of position by the joint angles, (3, 3), m/rad."""
        return np.array(self.chain.position_and_jacobian(_three("q", q))[1]).T

    def solve(self, p: ArrayLike, near: ArrayLike | None = None) -> LegSolution:
        """Finds joint angles that bring the foot to p.

        Args:
            p: (3,) m, finite, in the root's frame.
            near: (3,) rad: of several solutions the nearest to it is taken; default: nominal.

        Raises:
            ShapeError: p or near is no vector of three finite numbers.
        """
        target = _three("p", p)
        start = _three("near", self.nominal if near is None else near)
        q, error = self.solve_scalars(target, start)
        reached = error <= _REACHED * self.length
        reason = "" if reached else self._out_of_reach(target, error)
        limit = self.limit_problem(q)
        return LegSolution(np.array(q), reached, not limit, reason or limit)

    def velocity(self, q: ArrayLike, foot_velocity: ArrayLike) -> Array:
        """Joint speeds (3,), rad/s, that move the foot with (3,) m/s; NaN where singular."""
        v = _three("foot_velocity", foot_velocity)
        columns = self.chain.position_and_jacobian(_three("q", q))[1]
        speeds = _solve3(columns, v)
        return np.full(3, np.nan) if speeds is None else np.array(speeds)

    def solve_scalars(self, p: Vector, near: Vector) -> tuple[Vector, float]:
        """As solve, on plain numbers: joint angles and the distance that remains, m."""
        if self._planar is not None:
            q, exact = self._planar.solve(p, near)
            if exact:
                return self._polish(p, q)
            return self._descend(p, q)
        return self._descend(p, near)

    def limit_problem(self, q: Vector) -> str:
        """Says which joint is out of its limits; "" when none is."""
        for name, value, (low, high) in zip(self.joint_names, q, self._bounds, strict=True):
            if not low - _LIMIT <= value <= high + _LIMIT:
                return f"{name} would be at {value:.3f} rad, its limits are {low:.3f} to {high:.3f}"
        return ""

    def _out_of_reach(self, p: Vector, error: float) -> str:
        name = self.leg.name
        if self._planar is not None:
            least, most = self._planar.reach
            distance = self._planar.distance(p)
            if distance > most or distance < least:
                return (
                    f"the target of the {name} foot is {distance:.3f} m from the hip flexion "
                    f"joint, its reach is {least:.3f} to {most:.3f} m"
                )
        return f"the {name} foot comes no nearer than {error:.3f} m to its target"

    def _polish(self, p: Vector, q: Vector) -> tuple[Vector, float]:
        """Newton steps from an almost exact solution."""
        error = inf
        best = q
        for _ in range(4):
            foot, columns = self.chain.position_and_jacobian(q)
            residual = sub(p, foot)
            size = norm(residual)
            if size >= error:
                break
            error, best = size, q
            if error <= _EXACT * self.length:
                break
            step = _solve3(columns, residual)
            if step is None or norm(step) > 0.1:
                break
            q = add(q, step)
        return best, error

    def _descend(self, p: Vector, q: Vector) -> tuple[Vector, float]:
        """Damped Newton steps (Levenberg-Marquardt) to the nearest point."""
        damping = 1e-3
        foot, columns = self.chain.position_and_jacobian(q)
        residual = sub(p, foot)
        for _ in range(100):
            if norm(residual) <= _EXACT * self.length:
                break
            J = np.array(columns).T
            A = J.T @ J
            gradient = J.T @ np.array(residual)
            A[np.diag_indices(3)] += damping * (A.trace() / 3.0)
            step = np.linalg.solve(A, gradient)
            trial = add(q, (float(step[0]), float(step[1]), float(step[2])))
            foot, new_columns = self.chain.position_and_jacobian(trial)
            new_residual = sub(p, foot)
            if norm(new_residual) < norm(residual):
                small = norm(residual) - norm(new_residual) < 1e-15 * self.length
                q, residual, columns = trial, new_residual, new_columns
                damping = max(damping * 0.1, 1e-12)
                if small:
                    break
            else:
                damping *= 10.0
                if damping > 1e8:
                    break
        return q, norm(residual)


class _Planar:
    """Closed form for a leg whose second and third axes are parallel."""

    def __init__(self, chain: LegChain) -> None:
        self.chain = chain
        self.a0, self.n = chain.axes[0], chain.axes[1]
        self.a0n = dot(self.a0, self.n)
        l0, l1, l2 = chain.links
        # n . (p0 - o0); the part of a0 that turns with nothing
        self.offset = dot(self.n, add(add(l0, l1), l2))
        self.u = _unit(_across(self.n, l1))
        self.w = cross(self.n, self.u)
        self.thigh = hypot(*self._in_plane(l1))
        x, y = self._in_plane(l2)
        self.shank, self.shank_angle = hypot(x, y), atan2(y, x)
        self.sign = 1.0 if dot(self.n, chain.axes[2]) > 0.0 else -1.0
        self.reach = abs(self.thigh - self.shank), self.thigh + self.shank

    @classmethod
    def of(cls, chain: LegChain) -> "_Planar | None":
        a0, a1, a2 = chain.axes
        if norm(cross(a1, a2)) > _PARALLEL or norm(cross(a0, a1)) < 1e-3:
            return None
        lengths = [norm(_across(a1, link)) for link in chain.links[1:]]
        if min(lengths) < 1e-6:
            return None
        return cls(chain)

    def solve(self, p: Vector, near: Vector) -> tuple[Vector, bool]:
        """Of the four solutions the nearest to `near`; False: clamped, for p is out of reach."""
        v = sub(p, self.chain.origin)
        haa, exact = self._abductions(v)
        best, least = near, inf
        candidates = []
        for q0 in haa:
            t = sub(rotate(self.a0, cos(q0), -sin(q0), v), self.chain.links[0])
            x, y = self._in_plane(t)
            cosine = (x * x + y * y - self.thigh**2 - self.shank**2) / (
                2.0 * self.thigh * self.shank
            )
            over = abs(cosine) > 1.0 + 1e-12
            bend = acos(max(-1.0, min(1.0, cosine)))
            for knee in (bend, -bend):
                q1 = atan2(y, x) - atan2(
                    self.shank * sin(knee), self.thigh + self.shank * cos(knee)
                )
                q2 = self.sign * (knee - self.shank_angle)
                candidates.append(((q0, q1, q2), not over))
        some = any(fits for _, fits in candidates)
        for q, fits in candidates:
            if some and not fits:
                continue
            q = _wrap(q[0], near[0]), _wrap(q[1], near[1]), _wrap(q[2], near[2])
            away = sub(q, near)
            distance = dot(away, away)
            if distance < least:
                best, least = q, distance
        return best, exact and some

    def distance(self, p: Vector) -> float:
        """Least distance of p from the second joint in the leg's plane, m."""
        v = sub(p, self.chain.origin)
        return min(
            hypot(*self._in_plane(sub(rotate(self.a0, cos(q), -sin(q), v), self.chain.links[0])))
            for q in self._abductions(v)[0]
        )

    def _abductions(self, v: Vector) -> tuple[tuple[float, float], bool]:
        """Both q0 that bring p into the leg's plane; False: there is none."""
        along = self.a0n * dot(self.a0, v)
        a, b = dot(self.n, v) - along, -dot(self.n, cross(self.a0, v))
        size, wanted = hypot(a, b), self.offset - along
        middle = atan2(b, a)
        ratio = wanted / size if size > 0.0 else inf
        half = acos(max(-1.0, min(1.0, ratio)))
        return (middle + half, middle - half), abs(ratio) <= 1.0 + 1e-12

    def _in_plane(self, v: Vector) -> tuple[float, float]:
        return dot(self.u, v), dot(self.w, v)


def _across(n: Vector, v: Vector) -> Vector:
    k = dot(n, v)
    return (v[0] - k * n[0], v[1] - k * n[1], v[2] - k * n[2])


def _unit(v: Vector) -> Vector:
    size = norm(v)
    return (v[0] / size, v[1] / size, v[2] / size)


def _wrap(angle: float, near: float) -> float:
    """The angle plus the multiple of 2 pi that brings it nearest to `near`."""
    return angle - 2.0 * pi * round((angle - near) / (2.0 * pi))


def _solve3(columns: tuple[Vector, Vector, Vector], b: Vector) -> Vector | None:
    """Solves a system of three equations by Cramer's rule; None where it is singular."""
    a0, a1, a2 = columns
    c = cross(a1, a2)
    det = dot(a0, c)
    if abs(det) <= 1e-12 * norm(a0) * norm(a1) * norm(a2):
        return None
    return dot(b, c) / det, dot(a0, cross(b, a2)) / det, dot(a0, cross(a1, b)) / det


def _three(name: str, value: ArrayLike) -> Vector:
    x, y, z = as_array(name, value, (3,)).tolist()
    return x, y, z
