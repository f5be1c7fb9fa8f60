"""How a robot stands: which feet are in contact, on what ground, and how far inside the CoM is."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from com_model import Foot
from com_model.arrays import Array, Flags, Indices
from com_model.compiled import compiled
from com_model.geometry.hull_kernels import set_hull, signed_distance
from com_model.geometry.vector_kernels import cross, dot, set_point, sub, turned

FLATTEST = 1e-9  # m^2, twice the area below which three points make no plane


class FeetPoints(NamedTuple):
    """f feet as P points: corners of flat soles, or centres of the balls of point feet.

    Attributes:
        sole: (f,) indices of the feet's frames among the links whose poses are given.
        sensor: (f,) likewise, of the frames of their force sensors.
        is_sole: (f,) which feet are flat.
        offset: (P, 3) m, the points in the feet's frames.
        owner: (P,) the foot of each, ascending.
        radius: (P,) m, of its ball.
    """

    sole: Indices
    sensor: Indices
    is_sole: Flags
    offset: Array
    owner: Indices
    radius: Array


class Placed(NamedTuple):
    """The same feet somewhere.

    Attributes:
        points: (P, 3) m.
        upright: (f, 3) z axes of the feet's frames.
    """

    points: Array
    upright: Array
    feet: FeetPoints


class Thresholds(NamedTuple):
    """From when on a foot is in contact: `force` N, or `height` m above the lowest point."""

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
    """Which feet are in contact, and the normal of the ground under them.

    With forces, the feet in contact are those with at least the threshold across the sole
    (of a point foot: in size). Without, by the feet's poses: of all planes that a sole lies in
    (with no flat sole: that three point feet touch) and that no foot is below by more than the
    tolerance, the one whose normal is nearest to `up` is taken for the ground, so that a tilted
    robot, or a slope, does not lift a foot that stands.

    The normal is then the mean of the soles' normals, or that of the triangles between point
    feet
    weighted by area, or `up` where the feet give none (one or two point feet).

    Args:
        R: (k, 3, 3) orientations of links, in any one frame.
        p: (k, 3) m, their origins.
        up: (3,) unit vector, roughly out of the ground, in the frame of the poses.
        forces: (f, 3) N, of the ground, in the sensors' frames; (0, 3) when they are not known.
        feet: the f feet as points, by the indices of their links.
        thresholds: the force, N, and the height, m, from which or up to which a foot is in
            contact.
        stance: Set; the contact points are the first rows of its P points.

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
    """Marks feet on which the ground presses: soles across their plane, point feet anyhow."""
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
    """Marks feet whose lowest point is within the tolerance of the lowest of all."""
    limit = lowest_height(placed, normal) + tolerance
    contact[:] = False
    for n in range(len(placed.points)):
        if dot(placed.points[n], normal) - placed.feet.radius[n] <= limit:
            contact[placed.feet.owner[n]] = True


@njit
def lowest_height(placed: Placed, normal: Array) -> float:
    """Smallest height of the feet along a normal, m."""
    lowest = np.inf
    for n in range(len(placed.points)):
        lowest = min(lowest, dot(placed.points[n], normal) - placed.feet.radius[n])
    return lowest


@njit
def find_support(placed: Placed, up: Array, tolerance: float, normal: Array) -> None:
    """Sets normal (3,) to that of the ground that the feet could stand on, or to `up`.

    Of all planes of a sole, or with no sole of three points, that no foot is below by more than
    the tolerance: the one whose normal is nearest to up.
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
    """Takes `tried` for the normal if the plane through point a supports all and is nearer to up.

    Gives how near the best one is to up, a cosine.
    """
    nearness = dot(tried, up)
    own = dot(placed.points[a], tried) - placed.feet.radius[a]
    if nearness <= best or lowest_height(placed, tried) < own - tolerance:
        return best
    normal[:] = tried
    return nearness


@njit
def set_area(points: Array, a: int, b: int, c: int, up: Array, area: Array) -> float:
    """Sets area (3,) to the normal of three points times twice their triangle's area, m^2.

    It points to the side of up; gives its length.
    """
    n = cross(sub(points[b], points[a]), sub(points[c], points[a]))
    side = -1.0 if dot(n, up) < 0.0 else 1.0
    area[0], area[1], area[2] = side * n[0], side * n[1], side * n[2]
    return np.sqrt(dot(area, area))


@njit
def find_normal(placed: Placed, contact: Flags, up: Array, normal: Array) -> None:
    """Sets normal (3,) to that of the ground under the feet in contact.

    The mean of the soles' normals; without soles that of the triangles between the points,
    weighted by area; `up` where there is neither.
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
    """Where the CoM falls onto the ground, and how far that is inside the support polygon.

    Args:
        touch: (m, 3) m, contact points, at least one; the ground goes through their mean.
        normal: (3,) unit normal of the ground.
        gravity: (3,) unit direction, not along the ground.
        com: (3,) m; NaN makes the margin NaN.
        projection: (3,) m, set to the projection of the CoM along gravity onto the ground.

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
    """Sets out (3,) to the offset from the origin of p projected vertically onto the plane, m."""
    for i in range(3):
        out[i] = p[i] - origin[i]
    way = dot(out, normal) / dot(gravity, normal)
    for i in range(3):
        out[i] -= way * gravity[i]


@njit
def set_axes(normal: Array, x: Array, y: Array) -> None:
    """Sets unit vectors x, y (3,) across a unit normal, x cross y = normal.

    [Duff et al. 2017, Building an orthonormal basis, revisited]
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
STEEPEST = 0.1  # cosine of the steepest ground that gravity is believed for, 84 degrees


class Feet:
    """The f feet of a robot: flat soles (with corners) or point feet (with a ball's radius).

    A foot is in contact up to a tolerance, m, above the lowest point of all, or from a force, N.

    Attributes:
        names: the f sole frames.
        links: k links whose poses the kernels need: sole frames and the frames of force sensors.
        thresholds: the tolerance and the threshold; may be replaced.
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
    """Feet by name, as they are configured.

    Args:
        names: sole frames; empty for all configured feet.
        configured: feet of the robot's configuration.

    Returns:
        The feet in the order of the names. One that is not configured is a point foot at the
        frame of
        that name.
    """
    known = {foot.frame: foot for foot in configured}
    return tuple(known.get(name) or point_foot(name) for name in names or known)


def point_foot(frame: str) -> Foot:
    """A foot that touches the ground in the origin of its frame.

    Args:
        frame: its sole frame; also the frame of its wrench, on the topic <frame>/wrench.
    """
    return Foot(frame, wrench_topic=f"{frame}/wrench", wrench_frame=frame)
