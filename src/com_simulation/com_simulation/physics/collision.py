"""Collision shapes of a URDF, as MuJoCo takes them: primitives and convex hulls of meshes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from com_model.text import listing
from com_model.urdf.parsing import rotation_of_rpy
from com_model.urdf.xml_reader import Node, Schema, read_xml
from com_simulation.exceptions import MeshError
from com_simulation.physics.meshes import Mesh, load_mesh
from com_simulation.physics.resources import resolve_uri

Array = NDArray[np.float64]

BOX, SPHERE, CYLINDER, CAPSULE, HULL = "box", "sphere", "cylinder", "capsule", "hull"
SMALLEST, LARGEST = 1e-5, 1e4  # m; thinner things are drawings, larger ones mistakes

_PRIMITIVES = (BOX, SPHERE, CYLINDER, CAPSULE)
_GEOMETRY: Schema = {kind: {} for kind in (*_PRIMITIVES, "mesh")}
_SCHEMA: Schema = {
    "robot": {"link": {"collision": {"origin": {}, "geometry": _GEOMETRY}}},
}


@dataclass(frozen=True, eq=False)
class Shape:
    """One collision shape.

    Attributes:
        link: Name of the link that carries it.
        kind: BOX, SPHERE, CYLINDER, CAPSULE or HULL.
        size: MuJoCo's: half extents (3,) of a box; radius, half length of a cylinder or capsule;
            radius of a sphere; nothing for a hull. m.
        R: (3, 3) rotation from the shape's to the link's axes.
        p: (3,) m, origin of the shape in the link's frame.
        vertices: (m, 3) m, of a hull, in the shape's frame; else empty.
    """

    link: str
    kind: str
    size: tuple[float, ...]
    R: Array
    p: Array
    vertices: Array = field(default_factory=lambda: np.empty((0, 3)))


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


def read_collision(
    xml: str,
    urdf_path: str | os.PathLike[str] | None = None,
    link_coms: Mapping[str, Array] | None = None,
) -> Collision:
    """Reads the <collision> elements of a URDF.

    Some robots are made for viewers that turn COLLADA meshes whose y axis points up, some for
    viewers that do not: the reading counts whose hulls lie nearer to their links' centres of mass.

    Args:
        xml: A URDF that com_model has accepted.
        urdf_path: Where it stands, if it is a file: mesh names may be relative to it.
        link_coms: (3,) m by name of the link, in its frame.
    """
    robot, _ = read_xml(xml, _SCHEMA)
    reader = _Reader(None if urdf_path is None else Path(urdf_path), {}, False)
    result = reader.read(robot)
    if link_coms and any(isinstance(mesh, Mesh) and mesh.y_up for mesh in reader.meshes.values()):
        turned = _Reader(reader.urdf_path, reader.meshes, True).read(robot)
        return min(result, turned, key=lambda c: _distance(c, link_coms))
    return result


def _distance(collision: Collision, link_coms: Mapping[str, Array]) -> float:
    """Sum of the distances (m) of the hulls' middles to the centres of mass of their links."""
    hulls = [s for s in collision.shapes if s.kind == HULL and s.link in link_coms]
    middles = [s.p + s.R @ s.vertices.mean(axis=0) for s in hulls]
    return sum(
        float(np.linalg.norm(middle - link_coms[s.link]))
        for s, middle in zip(hulls, middles, strict=True)
    )


