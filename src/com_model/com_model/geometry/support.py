"""Convex hulls, and the support polygon of a standing robot: how far inside it a point is.

The ground is a plane through the contacts, level or tilted; points are projected onto it
vertically.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, FrozenArrays, Indices, as_array
from com_model.exceptions import GeometryError, ShapeError
from com_model.geometry.rotations import minimal_rotation

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


_UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class SupportPolygon(FrozenArrays):
    """Convex hull of contacts in the ground plane; arrays are read-only.

    Attributes:
        vertices: (k, 3) m, corners of the hull, counter-clockwise seen from above (from the side
            that the normal points to); k = 1 for a single contact, 2 for contacts on a line.
        normal: (3,) unit normal of the ground, upwards.
        gravity: (3,) unit direction in which points fall onto the ground.
        origin: (3,) m, a point of the ground: the mean of the contacts.
        _axes: (3, 2) in-plane directions x, y with x cross y = normal.
        _corners: (k, 2) the vertices in those directions, from the origin.
    """

    vertices: Array
    normal: Array
    gravity: Array
    origin: Array
    _axes: Array
    _corners: Array

    @classmethod
    def from_points(
        cls,
        points: ArrayLike,
        normal: ArrayLike = (0.0, 0.0, 1.0),
        gravity: ArrayLike | None = None,
    ) -> SupportPolygon:
        """Builds the polygon of contact points (m, 3) m in any frame and order, repeats allowed.

        The ground is the plane through the mean of the points with the normal (3,), out of the
        ground; contacts that are not on it are projected vertically. Gravity (3,) is against the
        normal by default; both directions may have any length. Raises GeometryError for no points,
        not finite, a zero direction, or gravity along the ground.
        """
        points = as_array("points", points, (None, 3))
        if len(points) == 0:
            raise GeometryError(
                "no contact points: a support polygon needs at least one"
            )
        if not np.isfinite(points).all():
            raise GeometryError(
                "points are not finite: leave contacts of unknown position out"
            )
        up = _direction("normal", normal)
        down = -up if gravity is None else _direction("gravity", gravity)
        if abs(down @ up) < 1e-6:
            raise GeometryError(
                "gravity is parallel to the ground, nothing falls onto it: check the normal and "
                "the measured orientation"
            )
        origin = points.mean(axis=0)
        axes = minimal_rotation(_UP, up)[:, :2]
        offsets = points - origin
        height = offsets @ up / (down @ up)
        flat = (offsets - height[:, None] * down) @ axes
        corners = convex_hull(flat, 1e-13 * float(np.abs(points).max()))
        return cls(origin + corners @ axes.T, up, down, origin, axes, corners)

    @classmethod
    def from_soles(
        cls,
        R: ArrayLike,
        p: ArrayLike,
        corners: Sequence[ArrayLike],
        normal: ArrayLike | None = None,
    ) -> SupportPolygon:
        """Builds the polygon of f soles that stand on the ground; see from_points.

        R (f, 3, 3) and p (f, 3) m are the poses of the sole frames, z out of the ground, corners
        those of each, (k, 2) m in its x and y, empty for a point foot. The normal (3,) out of the
        ground is the mean of the soles' z by default.
        """
        R, p = as_array("R", R, (None, 3, 3)), as_array("p", p, (None, 3))
        if not len(R) == len(p) == len(corners):
            got = f"{len(R)}, {len(p)} and {len(corners)}"
            raise ShapeError("R, p and corners", "one entry per sole in each", got)
        points = [
            sole_points(*sole, name=f"corners[{i}]")
            for i, sole in enumerate(zip(R, p, corners, strict=True))
        ]
        if normal is None:
            normal = R[:, :, 2].sum(axis=0) if len(R) else (0.0, 0.0, 1.0)
        return cls.from_points(np.concatenate([np.zeros((0, 3)), *points]), normal)

    def project(self, point: ArrayLike) -> Array:
        """Projects points (3,) or (N, 3) m vertically onto the ground; NaN stays NaN."""
        points = _points(point)
        height = (points - self.origin) @ self.normal / (self.gravity @ self.normal)
        return np.asarray(points - height[..., None] * self.gravity)

    def margin(self, point: ArrayLike) -> float | Array:
        """Measures how far inside the polygon the projection of a point (3,) m, or (N, 3), is.

        It is the signed distance in the ground plane to the nearest edge, m: positive inside,
        negative outside, NaN for NaN. With one contact, or all on a line, minus the distance to it.
        A float for one point, (N,) for many.
        """
        flat = (self.project(point) - self.origin) @ self._axes
        signed = signed_distance(self._corners, np.atleast_2d(flat))
        return float(signed[0]) if flat.ndim == 1 else signed


def sole_points(R: Array, p: Array, corners: ArrayLike, name: str = "corners") -> Array:
    """Places the corners of one sole: p + R (x, y, 0); the origin p where there are none.

    R (3, 3) and p (3,) m are the pose of its frame, corners (k, 2) m; gives (k, 3) m, or (1, 3) for
    a point foot. Messages call the corners by `name`.
    """
    if np.size(corners) == 0:
        return np.array([p])
    return np.asarray(p + as_array(name, corners, (None, 2)) @ R[:, :2].T)


def fit_plane(
    points: ArrayLike, up: ArrayLike = (0.0, 0.0, 1.0)
) -> tuple[Array, Array]:
    """Fits a plane to points (m, 3) m by least squares of the distances to it.

    Gives the mean of the points (3,) m, and the unit normal (3,) to the side of up. Raises
    GeometryError for fewer than three points, all on a line, or not finite.
    """
    points = as_array("points", points, (None, 3))
    side = _direction("up", up)
    if len(points) < 3 or not np.isfinite(points).all():
        raise GeometryError(f"a plane needs three finite points, got {len(points)}")
    center = points.mean(axis=0)
    _, spread, directions = np.linalg.svd(points - center)
    if spread[1] <= 1e-6 * spread[0] or spread[0] <= 1e-12:
        raise GeometryError(
            "the points are on a line: give one beside it, or the plane's normal"
        )
    normal = directions[2]
    return center, normal if normal @ side >= 0 else -normal


def _direction(name: str, vector: ArrayLike) -> Array:
    array = as_array(name, vector, (3,))
    length = hypot(*array.tolist())
    if not (isfinite(length) and length > 1e-9):
        raise GeometryError(
            f"{name} must be a finite direction other than zero, got {array}"
        )
    return array / length


def _points(point: ArrayLike) -> Array:
    array = np.asarray(point, dtype=np.float64)
    if array.ndim not in (1, 2) or array.shape[-1] != 3:
        raise ShapeError("point", "shape (3,) or (N, 3)", f"{array.shape}")
    return array
