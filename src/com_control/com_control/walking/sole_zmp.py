"""The zero moment point from force and torque under the feet ([CCGD] eqs 15, 16, any sensor frame).

A sensor at p in the sole's frame, turned by R, reads force f and torque t. About the sole's origin

  F = R f,  M = R t + p x F,  zmp_x = -M_y / F_z,  zmp_y = M_x / F_z

on the sole's plane. For a sensor with the sole's axes at the height d above it that is
(-t_y - f_x d) / f_z and (t_x - f_y d) / f_z, which are eqs 15 and 16 in the axes of the paper. Of
both feet together: the same with the sum of their forces and moments about a point of the ground.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from com_control.walking.biped import Biped
from com_control.walking.exceptions import BipedError
from com_model.arrays import Array, as_array
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import link_pose

LEAST_FORCE = 0.02
"""Share of the weight, below which the ground carries nothing that tells of a ZMP."""


class SoleZmp:
    """Turns readings of the feet's sensors into the ZMP.

    Args:
        biped: The robot.

    Raises:
        BipedError: A sensor is not fixed to its sole.
    """

    def __init__(self, biped: Biped) -> None:
        self._least = LEAST_FORCE * biped.model.mass * GRAVITY
        self._mounts = [_mount(biped, leg.foot.frame, leg.foot.wrench_frame) for leg in biped.legs]

    def at_soles(self, wrenches: ArrayLike) -> Array:
        """Wrenches (2, 6) of the ground on the feet about the soles' origins, in the soles' axes.

        Args:
            wrenches: (2, 6) force (N) and torque (N m) of the ground on the left and right foot, in
                the axes and about the origins of their sensors.
        """
        measured = as_array("wrenches", wrenches, (2, 6))
        result = np.empty((2, 6))
        for row, wrench, (R, p) in zip(result, measured, self._mounts, strict=True):
            row[:3] = R @ wrench[:3]
            row[3:] = R @ wrench[3:] + np.cross(p, row[:3])
        return result

    def of_foot(self, wrench: ArrayLike) -> Array:
        """ZMP (2,) m of one foot in its sole's frame, from a row of at_soles; NaN: not loaded."""
        F, M = np.split(as_array("wrench", wrench, (6,)), 2)
        if not F[2] > self._least:
            return np.full(2, np.nan)
        return np.array([-M[1], M[0]]) / F[2]

    def of_both(self, wrenches: ArrayLike, soles: ArrayLike) -> Array:
        """ZMP (3,) m of the robot in a frame with z upwards; NaN: the ground carries nothing.

        On the plane through the middle of the soles' origins, weighted by what each carries.

        Args:
            wrenches: (2, 6) as for at_soles.
            soles: (2, 3, 4) poses [R p] of the soles in that frame.
        """
        poses = as_array("soles", soles, (2, 3, 4))
        own = self.at_soles(wrenches)
        F = np.einsum("kij,kj->ki", poses[:, :, :3], own[:, :3])
        M = np.einsum("kij,kj->ki", poses[:, :, :3], own[:, 3:]) + np.cross(poses[:, :, 3], F)
        force, moment = F.sum(axis=0), M.sum(axis=0)
        if not force[2] > self._least:
            return np.full(3, np.nan)
        shares = np.maximum(F[:, 2], 0.0)
        height = float(shares @ poses[:, 2, 3] / shares.sum())
        x, y = height * force[0] - moment[1], height * force[1] + moment[0]
        return np.array([x / force[2], y / force[2], height])

    def loads(self, wrenches: ArrayLike) -> Array:
        """Force across each sole (2,) N, upwards on the foot."""
        return np.array(self.at_soles(wrenches)[:, 2])


def _mount(biped: Biped, sole: str, sensor: str) -> tuple[Array, Array]:
    """Pose of a foot's sensor in its sole's frame."""
    model = biped.model
    bodies = [int(model.bodies.body_of_link[model.link_index(name)]) for name in (sole, sensor)]
    if bodies[0] != bodies[1]:
        raise BipedError(
            f"the force sensor {sensor!r} is not fixed to the sole {sole!r}: give wrench.frame in "
            "the configuration a link of the foot"
        )
    q = biped.posture
    (R, p), (R_sensor, p_sensor) = (link_pose(model, q, name) for name in (sole, sensor))
    return R.T @ R_sensor, R.T @ (p_sensor - p)
