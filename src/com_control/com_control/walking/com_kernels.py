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

from math import pi, sqrt

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_control.walking import leg_kernels
from com_control.walking.leg_kernels import add, cross, dot, row, sub, times, wrap
from com_model.kernels import keep

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
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
SHARE = 18  # mass of collar and foot over the robot's
ROWS = 19

# Rows of a robot (ROBOT_ROWS, 3): both legs, then these.
UPPER = 2 * ROWS  # two rows: moment of the upper body in the pelvis' frame; its mass, over all
JOINTS = UPPER + 2  # sixteen rows, (4, 12): zeros, lower and upper limits, nominal posture, rad
PELVIS = JOINTS + 16  # where the last point left the pelvis, m; the inverse of dCoM/dt, three rows
STATE = PELVIS + 4  # 1: those are of use
SPACE = STATE + 1  # eight rows for a kernel to work in
ROBOT_ROWS = SPACE + 8

CONVERGED, STALLED = 0, 1
STRETCHED, LIMITED = 2, 4
"""Bits of the outcome of a point; a leg's are shifted left by 4 for the right one."""

inner = njit(error_model="numpy")  # a division by zero gives infinity: no branch for it

STEPS = 40
EIGHTH = 0.41421356237309503  # tan(pi / 8)
# Series of atan(x) / x - 1 in x^2, economised on |x| <= tan(pi / 8): error 2e-18.
ATAN_1, ATAN_2, ATAN_3 = -0.3333333333333333, 0.19999999999995519, -0.1428571428466583
ATAN_4, ATAN_5, ATAN_6 = 0.11111111015196207, -0.09090904575601479, 0.07692183130929268
ATAN_7, ATAN_8, ATAN_9 = -0.06664510590458302, 0.05858141383948651, -0.050854100046779774
ATAN_10, ATAN_11 = 0.0392305029451484, -0.019175464973476723
DIFFERENCE = 1e-6  # m, of the differences that give a first Jacobian
_LONGEST = 0.25  # m, longest step of the pelvis


@inner
def scaled(s: float, v: Vector) -> Vector:
    """Product s v."""
    return (s * v[0], s * v[1], s * v[2])


@inner
def mix(a: float, u: Vector, b: float, v: Vector, c: float, w: Vector) -> Vector:
    """Sum a u + b v + c w."""
    return (
        a * u[0] + b * v[0] + c * w[0],
        a * u[1] + b * v[1] + c * w[1],
        a * u[2] + b * v[2] + c * w[2],
    )


@inner
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


@inner
def on_thigh(
    leg: Array, v: Vector, d: Vector, n: Vector, nd: Vector, alpha: float, beta: float
) -> Vector:
    """Takes components on the thigh's axes (u, n, u x n) to the world."""
    l1 = 1.0 / leg[LENGTHS, 0]
    along = (v[0] * (alpha - 1.0) + v[2] * beta) * l1
    return mix(along, d, (v[0] * beta + v[2] * (1.0 - alpha)) * l1, nd, v[1], n)


@inner
def on_shank(
    leg: Array, v: Vector, d: Vector, n: Vector, nd: Vector, alpha: float, beta: float
) -> Vector:
    """Takes components on the shank's axes (u, n, u x n) to the world."""
    l2 = 1.0 / leg[LENGTHS, 1]
    along = (-v[0] * alpha - v[2] * beta) * l2
    return mix(along, d, (v[2] * alpha - v[0] * beta) * l2, nd, v[1], n)


@inner
def second_axis(leg: Array, a1: Vector, a3: Vector) -> Vector:
    """Finds the second axis of the hip, square to the first and the third."""
    c = cross(a1, a3)
    return scaled(leg[SIGNS, 2] / sqrt(dot(c, c)), c)


@inner
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


@inner
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


@inner
def legs_of(robot: Array) -> Array:
    """Both legs of a robot, (2, ROWS, 3)."""
    return robot[:UPPER].reshape(2, ROWS, 3)


@inner
def set_up(robot: Array, R: Array, feet: Array) -> tuple[Shape, tuple[Shape, Shape]]:
    """Gathers what a point's feet (2, 3, 4) and pelvis' orientation R (3, 3) fix."""
    legs = legs_of(robot)
    rest = times(R, row(robot, UPPER))
    rest, share, left = one_foot(legs[0], R, feet[0], rest, robot[UPPER + 1, 0])
    rest, share, right = one_foot(legs[1], R, feet[1], rest, share)
    return (rest, (share, 0.0, 0.0), rest, rest), (left, right)


