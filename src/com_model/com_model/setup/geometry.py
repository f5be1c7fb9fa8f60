"""The outside of a robot as points on its moving bodies, from collision or visual shapes."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from com_model.arrays import Array
from com_model.bodies import Indices
from com_model.exceptions import GeometryError
from com_model.geometry.hull import solid_hull
from com_model.model import RobotModel
from com_model.shapes.urdf_shapes import BOX, CAPSULE, MESH, SPHERE, Shape, ShapeReader, fit_up_axis

_ROUND = 24  # points around a cylinder; a multiple of 4, so that the poles are among them


@dataclass(frozen=True, eq=False)
class Ball:
    """A <sphere> of a link: center (3,) m in its body's frame, radius m."""

    link: str
    center: Array
    radius: float


@dataclass(frozen=True, eq=False)
class Outside:
    """Points and balls of the moving bodies.

    Attributes:
        points: Per body (k, 3) m, corners of the convex hulls of its shapes, in the body's frame.
        links: Per body (k,) index of the link that each point belongs to.
        balls: Per body its spheres.
        problems: Shapes that could not be read, with the reason.
    """

    points: tuple[Array, ...]
    links: tuple[Indices, ...]
    balls: tuple[tuple[Ball, ...], ...]
    problems: tuple[str, ...]


def read_outside(model: RobotModel, urdf_path: str | os.PathLike[str] | None) -> Outside:
    """Reads the collision shapes of each link, the visual ones where it has none.

    Args:
        model: The robot.
        urdf_path: Its file, to which names of meshes may be relative; None for text.
    """
    reader = ShapeReader(model.xml, urdf_path)
    read: list[Shape] = []
    problems: dict[str, None] = {}  # in order
    for name in model.link_names:
        for tag in ("collision", "visual"):
            shapes, failed = reader.read(name, tag)
            problems |= dict.fromkeys(f"{shape}: {reason}" for shape, reason in failed)
            read += shapes
            if shapes:
                break
    bodies, count = model.bodies, model.bodies.count
    points: list[list[Array]] = [[np.empty((0, 3))] for _ in range(count)]
    owners: list[list[int]] = [[] for _ in range(count)]
    balls: list[list[Ball]] = [[] for _ in range(count)]
    for shape in fit_up_axis(read, model):
        link = model.link_index(shape.link)
        body, R, p = bodies.body_of_link[link], bodies.R_body_link[link], bodies.p_body_link[link]
        corners = (shape_points(shape) @ shape.R.T + shape.p) @ R.T + p
        points[body].append(corners)
        owners[body] += [link] * len(corners)
        if shape.kind == SPHERE:
            balls[body].append(Ball(shape.link, p + R @ shape.p, shape.size[0]))
    return Outside(
        tuple(np.concatenate(parts) for parts in points),
        tuple(np.array(indices, dtype=np.int64) for indices in owners),
        tuple(tuple(found) for found in balls),
        tuple(problems),
    )


def shape_points(shape: Shape) -> Array:
    """Gives points (k, 3) m whose hull is a shape's, or nearly (round ones), in its frame."""
    if shape.kind == MESH:
        vertices = np.unique(shape.triangles.reshape(-1, 3).round(7), axis=0)
        try:
            return np.asarray(vertices[solid_hull(vertices).vertices])
        except GeometryError:
            return vertices
    size = np.array(shape.size)
    if shape.kind == BOX:
        return np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size
    angle = np.linspace(0.0, 2.0 * np.pi, _ROUND, endpoint=False)
    circle = size[0] * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
    if shape.kind not in (SPHERE, CAPSULE):
        return np.concatenate([circle + np.array([0, 0, z]) for z in (-size[1], size[1])])
    latitude = np.linspace(-np.pi / 2, np.pi / 2, _ROUND // 2 + 1)
    ball = np.concatenate([circle * np.cos(a) + [0, 0, size[0] * np.sin(a)] for a in latitude])
    if shape.kind == SPHERE:
        return ball
    return np.concatenate([ball + np.array([0, 0, z]) for z in (-size[1], size[1])])
