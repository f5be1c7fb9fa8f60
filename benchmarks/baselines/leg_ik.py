"""Inverse kinematics of a leg of six joints: joint angles for a pose of the sole.

At the zero pose of com_control.walking.biped, with E_i the rotation of joint i about its line, the
sole is at E_1 E_2 ... E_6 (sole at zero).

Where the first three axes meet in one point (the hip) and the last two in another (the ankle), in
whatever order and at whatever angles, the solution is closed: the knee follows from the distance
of hip and ankle, the ankle from the direction to the hip in the foot, the hip from the rotation
that is left (docs/derivations.md). Other legs are solved by damped Newton steps. It is what walks
that take the CoM for a fixed point of the pelvis need; nodes solve for the CoM itself.
"""

from __future__ import annotations

from math import acos, atan2, cos, sin, sqrt

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from com_control.trot.leg_kinematics import LegSolution
from com_control.walking.biped import (
    LIMIT_TOLERANCE,
    BipedLeg,
    meeting_point,
    pack_leg,
    sole_pose,
)
from com_control.walking.leg_ik import (
    LEG,
    Record,
    Rows,
    column,
    combine,
    fill_jacobian,
    pass_joint,
    pose_error,
    rows,
    solve_damped,
    vector,
    wrap_angle,
)
from com_model.arrays import Array, as_array, as_rotation
from com_model.compiled import compiled
from com_model.geometry.vector_kernels import (
    Vector,
    add,
    cross,
    dot,
    rotate,
    row,
    sub,
    turned,
)

_MEET = 1e-9  # m, distance of axes that count as meeting
_NEARLY = 0.02  # m, distance of axes that meet well enough for a first guess
_LEAST_ANGLE = 1e-3  # sine of the angle between axes that can be solved for
_SOLVED = 1e-9  # m and rad, error that counts as reached
_TRIES = 12  # starts of the numerical solution
_STEPS = 60
CLOSED = np.dtype(
    [
        *LEG.descr,
        ("hip", "f8", 3),  # where the first three axes meet, m
        ("ankle", "f8", 3),  # where the last two do, m
    ]
)

REACHED, KNEE, ANKLE, HIP = 0, 1, 2, 3
"""Outcomes of close_form: solved, or the joint that cannot be."""

_BEYOND = 1e-12  # relative: so far beyond its reach a leg counts as just stretched
_FLAT = 1e-24  # squared length of a lever below which its angle is free