@inner
def one_foot(
    leg: Array, R: Array, foot: Array, rest: Vector, share: float
) -> tuple[Vector, float, Shape]:
    """Adds what one foot fixes, and makes its leg's shape."""
    ankle = add(times(foot, row(leg, ANKLE)), (foot[0, 3], foot[1, 3], foot[2, 3]))
    hip = times(R, row(leg, HIP))
    moment = times(foot, row(leg, FOOT))
    low, high = leg[SHARE, 0], leg[LENGTHS, 2]
    rest = add(rest, add(moment, mix(low, ankle, high, hip, 0.0, hip)))
    f, a1 = times(foot, row(leg, ROLL)), times(R, row(leg, AXIS_1))
    return rest, share + high, (sub(ankle, hip), f, a1, hip)


@inner
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


@inner
def apply(B: Shape, e: Vector) -> Vector:
    """Product of the rows B and e."""
    return (dot(B[0], e), dot(B[1], e), dot(B[2], e))


@inner
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


@inner
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
        fixed: Of set_up.
        shapes: Of set_up.
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


@inner
def angle_of(y: float, x: float) -> float:
    """Computes atan2 without a branch, so that a loop over it runs in vector registers.

    Right to 5e-16 rad; 0 where both are 0; NaN where one is.
    """
    wide, tall = np.abs(x), np.abs(y)
    high = tall if tall > wide else wide
    low = wide if tall > wide else tall
    steep = low > EIGHTH * high
    above = low - high if steep else low
    below = low + high if steep else high
    r = above / (below if below > 0.0 else 1.0)
    z = r * r
    p = ATAN_8 + z * (ATAN_9 + z * (ATAN_10 + z * ATAN_11))
    p = ATAN_4 + z * (ATAN_5 + z * (ATAN_6 + z * (ATAN_7 + z * p)))
    p = ATAN_1 + z * (ATAN_2 + z * (ATAN_3 + z * p))
    angle = r + r * (z * p)
    angle = angle + 0.25 * pi if steep else angle
    angle = 0.5 * pi - angle if tall > wide else angle
    angle = pi - angle if x < 0.0 else angle
    angle = -angle if y < 0.0 else angle
    return angle + 0.0 * (x + y)


@inner
def fill_angles(y: Array, x: Array, angles: Array) -> None:
    """Sets angles, rad, to those of points (x, y)."""
    for i in range(angles.size):
        angles[i] = angle_of(y[i], x[i])


@inner
def leg_directions(leg: Array, d: Vector, shape: Shape, foot: Array, R: Array, y: Array) -> None:
    """Sets y (2, 6): sines and cosines of a leg's angles, each pair times some length."""
    f, a1 = shape[1], shape[2]
    n, nd, alpha, beta = plane(leg, d, f)
    a3 = on_thigh(leg, row(leg, AXIS_3), d, n, nd, alpha, beta)
    a2 = second_axis(leg, a1, a3)
    b2 = times(R, row(leg, AXIS_2))
    e = on_thigh(leg, row(leg, AXIS_2_THIGH), d, n, nd, alpha, beta)
    g = on_shank(leg, row(leg, ROLL_SHANK), d, n, nd, alpha, beta)
    w5 = scaled(leg[TURNS, 1], n)
    b5 = times(foot, row(leg, PITCH))
    y[0, 0], y[1, 0] = dot(a1, cross(b2, a2)), dot(b2, a2)
    y[0, 1], y[1, 1] = dot(a3, a1), dot(a3, cross(a1, a2))
    y[0, 2], y[1, 2] = -dot(e, cross(a2, a3)), dot(e, a2)
    y[0, 3], y[1, 3] = leg[TURNS, 0] * beta, alpha * (1.0 - alpha) - beta * beta
    y[0, 4], y[1, 4] = dot(w5, cross(g, f)), dot(g, f)
    y[0, 5], y[1, 5] = dot(f, cross(w5, b5)), dot(w5, b5)


@inner
def stretched(leg: Array, d: Vector) -> bool:
    """Whether the hip is out of the leg's reach."""
    l1, l2 = leg[LENGTHS, 0], leg[LENGTHS, 1]
    distance2 = dot(d, d)
    far = distance2 > (l1 + l2) ** 2 * (1.0 + 1e-12)
    return far or distance2 < (l1 - l2) ** 2 * (1.0 - 1e-12)


