"""The balance frame: the middle of the soles that stand, z against gravity.

[Cotton] turns the chain by the measured orientation of the root (the virtual joint A_0, eqs 10, 11)
and lets the CoM fall along gravity; here the same orientation turns the soles. The frame does not
tilt with the ground: a CoM that keeps its x and y in it falls onto the same point of the ground.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from com_control.balance.exceptions import BalanceError
from com_control.balance.soles import SolePoses
from com_model.arrays import Array, freeze
from com_model.geometry.hull import convex_hull, signed_distance

STEEPEST = 1.0  # rad, of a ground that anybody stands on
FLAT = 0.05  # rad, by which a sole may be off the others
EVEN = 0.02  # m, likewise


@dataclass(frozen=True, eq=False)
class BalanceFrame:
    """Where the balance frame is, and what stands in it; arrays are read-only.

    Attributes:
        R_balance_root: (3, 3) turns root axes into the frame's.
        origin: (3,) m, its origin in the root link's frame.
        normal: (3,) of the ground, in the frame's axes.
        slope: rad, between the normal and the vertical.
        corners: (k, 2) m, hull of the soles seen along gravity, counter-clockwise.
    """

    R_balance_root: Array
    origin: Array
    normal: Array
    slope: float
    corners: Array

    def __post_init__(self) -> None:
        freeze(self)

    def place(self, point: Array) -> Array:
        """A point (3,) of the root link's frame in the balance frame, m."""
        return np.asarray(self.R_balance_root @ (point - self.origin))

    def margin(self, point: Array) -> float:
        """How far inside the soles a point (3,) of this frame stands, m; negative outside."""
        return float(signed_distance(self.corners, point[None, :2])[0])


def balance_frame(
    soles: SolePoses, points: Array, up: Array, shares: Array | None = None
) -> BalanceFrame:
    """Finds the balance frame.

    Args:
        soles: That stand.
        points: (m, 3) m, their corners, in the root link's frame.
        up: (3,) unit vector against gravity, root axes; e.g. R_world_root[2] of an IMU.
        shares: (f,) of the soles in telling the ground's normal; equal by default.

    Raises:
        BalanceError: Gravity does not point into the ground.
    """
    normal = soles.R[:, :, 2].sum(axis=0) if shares is None else shares @ soles.R[:, :, 2]
    normal = normal / np.linalg.norm(normal)
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
    R = np.array([forward, cross(up, forward), up])
    origin = soles.p.mean(axis=0)
    flat = (points - origin) @ R[:2].T
    slope = float(np.arctan2(np.linalg.norm(cross(normal, up)), cosine))
    return BalanceFrame(R, origin, R @ normal, slope, convex_hull(flat))


def check_plane(soles: SolePoses, names: tuple[str, ...]) -> None:
    """Checks that soles lie on one plane.

    Raises:
        BalanceError: One is tilted against the others or stands above them; names it.
    """
    normal = soles.R[:, :, 2].sum(axis=0)
    normal = normal / np.linalg.norm(normal)
    heights = (soles.p - soles.p.mean(axis=0)) @ normal
    tilts = np.arccos(np.clip(soles.R[:, :, 2] @ normal, -1.0, 1.0))
    for name, height, tilt in zip(names, heights.tolist(), tilts.tolist(), strict=True):
        if abs(height) > EVEN or tilt > FLAT:
            raise BalanceError(
                f"the soles are not on one plane: {name} is {1e3 * height:.0f} mm off their middle "
                f"and tilted by {tilt:.3f} rad; bring all feet flat to the ground"
            )


def cross(a: Array, b: Array) -> Array:
    """The cross product of two vectors (3,); numpy's takes ten times as long."""
    a0, a1, a2 = a.tolist()
    b0, b1, b2 = b.tolist()
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])