class LegIk:
    """Inverse kinematics of one leg, in the pelvis' frame.

    Attributes:
        closed: Solved in closed form; else by Newton steps.
        packed: (1,) of leg_LEG, what the kernels read.
    """

    def __init__(self, leg: BipedLeg) -> None:
        self.leg = leg
        hip, hip_gap = meeting_point(leg.points[:3], leg.axes[:3])
        ankle, ankle_gap = meeting_point(leg.points[4:], leg.axes[4:])
        sines = np.linalg.norm(
            np.cross(leg.axes[[0, 1, 4]], leg.axes[[1, 2, 5]]), axis=1
        )
        b, c = hip - leg.points[3], leg.points[3] - ankle
        upper, lower = np.linalg.norm(np.cross(leg.axes[3], [b, c]), axis=1).tolist()
        square = float(sines.min()) > _LEAST_ANGLE and min(upper, lower) > 1e-6
        gap = max(hip_gap, ankle_gap)
        self.closed = square and gap < _MEET
        self._guess = square and gap < _NEARLY
        self.packed = np.zeros(1, CLOSED)
        for name in LEG.names or ():
            self.packed[name] = pack_leg(leg)[name]
        self.packed["hip"], self.packed["ankle"] = hip, ankle
        along = float(leg.axes[3] @ (b + c))
        self.reach = (
            float(np.hypot(upper - lower, along)),
            float(np.hypot(upper + lower, along)),
        )

    def pose(self, q: ArrayLike) -> tuple[Array, Array]:
        """Pose of the sole in the pelvis' frame, (3, 3) and (3,) m, at joint angles (6,) rad."""
        return sole_pose(self.leg, _floats("q", q, (6,)))

    def jacobian(self, q: ArrayLike) -> Array:
        """Linear and angular velocity of the sole by the joints' speeds, (6, 6), pelvis' axes."""
        R, p, lines = np.empty((3, 3)), np.empty(3), np.empty((12, 3))
        forward(pack_leg(self.leg)[0], _floats("q", q, (6,)), R, p, lines)
        return np.vstack((np.cross(lines[:6], p - lines[6:]).T, lines[:6].T))

    def solve(
        self, R: ArrayLike, p: ArrayLike, near: ArrayLike | None = None
    ) -> LegSolution:
        """Finds the joint angles that bring the sole to a pose.

        Args:
            R: (3, 3) orientation of the sole in the pelvis' frame.
            p: (3,) m, its origin there.
            near: (6,) rad; of several solutions within the limits, the nearest to it. Default: the
                nominal posture.

        Raises:
            ShapeError: An argument has the wrong shape.
            ComModelError: R is not a rotation.
        """
        R = np.ascontiguousarray(as_rotation("R", R))
        p = _floats("p", p, (3,))
        start = _floats("near", self.leg.nominal if near is None else near, (6,))
        q = np.full(6, np.nan)
        if not (np.isfinite(p).all() and np.isfinite(start).all()):
            return LegSolution(
                q, False, False, "the pose that is asked for is not finite"
            )
        if self.closed:
            outcome = close_form(self.packed[0], R, p, start, q)
            if outcome != REACHED:
                return LegSolution(
                    np.full(6, np.nan), False, False, self._why(outcome, R, p)
                )
        else:
            q, error = self._search(R, p, start)
            if error > _SOLVED:
                reason = f"the {self.leg.side} sole comes no nearer than {error:.3g} m to its pose"
                return LegSolution(np.full(6, np.nan), False, False, reason)
        problem = self.leg.limit_problem(q)
        return LegSolution(q, True, not problem, problem)

    def _search(self, R: Array, p: Array, start: Array) -> tuple[Array, float]:
        """Newton steps from several starts, until one meets the pose within the limits."""
        best, least = start.copy(), np.inf
        for q in self._starts(R, p, start):
            error = float(descend(pack_leg(self.leg)[0], R, p, q, _STEPS))
            q = start + np.remainder(q - start + np.pi, 2.0 * np.pi) - np.pi
            if error <= _SOLVED and not self.leg.limit_problem(q):
                return q, error
            if error < least and not (least <= _SOLVED):
                best, least = q, error
        return best, least

    def _starts(self, R: Array, p: Array, start: Array) -> list[Array]:
        starts, guess = [], start.copy()
        if self._guess and close_form(self.packed[0], R, p, start, guess) == REACHED:
            starts.append(guess)
        low = np.where(np.isfinite(self.leg.lower), self.leg.lower, -np.pi)
        high = np.where(np.isfinite(self.leg.upper), self.leg.upper, np.pi)
        rng = np.random.default_rng(0)
        others = [rng.uniform(low, high) for _ in range(_TRIES)]
        return [*starts, start.copy(), self.leg.nominal.copy(), *others]

    def _why(self, outcome: int, R: Array, p: Array) -> str:
        side = self.leg.side
        if outcome == KNEE:
            ankle = p + R @ self.leg.R_sole.T @ (
                self.packed["ankle"][0] - self.leg.p_sole
            )
            distance = float(np.linalg.norm(ankle - self.packed["hip"][0]))
            return (
                f"the {side} ankle would be {distance:.3f} m from its hip, the leg reaches "
                f"{self.reach[0]:.3f} to {self.reach[1]:.3f} m"
            )
        joint = "ankle" if outcome == ANKLE else "hip"
        return f"no rotation of the {side} {joint} brings the sole into its pose"


