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

from com_control.walking.leg_kernels import row, wrap
from com_model.compiled import compiled
from com_model.geometry.vector_kernels import add, cross, dot, sub

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Vector = tuple[float, float, float]
Shape = tuple[Vector, Vector, Vector, Vector]
Pose = tuple[Vector, Vector, Vector, Vector]  # rows of the rotation, place

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
STATE = PELVIS + 4  # 1: those are of use; number of points solved in a row
EARLIER = STATE + 1  # two rows: the pelvis one and two points before, m
SPACE = EARLIER + 2  # twelve rows for a kernel to work in
ROBOT_ROWS = SPACE + 12

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
_NEAR = 4e-4  # m^2, squared way between points of a path
_SMOOTH = 1e-6  # m^2, squared second difference of points of a smooth path


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
def plane(robot: Array, k: int, d: Vector, f: Vector) -> tuple[Vector, Vector, float, float]:
    """Finds the leg's plane: n, n x d, and the knee's alpha and beta."""
    c = cross(d, f)
    n = scaled(robot[k + SIGNS, 0] / sqrt(dot(c, c)), c)
    l1, l2 = robot[k + LENGTHS, 0], robot[k + LENGTHS, 1]
    inverse = 1.0 / dot(d, d)
    alpha = 0.5 + 0.5 * (l2 * l2 - l1 * l1) * inverse
    squared = l2 * l2 * inverse - alpha * alpha
    beta = robot[k + SIGNS, 1] * sqrt(squared) if squared > 0.0 else 0.0
    return n, cross(n, d), alpha, beta


@inner
def on_thigh(
    robot: Array, k: int, v: Vector, d: Vector, n: Vector, nd: Vector, alpha: float, beta: float
) -> Vector:
    """Takes components on the thigh's axes (u, n, u x n) to the world."""
    l1 = 1.0 / robot[k + LENGTHS, 0]
    along = (v[0] * (alpha - 1.0) + v[2] * beta) * l1
    return mix(along, d, (v[0] * beta + v[2] * (1.0 - alpha)) * l1, nd, v[1], n)


@inner
def on_shank(
    robot: Array, k: int, v: Vector, d: Vector, n: Vector, nd: Vector, alpha: float, beta: float
) -> Vector:
    """Takes components on the shank's axes (u, n, u x n) to the world."""
    l2 = 1.0 / robot[k + LENGTHS, 1]
    along = (-v[0] * alpha - v[2] * beta) * l2
    return mix(along, d, (v[2] * alpha - v[0] * beta) * l2, nd, v[1], n)


@inner
def second_axis(robot: Array, k: int, a1: Vector, a3: Vector) -> Vector:
    """Finds the second axis of the hip, square to the first and the third."""
    c = cross(a1, a3)
    return scaled(robot[k + SIGNS, 2] / sqrt(dot(c, c)), c)


@inner
def leg_moment(robot: Array, k: int, d: Vector, f: Vector, a1: Vector) -> Vector:
    """Moment of a leg that depends on where the hip is, over the robot's mass; m."""
    n, nd, alpha, beta = plane(robot, k, d, f)
    total = add(
        on_thigh(robot, k, row(robot, k + THIGH), d, n, nd, alpha, beta),
        on_shank(robot, k, row(robot, k + SHANK), d, n, nd, alpha, beta),
    )
    if robot[k + TURNS, 2] > 0.0:
        m = row(robot, k + COLLAR)
        total = add(total, mix(m[0], n, m[1], f, m[2], cross(n, f)))
        a3 = on_thigh(robot, k, row(robot, k + AXIS_3), d, n, nd, alpha, beta)
        a2 = second_axis(robot, k, a1, a3)
        m = row(robot, k + FIRST)
        total = add(total, mix(m[0], a1, m[1], a2, m[2], cross(a1, a2)))
        m = row(robot, k + SECOND)
        total = add(total, mix(m[0], a2, m[1], a3, m[2], cross(a2, a3)))
    return total


