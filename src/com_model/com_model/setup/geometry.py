"""The outside of a robot as points on its moving bodies, from collision or visual shapes."""

import os
from dataclasses import dataclass

import numpy as np

from com_model.arrays import Array
from com_model.bodies import Indices
from com_model.model import RobotModel
from com_model.shapes.hulls import hull_points, read_shapes
from com_model.shapes.urdf_shapes import SPHERE


@dataclass(frozen=True, eq=False)
class Ball:
    """A <sphere> of a link: center (3,) m in its body's frame, radius m."""

    link: str
    center: Array
    radius: float


@dataclass(frozen=True, eq=False)
class Outside:
    """Points and balls of the moving bodies."""

    # per body (k, 3) m, corners of the convex hulls of its shapes, in the body's frame
    points: tuple[Array, ...]
    links: tuple[Indices, ...]  # per body (k,) index of the link that each point belongs to
    balls: tuple[tuple[Ball, ...], ...]  # per body its spheres
    problems: tuple[str, ...]  # shapes that could not be read, with the reason


def read_outside(model: RobotModel, urdf_path: str | os.PathLike[str] | None) -> Outside:
    """Reads the collision shapes of each link, the visual ones where it has none.

    Args:
        urdf_path: Its file, to which names of meshes may be relative; None for text.
    """
    read, failed = read_shapes(model, urdf_path, ("collision", "visual"))
    problems = dict.fromkeys(f"{shape}: {reason}" for shape, reason in failed)  # in order
    bodies, count = model.bodies, model.bodies.count
    points: list[list[Array]] = [[np.empty((0, 3))] for _ in range(count)]
    owners: list[list[int]] = [[] for _ in range(count)]
    balls: list[list[Ball]] = [[] for _ in range(count)]
    for shape in read:
        link = model.link_index(shape.link)
        body, R, p = bodies.body_of_link[link], bodies.R_body_link[link], bodies.p_body_link[link]
        corners = (hull_points(shape) @ shape.R.T + shape.p) @ R.T + p
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