@inner
def finish(
    t: Vector,
    error: float,
    tolerance: float,
    robot: Array,
    shapes: tuple[Shape, Shape],
    R: Array,
    feet: Array,
    q: Array,
) -> int:
    """Sets the legs' angles q (12,), rad; gives the outcome of a point."""
    legs, joints = legs_of(robot), robot[JOINTS:PELVIS].reshape(4, 12)
    y = robot[SPACE:].reshape(2, 12)
    outcome = CONVERGED if error <= tolerance else STALLED
    for i in range(2):
        d = sub(t, shapes[i][0])
        leg_directions(legs[i], d, shapes[i], feet[i], R, y[:, 6 * i :])
        if stretched(legs[i], d):
            outcome |= STRETCHED << (4 * i)
    fill_angles(y[0], y[1], q)
    for k in range(12):
        q[k] -= joints[0, k]
    far = 0
    for k in range(12):
        far += abs(q[k] - joints[3, k]) > pi
    if far > 0:
        for k in range(12):
            q[k] = wrap(q[k], joints[3, k])
    for i in range(2):
        over = 0
        for k in range(6 * i, 6 * i + 6):
            over += not ((q[k] >= joints[1, k]) & (q[k] <= joints[2, k]))
        if over > 0:
            outcome |= LIMITED << (4 * i)
    return outcome


@keep(uses=(leg_kernels.__file__,))
def solve_one(
    target: Array, R: Array, feet: Array, robot: Array, tolerance: float, q: Array
) -> int:
    """Solves one point, beginning where the last one ended.

    Args:
        target: (3,) m, the CoM in the world.
        R: (3, 3) orientation of the pelvis.
        feet: (2, 3, 4) poses of the soles, left and right.
        robot: (ROBOT_ROWS, 3); the rows from PELVIS on are overwritten.
        tolerance: m.
        q: (16,) set to the legs' angles, rad, the pelvis' position, m, and the distance of the CoM
            to its target, m.

    Returns:
        The outcome.
    """
    fixed, shapes = set_up(robot, R, feet)
    B = (row(robot, PELVIS + 1), row(robot, PELVIS + 2), row(robot, PELVIS + 3), (0.0, 0.0, 0.0))
    t, B, error = find_pelvis(
        row(robot, PELVIS),
        B,
        robot[STATE, 0] > 0.0,
        (target[0], target[1], target[2]),
        legs_of(robot),
        fixed,
        shapes,
        tolerance,
    )
    for k in range(3):
        robot[PELVIS, k] = q[12 + k] = t[k]
        robot[PELVIS + 1, k] = B[0][k]
        robot[PELVIS + 2, k], robot[PELVIS + 3, k] = B[1][k], B[2][k]
    robot[STATE, 0] = 1.0 if error <= tolerance else 0.0
    q[15] = error
    return finish(t, error, tolerance, robot, shapes, R, feet, q[:12])


@keep(nogil=True, uses=(leg_kernels.__file__,))
def solve_path(
    targets: Array,
    R: Array,
    feet: Array,
    robot: Array,
    tolerance: float,
    q: Array,
    pelvis: Array,
    errors: Array,
    outcomes: Indices,
) -> None:
    """Solves the points of a path one after the other, each predicted from the three before.

    Args:
        targets: (N, 3) m.
        R: (N, 3, 3).
        feet: (N, 2, 3, 4).
        robot: See solve_one; with the first guess of the pelvis.
        tolerance: m.
        q: (N, 12) rad, set.
        pelvis: (N, 3) m, set.
        errors: (N,) m, set.
        outcomes: (N,), set.
    """
    t = t1 = t2 = t3 = row(robot, PELVIS)
    B, known, age = (t, t, t, t), False, 0
    for i in range(len(targets)):
        fixed, shapes = set_up(robot, R[i], feet[i])
        target = row(targets, i)
        t, B, error = find_pelvis(t, B, known, target, legs_of(robot), fixed, shapes, tolerance)
        known = error <= tolerance
        outcomes[i] = finish(t, error, tolerance, robot, shapes, R[i], feet[i], q[i])
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
    robot: Array,
    tolerance: float,
    q: Array,
    pelvis: Array,
    errors: Array,
    outcomes: Indices,
) -> None:
    """Solves points that have nothing to do with each other.

    As solve_path; pelvis (N, 3) holds the first guesses and is overwritten.
    """
    for i in range(len(targets)):
        fixed, shapes = set_up(robot, R[i], feet[i])
        t, target = row(pelvis, i), row(targets, i)
        B = (t, t, t, t)
        t, _, error = find_pelvis(t, B, False, target, legs_of(robot), fixed, shapes, tolerance)
        outcomes[i] = finish(t, error, tolerance, robot, shapes, R[i], feet[i], q[i])
        errors[i] = error
        for k in range(3):
            pelvis[i, k] = t[k]


@keep(uses=(leg_kernels.__file__,))
def pose_at(t: Array, R: Array, feet: Array, robot: Array, com: Array, q: Array) -> int:
    """Sets com (3,) m and the legs' angles q (12,) with the pelvis at t (3,) m; see solve_one."""
    fixed, shapes = set_up(robot, R, feet)
    place = (t[0], t[1], t[2])
    found = com_at(place, legs_of(robot), fixed, shapes)
    com[0], com[1], com[2] = found
    return finish(place, 0.0, 1.0, robot, shapes, R, feet, q)
