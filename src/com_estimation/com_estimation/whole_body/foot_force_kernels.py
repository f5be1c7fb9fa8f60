"""Compiled: wrenches of the ground on the feet at one sample; see foot_forces for the equations."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_estimation.trunk.floating_base.signals import (
    are_settled,
    move_to_root,
    read_motion,
    start_channels,
    update_channels,
)
from com_model.arrays import Array, Flags, Indices
from com_model.compiled import compiled
from com_model.dynamics.inverse_dynamics import Links, RootMotion, newton_euler
from com_model.dynamics.link_frames import Frames, LinkMotions, set_link_motions
from com_model.dynamics.tree_kernels import Tree


class FootModel(NamedTuple):
    """A robot of n joints with f feet, and what its equations are worth.

    Attributes:
        robot: bodies and joints.
        frames: the feet's contact points, then the frames of their sensors.
        radius: (f,) m, of point feet.
        size: (f,) components of a foot's wrench, 3 or 6.
        joints: (L,) the joints that move feet.
        friction: (4, n) Coulomb N m, viscous N m s/rad, load friction, rotor kg m^2.
        std: (2, n) standard deviations of torques: constant, N m, and relative to the torque.
        prior: (K,) N and N m, standard deviations of the components of a foot on the ground.
        air: factor of 1 / prior^2 of a foot in the air.
        base: (6,) 1/N^2 and 1/(N m)^2, weights of the base's equations.
        heavier: the robot's mass over the URDF's.
        p_imu: (3,) m, position of the IMU in the root's frame.
        enter: N, load from which a foot is in contact.
        leave: N, load below which it no longer is.
        bandwidth: rad/s, of the filter.
        settling: s, until it has forgotten what came before.
    """

    robot: Tree
    frames: Frames
    radius: Array
    size: Indices
    joints: Indices
    friction: Array
    std: Array
    prior: Array
    air: float
    base: Array
    heavier: float
    p_imu: Array
    enter: float
    leave: float
    bandwidth: float
    settling: float


class FootState(NamedTuple):
    """Memory between samples.

    Attributes:
        channels: state of the filters, see floating_base.signals.
        links: of the dynamics.
        motions: of the frames.
        contact: (f,) feet in contact.
    """

    channels: NDArray[np.void]
    links: Links
    motions: LinkMotions
    contact: Flags


class Wrenches(NamedTuple):
    """Result of one sample.

    Attributes:
        wrench: (f, 6) N and N m, in the sensors' frames.
        covariance: (f, 6, 6).
        load: (f,) N, against gravity.
    """

    wrench: Array
    covariance: Array
    load: Array


@njit
def _set_loads(feet: FootModel, w: Array, up: Array, load: Array) -> None:
    """Sets the components (f,) of the forces w (K,) against gravity."""
    at = 0
    for c in range(len(load)):
        load[c] = w[at] * up[0] + w[at + 1] * up[1] + w[at + 2] * up[2]
        at += feet.size[c]


@njit
def _cross_matrix(v: Array) -> Array:
    """[v]x (3, 3)."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


@compiled()
def update_wrenches(
    feet: FootModel, state: FootState, signals: Array, dt: float, result: Wrenches
) -> bool:
    """Filters a sample and solves for the wrenches.

    Args:
        feet: the robot.
        state: changed.
        signals: (9 + 2 n,) of floating_base.signals: angular velocity, specific force at the IMU
            and up in root axes, positions, efforts.
        dt: s since the sample before; not positive: the filter restarts.
        result: set.

    Returns:
        Whether the filter has settled; else nothing is set.
    """
    channels, links, motions, contact = state
    if dt > 0.0:
        update_channels(channels, signals, dt, feet.bandwidth, feet.settling)
    else:
        start_channels(channels, signals, feet.settling)
    if not are_settled(channels, 0, len(channels)):
        return False
    motion = read_motion(channels, feet.bandwidth, 0.0)
    move_to_root(motion, feet.p_imu)
    root = RootMotion(motion.omega, motion.omega_dot, motion.specific_force)
    up, needed = motion.up, np.empty(len(motion.q))
    newton_euler(feet.robot, motion.q, motion.qd, motion.qdd, root, links, needed)
    set_link_motions(motion.q, feet.frames, motions)
    count, own = len(feet.size), feet.joints
    A, y = np.zeros((len(feet.prior), len(own) + 6)), np.empty(len(own) + 6)
    weights = np.empty(len(y))
    for k in range(len(own)):
        j = own[k]
        tau, s = motion.tau[j], motion.direction[j]
        rub = feet.friction[0, j] + feet.friction[2, j] * abs(tau)
        y[k] = needed[j] - tau + rub * s + feet.friction[1, j] * motion.qd[j]
        y[k] += feet.friction[3, j] * motion.qdd[j]
        reversal = rub**2 * (1.0 - s * s)
        weights[k] = 1.0 / (
            feet.std[0, j] ** 2 + (feet.std[1, j] * tau) ** 2 + reversal
        )
    y[-6:-3], y[-3:] = feet.heavier * links.force[0], feet.heavier * links.torque[0]
    weights[-6:] = feet.base
    at = 0
    for c in range(count):
        down = -feet.radius[c] * up
        point, d, J = motions.p[c] + down, feet.size[c], motions.jacobian[c]
        shift, arm = _cross_matrix(down), _cross_matrix(point)
        for k in range(len(own)):
            for i in range(d):
                A[at + i, k] = J[i, own[k]]
            for i in range(3):
                for m in range(3):
                    A[at + i, k] -= shift[i, m] * J[3 + m, own[k]]
        for i in range(d):
            A[at + i, len(own) + i] = 1.0
        for i in range(3):
            for m in range(3):
                A[at + i, len(own) + 3 + m] = arm[m, i]
        at += d
    weighted = A * weights
    H, g = weighted @ A.T, weighted @ y
    wide = 1.0 / feet.prior**2
    C = np.linalg.inv(H + np.diag(wide))
    w = C @ g
    _set_loads(feet, w, up, result.load)
    at = 0
    for c in range(count):
        contact[c] = result.load[c] > (feet.leave if contact[c] else feet.enter)
        if not contact[c]:
            wide[at : at + feet.size[c]] *= feet.air
        at += feet.size[c]
    if not contact.all():
        C = np.linalg.inv(H + np.diag(wide))
        w = C @ g
        _set_loads(feet, w, up, result.load)
    at = 0
    for c in range(count):
        d, R = feet.size[c], motions.R[count + c].T.copy()
        arm = motions.p[c] - feet.radius[c] * up - motions.p[count + c]
        T = np.zeros((6, d))
        T[:3, :3], T[3:, :3] = R, R @ _cross_matrix(arm)
        if d == 6:
            T[3:, 3:] = R
        own_C = C[at : at + d, at : at + d].copy()
        result.wrench[c] = T @ w[at : at + d]
        result.covariance[c] = T @ own_C @ T.T
        at += d
    return True
