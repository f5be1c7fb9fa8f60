"""Visual and collision shapes of a URDF: primitives and meshes, where they stand and their colour.

A URDF comes from anywhere: a shape that cannot be read is a problem with a reason, never an error
that stops the reading of the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from com_model.arrays import Array
from com_model.exceptions import MeshError, UrdfError
from com_model.shapes.meshes import Mesh, load_mesh
from com_model.shapes.resources import resolve_uri, where_searched
from com_model.urdf.parsing import read_pose, read_vector
from com_model.urdf.xml_reader import Node, Schema, read_xml

Color = tuple[float, float, float]  # red, green, blue, 0 to 1

BOX, SPHERE, CYLINDER, CAPSULE, MESH, HULL = (
    "box",
    "sphere",
    "cylinder",
    "capsule",
    "mesh",
    "hull",
)
LARGEST = 1e4  # m; larger things are mistakes
NO_GEOMETRY = "no geometry"
NO_MESH = Mesh(np.empty((0, 3, 3)))
PLAIN_COLOR = (0.80, 0.81, 0.83)
_XYZ = np.eye(3)  # axes

_SHAPE: Schema = {
    "origin": {},
    "geometry": {kind: {} for kind in (BOX, SPHERE, CYLINDER, CAPSULE, MESH)},
    "material": {"color": {}},
}
_SCHEMA: Schema = {
    "robot": {
        "material": {"color": {}},
        "link": {"visual": _SHAPE, "collision": _SHAPE},
    }
}


@dataclass(frozen=True, eq=False)
class Shape:
    """One <visual> or <collision>.

    Attributes:
        link: Name of the link that carries it.
        kind: BOX, SPHERE, CYLINDER, CAPSULE or MESH; HULL of a mesh that may collide.
        size: MuJoCo's: half extents (3,) of a box; radius, half length of a cylinder or capsule;
            radius of a sphere; scale (3,) of a mesh; nothing for a hull. m.
        R: (3, 3) rotation from the shape's to the link's axes.
        p: (3,) m, origin of the shape in the link's frame.
        name: Its mesh file, or its kind and link; for messages.
        color: Of a visual.
        mesh: Of a mesh, before its scale.
        vertices: (m, 3) m, of a hull, in the shape's frame.
    """

    link: str
    kind: str
    size: tuple[float, ...]
    R: Array
    p: Array
    name: str = ""
    color: Color = PLAIN_COLOR
    mesh: Mesh = NO_MESH
    vertices: Array = field(default_factory=lambda: np.empty((0, 3)))

    @property
    def triangles(self) -> Array:
        """Corners (m, 3, 3) m of a mesh, scaled, in the shape's frame."""
        return self.mesh.triangles * self.size

    def reach(self, axes: Array) -> Array:
        """How far a primitive reaches from its centre along unit axes (K, 3) of its frame, m."""
        if self.kind == BOX:
            return np.asarray(np.abs(axes) @ self.size)
        radius, *length = self.size
        across = np.hypot(axes[:, 0], axes[:, 1]) if self.kind == CYLINDER else 1.0
        return np.asarray(radius * across + sum(length) * np.abs(axes[:, 2]))

    def turned(self) -> Shape:
        """The shape with the y axis of its mesh file turned to z."""
        triangles = self.mesh.triangles[..., [0, 2, 1]] * [1.0, -1.0, 1.0]
        return replace(self, mesh=self.mesh._replace(triangles=triangles))


