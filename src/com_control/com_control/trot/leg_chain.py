"""A leg of three revolute joints as plain numbers: forward kinematics and Jacobian.

Scalar Python is several times faster here than arrays of three numbers.
"""

from __future__ import annotations

from itertools import pairwise
from math import cos, sin, sqrt

import numpy as np

from com_model.bodies import REVOLUTE
from com_model.exceptions import GeometryError
from com_model.legs import Leg
from com_model.model import RobotModel

Vector = tuple[float, float, float]


def dot(a: Vector, b: Vector) -> float:
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    """Vector product."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def add(a: Vector, b: Vector) -> Vector:
    """Sum."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def sub(a: Vector, b: Vector) -> Vector:
    """Difference a - b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def norm(a: Vector) -> float:
    """Length."""
    return sqrt(dot(a, a))


def turn(axis: Vector, c: float, s: float, v: Vector) -> Vector:
    """Turns v about a unit axis by the angle with cosine c and sine s (Rodrigues)."""
    ax, ay, az = axis
    x, y, z = v
    k = (ax * x + ay * y + az * z) * (1.0 - c)
    return (
        c * x + s * (ay * z - az * y) + k * ax,
        c * y + s * (az * x - ax * z) + k * ay,
        c * z + s * (ax * y - ay * x) + k * az,
    )


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
        chain, body = [], leg.body
        while body > 0:
            chain.append(body)
            body = int(bodies.parent[body])
        R, p = np.eye(3), np.zeros(3)
        axes, points = [], []
        for body in chain[::-1]:
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
        v = turn(a2, cos(q[2]), sin(q[2]), l2)
        v = turn(a1, cos(q[1]), sin(q[1]), add(l1, v))
        v = turn(a0, cos(q[0]), sin(q[0]), add(l0, v))
        return add(self.origin, v)

    def position_and_jacobian(self, q: Vector) -> tuple[Vector, tuple[Vector, Vector, Vector]]:
        """Centre of the ball, and its derivatives by the three angles (columns), m/rad."""
        (a0, a1, a2), (l0, l1, l2) = self.axes, self.links
        c0, s0, c1, s1 = cos(q[0]), sin(q[0]), cos(q[1]), sin(q[1])
        v = turn(a2, cos(q[2]), sin(q[2]), l2)
        j2 = turn(a1, c1, s1, cross(a2, v))
        v = turn(a1, c1, s1, add(l1, v))
        j1 = cross(a1, v)
        v = turn(a0, c0, s0, add(l0, v))
        columns = cross(a0, v), turn(a0, c0, s0, j1), turn(a0, c0, s0, j2)
        return add(self.origin, v), columns


def _vector(values: np.ndarray) -> Vector:
    x, y, z = values.tolist()
    return x, y, z
