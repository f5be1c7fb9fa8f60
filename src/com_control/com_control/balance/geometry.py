"""Planted soles: how the ground moves below a root at rest, and poses between them."""

from __future__ import annotations

from math import asin, sqrt

import numpy as np

from com_control.balance.soles import SolePoses
from com_model.arrays import Array


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


def skew(v: Array) -> Array:
    """[v]x (3, 3), so that [v]x w = v x w."""
    x, y, z = v.tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotation_vector(R: Array) -> Array:
    """Axis times angle (3,) rad of a rotation, exact below a quarter turn, less beyond."""
    x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    sine = 0.5 * sqrt(x * x + y * y + z * z)
    scale = 0.5 * (asin(min(sine, 1.0)) / sine if sine > 1e-9 else 1.0)
    return scale * np.array([x, y, z])


def bounded(vector: Array, most: float) -> Array:
    """A vector, NaN apart, made as short as `most` where it is longer."""
    size = float(np.linalg.norm(vector[np.isfinite(vector)]))
    return vector if size <= most else vector * (most / size)
