"""What numba compiles of the CoM's inverse kinematics: the map from the pelvis to the CoM.

With the feet and the pelvis' orientation given, the three coordinates t of the pelvis are all that
is unknown: the CoM is a function of them. It needs no angle (docs/derivations.md). With d = hip -
ankle and f the axis of the ankle's roll, in world axes:

  n = +-(d x f) / |d x f|                        axis of knee and ankle pitch
  knee = ankle + alpha d + beta (n x d)          alpha = (|d|^2 + l2^2 - l1^2) / (2 |d|^2)
                                                 beta = +-sqrt(l2^2 / |d|^2 - alpha^2)
  a2 = +-(a1 x a3) / |a1 x a3|                   second axis of the hip, between first and third

A leg is an array (ROWS, 3) as com_control.walking.com_geometry packs it. Beyond its reach a leg is
taken for a stretched one that grows: the map goes on, and the solver says so at its end.
"""

from __future__ import annotations

from math import atan2, pi, sqrt

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_control.walking import leg_kernels
from com_control.walking.leg_kernels import add, cross, dot, row, sub, times, wrap
from com_model.kernels import keep

Array = NDArray[np.float64]
Vector = tuple[float, float, float]
Shape = tuple[Vector, Vector, Vector, Vector]

# Rows of a leg. "Moment" is first moment over the robot's mass, m.
HIP = 0  # the hip in the pelvis' frame, m
AXIS_1, AXIS_2 = 1, 2  # first and second axis in the pelvis' frame at the zero pose
ANKLE = 3  # the ankle in the sole's frame, m
ROLL, PITCH = 4, 5  # last axis and the one before in the sole's frame at the zero pose
FOOT = 6  # moment of the foot about the ankle, sole's frame
FIRST = 7  # moment of the first body about the hip, on (a1, a2, a1 x a2)
SECOND = 8  # of the second, on (a2, a3, a2 x a3)
THIGH = 9  # of the thigh with the shank's mass at the knee, on (u, n, u x n), u from hip to knee
SHANK = 10  # of the shank about the knee, on (u, n, u x n), u from knee to ankle
COLLAR = 11  # of the body between pitch and roll about the ankle, on (n, f, n x f)
AXIS_3, AXIS_2_THIGH = 12, 13  # third and second axis on the thigh's axes, at the zero pose
ROLL_SHANK = 14  # last axis on the shank's axes, at the zero pose
LENGTHS = 15  # l1, l2, m; mass above the knee with the shank's over the robot's
SIGNS = 16  # of n, of beta, of a2
TURNS = 17  # 1 or -1: fourth and fifth axis along n; 1: some body of hip or ankle has a moment
ANGLES = 18  # rad, zero of the second joint and of the knee
LIMITS = 19  # four rows: six lower, six upper limits
NEAR = 23  # two rows: six angles of the nominal posture
ROWS = 25

CONVERGED, STALLED = 0, 1
STRETCHED, LIMITED = 2, 4
"""Bits of the outcome of a point; a leg's are shifted left by 4 for the right one."""

STEPS = 40
DIFFERENCE = 1e-6  # m, of the differences that give a first Jacobian
_LIMIT = 1e-9  # rad
_LONGEST = 0.25  # m, longest step of the pelvis


@njit
def scaled(s: float, v: Vector) -> Vector:
    """Product s v."""
    return (s * v[0], s * v[1], s * v[2])


@njit
def mix(a: float, u: Vector, b: float, v: Vector, c: float, w: Vector) -> Vector:
    """Sum a u + b v + c w."""
    return (
        a * u[0] + b * v[0] + c * w[0],
        a * u[1] + b * v[1] + c * w[1],
        a * u[2] + b * v[2] + c * w[2],
    )


