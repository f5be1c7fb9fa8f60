"""What numba compiles for com_estimation.stance: contacts, ground, projection and margin.

All of it stands in one file because numba's cache watches the file of a kernel only. The feet are
P points: corners of flat soles, or centres of the balls of point feet; `owner` (P,) gives the foot
of each, `radius` (P,) m the ball's radius, `is_sole` (f,) which feet are flat.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

FLATTEST = 1e-9  # m^2, twice the area below which three points make no plane
STRAIGHT = 1e-12  # of the squared extent: a corner of the hull that turns by less is none


@njit(cache=True)
def dot(a: Array, b: Array) -> float:
    """Scalar product of two (3,)."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(cache=True)
def place_points(R: Array, p: Array, corners: Array, owner: Indices) -> Array:
    """Points (P, 3) m of the feet with poses R (f, 3, 3), p (f, 3); corners are (P, 2) m."""
    points = np.empty((owner.size, 3))
    for n in range(owner.size):
        f = owner[n]
        for i in range(3):
            points[n, i] = p[f, i] + R[f, i, 0] * corners[n, 0] + R[f, i, 1] * corners[n, 1]
    return points


@njit(cache=True)
def area_vector(points: Array, a: int, b: int, c: int, up: Array) -> Array:
    """Normal of three points with the length of twice their triangle's area, on the side of up."""
    u, v = points[b] - points[a], points[c] - points[a]
    n = np.array(
        [
            u[1] * v[2] - u[2] * v[1],
            u[2] * v[0] - u[0] * v[2],
            u[0] * v[1] - u[1] * v[0],
        ]
    )
    return -n if dot(n, up) < 0.0 else n


@njit(cache=True)
def lowest_height(points: Array, radius: Array, normal: Array) -> float:
    """Smallest height of the feet along a normal, m."""
    lowest = np.inf
    for n in range(radius.size):
        lowest = min(lowest, dot(points[n], normal) - radius[n])
    return lowest


@njit(cache=True)
def supporting_normal(
    R: Array,
    points: Array,
    owner: Indices,
    radius: Array,
    is_sole: Mask,
    up: Array,
    tolerance: float,
) -> Array:
    """Normal (3,) of the ground that the feet could stand on; see stance.Feet."""
    best, result = -2.0, up.copy()
    if is_sole.any():
        for n in range(owner.size):
            f = owner[n]
            if not is_sole[f] or (n > 0 and owner[n - 1] == f):
                continue
            normal = R[f, :, 2].copy()
            nearness = dot(normal, up)
            own = dot(points[n], normal)
            if nearness > best and lowest_height(points, radius, normal) >= own - tolerance:
                best, result = nearness, normal
        return result
    for a in range(owner.size):
        for b in range(a + 1, owner.size):
            for c in range(b + 1, owner.size):
                normal = area_vector(points, a, b, c, up)
                size = np.sqrt(dot(normal, normal))
                if size < FLATTEST:
                    continue
                normal /= size
                nearness = dot(normal, up)
                own = dot(points[a], normal) - radius[a]
                if nearness > best and lowest_height(points, radius, normal) >= own - tolerance:
                    best, result = nearness, normal
    return result


@njit(cache=True)
def touching(
    points: Array, owner: Indices, radius: Array, n_feet: int, normal: Array, tolerance: float
) -> Mask:
    """Feet (f,) whose lowest point is within the tolerance of the lowest of all, m."""
    lowest = np.full(n_feet, np.inf)
    for n in range(owner.size):
        height = dot(points[n], normal) - radius[n]
        lowest[owner[n]] = min(lowest[owner[n]], height)
    return lowest <= lowest.min() + tolerance


@njit(cache=True)
def loaded(R: Array, forces: Array, is_sole: Mask, threshold: float) -> Mask:
    """Feet (f,) on which the ground presses; forces (f, 3) N in the frame of R (f, 3, 3)."""
    contact = np.zeros(is_sole.size, dtype=np.bool_)
    for f in range(is_sole.size):
        across = R[f, 0, 2] * forces[f, 0] + R[f, 1, 2] * forces[f, 1] + R[f, 2, 2] * forces[f, 2]
        size = np.sqrt(dot(forces[f], forces[f]))
        contact[f] = (across if is_sole[f] else size) >= threshold
    return contact


