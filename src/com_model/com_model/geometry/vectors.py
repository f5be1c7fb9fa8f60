"""Vectors of three numbers as plain tuples: several times faster than arrays for a few of them.

Written for Python and for numba alike; compiled twins are in com_model.geometry.vector_kernels.
"""

Vector = tuple[float, float, float]


def dot(a: Vector, b: Vector) -> float:
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    """Vector product a x b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def add(a: Vector, b: Vector) -> Vector:
    """Sum a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def sub(a: Vector, b: Vector) -> Vector:
    """Difference a - b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


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
