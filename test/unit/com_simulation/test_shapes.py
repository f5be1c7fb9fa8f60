"""A robot's shapes come out of its URDF, with a stand-in and a note where they cannot."""

from pathlib import Path

import numpy as np
import pytest

from com_model import RobotModel
from com_model.shapes.urdf_shapes import BOX as BOXES
from com_model.shapes.urdf_shapes import CAPSULE, CYLINDER, PLAIN_COLOR, SPHERE, Shape
from com_simulation.drawing.shapes import (
    MAX_TOTAL_TRIANGLES,
    robot_shape,
    rod_triangles,
    shape_triangles,
)

BOX = '<geometry><box size="2 4 6"/></geometry>'
LOST = '<geometry><mesh filename="package://nowhere/lost.stl"/></geometry>'


MASS = '<inertial><mass value="1"/></inertial>'


def robot(*links: str, extra: str = "") -> RobotModel:
    """Links l0, l1, ... with mass, fixed to the first."""
    bodies = "".join(
        f'<link name="l{k}">{link if "inertial" in link else MASS + link}</link>'
        for k, link in enumerate(links)
    )
    joints = "".join(
        f'<joint name="j{k}" type="fixed"><parent link="l0"/><child link="l{k}"/></joint>'
        for k in range(1, len(links))
    )
    return RobotModel.from_urdf(f'<robot name="r">{extra}{bodies}{joints}</robot>')


def area(triangles: np.ndarray) -> float:
    edges = triangles[:, 1:] - triangles[:, :1]
    return float(np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1).sum() / 2)


def primitive(kind: str, *size: float) -> np.ndarray:
    return shape_triangles(Shape("", kind, size, np.eye(3), np.zeros(3)))


def test_primitives_have_their_area() -> None:
    assert area(primitive(BOXES, 1.0, 2.0, 3.0)) == pytest.approx(88)
    side = 2 * np.pi * 0.5 * 2
    assert area(primitive(CYLINDER, 0.5, 1.0)) == pytest.approx(
        np.pi * 0.5 + side, rel=2e-3
    )
    assert area(primitive(CAPSULE, 0.5, 1.0)) == pytest.approx(np.pi + side, rel=2e-3)
    assert area(primitive(SPHERE, 2.0)) == pytest.approx(16 * np.pi, rel=2e-3)


def test_primitives_stay_within_their_size() -> None:
    np.testing.assert_allclose(
        np.ptp(primitive(BOXES, 1, 2, 3), axis=(0, 1)), [2, 4, 6]
    )
    np.testing.assert_allclose(
        np.ptp(primitive(CYLINDER, 0.5, 1.5), axis=(0, 1)), [1, 1, 3]
    )
    radii = np.linalg.norm(primitive(SPHERE, 2.0), axis=-1)
    np.testing.assert_allclose(radii, 2.0)


@pytest.mark.parametrize("end", [[0, 0, 2], [0, 0, -2], [1, 2, 3], [-2, 0, 0]])
def test_rod_reaches_from_start_to_end(end: list[float]) -> None:
    start, stop = np.array([0.1, 0.2, 0.3]), np.array(end, dtype=float)
    axis = (stop - start) / np.linalg.norm(stop - start)
    points = rod_triangles(start, stop, 0.05).reshape(-1, 3) - start
    along = points @ axis
    assert along.min() == pytest.approx(0, abs=1e-12)
    assert along.max() == pytest.approx(np.linalg.norm(stop - start))
    across = np.linalg.norm(points - along[:, None] * axis, axis=1)
    assert across.max() == pytest.approx(0.05)
    assert rod_triangles(start, start, 0.05).shape == (0, 3, 3)


def test_visual_with_origin_and_named_color() -> None:
    origin = '<origin xyz="10 0 0" rpy="0 0 1.5707963267948966"/>'
    visual = f'<visual>{origin}{BOX}<material name="red"/></visual>'
    red = '<material name="red"><color rgba="1 0.25 0 1"/></material>'
    shape = robot_shape(robot(visual, extra=red), None)
    (piece,) = shape.pieces
    assert piece.link == "l0"
    assert piece.color == (1, 0.25, 0)
    np.testing.assert_allclose(np.ptp(piece.triangles, axis=(0, 1)), [4, 2, 6])
    np.testing.assert_allclose(
        piece.triangles.reshape(-1, 3).mean(axis=0), [10, 0, 0], atol=1e-12
    )
    assert (shape.bare_links, shape.missing) == ((), ())


