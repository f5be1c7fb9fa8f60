"""Feet: sole plane and outline of a flat foot, ball of a point foot, from the robot's shapes."""

import numpy as np

from com_model.arrays import Array, Indices
from com_model.exceptions import GeometryError
from com_model.geometry.rotations import upright_axes
from com_model.geometry.support import convex_hull, solid_hull
from com_model.model import RobotModel
from com_model.setup.parts import QUADRUPED, Leg, Sole
from com_model.shapes.hulls import Outside

STEEPEST = np.cos(
    np.radians(50.0)
)  # of a sole against the ground in the neutral posture
# of the leg's length
GUESSED_X, GUESSED_Y = (-0.08, 0.17), (-0.06, 0.06)


def find_sole(
    model: RobotModel, outside: Outside, leg: Leg, R: Array, p: Array, kind: str
) -> Sole:
    """Finds the sole of a leg.

    Args:
        model: The robot.
        outside: Points of its shapes.
        leg: The leg.
        R: (B, 3, 3) orientations of the bodies in the neutral posture, root link's axes.
        p: (B, 3) m, their origins.
        kind: Kind of the robot; the feet of quadrupeds are points unless they are much wider.

    Returns:
        The sole.
    """
    foot = leg.foot
    length = sum(
        float(np.linalg.norm(p[b] - p[a]))
        for a, b in zip(leg.bodies, leg.bodies[1:], strict=False)
    )
    if not len(outside.points[foot]) and kind != QUADRUPED and len(leg.bodies) > 4:
        return _guessed_sole(model, leg, R[foot], length)
    # of the leg's length, of a flat sole
    flat = _flat_sole(
        outside.points[foot],
        outside.meshes[foot],
        R[foot],
        0.025 * length,
        0.09 * length,
    )
    if flat is None or (kind == QUADRUPED and len(leg.bodies) <= 3):
        return _point_foot(model, outside, leg, R, p)
    R_sole, p_sole, corners = flat
    most = int(
        np.bincount(outside.links[foot]).argmax()
    )  # the link with most of its shape
    return _in_link(model, leg, R_sole, p_sole, corners, 0.0, model.link_names[most])


def _flat_sole(
    points: Array, uneven: bool, R: Array, narrowest: float, shortest: float
) -> tuple[Array, Array, Array] | None:
    """Frame (R, p) and corners of the largest facet below a foot, in its body; None: no sole.

    Of points (k, 3) m in the body, of meshes if uneven, R (3, 3) its orientation in the neutral
    posture; a sole has at least the width and the length, m.
    """
    try:
        hull = solid_hull(points)
    except GeometryError:
        return None
    normals, offsets = hull.equations[:, :3], -hull.equations[:, 3]
    corners = points[hull.simplices]
    areas = 0.5 * np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    below = np.flatnonzero(normals @ -R[2] > STEEPEST)
    if not len(below):
        return None
    thickness = 0.003  # m, by which points of one sole may be above it
    # between facets of one sole
    one = (normals[below] @ normals[below].T > np.cos(np.radians(3.0))) & (
        np.abs(offsets[below][:, None] - offsets[below]) < thickness
    )
    best = below[one[int(np.argmax(one @ areas[below]))]]
    down = areas[best] @ normals[best]
    down /= np.linalg.norm(down)
    heights = points @ down
    R_sole = _sole_axes(-down, R)
    # A mesh may be uneven; of a lying cylinder the ground touches one line only.
    depth = thickness if uneven else 0.1 * thickness
    flat = points[heights > heights.max() - depth] @ R_sole[:, :2]
    extent = np.ptp(flat, axis=0)
    if len(flat) < 3 or extent.min() < narrowest or extent.max() < shortest:
        return None
    origin = heights.max() * down  # below the body's origin, which is the ankle
    outline = _simplify(convex_hull(flat - origin @ R_sole[:, :2], 1e-3))
    return R_sole, origin, outline


def _guessed_sole(model: RobotModel, leg: Leg, R: Array, length: float) -> Sole:
    """A rectangle of usual size in the URDF's sole frame, else at the usual place below an ankle.

    Args:
        model: The robot.
        leg: The leg, whose foot has no shape that can be read.
        R: (3, 3) orientation of the foot's body in the neutral posture, robot's axes.
        length: m, of the leg.

    Returns:
        The sole, with what is guessed of it among its issues.
    """
    x, y = np.array(GUESSED_X) * length, np.array(GUESSED_Y) * length
    corners = np.array([[x[1], y[1]], [x[0], y[1]], [x[0], y[0]], [x[1], y[0]]])
    bodies, link = model.bodies, model.bodies.names[leg.foot]
    up, p = R.T @ [0.0, 0.0, 1.0], None
    for i in np.flatnonzero(bodies.body_of_link == leg.foot):
        z = bodies.R_body_link[i][:, 2]
        if "sole" in model.link_names[i].lower() and z @ up > STEEPEST:
            up, p, link = z, bodies.p_body_link[i], model.link_names[i]
    R_sole = _sole_axes(up, R)
    guessed = "outline of its sole is" if p is not None else "height and outline are"
    issue = f"{link} has no shape: {guessed} guessed from the leg's length"
    p = -0.1 * length * R_sole[:, 2] if p is None else p
    return _in_link(model, leg, R_sole, p, corners, 0.0, link, (issue,))


def _sole_axes(up: Array, R: Array) -> Array:
    """R_body_sole with z up and x forwards, that of the root in the neutral posture."""
    return upright_axes(R.T @ [1.0, 0.0, 0.0], up).T


