"""The soles on the ground: poses and Jacobians, the balance frame, the support region."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import BalanceError
from com_model import Foot, RobotModel
from com_model.arrays import Array, FrozenArrays
from com_model.dynamics.link_frames import LinkFrames, LinkMotions
from com_model.geometry.hull import convex_hull, signed_distance
from com_model.geometry.rotations import rotation_vector, skew
from com_model.geometry.support import sole_points

_NEAR = 0.02  # m, below which distances of the CoM from a sole do not count


class Soles:
    """Soles of some feet of a robot; `joints` are those above them, indices of q.

    BalanceError: no foot is given, or one is the root itself; UnknownNameError: no such link.
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

    def poses(self, q: ArrayLike) -> LinkMotions:
        """Poses and Jacobians at joint positions (n,), rad or m; points are the balls' centres."""
        return self._frames.motions(q)

    def points(self, poses: LinkMotions) -> Array:
        """Corners of all soles (m, 3) m, in the root link's frame."""
        placed = zip(self.feet, poses.R, poses.p, strict=True)
        return np.concatenate(
            [sole_points(R, p, foot.corners) for foot, R, p in placed]
        )

    def weights(self, poses: LinkMotions, com: Array, up: Array) -> Array:
        """Weights (f,) of the feet in estimating the ground: most of the one below the CoM.

        A sole that carries next to nothing hangs on a leg that does not deflect, a little off
        the ground; it must not count for the ground's slope. w_i = 1 / (d_i^2 + e^2)^2, sum 1,
        with the distance d_i along the ground from the CoM to the middle of the sole.

        Args:
            poses: of the soles, root link's frame.
            com: (3,) m, root link's frame.
            up: (3,) unit vector against gravity, root axes.
        """
        middles = poses.p + np.einsum("fij,fj->fi", poses.R[:, :, :2], self._middles)
        away = com - middles
        squared = (away**2).sum(axis=1) - (away @ up) ** 2
        weights = 1.0 / (squared + _NEAR**2) ** 2
        return np.asarray(weights / weights.sum())


def ground_motion(
    poses: LinkMotions, weights: Array, origin: Array
) -> tuple[Array, Array]:
    """Jacobians of the ground at a point, the root at rest.

    Args:
        poses: poses and Jacobians of the soles, root link's frame.
        weights: (f,) of the soles, sum 1.
        origin: (3,) m, the point, root link's frame.

    Returns:
        (3, n) of its velocity, m per rad or m, and (3, n) of its turning.
    """
    angular = np.einsum("f,fij->ij", weights, poses.jacobian[:, 3:])
    linear = np.einsum("f,fij->ij", weights, poses.jacobian[:, :3])
    for weight, p, J in zip(weights, poses.p, poses.jacobian, strict=True):
        linear -= weight * skew(origin - p) @ J[3:]
    return linear, angular


def relative_poses(poses: LinkMotions) -> Array:
    """Poses [R p] (f, 3, 4) of soles in the frame of the first one."""
    R0 = poses.R[0].T
    return np.concatenate(
        (R0 @ poses.R, ((poses.p - poses.p[0]) @ R0.T)[:, :, None]), axis=2
    )


def mean_normal(soles: LinkMotions, weights: Array | None = None) -> Array:
    """Mean unit normal (3,) of soles, root link's axes.

    Args:
        soles: their poses.
        weights: (f,); None: all count alike.
    """
    up = soles.R[:, :, 2]
    normal = up.sum(axis=0) if weights is None else weights @ up
    return np.asarray(normal / np.linalg.norm(normal))


def way_between(want: Array, now: Array) -> Array:
    """Way (3,) m and turn (3,) rad from a pose to another one.

    Args:
        want: [R p] (3, 4), the other one.
        now: [R p] (3, 4), the first one.
    """
    turn = rotation_vector(want[:, :3] @ now[:, :3].T)
    return np.concatenate((want[:, 3] - now[:, 3], turn))


