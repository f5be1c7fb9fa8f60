"""Keeps a desired centre of mass inside the support polygon less a margin."""

from __future__ import annotations

import numpy as np

from com_model.arrays import Array

_SLACK = 1e-9  # m


def hold_inside(corners: Array, point: Array, margin: float) -> tuple[Array, bool]:
    """Finds the nearest point that is inside a convex polygon by a margin.

    The polygon less the margin is cut out by n_i (x - v_i) >= margin; the nearest point is the
    point itself, its foot on one of these lines, or a corner where two of them meet.

    Args:
        corners: (k, 2) m, counter-clockwise.
        point: (2,) m.
        margin: m, not negative.

    Returns:
        The point (2,) m, and whether it is another one than the given one. Where nothing is left
        of the polygon it is the mean of the corners.
    """
    if len(corners) < 3:
        return corners.mean(axis=0), True
    edges = np.roll(corners, -1, axis=0) - corners
    normals = np.column_stack((-edges[:, 1], edges[:, 0]))
    normals /= np.linalg.norm(edges, axis=1)[:, None]
    least = (normals * corners).sum(axis=1) + margin
    away = normals @ point - least
    if (away >= 0.0).all():
        return point.copy(), False
    candidates = np.concatenate((point - away[:, None] * normals, _meetings(normals, least)))
    fits = (candidates @ normals.T - least >= -_SLACK).all(axis=1)
    if not fits.any():
        return corners.mean(axis=0), True
    inside = candidates[fits]
    return inside[np.argmin(((inside - point) ** 2).sum(axis=1))].copy(), True


def _meetings(normals: Array, least: Array) -> Array:
    """Points (m, 2) in which two of the lines n x = c meet, those that follow one another."""
    after, c = np.roll(normals, -1, axis=0), np.roll(least, -1)
    turn = normals[:, 0] * after[:, 1] - normals[:, 1] * after[:, 0]
    turn = np.where(np.abs(turn) > _SLACK, turn, np.nan)
    x = (least * after[:, 1] - c * normals[:, 1]) / turn
    y = (normals[:, 0] * c - after[:, 0] * least) / turn
    return np.column_stack((x, y))