@njit
def plane(leg: Array, d: Vector, f: Vector) -> tuple[Vector, Vector, float, float]:
    """Finds the leg's plane: n, n x d, and the knee's alpha and beta."""
    c = cross(d, f)
    n = scaled(leg[SIGNS, 0] / sqrt(dot(c, c)), c)
    l1, l2 = leg[LENGTHS, 0], leg[LENGTHS, 1]
    inverse = 1.0 / dot(d, d)
    alpha = 0.5 + 0.5 * (l2 * l2 - l1 * l1) * inverse
    squared = l2 * l2 * inverse - alpha * alpha
    beta = leg[SIGNS, 1] * sqrt(squared) if squared > 0.0 else 0.0
    return n, cross(n, d), alpha, beta


@njit
def on_thigh(
    leg: Array, v: Vector, d: Vector, n: Vector, nd: Vector, alpha: float, beta: float
) -> Vector:
    """Takes components on the thigh's axes (u, n, u x n) to the world."""
    l1 = 1.0 / leg[LENGTHS, 0]
    along = (v[0] * (alpha - 1.0) + v[2] * beta) * l1
    return mix(along, d, (v[0] * beta + v[2] * (1.0 - alpha)) * l1, nd, v[1], n)


@njit
def on_shank(
    leg: Array, v: Vector, d: Vector, n: Vector, nd: Vector, alpha: float, beta: float
) -> Vector:
    """Takes components on the shank's axes (u, n, u x n) to the world."""
    l2 = 1.0 / leg[LENGTHS, 1]
    along = (-v[0] * alpha - v[2] * beta) * l2
    return mix(along, d, (v[2] * alpha - v[0] * beta) * l2, nd, v[1], n)


@njit
def second_axis(leg: Array, a1: Vector, a3: Vector) -> Vector:
    """Finds the second axis of the hip, square to the first and the third."""
    c = cross(a1, a3)
    return scaled(leg[SIGNS, 2] / sqrt(dot(c, c)), c)


@njit
def leg_moment(leg: Array, d: Vector, f: Vector, a1: Vector) -> Vector:
    """Moment of a leg that depends on where the hip is, over the robot's mass; m."""
    n, nd, alpha, beta = plane(leg, d, f)
    total = add(
        on_thigh(leg, row(leg, THIGH), d, n, nd, alpha, beta),
        on_shank(leg, row(leg, SHANK), d, n, nd, alpha, beta),
    )
    if leg[TURNS, 2] > 0.0:
        m = row(leg, COLLAR)
        total = add(total, mix(m[0], n, m[1], f, m[2], cross(n, f)))
        a3 = on_thigh(leg, row(leg, AXIS_3), d, n, nd, alpha, beta)
        a2 = second_axis(leg, a1, a3)
        m = row(leg, FIRST)
        total = add(total, mix(m[0], a1, m[1], a2, m[2], cross(a1, a2)))
        m = row(leg, SECOND)
        total = add(total, mix(m[0], a2, m[1], a3, m[2], cross(a2, a3)))
    return total


@njit
def com_at(t: Vector, legs: Array, fixed: Shape, shapes: tuple[Shape, Shape]) -> Vector:
    """CoM with the pelvis at t.

    Args:
        t: m.
        legs: (2, ROWS, 3).
        fixed: What does not depend on t, and (share of the mass that moves with it, 0, 0), ...
        shapes: Of each leg: hip at d = t - shapes[0], f, a1, hip's moment.
    """
    left, right = shapes
    a = leg_moment(legs[0], sub(t, left[0]), left[1], left[2])
    b = leg_moment(legs[1], sub(t, right[0]), right[1], right[2])
    share = fixed[1][0]
    return (
        fixed[0][0] + share * t[0] + a[0] + b[0],
        fixed[0][1] + share * t[1] + a[1] + b[1],
        fixed[0][2] + share * t[2] + a[2] + b[2],
    )


@njit
def set_up(
    legs: Array, upper: Array, R: Array, feet: Array
) -> tuple[Shape, tuple[Shape, Shape]]:
    """Gathers what a point's feet (2, 3, 4) and pelvis' orientation R (3, 3) fix.

    upper (4,) is the moment of the upper body in the pelvis' frame and its mass, over the robot's.
    """
    rest = times(R, (upper[0], upper[1], upper[2]))
    rest, share, left = one_foot(legs[0], R, feet[0], rest, upper[3])
    rest, share, right = one_foot(legs[1], R, feet[1], rest, share)
    return (rest, (share, 0.0, 0.0), rest, rest), (left, right)