@inner
def com_at(t: Vector, robot: Array, fixed: Shape, shapes: tuple[Shape, Shape]) -> Vector:
    """CoM with the pelvis at t.

    Args:
        t: m.
        robot: (ROBOT_ROWS, 3).
        fixed: What does not depend on t, and (share of the mass that moves with it, 0, 0), ...
        shapes: Of each leg: hip at d = t - shapes[0], f, a1, hip's moment.
    """
    left, right = shapes
    a = leg_moment(robot, 0, sub(t, left[0]), left[1], left[2])
    b = leg_moment(robot, ROWS, sub(t, right[0]), right[1], right[2])
    share = fixed[1][0]
    return (
        fixed[0][0] + share * t[0] + a[0] + b[0],
        fixed[0][1] + share * t[1] + a[1] + b[1],
        fixed[0][2] + share * t[2] + a[2] + b[2],
    )


@inner
def pose_of(R: Array, i: int) -> Pose:
    """Orientation i of (N, 3, 3), as a pose in the origin."""
    return (
        (R[i, 0, 0], R[i, 0, 1], R[i, 0, 2]),
        (R[i, 1, 0], R[i, 1, 1], R[i, 1, 2]),
        (R[i, 2, 0], R[i, 2, 1], R[i, 2, 2]),
        (0.0, 0.0, 0.0),
    )


@inner
def foot_of(feet: Array, i: int, side: int) -> Pose:
    """Pose of a foot of (N, 2, 3, 4)."""
    return (
        (feet[i, side, 0, 0], feet[i, side, 0, 1], feet[i, side, 0, 2]),
        (feet[i, side, 1, 0], feet[i, side, 1, 1], feet[i, side, 1, 2]),
        (feet[i, side, 2, 0], feet[i, side, 2, 1], feet[i, side, 2, 2]),
        (feet[i, side, 0, 3], feet[i, side, 1, 3], feet[i, side, 2, 3]),
    )


@inner
def turned(pose: Pose, v: Vector) -> Vector:
    """Turns v by a pose."""
    return (dot(pose[0], v), dot(pose[1], v), dot(pose[2], v))


@inner
def set_up(
    robot: Array, pelvis: Pose, left_foot: Pose, right_foot: Pose
) -> tuple[Shape, tuple[Shape, Shape]]:
    """Gathers what a point's feet and the pelvis' orientation fix."""
    rest = turned(pelvis, row(robot, UPPER))
    rest, share, left = one_foot(robot, 0, pelvis, left_foot, rest, robot[UPPER + 1, 0])
    rest, share, right = one_foot(robot, ROWS, pelvis, right_foot, rest, share)
    return (rest, (share, 0.0, 0.0), rest, rest), (left, right)


@inner
def one_foot(
    robot: Array, k: int, pelvis: Pose, foot: Pose, rest: Vector, share: float
) -> tuple[Vector, float, Shape]:
    """Adds what one foot fixes, and makes its leg's shape."""
    ankle = add(turned(foot, row(robot, k + ANKLE)), foot[3])
    hip = turned(pelvis, row(robot, k + HIP))
    moment = turned(foot, row(robot, k + FOOT))
    low, high = robot[k + SHARE, 0], robot[k + LENGTHS, 2]
    rest = add(rest, add(moment, mix(low, ankle, high, hip, 0.0, hip)))
    f, a1 = turned(foot, row(robot, k + ROLL)), turned(pelvis, row(robot, k + AXIS_1))
    return rest, share + high, (sub(ankle, hip), f, a1, hip)


