"""The scene agrees with what was published, and the picture shows it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from com_demos.exceptions import RenderError
from com_demos.pictures import (
    CHAIN,
    GRAVITY,
    SUPPORT,
    draw_picture,
    nearest_edge_point,
    round_length,
)
from com_demos.scene import Snapshot, build_scene
from com_model.model import RobotModel
from com_model.plotting import plain_text
from com_model.robot_config import Foot
from com_simulation.drawing.shapes import robot_shape, rod_triangles, upright

pytestmark = pytest.mark.slow
MASS = (
    '<inertial><mass value="1"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
)
BODY = '<visual><geometry><box size="0.2 0.3 0.4"/></geometry></visual>'
SOLE = '<visual><geometry><box size="0.2 0.1 0.02"/></geometry></visual>'
JOINT = (
    '<joint name="{0}" type="prismatic"><parent link="base"/><child link="{0}_sole"/>'
    '<origin xyz="0 {1} -1"/><axis xyz="0 0 1"/>'
    '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    "</joint>"
)
URDF = f"""<robot name="box">
<link name="base">{MASS}{BODY}</link>
<link name="left_sole">{MASS}{SOLE}</link><link name="right_sole">{MASS}{SOLE}</link>
{JOINT.format("left", 0.1)}{JOINT.format("right", -0.1)}
</robot>"""
CORNERS = np.array([[0.1, 0.05], [-0.1, 0.05], [-0.1, -0.05], [0.1, -0.05]])


def foot(side: str, corners: np.ndarray = CORNERS, radius: float = 0.0) -> Foot:
    return Foot(
        f"{side}_sole", side, corners, radius, f"{side}/wrench", f"{side}_sole", 1
    )


FEET = (foot("left"), foot("right"))
MODEL = RobotModel.from_urdf(URDF)


def snapshot(**changes: object) -> Snapshot:
    values: dict = {
        "q": np.zeros(2),
        "com": np.array([0.01, 0.02, -0.5]),
        "projection": np.array([0.01, 0.02, -1.0]),
        "gravity": np.array([0.0, 0.0, -1.0]),
        "chain": np.array([[0, 0, 0], [0.01, 0, -0.3], [0.01, 0.02, -0.5]]),
        "contacts": ("left_sole", "right_sole"),
        "margin": 0.09,
        "on_feet": True,
    }
    return Snapshot(**(values | changes))


def scene_of(*snapshots: Snapshot, feet: tuple[Foot, ...] = FEET, xml: str = URDF):
    model = RobotModel.from_urdf(xml)
    return build_scene(model, robot_shape(model, None), feet, snapshots)


@pytest.mark.parametrize(
    "gravity",
    [[0, 0, -1], [0, 0, 1], [1, 0, 0], [0.1, -0.2, -0.9], [0, -3, 0], [1e-13, 0, -1]],
)
def test_upright_takes_gravity_downwards(gravity: list[float]) -> None:
    R = upright(np.array(gravity))
    np.testing.assert_allclose(
        R @ gravity / np.linalg.norm(gravity), [0, 0, -1], atol=1e-12
    )
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(R) == pytest.approx(1)


@pytest.mark.parametrize("gravity", [[np.nan] * 3, [0, 0, 0]])
def test_upright_without_gravity(gravity: list[float]) -> None:
    np.testing.assert_array_equal(upright(np.array(gravity)), np.eye(3))


def test_scene_stands_on_z_0_and_keeps_distances() -> None:
    scene = scene_of(snapshot())
    assert scene.has_ground
    np.testing.assert_allclose(scene.projection, [0.01, 0.02, 0], atol=1e-12)
    np.testing.assert_allclose(scene.com, [0.01, 0.02, 0.5], atol=1e-12)
    np.testing.assert_allclose(scene.chain[-1], scene.com, atol=1e-12)
    np.testing.assert_allclose(scene.polygon[:, 2], 0, atol=1e-12)
    assert np.ptp(scene.polygon[:, 1]) == pytest.approx(0.3)
    assert len(scene.triangles) == 36
    assert len(scene.parts) == 3
    edge = nearest_edge_point(scene.polygon, scene.projection)
    assert np.linalg.norm(edge - scene.projection) == pytest.approx(scene.margin)


def test_scene_of_a_leaning_robot_is_upright() -> None:
    c, s = np.cos(0.2), np.sin(0.2)
    R_root_world = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    upright_scene = scene_of(snapshot())
    lean = snapshot(
        **{
            name: getattr(snapshot(), name) @ R_root_world.T
            for name in ("com", "projection", "gravity", "chain")
        }
    )
    scene = scene_of(lean)
    np.testing.assert_allclose(scene.com, upright_scene.com, atol=1e-12)
    np.testing.assert_allclose(scene.chain, upright_scene.chain, atol=1e-12)
    # The body itself is seen leaning.
    assert (
        np.ptp(scene.triangles[..., 0]) > np.ptp(upright_scene.triangles[..., 0]) + 0.1
    )


def test_robot_faces_across_its_feet_wherever_its_x_axis_points() -> None:
    assert scene_of(snapshot()).heading == pytest.approx(0)
    assert scene_of(snapshot(), feet=()).heading == pytest.approx(0)
    backwards = (replace(FEET[0], side="right"), replace(FEET[1], side="left"))
    assert abs(scene_of(snapshot(), feet=backwards).heading) == pytest.approx(np.pi)


def test_only_feet_in_contact_make_the_polygon() -> None:
    scene = scene_of(snapshot(contacts=("left_sole",)))
    assert len(scene.soles) == 1
    assert scene.polygon[:, 1].min() == pytest.approx(0.05)


def test_point_foot_touches_the_ground_below_its_ball() -> None:
    ball = foot("left", np.empty((0, 2)), radius=0.03)
    scene = scene_of(snapshot(contacts=("left_sole",)), feet=(ball,))
    np.testing.assert_allclose(scene.soles[0], [[0, 0.1, -0.03]], atol=1e-12)
    np.testing.assert_allclose(scene.polygon, [[0, 0.1, -0.03]], atol=1e-12)


def test_trace_is_seen_from_the_standing_foot() -> None:
    # Knees give way by 0.2 m: the root sinks, the projection stays where it is on the ground.
    low = snapshot(q=np.array([0.2, 0.2]), projection=np.array([0.03, 0.02, -0.8]))
    scene = scene_of(snapshot(), low)
    np.testing.assert_allclose(
        scene.trace, [[0.01, 0.02, 0], [0.03, 0.02, 0]], atol=1e-12
    )
    assert (
        len(scene_of(snapshot(contacts=("left_sole",)), snapshot(contacts=())).trace)
        == 0
    )


def test_hanging_robot_has_no_ground_and_unknown_gravity_no_projection() -> None:
    hanging = snapshot(
        contacts=(), on_feet=False, projection=np.array([0.01, 0.02, 0.0])
    )
    scene = scene_of(hanging, feet=())
    assert not scene.has_ground
    assert scene.polygon.shape == (0, 3)
    nan = np.full(3, np.nan)
    scene = scene_of(snapshot(contacts=(), on_feet=False, projection=nan, gravity=nan))
    assert scene.projection is None
    assert not scene.has_ground


def test_rods_stand_for_links_without_shapes() -> None:
    scene = scene_of(snapshot(), xml=URDF.replace(BODY, "").replace(SOLE, ""))
    assert scene.note == "the URDF has no shapes: lines between joints are drawn"
    assert len(scene.triangles) == 2 * len(rod_triangles(np.zeros(3), np.ones(3), 0.1))
    assert scene.triangles[..., 2].min() == pytest.approx(0, abs=0.03)


@pytest.mark.parametrize("point", [[0.0, 0.0, 0.0], [0.3, 0.1, 0.0], [0.0, 0.9, 0.0]])
def test_nearest_edge_point_is_on_the_outline_and_nearest(point: list[float]) -> None:
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], dtype=float)
    found = nearest_edge_point(square, np.array(point))
    assert np.abs(found).max() == pytest.approx(1)
    assert np.linalg.norm(found - point) == pytest.approx(1 - np.abs(point).max())
    np.testing.assert_array_equal(
        nearest_edge_point(square[:1], np.array(point)), square[0]
    )


@pytest.mark.parametrize(
    ("length", "expected"),
    [(1, 1), (1.9, 1), (2, 2), (7, 5), (0.031, 0.02), (0.05, 0.05)],
)
def test_round_length(length: float, expected: float) -> None:
    assert round_length(length) == pytest.approx(expected)


def has_color(path: Path, color: str) -> bool:
    wanted = [int(color[k : k + 2], 16) for k in (1, 3, 5)]
    pixels = np.asarray(Image.open(path).convert("RGB")).astype(int)
    return bool((np.abs(pixels - wanted).max(axis=-1) <= 2).sum() > 20)


def test_picture_of_a_standing_robot_shows_chain_gravity_and_polygon(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new" / "box.png"
    draw_picture(scene_of(snapshot(), snapshot()), path)
    assert all(has_color(path, color) for color in (CHAIN, GRAVITY, SUPPORT))
    assert [p.name for p in path.parent.iterdir()] == ["box.png"]
    assert path.stat().st_size < 200_000


def test_picture_of_a_hanging_robot_has_no_polygon(tmp_path: Path) -> None:
    nan = np.full(3, np.nan)
    path = tmp_path / "box.png"
    scene = scene_of(
        snapshot(
            contacts=(), on_feet=False, projection=nan, gravity=nan, margin=np.nan
        ),
        feet=(),
    )
    draw_picture(scene, path)
    assert has_color(path, CHAIN)
    assert not has_color(path, SUPPORT)


def test_picture_of_a_robot_that_is_a_single_point(tmp_path: Path) -> None:
    xml = f'<robot name="dot"><link name="base">{MASS}</link></robot>'
    dot = snapshot(q=np.zeros(0), com=np.zeros(3), chain=np.zeros((2, 3)), contacts=())
    draw_picture(scene_of(dot, feet=(), xml=xml), tmp_path / "dot.png")
    assert (tmp_path / "dot.png").is_file()


def test_names_from_a_urdf_are_plain_text(tmp_path: Path) -> None:
    assert plain_text("a\nb$c$") == r"a?b\$c\$"
    assert plain_text("x" * 50) == "x" * 39 + "…"
    wild = replace(
        scene_of(snapshot()), name="$\\frac{1}$", root_link="$$" + "y" * 500, note="$_$"
    )
    draw_picture(wild, tmp_path / "wild.png")
    assert (tmp_path / "wild.png").is_file()


def test_failed_picture_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "box.png"
    path.write_text("old")

    def full(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    with pytest.raises(OSError, match="disk full"):
        draw_picture(scene_of(snapshot()), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_picture_without_egl_shows_outlines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise RenderError(OSError("no libEGL"))

    monkeypatch.setattr("com_demos.pictures.render", refuse)
    draw_picture(scene_of(snapshot()), tmp_path / "box.png")
    assert has_color(tmp_path / "box.png", CHAIN)
    assert "install libegl1" in caplog.text