def test_color_defined_by_another_link_and_unknown_color() -> None:
    blue = (
        f'<visual>{BOX}<material name="m"><color rgba="0 0 1 1"/></material></visual>'
    )
    shape = robot_shape(
        robot(
            blue,
            f'<visual>{BOX}<material name="m"/></visual>',
            f'<visual>{BOX}<material name="gone"/></visual>',
            f"<visual>{BOX}</visual>",
            f'<visual>{BOX}<material name="n"><color rgba="red"/></material></visual>',
        ),
        None,
    )
    colors = [piece.color for piece in shape.pieces]
    assert colors == [(0, 0, 1), (0, 0, 1), PLAIN_COLOR, PLAIN_COLOR, PLAIN_COLOR]


def test_mesh_is_scaled_and_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    mesh = '<geometry><mesh filename="a.obj" scale="2 -3 1"/></geometry>'
    model = robot(f"<visual>{mesh}</visual>", f"<visual>{mesh}</visual>")
    shape = robot_shape(model, tmp_path / "r.urdf")
    for piece in shape.pieces:
        np.testing.assert_allclose(
            piece.triangles, [[[0, 0, 0], [2, 0, 0], [0, -3, 0]]]
        )


@pytest.mark.parametrize(
    ("com", "middle"), [("0 5 0", [0, 5, 0]), ("0 0 5", [0, 0, 5])]
)
def test_collada_mesh_is_turned_where_that_brings_it_to_the_com(
    tmp_path: Path, com: str, middle: list[float]
) -> None:
    (tmp_path / "a.dae").write_text(
        '<COLLADA><asset><up_axis>Y_UP</up_axis></asset><mesh id="g"><mesh>'
        '<source id="s"><float_array>-1 5 0 1 5 -1 0 5 1</float_array></source>'
        '<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>'
        '<triangles><input semantic="VERTEX" source="#v"/><p>0 1 2</p></triangles></mesh></mesh>'
        "<library_visual_scenes><visual_scene><node>"
        '<instance_geometry url="#g"/></node></visual_scene></library_visual_scenes></COLLADA>'
    )
    inertial = f'<inertial><origin xyz="{com}"/><mass value="1"/></inertial>'
    visual = '<visual><geometry><mesh filename="a.dae"/></geometry></visual>'
    shape = robot_shape(robot(inertial + visual), tmp_path / "r.urdf")
    np.testing.assert_allclose(
        shape.pieces[0].triangles[0].mean(axis=0), middle, atol=1e-12
    )


def test_collision_stands_in_for_an_unreadable_visual_and_lines_for_the_rest() -> None:
    shape = robot_shape(
        robot(
            f"<visual>{LOST}</visual><collision>{BOX}</collision>",
            f"<visual>{LOST}</visual>",
            f"<visual>{BOX}</visual>",
            "",
        ),
        None,
    )
    assert [piece.link for piece in shape.pieces] == ["l0", "l2"]
    assert shape.bare_links == ("l1",)
    assert len(shape.missing) == 2
    for text in shape.missing:
        assert text.startswith("lost.stl (file not found: no package nowhere")
    assert shape.declared == 3


def test_collision_shapes_of_a_robot_without_visuals() -> None:
    shape = robot_shape(robot(f"<collision>{BOX}</collision>", ""), None)
    assert [piece.link for piece in shape.pieces] == ["l0"]
    assert not shape.missing


def test_no_shapes_at_all() -> None:
    shape = robot_shape(robot("", ""), None)
    assert shape.bare_links == ("l0", "l1")


@pytest.mark.parametrize(
    ("visual", "reason"),
    [
        ("", "no geometry"),
        ("<geometry/>", "no geometry"),
        ("<geometry><cone/></geometry>", "unknown geometry 'cone'"),
        ('<geometry><box size="1 2"/></geometry>', "size is '1 2', not 3 numbers"),
        (
            '<geometry><sphere radius="big"/></geometry>',
            "radius is 'big', which is not a number",
        ),
        ("<geometry><sphere/></geometry>", "the attribute radius is missing"),
        (
            '<geometry><sphere radius="inf"/></geometry>',
            "radius is 'inf', which is not finite",
        ),
        (f'<origin xyz="1 2"/>{BOX}', "xyz is '1 2', not 3 numbers"),
    ],
)
def test_unreadable_visuals_are_reported(visual: str, reason: str) -> None:
    shape = robot_shape(robot(f"<visual>{visual}</visual>"), None)
    assert reason in shape.missing[0]
    assert shape.bare_links == ("l0",)


def test_number_of_triangles_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_TOTAL_TRIANGLES > 1_000_000
    monkeypatch.setattr("com_simulation.drawing.shapes.MAX_TOTAL_TRIANGLES", 20)
    shape = robot_shape(
        robot(f"<visual>{BOX}</visual>", f"<visual>{BOX}</visual>"), None
    )
    assert [piece.link for piece in shape.pieces] == ["l0"]
    assert shape.bare_links == ("l1",)
    assert "more than 20 triangles in all" in shape.missing[0]
