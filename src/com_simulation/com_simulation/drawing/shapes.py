"""What a robot looks like: triangles of its URDF's shapes, link by link."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from com_simulation.drawing.primitives import box_triangles, cylinder_triangles, sphere_triangles
from com_simulation.exceptions import MeshError
from com_simulation.physics.meshes import Mesh, load_mesh
from com_simulation.physics.resources import resolve_uri

MAX_TOTAL_TRIANGLES = 3_000_000
PLAIN_COLOR = (0.80, 0.81, 0.83)


@dataclass(frozen=True)
class Piece:
    """One shape of one link.

    Attributes:
        link: name of the link that carries it.
        triangles: corners (m, 3, 3) in the frame of the link, m.
        color: red, green, blue, 0 to 1.
    """

    link: str
    triangles: np.ndarray
    color: tuple[float, float, float]


@dataclass(frozen=True)
class RobotShape:
    """All shapes of a robot.

    Attributes:
        pieces: what can be drawn.
        bare_links: links whose shapes could not be drawn; lines between joints stand for them.
        note: one line on what was left out, empty when nothing was.
    """

    pieces: tuple[Piece, ...]
    bare_links: tuple[str, ...]
    note: str


def robot_shape(xml: str, urdf_path: str | Path | None) -> RobotShape:
    """Read the shapes of a URDF that :class:`com_model.RobotModel` has accepted.

    Each link is drawn by its visuals. A link with a visual that cannot be read is drawn by its
    collision shapes instead, and when those cannot be read either (or the whole robot has no
    shape) it is listed in ``bare_links``.

    Robots are made for viewers that turn COLLADA meshes whose y axis points upwards, or for viewers
    that do not. Of the two readings that one counts whose shapes lie nearer to the centres of mass
    of their links.
    """
    root = ET.fromstring(xml)  # noqa: S314  its entities were refused by RobotModel
    reader = _ShapeReader(root, urdf_path)
    shape = _read(root, reader)
    if any(mesh.y_up for mesh in reader.meshes.values()):
        turning = _ShapeReader(root, urdf_path, reader.meshes, turn_y_up=True)
        shape = min(shape, _read(root, turning), key=lambda s: _distance_to_coms(s, root))
    return shape


def _read(root: ET.Element, reader: _ShapeReader) -> RobotShape:
    pieces: list[Piece] = []
    bare: list[str] = []
    replaced: list[str] = []
    for link in root.findall("link"):
        name = link.get("name", "")
        visual = reader.pieces(link, "visual")
        if visual is None:
            collision = reader.pieces(link, "collision") or ()
            (replaced if collision else bare).append(name)
            visual = collision
        pieces.extend(visual)
    if not pieces and not bare:
        pieces = [
            p for link in root.findall("link") for p in reader.pieces(link, "collision") or ()
        ]
    if not pieces:
        bare = [link.get("name", "") for link in root.findall("link")]
    return RobotShape(tuple(pieces), tuple(bare), _note(reader.problems, replaced, bare))


class _ShapeReader:
    """Reads the shapes of links, each mesh file once."""

    def __init__(
        self,
        root: ET.Element,
        urdf_path: str | Path | None,
        meshes: dict[Path, Mesh] | None = None,
        turn_y_up: bool = False,
    ) -> None:
        self.urdf_path = urdf_path
        self.meshes = {} if meshes is None else meshes
        self.turn_y_up = turn_y_up
        self.colors = dict(_named_colors(root.findall("material")))
        self.colors |= dict(_named_colors(root.iterfind("link/visual/material")))
        self.problems: dict[str, str] = {}  # shape: why it was left out
        self.triangles_left = MAX_TOTAL_TRIANGLES

    def pieces(self, link: ET.Element, kind: str) -> tuple[Piece, ...] | None:
        """Return a link's "visual" or "collision" shapes; None if one cannot be read."""
        pieces = []
        for element in link.findall(kind):
            try:
                R, p = _pose(element.find("origin"))
                color = self.color(element.find("material"))
                triangles = self.triangles(element) @ R.T + p
            except (MeshError, ValueError) as error:
                self.problems.setdefault(_what(element), str(error))
                return None
            pieces.append(Piece(link.get("name", ""), triangles, color))
        return tuple(pieces)

    def triangles(self, element: ET.Element) -> np.ndarray:
        """Return the triangles of a <visual> or <collision>, before its origin."""
        geometry = element.find("geometry")
        shape = None if geometry is None else next(iter(geometry), None)
        if shape is None:
            raise ValueError("no geometry")
        if shape.tag == "mesh":
            triangles = self.mesh(shape.get("filename", "")) * _vector(shape, "scale", "1 1 1")
        elif shape.tag in _PRIMITIVES:
            triangles = _PRIMITIVES[shape.tag](shape)
        else:
            raise ValueError(f"unknown geometry '{shape.tag}'")
        if len(triangles) > self.triangles_left:
            raise ValueError(f"more than {MAX_TOTAL_TRIANGLES} triangles in all")
        self.triangles_left -= len(triangles)
        return triangles

    def mesh(self, uri: str) -> np.ndarray:
        path = resolve_uri(uri, self.urdf_path)
        if path is None:
            raise ValueError("no such file in the robot's package")
        if path not in self.meshes:
            self.meshes[path] = load_mesh(path)
        triangles, y_up = self.meshes[path]
        if y_up and self.turn_y_up:
            return np.stack([triangles[..., 0], -triangles[..., 2], triangles[..., 1]], axis=-1)
        return triangles

    def color(self, material: ET.Element | None) -> tuple[float, float, float]:
        if material is None:
            return PLAIN_COLOR
        own = dict(_named_colors([material]))
        return (own or self.colors).get(material.get("name", ""), PLAIN_COLOR)


