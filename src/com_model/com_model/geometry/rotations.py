"""Rotations of arrays: skew matrices, rotation vectors, axis and angle, roll pitch yaw.

Quaternions and whole series of rotations: scipy.spatial.transform. Compiled twins for kernels:
com_model.geometry.vector_kernels.
"""

from collections.abc import Sequence
from math import atan2, cos, sin, sqrt

import numpy as np

from com_model.arrays import Array

UP = np.array([[0.0, 0.0, 1.0]])  # the one axis of turns by yaws, for rotations_about
_SMALL = 1e-9  # sine of an angle that equals its angle


def angle_between(a: Array, b: Array) -> float:
    """Angle between two vectors (3,), rad.

    Args:
        a: (3,), of any length but 0.
        b: (3,), of any length but 0.

    Returns:
        0 to pi.
    """
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b))


def skew(v: Array) -> Array:
    """[v]x (3, 3), so that [v]x w = v x w."""
    x, y, z = v.tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotation_from_rpy(rpy: Sequence[float]) -> Array:
    """R (3, 3) of URDF's roll, pitch, yaw, R = R_z(yaw) R_y(pitch) R_x(roll)."""
    (cr, sr), (cp, sp), (cy, sy) = ((cos(angle), sin(angle)) for angle in rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rpy_from_rotation(R: Array) -> list[float]:
    """Roll, pitch and yaw (3,) rad of a rotation R (3, 3): the inverse of rotation_from_rpy.

    Exact to rounding also where the pitch is a right angle: there the roll is arbitrary, and the
    yaw is computed of what remains after the roll.
    """
    roll = atan2(R[2, 1], R[2, 2])
    c, s = cos(roll), sin(roll)
    pitch = atan2(-R[2, 0], s * R[2, 1] + c * R[2, 2])
    yaw = atan2(s * R[0, 2] - c * R[0, 1], c * R[1, 1] - s * R[1, 2])
    return [roll, pitch, yaw]


def rotations_about(axes: Array, angles: Array) -> Array:
    """Rotations (..., B, 3, 3) about unit axes (B, 3) by angles (..., B), rad; 1 for a zero axis.

    Rot(a, s) = 1 + sin s [a]x + (1 - cos s) [a]x^2 (Rodrigues)
    """
    x, y, z = axes.T
    zero = np.zeros_like(x)
    cross = np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)
    sine, versine = np.sin(angles), 2.0 * np.sin(angles / 2.0) ** 2
    return (
        np.eye(3)
        + sine[..., None, None] * cross
        + versine[..., None, None] * (cross @ cross)
    )


def rotation_vector(R: Array) -> Array:
    """Axis times angle (3,) rad of a rotation (3, 3).

    Up to half a turn, where the sign of the axis is free. NaN gives NaN.
    """
    x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    cosine = 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0)
    # then the axis is not taken from the sines
    if cosine < -0.9:
        from scipy.spatial.transform import (
            Rotation,
        )  # a third of a second, at each node's start

        return np.asarray(Rotation.from_matrix(R).as_rotvec())
    sine = 0.5 * sqrt(x * x + y * y + z * z)
    scale = 0.5 * (atan2(sine, cosine) / sine if sine > _SMALL else 1.0)
    return scale * np.array([x, y, z])


def rotation_vectors(R: Array) -> Array:
    """Axes times angles (N, 3) rad of rotations (N, 3, 3) by less than half a turn."""
    sines = 0.5 * (R[:, [2, 0, 1], [1, 2, 0]] - R[:, [1, 2, 0], [2, 0, 1]])
    sine, cosine = (
        np.linalg.norm(sines, axis=1),
        0.5 * (np.trace(R, axis1=1, axis2=2) - 1.0),
    )
    scale = np.divide(
        np.arctan2(sine, cosine), sine, np.ones(len(R)), where=sine > _SMALL
    )
    return np.asarray(sines * scale[:, None])


def minimal_rotation(start: Array, end: Array) -> Array:
    """The smallest rotation (3, 3) that takes one unit vector to another: R start = end.

      R = 1 + (c - 1) (a a^T + u u^T) + s (u a^T - a u^T),  end = c a + s u,  a = start

    Opposite vectors take half a turn about an axis across start.
    """
    cosine = float(start @ end)
    across = end - cosine * start
    sine = float(np.linalg.norm(across))
    # sine of the angle between two directions that are one
    if sine < 1e-14:
        across = np.cross(np.eye(3)[int(np.argmin(np.abs(start)))], start)
    across = across / np.linalg.norm(across)
    across -= (across @ start) * start  # what rounding left, where the sine is small
    across /= np.linalg.norm(across)
    planes = np.outer(start, start) + np.outer(across, across)
    turn = np.outer(across, start)
    return np.asarray(np.eye(3) + (cosine - 1.0) * planes + sine * (turn - turn.T))


def upright_axes(forward: Array, up: Array) -> Array:
    """Returns axes forwards, to the left and upwards as rows (3, 3).

    Args:
        forward: (3,) of any length, not along `up`.
        up: (3,) unit vector.
    """
    level = forward - up * (forward @ up)
    level = level / np.linalg.norm(level)
    return np.array([level, np.cross(up, level), up])
