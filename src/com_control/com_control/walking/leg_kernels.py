"""Compiled kinematics of a leg of six joints, at the zero pose of com_control.walking.biped.

A leg is an array (LEG_ROWS, 3): its axes, the points they go through, the sole's frame, and the
points in which the first three and the last two axes meet. With E_i the turn of joint i about its
line, the sole is at E_1 E_2 ... E_6 (sole at zero).
"""

from __future__ import annotations

from math import acos, atan2, cos, pi, sin, sqrt

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_model.compiled import compiled
from com_model.geometry.vector_kernels import add, cross, dot, rotate, sub
from com_model.geometry.vectors import Vector

Array = NDArray[np.float64]

AXES, POINTS, R_SOLE, P_SOLE, HIP, ANKLE, LIMITS = 0, 6, 12, 15, 16, 17, 18
LEG_ROWS = 22  # four rows of limits: six lower, six upper

REACHED, KNEE, ANKLE_TURN, HIP_TURN = 0, 1, 2, 3
"""Outcomes of close_form: solved, or what cannot be done."""

TOUCH = 1e-12  # relative: so far beyond its reach a leg counts as just stretched
_FLAT = 1e-24  # squared length of a lever below which its angle is free
_LIMIT = 1e-9  # rad


@njit
def row(array: Array, i: int) -> Vector:
    """Row of an array (n, 3)."""
    return (array[i, 0], array[i, 1], array[i, 2])


@njit
def turn(axis: Vector, angle: float, v: Vector) -> Vector:
    """Rotates v about a unit axis by an angle, rad."""
    return rotate(axis, cos(angle), sin(angle), v)


@njit
def angle_about(axis: Vector, a: Vector, b: Vector, free: float) -> float:
    """Angle by which a turn about a unit axis takes a to b; `free` where they lie along it."""
    x = dot(a, b) - dot(axis, a) * dot(axis, b)
    y = dot(axis, cross(a, b))
    return free if x * x + y * y < _FLAT else atan2(y, x)


@njit
def times(R: Array, v: Vector) -> Vector:
    """Product R v."""
    return (
        R[0, 0] * v[0] + R[0, 1] * v[1] + R[0, 2] * v[2],
        R[1, 0] * v[0] + R[1, 1] * v[1] + R[1, 2] * v[2],
        R[2, 0] * v[0] + R[2, 1] * v[1] + R[2, 2] * v[2],
    )


@njit
def times_transposed(R: Array, v: Vector) -> Vector:
    """Product R^T v."""
    return (
        R[0, 0] * v[0] + R[1, 0] * v[1] + R[2, 0] * v[2],
        R[0, 1] * v[0] + R[1, 1] * v[1] + R[2, 1] * v[2],
        R[0, 2] * v[0] + R[1, 2] * v[1] + R[2, 2] * v[2],
    )


@njit
def meet(a: Vector, u: Vector, b: Vector, v: Vector, side: float) -> tuple[bool, Vector]:
    """Finds z that a turn about the unit axis a takes to u, and into which one about b takes v.

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
    fits = height >= -TOUCH * size
    gamma = side * sqrt(height) if height > 0.0 else 0.0
    n = cross(a, b)
    z = (
        alpha * a[0] + beta * b[0] + gamma * n[0],
        alpha * a[1] + beta * b[1] + gamma * n[1],
        alpha * a[2] + beta * b[2] + gamma * n[2],
    )
    return fits, z


@njit
def wrap(angle: float, near: float) -> float:
    """The angle plus the multiple of 2 pi that brings it nearest to `near`."""
    return angle - 2.0 * pi * np.floor((angle - near) / (2.0 * pi) + 0.5)


@njit
def limit(leg: Array, i: int) -> tuple[float, float]:
    """Limits of joint i, rad."""
    return leg[LIMITS + i // 3, i % 3], leg[LIMITS + 2 + i // 3, i % 3]


@njit
def target_of(leg: Array, R: Array, p: Array) -> tuple[Vector, Vector, Vector, Vector]:
    """Takes the sole's pose to the rotation R' = R R_sole^T (columns) and the ankle's place."""
    S = leg[R_SOLE : R_SOLE + 3]
    x = times(R, (S[0, 0], S[0, 1], S[0, 2]))
    y = times(R, (S[1, 0], S[1, 1], S[1, 2]))
    z = times(R, (S[2, 0], S[2, 1], S[2, 2]))
    d = sub(row(leg, ANKLE), row(leg, P_SOLE))
    ankle = (
        p[0] + x[0] * d[0] + y[0] * d[1] + z[0] * d[2],
        p[1] + x[1] * d[0] + y[1] * d[1] + z[1] * d[2],
        p[2] + x[2] * d[0] + y[2] * d[1] + z[2] * d[2],
    )
    return x, y, z, ankle


