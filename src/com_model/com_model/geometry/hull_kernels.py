"""Compiled twin of geometry.support for kernels: the hull of a few points in the plane."""

import numpy as np
from numba import njit

from com_model.arrays import Array, Indices


@njit
def set_order(points: Array, order: Indices) -> None:
    """Sets order (m,) to that of points (m, 2) by x, then y (insertion sort)."""
    for i in range(points.shape[0]):
        j = i - 1
        while j >= 0 and (
            points[order[j], 0] > points[i, 0]
            or (
                points[order[j], 0] == points[i, 0]
                and points[order[j], 1] > points[i, 1]
            )
        ):
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = i


@njit
def set_hull(points: Array, corners: Array) -> int:
    """Finds the hull of points (m, 2), counter-clockwise, by monotone chains ([Andrew 1979]).

    Sets the first rows of corners (2 m + 1, 2); gives their number, 1 or 2 where all points are one
    or in line.
    """
    m = points.shape[0]
    order = np.empty(m, np.int64)
    set_order(points, order)
    extent = 0.0
    for n in range(m):
        for i in range(2):
            extent = max(extent, abs(points[n, i] - points[0, i]))
    # of the squared extent: a corner of the hull that turns by less is none
    tolerance = 1e-12 * extent * extent
    count = 0
    for way in range(2):  # along the lower side, and back along the upper one
        start = count
        for n in range(m):
            i = order[n] if way == 0 else order[m - 1 - n]
            cx, cy = points[i, 0], points[i, 1]
            if (
                count > start
                and corners[count - 1, 0] == cx
                and corners[count - 1, 1] == cy
            ):
                continue
            while count > start + 1:
                ax, ay = corners[count - 2, 0], corners[count - 2, 1]
                bx, by = corners[count - 1, 0], corners[count - 1, 1]
                if (bx - ax) * (cy - ay) - (by - ay) * (cx - ax) > tolerance:
                    break
                count -= 1
            corners[count, 0], corners[count, 1] = cx, cy
            count += 1
        count -= 1  # the last point of one side is the first of the other
    return max(count, 1)


@njit
def signed_distance(corners: Array, k: int, px: float, py: float) -> float:
    """Distance of a point to the outline of k counter-clockwise corners, positive inside, m."""
    if np.isnan(px) or np.isnan(py):
        return np.nan
    nearest = np.inf
    inside = k > 2
    for i in range(k):
        j = i + 1 if i + 1 < k else 0
        ex, ey = corners[j, 0] - corners[i, 0], corners[j, 1] - corners[i, 1]
        ox, oy = px - corners[i, 0], py - corners[i, 1]
        length2 = ex * ex + ey * ey
        along = (
            0.0 if length2 == 0.0 else min(max((ox * ex + oy * ey) / length2, 0.0), 1.0)
        )
        dx, dy = ox - along * ex, oy - along * ey
        nearest = min(nearest, np.sqrt(dx * dx + dy * dy))
        inside = inside and ex * oy - ey * ox >= 0.0
    return nearest if inside else -nearest
