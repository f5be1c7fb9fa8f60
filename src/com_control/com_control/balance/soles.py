"""The soles on the ground: poses and Jacobians, the balance frame, the support polygon."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import BalanceError
from com_model import Foot, RobotModel
from com_model.arrays import Array, FrozenArrays
from com_model.dynamics.link_frames import LinkFrames, LinkMotions
from com_model.geometry.rotations import rotation_vector, skew, upright_axes
from com_model.geometry.support import convex_hull, signed_distance, sole_points


class Soles:
    """Soles of some feet of a robot.

    Args:
        model: the robot.
        feet: with the frames and corners of their soles.

    Attributes:
        feet: as given.
        joints: indices of q of the joints between root and soles.
        legs: those of each sole.

    Raises:
        BalanceError: no foot is given, or one is fixed to the root.
        UnknownNameError: a foot's frame is no link of the model.
    """

    def __init__(self, model: RobotModel, feet: Sequence[Foot]) -> None:
        if not feet:
            raise BalanceError(
                "no feet: name them in the robot's configuration, feet.<frame>"
            )
        names, centers = [foot.frame for foot in feet], [foot.center for foot in feet]
        self._frames = LinkFrames(model, names, centers)
        frames = self._frames.frames
        for foot, body in zip(feet, frames.body, strict=True):
            if body == 0:
                raise BalanceError(
                    f"foot {foot.frame!r} is fixed to the root {model.root_link!r}: no joint can "
                    "move the robot over it"
                )
        self.feet = tuple(feet)
        self._middles = np.array(
            [foot.corners.mean(axis=0) for foot in feet if len(foot.corners)]
        )
        self.joints = np.unique(model.bodies.q_index[frames.path])
        bodies = model.bodies
        self.legs = [bodies.q_index[bodies.path_to(body)] for body in frames.body]

    def poses(self, q: ArrayLike) -> LinkMotions:
        """Poses and Jacobians of the soles.

        Args:
            q: (n,) joint positions, rad or m.

        Returns:
            In the root link's frame; points are Foot.center of each foot.
        """
        return self._frames.motions(q)

    def points(self, poses: LinkMotions) -> Array:
        """Corners of all soles.

        Args:
            poses: of the soles.

        Returns:
            (m, 3) m, root link's frame.
        """
        placed = zip(self.feet, poses.R, poses.p, strict=True)
        return np.concatenate(
            [sole_points(R, p, foot.corners) for foot, R, p in placed]
        )

    def weights(self, poses: LinkMotions, com: Array, up: Array) -> Array:
        """Weights of the feet for the ground's normal: most for the one below the CoM.

        A sole that is hardly loaded hangs on a leg that does not deflect, slightly off the
        ground; it must not count for the ground's slope. w_i = 1 / (d_i^2 + e^2)^2, normalised,
        with the horizontal distance d_i from the CoM to the middle of the sole.

        Args:
            poses: of the soles, root link's frame.
            com: (3,) m, root link's frame.
            up: (3,) unit vector against gravity, root axes.

        Returns:
            (f,) with sum 1.
        """
        middles = poses.p + np.einsum("fij,fj->fi", poses.R[:, :, :2], self._middles)
        away = com - middles
        squared = (away**2).sum(axis=1) - (away @ up) ** 2
        # m, below which distances of the CoM from a sole do not count
        weights = 1.0 / (squared + 0.02**2) ** 2
        return np.asarray(weights / weights.sum())


def ground_motion(
    poses: LinkMotions, weights: Array, origin: Array
) -> tuple[Array, Array]:
    """Jacobians of the ground at a point relative to the root.

    Args:
        poses: poses and Jacobians of the soles, root link's frame.
        weights: (f,) of the soles, sum 1.
        origin: (3,) m, the point, root link's frame.

    Returns:
        (3, n) of its velocity, m per rad or m, and (3, n) of its angular velocity, rad per rad
        or m.
    """
    angular = np.einsum("f,fij->ij", weights, poses.jacobian[:, 3:])
    linear = np.einsum("f,fij->ij", weights, poses.jacobian[:, :3])
    for weight, p, J in zip(weights, poses.p, poses.jacobian, strict=True):
        linear -= weight * skew(origin - p) @ J[3:]
    return linear, angular


def relative_poses(poses: LinkMotions) -> Array:
    """Poses of soles in the frame of the first one.

    Args:
        poses: of f soles.

    Returns:
        [R p] (f, 3, 4).
    """
    R0 = poses.R[0].T
    return np.concatenate(
        (R0 @ poses.R, ((poses.p - poses.p[0]) @ R0.T)[:, :, None]), axis=2
    )


def mean_normal(soles: LinkMotions, weights: Array | None = None) -> Array:
    """Mean unit normal of soles.

    Args:
        soles: their poses.
        weights: (f,); None: equal.

    Returns:
        (3,) root link's axes.
    """
    up = soles.R[:, :, 2]
    normal = up.sum(axis=0) if weights is None else weights @ up
    return np.asarray(normal / np.linalg.norm(normal))


def way_between(want: Array, now: Array) -> Array:
    """Displacement and rotation vector from one pose to another.

    Args:
        want: [R p] (3, 4), the target.
        now: [R p] (3, 4), the start.

    Returns:
        (6,) displacement m, rotation vector rad.
    """
    turn = rotation_vector(want[:, :3] @ now[:, :3].T)
    return np.concatenate((want[:, 3] - now[:, 3], turn))


def bounded(vector: Array, most: float) -> Array:
    """Limits the length of a vector; NaN components stay and do not count.

    Args:
        vector: (k,) of any unit.
        most: its largest length.

    Returns:
        The vector, scaled down if it is longer.
    """
    size = float(np.linalg.norm(vector[np.isfinite(vector)]))
    return vector if size <= most else vector * (most / size)


STEEPEST = 1.0  # rad, largest plausible slope of the ground


@dataclass(frozen=True, eq=False)
class BalanceFrame(FrozenArrays):
    """The balance frame, and the ground and soles in it; arrays are read-only.

    Its origin is the mean position of the soles, z is upwards, x the mean direction of the feet.

    Attributes:
        R_balance_root: (3, 3) rotation from root axes to the frame's.
        origin: (3,) m, its origin in the root link's frame.
        normal: (3,) of the ground, in the frame's axes.
        slope: rad, between the normal and the vertical.
        corners: (k, 2) m, hull of the soles seen from above, counter-clockwise.
    """

    R_balance_root: Array
    origin: Array
    normal: Array
    slope: float
    corners: Array

    def transform(self, point: Array) -> Array:
        """Transforms a point to the balance frame.

        Args:
            point: (3,) m, root link's frame.

        Returns:
            (3,) m, balance frame.
        """
        return np.asarray(self.R_balance_root @ (point - self.origin))

    def margin(self, point: Array) -> float:
        """Signed distance of a point to the edge of the soles' hull, seen from above.

        Args:
            point: (3,) m, balance frame.

        Returns:
            m, positive inside.
        """
        return float(signed_distance(self.corners, point[None, :2])[0])


def balance_frame(
    soles: LinkMotions, points: Array, up: Array, weights: Array | None = None
) -> BalanceFrame:
    """Computes the balance frame.

    Args:
        soles: poses of the soles, root link's frame.
        points: (m, 3) m, their corners, root link's frame.
        up: (3,) unit vector against gravity, root axes.
        weights: (f,) of the soles for the ground's normal; None: equal.

    Returns:
        The frame.

    Raises:
        BalanceError: gravity does not point into the ground.
    """
    normal = mean_normal(soles, weights)
    cosine = float(normal @ up)
    if not cosine > np.cos(STEEPEST):
        angle = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
        raise BalanceError(
            f"the soles are tilted by {angle:.0f} deg against gravity, at most "
            f"{np.degrees(STEEPEST):.0f}: set the robot on its feet, or check imu.link"
        )
    R = upright_axes(soles.R[:, :, 0].sum(axis=0), up)
    origin = soles.p.mean(axis=0)
    flat = (points - origin) @ R[:2].T
    slope = float(np.arctan2(np.linalg.norm(skew(normal) @ up), cosine))
    return BalanceFrame(R, origin, R @ normal, slope, convex_hull(flat))


def check_plane(soles: LinkMotions, names: tuple[str, ...]) -> None:
    """Checks that soles lie on one plane.

    Args:
        soles: their poses.
        names: of the feet, for the text.

    Raises:
        BalanceError: one does not; the message names it.
    """
    normal = mean_normal(soles)
    heights = (soles.p - soles.p.mean(axis=0)) @ normal
    tilts = np.arccos(np.clip(soles.R[:, :, 2] @ normal, -1.0, 1.0))
    for name, height, tilt in zip(names, heights.tolist(), tilts.tolist(), strict=True):
        # m and rad, by which a sole may be off the others
        if abs(height) > 0.02 or tilt > 0.05:
            raise BalanceError(
                f"the soles are not on one plane: {name} is {1e3 * height:.0f} mm off their middle "
                f"and tilted by {tilt:.3f} rad; bring all feet flat to the ground"
            )


class GroundRotation:
    """Angular velocity of the ground, from the normal of the soles against gravity.

    Soles also rotate against gravity where the ground does not: on edges, rubber and tilted by
    errors of the encoders they rock with the robot. Compensating that drives the rocking, because
    filter and drives delay the compensation. Ground that tilts rotates one way, rocking to and
    fro, so the measured rotation v counts by (|mean v| / mean |v|)^4, with means over about 1 s:
    1 for a constant direction, from its begin on, and below 0.001 for an oscillation at 15 rad/s.

    Attributes:
        velocity: (3,) rad/s, of the ground, balance frame.
    """

    def __init__(self, normal: Array) -> None:
        """Starts with ground that does not rotate.

        Args:
            normal: (3,) unit normal of the soles, balance frame.
        """
        self.velocity = np.zeros(3)
        self._normal, self._measured = normal, np.zeros(3)
        self._mean, self._mean_size = np.zeros(3), 0.0

    def update(self, normal: Array, dt: float, slope_time: float) -> None:
        """Adds the soles' normal of one more instant.

        Args:
            normal: (3,) unit normal of the soles, balance frame.
            dt: s since the last one; nothing changes at 0.
            slope_time: s, time constant of the low-pass filter of the measured rotation.
        """
        if dt <= 0.0:
            return
        rotation = skew(self._normal) @ normal / dt
        blend = dt / (dt + slope_time)
        self._normal = normal
        self._measured = self._measured + blend * (rotation - self._measured)
        # a rotation must keep its direction for 1 s to count as the ground's
        size, blend = float(np.linalg.norm(self._measured)), dt / (dt + 1.0)
        self._mean = self._mean + blend * (self._measured - self._mean)
        self._mean_size += blend * (size - self._mean_size)
        steadiness = float(np.linalg.norm(self._mean)) / max(self._mean_size, 1e-12)
        self.velocity = steadiness**4 * self._measured


class GroundCheck:
    """Whether soles on the ground turn against gravity no faster than ground does.

    Else the direction of gravity is wrong, or soles have left the ground. The normal that was
    believed before is the one that the soles must come back to.

    Args:
        normal: (3,) unit normal of the soles, balance frame.
    """

    def __init__(self, normal: Array) -> None:
        self._believed, self._spare = normal, 0.0
        self._back_for = np.inf  # s; inf: it has agreed all the time

    def pause(self, dt: float) -> None:
        """Lets time pass without a normal, in which believed ground may turn.

        Args:
            dt: s.
        """
        self._spare += dt * bool(np.isinf(self._back_for))

    def agrees(
        self, normal: Array, dt: float, speed: float, error: float, recovery: float
    ) -> bool:
        """Compares the soles' normal with the one that was believed.

        Args:
            normal: (3,) unit normal of the soles, balance frame.
            dt: s since the last one.
            speed: rad/s, fastest rotation of the ground.
            error: rad, of the normal; three times as much when it comes back, since the believed
                one has followed at first.
            recovery: s, for which it must be back.

        Returns:
            Whether ground can have turned so.
        """
        way, most = normal - self._believed, speed * (dt + self._spare)
        size, self._spare = float(np.linalg.norm(way)), 0.0
        if np.isinf(self._back_for):
            if size > most + error:
                self._back_for = 0.0
                return False
            self._believed = self._believed + way * min(1.0, most / max(size, 1e-12))
            return True
        self._back_for = self._back_for + dt if size <= 3.0 * error else 0.0
        if self._back_for < recovery:
            return False
        self._back_for, self._believed = np.inf, normal
        return True


_SLACK = 1e-9  # m


def hold_inside(corners: Array, point: Array, margin: float) -> tuple[Array, bool]:
    """Finds the nearest point that is inside a convex polygon by a margin.

    The polygon reduced by the margin is given by n_i (x - v_i) >= margin; the nearest point is
    the point itself, its foot on one of these lines, or a corner where two of them meet.

    Args:
        corners: v (k, 2) m, counter-clockwise.
        point: (2,) m.
        margin: m.

    Returns:
        The nearest point (2,), or the mean of the corners where nothing is left of the polygon;
        and whether it differs from the given one.
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
    candidates = np.concatenate(
        (point - away[:, None] * normals, _meetings(normals, least))
    )
    fits = (candidates @ normals.T - least >= -_SLACK).all(axis=1)
    if not fits.any():
        return corners.mean(axis=0), True
    inside = candidates[fits]
    return inside[np.argmin(((inside - point) ** 2).sum(axis=1))].copy(), True


def _meetings(normals: Array, least: Array) -> Array:
    """Intersections (m, 2) of consecutive lines n x = c."""
    after, c = np.roll(normals, -1, axis=0), np.roll(least, -1)
    turn = normals[:, 0] * after[:, 1] - normals[:, 1] * after[:, 0]
    turn = np.where(np.abs(turn) > _SLACK, turn, np.nan)
    x = (least * after[:, 1] - c * normals[:, 1]) / turn
    y = (normals[:, 0] * c - after[:, 0] * least) / turn
    return np.column_stack((x, y))
