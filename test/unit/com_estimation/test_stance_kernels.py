"""The compiled kernels against their Python, and against com_model's SupportPolygon."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_estimation.whole_body import stance as kernels
from com_model import SupportPolygon
from com_model.geometry.support import convex_hull

pytestmark = pytest.mark.slow
RNG = np.random.default_rng(7)


def unit(v):
    return np.asarray(v, dtype=float) / np.linalg.norm(v)


def hull(points):
    corners = np.empty((2 * len(points) + 1, 2))
    return corners[: kernels.set_hull(points, corners)]


def clouds():
    yield np.array([[0.1, 0.2]])
    yield np.array([[0.1, 0.2], [0.1, 0.2]])
    yield np.array([[0.0, 0.0], [1.0, 0.5]])
    yield np.array([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5], [0.25, 0.25]])
    yield np.array(
        [[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0], [0.5, 0.5], [1, 1]], dtype=float
    )
    for m in (3, 4, 8, 20):
        for _ in range(5):
            yield RNG.normal(size=(m, 2))


@pytest.mark.parametrize("points", clouds())
def test_hull_is_that_of_com_model(points):
    found = hull(points)
    expected = convex_hull(points)
    assert len(found) == len(expected)
    start = np.argmin(np.abs(expected - found[0]).sum(axis=1))
    np.testing.assert_allclose(found, np.roll(expected, -start, axis=0), atol=1e-12)


@pytest.mark.parametrize("points", clouds())
def test_projection_and_margin_are_those_of_the_support_polygon(points):
    R = Rotation.random(random_state=4).as_matrix()
    normal = np.ascontiguousarray(R[:, 2])
    touch = np.column_stack([points, 0.01 * RNG.normal(size=len(points))]) @ R.T
    gravity = unit(-normal + 0.3 * RNG.normal(size=3))
    polygon = SupportPolygon.from_points(touch, normal, gravity)
    projection = np.empty(3)
    for com in RNG.normal(size=(20, 3)):
        margin = kernels.fall(touch, normal, gravity, com, projection)
        np.testing.assert_allclose(projection, polygon.project(com), atol=1e-12)
        assert margin == pytest.approx(polygon.margin(com), abs=1e-9)


def test_a_point_that_is_not_known_has_no_margin():
    touch = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=float)
    normal, projection = np.array([0, 0, 1.0]), np.empty(3)
    assert np.isnan(
        kernels.fall(touch, normal, -normal, np.full(3, np.nan), projection)
    )
    assert np.isnan(projection).all()


@pytest.mark.parametrize("normal", [[0, 0, 1], [0, 0, -1], [1, 0, 0], [0.3, -0.4, 0.8]])
def test_axes_across(normal):
    normal, x, y = unit(normal), np.empty(3), np.empty(3)
    kernels.set_axes(normal, x, y)
    axes = np.array([x, y, normal])
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(np.cross(x, y), normal, atol=1e-15)


def stand_arguments(n_feet, per_foot, with_forces):
    # with which a foot stands in each case
    soles, rng = per_foot > 1, np.random.default_rng(6)
    R = Rotation.random(n_feet, random_state=1).as_matrix()
    owner = np.repeat(np.arange(n_feet), per_foot)
    offset = np.full((len(owner), 3), [0.01, -0.02, 0.03])
    if soles:
        offset[:] = 0.0
        offset[:, :2] = rng.normal(size=(len(owner), 2))
    radius = np.full(len(owner), 0.0 if soles else 0.02)
    forces = rng.normal(size=(n_feet, 3)) if with_forces else np.empty((0, 3))
    p, up = rng.normal(size=(n_feet, 3)), unit([0.1, 0.2, 1.0])
    sole, is_sole = np.arange(n_feet), np.full(n_feet, soles)
    feet = kernels.FeetPoints(sole, sole[::-1].copy(), is_sole, offset, owner, radius)
    return R, p, up, forces, feet, kernels.Thresholds(force=0.5, height=0.5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("with_forces", [False, True])
@pytest.mark.parametrize(("n_feet", "per_foot"), [(2, 4), (4, 1)])
def test_the_kernels_do_what_their_python_says(n_feet, per_foot, with_forces):
    arguments = stand_arguments(n_feet, per_foot, with_forces)
    results = []
    for stand, fall in (
        (kernels.stand, kernels.fall),
        (kernels.stand.py_func, kernels.fall.py_func),
    ):
        contact, normal = np.empty(n_feet, dtype=bool), np.empty(3)
        touch, projection = np.zeros((n_feet * per_foot, 3)), np.empty(3)
        count = stand(*arguments, kernels.Stance(contact, touch, normal))
        assert count == per_foot * contact.sum() > 0
        margin = fall(
            touch[:count], normal, -normal, np.array([0.1, 0.2, 0.3]), projection
        )
        results.append([*contact, *normal, *touch.ravel(), *projection, margin])
    np.testing.assert_allclose(results[0], results[1], atol=1e-14)
