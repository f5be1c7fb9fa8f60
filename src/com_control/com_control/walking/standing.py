"""How a robot stands on both feet: where its soles are, and the frame in which a walk is planned.

That frame lies on the ground in the middle between the soles, x in the middle of their directions,
z along the soles' normals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_control.walking.biped import Biped
from com_control.walking.exceptions import PlanError
from com_control.walking.footsteps import Footstep
from com_model.arrays import Array, freeze
from com_model.dynamics.kinematics import link_pose
from com_model.sesc.sesc import Sesc

LEVEL = 0.05
"""rad, by which a sole may be off the ground's plane."""
EVEN = 0.02
"""m, by which one sole may be higher than the other."""


@dataclass(frozen=True, eq=False)
class Stance:
    """A robot on both feet; arrays are read-only.

    Attributes:
        feet: Left and right foot in the walk's frame.
        R_walk_root: (3, 3) orientation of the root link.
        p_walk_root: (3,) m, its origin.
        com: (3,) m, the CoM in the walk's frame.
    """

    feet: tuple[Footstep, Footstep]
    R_walk_root: Array
    p_walk_root: Array
    com: Array

    def __post_init__(self) -> None:
        freeze(self)


def soles_in_root(biped: Biped, q: ArrayLike) -> Array:
    """Poses [R p] of the soles in the root link's frame, left and right, (2, 3, 4)."""
    poses = [link_pose(biped.model, q, leg.foot.frame) for leg in biped.legs]
    return np.array([np.column_stack(pose) for pose in poses])


def stance_of(biped: Biped, q: ArrayLike) -> Stance:
    """How a robot stands with joints at q (n,), rad or m.

    Raises:
        PlanError: Its soles are not on one plane.
    """
    poses = soles_in_root(biped, q)
    normal = poses[:, :, 2].sum(axis=0)
    normal /= np.linalg.norm(normal)
    _check_plane(poses, normal)
    forward = poses[:, :, 0].sum(axis=0)
    forward -= normal * (forward @ normal)
    forward /= np.linalg.norm(forward)
    R = np.array([forward, np.cross(normal, forward), normal])  # walk from root
    middle = poses[:, :, 3].mean(axis=0)
    feet = [
        _footstep(leg.side, R, pose, middle) for leg, pose in zip(biped.legs, poses, strict=True)
    ]
    com = R @ (Sesc(biped.model).com(q) - middle)
    return Stance((feet[0], feet[1]), R, -R @ middle, com)


def slip(biped: Biped, Q: Array) -> float:
    """By how much the soles would move to each other along postures (N, n): m, or rad of turns."""
    relative = [_relative(soles_in_root(biped, q)) for q in Q]
    first = relative[0]
    moves = [float(np.linalg.norm(pose[:, 3] - first[:, 3])) for pose in relative]
    turns = [float(np.abs(pose[:, :3] - first[:, :3]).max()) for pose in relative]
    return max(*moves, *turns)


def least_width(biped: Biped) -> float:
    """Distance of the soles' frames at which the soles touch, feet side by side, m."""
    left, right = (leg.foot.corners for leg in biped.legs)
    inner = [-left[:, 1].min() if len(left) else 0.0, right[:, 1].max() if len(right) else 0.0]
    return max(float(sum(inner)), 0.0)


def sole_middle(biped: Biped) -> tuple[float, float]:
    """Middle of the soles in their frames: m forwards, and m inwards to the other foot."""
    left, right = (leg.foot.corners for leg in biped.legs)
    if not (len(left) and len(right)):
        return 0.0, 0.0
    middles = [0.5 * (c.min(axis=0) + c.max(axis=0)) for c in (left, right)]
    return float(0.5 * (middles[0][0] + middles[1][0])), float(
        0.5 * (middles[1][1] - middles[0][1])
    )


def _check_plane(poses: Array, normal: Array) -> None:
    away = float(normal @ (poses[0, :, 3] - poses[1, :, 3]))
    tilt = float(np.arccos(np.clip((poses[:, :, 2].T @ np.ones(2) / 2.0) @ normal, -1.0, 1.0)))
    if abs(away) > EVEN or tilt > LEVEL:
        raise PlanError(
            f"the soles are not on one plane: the left one is {1e3 * away:.0f} mm above the right "
            f"one and they are tilted by {tilt:.3f} rad; bring both feet flat to the ground"
        )


def _relative(poses: Array) -> Array:
    left, right = poses
    R = left[:, :3].T
    return np.column_stack((R @ right[:, :3], R @ (right[:, 3] - left[:, 3])))


def _footstep(side: str, R: Array, pose: Array, middle: Array) -> Footstep:
    x, y, _ = (R @ (pose[:, 3] - middle)).tolist()
    ahead = R @ pose[:, 0]
    return Footstep(side, x, y, 0.0, float(np.arctan2(ahead[1], ahead[0])))