class _Reader:
    """Collects shapes; each mesh file is read once."""

    def __init__(
        self, urdf_path: Path | None, meshes: dict[Path, Mesh | MeshError], turn_y_up: bool
    ) -> None:
        self.urdf_path, self.meshes, self.turn_y_up = urdf_path, meshes, turn_y_up
        self.shapes: list[Shape] = []
        self.left_out: list[tuple[str, str]] = []

    def read(self, robot: Node) -> Collision:
        for link in robot.all("link"):
            for collision in link.all("collision"):
                self.add(link.attributes.get("name", ""), collision)
        return Collision(tuple(self.shapes), tuple(self.left_out))

    def add(self, link: str, collision: Node) -> None:
        geometry = next((g for g in collision.all("geometry") if g.children or g.others), None)
        if geometry is None:
            return  # an empty <collision/> means nothing
        shape = geometry.children[0] if geometry.children else None
        try:
            if shape is None:
                raise ValueError(f"unknown geometry {next(iter(geometry.others))!r}")
            R, p = _pose(collision)
            kind, size, vertices = self._geometry(shape)
        except (MeshError, ValueError) as error:
            self.left_out.append((_what(link, shape), _reason(error)))
        else:
            self.shapes.append(Shape(link, kind, size, R, p, vertices))

    def _geometry(self, shape: Node) -> tuple[str, tuple[float, ...], Array]:
        none = np.empty((0, 3))
        if shape.tag == "mesh":
            return HULL, (), self._hull(shape)
        if shape.tag == BOX:
            x, y, z = _numbers(shape, "size", 3) / 2
            return BOX, _sizes(x, y, z), none
        (radius,) = _numbers(shape, "radius", 1)
        if shape.tag == SPHERE:
            return SPHERE, _sizes(radius), none
        (length,) = _numbers(shape, "length", 1)
        return shape.tag, _sizes(radius, length / 2), none

    def _hull(self, mesh: Node) -> Array:
        path = resolve_uri(mesh.attributes.get("filename", ""), self.urdf_path)
        if path is None:
            raise ValueError("file not found in the robot's package")
        if path not in self.meshes:
            self.meshes[path] = _try_load(path)
        loaded = self.meshes[path]
        if isinstance(loaded, MeshError):
            raise loaded
        points = loaded.triangles.reshape(-1, 3)
        if loaded.y_up and self.turn_y_up:
            points = points[:, [0, 2, 1]] * [1.0, -1.0, 1.0]
        scale = _numbers(mesh, "scale", 3) if "scale" in mesh.attributes else np.ones(3)
        points = points * scale
        if np.abs(points).max() > LARGEST:
            raise ValueError(f"it is larger than {LARGEST:g} m")
        return convex_hull(points)


def convex_hull(points: Array) -> Array:
    """Vertices (k, 3) of the convex hull of points (m, 3), m.

    Raises:
        ValueError: The points span no volume.
    """
    # MuJoCo keeps vertices in single precision: those that it could not tell apart are merged.
    points = np.unique(points.astype(np.float32), axis=0).astype(float)
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError) as error:
        raise ValueError("it has no volume") from error
    if hull.volume < SMALLEST * hull.area:
        raise ValueError("it has no volume")
    return np.asarray(points[hull.vertices])


def _try_load(path: Path) -> Mesh | MeshError:
    try:
        return load_mesh(path)
    except MeshError as error:
        return error


def _what(link: str, shape: Node | None) -> str:
    if shape is not None and shape.tag == "mesh":
        return shape.attributes.get("filename", "").rsplit("/", 1)[-1][:80] or "mesh without a name"
    return f"{'shape' if shape is None else shape.tag} of {link[:80]}"


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, MeshError) else str(error)


def _pose(collision: Node) -> tuple[Array, Array]:
    origin = next(iter(collision.all("origin")), None)
    if origin is None:
        return np.eye(3), np.zeros(3)
    zero = np.zeros(3)
    rpy = _numbers(origin, "rpy", 3) if "rpy" in origin.attributes else zero
    xyz = _numbers(origin, "xyz", 3) if "xyz" in origin.attributes else zero
    return rotation_of_rpy(rpy.tolist()), xyz


def _numbers(node: Node, key: str, size: int) -> Array:
    text = node.attributes.get(key, "")
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.empty(0)
    if values.shape != (size,) or not np.isfinite(values).all():
        raise ValueError(f"{key} is {text[:40]!r}, not {size} finite numbers")
    if np.abs(values).max() > LARGEST:
        raise ValueError(f"{key} is {text[:40]!r}, more than {LARGEST:g} m")
    return values


def _sizes(*sizes: float) -> tuple[float, ...]:
    if min(sizes) < SMALLEST:
        raise ValueError("it has no volume")
    return tuple(float(size) for size in sizes)