class ShapeReader:
    """Reads shapes of links, each mesh file once; mesh names may be relative to the URDF's path."""

    def __init__(self, xml: str, urdf_path: str | os.PathLike[str] | None) -> None:
        robot, _ = read_xml(xml, _SCHEMA)
        self._urdf_path = None if urdf_path is None else Path(urdf_path)
        self._meshes: dict[Path, Mesh | MeshError] = {}
        self._links = {
            link.attributes.get("name", ""): link for link in robot.all("link")
        }
        visuals = [
            visual for link in self._links.values() for visual in link.all("visual")
        ]
        named = [m for holder in (robot, *visuals) for m in holder.all("material")]
        self._colors = dict(_named_colors(named))
        self.links = tuple(self._links)

    def read(self, link: str, tag: str) -> tuple[list[Shape], list[tuple[str, str]]]:
        """Reads the shapes of a link.

        Args:
            link: Its name.
            tag: "visual" or "collision".

        Returns:
            The shapes; names and reasons of unreadable ones.
        """
        shapes, problems = [], []
        for element in self._links[link].all(tag):
            geometry = next(
                (g for g in element.all("geometry") if g.children or g.others), None
            )
            shape = geometry.children[0] if geometry and geometry.children else None
            if geometry is None or shape is None:
                other = geometry and f"unknown geometry {next(iter(geometry.others))!r}"
                problems.append((_name(link, shape), other or NO_GEOMETRY))
                continue
            try:
                shapes.append(self._shape(link, element, shape))
            except (MeshError, UrdfError) as error:
                reason = error.reason if isinstance(error, MeshError) else error.message
                problems.append((_name(link, shape), reason))
        return shapes, problems

    def bounds(
        self, link: str, axes: Array = _XYZ, meshes: bool = False
    ) -> tuple[Array, Array] | None:
        """Finds where all shapes of a link end along some directions.

        Mesh files are not kept; one whose y axis points up is taken in both of its readings.

        Args:
            link: Its name.
            axes: (K, 3) unit vectors in its frame; by default x, y, z: the box around the
                shapes.
            meshes: Whether mesh files are read.

        Returns:
            Lowest and highest coordinates (K,) m. None where the link has no shape, one that
            cannot be read, or a mesh that is not asked for.
        """
        found = [self.read(link, tag) for tag in ("visual", "collision")]
        shapes = [shape for read, _ in found for shape in read]
        if not shapes or any(problems for _, problems in found):
            return None
        if any(shape.kind == MESH for shape in shapes) and not meshes:
            return None
        self._meshes.clear()
        ends = []
        for shape in shapes + [shape.turned() for shape in shapes if shape.mesh.y_up]:
            own = axes @ shape.R
            if shape.kind == MESH:
                along = shape.triangles.reshape(-1, 3) @ own.T
            else:
                along = shape.reach(own) * np.array([[-1.0], [1.0]])
            ends.append(axes @ shape.p + along)
        low, high = [end.min(axis=0) for end in ends], [end.max(axis=0) for end in ends]
        return np.min(low, axis=0), np.max(high, axis=0)

    def _shape(self, link: str, element: Node, shape: Node) -> Shape:
        R, p = read_pose(element, element, LARGEST)
        where = str(shape)
        mesh = NO_MESH
        if shape.tag == MESH:
            size = np.ones(3)
            if "scale" in shape.attributes:
                size = read_vector(shape, "scale", where, 3, LARGEST)
            mesh = self._mesh(shape.attributes.get("filename", ""))
        elif shape.tag == BOX:
            size = read_vector(shape, "size", where, 3, LARGEST) / 2.0
        else:
            size = read_vector(shape, "radius", where, 1, LARGEST)
            if shape.tag != SPHERE:
                size = np.append(
                    size, read_vector(shape, "length", where, 1, LARGEST) / 2.0
                )
        name, color = _name(link, shape), self._color(element)
        return Shape(link, shape.tag, tuple(size.tolist()), R, p, name, color, mesh)

    def _mesh(self, uri: str) -> Mesh:
        path = resolve_uri(uri, self._urdf_path)
        if path is None:
            raise MeshError(uri, where_searched(uri, self._urdf_path))
        if path not in self._meshes:
            try:
                self._meshes[path] = load_mesh(path)
            except MeshError as error:
                self._meshes[path] = error
        mesh = self._meshes[path]
        if isinstance(mesh, MeshError):
            raise mesh
        return mesh

    def _color(self, element: Node) -> Color:
        material = next(iter(element.all("material")), None)
        if material is None:
            return PLAIN_COLOR
        own = dict(_named_colors([material]))
        return (own or self._colors).get(
            material.attributes.get("name", ""), PLAIN_COLOR
        )


def _named_colors(materials: Iterable[Node]) -> Iterable[tuple[str, Color]]:
    for material in materials:
        color = next(iter(material.all("color")), None)
        words = "" if color is None else color.attributes.get("rgba", "")
        try:
            red, green, blue, _ = np.clip(
                np.array(words.split(), dtype=float), 0, 1
            ).tolist()
        except ValueError:  # no colour, or not four numbers: as if there were none
            continue
        yield material.attributes.get("name", ""), (red, green, blue)


def _name(link: str, shape: Node | None) -> str:
    """Name of a shape in a message: its mesh file, or its kind."""
    if shape is not None and shape.tag == MESH:
        return (
            shape.attributes.get("filename", "").rsplit("/", 1)[-1][:80]
            or "mesh without a name"
        )
    return f"{'shape' if shape is None else shape.tag} of {link[:80]}"