@njit
def out_of(x: Vector, y: Vector, z: Vector, v: Vector) -> Vector:
    """Product of the matrix with columns x, y, z, and v."""
    return (
        x[0] * v[0] + y[0] * v[1] + z[0] * v[2],
        x[1] * v[0] + y[1] * v[1] + z[1] * v[2],
        x[2] * v[0] + y[2] * v[1] + z[2] * v[2],
    )


@njit
def knee_angle(leg: Array, distance2: float, side: float) -> tuple[bool, float]:
    """Knee angle at a squared distance from hip to ankle.

    With b = hip - knee, c = knee - ankle at zero and E the knee's turn: |E^T b + c|^2 = distance2.
    """
    w = row(leg, AXES + 3)
    b, c = sub(row(leg, HIP), row(leg, POINTS + 3)), sub(row(leg, POINTS + 3), row(leg, ANKLE))
    along = dot(w, b) * dot(w, c)
    cosine, sine = dot(b, c) - along, -dot(c, cross(w, b))
    size = sqrt(cosine * cosine + sine * sine)
    wanted = 0.5 * (distance2 - dot(b, b) - dot(c, c)) - along
    ratio = wanted / size
    fits = abs(ratio) <= 1.0 + TOUCH
    return fits, atan2(sine, cosine) + side * acos(min(1.0, max(-1.0, ratio)))


@njit
def close_form(leg: Array, R: Array, p: Array, near: Array, q: Array) -> int:
    """Joint angles for a pose of the sole, where hip and ankle axes meet in a point each.

    All eight solutions (knee, ankle and hip to either side) are made; those within the limits come
    first, then the one nearest to `near`.

    Args:
        leg: (LEG_ROWS, 3).
        R: (3, 3) orientation of the sole in the pelvis' frame.
        p: (3,) m, its origin there.
        near: (6,) rad.
        q: (6,) rad, set where the result is REACHED.

    Returns:
        REACHED, or what is out of reach: KNEE, ANKLE_TURN or HIP_TURN.
    """
    x, y, z, ankle = target_of(leg, R, p)
    w1, w2, w3 = row(leg, AXES), row(leg, AXES + 1), row(leg, AXES + 2)
    w4, w5, w6 = row(leg, AXES + 3), row(leg, AXES + 4), row(leg, AXES + 5)
    b, c = sub(row(leg, HIP), row(leg, POINTS + 3)), sub(row(leg, POINTS + 3), row(leg, ANKLE))
    d = sub(row(leg, HIP), ankle)
    v = (dot(x, d), dot(y, d), dot(z, d))
    outcome, best = KNEE, np.inf
    for branch in range(8):
        knee, foot, hip = 1.0 - 2 * (branch & 1), 1.0 - (branch & 2), 1.0 - (branch & 4) / 2
        fits, q4 = knee_angle(leg, dot(v, v), knee)
        if not fits:
            return KNEE
        u = add(turn(w4, -q4, b), c)
        fits, m = meet(w5, u, w6, v, foot)
        if not fits:
            outcome = max(outcome, ANKLE_TURN)
            continue
        q6, q5 = angle_about(w6, v, m, near[5]), angle_about(w5, m, u, near[4])
        # E1 E2 E3 = R' (E4 E5 E6)^T takes the third axis there, and what is square to it
        t = turn(w6, -q6, turn(w5, -q5, turn(w4, -q4, w3)))
        t = out_of(x, y, z, t)
        fits, m = meet(w1, t, w2, w3, hip)
        if not fits:
            outcome = max(outcome, HIP_TURN)
            continue
        q2, q1 = angle_about(w2, w3, m, near[1]), angle_about(w1, m, t, near[0])
        e = turn(w6, -q6, turn(w5, -q5, turn(w4, -q4, w2)))
        e = turn(w2, -q2, turn(w1, -q1, out_of(x, y, z, e)))
        q3 = angle_about(w3, w2, e, near[2])
        cost = 0.0
        for i, angle in enumerate((q1, q2, q3, q4, q5, q6)):
            angle = wrap(angle, near[i])
            low, high = limit(leg, i)
            cost += (angle - near[i]) ** 2
            if not low - _LIMIT <= angle <= high + _LIMIT:
                cost += 1e6
        if cost < best:
            best, outcome = cost, REACHED
            for i, angle in enumerate((q1, q2, q3, q4, q5, q6)):
                q[i] = wrap(angle, near[i])
    return REACHED if best < np.inf else outcome


