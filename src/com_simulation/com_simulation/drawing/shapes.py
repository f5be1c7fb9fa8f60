"""What a robot looks like: triangles of its URDF's shapes, link by link."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from com_model.arrays import Array
from com_model.geometry.hull import solid_hull
from com_model.geometry.rotations import minimal_rotation
from com_model.model import RobotModel
from com_model.shapes.hulls import hull_points
from com_model.shapes.urdf_shapes import CYLINDER, MESH, Color, Shape, ShapeReader, fit_up_axis

Part = tuple[Array, Color]
"""Corners (m, 3, 3) of triangles, world frame, m, and their colour."""
Problems = dict[str, str]  # shape: why it was left out

MAX_TOTAL_TRIANGLES = 3_000_000
_SIDES = 72  # of a circle


@dataclass(frozen=True)
class LinkTriangles:
    """One shape of one link."""

    link: str  # name of the link that carries it
    triangles: Array  # corners (m, 3, 3) in the frame of the link, m
    color: Color  # red, green, blue, 0 to 1


@dataclass(frozen=True)
class RobotShape:
    """All shapes of a robot."""

    pieces: tuple[LinkTriangles, ...]
    # links whose shapes could not be drawn; lines between joints stand for them
    bare_links: tuple[str, ...]
    note: str  # one line on what was left out, empty when nothing was
    declared: int = 0  # number of <visual> elements
    missing: tuple[str, ...] = ()  # those that could not be read, each with the reason


def robot_shape(model: RobotModel, urdf_path: str | Path | None) -> RobotShape:
    """Read the shapes of a robot's URDF.

    Each link is drawn by its visuals. A link with a visual that cannot be read is drawn by its
    collision shapes instead, and when those cannot be read either (or the whole robot has no
    shape) it is listed in ``bare_links``.
    """
    reader = ShapeReader(model.xml, urdf_path)
    problems: Problems = {}
    shapes: list[Shape] = []
    bare: list[str] = []
    replaced: list[str] = []
    declared, missing = 0, list[str]()

    def read(link: str, tag: str) -> list[Shape] | None:
        nonlocal declared
        found, failed = reader.read(link, tag)
        if tag == "visual":
            declared += len(found) + len(failed)
            missing.extend(f"{name} ({reason})" for name, reason in failed)
        for name, reason in failed:
            problems.setdefault(name, reason)
        return None if failed else found

    for link in reader.links:
        visual = read(link, "visual")
        if visual is None:
            visual = read(link, "collision") or []
            (replaced if visual else bare).append(link)
        shapes += visual
    if not shapes and not bare:
        shapes = [shape for link in reader.links for shape in read(link, "collision") or ()]
    if not shapes:
        bare = list(reader.links)
    pieces, too_large = _pieces(fit_up_axis(shapes, model), problems)
    bare += [link for link in too_large if link not in bare]
    note = _note(problems, replaced, bare)
    return RobotShape(pieces, tuple(bare), note, declared, tuple(missing))


def _pieces(
    shapes: Iterable[Shape], problems: Problems
) -> tuple[tuple[LinkTriangles, ...], list[str]]:
    """Cut shapes into triangles until there are too many; return the links that are left out."""
    pieces: list[LinkTriangles] = []
    left_out: list[str] = []
    left = MAX_TOTAL_TRIANGLES
    for shape in shapes:
        triangles = shape_triangles(shape)
        if len(triangles) > left:
            problems.setdefault(shape.name, f"more than {MAX_TOTAL_TRIANGLES} triangles in all")
            left_out.append(shape.link)
            continue
        left -= len(triangles)
        pieces.append(LinkTriangles(shape.link, triangles @ shape.R.T + shape.p, shape.color))
    return tuple(pieces), left_out


def shape_triangles(shape: Shape) -> Array:
    """Return the triangles (m, 3, 3) of a shape, in its own frame, m, wound either way."""
    if shape.kind == MESH:
        return shape.triangles
    solid = replace(shape, size=tuple(np.maximum(shape.size, 1e-6)))  # sheets, too
    points = hull_points(solid, sides=_SIDES)
    return points[solid_hull(points).simplices]


def rod_triangles(start: Array, end: Array, radius: float) -> Array:
    """Return the triangles of a cylinder from start (3,) to end (3,); none if they coincide."""
    length = float(np.linalg.norm(end - start))
    if length == 0:
        return np.empty((0, 3, 3))
    R = minimal_rotation(np.array([0.0, 0.0, 1.0]), (end - start) / length)
    rod = Shape("", CYLINDER, (radius, length / 2), R, (start + end) / 2)
    return shape_triangles(rod) @ rod.R.T + rod.p


def _note(problems: Problems, replaced: list[str], bare: list[str]) -> str:
    """Return one line on what is not drawn as the URDF has it, and why."""
    if not problems:
        return "the URDF has no shapes: lines between joints are drawn" if bare else ""
    what, why = next(iter(problems.items()))
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    instead = [f"{len(replaced)} links by collision shapes"] if replaced else []
    instead += [f"{len(bare)} links by lines between joints"] if bare else []
    return f"not drawn: {what} ({why}){more}; instead {', '.join(instead)}"