def _simplify(corners: Array) -> Array:
    """Leaves out the corners that stand out least until few are left: never larger than before."""
    while len(corners) > 12:
        before, after = np.roll(corners, 1, axis=0), np.roll(corners, -1, axis=0)
        a, b = corners - before, after - corners
        lost = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
        corners = np.delete(corners, int(np.argmin(lost)), axis=0)
    return corners


def _point_foot(
    model: RobotModel, outside: Outside, leg: Leg, R: Array, p: Array
) -> Sole:
    """The ball at the end of a leg, farthest from its last joint."""
    foot = leg.foot
    points = outside.points[foot]
    issues: tuple[str, ...] = ()
    away = np.linalg.norm(points, axis=1)
    bone = float(away.max()) if len(points) else 0.0
    balls = [
        b
        for b in outside.balls[foot]
        if np.linalg.norm(b.center) + b.radius > 0.97 * bone
    ]
    R_sole = _sole_axes(R[foot].T @ [0.0, 0.0, 1.0], R[foot])
    if balls:
        ball = max(
            balls, key=lambda ball: float(np.linalg.norm(ball.center)) + ball.radius
        )
        center, radius, link = ball.center, ball.radius, ball.link
    elif len(points):
        link = model.link_names[int(outside.links[foot][int(np.argmax(away))])]
        center, radius = _fit_ball(
            points, outside.links[foot], int(np.argmax(away)), bone
        )
        issues = (f"the ball of {link} ({1e3 * radius:.0f} mm) is fitted to a mesh",)
    else:
        ends = [i for i in range(model.n_links) if model.bodies.body_of_link[i] == foot]
        places = model.bodies.p_body_link[ends]
        end = ends[int(np.argmax(np.linalg.norm(places, axis=1)))]
        link, center, radius = model.link_names[end], model.bodies.p_body_link[end], 0.0
        issues = (f"{link} has no shape: its foot is a point in its origin",)
    return _in_link(model, leg, R_sole, center, np.empty((0, 2)), radius, link, issues)


def _fit_ball(
    points: Array, links: Indices, tip: int, bone: float
) -> tuple[Array, float]:
    """Fits a ball to the end of a bone: |x|^2 = 2 x c + (r^2 - |c|^2), linear least squares.

    A link of its own at the tip that is as small as a ball is taken whole.
    """
    own = points[links == links[tip]]
    extent = np.ptp(own, axis=0)
    widest = 0.25  # of the last bone's length, radius
    near = (
        own
        if extent.max() < 2.0 * widest * bone and (links != links[tip]).any()
        else None
    )
    if near is None:
        # of the last bone's length: what is nearer to its end is the ball
        near = points[np.linalg.norm(points - points[tip], axis=1) < 0.1 * bone]
    if len(near) > 3:
        A = np.column_stack([2.0 * near, np.ones(len(near))])
        x, _, rank, _ = np.linalg.lstsq(A, (near**2).sum(axis=1), rcond=1e-9)
        radius = float(np.sqrt(max(x[3] + x[:3] @ x[:3], 0.0)))
        inside = np.linalg.norm(x[:3] - near.mean(axis=0)) < 1.5 * widest * bone
        if rank == 4 and radius < widest * bone and inside:
            return x[:3], radius
    radius = 0.5 * float(np.median(np.ptp(near, axis=0)))
    outwards = points[tip] / np.linalg.norm(points[tip])
    return points[tip] - radius * outwards, radius


def _in_link(
    model: RobotModel,
    leg: Leg,
    R: Array,
    p: Array,
    corners: Array,
    radius: float,
    link: str,
    issues: tuple[str, ...] = (),
) -> Sole:
    """The sole in the frame of a link, with that of a sole link of the URDF where it agrees."""
    bodies, own = model.bodies, ""
    here = np.flatnonzero(bodies.body_of_link == leg.foot).tolist()
    for i in here:
        R_i, p_i = bodies.R_body_link[i], bodies.p_body_link[i]
        if len(corners):
            height, tilt = (
                (p_i - p) @ R[:, 2],
                np.arccos(np.clip(R_i[:, 2] @ R[:, 2], -1, 1)),
            )
            ahead = R_i[:, 0] @ R[:, 0] > np.cos(0.02)
            # of a sole link of the URDF
            same = abs(height) < 0.005 and tilt < np.radians(1.0) and ahead
        else:
            same = float(np.linalg.norm(p_i - p)) < 0.3 * radius
        name = model.link_names[i]
        if same and (not own or ("sole" in name.lower()) > ("sole" in own.lower())):
            own = name
        elif same:
            continue
        elif len(corners) and "sole" in name.lower() and tilt < 0.5:
            issues = (
                *issues,
                f"{name} is {1e3 * height:+.0f} mm above the sole of its shapes, tilted by "
                f"{np.degrees(tilt):.1f} deg: the shapes are used",
            )
    if own and len(
        corners
    ):  # the configuration has its frame: outline and posture, too
        i = model.link_index(own)
        outline = np.column_stack([corners, np.zeros(len(corners))]) @ R.T + p
        R, p = bodies.R_body_link[i], bodies.p_body_link[i]
        corners = ((outline - p) @ R)[:, :2]
    i = model.link_index(link)
    R_link, p_link = bodies.R_body_link[i], bodies.p_body_link[i]
    R_in, p_in = R_link.T @ R, R_link.T @ (p - p_link)
    return Sole(link, R_in, p_in, corners, radius, own, R, p, issues)
