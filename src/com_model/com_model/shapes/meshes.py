"""Triangles of mesh files: STL (binary and text), OBJ, COLLADA.

Enough for a picture: positions only, no textures. Files are not trusted: their size and number of
triangles are bounded, and whatever is not understood is a :class:`MeshError` with the reason.

Read by hand, not by trimesh: its COLLADA reader (pycollada) follows nodes that hold each other
without bound (13 nodes, each with the next one twice, took 32 s), and STL and OBJ alone are too
small a part of this file to import it.
"""

import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from com_model.exceptions import MeshError
from com_model.geometry.rotations import rotations_about

_Element = ET.Element


def collada_triangles(data: bytes) -> np.ndarray:
    """Return all triangles (m, 3, 3) of the document's scene, in metres; up_axis is not applied.

    Raises ValueError for no such document, or one with a DOCTYPE, which could hold entities.
    """
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data or b"\0" in data[:4]:
        raise ValueError("document type declarations and UTF-16 are not read")
    try:
        root = ET.fromstring(data)  # noqa: S314
    except ET.ParseError as error:
        raise ValueError(str(error)) from error
    unit = root.find("{*}asset/{*}unit")
    scene = _Scene(root)
    for node in root.iterfind("{*}library_visual_scenes/{*}visual_scene/{*}node"):
        scene.add(node, np.eye(4))
    return scene.triangles() * (1.0 if unit is None else float(unit.get("meter", "1")))


class _Scene:
    """Walks the nodes of a document, which may refer to each other, within bounds."""

    def __init__(self, root: _Element) -> None:
        self.by_id = {
            element.get("id"): element for element in root.iter() if element.get("id")
        }
        self.pieces = [np.empty((0, 3, 3))]
        self.nodes = 0

    def triangles(self) -> np.ndarray:
        return np.concatenate(self.pieces)

    def add(self, node: _Element, T_world_parent: np.ndarray, depth: int = 0) -> None:
        """Appends the triangles below a node.

        Args:
            node: The node.
            T_world_parent: (4, 4) pose of what holds it.
            depth: How many nodes hold it.

        Raises:
            ValueError: There are too many nodes or triangles, or they nest too deeply.
        """
        self.nodes += 1
        if (
            depth > 50
            or self.nodes > 5000
            or sum(map(len, self.pieces)) > MAX_TRIANGLES
        ):
            raise ValueError("too many nodes or triangles, or nodes nested too deeply")
        T = T_world_parent @ _node_transform(node)
        for instance in node.iterfind("{*}instance_geometry"):
            mesh = self.target(instance, "url").find("{*}mesh")
            if mesh is not None:
                self.pieces.append(self.mesh_triangles(mesh) @ T[:3, :3].T + T[:3, 3])
        for instance in node.iterfind("{*}instance_node"):
            self.add(self.target(instance, "url"), T, depth + 1)
        for child in node.iterfind("{*}node"):
            self.add(child, T, depth + 1)

    def target(self, element: _Element, attribute: str) -> _Element:
        """Return the element that an attribute such as ``url="#base"`` refers to."""
        return self.by_id[(element.get(attribute) or "").removeprefix("#")]

    def mesh_triangles(self, mesh: _Element) -> np.ndarray:
        """Return the triangles (m, 3, 3) of a <mesh>, in its own axes and unit."""
        pieces = [np.empty((0, 3, 3))]
        for primitive in mesh:
            kind = primitive.tag.rpartition("}")[2]
            if kind not in ("triangles", "polylist"):
                continue
            inputs = primitive.findall("{*}input")
            vertex = _input(inputs, "VERTEX")
            stride = 1 + max(int(entry.get("offset", "0")) for entry in inputs)
            indices = _numbers(primitive.find("{*}p"), int).reshape(-1, stride)
            indices = indices[:, int(vertex.get("offset", "0"))]
            if kind == "polylist":
                indices = _fans(indices, _numbers(primitive.find("{*}vcount"), int))
            if indices.size and indices.min() < 0:
                raise ValueError("negative vertex index")
            pieces.append(self.positions(vertex)[indices.reshape(-1, 3)])
        return np.concatenate(pieces)

    def positions(self, vertex: _Element) -> np.ndarray:
        """Return the points (k, 3) behind an <input semantic="VERTEX">."""
        vertices = self.target(vertex, "source")
        source = self.target(_input(vertices.findall("{*}input"), "POSITION"), "source")
        return _numbers(source.find("{*}float_array")).reshape(-1, 3)


def _input(inputs: list[_Element], semantic: str) -> _Element:
    for entry in inputs:
        if entry.get("semantic") == semantic:
            return entry
    raise ValueError(f"no {semantic} input")