@njit
def one_foot(
    leg: Array, R: Array, foot: Array, rest: Vector, share: float
) -> tuple[Vector, float, Shape]:
    """Adds what one foot fixes, and makes its leg's shape."""
    ankle = add(times(foot, row(leg, ANKLE)), (foot[0, 3], foot[1, 3], foot[2, 3]))
    hip = times(R, row(leg, HIP))
    moment = times(foot, row(leg, FOOT))
    low, high = leg[ANGLES, 2], leg[LENGTHS, 2]
    rest = add(rest, add(moment, mix(low, ankle, high, hip, 0.0, hip)))
    f, a1 = times(foot, row(leg, ROLL)), times(R, row(leg, AXIS_1))
    return rest, share + high, (sub(ankle, hip), f, a1, hip)


@njit
def difference_inverse(
    t: Vector, com: Vector, legs: Array, fixed: Shape, shapes: tuple[Shape, Shape]
) -> Shape:
    """Inverse of dCoM/dt by differences: three rows, and one of no meaning."""
    h = DIFFERENCE
    x = scaled(1.0 / h, sub(com_at((t[0] + h, t[1], t[2]), legs, fixed, shapes), com))
    y = scaled(1.0 / h, sub(com_at((t[0], t[1] + h, t[2]), legs, fixed, shapes), com))
    z = scaled(1.0 / h, sub(com_at((t[0], t[1], t[2] + h), legs, fixed, shapes), com))
    yz = cross(y, z)
    scale = 1.0 / dot(x, yz)
    return scaled(scale, yz), scaled(scale, cross(z, x)), scaled(scale, cross(x, y)), x


@njit
def apply(B: Shape, e: Vector) -> Vector:
    """Product of the rows B and e."""
    return (dot(B[0], e), dot(B[1], e), dot(B[2], e))


@njit
def learn(B: Shape, s: Vector, y: Vector) -> Shape:
    """Broyden's update of an inverse: B + (s - B y) (s^T B) / (s^T B y)."""
    By = apply(B, y)
    scale = dot(s, By)
    if abs(scale) < 1e-3 * dot(s, s) or scale == 0.0:
        return B
    sB = mix(s[0], B[0], s[1], B[1], s[2], B[2])
    k = scaled(1.0 / scale, sub(s, By))
    return (
        add(B[0], scaled(k[0], sB)),
        add(B[1], scaled(k[1], sB)),
        add(B[2], scaled(k[2], sB)),
        B[3],
    )


@njit
def find_pelvis(
    t: Vector,
    B: Shape,
    known: bool,
    target: Vector,
    legs: Array,
    fixed: Shape,
    shapes: tuple[Shape, Shape],
    tolerance: float,
) -> tuple[Vector, Shape, float]:
    """Finds t with CoM(t) = target: Newton's first step, Broyden's updates, halved where worse.

    Args:
        t: m, first guess.
        B: Inverse of dCoM/dt to begin with, where `known`.
        known: Whether there is one.
        target: m.
        legs: (2, ROWS, 3).
        fixed, shapes: Of set_up.
        tolerance: m.

    Returns:
        t, the last inverse, and the distance of the CoM to the target, m.
    """
    com = com_at(t, legs, fixed, shapes)
    e = sub(target, com)
    size = dot(e, e)
    goal = tolerance * tolerance
    fresh = False
    for _ in range(STEPS):
        if size <= goal:
            break
        if not known:
            B, known, fresh = difference_inverse(t, com, legs, fixed, shapes), True, True
        s = apply(B, e)
        length = dot(s, s)
        if length > _LONGEST * _LONGEST:
            s = scaled(_LONGEST / sqrt(length), s)
        better = False
        for _ in range(8):
            t_new = add(t, s)
            com_new = com_at(t_new, legs, fixed, shapes)
            e_new = sub(target, com_new)
            size_new = dot(e_new, e_new)
            if size_new < 0.5 * size or (fresh and size_new < size):
                better = True
                break
            if not fresh:
                break
            s = scaled(0.5, s)
        if better:
            B = learn(B, s, sub(com_new, com))
            known = size_new < 0.1 * size
            t, com, e, size, fresh = t_new, com_new, e_new, size_new, False
        elif fresh:
            break
        else:
            known = False
    return t, B, sqrt(size)


