"""A robot that stands on both feet, in the frame of a walk that starts there."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import PlanError
from com_control.walking.biped import Biped, sole_poses
from com_control.walking.footsteps import Footstep
from com_model import Sesc
from com_model.arrays import Array, FrozenArrays
from com_model.geometry.rotations import upright_axes


@dataclass(frozen=True, eq=False)
class Stance(FrozenArrays):
    """A robot on both feet, in the walk's frame; arrays are read-only.

    Attributes:
        feet: left and right foot.
        R_walk_root: (3, 3) orientation of the root link.
        p_walk_root: (3,) m, its origin.
        com: (3,) m, centre of mass.
    """

    feet: tuple[Footstep, Footstep]
    R_walk_root: Array
    p_walk_root: Array
    com: Array


def find_stance(biped: Biped, q: ArrayLike) -> Stance:
    """Computes the stance of a robot on both feet.

    Args:
        biped: the robot.
        q: (n,) rad or m.

    Returns:
        The stance, in the frame of a walk that starts there.

    Raises:
        PlanError: its soles are not on one plane.
    """
    poses = sole_poses(biped, q)
    normal = poses[:, :, 2].sum(axis=0)
    normal /= np.linalg.norm(normal)
    away = float(normal @ (poses[0, :, 3] - poses[1, :, 3]))
    tilt = float(np.arccos(np.clip(poses[:, :, 2].mean(axis=0) @ normal, -1.0, 1.0)))
    # m, by which one sole may be higher than the other; rad, between a sole and the plane
    if abs(away) > 0.02 or tilt > 0.05:
        raise PlanError(
            f"the soles are not on one plane: the left one is {1e3 * away:.0f} mm above the right "
            f"one and they are tilted by {tilt:.3f} rad; bring both feet flat to the ground"
        )
    R = upright_axes(poses[:, :, 0].sum(axis=0), normal)  # walk from root
    middle = poses[:, :, 3].mean(axis=0)
    feet = []
    for leg, pose in zip(biped.legs, poses, strict=True):
        (x, y, _), ahead = (R @ (pose[:, 3] - middle)).tolist(), R @ pose[:, 0]
        feet.append(
            Footstep(leg.side, x, y, 0.0, float(np.arctan2(ahead[1], ahead[0])))
        )
    com = R @ (Sesc(biped.model).com(q) - middle)
    return Stance((feet[0], feet[1]), R, -R @ middle, com)
