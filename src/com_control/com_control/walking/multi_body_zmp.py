"""Zero moment point of a robot with all its bodies, not of a pendulum.

The wrench of the ground is what the inverse dynamics of the whole robot ask for at the root. With
its force F and its moment N about the world's origin, the ZMP on the plane z = h is where it has no
horizontal moment:

  p_x = (h F_x - N_y) / F_z,  p_y = (h F_y + N_x) / F_z

Velocities and accelerations are central differences of the samples; before the first sample and
after the last one the robot stands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from com_control.walking.exceptions import PlanError
from com_model.arrays import Array, as_array
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import Dynamics

_LEAST_LOAD = 0.05  # share of the weight, under which there is no ZMP


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
    omega, omega_dot = _turning(R, path.dt)
    acceleration = differences(p, path.dt)[1] + [0.0, 0.0, GRAVITY]
    felt = np.einsum("nji,nj->ni", R, acceleration)
    own = dynamics.root_wrenches(path.q, qd, qdd, omega, omega_dot, felt)
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
    if not F[least, 2] > _LEAST_LOAD * weight:
        raise PlanError(
            f"at {least * path.dt:.3f} s the ground would carry {F[least, 2]:.1f} N of a robot of "
            f"{weight:.1f} N: there is no ZMP; let the CoM rise and fall more slowly"
        )
    h = np.broadcast_to(np.asarray(height, dtype=float), len(F))
    x = (h * F[:, 0] - N[:, 1]) / F[:, 2]
    y = (h * F[:, 1] + N[:, 0]) / F[:, 2]
    return np.column_stack((x, y, h))


def differences(values: Array, dt: float) -> tuple[Array, Array]:
    """First and second derivative of samples (N, ...) dt apart, at rest before and after them."""
    before = np.concatenate((values[:1], values[:-1]))
    after = np.concatenate((values[1:], values[-1:]))
    return (after - before) / (2.0 * dt), (after - 2.0 * values + before) / dt**2


def _turning(R: Array, dt: float) -> tuple[Array, Array]:
    """Angular velocity and acceleration (N, 3) in the turning axes, by differences."""
    steps = np.zeros((len(R) + 1, 3))
    steps[1:-1] = Rotation.from_matrix(R[:-1].transpose(0, 2, 1) @ R[1:]).as_rotvec()
    return 0.5 * (steps[1:] + steps[:-1]) / dt, (steps[1:] - steps[:-1]) / dt**2