@njit
def leg_angles(leg: Array, d: Vector, shape: Shape, foot: Array, R: Array, q: Array) -> int:
    """Sets the six angles of a leg, rad; gives STRETCHED where it is too short, LIMITED or 0."""
    f, a1 = shape[1], shape[2]
    n, nd, alpha, beta = plane(leg, d, f)
    l1, l2 = leg[LENGTHS, 0], leg[LENGTHS, 1]
    distance2 = dot(d, d)
    outcome = 0
    if distance2 > (l1 + l2) ** 2 * (1.0 + 1e-12) or distance2 < (l1 - l2) ** 2 * (1.0 - 1e-12):
        outcome = STRETCHED
    a3 = on_thigh(leg, row(leg, AXIS_3), d, n, nd, alpha, beta)
    a2 = second_axis(leg, a1, a3)
    a12, a23 = cross(a1, a2), cross(a2, a3)
    b2 = times(R, row(leg, AXIS_2))
    e = on_thigh(leg, row(leg, AXIS_2_THIGH), d, n, nd, alpha, beta)
    # u1 . u2 and n . (u1 x u2) of hip to knee, knee to ankle, times l1 l2
    along = distance2 * (alpha * (1.0 - alpha) - beta * beta)
    across = distance2 * beta
    g = on_shank(leg, row(leg, ROLL_SHANK), d, n, nd, alpha, beta)
    w5 = scaled(leg[TURNS, 1], n)
    b5 = times(foot, row(leg, PITCH))
    angles = (
        atan2(dot(a1, cross(b2, a2)), dot(b2, a2)),
        atan2(dot(a3, a1), dot(a3, a12)) - leg[ANGLES, 0],
        atan2(-dot(e, a23), dot(e, a2)),
        leg[TURNS, 0] * (atan2(across, along) - leg[ANGLES, 1]),
        atan2(dot(w5, cross(g, f)), dot(g, f)),
        atan2(dot(f, cross(w5, b5)), dot(w5, b5)),
    )
    for i in range(6):
        near = leg[NEAR + i // 3, i % 3]
        angle = angles[i]
        if abs(angle - near) > pi:
            angle = wrap(angle, near)
        q[i] = angle
        low, high = leg[LIMITS + i // 3, i % 3], leg[LIMITS + 2 + i // 3, i % 3]
        if not low - _LIMIT <= angle <= high + _LIMIT:
            outcome |= LIMITED
    return outcome


@njit
def finish(
    t: Vector,
    error: float,
    tolerance: float,
    legs: Array,
    shapes: tuple[Shape, Shape],
    R: Array,
    feet: Array,
    q: Array,
) -> int:
    """Sets the legs' angles q (12,); gives the outcome of a point."""
    left = leg_angles(legs[0], sub(t, shapes[0][0]), shapes[0], feet[0], R, q[:6])
    right = leg_angles(legs[1], sub(t, shapes[1][0]), shapes[1], feet[1], R, q[6:])
    return (CONVERGED if error <= tolerance else STALLED) | left | (right << 4)


@keep(uses=(leg_kernels.__file__,))
def solve_one(
    target: Array,
    R: Array,
    feet: Array,
    legs: Array,
    upper: Array,
    work: Array,
    tolerance: float,
    q: Array,
) -> int:
    """Solves one point, beginning where the last one ended.

    Args:
        target: (3,) m, the CoM in the world.
        R: (3, 3) orientation of the pelvis.
        feet: (2, 3, 4) poses of the soles, left and right.
        legs: (2, ROWS, 3).
        upper: (4,), see set_up.
        work: (6, 3): first guess of the pelvis (m), inverse Jacobian, (known, error, 0), spare;
            overwritten.
        tolerance: m.
        q: (12,) set to the legs' angles, rad.

    Returns:
        The outcome.
    """
    fixed, shapes = set_up(legs, upper, R, feet)
    B = (row(work, 1), row(work, 2), row(work, 3), row(work, 3))
    t, B, error = find_pelvis(
        row(work, 0),
        B,
        work[4, 0] > 0.0,
        (target[0], target[1], target[2]),
        legs,
        fixed,
        shapes,
        tolerance,
    )
    for k in range(3):
        work[0, k], work[1, k], work[2, k], work[3, k] = t[k], B[0][k], B[1][k], B[2][k]
    work[4, 0] = 1.0 if error <= tolerance else 0.0
    work[4, 1] = error
    return finish(t, error, tolerance, legs, shapes, R, feet, q)


@keep(nogil=True, uses=(leg_kernels.__file__,))
def solve_path(
    targets: Array,
    R: Array,
    feet: Array,
    legs: Array,
    upper: Array,
    start: Array,
    tolerance: float,
    q: Array,
    pelvis: Array,
    errors: Array,
    outcomes: Array,
) -> None:
    """Solves the points of a path one after the other, each predicted from the three before.

    Args:
        targets: (N, 3) m.
        R: (N, 3, 3).
        feet: (N, 2, 3, 4).
        legs, upper: See solve_one.
        start: (3,) m, first guess of the pelvis.
        tolerance: m.
        q: (N, 12), set.
        pelvis: (N, 3) m, set.
        errors: (N,) m, set.
        outcomes: (N,) int64, set.
    """
    t = t1 = t2 = t3 = (start[0], start[1], start[2])
    B, known, age = (t, t, t, t), False, 0
    for i in range(len(targets)):
        fixed, shapes = set_up(legs, upper, R[i], feet[i])
        t, B, error = find_pelvis(
            t, B, known, row(targets, i), legs, fixed, shapes, tolerance
        )
        known = error <= tolerance
        outcomes[i] = finish(t, error, tolerance, legs, shapes, R[i], feet[i], q[i])
        errors[i] = error
        for k in range(3):
            pelvis[i, k] = t[k]
        age = age + 1 if known else 0
        t3, t2, t1 = t2, t1, t
        if age >= 3:
            t = mix(3.0, t1, -3.0, t2, 1.0, t3)


@keep(nogil=True, uses=(leg_kernels.__file__,))
def solve_each(
    targets: Array,
    R: Array,
    feet: Array,
    legs: Array,
    upper: Array,
    starts: Array,
    tolerance: float,
    q: Array,
    pelvis: Array,
    errors: Array,
    outcomes: Array,
) -> None:
    """Solves points that have nothing to do with each other; starts (N, 3), else as solve_path."""
    for i in range(len(targets)):
        fixed, shapes = set_up(legs, upper, R[i], feet[i])
        t = row(starts, i)
        t, _, error = find_pelvis(
            t, (t, t, t, t), False, row(targets, i), legs, fixed, shapes, tolerance
        )
        outcomes[i] = finish(t, error, tolerance, legs, shapes, R[i], feet[i], q[i])
        errors[i] = error
        for k in range(3):
            pelvis[i, k] = t[k]


@keep(uses=(leg_kernels.__file__,))
def map_com(t: Array, R: Array, feet: Array, legs: Array, upper: Array, com: Array) -> None:
    """Sets com (3,) m with the pelvis at t (3,) m; else as solve_one."""
    fixed, shapes = set_up(legs, upper, R, feet)
    found = com_at((t[0], t[1], t[2]), legs, fixed, shapes)
    com[0], com[1], com[2] = found
