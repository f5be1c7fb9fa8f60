"""Triangles of mesh files: STL (binary and text), OBJ, COLLADA.

Enough for a picture: positions only, no textures. Files are not trusted: their size and number of
triangles are bounded, and whatever is not understood is a :class:`MeshError` with the reason.
"""

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from com_model.exceptions import MeshError
from com_model.shapes.collada import collada_triangles

MAX_BYTES = 64 * 1024 * 1024
MAX_TRIANGLES = 1_000_000

_STL_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_NUMBER = rb"[-+0-9.eE]+"
_STL_VERTEX = re.compile(rb"vertex\s+(%s)\s+(%s)\s+(%s)" % (_NUMBER, _NUMBER, _NUMBER))


class Mesh(NamedTuple):
    """The content of a mesh file."""

    # corners (m, 3, 3), m >= 1, in the file's axes; metres where the file says so
    triangles: np.ndarray
    # the file says that its y axis points upwards. Robot viewers differ in whether they turn
    # such a mesh; here it is not turned.
    y_up: bool = False


def load_mesh(path: str | Path) -> Mesh:
    """Read the triangles of a mesh file.

    Args:
        path: a file ending in .stl, .obj or .dae, in any case of letters.

    Raises:
        MeshError: not such a file, too large, damaged, or without a triangle.
    """
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise MeshError(path, f"no reader for '{path.suffix}', there is one for {_suffixes()}")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise MeshError(path, f"larger than {MAX_BYTES // 2**20} MB")
        data = path.read_bytes()
        triangles = reader(data)
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise MeshError(path, f"not a readable {path.suffix.lower()} file ({error})") from error
    if len(triangles) > MAX_TRIANGLES:
        raise MeshError(path, f"{len(triangles)} triangles, at most {MAX_TRIANGLES} are read")
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


def _suffixes() -> str:
    return ", ".join(sorted(_READERS))


_READERS: dict[str, Callable[[bytes], np.ndarray]] = {
    ".stl": stl_triangles,
    ".obj": obj_triangles,
    ".dae": collada_triangles,
}