_PRIMITIVES: dict[str, Callable[[ET.Element], np.ndarray]] = {
    "box": lambda e: box_triangles(_vector(e, "size")),
    "cylinder": lambda e: cylinder_triangles(_number(e, "radius"), _number(e, "length")),
    "capsule": lambda e: cylinder_triangles(_number(e, "radius"), _number(e, "length")),
    "sphere": lambda e: sphere_triangles(_number(e, "radius")),
}


def _vector(element: ET.Element, attribute: str, default: str = "") -> np.ndarray:
    values = np.array(element.get(attribute, default).split(), dtype=float)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise ValueError(f"{attribute} needs three numbers, got '{element.get(attribute)}'")
    return values


def _number(element: ET.Element, attribute: str) -> float:
    value = float(element.get(attribute, ""))
    if not math.isfinite(value):
        raise ValueError(f"{attribute} is not finite")
    return value


def _pose(origin: ET.Element | None) -> tuple[np.ndarray, np.ndarray]:
    """Return (R (3, 3), p (3,)) of an <origin>: rpy about fixed x, y, z axes."""
    if origin is None:
        return np.eye(3), np.zeros(3)
    rpy = _vector(origin, "rpy", "0 0 0")
    return Rotation.from_euler("xyz", rpy).as_matrix(), _vector(origin, "xyz", "0 0 0")


def _distance_to_coms(shape: RobotShape, root: ET.Element) -> float:
    """Return the mean distance between the middle of a piece and the CoM of its link, m."""
    coms = {}
    for link in root.findall("link"):
        origin = link.find("inertial/origin")
        if origin is not None:
            coms[link.get("name", "")] = _vector(origin, "xyz", "0 0 0")
    distances = [
        np.linalg.norm(piece.triangles.reshape(-1, 3).mean(axis=0) - coms[piece.link])
        for piece in shape.pieces
        if piece.link in coms
    ]
    return float(np.mean(distances)) if distances else 0.0


def _named_colors(
    materials: Iterable[ET.Element],
) -> Iterable[tuple[str, tuple[float, float, float]]]:
    for material in materials:
        color = material.find("color")
        words = "" if color is None else color.get("rgba", "")
        try:
            red, green, blue, _ = np.clip(np.array(words.split(), dtype=float), 0, 1).tolist()
        except ValueError:  # no colour, or not four numbers: as if there were none
            continue
        yield material.get("name", ""), (red, green, blue)


def _what(element: ET.Element) -> str:
    """Name a shape in a message: its mesh file, or its kind."""
    mesh = element.find("geometry/mesh")
    return element.tag if mesh is None else Path(mesh.get("filename", "")).name


def _note(problems: dict[str, str], replaced: list[str], bare: list[str]) -> str:
    """Say in one line what is not drawn as the URDF has it, and why."""
    if not problems:
        return "the URDF has no shapes: lines between joints are drawn" if bare else ""
    what, why = next(iter(problems.items()))
    why = why.removeprefix(f"{what}: ")
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    instead = [f"{len(replaced)} links by collision shapes"] if replaced else []
    instead += [f"{len(bare)} links by lines between joints"] if bare else []
    return f"not drawn: {what} ({why}){more}; instead {', '.join(instead)}"
