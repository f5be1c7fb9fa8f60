"""Packs the moving bodies of a robot into the array that the compiled kernels read."""

from __future__ import annotations

import numpy as np

from com_model import kernels
from com_model.arrays import Array
from com_model.bodies import PRISMATIC, Bodies


def sesc_vectors(bodies: Bodies) -> Array:
    """Computes the SESC vectors without the travels of prismatic joints.

    r_k = (m_k c_k + sum over the children j of M_j d_j) / M  ([Cotton] eq. 5, for any tree), with
    m_k c_k the first moment of body k, M_j the mass of subtree j, d_j the origin of its joint.

    Returns:
        (B, 3) m, in the bodies' frames.
    """
    moments = np.array(bodies.first_moment)
    carried = bodies.subtree_mass[:, None] * bodies.d
    np.add.at(moments, bodies.parent[1:], carried[1:])
    return moments / bodies.subtree_mass[0]


def pack(bodies: Bodies) -> Array:
    """Turns every body's frame so that its joint works along z, and lists what the kernels need.

    With A_k the rotation from aligned to own axes of body k, the constant rotation between bodies
    becomes C_k = A_parent^T R_k A_k. The turn of A_k about z is free. It is chosen such that the
    next body, if it hangs on this one, has C = (turn about x) (turn about z), of which the second
    is added to its joint angle ("chained").

    Returns:
        (B, kernels.COLUMNS), read-only; columns as named in com_model.kernels.
    """
    A = _aligned_frames(bodies)
    rest = np.einsum("kji,kj->ki", A, sesc_vectors(bodies))
    robot = np.zeros((bodies.count, kernels.COLUMNS))
    whole = robot.view(np.uint64)
    chained = bodies.parent == np.arange(bodies.count) - 1
    chained[0] = False
    slides = bodies.joint_type == PRISMATIC
    share = bodies.subtree_mass / bodies.subtree_mass[0]
    for k in range(1, bodies.count):
        parent = bodies.parent[k]
        C = A[parent].T @ bodies.R[k] @ A[k]
        robot[k, kernels.ALIGN :] = C.ravel()
        if chained[k]:
            robot[k, kernels.COS_TILT], robot[k, kernels.SIN_TILT] = C[2, 2], -C[1, 2]
            robot[k, kernels.OFFSET] = np.arctan2(-C[0, 1], C[0, 0])
        if slides[k]:
            rest[parent] += C[:, 2] * share[k] * bodies.offset[k]
        else:
            robot[k, kernels.OFFSET] += bodies.offset[k]
    robot[0, kernels.ALIGN :] = A[0].ravel()
    robot[:, kernels.TURN] = np.where(slides, 0.0, bodies.multiplier)
    robot[:, kernels.SLIDE] = np.where(slides, bodies.multiplier * share, 0.0)
    robot[:, kernels.REST : kernels.REST + 3] = rest
    whole[1:, kernels.PARENT] = bodies.parent[1:]
    whole[1:, kernels.DRIVER] = bodies.q_index[1:]
    whole[:, kernels.CHAINED] = chained
    whole[bodies.parent[1:][~chained[1:]], kernels.FORKS] = 1
    robot.setflags(write=False)
    return robot


def _aligned_frames(bodies: Bodies) -> Array:
    """Chooses A (B, 3, 3): z along the joint's axis, x square to the next axis of a chain too."""
    A = np.empty((bodies.count, 3, 3))
    for k in range(bodies.count):
        z = bodies.axis[k] if k else np.array([0.0, 0.0, 1.0])
        x = _square_to(z)
        if k + 1 < bodies.count and bodies.parent[k + 1] == k:
            common = np.cross(z, bodies.R[k + 1] @ bodies.axis[k + 1])
            length = np.linalg.norm(common)
            if length > PARALLEL:
                x = common / length
                x = x - z * (z @ x)
                x /= np.linalg.norm(x)
        A[k] = np.column_stack((x, np.cross(z, x), z))
    return A


def _square_to(z: Array) -> Array:
    """Gives some unit vector that is square to the unit vector z."""
    x = np.eye(3)[np.argmin(np.abs(z))]
    x = x - z * (z @ x)
    return x / np.linalg.norm(x)


PARALLEL = 1e-15
"""Sine of the angle between two axes below which they count as parallel."""
