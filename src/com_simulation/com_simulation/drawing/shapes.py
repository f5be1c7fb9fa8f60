"""What a robot looks like: triangles of its URDF's shapes, link by link."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from com_model.arrays import Array
from com_model.model import RobotModel
from com_model.shapes.urdf_shapes import BOX, MESH, SPHERE, Color, Shape, ShapeReader, fit_up_axis

Part = tuple[Array, Color]
"""Corners (m, 3, 3) of triangles, world frame, m, and their colour."""
Problems = dict[str, str]  # shape: why it was left out

MAX_TOTAL_TRIANGLES = 3_000_000
_SIDES = 96  # of a circle


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
    """Return the triangles (m, 3, 3) of a shape, in its own frame, m; a capsule's ends are flat."""
    if shape.kind == MESH:
        return shape.triangles
    if shape.kind == BOX:
        return box_triangles(2.0 * np.array(shape.size))
    if shape.kind == SPHERE:
        return sphere_triangles(shape.size[0])
    return cylinder_triangles(shape.size[0], 2.0 * shape.size[1])


def box_triangles(size: Array) -> Array:
    """Return the 12 triangles of a box around the origin; size (3,) is its full extent."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size / 2
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return corners[[[q[0], q[i], q[i + 1]] for q in quads for i in (1, 2)]]


def cylinder_triangles(radius: float, length: float) -> Array:
    """Return the triangles of a cylinder around z, centred at the origin."""
    return _revolve([0, radius, radius, 0], np.array([-1, -1, 1, 1]) * length / 2)


def sphere_triangles(radius: float) -> Array:
    """Return the triangles of a sphere around the origin."""
    latitude = np.linspace(-np.pi / 2, np.pi / 2, _SIDES // 2 + 1)
    return _revolve(radius * np.cos(latitude), radius * np.sin(latitude))


def rod_triangles(start: Array, end: Array, radius: float) -> Array:
    """Return the triangles of a cylinder from start (3,) to end (3,); none if they coincide."""
    axis = end - start
    length = float(np.linalg.norm(axis))
    if length == 0:
        return np.empty((0, 3, 3))
    z = axis / length
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    R = np.column_stack([x, np.cross(z, x), z])
    return cylinder_triangles(radius, length) @ R.T + (start + end) / 2


def _revolve(radii: Sequence[float] | Array, heights: Array) -> Array:
    """Return the triangles of a profile (radius, height) revolved about z."""
    angle = np.linspace(0, 2 * np.pi, _SIDES + 1)
    r, z = np.asarray(radii)[:, None], np.asarray(heights)[:, None] + 0 * angle
    grid = np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=-1)
    a, b, c, d = grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]
    triangles = np.concatenate([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)])
    triangles = triangles.reshape(-1, 3, 3)
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    return triangles[np.any(normals != 0, axis=1)]  # without the empty ones at the poles


def _note(problems: Problems, replaced: list[str], bare: list[str]) -> str:
    """Return one line on what is not drawn as the URDF has it, and why."""
    if not problems:
        return "the URDF has no shapes: lines between joints are drawn" if bare else ""
    what, why = next(iter(problems.items()))
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    instead = [f"{len(replaced)} links by collision shapes"] if replaced else []
    instead += [f"{len(bare)} links by lines between joints"] if bare else []
    return f"not drawn: {what} ({why}){more}; instead {', '.join(instead)}"
