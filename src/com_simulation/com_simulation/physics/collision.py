"""Collision shapes of a URDF, as MuJoCo takes them: primitives and convex hulls of meshes."""

import os
from dataclasses import dataclass, replace

import numpy as np

from com_model import RobotModel
from com_model.shapes.hulls import hull_vertices, read_shapes
from com_model.shapes.urdf_shapes import HULL, LARGEST, MESH, NO_GEOMETRY, Shape
from com_model.text import listing

SMALLEST = 1e-5  # m; thinner things are drawings


@dataclass(frozen=True)
class Collision:
    """All collision shapes of a URDF, and which were left out: (name of the shape, reason)."""

    shapes: tuple[Shape, ...]
    left_out: tuple[tuple[str, str], ...]

    def note(self) -> str:
        """One line on what was left out; empty when nothing was."""
        if not self.left_out:
            return ""
        count = len(self.left_out)
        names = list(dict.fromkeys(name for name, _ in self.left_out))
        reasons = list(dict.fromkeys(reason for _, reason in self.left_out))
        shapes = "1 collision shape" if count == 1 else f"{count} collision shapes"
        return f"{shapes} left out: {listing(names)} ({listing(reasons, 2)})"


def read_collision(robot: RobotModel, urdf_path: str | os.PathLike[str] | None = None) -> Collision:
    """Reads the <collision> elements of a robot's URDF.

    Args:
        urdf_path: The URDF's file, if it is one: mesh names may be relative to it.
    """
    read, problems = read_shapes(robot, urdf_path)
    left_out = [problem for problem in problems if problem[1] != NO_GEOMETRY]
    solid = []
    for shape in read:
        try:
            solid.append(_solid(shape))
        except ValueError as error:
            left_out.append((shape.name, str(error)))
    return Collision(tuple(solid), tuple(left_out))


def _solid(shape: Shape) -> Shape:
    """A shape as MuJoCo takes it.

    Raises:
        ValueError: It has no volume, or is larger than any robot.
    """
    if shape.kind != MESH:
        if min(shape.size) < SMALLEST:
            raise ValueError("it has no volume")
        return shape
    points = shape.triangles.reshape(-1, 3)
    if np.abs(points).max() > LARGEST:
        raise ValueError(f"it is larger than {LARGEST:g} m")
    return replace(shape, kind=HULL, size=(), vertices=hull_vertices(points))
