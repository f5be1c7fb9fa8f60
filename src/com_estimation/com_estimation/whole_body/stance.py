"""Stance of a robot: feet in contact, the ground under them, and the margin of the CoM."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from com_model import Foot
from com_model.arrays import Array, Flags, Indices
from com_model.compiled import compiled
from com_model.geometry.hull_kernels import set_hull, signed_distance
from com_model.geometry.vector_kernels import cross, dot, set_point, sub, turned

FLATTEST = 1e-9  # m^2, twice the area below which three points do not define a plane


class FeetPoints(NamedTuple):
    """f feet as P points: corners of flat soles, or centres of the balls of point feet.

    Attributes:
        sole: (f,) indices of the feet's frames among the links whose poses are given.
        sensor: (f,) indices of the frames of their force sensors.
        is_sole: (f,) which feet are flat.
        offset: (P, 3) m, the points in the feet's frames.
        owner: (P,) foot of each point, ascending.
        radius: (P,) m, of its ball; 0 for a corner.
    """

    sole: Indices
    sensor: Indices
    is_sole: Flags
    offset: Array
    owner: Indices
    radius: Array


class Placed(NamedTuple):
    """Feet at given poses of their links.

    Attributes:
        points: (P, 3) m, in the frame of the poses.
        upright: (f, 3) z axes of the feet's frames.
        feet: as points in their frames.
    """

    points: Array
    upright: Array
    feet: FeetPoints


class Thresholds(NamedTuple):
    """Thresholds of contact.

    Attributes:
        force: N, from which a foot is in contact, where forces are known.
        height: m above the lowest point of all feet, up to which a foot is in contact, where
            forces are unknown.
    """

    force: float
    height: float


class Stance(NamedTuple):
    """A robot on its feet; vectors in the frame that the feet's poses were given in.

    Attributes:
        contact: (f,) True for feet in contact.
        points: (m, 3) m, contact points.
        normal: (3,) unit normal of the ground.
    """

    contact: Flags
    points: Array
    normal: Array


# --- which feet stand, on what ----------------------------------------------------------------
@compiled()
def stand(
    R: Array,
    p: Array,
    up: Array,
    forces: Array,
    feet: FeetPoints,
    thresholds: Thresholds,
    stance: Stance,
) -> int:
    """Determines which feet are in contact, and the normal of the ground under them.

    With forces, the feet in contact are those with at least the threshold normal to the sole (of
    a point foot: in magnitude). Without, by the feet's poses: of all planes of a sole (without
    flat soles: of three point feet) that no foot is below by more than the tolerance, the one
    whose normal is nearest to `up` is taken for the ground, so that a tilted robot, or a slope,
    does not lift a foot that stands.

    The normal is then the mean of the soles' normals, or that of the triangles between point
    feet weighted by area, or `up` where the feet do not define one (one or two point feet).

    Args:
        R: (k, 3, 3) orientations of links, in any one frame.
        p: (k, 3) m, their origins.
        up: (3,) unit vector, roughly out of the ground, in the frame of the poses.
        forces: (f, 3) N, of the ground, in the sensors' frames; (0, 3) when unknown.
        feet: the f feet as points, by the indices of their links.
        thresholds: of contact.
        stance: set; the contact points are the first rows of its P points.

    Returns:
        The number of contact points.
    """
    contact, touch, normal = stance
    placed = Placed(np.empty((feet.owner.size, 3)), np.empty((feet.sole.size, 3)), feet)
    for f in range(feet.sole.size):
        placed.upright[f] = R[feet.sole[f], :, 2]
    for n in range(feet.owner.size):
        f = feet.sole[feet.owner[n]]
        set_point(R[f], p[f], feet.offset[n], placed.points[n])
    if forces.shape[0] > 0:
        mark_loaded(R, placed, forces, thresholds.force, contact)
    else:
        find_support(placed, up, thresholds.height, normal)
        mark_touching(placed, normal, thresholds.height, contact)
    find_normal(placed, contact, up, normal)
    count = 0
    for n in range(feet.owner.size):
        if contact[feet.owner[n]]:
            for i in range(3):
                touch[count, i] = placed.points[n, i] - feet.radius[n] * normal[i]
            count += 1
    return count


@njit
def mark_loaded(
    R: Array, placed: Placed, forces: Array, threshold: float, contact: Flags
) -> None:
    """Marks feet that are loaded: soles by the force normal to them, point feet by its size.

    Args:
        R: (k, 3, 3) orientations of links.
        placed: the feet.
        forces: (f, 3) N, of the ground, in the sensors' frames.
        threshold: N.
        contact: (f,) set.
    """
    for f in range(contact.size):
        pressing = np.sqrt(dot(forces[f], forces[f]))
        if placed.feet.is_sole[f]:
            pressing = dot(
                placed.upright[f], turned(R[placed.feet.sensor[f]], forces[f])
            )
        contact[f] = pressing >= threshold


@njit
def mark_touching(
    placed: Placed, normal: Array, tolerance: float, contact: Flags
) -> None:
    """Marks feet whose lowest point is within the tolerance of the lowest of all.

    Args:
        placed: the feet.
        normal: (3,) unit normal of the ground.
        tolerance: m.
        contact: (f,) set.
    """
    limit = lowest_height(placed, normal) + tolerance
    contact[:] = False
    for n in range(len(placed.points)):
        if dot(placed.points[n], normal) - placed.feet.radius[n] <= limit:
            contact[placed.feet.owner[n]] = True


@njit
def lowest_height(placed: Placed, normal: Array) -> float:
    """Smallest height of the feet along a normal.

    Args:
        placed: the feet.
        normal: (3,) unit vector.

    Returns:
        m, from the origin of the frame of the poses.
    """
    lowest = np.inf
    for n in range(len(placed.points)):
        lowest = min(lowest, dot(placed.points[n], normal) - placed.feet.radius[n])
    return lowest


@njit
def find_support(placed: Placed, up: Array, tolerance: float, normal: Array) -> None:
    """Sets normal to that of the plane that the feet could stand on, or to `up`.

    Candidates are the planes of the soles, or without flat soles those of three points, that no
    foot is below by more than the tolerance; the one whose normal is nearest to `up` is chosen.

    Args:
        placed: the feet.
        up: (3,) unit vector, roughly out of the ground.
        tolerance: m.
        normal: (3,) set.
    """
    points, owner, is_sole = placed.points, placed.feet.owner, placed.feet.is_sole
    best, flat = -2.0, False
    tried = np.empty(3)
    normal[:] = up
    for a in range(owner.size):
        if is_sole[owner[a]]:
            flat = True
            if a > 0 and owner[a - 1] == owner[a]:
                continue
            tried[:] = placed.upright[owner[a]]
            best = try_support(placed, up, tolerance, a, tried, best, normal)
    if flat:
        return
    for a in range(owner.size):
        for b in range(a + 1, owner.size):
            for c in range(b + 1, owner.size):
                size = set_area(points, a, b, c, up, tried)
                if size > FLATTEST:
                    tried /= size
                    best = try_support(placed, up, tolerance, a, tried, best, normal)


@njit
def try_support(
    placed: Placed,
    up: Array,
    tolerance: float,
    a: int,
    tried: Array,
    best: float,
    normal: Array,
) -> float:
    """Sets normal to `tried` if the plane through point a supports all feet and is nearer to up.

    Args:
        placed: the feet.
        up: (3,) unit vector, roughly out of the ground.
        tolerance: m, by which feet may be below the plane.
        a: index of a point of the plane.
        tried: (3,) unit normal of the plane.
        best: cosine between `up` and the best normal so far.
        normal: (3,) set if the plane is better.

    Returns:
        The cosine between `up` and the best normal, this one included.
    """
    nearness = dot(tried, up)
    own = dot(placed.points[a], tried) - placed.feet.radius[a]
    if nearness <= best or lowest_height(placed, tried) < own - tolerance:
        return best
    normal[:] = tried
    return nearness


@njit
def set_area(points: Array, a: int, b: int, c: int, up: Array, area: Array) -> float:
    """Sets area to twice the vector area of a triangle, on the side of up.

    Args:
        points: (P, 3) m.
        a: index of the first corner.
        b: index of the second corner.
        c: index of the third corner.
        up: (3,) vector.
        area: (3,) m^2, set; normal to the triangle.

    Returns:
        The length of area, m^2.
    """
    n = cross(sub(points[b], points[a]), sub(points[c], points[a]))
    side = -1.0 if dot(n, up) < 0.0 else 1.0
    area[0], area[1], area[2] = side * n[0], side * n[1], side * n[2]
    return np.sqrt(dot(area, area))


@njit
def find_normal(placed: Placed, contact: Flags, up: Array, normal: Array) -> None:
    """Sets normal to that of the ground under the feet in contact.

    It is the mean of the soles' normals; without soles that of the triangles between the points,
    weighted by area; `up` where there is neither.

    Args:
        placed: the feet.
        contact: (f,) feet in contact.
        up: (3,) unit vector, roughly out of the ground.
        normal: (3,) set.
    """
    owner, area = placed.feet.owner, np.empty(3)
    normal[:] = 0.0
    for f in range(contact.size):
        if placed.feet.is_sole[f] and contact[f]:
            normal += placed.upright[f]
    if dot(normal, normal) == 0.0:
        for a in range(owner.size):
            for b in range(a + 1, owner.size):
                for c in range(b + 1, owner.size):
                    if contact[owner[a]] and contact[owner[b]] and contact[owner[c]]:
                        set_area(placed.points, a, b, c, up, area)
                        normal += area
    size = np.sqrt(dot(normal, normal))
    for i in range(3):
        normal[i] = normal[i] / size if size > FLATTEST else up[i]


# --- where the centre of mass falls --------------------------------------------------------------
@compiled()
def fall(
    touch: Array, normal: Array, gravity: Array, com: Array, projection: Array
) -> float:
    """Projects the CoM vertically onto the ground, and returns its margin.

    Args:
        touch: (m, 3) m, contact points, at least one; the ground contains their mean.
        normal: (3,) unit normal of the ground.
        gravity: (3,) unit direction, not parallel to the ground.
        com: (3,) m; NaN makes the margin NaN.
        projection: (3,) m, set to the vertical projection of the CoM onto the ground.

    Returns:
        The signed margin of the projection in the support polygon, m, positive inside.
    """
    m = touch.shape[0]
    origin, x, y = touch.sum(axis=0) / m, np.empty(3), np.empty(3)
    set_axes(normal, x, y)
    flat = np.empty((m, 2))
    point = np.empty(3)
    for n in range(m):
        drop(touch[n], origin, normal, gravity, point)
        flat[n, 0], flat[n, 1] = dot(point, x), dot(point, y)
    drop(com, origin, normal, gravity, point)
    projection[:] = origin + point
    corners = np.empty((2 * m + 1, 2))
    k = set_hull(flat, corners)
    return signed_distance(corners, k, dot(point, x), dot(point, y))


@njit
def drop(p: Array, origin: Array, normal: Array, gravity: Array, out: Array) -> None:
    """Sets out to the offset from the origin of p projected vertically onto the plane.

    Args:
        p: (3,) m, a point.
        origin: (3,) m, a point of the plane.
        normal: (3,) unit normal of the plane.
        gravity: (3,) unit direction of the projection.
        out: (3,) m, set.
    """
    for i in range(3):
        out[i] = p[i] - origin[i]
    way = dot(out, normal) / dot(gravity, normal)
    for i in range(3):
        out[i] -= way * gravity[i]


@njit
def set_axes(normal: Array, x: Array, y: Array) -> None:
    """Sets unit vectors x, y orthogonal to a unit normal, x cross y = normal.

    [Duff et al. 2017, Building an orthonormal basis, revisited]

    Args:
        normal: (3,) unit vector.
        x: (3,) set.
        y: (3,) set.
    """
    sign = 1.0 if normal[2] >= 0.0 else -1.0
    a = -1.0 / (sign + normal[2])
    b = normal[0] * normal[1] * a
    x[0], x[1], x[2] = (
        1.0 + sign * normal[0] * normal[0] * a,
        sign * b,
        -sign * normal[0],
    )
    y[0], y[1], y[2] = b, sign + normal[1] * normal[1] * a, -normal[1]


UNKNOWN_FORCES = np.empty((0, 3))
STEEPEST = 0.1  # cosine of the largest plausible slope, 84 degrees


class Feet:
    """The f feet of a robot: flat soles (with corners) or point feet (with a ball's radius).

    Args:
        feet: their frames, corners, radii and wrench frames.
        tolerance: m above the lowest point of all, up to which a foot is in contact.
        threshold: N, from which a foot is in contact, where forces are known.

    Attributes:
        names: the f sole frames.
        links: k links whose poses the kernels need: sole frames and the frames of force sensors.
        points: the feet as points.
        thresholds: of contact; may be replaced.
    """

    def __init__(
        self, feet: Sequence[Foot], tolerance: float, threshold: float
    ) -> None:
        offsets = [foot.points for foot in feet]
        self.names = tuple(foot.frame for foot in feet)
        self.links = tuple(
            dict.fromkeys([*self.names, *(foot.wrench_frame for foot in feet)])
        )
        owner = np.repeat(np.arange(len(feet)), [len(points) for points in offsets])
        self.points = FeetPoints(
            sole=np.array(
                [self.links.index(name) for name in self.names], dtype=np.int64
            ),
            sensor=np.array(
                [self.links.index(f.wrench_frame) for f in feet], dtype=np.int64
            ),
            is_sole=np.array([len(foot.corners) > 0 for foot in feet], dtype=np.bool_),
            offset=np.concatenate([np.zeros((0, 3)), *offsets]),
            owner=owner.astype(np.int64),
            radius=np.array([foot.radius for foot in feet], dtype=np.float64)[owner],
        )
        self.thresholds = Thresholds(float(threshold), float(tolerance))


def choose_feet(names: Sequence[str], configured: Sequence[Foot]) -> tuple[Foot, ...]:
    """Selects feet by name.

    Args:
        names: sole frames; empty for all configured feet.
        configured: feet of the robot's configuration.

    Returns:
        The feet in the order of the names. One that is not configured is a point foot at the
        frame of that name.
    """
    known = {foot.frame: foot for foot in configured}
    return tuple(known.get(name) or point_foot(name) for name in names or known)


def point_foot(frame: str) -> Foot:
    """A foot that touches the ground at the origin of its frame.

    Args:
        frame: its sole frame; also the frame of its wrench, on the topic <frame>/wrench.
    """
    return Foot(frame, wrench_topic=f"{frame}/wrench", wrench_frame=frame)
