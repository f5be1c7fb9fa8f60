"""Triangles of STL, OBJ and COLLADA files; damaged files are reported by name and reason."""

from pathlib import Path

import numpy as np
import pytest

from com_model.exceptions import ComModelError, MeshError
from com_model.shapes.meshes import load_mesh

TRIANGLES = np.array(
    [[[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 0, 1], [1, 0, 1], [0, 1, 1.5]]],
    dtype=float,
)

COLLADA = """<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="centimeter" meter="0.01"/><up_axis>Y_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
  <source id="s"><float_array id="a" count="12">0 0 0 1 0 0 1 1 0 0 1 0</float_array></source>
  <vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
  {primitive}
</mesh></geometry></library_geometries>
<library_nodes>{library}</library_nodes>
<library_visual_scenes><visual_scene id="scene">{scene}</visual_scene></library_visual_scenes>
</COLLADA>"""
INPUTS = (
    '<input semantic="VERTEX" source="#v" offset="0"/>'
    '<input semantic="NORMAL" source="#n" offset="1"/>'
)
QUAD = (
    f'<polylist count="1">{INPUTS}<vcount>4</vcount><p>0 9 1 9 2 9 3 9</p></polylist>'
)
PLAIN = '<node><instance_geometry url="#g"/></node>'


def collada(
    path: Path, primitive: str = QUAD, scene: str = PLAIN, library: str = ""
) -> Path:
    path.write_text(COLLADA.format(primitive=primitive, scene=scene, library=library))
    return path


def binary_stl(triangles: np.ndarray) -> bytes:
    records = np.zeros(
        len(triangles), [("normal", "<f4", 3), ("corners", "<f4", 9), ("a", "<u2")]
    )
    records["corners"] = triangles.reshape(-1, 9)
    return b"solid binary files may say so too".ljust(80) + (
        len(triangles).to_bytes(4, "little") + records.tobytes()
    )


def test_binary_stl(tmp_path: Path) -> None:
    path = tmp_path / "a.STL"
    path.write_bytes(binary_stl(TRIANGLES))
    np.testing.assert_array_equal(load_mesh(path).triangles, TRIANGLES)


def test_text_stl(tmp_path: Path) -> None:
    facets = "".join(
        "facet normal 0 0 1\n outer loop\n"
        + "".join(f"  vertex {x:e} {y} {z}\n" for x, y, z in corners)
        + " endloop\nendfacet\n"
        for corners in TRIANGLES
    )
    path = tmp_path / "a.stl"
    path.write_text(f"solid a\n{facets}endsolid a\n")
    np.testing.assert_array_equal(load_mesh(path).triangles, TRIANGLES)


def test_obj_polygons_become_fans_and_indices_may_count_back(tmp_path: Path) -> None:
    path = tmp_path / "a.obj"
    path.write_text(
        "# quad\nv 0 0 0 1 1 1\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvn 0 0 1\n"
        "f 1//1 2//1 3//1 4//1\nf -4/1 -3/2 -2/3\n"
    )
    quad = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=float)
    np.testing.assert_array_equal(
        load_mesh(path).triangles, quad[[[0, 1, 2], [0, 2, 3], [0, 1, 2]]]
    )


def test_collada_polygons_in_metres_and_up_axis_left_alone(tmp_path: Path) -> None:
    quad = 0.01 * np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=float)
    loaded = load_mesh(collada(tmp_path / "a.dae"))
    assert loaded.y_up
    np.testing.assert_allclose(loaded.triangles, quad[[[0, 1, 2], [0, 2, 3]]])


def test_collada_transforms_apply_in_document_order_down_the_nodes(
    tmp_path: Path,
) -> None:
    triangle = f'<triangles count="1">{INPUTS}<p>0 9 1 9 2 9</p></triangles>'
    scene = (
        "<node><translate>5 0 0</translate><rotate>0 0 1 90</rotate><scale>2 1 1</scale>"
        '<instance_node url="#held"/></node>'
    )
    held = (
        '<node id="held"><matrix>1 0 0 0 0 1 0 0 0 0 1 7 0 0 0 1</matrix>'
        '<node><instance_geometry url="#g"/></node></node>'
    )
    loaded = load_mesh(collada(tmp_path / "a.dae", triangle, scene, held))
    np.testing.assert_allclose(
        100 * loaded.triangles, [[[5, 0, 7], [5, 2, 7], [4, 2, 7]]], atol=1e-12
    )


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.ply", b"ply", "no reader for '.ply', there is one for .dae, .obj, .stl"),
        ("a.stl", b"", "neither a binary nor a text STL"),
        ("a.stl", b"solid a\nendsolid a\n", "no triangle in it"),
        (
            "a.stl",
            b"\0" * 80 + b"\xff\xff\xff\xff" + b"\0" * 50,
            "neither a binary nor a text",
        ),
        ("a.stl", b"solid\nvertex 1 2 3\n", "not a readable .stl file"),
        ("a.obj", b"v 0 0 0\nf 1 2 3\n", "not a readable .obj file"),
        ("a.obj", b"v 0 0 0\nf -3 -2 -1\n", "names a vertex that does not exist"),
        ("a.obj", b"v 0 0\nf 1 1 1\n", "not a readable .obj file"),
        ("a.obj", b"v nan 0 0\nf 1 1 1\n", "no triangle in it"),
        ("a.dae", b"<COLLADA", "not a readable .dae file"),
        ("a.dae", b"<COLLADA/>", "no triangle in it"),
        (
            "a.dae",
            b"<!DOCTYPE x [<!ENTITY a 'b'>]><COLLADA/>",
            "document type declarations",
        ),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(MeshError, match=reason) as caught:
        load_mesh(path)
    assert caught.value.path == path
    assert isinstance(caught.value, ComModelError)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"primitive": QUAD.replace("<vcount>4", "<vcount>900000000")}, "do not fit"),
        ({"primitive": QUAD.replace("0 9 1 9", "0 9 77 9")}, "out of bounds"),
        ({"primitive": QUAD.replace("0 9 1 9", "0 9 -1 9")}, "negative vertex index"),
        ({"primitive": QUAD.replace("VERTEX", "COLOR")}, "no VERTEX input"),
        ({"scene": '<node><instance_geometry url="#gone"/></node>'}, "gone"),
        (
            {"scene": '<node id="me"><instance_node url="#me"/></node>'},
            "too many nodes",
        ),
        ({"scene": "<node><matrix>1 2 3</matrix></node>"}, "reshape"),
    ],
)
def test_damaged_collada(tmp_path: Path, changes: dict[str, str], reason: str) -> None:
    with pytest.raises(MeshError, match=reason):
        load_mesh(collada(tmp_path / "a.dae", **changes))


def test_missing_large_and_long_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MeshError, match=r"not a readable \.stl file"):
        load_mesh(tmp_path / "gone.stl")
    path = tmp_path / "a.stl"
    path.write_bytes(binary_stl(TRIANGLES))
    monkeypatch.setattr("com_model.shapes.meshes.MAX_TRIANGLES", 1)
    with pytest.raises(MeshError, match="2 triangles, at most 1 are read"):
        load_mesh(path)
    monkeypatch.setattr("com_model.shapes.meshes.MAX_BYTES", 100)
    with pytest.raises(MeshError, match="larger than"):
        load_mesh(path)
