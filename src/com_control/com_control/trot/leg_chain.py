"""A leg of three revolute joints as plain numbers: forward kinematics and Jacobian.

Scalar Python is several times faster here than arrays of three numbers.
"""

from __future__ import annotations

from itertools import pairwise
from math import cos, sin, sqrt

import numpy as np

from com_model.bodies import REVOLUTE
from com_model.exceptions import GeometryError
from com_model.geometry.vectors import Vector, add, cross, dot, rotate
from com_model.legs import Leg
from com_model.model import RobotModel


def norm(a: Vector) -> float:
    """Length."""
    return sqrt(dot(a, a))


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
        R, p = np.eye(3), np.zeros(3)
        axes, points = [], []
        for body in bodies.path_to(leg.body):
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
        v = rotate(a2, cos(q[2]), sin(q[2]), l2)
        v = rotate(a1, cos(q[1]), sin(q[1]), add(l1, v))
        v = rotate(a0, cos(q[0]), sin(q[0]), add(l0, v))
        return add(self.origin, v)

    def position_and_jacobian(self, q: Vector) -> tuple[Vector, tuple[Vector, Vector, Vector]]:
        """Centre of the ball, and its derivatives by the three angles (columns), m/rad."""
        (a0, a1, a2), (l0, l1, l2) = self.axes, self.links
        c0, s0, c1, s1 = cos(q[0]), sin(q[0]), cos(q[1]), sin(q[1])
        v = rotate(a2, cos(q[2]), sin(q[2]), l2)
        j2 = rotate(a1, c1, s1, cross(a2, v))
        v = rotate(a1, c1, s1, add(l1, v))
        j1 = cross(a1, v)
        v = rotate(a0, c0, s0, add(l0, v))
        columns = cross(a0, v), rotate(a0, c0, s0, j1), rotate(a0, c0, s0, j2)
        return add(self.origin, v), columns


def _vector(values: np.ndarray) -> Vector:
    x, y, z = values.tolist()
    return x, y, z
