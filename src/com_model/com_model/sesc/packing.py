"""Packs the moving bodies of a robot into the array that the compiled kernels read."""

import numpy as np

from com_model.arrays import Array
from com_model.bodies import PRISMATIC, Bodies
from com_model.sesc import kernels

PARALLEL = 1e-15
"""Sine of the angle between two axes below which they count as parallel."""


def sesc_vectors(bodies: Bodies) -> Array:
    """Computes the SESC vectors without the travels of prismatic joints.

    r_k = (m_k c_k + sum over the children j of M_j d_j) / M  ([Cotton] eq. 5, for any tree), with
    m_k c_k the first moment of body k, M_j the mass of subtree j, d_j the origin of its joint.

    Returns:
        (B, 3) m, in the bodies' frames.
    """
    moments = np.array(bodies.first_moment)
    np.add.at(moments, bodies.parent[1:], bodies.subtree_mass[1:, None] * bodies.d[1:])
    return moments / bodies.subtree_mass[0]


def pack(bodies: Bodies) -> Array:
    """Turns every body's frame so that its joint works along z, and lists what the kernels need.

    With A_k the rotation from aligned to own axes of body k, the constant rotation between bodies
    becomes C_k = A_parent^T R_k A_k. The turn of A_k about z is free: it is chosen such that the
    next body, if it hangs on this one, has C = (turn about x) (turn about z), of which the second
    is added to its joint angle. Such a body is "chained".

    Returns:
        (kernels.ROWS, B rounded up to a multiple of 8); rows as named in com_model.sesc.kernels.
    """
    count = bodies.count
    robot = np.zeros((kernels.ROWS, -(-count // 8) * 8))
    A = _aligned_frames(bodies)
    C = np.einsum("kji,kjl,klm->kim", A[bodies.parent], bodies.R, A)
    slides = bodies.joint_type == PRISMATIC
    fraction = bodies.subtree_mass / bodies.subtree_mass[0]
    chained = bodies.parent == np.arange(count) - 1
    chained[0] = False
    C[0] = A[0]
    rest = np.einsum("kji,kj->ki", A, sesc_vectors(bodies))
    shifts = np.where(slides, fraction * bodies.offset, 0.0)
    np.add.at(rest, bodies.parent[1:], shifts[1:, None] * C[1:, :, 2])
    robot[kernels.TURN, :count] = np.where(slides, 0.0, bodies.multiplier)
    robot[kernels.SLIDE, :count] = np.where(slides, bodies.multiplier * fraction, 0.0)
    robot[kernels.OFFSET, :count] = np.where(slides, 0.0, bodies.offset)
    robot[kernels.OFFSET, :count] += np.where(chained, np.arctan2(-C[:, 0, 1], C[:, 0, 0]), 0.0)
    robot[kernels.COS_TILT, :count], robot[kernels.SIN_TILT, :count] = C[:, 2, 2], -C[:, 1, 2]
    robot[kernels.REST : kernels.REST + 3, :count] = rest.T
    robot[kernels.ALIGN : kernels.ALIGN + 9, :count] = C.reshape(count, 9).T
    robot[kernels.PARENT, 1:count], robot[kernels.PARENT, 0] = bodies.parent[1:], count
    robot[kernels.DRIVER, 1:count] = bodies.q_index[1:]
    robot[kernels.CHAINED, :count] = chained
    robot[kernels.FORKS, bodies.parent[1:][~chained[1:]]] = 1
    return robot


def _aligned_frames(bodies: Bodies) -> Array:
    """Chooses A (B, 3, 3): z along the joint's axis, x square to the next axis of a chain too."""
    A = np.empty((bodies.count, 3, 3))
    for k in range(bodies.count):
        z = bodies.axis[k] if k else np.array([0.0, 0.0, 1.0])
        x = np.eye(3)[np.argmin(np.abs(z))]
        if k + 1 < bodies.count and bodies.parent[k + 1] == k:
            common = np.cross(z, bodies.R[k + 1] @ bodies.axis[k + 1])
            length = np.linalg.norm(common)
            x = common / length if length > PARALLEL else x
        x = x - z * (z @ x)
        x /= np.linalg.norm(x)
        A[k] = np.column_stack((x, np.cross(z, x), z))
    return A
