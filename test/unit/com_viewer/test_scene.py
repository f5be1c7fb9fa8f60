"""What the viewer shows, as arrays."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from walker_urdf import walker_urdf

from com_estimation.whole_body.com_state import ComObserver, unknown_state
from com_model import Foot, RobotModel, Sesc
from com_model.dynamics.kinematics import link_poses
from com_simulation.drawing.shapes import RobotShape, body_meshes, robot_shape
from com_viewer.scene import (
    BLUE,
    GREY,
    VERMILLION,
    RobotScene,
    closed,
    correction_color,
    ellipsoid,
    fan,
    indexed,
    margin_color,
    quaternions,
    segments,
)

CORNERS = np.array([[0.1, 0.05], [0.1, -0.05], [-0.1, -0.05], [-0.1, 0.05]])
FEET = [
    Foot(f"{s}_sole", "", CORNERS, 0.0, f"{s}/wrench", f"{s}_sole", 1) for s in "lr"
]
BOX = """<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"
  ixz="0" iyz="0"/></inertial><visual><origin xyz="0 0 1"/><geometry>{1}</geometry></visual></link>
"""


@pytest.fixture
def walker():
    return RobotModel.from_urdf(walker_urdf())


def place(model, q, feet=FEET, **more):
    state = ComObserver(model, feet).update(np.array(q, dtype=float), np.ones(4))
    return RobotScene(model, feet).place(np.array(q, dtype=float), state, **more)


def test_without_a_pose_the_robot_stands_upright_on_the_ground(walker):
    shown = place(walker, [0, 0, 0, 0])
    np.testing.assert_allclose(shown.com, [0.05, 0, 1], atol=1e-12)
    np.testing.assert_allclose(shown.projection, [0.05, 0, 0], atol=1e-12)
    np.testing.assert_allclose(shown.polygon[:, 2], 0, atol=1e-12)
    assert set(map(tuple, np.round(shown.polygon[:, :2], 9))) == {
        (x, y) for x in (0.1, -0.1) for y in (0.15, -0.15)
    }
    np.testing.assert_allclose(shown.chain[-1], shown.com, atol=1e-12)


def test_forces_stay_with_their_feet_where_the_model_lacks_one(walker):
    other = Foot("third_sole", "", CORNERS, 0.0, "third/wrench", "third_sole", 1)
    state = ComObserver(walker, FEET).update(np.zeros(4), np.ones(4))
    forces = np.array([[0.0, 0.0, 7.0], [0.0, 0.0, 1.0], [0.0, 0.0, 2.0]])
    shown = RobotScene(walker, [other, *FEET]).place(np.zeros(4), state, forces=forces)
    np.testing.assert_allclose(shown.forces[:, 1, 2], [1.0, 2.0])


def test_on_one_foot_the_polygon_is_its_sole(walker):
    shown = place(walker, [0, 0.1, 0, 0])
    assert shown.state.contacts == ("r_sole",)
    assert sorted(set(np.round(shown.polygon[:, 1], 9))) == [-0.15, -0.05]


def test_everything_moves_with_the_root(walker):
    R, p = Rotation.from_euler("z", 0.7).as_matrix(), np.array([1.0, 2.0, 3.0])
    q = [0.1, 0.0, -0.2, 0.0]
    own = place(walker, q, root=(np.eye(3), np.zeros(3)))
    moved = place(walker, q, root=(R, p))
    for name in ("com", "projection", "chain"):
        expected = getattr(own, name) @ R.T + p
        np.testing.assert_allclose(getattr(moved, name), expected, atol=1e-12)
    np.testing.assert_allclose(moved.velocity, R @ own.velocity, atol=1e-12)
    np.testing.assert_allclose(moved.chain, Sesc(walker).chain(q, R, p), atol=1e-12)
    for link in walker.link_names:
        i = walker.link_index(link)
        R_links, p_links = link_poses(walker, q, R, p)
        R_link, p_link = RobotScene(walker).pose(link, moved.R, moved.p)
        np.testing.assert_allclose(R_link, R_links[i], atol=1e-12)
        np.testing.assert_allclose(p_link, p_links[i], atol=1e-12)


def test_forces_turn_with_their_sensors(walker):
    shown = place(walker, [0.5, 0, 0, 0], forces=np.array([[0, 0, 20.0], [0, 0, 10.0]]))
    tilt = Rotation.from_euler("y", 0.5).apply([0, 0, 20.0])
    R_root = shown.R[0]
    np.testing.assert_allclose(shown.forces[0, 1], R_root @ tilt, atol=1e-12)
    np.testing.assert_allclose(shown.forces[1, 1], R_root @ [0, 0, 10.0], atol=1e-12)


def test_what_is_not_known_is_nan_or_empty(walker):
    shown = RobotScene(walker, FEET).place(np.zeros(4), unknown_state("no joints"))
    assert np.isnan(shown.com).all()
    assert np.isnan(shown.projection).all()
    assert len(shown.polygon) == len(shown.forces) == 0
    assert np.isfinite(shown.p).all()


def test_the_ellipsoid_has_the_covariance():
    A = np.random.default_rng(3).normal(size=(3, 3))
    R, lengths = ellipsoid(A @ A.T, sigmas=3.0)
    np.testing.assert_allclose(
        R @ np.diag((lengths / 3.0) ** 2) @ R.T, A @ A.T, atol=1e-12
    )
    assert np.linalg.det(R) == pytest.approx(1.0)


def test_quaternions_are_w_first():
    expected = Rotation.random(50, random_state=1)
    x, y, z, w = expected.as_quat().T
    found = quaternions(expected.as_matrix())
    np.testing.assert_allclose(
        np.abs((found * np.stack([w, x, y, z], 1)).sum(1)), 1, atol=1e-12
    )


def test_meshes_are_in_the_frames_of_their_bodies():
    fixed = '<joint name="f" type="fixed"><parent link="a"/><child link="b"/><origin xyz="0 2 0"/>'
    xml = (
        '<robot name="r">'
        + BOX.format("a", '<box size="1 1 1"/>')
        + BOX.format("b", '<mesh filename="package://none/none.stl"/>')
        + BOX.format("c", '<box size="1 1 1"/>')
        + fixed
        + "</joint>"
        + fixed.replace('"f"', '"g"').replace('"b"', '"c"')
        + "</joint></robot>"
    )
    model = RobotModel.from_urdf(xml)
    shape = robot_shape(model, None)
    assert shape.declared == 3
    assert len(shape.missing) == 1
    assert "none.stl" in shape.missing[0]
    (((body, _), triangles),) = body_meshes(model, shape).items()
    assert body == 0
    np.testing.assert_allclose(triangles.min((0, 1)), [-0.5, -0.5, 0.5])
    np.testing.assert_allclose(triangles.max((0, 1)), [0.5, 2.5, 1.5])


def test_links_without_shapes_are_rods(walker):
    bare = RobotShape((), walker.link_names, 0, ())
    meshes = body_meshes(walker, bare)
    assert {body for body, _ in meshes} == {0, 1, 3}  # trunk to hips, legs to soles
    lowest = next(triangles for (body, _), triangles in meshes.items() if body == 1)
    assert lowest[..., 2].min() == pytest.approx(-1.0)


def test_equal_corners_become_one_vertex():
    square = np.array(
        [[[0, 0, 0], [1, 0, 0], [1, 1, 0]], [[0, 0, 0], [1, 1, 0], [0, 1, 0]]]
    )
    vertices, faces = indexed(square.astype(float))
    assert len(vertices) == 4
    np.testing.assert_array_equal(vertices[faces], square)


def test_colours_say_how_safe_and_how_far():
    assert margin_color(-0.01) == margin_color(0.0) == VERMILLION
    assert margin_color(0.03) == margin_color(1.0) == BLUE
    assert margin_color(float("nan")) == correction_color(float("nan")) == GREY
    assert margin_color(0.01) not in (VERMILLION, BLUE, GREY)
    assert correction_color(0.02) == VERMILLION


def test_outlines_and_fans():
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]])
    assert fan(square).tolist() == [[0, 1, 2], [0, 2, 3]]
    assert fan(square[:2]).shape == (0, 3)
    edges = closed(square)
    np.testing.assert_array_equal(edges[-1], [square[3], square[0]])
    assert closed(np.empty((0, 3))).shape == (0, 2, 3)
    np.testing.assert_array_equal(segments(square)[0], square[:2])