def bounded(vector: Array, most: float) -> Array:
    """A vector made shorter where it is too long; NaN stays.

    Args:
        vector: (k,) of any unit.
        most: its largest length.
    """
    size = float(np.linalg.norm(vector[np.isfinite(vector)]))
    return vector if size <= most else vector * (most / size)


STEEPEST = 1.0  # rad, of a ground that anybody stands on
FLAT = 0.05  # rad, by which a sole may be off the others
EVEN = 0.02  # m, likewise


@dataclass(frozen=True, eq=False)
class BalanceFrame(FrozenArrays):
    """Where the balance frame is, and what stands in it; arrays are read-only.

    Attributes:
        R_balance_root: (3, 3) turns root axes into the frame's.
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

    def place(self, point: Array) -> Array:
        """A point (3,) of the root link's frame in the balance frame, m."""
        return np.asarray(self.R_balance_root @ (point - self.origin))

    def margin(self, point: Array) -> float:
        """How far inside the soles a point (3,) of this frame stands, m; negative outside."""
        return float(signed_distance(self.corners, point[None, :2])[0])


def balance_frame(
    soles: LinkMotions, points: Array, up: Array, weights: Array | None = None
) -> BalanceFrame:
    """Finds the balance frame; BalanceError: gravity does not point into the ground.

    The soles' corners, points (m, 3) m, are in the root link's frame, and up (3,), against gravity,
    in its axes; weights (f,) are of the soles in estimating the normal, equal by default.
    """
    normal = mean_normal(soles, weights)
    cosine = float(normal @ up)
    if not cosine > np.cos(STEEPEST):
        angle = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
        raise BalanceError(
            f"the soles are tilted by {angle:.0f} deg against gravity, at most "
            f"{np.degrees(STEEPEST):.0f}: set the robot on its feet, or check imu.link"
        )
    forward = soles.R[:, :, 0].sum(axis=0)
    forward = forward - up * (forward @ up)
    forward = forward / np.linalg.norm(forward)
    R = np.array([forward, skew(up) @ forward, up])
    origin = soles.p.mean(axis=0)
    flat = (points - origin) @ R[:2].T
    slope = float(np.arctan2(np.linalg.norm(skew(normal) @ up), cosine))
    return BalanceFrame(R, origin, R @ normal, slope, convex_hull(flat))


def check_plane(soles: LinkMotions, names: tuple[str, ...]) -> None:
    """Checks that soles lie on one plane; a BalanceError names one that does not."""
    normal = mean_normal(soles)
    heights = (soles.p - soles.p.mean(axis=0)) @ normal
    tilts = np.arccos(np.clip(soles.R[:, :, 2] @ normal, -1.0, 1.0))
    for name, height, tilt in zip(names, heights.tolist(), tilts.tolist(), strict=True):
        if abs(height) > EVEN or tilt > FLAT:
            raise BalanceError(
                f"the soles are not on one plane: {name} is {1e3 * height:.0f} mm off their middle "
                f"and tilted by {tilt:.3f} rad; bring all feet flat to the ground"
            )


_SLACK = 1e-9  # m


def hold_inside(corners: Array, point: Array, margin: float) -> tuple[Array, bool]:
    """Finds the point nearest to one (2,) that is inside a convex polygon by a margin, m.

    The polygon, corners (k, 2) counter-clockwise, less the margin is cut out by n_i (x - v_i) >=
    margin; the nearest point is the point itself, its foot on one of these lines, or a corner where
    two of them meet. Gives it, and whether it is another one than the given one; the mean of the
    corners where nothing is left of the polygon.
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
    """Points (m, 2) in which two of the lines n x = c meet, those that follow one another."""
    after, c = np.roll(normals, -1, axis=0), np.roll(least, -1)
    turn = normals[:, 0] * after[:, 1] - normals[:, 1] * after[:, 0]
    turn = np.where(np.abs(turn) > _SLACK, turn, np.nan)
    x = (least * after[:, 1] - c * normals[:, 1]) / turn
    y = (normals[:, 0] * c - after[:, 0] * least) / turn
    return np.column_stack((x, y))
