"""Triangles of a robot's URDF shapes, and its upright pose over the ground."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from com_model import Foot
from com_model.arrays import Array
from com_model.geometry.rotations import minimal_rotation
from com_model.geometry.support import SupportPolygon, sole_points, solid_hull
from com_model.model import RobotModel
from com_model.shapes.hulls import fit_up_axis, hull_points
from com_model.shapes.urdf_shapes import CYLINDER, MESH, Color, Shape, ShapeReader

MAX_TOTAL_TRIANGLES = 3_000_000


@dataclass(frozen=True)
class LinkTriangles:
    """Triangles of one shape of one link.

    Attributes:
        link: name of the link that carries it.
        triangles: corners (m, 3, 3) m, in the frame of the link.
        color: red, green, blue, 0 to 1.
    """

    link: str
    triangles: Array
    color: Color


@dataclass(frozen=True)
class RobotShape:
    """All shapes of a robot.

    Attributes:
        pieces: the shapes that are drawn.
        bare_links: links whose shapes could not be read; rods between joints are drawn for them.
        declared: number of <visual> elements.
        missing: shapes that are not drawn, each with the reason.
    """

    pieces: tuple[LinkTriangles, ...]
    bare_links: tuple[str, ...]
    declared: int
    missing: tuple[str, ...]


def robot_shape(model: RobotModel, urdf_path: str | Path | None) -> RobotShape:
    """Reads the shapes of a robot's URDF.

    Each link is drawn by its visuals. A link with a visual that cannot be read is drawn by its
    collision shapes instead, and when those cannot be read either (or the whole robot has no
    shape) it is listed in ``bare_links``.

    Args:
        model: the robot.
        urdf_path: its file, to which names of meshes may be relative; None: they cannot be.

    Returns:
        Triangles of at most MAX_TOTAL_TRIANGLES, and what is missing.
    """
    reader = ShapeReader(model.xml, urdf_path)
    shapes: list[Shape] = []
    bare, missing, declared = list[str](), list[str](), 0
    for link in reader.links:
        found, failed = reader.read(link, "visual")
        declared += len(found) + len(failed)
        missing += [f"{name} ({reason})" for name, reason in failed]
        if failed:
            found, failed = reader.read(link, "collision")
            found = [] if failed else found
            bare += [] if found else [link]
        shapes += found
    if not shapes and not bare:
        for found, failed in (reader.read(link, "collision") for link in reader.links):
            shapes += [] if failed else found
    if not shapes:
        bare = list(reader.links)
    pieces: list[LinkTriangles] = []
    left = MAX_TOTAL_TRIANGLES
    for shape in fit_up_axis(shapes, model):
        triangles = shape_triangles(shape)
        if len(triangles) > left:
            missing.append(
                f"{shape.name} (more than {MAX_TOTAL_TRIANGLES} triangles in all)"
            )
            bare.append(shape.link)
            continue
        left -= len(triangles)
        pieces.append(
            LinkTriangles(shape.link, triangles @ shape.R.T + shape.p, shape.color)
        )
    return RobotShape(
        tuple(pieces), tuple(dict.fromkeys(bare)), declared, tuple(missing)
    )


def shape_triangles(shape: Shape) -> Array:
    """Triangles of a shape in its own frame, of either winding.

    Args:
        shape: a mesh or a solid.

    Returns:
        (m, 3, 3) m.
    """
    if shape.kind == MESH:
        return shape.triangles
    solid = replace(shape, size=tuple(np.maximum(shape.size, 1e-6)))  # sheets, too
    points = hull_points(solid, sides=72)
    return points[solid_hull(points).simplices]


def rod_triangles(start: Array, end: Array, radius: float) -> Array:
    """Triangles of a cylinder; none if its ends coincide.

    Args:
        start: (3,) m, one end of its axis.
        end: (3,) m, the other end.
        radius: m.

    Returns:
        (m, 3, 3) m.
    """
    length = float(np.linalg.norm(end - start))
    if length == 0:
        return np.empty((0, 3, 3))
    R = minimal_rotation(np.array([0.0, 0.0, 1.0]), (end - start) / length)
    rod = Shape("", CYLINDER, (radius, length / 2), R, (start + end) / 2)
    return shape_triangles(rod) @ rod.R.T + rod.p


def upright(gravity: Array) -> Array:
    """R_world_root (3, 3): the smallest rotation that takes -gravity to z.

    Args:
        gravity: (3,) direction, root axes; NaN or zero: the identity is returned.
    """
    length = np.linalg.norm(gravity)
    if not np.isfinite(length) or length == 0:
        return np.eye(3)
    up = -np.asarray(gravity, dtype=float) / length
    return minimal_rotation(up, np.array([0.0, 0.0, 1.0]))


def root_pose(gravity: Array, projection: Array) -> tuple[Array, Array]:
    """Pose of the root link in the world: upright, with the CoM's projection at z = 0.

    Args:
        gravity: (3,) direction, axes of the root link; NaN: those axes stay as they are.
        projection: (3,) m, of the CoM onto the ground, frame of the root link; NaN: the root's
            origin is at z = 0.

    Returns:
        R (3, 3) and p (3,) m.
    """
    R = upright(gravity)
    height = (R @ projection)[2]
    return R, np.array([0.0, 0.0, -height if np.isfinite(projection).all() else 0.0])


def soles(
    feet: Sequence[Foot], pose: Callable[[str], tuple[Array, Array]]
) -> list[Array]:
    """Outlines of soles in the world; one point for a point foot.

    Args:
        feet: of the configuration.
        pose: returns R_world_link (3, 3) and the origin (3,) m of a link by its name.

    Returns:
        One array (j, 3) m for each foot.
    """
    down = np.array([0.0, 0.0, -1.0])
    outlines = []
    for foot in feet:
        R, p = pose(foot.frame)
        points = sole_points(R, p + R @ foot.center, foot.corners)
        outlines.append(points + foot.radius * down)
    return outlines


def support(outlines: Sequence[Array]) -> Array:
    """Support polygon of soles.

    Args:
        outlines: (j, 3) m each.

    Returns:
        (k, 3) m; k = 0 without soles.
    """
    if not outlines:
        return np.empty((0, 3))
    return SupportPolygon.from_points(np.concatenate(outlines)).vertices


def body_meshes(model: RobotModel, shape: RobotShape) -> dict[tuple[int, Color], Array]:
    """Triangles of a robot by body and colour, in the body's frame.

    Rods represent links whose shapes cannot be drawn.

    Args:
        model: the robot.
        shape: its shapes.

    Returns:
        (m, 3, 3) m, by index of the body and colour.
    """
    bodies, index = model.bodies, {name: i for i, name in enumerate(model.link_names)}
    found: dict[tuple[int, Color], list[Array]] = {}
    for piece in shape.pieces:
        if piece.link in index:
            i = index[piece.link]
            triangles = (
                piece.triangles @ bodies.R_body_link[i].T + bodies.p_body_link[i]
            )
            found.setdefault((int(bodies.body_of_link[i]), piece.color), []).append(
                triangles
            )
    radius = 0.02 * max(float(np.linalg.norm(np.ptp(bodies.d, axis=0))), 1e-2)
    for i, parent in enumerate(model.link_parents.tolist()):
        if parent >= 0 and model.link_names[parent] in shape.bare_links:
            own, b = bodies.body_of_link[i], int(bodies.body_of_link[parent])
            end = bodies.p_body_link[i] if own == b else bodies.d[own]
            rod = rod_triangles(bodies.p_body_link[parent], end, radius)
            found.setdefault((b, (0.55, 0.58, 0.62)), []).append(rod)
    joined = {key: np.concatenate(parts) for key, parts in found.items()}
    return {key: triangles for key, triangles in joined.items() if len(triangles)}
