"""The margin against a search over the whole polygon; the reference's bounds."""

import numpy as np
import pytest

from com_control.balance.balancer import LEAD, ComReference
from com_control.balance.options import BalanceOptions
from com_control.balance.soles import hold_inside
from com_model.geometry.support import convex_hull, signed_distance

SQUARE = np.array([[0.0, 0.0], [0.1, 0.0], [0.1, 0.1], [0.0, 0.1]])


@pytest.mark.parametrize("seed", range(20))
def test_the_nearest_point_inside_the_margin(seed):
    rng = np.random.default_rng(seed)
    corners = convex_hull(rng.uniform(-0.1, 0.1, (8, 2)))
    point, margin = rng.uniform(-0.2, 0.2, 2), 0.01
    found, held = hold_inside(corners, point, margin)
    inside = signed_distance(corners, point[None])[0] >= margin
    assert held == (not inside)
    if inside:
        np.testing.assert_array_equal(found, point)
    assert signed_distance(corners, found[None])[0] >= margin - 1e-8
    grid = np.stack(np.meshgrid(*[np.linspace(-0.1, 0.1, 201)] * 2), axis=-1).reshape(
        -1, 2
    )
    allowed = grid[signed_distance(corners, grid) >= margin]
    nearest = np.linalg.norm(allowed - point, axis=1).min()
    assert np.linalg.norm(found - point) <= nearest + 1e-9


def test_a_margin_that_leaves_nothing():
    found, held = hold_inside(SQUARE, np.array([0.02, 0.03]), 0.06)
    np.testing.assert_allclose(found, [0.05, 0.05])
    assert held
    found, held = hold_inside(SQUARE[:2], np.array([0.02, 0.03]), 0.0)
    np.testing.assert_allclose(found, [0.05, 0.0])
    assert held


def test_the_reference_does_not_jump_and_arrives():
    options = BalanceOptions(com_speed=0.05, com_acceleration=0.2)
    reference, dt = ComReference(options), 0.002
    reference.reset(np.array([0.01, 0.0, 0.25]))
    target = np.array([0.05, -0.03, 0.24])
    before = np.zeros(3)
    farthest = 0.0
    for _ in range(2000):
        reference.move(target, np.zeros(3), reference.position, dt)
        assert np.linalg.norm(reference.velocity) <= 0.05 + 1e-12
        assert np.linalg.norm(reference.velocity - before) <= 0.2 * dt + 1e-12
        before = reference.velocity.copy()
        farthest = max(farthest, reference.position[0])
    np.testing.assert_allclose(reference.position, target, atol=1e-6)
    assert farthest < target[0] + 1e-4


def test_a_free_height_begins_where_the_com_is():
    reference = ComReference(BalanceOptions())
    reference.reset(np.array([0.0, 0.0, 0.25]))
    free, com = np.array([0.0, 0.0, np.nan]), np.array([0.0, 0.0, 0.2])
    reference.move(free, np.zeros(3), com, 0.01)
    assert np.isnan(reference.position[2])
    assert np.isfinite(reference.position[:2]).all()
    reference.move(np.array([0.0, 0.0, 0.2]), np.zeros(3), com, 0.01)
    assert reference.position[2] == pytest.approx(0.2)


def test_the_reference_waits_for_a_com_that_cannot_follow():
    reference = ComReference(BalanceOptions())
    reference.reset(np.zeros(3))
    for _ in range(500):
        reference.move(np.array([0.3, 0.0, 0.0]), np.zeros(3), np.zeros(3), 0.01)
    np.testing.assert_allclose(reference.position, [LEAD, 0.0, 0.0])