@njit(cache=True)
def ground_normal(
    R: Array, points: Array, owner: Indices, is_sole: Mask, contact: Mask, up: Array
) -> Array:
    """Unit normal (3,) of the ground under the feet in contact; `up` where they give none."""
    total = np.zeros(3)
    for f in range(is_sole.size):
        if is_sole[f] and contact[f]:
            total += R[f, :, 2]
    if not (is_sole & contact).any():
        for a in range(owner.size):
            for b in range(a + 1, owner.size):
                for c in range(b + 1, owner.size):
                    if contact[owner[a]] and contact[owner[b]] and contact[owner[c]]:
                        total += area_vector(points, a, b, c, up)
    size = np.sqrt(dot(total, total))
    return total / size if size > FLATTEST else up.copy()


@njit(cache=True)
def contact_points(
    points: Array, owner: Indices, radius: Array, contact: Mask, normal: Array
) -> Array:
    """Points (m, 3) m in which the feet in contact meet the ground."""
    on = np.empty(owner.size, dtype=np.bool_)
    for n in range(owner.size):
        on[n] = contact[owner[n]]
    found = points[on]
    reach = radius[on]
    for n in range(reach.size):
        found[n] -= reach[n] * normal
    return found


@njit(cache=True)
def axes_across(normal: Array) -> tuple[Array, Array]:
    """Two unit vectors x, y in the plane, x cross y = normal (unit)."""
    helper = np.zeros(3)
    helper[np.argmin(np.abs(normal))] = 1.0
    x = np.cross(helper, normal)
    x /= np.sqrt(dot(x, x))
    return x, np.cross(normal, x)


@njit(cache=True)
def fall(touch: Array, normal: Array, gravity: Array, com: Array) -> tuple[Array, float]:
    """Where a point falls onto the ground, and how far inside the support polygon that is.

    Args:
        touch: (m, 3) m, contact points, at least one.
        normal: (3,) unit normal of the ground through their mean.
        gravity: (3,) unit direction, not along the ground.
        com: (3,) m, the point.

    Returns:
        The projection (3,) m and the signed margin, m, positive inside.
    """
    origin = np.array([touch[:, 0].mean(), touch[:, 1].mean(), touch[:, 2].mean()])
    x, y = axes_across(normal)
    slope = dot(gravity, normal)
    flat = np.empty((touch.shape[0], 2))
    for n in range(touch.shape[0]):
        offset = touch[n] - origin
        offset -= gravity * (dot(offset, normal) / slope)
        flat[n, 0], flat[n, 1] = dot(offset, x), dot(offset, y)
    offset = com - origin
    offset -= gravity * (dot(offset, normal) / slope)
    return origin + offset, signed_distance(hull(flat), dot(offset, x), dot(offset, y))


@njit(cache=True)
def hull(points: Array) -> Array:
    """Corners (k, 2) of the convex hull of points (m, 2), counter-clockwise ([Andrew 1979])."""
    m = points.shape[0]
    order = np.arange(m)
    for i in range(1, m):  # insertion sort by x, then y
        k, j = order[i], i - 1
        while j >= 0 and (
            points[order[j], 0] > points[k, 0]
            or (points[order[j], 0] == points[k, 0] and points[order[j], 1] > points[k, 1])
        ):
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = k
    extent = max(np.ptp(points[:, 0]), np.ptp(points[:, 1]))
    tolerance = STRAIGHT * extent * extent
    corners = np.empty((2 * m + 1, 2))
    count = 0
    for way in range(2):  # along the lower side, and back along the upper one
        start = count
        for i in range(m):
            c = points[order[i] if way == 0 else order[m - 1 - i]]
            while count > start + 1:
                a, b = corners[count - 2], corners[count - 1]
                turn = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
                if turn > tolerance:
                    break
                count -= 1
            corners[count] = c
            count += 1
        count -= 1  # the last point of one side is the first of the other
    return corners[: max(count, 1)].copy()


@njit(cache=True)
def signed_distance(corners: Array, px: float, py: float) -> float:
    """Distance of a point to the outline of a convex polygon (k, 2), positive inside, m."""
    k = corners.shape[0]
    nearest = np.inf
    inside = k > 2
    for i in range(k):
        ax, ay = corners[i, 0], corners[i, 1]
        ex, ey = corners[(i + 1) % k, 0] - ax, corners[(i + 1) % k, 1] - ay
        ox, oy = px - ax, py - ay
        length2 = ex * ex + ey * ey
        along = 0.0 if length2 == 0.0 else min(max((ox * ex + oy * ey) / length2, 0.0), 1.0)
        nearest = min(nearest, np.hypot(ox - along * ex, oy - along * ey))
        inside = inside and ex * oy - ey * ox >= 0.0
    return nearest if inside else -nearest
