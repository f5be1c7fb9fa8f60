"""The functions of tf_transformations that the suite uses, for machines without ROS.

Names, argument order and results are those of the ROS package tf_transformations (which is
never hidden: this one is built only where there is no ROS); the arithmetic is that of
transforms3d. Quaternions are (x, y, z, w) as in ROS messages, matrices are 4 x 4 homogeneous,
angles are radians. The Euler convention is named by four letters: s(tatic) or r(otating) axes
and their order; the default 'sxyz' is roll, pitch, yaw about fixed axes, as in URDF.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from transforms3d.affines import compose, decompose
from transforms3d.euler import euler2quat, mat2euler
from transforms3d.quaternions import mat2quat, qmult, quat2mat

Quaternion = tuple[float, float, float, float]
Angles = tuple[float, float, float]

__all__ = [
    "euler_from_matrix",
    "euler_from_quaternion",
    "quaternion_conjugate",
    "quaternion_from_euler",
    "quaternion_from_matrix",
    "quaternion_inverse",
    "quaternion_matrix",
    "quaternion_multiply",
]


def _w_first(quaternion: Sequence[float] | np.ndarray) -> Quaternion:
    """Reorder (x, y, z, w) to the (w, x, y, z) of transforms3d."""
    x, y, z, w = quaternion
    return w, x, y, z


def _w_last(quaternion: Sequence[float] | np.ndarray) -> Quaternion:
    """Reorder the (w, x, y, z) of transforms3d to (x, y, z, w)."""
    w, x, y, z = quaternion
    return x, y, z, w


def _homogeneous(rotation: np.ndarray) -> np.ndarray:
    """The 4 x 4 matrix of a rotation alone."""
    return compose(np.zeros(3), rotation, np.ones(3))


def euler_from_matrix(matrix: ArrayLike, axes: str = "sxyz") -> Angles:
    """Euler angles (rad) of the rotation in the upper left of a matrix (3, 3) or (4, 4)."""
    return mat2euler(matrix, axes=axes)


def quaternion_from_euler(
    ai: float, aj: float, ak: float, axes: str = "sxyz"
) -> Quaternion:
    """Quaternion (x, y, z, w) of the rotation by Euler angles ai, aj, ak (rad)."""
    return _w_last(euler2quat(ai, aj, ak, axes=axes))


def euler_from_quaternion(quaternion: Sequence[float], axes: str = "sxyz") -> Angles:
    """Euler angles (rad) of a quaternion (x, y, z, w)."""
    return euler_from_matrix(quaternion_matrix(quaternion), axes)


def quaternion_matrix(quaternion: Sequence[float]) -> np.ndarray:
    """Rotation of a quaternion (x, y, z, w), of any length but 0, as a matrix (4, 4)."""
    return _homogeneous(quat2mat(_w_first(quaternion)))


def quaternion_from_matrix(matrix: ArrayLike) -> Quaternion:
    """Quaternion (x, y, z, w) of the rotation in a homogeneous matrix (4, 4)."""
    return _w_last(mat2quat(decompose(np.asarray(matrix))[1]))


def quaternion_multiply(
    quaternion1: Sequence[float], quaternion0: Sequence[float]
) -> Quaternion:
    """Product quaternion1 * quaternion0: first the rotation quaternion0, then quaternion1."""
    return _w_last(qmult(_w_first(quaternion1), _w_first(quaternion0)))


def quaternion_conjugate(quaternion: Sequence[float]) -> np.ndarray:
    """Conjugate (-x, -y, -z, w) of a quaternion, shape (4,)."""
    x, y, z, w = quaternion
    return np.array([-x, -y, -z, w], dtype=np.float64)


def quaternion_inverse(quaternion: Sequence[float]) -> np.ndarray:
    """Inverse of a quaternion (x, y, z, w) of any length but 0, shape (4,)."""
    return quaternion_conjugate(quaternion) / np.dot(quaternion, quaternion)
