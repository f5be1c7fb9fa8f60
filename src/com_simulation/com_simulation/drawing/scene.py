"""Where the parts of a picture of a robot are, in one upright frame."""

from collections.abc import Callable, Sequence

import numpy as np

from com_model import Foot, RobotModel
from com_model.arrays import Array
from com_model.geometry.rotations import minimal_rotation
from com_model.geometry.support import SupportPolygon, sole_points
from com_model.shapes.urdf_shapes import Color
from com_simulation.drawing.shapes import RobotShape, rod_triangles

_ROD_COLOR = (0.55, 0.58, 0.62)


def upright(gravity: Array) -> Array:
    """Return R_world_root (3, 3): the smallest turn that takes -gravity (3,) to z.

    Not known (NaN) or zero gravity leaves the root link's axes as they are.
    """
    length = np.linalg.norm(gravity)
    if not np.isfinite(length) or length == 0:
        return np.eye(3)
    up = -np.asarray(gravity, dtype=float) / length
    return minimal_rotation(up, np.array([0.0, 0.0, 1.0]))


def root_pose(gravity: Array, projection: Array) -> tuple[Array, Array]:
    """Return R (3, 3) and p (3,) of the root in the world: upright, its projection at z = 0."""
    R = upright(gravity)
    height = (R @ projection)[2]
    return R, np.array([0.0, 0.0, -height if np.isfinite(projection).all() else 0.0])


def soles(feet: Sequence[Foot], pose: Callable[[str], tuple[Array, Array]]) -> list[Array]:
    """Return the outlines (j, 3) of soles, world frame; a ball's lowest point for a point foot.

    `pose` gives R_world_link (3, 3) and the origin (3,) of a link.
    """
    down = np.array([0.0, 0.0, -1.0])
    outlines = []
    for foot in feet:
        R, p = pose(foot.frame)
        points = sole_points(R, p + R @ foot.center, foot.corners)
        outlines.append(points + foot.radius * down)
    return outlines


def support(outlines: Sequence[Array]) -> Array:
    """Return the support polygon (k, 3) of soles; k = 0 without."""
    if not outlines:
        return np.empty((0, 3))
    return SupportPolygon.from_points(np.concatenate(outlines)).vertices


def body_meshes(model: RobotModel, shape: RobotShape) -> dict[tuple[int, Color], Array]:
    """Triangles (m, 3, 3) m of a robot by body and colour, in the body's frame.

    Rods stand for links whose shapes cannot be drawn.
    """
    bodies, index = model.bodies, {name: i for i, name in enumerate(model.link_names)}
    found: dict[tuple[int, Color], list[Array]] = {}
    for piece in shape.pieces:
        if piece.link in index:
            i = index[piece.link]
            triangles = piece.triangles @ bodies.R_body_link[i].T + bodies.p_body_link[i]
            found.setdefault((int(bodies.body_of_link[i]), piece.color), []).append(triangles)
    radius = 0.02 * max(float(np.linalg.norm(np.ptp(bodies.d, axis=0))), 1e-2)
    for i, parent in enumerate(model.link_parents.tolist()):
        if parent >= 0 and model.link_names[parent] in shape.bare_links:
            own, b = bodies.body_of_link[i], int(bodies.body_of_link[parent])
            end = bodies.p_body_link[i] if own == b else bodies.d[own]
            rod = rod_triangles(bodies.p_body_link[parent], end, radius)
            found.setdefault((b, _ROD_COLOR), []).append(rod)
    joined = {key: np.concatenate(parts) for key, parts in found.items()}
    return {key: triangles for key, triangles in joined.items() if len(triangles)}