@inner
def difference_inverse(
    t: Vector, com: Vector, robot: Array, fixed: Shape, shapes: tuple[Shape, Shape]
) -> Shape:
    """Inverse of dCoM/dt by differences: three rows, and one of no meaning."""
    h = DIFFERENCE
    x = scaled(1.0 / h, sub(com_at((t[0] + h, t[1], t[2]), robot, fixed, shapes), com))
    y = scaled(1.0 / h, sub(com_at((t[0], t[1] + h, t[2]), robot, fixed, shapes), com))
    z = scaled(1.0 / h, sub(com_at((t[0], t[1], t[2] + h), robot, fixed, shapes), com))
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
    robot: Array,
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
        robot: (ROBOT_ROWS, 3).
        fixed: Of set_up.
        shapes: Of set_up.
        tolerance: m.

    Returns:
        t, the last inverse, and the distance of the CoM to the target, m.
    """
    com = com_at(t, robot, fixed, shapes)
    e = sub(target, com)
    size = dot(e, e)
    goal = tolerance * tolerance
    fresh = False
    for _ in range(STEPS):
        if size <= goal:
            break
        if not known:
            B, known, fresh = difference_inverse(t, com, robot, fixed, shapes), True, True
        s = apply(B, e)
        length = dot(s, s)
        if length > _LONGEST * _LONGEST:
            s = scaled(_LONGEST / sqrt(length), s)
        better = False
        for _ in range(8):
            t_new = add(t, s)
            com_new = com_at(t_new, robot, fixed, shapes)
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
def fill_angles(y: Array) -> None:
    """Sets the third row of y (3, n) to the angles, rad, of points (second row, first row)."""
    for i in range(y.shape[1]):
        y[2, i] = angle_of(y[0, i], y[1, i])


@inner
def leg_directions(
    robot: Array, k: int, d: Vector, shape: Shape, foot: Pose, pelvis: Pose, y: Array, j: int
) -> None:
    """Sets y[:2, j : j + 6]: sines and cosines of a leg's angles, each pair times a length."""
    f, a1 = shape[1], shape[2]
    n, nd, alpha, beta = plane(robot, k, d, f)
    a3 = on_thigh(robot, k, row(robot, k + AXIS_3), d, n, nd, alpha, beta)
    a2 = second_axis(robot, k, a1, a3)
    b2 = turned(pelvis, row(robot, k + AXIS_2))
    e = on_thigh(robot, k, row(robot, k + AXIS_2_THIGH), d, n, nd, alpha, beta)
    g = on_shank(robot, k, row(robot, k + ROLL_SHANK), d, n, nd, alpha, beta)
    w5 = scaled(robot[k + TURNS, 1], n)
    b5 = turned(foot, row(robot, k + PITCH))
    y[0, j], y[1, j] = dot(a1, cross(b2, a2)), dot(b2, a2)
    y[0, j + 1], y[1, j + 1] = dot(a3, a1), dot(a3, cross(a1, a2))
    y[0, j + 2], y[1, j + 2] = -dot(e, cross(a2, a3)), dot(e, a2)
    y[0, j + 3], y[1, j + 3] = robot[k + TURNS, 0] * beta, alpha * (1.0 - alpha) - beta * beta
    y[0, j + 4], y[1, j + 4] = dot(w5, cross(g, f)), dot(g, f)
    y[0, j + 5], y[1, j + 5] = dot(f, cross(w5, b5)), dot(w5, b5)


@inner
def stretched(robot: Array, k: int, d: Vector) -> bool:
    """Whether the hip is out of the leg's reach."""
    l1, l2 = robot[k + LENGTHS, 0], robot[k + LENGTHS, 1]
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
    poses: tuple[Pose, Pose, Pose],
    joints: Array,
    y: Array,
) -> int:
    """Finds the legs' angles; gives the outcome of a point.

    joints (4, 12) is that part of the robot; y (3, 12) is space, of which the last row is set to
    the angles, rad.
    """
    left, right = shapes
    d, e = sub(t, left[0]), sub(t, right[0])
    leg_directions(robot, 0, d, left, poses[1], poses[0], y, 0)
    leg_directions(robot, ROWS, e, right, poses[2], poses[0], y, 6)
    fill_angles(y)
    far, left_over, right_over = 0, 0, 0
    for i in range(12):
        y[2, i] -= joints[0, i]
        far += abs(y[2, i] - joints[3, i]) > pi
    if far > 0:
        for i in range(12):
            y[2, i] = wrap(y[2, i], joints[3, i])
    for i in range(6):
        left_over += not ((y[2, i] >= joints[1, i]) & (y[2, i] <= joints[2, i]))
        j = i + 6
        right_over += not ((y[2, j] >= joints[1, j]) & (y[2, j] <= joints[2, j]))
    outcome = CONVERGED if error <= tolerance else STALLED
    outcome |= STRETCHED * stretched(robot, 0, d) | STRETCHED * stretched(robot, ROWS, e) << 4
    return outcome | LIMITED * (left_over > 0) | LIMITED * (right_over > 0) << 4


@inner
def views(robot: Array) -> tuple[Array, Array]:
    """The joints (4, 12) of a robot, and its space (3, 12)."""
    return robot[JOINTS:PELVIS].reshape(4, 12), robot[SPACE:].reshape(3, 12)


@inner
def poses_of(R: Array, feet: Array, i: int) -> tuple[Pose, Pose, Pose]:
    """Orientation of the pelvis and poses of the feet of point i."""
    return pose_of(R, i), foot_of(feet, i, 0), foot_of(feet, i, 1)