@njit
def pass_joint(leg: Array, i: int, angle: float, M: Array, t: Vector, lines: Array) -> Vector:
    """Takes M (3, 3) and t (3,), the motion of what is before joint i, to that of what is after it.

    Sets the joint's line in lines (12, 3): axes, then points.
    """
    axis, point = row(leg, AXES + i), row(leg, POINTS + i)
    place, line = add(times(M, point), t), times(M, axis)
    c, s = cos(angle), sin(angle)
    for k in range(3):
        lines[i, k], lines[6 + i, k] = line[k], place[k]
    for j in range(3):
        x, y, z = M[0, j], M[1, j], M[2, j]
        along = (1.0 - c) * (line[0] * x + line[1] * y + line[2] * z)
        M[0, j] = c * x + s * (line[1] * z - line[2] * y) + along * line[0]
        M[1, j] = c * y + s * (line[2] * x - line[0] * z) + along * line[1]
        M[2, j] = c * z + s * (line[0] * y - line[1] * x) + along * line[2]
    return sub(place, times(M, point))


@njit
def set_sole(leg: Array, M: Array, t: Vector, R: Array, p: Array) -> None:
    """Sets the sole's pose R (3, 3), p (3,), moved from the zero pose by M, t."""
    S = leg[R_SOLE : R_SOLE + 3]
    for j in range(3):
        column = times(M, (S[0, j], S[1, j], S[2, j]))
        for k in range(3):
            R[k, j] = column[k]
    place = add(times(M, row(leg, P_SOLE)), t)
    for k in range(3):
        p[k] = place[k]


@njit
def forward(leg: Array, q: Array, R: Array, p: Array, lines: Array) -> None:
    """Sets the sole's pose R (3, 3), p (3,) and the joints' lines (12, 3): axes, then points."""
    M, t = np.eye(3), (0.0, 0.0, 0.0)
    for i in range(6):
        t = pass_joint(leg, i, q[i], M, t, lines)
    set_sole(leg, M, t, R, p)


@njit
def pose_error(R: Array, p: Array, R_now: Array, p_now: Array, error: Array) -> float:
    """Sets error (6,): shift (m) and turn (rad) from a pose to the wanted one; gives its size."""
    for k in range(3):
        error[k] = p[k] - p_now[k]
    x = y = z = 0.0
    trace = 0.0
    for j in range(3):
        a = (R_now[0, j], R_now[1, j], R_now[2, j])
        b = (R[0, j], R[1, j], R[2, j])
        n = cross(a, b)
        x, y, z, trace = x + n[0], y + n[1], z + n[2], trace + dot(a, b)
    sine = 0.5 * sqrt(x * x + y * y + z * z)
    cosine = 0.5 * (trace - 1.0)
    if sine > 1e-9:
        scale = 0.5 * atan2(sine, cosine) / sine
    elif cosine > 0.0:
        scale = 0.5
    else:
        scale = 0.0
        x, y, z = pi, 0.0, 0.0
        scale = 1.0
    error[3], error[4], error[5] = scale * x, scale * y, scale * z
    total = 0.0
    for k in range(6):
        total += error[k] * error[k]
    return sqrt(total)


@njit
def fill_jacobian(lines: Array, p: Array, J: Array) -> None:
    """Sets J (6, 6): the sole's linear and angular velocity by the joints' speeds."""
    for i in range(6):
        axis = row(lines, i)
        arm = sub((p[0], p[1], p[2]), row(lines, 6 + i))
        column = cross(axis, arm)
        for k in range(3):
            J[k, i], J[3 + k, i] = column[k], axis[k]


@njit
def descend(leg: Array, R: Array, p: Array, q: Array, steps: int) -> float:
    """Damped Newton steps (Levenberg-Marquardt) on q (6,), in place; gives what error remains.

    The error is the length of (shift in m, turn in rad).
    """
    R_now, p_now, lines = np.empty((3, 3)), np.empty(3), np.empty((12, 3))
    error, J, trial = np.empty(6), np.empty((6, 6)), np.empty(6)
    forward(leg, q, R_now, p_now, lines)
    size = pose_error(R, p, R_now, p_now, error)
    damping = 1e-6
    for _ in range(steps):
        if size < 1e-14:
            break
        fill_jacobian(lines, p_now, J)
        A = J.T @ J
        for i in range(6):
            A[i, i] += damping
        step = np.linalg.solve(A, J.T @ error)
        longest = np.max(np.abs(step))
        step *= min(1.0, 0.5 / max(longest, 1e-300))
        for i in range(6):
            trial[i] = q[i] + step[i]
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


@compiled()
def solve_leg(leg: Array, R: Array, p: Array, near: Array, q: Array) -> int:
    """As close_form, kept compiled."""
    return close_form(leg, R, p, near, q)


@compiled()
def descend_leg(leg: Array, R: Array, p: Array, q: Array, steps: int) -> float:
    """As descend, kept compiled."""
    return descend(leg, R, p, q, steps)


@compiled()
def place_sole(leg: Array, q: Array, R: Array, p: Array, lines: Array) -> None:
    """As forward, kept compiled."""
    forward(leg, q, R, p, lines)
