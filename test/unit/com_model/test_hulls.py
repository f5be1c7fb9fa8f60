"""Convex hulls of links: distances against quadratic programming, bounds, heights."""

import numpy as np
import pytest
from scipy.optimize import nnls

from com_model import RobotModel
from com_model.geometry import overlap_kernels
from com_model.shapes.hulls import Hull, Hulls, hull_of, hull_points, read_shapes
from com_model.shapes.urdf_shapes import ShapeReader

BOX = np.array(
    [[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float
)
TAG = "<{0}><origin {1}/><geometry>{2}</geometry></{0}>"


def nearest(A, B):
    """Distance of hulls: weights >= 0 that sum to 1 by a heavy row of least squares."""
    heavy = 1e4
    rows = np.vstack((np.hstack((A.T, -B.T)), np.zeros((2, len(A) + len(B)))))
    rows[3, : len(A)] = rows[4, len(A) :] = heavy
    x, _ = nnls(rows, np.array([0.0, 0.0, 0.0, heavy, heavy]), maxiter=10000)
    a, b = x[: len(A)], x[len(A) :]
    return np.linalg.norm(a @ A / a.sum() - b @ B / b.sum())


@pytest.fixture
def distance(monkeypatch):
    """In Python: alone it takes seconds to compile; the overlaps of hulls compile it, too."""
    monkeypatch.setattr(overlap_kernels, "nearest", overlap_kernels.nearest.py_func)
    return overlap_kernels.distance.py_func


def test_distances_are_those_of_quadratic_programs(distance):
    rng, zero = np.random.default_rng(0), 0
    for _ in range(300):
        sizes, spread = rng.integers(1, 30, 2), rng.uniform(0.05, 0.3, (2, 3))
        A, B = (rng.normal(size=(k, 3)) * s for k, s in zip(sizes, spread, strict=True))
        B = B + 0.5 * rng.normal(size=3)
        truth = nearest(A, B)
        assert distance(A, B, np.inf) == pytest.approx(truth, abs=1e-9)
        assert (distance(A, B, 0.1) > 0.1) == (truth > 0.1)
        zero += truth < 1e-9
    assert 20 < zero < 280


@pytest.mark.parametrize("gap", [1e-6, 0.01])
def test_boxes_face_to_face(gap, distance):
    for shift in (0.0, 0.05, 0.25):
        other = 0.1 * BOX + [0.3 + gap, shift, 0.0]
        assert distance(0.2 * BOX, other, np.inf) == pytest.approx(gap, abs=1e-12)
        assert distance(0.2 * BOX, other - [2.0 * gap, 0.0, 0.0], np.inf) < 1e-9


def test_radii_and_poses_count():
    hulls = Hulls(
        [
            Hull(0, np.zeros((1, 3)), 0.1),
            Hull(1, np.array([[0.0, 0, 1], [0, 0, -1]]), 0.2),
        ]
    )
    pairs, eye = np.array([[0, 1]]), np.eye(3)
    turned = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])
    R = np.array([[eye, eye], [eye, turned], [eye, turned]])
    p = np.array(
        [
            [[0.0, 0, 0], [0.9, 0, 0]],
            [[0, 0, 0], [0.9, 0, 0]],
            [[0, 0, 0], [1.31, 0, 0]],
        ]
    )
    assert hulls.overlap(pairs, R, p).ravel().tolist() == [False, True, False]
    assert hulls.overlap(pairs, R, p, 0.02).ravel().tolist() == [False, True, True]
    lowest = hulls.lowest(np.array([[0.0, 0, 1]] * 3), R, p)
    np.testing.assert_allclose(
        lowest, [[-0.1, -1.2], [-0.1, -0.2], [-0.1, -0.2]], atol=1e-15
    )


def link_of(*shapes):
    mass = '<inertial><mass value="1"/></inertial>'
    return f'<robot name="r"><link name="a">{mass}{"".join(shapes)}</link></robot>'


def test_shapes_that_cannot_be_read_have_no_bounds():
    box = '<box size="2 4 6"/>'
    known = (
        TAG.format("visual", 'xyz="1 0 0"', box),
        TAG.format("collision", 'rpy="0 0 1.5707963267948966"', box),
    )
    low, high = ShapeReader(link_of(*known), None).bounds("a")
    np.testing.assert_allclose((low, high), ([-2, -2, -3], [2, 2, 3]), atol=1e-15)
    for origin, shape in (
        ('xyz="a b c"', box),
        ('rpy="0 0 nan"', box),
        ("", '<mesh filename="m"/>'),
        ("", '<cylinder radius="1"/>'),
    ):
        reader = ShapeReader(
            link_of(*known, TAG.format("collision", origin, shape)), None
        )
        assert reader.bounds("a") is None


@pytest.mark.parametrize(
    ("shape", "half"),
    [
        ('<sphere radius="2"/>', (2, 2, 2)),
        ('<cylinder radius="1" length="6"/>', (1, 1, 3)),
        ('<capsule radius="1" length="6"/>', (1, 1, 4)),
        ('<box size="2 4 6"/>', (1, 2, 3)),
    ],
)
def test_hulls_reach_as_far_as_their_shapes(shape, half):
    model = RobotModel.from_urdf(link_of(TAG.format("collision", 'xyz="1 2 3"', shape)))
    ((found,), problems) = read_shapes(model)
    assert problems == []
    np.testing.assert_allclose(found.reach(np.eye(3)), half)
    points, axes = hull_points(found), np.random.default_rng(2).normal(size=(50, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    inside = found.reach(axes) - (points @ axes.T).max(axis=0)
    assert (inside > -1e-12).all()
    assert (inside < 0.02 * max(half)).all(), "points of round shapes are on them"
    hulls = Hulls([hull_of(found, model)])
    for k, up in enumerate(np.eye(3)):
        ends = [
            hulls.lowest(s * up[None], np.eye(3)[None, None], np.zeros((1, 1, 3)))[0, 0]
            for s in (1, -1)
        ]
        size = -sum(ends) / 2.0
        assert half[k] - 1e-9 <= size <= 1.01 * half[k]