@inner
def foresee(robot: Array) -> Vector:
    """First guess of the pelvis: on from the last three points where they are a smooth path."""
    t1, t2, t3 = row(robot, PELVIS), row(robot, EARLIER), row(robot, EARLIER + 1)
    step, bend = sub(t1, t2), mix(1.0, t1, -2.0, t2, 1.0, t3)
    if robot[STATE, 1] >= 3.0 and dot(step, step) < _NEAR and dot(bend, bend) < _SMOOTH:
        return mix(3.0, t1, -3.0, t2, 1.0, t3)
    return t1


@compiled()
def solve_one(
    target: Array, R: Array, feet: Array, robot: Array, tolerance: float, q: Array
) -> int:
    """Solves one point, beginning where the last ones lead.

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
    joints, y = views(robot)
    poses = poses_of(R.reshape(1, 3, 3), feet.reshape(1, 2, 3, 4), 0)
    fixed, shapes = set_up(robot, poses[0], poses[1], poses[2])
    B = (row(robot, PELVIS + 1), row(robot, PELVIS + 2), row(robot, PELVIS + 3), (0.0, 0.0, 0.0))
    t, B, error = find_pelvis(
        foresee(robot),
        B,
        robot[STATE, 0] > 0.0,
        (target[0], target[1], target[2]),
        robot,
        fixed,
        shapes,
        tolerance,
    )
    for k in range(3):
        robot[EARLIER + 1, k], robot[EARLIER, k] = robot[EARLIER, k], robot[PELVIS, k]
        robot[PELVIS, k] = q[12 + k] = t[k]
        robot[PELVIS + 1, k] = B[0][k]
        robot[PELVIS + 2, k], robot[PELVIS + 3, k] = B[1][k], B[2][k]
    robot[STATE, 0] = 1.0 if error <= tolerance else 0.0
    robot[STATE, 1] = robot[STATE, 1] + 1.0 if error <= tolerance else 0.0
    q[15] = error
    outcome = finish(t, error, tolerance, robot, shapes, poses, joints, y)
    for k in range(12):
        q[k] = y[2, k]
    return outcome


@compiled(nogil=True)
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
    joints, y = views(robot)
    t = t1 = t2 = t3 = row(robot, PELVIS)
    B, known, age = (t, t, t, t), False, 0
    for i in range(len(targets)):
        poses = poses_of(R, feet, i)
        fixed, shapes = set_up(robot, poses[0], poses[1], poses[2])
        target = row(targets, i)
        t, B, error = find_pelvis(t, B, known, target, robot, fixed, shapes, tolerance)
        known = error <= tolerance
        outcomes[i] = finish(t, error, tolerance, robot, shapes, poses, joints, y)
        errors[i] = error
        for k in range(12):
            q[i, k] = y[2, k]
        for k in range(3):
            pelvis[i, k] = t[k]
        age = age + 1 if known else 0
        t3, t2, t1 = t2, t1, t
        if age >= 3:
            t = mix(3.0, t1, -3.0, t2, 1.0, t3)


@compiled(nogil=True)
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
    joints, y = views(robot)
    for i in range(len(targets)):
        poses = poses_of(R, feet, i)
        fixed, shapes = set_up(robot, poses[0], poses[1], poses[2])
        t, target = row(pelvis, i), row(targets, i)
        B = (t, t, t, t)
        t, _, error = find_pelvis(t, B, False, target, robot, fixed, shapes, tolerance)
        outcomes[i] = finish(t, error, tolerance, robot, shapes, poses, joints, y)
        errors[i] = error
        for k in range(12):
            q[i, k] = y[2, k]
        for k in range(3):
            pelvis[i, k] = t[k]


@compiled()
def pose_at(t: Array, R: Array, feet: Array, robot: Array, com: Array, q: Array) -> int:
    """Sets com (3,) m and the legs' angles q (12,) with the pelvis at t (3,) m; see solve_one."""
    joints, y = views(robot)
    poses = poses_of(R.reshape(1, 3, 3), feet.reshape(1, 2, 3, 4), 0)
    fixed, shapes = set_up(robot, poses[0], poses[1], poses[2])
    place = (t[0], t[1], t[2])
    found = com_at(place, robot, fixed, shapes)
    com[0], com[1], com[2] = found
    outcome = finish(place, 0.0, 1.0, robot, shapes, poses, joints, y)
    for k in range(12):
        q[k] = y[2, k]
    return outcome
