"""The camera's geometry, and that what MuJoCo draws is where the camera projects it."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from com_demos.exceptions import RenderError
from com_demos.render import _AMBIENT, _DIFFUSE, _LIGHT, Camera, _gl_context, render

SQUARE = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], dtype=float)
TWO = SQUARE[[[0, 1, 2], [0, 2, 3]]]
RED, BLUE, WHITE = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 1.0, 1.0)


@pytest.mark.parametrize("azimuth", [0, 38, 90, 200])
@pytest.mark.parametrize("elevation", [-20, 0, 13, 80])
def test_camera_is_a_level_rotation_that_sees_its_target_in_the_middle(
    azimuth: float, elevation: float
) -> None:
    target = np.array([1.0, -2.0, 0.5])
    camera = Camera.looking_at(target, azimuth, elevation, 3.0)
    R = camera.R_camera_world
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(R) == pytest.approx(1)
    np.testing.assert_allclose(camera.project(target), [0, 0, 3], atol=1e-12)
    above = camera.project(target + np.array([0, 0, 0.1]))
    assert above[0] == pytest.approx(0, abs=1e-12)
    assert above[1] < 0  # y points down


def test_camera_from_the_front_left_sees_left_on_the_right() -> None:
    camera = Camera.looking_at(np.zeros(3), 0, 0, 5.0)
    assert camera.project(np.array([0.0, 1.0, 0.0]))[0] > 0


def test_fitted_camera_fills_the_picture_up_to_the_border() -> None:
    points = np.random.default_rng(0).normal(size=(50, 3))
    camera = Camera.looking_at(np.zeros(3), 30, 20, 20.0).fitted(
        points, 400, 300, border=0.1
    )
    pixels = camera.project(points)[:, :2]
    low, high = pixels.min(axis=0), pixels.max(axis=0)
    assert np.all(low >= [40 - 1e-6, 30 - 1e-6])
    assert np.all(high <= [360 + 1e-6, 270 + 1e-6])
    np.testing.assert_allclose((low + high) / 2, [200, 150])
    assert np.any(np.isclose(high - low, [320, 240]))


def test_one_point_can_be_fitted() -> None:
    camera = Camera.looking_at(np.zeros(3), 30, 20, 20.0).fitted(
        np.ones((1, 3)), 400, 300
    )
    np.testing.assert_allclose(camera.project(np.ones(3))[:2], [200, 150])


@pytest.mark.parametrize("center", [(30.0, 20.0), (12.0, 31.0)])
def test_picture_is_where_the_camera_projects_it(center: tuple[float, float]) -> None:
    camera = Camera.looking_at(np.zeros(3), 40, 30, 4.0)
    camera = replace(camera, scale=60.0, center=center)
    triangle = np.array([[[0.1, 0.2, 0.3], [0.5, -0.3, 0.1], [-0.2, 0.1, -0.4]]])
    coverage = render(camera, [(triangle, RED)], 60, 40)[..., 3]
    x, y, _ = camera.project(triangle[0]).T
    area = 0.5 * abs((x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0]))
    assert coverage.sum() == pytest.approx(area, rel=0.02)
    rows, columns = np.indices(coverage.shape) + 0.5
    middle = [
        float((coverage * pixels).sum() / coverage.sum()) for pixels in (columns, rows)
    ]
    np.testing.assert_allclose(middle, [x.mean(), y.mean()], atol=0.1)


def test_nearer_triangle_hides_the_farther_in_any_order() -> None:
    camera = Camera.looking_at(np.zeros(3), 0, 90, 10.0).fitted(
        SQUARE, 60, 60, border=0.0
    )
    near, far = (0.5 * TWO + [0, 0, 1.0], RED), (TWO, BLUE)
    for parts in ((near, far), (far, near)):
        image = render(camera, parts, 60, 60)
        assert image.shape == (60, 60, 4)
        assert image[30, 30, 0] > 0.4
        assert image[30, 30, 2] < 0.25
        assert image[5, 5, 2] > 0.4
        assert image[5, 5, 0] < 0.25
        np.testing.assert_allclose(image[1:-1, 1:-1, 3], 1)


def test_brightness_does_not_depend_on_winding_and_empty_is_transparent() -> None:
    camera = Camera.looking_at(np.zeros(3), 0, 60, 10.0).fitted(2 * SQUARE, 60, 60)
    one = render(camera, [(TWO, WHITE)], 60, 60)
    other = render(camera, [(TWO[:, ::-1], WHITE)], 60, 60)
    np.testing.assert_allclose(one, other, atol=1e-6)
    np.testing.assert_array_equal(one[0, 0], 0)


@pytest.mark.parametrize("azimuth", [-60, -30, 0, 30, 60])
def test_surfaces_are_as_bright_as_they_face_the_light(azimuth: float) -> None:
    wall = TWO[..., [2, 0, 1]]
    camera = Camera.looking_at(np.zeros(3), azimuth, 0, 10.0)
    camera = camera.fitted(wall.reshape(-1, 3), 60, 60)
    to_light = -_LIGHT / np.linalg.norm(_LIGHT) @ camera.R_camera_world
    expected = _AMBIENT + _DIFFUSE * max(to_light[0], 0.0)
    assert render(camera, [(wall, RED)], 60, 60)[30, 30, 0] == pytest.approx(
        expected, abs=0.02
    )


def test_outline_darkens_the_edge_where_the_distance_jumps_only() -> None:
    camera = Camera.looking_at(np.zeros(3), 0, 90, 10.0).fitted(
        SQUARE, 60, 60, border=0.0
    )
    inside = slice(5, -5)
    flat = render(camera, [(TWO[:1], WHITE), (TWO[1:], WHITE)], 60, 60)
    step = render(camera, [(TWO, WHITE), (0.5 * TWO + [0, 0, 1.0], WHITE)], 60, 60)
    assert np.ptp(flat[inside, inside, 0]) < 0.02
    assert step[inside, inside, 0].min() < 0.8 * step[30, 30, 0]


def test_triangles_behind_the_camera_and_none_at_all() -> None:
    camera = Camera.looking_at(np.zeros(3), 0, 0, 2.0)
    behind = TWO + np.array([5.0, 0, 0])
    assert not render(camera, [(behind, WHITE)], 8, 8).any()
    assert not render(camera, [(np.empty((0, 3, 3)), WHITE)], 8, 8).any()
    assert not render(camera, [], 8, 8).any()


def test_a_machine_without_egl_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    camera = Camera.looking_at(np.zeros(3), 0, 0, 2.0)
    monkeypatch.setitem(sys.modules, "mujoco.egl", None)
    _gl_context.cache_clear()
    with pytest.raises(RenderError, match="install libegl1 and libgl1-mesa-dri"):
        render(camera, [(TWO, WHITE)], 8, 8)