def _floats(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(as_array(name, value, shape))


@njit
def turn(axis: Vector, angle: float, v: Vector) -> Vector:
    """Rotates v about a unit axis by an angle, rad."""
    return rotate(axis, cos(angle), sin(angle), v)


@njit
def angle_about(axis: Vector, a: Vector, b: Vector, free: float) -> float:
    """Angle by which a rotation about a unit axis takes a to b; `free` where they are along it."""
    x = dot(a, b) - dot(axis, a) * dot(axis, b)
    y = dot(axis, cross(a, b))
    return free if x * x + y * y < _FLAT else atan2(y, x)


@njit
def meet(
    a: Vector, u: Vector, b: Vector, v: Vector, side: float
) -> tuple[bool, Vector]:
    """Finds z that a rotation about the unit axis a takes to u, and into which one about b takes v.

    a . z = a . u, b . z = b . v, |z| = |v|: z on two cones. `side` (1 or -1) is that of a x b.

    Returns:
        Whether there is one, and z.
    """
    ab = dot(a, b)
    au, bv = dot(a, u), dot(b, v)
    squared = 1.0 - ab * ab
    alpha, beta = (au - ab * bv) / squared, (bv - ab * au) / squared
    size = dot(v, v)
    height = (size - alpha * alpha - beta * beta - 2.0 * alpha * beta * ab) / squared
    fits = height >= -_BEYOND * size
    gamma = side * sqrt(height) if height > 0.0 else 0.0
    return fits, combine(alpha, a, beta, b, gamma, cross(a, b))


@njit
def ankle_target(leg: Record, R: Array, p: Array) -> tuple[Rows, Vector]:
    """Takes the sole's pose to the columns of R R_sole^T and the ankle's place."""
    wanted, own = rows(R), rows(leg.R_sole)
    x, y, z = turned(wanted, own[0]), turned(wanted, own[1]), turned(wanted, own[2])
    d = sub(vector(leg.ankle), vector(leg.p_sole))
    return (x, y, z), add(vector(p), combine(d[0], x, d[1], y, d[2], z))


@njit
def knee_angle(leg: Record, distance2: float, side: float) -> tuple[bool, float]:
    """Knee angle at a squared distance from hip to ankle.

    With b = hip - knee, c = knee - ankle at zero, E the knee's rotation: |E^T b + c|^2 = distance2.
    """
    w = row(leg.axes, 3)
    knee = row(leg.points, 3)
    b, c = sub(vector(leg.hip), knee), sub(knee, vector(leg.ankle))
    along = dot(w, b) * dot(w, c)
    cosine, sine = dot(b, c) - along, -dot(c, cross(w, b))
    size = sqrt(cosine * cosine + sine * sine)
    wanted = 0.5 * (distance2 - dot(b, b) - dot(c, c)) - along
    ratio = wanted / size
    fits = abs(ratio) <= 1.0 + _BEYOND
    return fits, atan2(sine, cosine) + side * acos(min(1.0, max(-1.0, ratio)))


@compiled()
def close_form(leg: Record, R: Array, p: Array, near: Array, q: Array) -> int:
    """Joint angles for a pose of the sole, where hip and ankle axes meet in a point each.

    All eight solutions (knee, ankle and hip to either side) are made; those within the limits come
    first, then the one nearest to `near`.

    Args:
        leg: Constants of the leg.
        R: (3, 3) orientation of the sole in the pelvis' frame.
        p: (3,) m, its origin there.
        near: (6,) rad.
        q: (6,) rad, set where the result is REACHED.

    Returns:
        REACHED, or what is out of reach: KNEE, ANKLE or HIP.
    """
    moved, ankle = ankle_target(leg, R, p)
    axes = leg.axes
    w1, w2, w3 = row(axes, 0), row(axes, 1), row(axes, 2)
    w4, w5, w6 = row(axes, 3), row(axes, 4), row(axes, 5)
    knee_point = row(leg.points, 3)
    b, c = sub(vector(leg.hip), knee_point), sub(knee_point, vector(leg.ankle))
    v = turned(moved, sub(vector(leg.hip), ankle))
    outcome, best = KNEE, np.inf
    for branch in range(8):
        knee, foot, hip = (
            1.0 - 2 * (branch & 1),
            1.0 - (branch & 2),
            1.0 - (branch & 4) / 2,
        )
        fits, q4 = knee_angle(leg, dot(v, v), knee)
        if not fits:
            return KNEE
        u = add(turn(w4, -q4, b), c)
        fits, m = meet(w5, u, w6, v, foot)
        if not fits:
            outcome = max(outcome, ANKLE)
            continue
        q6, q5 = angle_about(w6, v, m, near[5]), angle_about(w5, m, u, near[4])
        # E1 E2 E3 = R' (E4 E5 E6)^T takes the third axis there, and what is square to it
        t = turn(w6, -q6, turn(w5, -q5, turn(w4, -q4, w3)))
        t = combine(t[0], moved[0], t[1], moved[1], t[2], moved[2])
        fits, m = meet(w1, t, w2, w3, hip)
        if not fits:
            outcome = max(outcome, HIP)
            continue
        q2, q1 = angle_about(w2, w3, m, near[1]), angle_about(w1, m, t, near[0])
        e = turn(w6, -q6, turn(w5, -q5, turn(w4, -q4, w2)))
        e = combine(e[0], moved[0], e[1], moved[1], e[2], moved[2])
        e = turn(w2, -q2, turn(w1, -q1, e))
        q3 = angle_about(w3, w2, e, near[2])
        cost = 0.0
        for i, angle in enumerate((q1, q2, q3, q4, q5, q6)):
            angle = wrap_angle(angle, near[i])
            low, high = leg.lower[i] - LIMIT_TOLERANCE, leg.upper[i] + LIMIT_TOLERANCE
            cost += (angle - near[i]) ** 2
            if not low <= angle <= high:
                cost += 1e6
        if cost < best:
            best, outcome = cost, REACHED
            for i, angle in enumerate((q1, q2, q3, q4, q5, q6)):
                q[i] = wrap_angle(angle, near[i])
    return REACHED if best < np.inf else outcome


@compiled()
def forward(leg: Record, q: Array, R: Array, p: Array, lines: Array) -> None:
    """Sets the sole's pose R (3, 3), p (3,) and the joints' lines (12, 3): axes, then points."""
    M, t = np.eye(3), (0.0, 0.0, 0.0)
    for i in range(6):
        t = pass_joint(leg, i, q[i], M, t, lines)
    for j in range(3):
        R[0, j], R[1, j], R[2, j] = turned(M, column(leg.R_sole, j))
    p[0], p[1], p[2] = add(turned(M, vector(leg.p_sole)), t)


@compiled()
def descend(leg: Record, R: Array, p: Array, q: Array, steps: int) -> float:
    """Damped Newton steps (Levenberg-Marquardt) on q (6,), in place; returns what error remains.

    The error is the length of (translation in m, rotation in rad).
    """
    R_now, p_now, lines = np.empty((3, 3)), np.empty(3), np.empty((12, 3))
    error, J, trial, step = np.empty(6), np.empty((6, 6)), np.empty(6), np.empty((6, 1))
    forward(leg, q, R_now, p_now, lines)
    size = pose_error(R, p, R_now, p_now, error)
    damping = 1e-6
    for _ in range(steps):
        if size < 1e-14:
            break
        fill_jacobian(lines, p_now, J)
        step[:, 0] = error
        solve_damped(J, damping, step)
        longest = np.max(np.abs(step))
        step *= min(1.0, 0.5 / max(longest, 1e-300))
        for i in range(6):
            trial[i] = q[i] + step[i, 0]
        forward(leg, trial, R_now, p_now, lines)
        new = pose_error(R, p, R_now, p_now, error)
        if new < size:
            small = size - new < 1e-16
            q[:], size, damping = trial, new, max(damping * 0.1, 1e-18)
            if small:
                break
        else:
            damping = max(damping * 10.0, 1e-15)
            if damping > 1e6:
                break
            forward(leg, q, R_now, p_now, lines)
            pose_error(R, p, R_now, p_now, error)
    return size
