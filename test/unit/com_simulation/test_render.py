"""The camera's geometry, and the depth buffer against its uncompiled self and by eye."""

import numpy as np
import pytest

from com_simulation.drawing.render import Camera, fill_depth, render

SQUARE = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], dtype=float)
TWO = SQUARE[[[0, 1, 2], [0, 2, 3]]]
RED, BLUE = [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]


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
    camera = Camera.looking_at(np.zeros(3), 30, 20, 20.0).fitted(points, 400, 300, border=0.1)
    pixels = camera.project(points)[:, :2]
    low, high = pixels.min(axis=0), pixels.max(axis=0)
    assert np.all(low >= [40 - 1e-6, 30 - 1e-6])
    assert np.all(high <= [360 + 1e-6, 270 + 1e-6])
    np.testing.assert_allclose((low + high) / 2, [200, 150])
    assert np.any(np.isclose(high - low, [320, 240]))


def test_one_point_can_be_fitted() -> None:
    camera = Camera.looking_at(np.zeros(3), 30, 20, 20.0).fitted(np.ones((1, 3)), 400, 300)
    np.testing.assert_allclose(camera.project(np.ones(3))[:2], [200, 150])


def test_nearer_triangle_hides_the_farther_in_any_order() -> None:
    camera = Camera.looking_at(np.zeros(3), 0, 90, 10.0).fitted(SQUARE, 60, 60, border=0.0)
    near, far = 0.5 * TWO + [0, 0, 1.0], TWO
    for parts, colors in (((near, far), (RED, BLUE)), ((far, near), (BLUE, RED))):
        image = render(
            camera,
            np.concatenate(parts),
            np.repeat(colors, 2, axis=0),
            np.repeat([0, 1], 2),
            60,
            60,
        )
        assert image.shape == (60, 60, 4)
        assert image[30, 30, 0] > 0.4
        assert image[30, 30, 2] < 0.2
        assert image[5, 5, 2] > 0.4
        assert image[5, 5, 0] < 0.2
        np.testing.assert_allclose(image[..., 3], 1)


def test_brightness_does_not_depend_on_winding_and_empty_is_transparent() -> None:
    camera = Camera.looking_at(np.zeros(3), 0, 60, 10.0).fitted(2 * SQUARE, 60, 60)
    one = render(camera, TWO, np.ones((2, 3)), np.zeros(2, dtype=int), 60, 60)
    other = render(camera, TWO[:, ::-1], np.ones((2, 3)), np.zeros(2, dtype=int), 60, 60)
    np.testing.assert_allclose(one, other, atol=1e-6)
    np.testing.assert_array_equal(one[0, 0], 0)


def test_outline_darkens_the_edge_between_owners_only() -> None:
    camera = Camera.looking_at(np.zeros(3), 0, 90, 10.0).fitted(SQUARE, 60, 60, border=0.0)
    joined = render(camera, TWO, np.ones((2, 3)), np.array([0, 0]), 60, 60)
    split = render(camera, TWO, np.ones((2, 3)), np.array([0, 1]), 60, 60)
    inside = slice(5, -5)
    assert np.ptp(joined[inside, inside, 0]) < 1e-6
    assert split[inside, inside, 0].min() < 0.8 * joined[30, 30, 0]


def test_triangles_behind_the_camera_and_none_at_all() -> None:
    camera = Camera.looking_at(np.zeros(3), 0, 0, 2.0)
    behind = TWO + np.array([5.0, 0, 0])
    assert not render(camera, behind, np.ones((2, 3)), np.zeros(2, dtype=int), 8, 8).any()
    none = np.empty((0, 3, 3)), np.empty((0, 3)), np.empty(0, dtype=int)
    assert not render(camera, *none, 8, 8).any()


def test_compiled_depth_buffer_equals_plain_python() -> None:
    rng = np.random.default_rng(1)
    corners = rng.uniform([-5, -5, 0.5], [35, 25, 3], size=(40, 3, 3))
    corners[3, 2] = corners[3, 1]  # one without area
    results = []
    for function in (fill_depth, fill_depth.py_func):
        depth = np.zeros((20, 30), dtype=np.float32)
        nearest = np.full((20, 30), -1, dtype=np.int64)
        function(corners, np.arange(40) + 7, depth, nearest)
        results.append((depth, nearest))
    np.testing.assert_array_equal(results[0][1], results[1][1])
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    assert results[0][1].max() >= 7
