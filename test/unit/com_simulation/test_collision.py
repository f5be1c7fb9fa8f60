"""Collision shapes out of a URDF; what cannot be used is left out and named."""

import numpy as np
import pytest

from com_model import RobotModel
from com_model.shapes.hulls import hull_vertices
from com_model.shapes.urdf_shapes import CYLINDER, HULL
from com_simulation.physics.contacts import read_collision


def robot(*geometries, origin=""):
    collisions = "".join(
        f"<collision>{origin}<geometry>{g}</geometry></collision>" for g in geometries
    )
    mass = '<inertial><mass value="1"/></inertial>'
    xml = f'<robot name="r"><link name="body">{mass}{collisions}</link></robot>'
    return RobotModel.from_urdf(xml)


def cube_stl(path, size=1.0):
    corners = (
        np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * size
    )
    faces = [
        (0, 1, 3),
        (0, 3, 2),
        (4, 5, 7),
        (4, 7, 6),
        (0, 1, 5),
        (0, 5, 4),
        (2, 3, 7),
        (2, 7, 6),
    ]
    lines = [f"vertex {x} {y} {z}" for face in faces for x, y, z in corners[list(face)]]
    path.write_text("solid cube\n" + "\n".join(lines))


def test_primitives():
    shapes, note = read_collision(
        robot(
            '<box size="0.2 0.4 0.6"/>',
            '<sphere radius="0.1"/>',
            '<cylinder radius="0.1" length="0.5"/>',
            '<capsule radius="0.2" length="0.6"/>',
        )
    )
    assert [shape.size for shape in shapes] == [
        (0.1, 0.2, 0.3),
        (0.1,),
        (0.1, 0.25),
        (0.2, 0.3),
    ]
    assert note == ""


def test_pose():
    origin = '<origin xyz="1 2 3" rpy="0 1.5707963267948966 0"/>'
    (shape,), _ = read_collision(
        robot('<cylinder radius="1" length="2"/>', origin=origin)
    )
    assert (shape.link, shape.kind) == ("body", CYLINDER)
    np.testing.assert_allclose(shape.p, [1, 2, 3])
    np.testing.assert_allclose(shape.R[:, 2], [1, 0, 0], atol=1e-15)


def test_mesh_becomes_its_hull_vertices(tmp_path):
    (tmp_path / "meshes").mkdir()
    cube_stl(tmp_path / "meshes" / "cube.stl")
    mesh = '<mesh filename="../meshes/cube.stl" scale="1 2 -3"/>'
    (shape,), _ = read_collision(robot(mesh), tmp_path / "urdf" / "r.urdf")
    assert shape.kind == HULL
    assert len(shape.vertices) == 8
    np.testing.assert_allclose(np.ptp(shape.vertices, axis=0), [1, 2, 3])
    assert shape.vertices[:, 2].max() == 0.0


@pytest.mark.parametrize(
    ("geometry", "name", "reason"),
    [
        ('<mesh filename="package://nowhere/a/leg.dae"/>', "leg.dae", "file not found"),
        ('<mesh filename="/etc/passwd"/>', "passwd", "file not found"),
        (
            '<mesh filename="../meshes/broken.stl"/>',
            "broken.stl",
            "not a readable .stl",
        ),
        ('<mesh filename="../meshes/flat.stl"/>', "flat.stl", "it has no volume"),
        (
            '<mesh filename="../meshes/huge.stl" scale="1 nan 1"/>',
            "huge.stl",
            "which is not finite",
        ),
        ("<mesh/>", "mesh without a name", "file not found"),
        ('<box size="1 2"/>', "box of body", "size is '1 2', not 3 numbers"),
        ('<box size="1 2 0"/>', "box of body", "it has no volume"),
        (
            '<box size="1 2 1e300"/>',
            "box of body",
            "size is '1e300', which no robot has",
        ),
        (
            '<mesh filename="../meshes/huge.stl" scale="1 1 9999"/>',
            "huge.stl",
            "larger than 10000",
        ),
        ('<sphere radius="big"/>', "sphere of body", "radius is 'big'"),
        ('<cylinder radius="1"/>', "cylinder of body", "attribute length is missing"),
        ("<cone/>", "shape of body", "unknown geometry 'cone'"),
    ],
)
def test_what_is_left_out(tmp_path, geometry, name, reason):
    meshes = tmp_path / "meshes"
    meshes.mkdir()
    (meshes / "broken.stl").write_text("nonsense")
    (meshes / "flat.stl").write_text("solid f vertex 0 0 0 vertex 1 0 0 vertex 0 1 0")
    cube_stl(meshes / "huge.stl", 100.0)
    shapes, note = read_collision(robot(geometry), tmp_path / "urdf" / "r.urdf")
    assert shapes == []
    assert note.startswith(f"1 collision shape left out: {name} (")
    assert reason in note
    assert "\n" not in note


def test_one_line_for_many():
    meshes = [f'<mesh filename="package://x/m{i}.dae"/>' for i in range(20)]
    _, note = read_collision(robot(*meshes, "<box size='1 1 1'/>"))
    names = "m0.dae, m1.dae, m2.dae, m3.dae, m4.dae, m5.dae, m6.dae, m7.dae and 12 more"
    assert note.startswith(
        f"20 collision shapes left out: {names} (file not found: no package x"
    )


def test_empty_collision_means_nothing():
    assert read_collision(robot("")) == ([], "")


def test_hull_needs_a_volume():
    with pytest.raises(ValueError, match="no volume"):
        hull_vertices(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.0]]))
    with pytest.raises(ValueError, match="no volume"):
        hull_vertices(np.zeros((3, 3)))
