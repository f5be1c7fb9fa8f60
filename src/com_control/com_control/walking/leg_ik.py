"""Kinematics of a leg of six joints, pose of its sole and Jacobian, and vectors for kernels.

At the zero pose of com_control.walking.biped, with E_i the rotation of joint i about its line,
the sole is at E_1 E_2 ... E_6 (sole at zero).
"""

from math import atan2, cos, pi, sin, sqrt
from typing import Any

import numpy as np
from numba import njit

from com_model.arrays import Array
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

Rows = tuple[Vector, Vector, Vector]  # a matrix (3, 3) by its rows

LEAST = 1e-300  # least pivot: a singular matrix yields a very long step, not NaN

inner = njit(
    error_model="numpy"
)  # no branch for a division by zero, which yields infinity


@inner
def vector(a: Array) -> Vector:
    """Elements of an array as a tuple.

    Args:
        a: (3,).
    """
    return (a[0], a[1], a[2])


@inner
def column(a: Array, j: int) -> Vector:
    """A column of an array as a tuple.

    Args:
        a: (3, n).
        j: number of the column.
    """
    return (a[0, j], a[1, j], a[2, j])


@inner
def rows(a: Array) -> Rows:
    """Rows of an array as tuples.

    Args:
        a: (3, 3 or more).
    """
    return row(a, 0), row(a, 1), row(a, 2)


@inner
def scale(s: float, v: Vector) -> Vector:
    """Product s v.

    Args:
        s: factor.
        v: vector.
    """
    return (s * v[0], s * v[1], s * v[2])


@inner
def combine(a: float, u: Vector, b: float, v: Vector, c: float, w: Vector) -> Vector:
    """Sum a u + b v + c w: also the product of the matrix with columns u, v, w and (a, b, c).

    Args:
        a: factor of u.
        u: vector.
        b: factor of v.
        v: vector.
        c: factor of w.
        w: vector.
    """
    return (
        a * u[0] + b * v[0] + c * w[0],
        a * u[1] + b * v[1] + c * w[1],
        a * u[2] + b * v[2] + c * w[2],
    )


@njit
def solve_three(A: Array, c: Array, x: Array) -> None:
    """Sets x to A^-1 c by cross products.

    Args:
        A: (3, 3); a singular one yields a very large x, not NaN.
        c: (3,).
        x: (3,) set.
    """
    a, b, d, v = column(A, 0), column(A, 1), column(A, 2), vector(c)
    bd, da, ab = cross(b, d), cross(d, a), cross(a, b)
    volume = dot(a, bd) or LEAST
    x[0], x[1], x[2] = dot(v, bd) / volume, dot(v, da) / volume, dot(v, ab) / volume


@inner
def wrap_angle(angle: float, near: float) -> float:
    """The angle plus the multiple of 2 pi that makes it nearest to another one.

    Args:
        angle: rad.
        near: rad.
    """
    return angle - 2.0 * pi * np.floor((angle - near) / (2.0 * pi) + 0.5)


@inner
def atan2_without_branches(y: float, x: float) -> float:
    """Computes atan2 so that a loop over it runs in vector registers.

    Args:
        y: second coordinate.
        x: first coordinate.

    Returns:
        The angle, rad, right to 5e-16; 0 where both are 0; NaN where one is. By a series of
        atan(x) / x - 1 in x^2, economised on |x| <= tan(pi / 8): error 2e-18.
    """
    wide, tall = np.abs(x), np.abs(y)
    high = tall if tall > wide else wide
    low = wide if tall > wide else tall
    steep = low > 0.41421356237309503 * high
    above = low - high if steep else low
    below = low + high if steep else high
    r = above / (below if below > 0.0 else 1.0)
    z = r * r
    p = 0.05858141383948651 + z * (
        -0.050854100046779774 + z * (0.0392305029451484 + z * -0.019175464973476723)
    )
    p = 0.11111111015196207 + z * (
        -0.09090904575601479
        + z * (0.07692183130929268 + z * (-0.06664510590458302 + z * p))
    )
    p = -0.3333333333333333 + z * (
        0.19999999999995519 + z * (-0.1428571428466583 + z * p)
    )
    angle = r + r * (z * p)
    angle = angle + 0.25 * pi if steep else angle
    angle = 0.5 * pi - angle if tall > wide else angle
    angle = pi - angle if x < 0.0 else angle
    angle = -angle if y < 0.0 else angle
    return angle + 0.0 * (x + y)


