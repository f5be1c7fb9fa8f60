"""Planted soles: how the ground moves below a root at rest, and poses between them."""

from __future__ import annotations

import numpy as np

from com_control.balance.soles import SolePoses
from com_model.arrays import Array
from com_model.geometry.rotations import rotation_vector, skew


def ground_motion(poses: SolePoses, shares: Array, origin: Array) -> tuple[Array, Array]:
    """Jacobians (3, n) of the ground at a point, the root at rest: its velocity and its turning."""
    angular = np.einsum("f,fij->ij", shares, poses.jacobian[:, 3:])
    linear = np.einsum("f,fij->ij", shares, poses.jacobian[:, :3])
    for share, p, J in zip(shares, poses.p, poses.jacobian, strict=True):
        linear -= share * skew(origin - p) @ J[3:]
    return linear, angular


def relative_poses(poses: SolePoses) -> Array:
    """Poses [R p] (f, 3, 4) of soles in the frame of the first one."""
    R0 = poses.R[0].T
    return np.concatenate((R0 @ poses.R, ((poses.p - poses.p[0]) @ R0.T)[:, :, None]), axis=2)


def way_between(want: Array, now: Array) -> Array:
    """Way (3,) m and turn (3,) rad from a pose [R p] (3, 4) to another one."""
    turn = rotation_vector(want[:, :3] @ now[:, :3].T)
    return np.concatenate((want[:, 3] - now[:, 3], turn))


def bounded(vector: Array, most: float) -> Array:
    """A vector, NaN apart, made as short as `most` where it is longer."""
    size = float(np.linalg.norm(vector[np.isfinite(vector)]))
    return vector if size <= most else vector * (most / size)
