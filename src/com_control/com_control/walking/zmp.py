"""The zero moment point of a planned motion of a whole robot.

The wrench of the ground is the root wrench of the whole robot's inverse dynamics. With its force
F and its moment N about the world's origin, the ZMP on the plane z = h is where it has no
horizontal moment:

  p_x = (h F_x - N_y) / F_z,  p_y = (h F_y + N_x) / F_z

Velocities and accelerations are central differences of the samples; before the first sample and
after the last one the robot stands.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import PlanError
from com_model.arrays import Array, as_array
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.geometry.rotations import rotation_vectors

# fraction of the weight that the ground must give in a plan: the ZMP divides by that force
_LEAST_GROUND_FORCE = 0.05


@dataclass(frozen=True, eq=False)
class RobotPath:
    """Motion of a whole robot, at N times dt apart.

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
    """Wrench of the ground on a robot along a motion.

    Args:
        dynamics: of the robot.
        path: its motion.

    Returns:
        (N, 6) force N, moment N m about the world's origin.
    """
    count = len(as_array("path.q", path.q, (None, dynamics.model.n_joints)))
    R = as_array("path.R_root", path.R_root, (count, 3, 3))
    p = as_array("path.p_root", path.p_root, (count, 3))
    qd, qdd = differences(path.q, path.dt)
    turns = np.zeros((count + 1, 3))  # from sample to sample, in the rotating axes
    turns[1:-1] = rotation_vectors(R[:-1].transpose(0, 2, 1) @ R[1:])
    omega, omega_dot = (
        0.5 * (turns[1:] + turns[:-1]) / path.dt,
        np.diff(turns, axis=0) / path.dt**2,
    )
    acceleration = differences(p, path.dt)[1] + [0.0, 0.0, GRAVITY]
    specific_force = np.einsum("nji,nj->ni", R, acceleration)
    own = dynamics.root_wrenches((path.q, qd, qdd), (omega, omega_dot, specific_force))
    wrench = np.einsum("nij,nkj->nki", R, own.reshape(count, 2, 3))
    wrench[:, 1] += np.cross(p, wrench[:, 0])
    return wrench.reshape(count, 6)


def multi_body_zmp(
    dynamics: Dynamics, path: RobotPath, height: ArrayLike = 0.0
) -> Array:
    """The zero moment point of a robot along a motion, with all its bodies.

    Args:
        dynamics: of the robot.
        path: its motion.
        height: m, of the ground, one or (N,).

    Returns:
        (N, 3) m, in the world.

    Raises:
        PlanError: the ground would have to pull the robot down, or nearly.
    """
    wrench = ground_wrench(dynamics, path)
    F, N = wrench[:, :3], wrench[:, 3:]
    weight = dynamics.model.mass * GRAVITY
    least = int(np.argmin(F[:, 2]))
    if not F[least, 2] > _LEAST_GROUND_FORCE * weight:
        raise PlanError(
            f"at {least * path.dt:.3f} s the ground would carry {F[least, 2]:.1f} N of a robot of "
            f"{weight:.1f} N: there is no ZMP; let the CoM rise and fall more slowly"
        )
    h = np.broadcast_to(np.asarray(height, dtype=float), len(F))
    x = (h * F[:, 0] - N[:, 1]) / F[:, 2]
    y = (h * F[:, 1] + N[:, 0]) / F[:, 2]
    return np.column_stack((x, y, h))


def differences(values: Array, dt: float) -> tuple[Array, Array]:
    """First and second derivatives of samples, stationary before and after.

    Args:
        values: (N, ...) samples.
        dt: s, between them.

    Returns:
        (N, ...) per s, and per s^2.
    """
    before = np.concatenate((values[:1], values[:-1]))
    after = np.concatenate((values[1:], values[-1:]))
    return (after - before) / (2.0 * dt), (after - 2.0 * values + before) / dt**2