Record = Any  # an element of an array of LEG

LEG = np.dtype(
    [
        ("axes", "f8", (6, 3)),  # of the joints
        ("points", "f8", (6, 3)),  # that they go through, m
        ("R_sole", "f8", (3, 3)),
        ("p_sole", "f8", 3),  # m
        ("lower", "f8", 6),  # limits, rad
        ("upper", "f8", 6),
        ("masses", "f8", 6),  # kg, of the bodies that each joint moves
        ("moments", "f8", (6, 3)),  # their first moments, kg m
    ]
)


@njit
def pass_joint(
    leg: Record, i: int, angle: float, M: Array, t: Vector, lines: Array
) -> Vector:
    """Advances M and t, the motion of the body before joint i, to that of the body after it.

    Args:
        leg: of the robot.
        i: index of the joint.
        angle: rad.
        M: (3, 3) rotation, changed.
        t: m, translation.
        lines: (12, 3) of which row i is set to the joint's axis, row 6 + i to its point, m.

    Returns:
        The new t, m.
    """
    point = row(leg.points, i)
    place, line = add(turned(M, point), t), turned(M, row(leg.axes, i))
    for k in range(3):
        lines[i, k], lines[6 + i, k] = line[k], place[k]
    c, s = cos(angle), sin(angle)
    for j in range(3):
        M[0, j], M[1, j], M[2, j] = rotate(line, c, s, column(M, j))
    return sub(place, turned(M, point))


@njit
def pose_error(R: Array, p: Array, R_now: Array, p_now: Array, error: Array) -> float:
    """Sets error to the translation and the rotation vector to the wanted pose.

    Args:
        R: (3, 3) wanted orientation.
        p: (3,) m, wanted position.
        R_now: (3, 3) present orientation.
        p_now: (3,) m, present position.
        error: (6,) m and rad, set.

    Returns:
        Its norm.
    """
    error[:3] = p - p_now
    n, trace = (0.0, 0.0, 0.0), 0.0
    for j in range(3):
        a, b = column(R_now, j), column(R, j)
        n, trace = add(n, cross(a, b)), trace + dot(a, b)
    sine = 0.5 * sqrt(dot(n, n))
    cosine = 0.5 * (trace - 1.0)
    half = 0.5
    if sine > 1e-9:
        half = 0.5 * atan2(sine, cosine) / sine
    elif cosine <= 0.0:
        half, n = 1.0, (pi, 0.0, 0.0)
    error[3], error[4], error[5] = scale(half, n)
    return sqrt((error * error).sum())


@njit
def fill_jacobian(lines: Array, p: Array, J: Array) -> None:
    """Sets the Jacobian of a sole: linear and angular velocity by the joints' speeds.

    Args:
        lines: (12, 3) axes, then points, m, of the six joints.
        p: (3,) m, of the sole.
        J: (6, 6) set; m/rad, then rad/rad.
    """
    for i in range(6):
        axis = row(lines, i)
        arm = sub(vector(p), row(lines, 6 + i))
        J[0, i], J[1, i], J[2, i] = cross(axis, arm)
        J[3, i], J[4, i], J[5, i] = axis


@njit
def solve_damped(J: Array, damping: float, X: Array) -> None:
    """Sets X to (J^T J + damping 1)^-1 J^T X, by Cholesky's factors.

    Args:
        J: (6, 6).
        damping: at least 0.
        X: (6, k) changed.
    """
    L, y = np.empty((6, 6)), np.empty(6)
    for i in range(6):
        for j in range(i + 1):
            total = damping if i == j else 0.0
            for k in range(6):
                total += J[k, i] * J[k, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = np.sqrt(max(total, LEAST)) if i == j else total / L[j, j]
    for j in range(X.shape[1]):
        for i in range(6):
            y[i] = 0.0
            for k in range(6):
                y[i] += J[k, i] * X[k, j]
            for k in range(i):
                y[i] -= L[i, k] * y[k]
            y[i] /= L[i, i]
        for i in range(5, -1, -1):
            for k in range(i + 1, 6):
                y[i] -= L[k, i] * y[k]
            y[i] /= L[i, i]
            X[i, j] = y[i]
