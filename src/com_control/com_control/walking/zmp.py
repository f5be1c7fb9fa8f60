"""The zero moment point: measured by force and torque under the feet, and of a planned motion.

A sensor at p in the sole's frame, rotated by R, reads force f and torque t. About the sole's origin

  F = R f,  M = R t + p x F,  zmp_x = -M_y / F_z,  zmp_y = M_x / F_z

on the sole's plane. For a sensor with the sole's axes at the height d above it that is
(-t_y - f_x d) / f_z and (t_x - f_y d) / f_z: [CCGD] eqs 15, 16 in the axes of the paper. Of both
feet together: the same with the sum of their forces and moments about a point of the ground.

Of a planned motion the wrench of the ground is what the inverse dynamics of the whole robot need at
the root. With its force F and its moment N about the world's origin, the ZMP on the plane z = h is
where it has no horizontal moment:

  p_x = (h F_x - N_y) / F_z,  p_y = (h F_y + N_x) / F_z

Velocities and accelerations are central differences of the samples; before the first sample and
after the last one the robot stands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from com_control.exceptions import BipedError, PlanError
from com_control.walking.biped import Biped
from com_model.arrays import Array, as_array
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.dynamics.kinematics import link_pose

MIN_FORCE = 0.02
"""Fraction of the weight below which the ZMP is not determined."""


class SoleZmp:
    """Turns readings of the feet's sensors into the ZMP.

    Args:
        biped: The robot.

    Raises:
        BipedError: A sensor is not fixed to its sole.
    """

    def __init__(self, biped: Biped) -> None:
        self._least = MIN_FORCE * biped.model.mass * GRAVITY
        self._mounts = [_mount(biped, leg.foot.frame, leg.foot.wrench_frame) for leg in biped.legs]

    def wrenches_at_soles(self, wrenches: ArrayLike) -> Array:
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

    def foot_zmp(self, wrench: ArrayLike) -> Array:
        """ZMP (2,) m of a foot in its sole's frame, of a row of wrenches_at_soles; NaN: no load."""
        F, M = np.split(as_array("wrench", wrench, (6,)), 2)
        if not F[2] > self._least:
            return np.full(2, np.nan)
        return np.array([-M[1], M[0]]) / F[2]

    def robot_zmp(self, wrenches: ArrayLike, soles: ArrayLike) -> Array:
        """ZMP (3,) m of the robot in a frame with z upwards; NaN: the ground carries nothing.

        On the plane through the middle of the soles' origins, weighted by what each carries.

        Args:
            wrenches: (2, 6) as for wrenches_at_soles.
            soles: (2, 3, 4) poses [R p] of the soles in that frame.
        """
        poses = as_array("soles", soles, (2, 3, 4))
        own = self.wrenches_at_soles(wrenches)
        F = np.einsum("kij,kj->ki", poses[:, :, :3], own[:, :3])
        M = np.einsum("kij,kj->ki", poses[:, :, :3], own[:, 3:]) + np.cross(poses[:, :, 3], F)
        force, moment = F.sum(axis=0), M.sum(axis=0)
        if not force[2] > self._least:
            return np.full(3, np.nan)
        carried = np.maximum(F[:, 2], 0.0)
        height = float(carried @ poses[:, 2, 3] / carried.sum())
        x, y = height * force[0] - moment[1], height * force[1] + moment[0]
        return np.array([x / force[2], y / force[2], height])

    def vertical_forces(self, wrenches: ArrayLike) -> Array:
        """Force across each sole (2,) N, upwards on the foot."""
        return np.array(self.wrenches_at_soles(wrenches)[:, 2])


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


_MIN_LOAD = 0.05  # fraction of the weight below which there is no ZMP


@dataclass(frozen=True, eq=False)
class RobotPath:
    """How a whole robot moves, at N times dt apart.

    Attributes:
        dt: s.
        q: (N, n) joint positions, rad or m.
        R_root: (N, 3, 3) orientation of the root link in the world.
        p_root: (N, 3) m, its origin.
    """

    dt: float
    q: Array
    R_root: Array
    p_root: Array


def ground_wrench(dynamics: Dynamics, path: RobotPath) -> Array:
    """The wrench of the ground on the robot (N, 6): force N, moment N m about the world's origin.

    Args:
        dynamics: Of the robot.
        path: Its motion.

    Raises:
        ShapeError: An array has the wrong shape.
    """
    count = len(as_array("path.q", path.q, (None, dynamics.model.n_joints)))
    R = as_array("path.R_root", path.R_root, (count, 3, 3))
    p = as_array("path.p_root", path.p_root, (count, 3))
    qd, qdd = differences(path.q, path.dt)
    omega, omega_dot = _angular_motion(R, path.dt)
    acceleration = differences(p, path.dt)[1] + [0.0, 0.0, GRAVITY]
    specific_force = np.einsum("nji,nj->ni", R, acceleration)
    own = dynamics.root_wrenches(path.q, qd, qdd, omega, omega_dot, specific_force)
    wrench = np.einsum("nij,nkj->nki", R, own.reshape(count, 2, 3))
    wrench[:, 1] += np.cross(p, wrench[:, 0])
    return wrench.reshape(count, 6)


def multi_body_zmp(dynamics: Dynamics, path: RobotPath, height: ArrayLike = 0.0) -> Array:
    """The zero moment point (N, 3) m, in the world.

    Args:
        dynamics: Of the robot.
        path: Its motion.
        height: m, of the ground, one or (N,).

    Raises:
        PlanError: The ground would have to pull the robot down, or nearly.
        ShapeError: An array has the wrong shape.
    """
    wrench = ground_wrench(dynamics, path)
    F, N = wrench[:, :3], wrench[:, 3:]
    weight = dynamics.model.mass * GRAVITY
    least = int(np.argmin(F[:, 2]))
    if not F[least, 2] > _MIN_LOAD * weight:
        raise PlanError(
            f"at {least * path.dt:.3f} s the ground would carry {F[least, 2]:.1f} N of a robot of "
            f"{weight:.1f} N: there is no ZMP; let the CoM rise and fall more slowly"
        )
    h = np.broadcast_to(np.asarray(height, dtype=float), len(F))
    x = (h * F[:, 0] - N[:, 1]) / F[:, 2]
    y = (h * F[:, 1] + N[:, 0]) / F[:, 2]
    return np.column_stack((x, y, h))


def differences(values: Array, dt: float) -> tuple[Array, Array]:
    """First and second derivative of samples (N, ...) dt apart, stationary before and after."""
    before = np.concatenate((values[:1], values[:-1]))
    after = np.concatenate((values[1:], values[-1:]))
    return (after - before) / (2.0 * dt), (after - 2.0 * values + before) / dt**2


def _angular_motion(R: Array, dt: float) -> tuple[Array, Array]:
    """Angular velocity and acceleration (N, 3) in the rotating axes, by differences."""
    steps = np.zeros((len(R) + 1, 3))
    steps[1:-1] = Rotation.from_matrix(R[:-1].transpose(0, 2, 1) @ R[1:]).as_rotvec()
    return 0.5 * (steps[1:] + steps[:-1]) / dt, (steps[1:] - steps[:-1]) / dt**2
