"""Vectors of three numbers in compiled kernels: tuples, which stay in registers.

More of their functions are in com_model.geometry.vector_kernels.
"""

from math import cos, pi, sin

import numpy as np
from numba import njit

from com_model.arrays import Array
from com_model.geometry.vector_kernels import Vector, cross, dot, rotate, row

Rows = tuple[Vector, Vector, Vector]  # a matrix (3, 3) by its rows

LEAST = 1e-300  # least pivot, so that what is singular makes a step that is too long, not NaN
_TAN_PI_8 = 0.41421356237309503
# Series of atan(x) / x - 1 in x^2, economised on |x| <= tan(pi / 8): error 2e-18.
_ATAN_1, _ATAN_2, _ATAN_3 = -0.3333333333333333, 0.19999999999995519, -0.1428571428466583
_ATAN_4, _ATAN_5, _ATAN_6 = 0.11111111015196207, -0.09090904575601479, 0.07692183130929268
_ATAN_7, _ATAN_8, _ATAN_9 = -0.06664510590458302, 0.05858141383948651, -0.050854100046779774
_ATAN_10, _ATAN_11 = 0.0392305029451484, -0.019175464973476723

inner = njit(error_model="numpy")  # no branch for a division by zero, which gives infinity


@inner
def vector(a: Array) -> Vector:
    """Elements of an array (3,)."""
    return (a[0], a[1], a[2])


@inner
def column(a: Array, j: int) -> Vector:
    """Column j of an array (3, n)."""
    return (a[0, j], a[1, j], a[2, j])


@inner
def rows(a: Array) -> Rows:
    """Rows of an array (3, 3 or more)."""
    return row(a, 0), row(a, 1), row(a, 2)


@inner
def scale(s: float, v: Vector) -> Vector:
    """Product s v."""
    return (s * v[0], s * v[1], s * v[2])


@inner
def combine(a: float, u: Vector, b: float, v: Vector, c: float, w: Vector) -> Vector:
    """Sum a u + b v + c w: also the product of the matrix with columns u, v, w and (a, b, c)."""
    return (
        a * u[0] + b * v[0] + c * w[0],
        a * u[1] + b * v[1] + c * w[1],
        a * u[2] + b * v[2] + c * w[2],
    )


@inner
def turn(axis: Vector, angle: float, v: Vector) -> Vector:
    """Rotates v about a unit axis by an angle, rad."""
    return rotate(axis, cos(angle), sin(angle), v)


@njit
def solve_three(A: Array, c: Array, x: Array) -> None:
    """Sets x (3,) to A^-1 c by cross products; A (3, 3)."""
    a, b, d, v = column(A, 0), column(A, 1), column(A, 2), vector(c)
    bd, da, ab = cross(b, d), cross(d, a), cross(a, b)
    volume = dot(a, bd) or LEAST
    x[0], x[1], x[2] = dot(v, bd) / volume, dot(v, da) / volume, dot(v, ab) / volume


@inner
def wrap_angle(angle: float, near: float) -> float:
    """The angle plus the multiple of 2 pi that brings it nearest to `near`, rad."""
    return angle - 2.0 * pi * np.floor((angle - near) / (2.0 * pi) + 0.5)


@inner
def atan2_without_branches(y: float, x: float) -> float:
    """Computes atan2 so that a loop over it runs in vector registers.

    Right to 5e-16 rad; 0 where both are 0; NaN where one is.
    """
    wide, tall = np.abs(x), np.abs(y)
    high = tall if tall > wide else wide
    low = wide if tall > wide else tall
    steep = low > _TAN_PI_8 * high
    above = low - high if steep else low
    below = low + high if steep else high
    r = above / (below if below > 0.0 else 1.0)
    z = r * r
    p = _ATAN_8 + z * (_ATAN_9 + z * (_ATAN_10 + z * _ATAN_11))
    p = _ATAN_4 + z * (_ATAN_5 + z * (_ATAN_6 + z * (_ATAN_7 + z * p)))
    p = _ATAN_1 + z * (_ATAN_2 + z * (_ATAN_3 + z * p))
    angle = r + r * (z * p)
    angle = angle + 0.25 * pi if steep else angle
    angle = 0.5 * pi - angle if tall > wide else angle
    angle = pi - angle if x < 0.0 else angle
    angle = -angle if y < 0.0 else angle
    return angle + 0.0 * (x + y)