def _node_transform(node: _Element) -> np.ndarray:
    """Return the product (4, 4) of a node's transform elements, in document order."""
    T = np.eye(4)
    for element in node:
        kind = element.tag.rpartition("}")[2]
        step = np.eye(4)
        if kind == "matrix":
            step = _numbers(element).reshape(4, 4)
        elif kind == "translate":
            step[:3, 3] = _numbers(element)
        elif kind == "scale":
            step[:3, :3] = np.diag(_numbers(element))
        elif kind == "rotate":
            x, y, z, angle_deg = _numbers(element)
            axis = np.array([[x, y, z]]) / max(np.linalg.norm([x, y, z]), 1e-300)
            step[:3, :3] = rotations_about(axis, np.radians([angle_deg]))[0]
        T = T @ step
    return T


def _fans(indices: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the vertex indices (m, 3) of polygons with `counts` corners, cut into fans."""
    if (
        counts.sum() != len(indices)
        or counts.min(initial=3) < 0
        or counts.max(initial=3) > 1000
    ):
        raise ValueError("polygons that do not fit their vertices")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    triangles = [
        np.stack([starts, starts + k, starts + k + 1], axis=1)[counts > k + 1]
        for k in range(1, int(counts.max(initial=3)) - 1)
    ]
    return indices[np.concatenate(triangles)]


def _numbers(element: _Element | None, kind: type = float) -> np.ndarray:
    """Return the white-space separated numbers in an element."""
    text = "" if element is None else element.text or ""
    return np.array(text.split(), dtype=kind)


MAX_BYTES = 64 * 1024 * 1024
MAX_TRIANGLES = 1_000_000

_STL_RECORD = np.dtype(
    [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]
)
_NUMBER = rb"[-+0-9.eE]+"
_STL_VERTEX = re.compile(rb"vertex\s+(%s)\s+(%s)\s+(%s)" % (_NUMBER, _NUMBER, _NUMBER))


class Mesh(NamedTuple):
    """The content of a mesh file.

    Attributes:
        triangles: Corners (m, 3, 3), m >= 1, in the file's axes; metres where the file says so.
        y_up: The file says that its y axis points upwards. Robot viewers differ in whether they
            turn such a mesh; here it is not turned.
    """

    triangles: np.ndarray
    y_up: bool = False


def load_mesh(path: str | Path) -> Mesh:
    """Read the triangles of a .stl, .obj or .dae file; MeshError where it is none, or too large."""
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        valid = ", ".join(sorted(_READERS))
        raise MeshError(
            path, f"no reader for '{path.suffix}', there is one for {valid}"
        )
    try:
        if path.stat().st_size > MAX_BYTES:
            raise MeshError(path, f"larger than {MAX_BYTES // 2**20} MB")
        data = path.read_bytes()
        if data.startswith(b"version https://git-lfs"):
            raise MeshError(path, "a pointer of Git LFS, not the mesh: git lfs pull")
        triangles = reader(data)
    except MeshError:
        raise
    except Exception as error:  # damaged text becomes values of any type
        raise MeshError(
            path, f"not a readable {path.suffix.lower()} file ({error})"
        ) from error
    if len(triangles) > MAX_TRIANGLES:
        raise MeshError(
            path, f"{len(triangles)} triangles, at most {MAX_TRIANGLES} are read"
        )
    triangles = triangles[np.isfinite(triangles).all(axis=(1, 2))]
    if len(triangles) == 0:
        raise MeshError(path, "no triangle in it")
    return Mesh(triangles, reader is collada_triangles and b"Y_UP" in data)


def stl_triangles(data: bytes) -> np.ndarray:
    """Return the triangles (m, 3, 3) of an STL file's content, binary or text."""
    if len(data) >= 84:
        count = int.from_bytes(data[80:84], "little")
        if len(data) >= 84 + _STL_RECORD.itemsize * count > 84:
            return np.frombuffer(data, _STL_RECORD, count, 84)["corners"].astype(float)
    if not data.lstrip()[:5].lower() == b"solid":
        raise ValueError("neither a binary nor a text STL")
    return np.array(_STL_VERTEX.findall(data), dtype=float).reshape(-1, 3, 3)


def obj_triangles(data: bytes) -> np.ndarray:
    """Return the triangles (m, 3, 3) of an OBJ file's content; polygons become fans."""
    vertices: list[list[bytes]] = []
    faces: list[tuple[int, int, int]] = []
    for line in data.splitlines():
        words = line.split()
        if words[:1] == [b"v"]:
            vertices.append(words[1:4])
        elif words[:1] == [b"f"]:
            corners = [int(word.split(b"/")[0]) for word in words[1:]]
            # Indices count from 1; negative ones count back from the newest vertex.
            corners = [i - 1 if i > 0 else len(vertices) + i for i in corners]
            faces += [(corners[0], *pair) for pair in itertools.pairwise(corners[1:])]
    indices = np.array(faces, dtype=int).reshape(-1, 3)
    if indices.size and indices.min() < 0:
        raise ValueError("a face names a vertex that does not exist")
    return np.array(vertices, dtype=float).reshape(-1, 3)[indices]


_READERS: dict[str, Callable[[bytes], np.ndarray]] = {
    ".stl": stl_triangles,
    ".obj": obj_triangles,
    ".dae": collada_triangles,
}
