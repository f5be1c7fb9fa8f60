"""Compiled small algebra that kernels share: vectors as tuples, rotations and products as arrays.

Tuples are several times faster than arrays of three; arrays may be given for them, too. Functions
that set an array write into their last argument, which must not be one of the others.
"""

from math import cos, sin

from numba import njit

from com_model.arrays import Array

Vector = tuple[float, float, float]


@njit
def dot(a: Vector | Array, b: Vector | Array) -> float:
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit
def cross(a: Vector | Array, b: Vector | Array) -> Vector:
    """Vector product a x b."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


@njit
def add(a: Vector | Array, b: Vector | Array) -> Vector:
    """Sum a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@njit
def sub(a: Vector | Array, b: Vector | Array) -> Vector:
    """Difference a - b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@njit
def add_scaled(a: Vector | Array, scale: float, b: Vector | Array) -> Vector:
    """Sum a + scale b."""
    return (a[0] + scale * b[0], a[1] + scale * b[1], a[2] + scale * b[2])


@njit
def row(A: Array, i: int) -> Vector:
    """Row i of A (N, 3)."""
    return (A[i, 0], A[i, 1], A[i, 2])


@njit
def set_row(A: Array, i: int, v: Vector) -> None:
    """Sets row i of A (N, 3)."""
    A[i, 0], A[i, 1], A[i, 2] = v


@njit
def rotate(axis: Vector, cosine: float, sine: float, v: Vector) -> Vector:
    """Rotates v about a unit axis: c v + s a x v + (1 - c) (a . v) a (Rodrigues)."""
    ax, ay, az = axis
    x, y, z = v
    k = (ax * x + ay * y + az * z) * (1.0 - cosine)
    return (
        cosine * x + sine * (ay * z - az * y) + k * ax,
        cosine * y + sine * (az * x - ax * z) + k * ay,
        cosine * z + sine * (ax * y - ay * x) + k * az,
    )


@njit
def turned(R: Array | tuple[Vector, Vector, Vector], v: Vector | Array) -> Vector:
    """Product R v; R as an array, or its rows."""
    return (dot(R[0], v), dot(R[1], v), dot(R[2], v))


@njit
def turned_back(R: Array, v: Vector | Array) -> Vector:
    """Product R^T v."""
    return (dot(R[:, 0], v), dot(R[:, 1], v), dot(R[:, 2], v))


@njit
def set_cross(a: Array, b: Array, out: Array) -> None:
    """Sets out (3,) to a x b."""
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@njit
def add_cross(a: Vector | Array, b: Vector | Array, scale: float, out: Array) -> None:
    """Adds scale a x b to out (3,)."""
    out[0] += scale * (a[1] * b[2] - a[2] * b[1])
    out[1] += scale * (a[2] * b[0] - a[0] * b[2])
    out[2] += scale * (a[0] * b[1] - a[1] * b[0])


@njit
def set_rotation(axis: Array, angle: float, out: Array) -> None:
    """Sets out (3, 3) to Rot(a, s) = 1 + sin s [a]x + (1 - cos s) [a]x^2 (Rodrigues).

    The axis a (3,) is a unit vector, a zero one gives the identity; the angle s is in rad.
    """
    s, v = sin(angle), 1.0 - cos(angle)
    x, y, z = axis[0], axis[1], axis[2]
    out[0, 0], out[1, 1] = 1.0 - v * (y * y + z * z), 1.0 - v * (z * z + x * x)
    out[2, 2] = 1.0 - v * (x * x + y * y)
    out[0, 1], out[1, 0] = v * x * y - s * z, v * x * y + s * z
    out[1, 2], out[2, 1] = v * y * z - s * x, v * y * z + s * x
    out[2, 0], out[0, 2] = v * x * z - s * y, v * x * z + s * y


@njit
def set_product(A: Array, B: Array, out: Array) -> None:
    """Sets out (3, 3) to A B."""
    for i in range(3):
        for j in range(3):
            out[i, j] = A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j]


@njit
def set_point(R: Array, p: Vector | Array, v: Vector | Array, out: Array) -> None:
    """Sets out (3,) to p + R v; out may be p."""
    for i in range(3):
        out[i] = p[i] + R[i, 0] * v[0] + R[i, 1] * v[1] + R[i, 2] * v[2]
