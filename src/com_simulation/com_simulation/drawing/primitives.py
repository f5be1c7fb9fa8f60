"""Triangles of boxes, cylinders and spheres."""

from collections.abc import Iterable

import numpy as np

_SIDES = 96  # of a circle


def box_triangles(size: np.ndarray) -> np.ndarray:
    """Return the 12 triangles of a box around the origin; size (3,) is its full extent."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size / 2
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return corners[[[q[0], q[i], q[i + 1]] for q in quads for i in (1, 2)]]


def cylinder_triangles(radius: float, length: float) -> np.ndarray:
    """Return the triangles of a cylinder around z, centred at the origin."""
    return _revolve([0, radius, radius, 0], np.array([-1, -1, 1, 1]) * length / 2)


def sphere_triangles(radius: float) -> np.ndarray:
    """Return the triangles of a sphere around the origin."""
    latitude = np.linspace(-np.pi / 2, np.pi / 2, _SIDES // 2 + 1)
    return _revolve(radius * np.cos(latitude), radius * np.sin(latitude))


def rod_triangles(start: np.ndarray, end: np.ndarray, radius: float) -> np.ndarray:
    """Return the triangles of a cylinder from start (3,) to end (3,); none if they coincide."""
    axis = end - start
    length = float(np.linalg.norm(axis))
    if length == 0:
        return np.empty((0, 3, 3))
    z = axis / length
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    R = np.column_stack([x, np.cross(z, x), z])
    return cylinder_triangles(radius, length) @ R.T + (start + end) / 2


def _revolve(radii: Iterable[float], heights: np.ndarray) -> np.ndarray:
    """Return the triangles of a profile (radius, height) turned about z."""
    angle = np.linspace(0, 2 * np.pi, _SIDES + 1)
    r, z = np.asarray(list(radii))[:, None], np.asarray(heights)[:, None] + 0 * angle
    grid = np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=-1)
    a, b, c, d = grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]
    triangles = np.concatenate([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)])
    triangles = triangles.reshape(-1, 3, 3)
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    return triangles[np.any(normals != 0, axis=1)]  # without the empty ones at the poles
