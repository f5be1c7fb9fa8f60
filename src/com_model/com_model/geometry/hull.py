"""Convex hulls in the plane and in space, and how far inside plane ones points are."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from com_model.arrays import Array, Indices
from com_model.exceptions import GeometryError

if TYPE_CHECKING:
    from scipy.spatial import ConvexHull

Point = tuple[float, float]


class HullArrays(NamedTuple):
    """Hulls of H shapes: points and a radius around them.

    Attributes:
        points: (M, 3) m, of all, each in the frame of its body.
        starts: (H + 1,) where those of each begin.
        radii: (H,) m.
        bodies: (H,) the body that carries each.
        centers: (H, 3) m, of balls around the points, in the frame of the body.
        reaches: (H,) m, radii of those balls, without the hull's own.
    """

    points: Array
    starts: Indices
    radii: Array
    bodies: Indices
    centers: Array
    reaches: Array


def convex_hull(points: Array, resolution: float = 0.0) -> Array:
    """Finds the convex hull in the plane, counter-clockwise (monotone chain, [Andrew 1979]).

    Of points (m, 2), m at least 1, it has (k, 2) corners, none of them on an edge; k = 1 or 2 where
    all are one or in line. Corners that stand out by no more than the resolution, or 1e-10 of the
    extent, are none.
    """
    # of the extent: corners that stand out by less are none
    tolerance = max(1e-10 * float(np.ptp(points, axis=0).max()), resolution)
    ordered: list[Point] = sorted({(x, y) for x, y in points.tolist()})
    outline = _half_hull(ordered)[:-1] + _half_hull(ordered[::-1])[:-1] or ordered
    k = 0
    while k < len(outline) and len(outline) > 1:
        before, after = outline[k - 1], outline[(k + 1) % len(outline)]
        if _distance_to_segment(outline[k], before, after) <= tolerance:
            del outline[k]
            k = max(k - 1, 0)
        else:
            k += 1
    return np.array(outline)


def _half_hull(points: Sequence[Point]) -> list[Point]:
    """Walks from the first to the last point, turning left only."""
    hull: list[Point] = []
    for c in points:
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) > 0.0:
                break
            hull.pop()
        hull.append(c)
    return hull


def _distance_to_segment(p: Point, a: Point, b: Point) -> float:
    x, y = b[0] - a[0], b[1] - a[1]
    u, v = p[0] - a[0], p[1] - a[1]
    length2 = x * x + y * y
    along = min(max((u * x + v * y) / length2, 0.0), 1.0) if length2 > 0.0 else 0.0
    return hypot(u - along * x, v - along * y)


def signed_distance(corners: Array, points: Array) -> Array:
    """Computes the distances of points to the outline of a hull.

    Args:
        corners: (k, 2) m, of the hull, counter-clockwise.
        points: (N, 2) m.

    Returns:
        (N,) m, positive inside, negative outside; never positive where k < 3.
    """
    edges = np.concatenate([corners[1:], corners[:1]]) - corners
    offsets = points[:, None, :] - corners
    length2 = np.maximum((edges**2).sum(axis=1), np.finfo(float).tiny)
    along = np.clip((offsets * edges).sum(axis=2) / length2, 0.0, 1.0)
    across = offsets - along[:, :, None] * edges
    distance = np.sqrt((across**2).sum(axis=2).min(axis=1))
    turns = edges[:, 0] * offsets[:, :, 1] - edges[:, 1] * offsets[:, :, 0]
    inside = (turns >= 0.0).all(axis=1) & (len(corners) > 2)
    return np.where(inside, distance, 0.0 - distance)


def solid_hull(points: Array) -> ConvexHull:
    """Finds scipy's ConvexHull of points (N, 3); GeometryError where they have no volume."""
    from scipy.spatial import ConvexHull, QhullError  # takes long, and few need it

    try:
        return ConvexHull(points)
    except (QhullError, ValueError) as error:
        raise GeometryError(f"{len(points)} points do not fill a volume") from error
