"""The leg of [CCGD]: its Denavit-Hartenberg table and its closed-form inverse, eqs 5 to 10.

alpha = (pi/2, pi/2, 0, 0, -pi/2, 0), a = (0, 0, l1, l2, 0, l3), d = 0. n, o, a, p are the columns
of the inverse of T_06: the hip seen from the foot. The equations as printed have lost roots and
signs; these are derived again (docs/derivations.md):

  C = ((p_x + l3)^2 + p_y^2 + p_z^2 - l1^2 - l2^2) / (2 l1 l2)
  th4 = atan2(sqrt(1 - C^2), C)
  th5 = atan2(p_z, sqrt((p_x + l3)^2 + p_y^2)) - atan2(l1 sin th4, l1 cos th4 + l2)
  th6 = atan2(p_y, -(p_x + l3))
  w = a_x s6 + a_y c6,  th2 = atan2(sqrt(1 - w^2), w)
  th1 = atan2(-o_x s6 - o_y c6, -n_x s6 - n_y c6)
  th3 = pi + atan2(a_z, -(a_x c6 - a_y s6)) - th4 - th5

In the robot's angles, all 0 where the leg hangs straight down: yaw = th1 - pi/2, roll = th2 - pi/2,
pitch = th3 - pi, knee = th4, ankle pitch = th5, ankle roll = -th6.
"""

from __future__ import annotations

from math import atan2, cos, pi, sin, sqrt

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from com_control.walking.biped import BipedLeg
from com_control.walking.exceptions import BipedError

Array = NDArray[np.float64]

ALPHA = (pi / 2, pi / 2, 0.0, 0.0, -pi / 2, 0.0)
FOOT = ((0.0, 0.0, -1.0), (0.0, -1.0, 0.0), (-1.0, 0.0, 0.0))
"""Axes of the foot's frame 6 by rows, in a sole frame with x forward and z up."""

_STRAIGHT = 1e-12  # over 1, of the cosine of a knee that is still straight
_EXACT = 1e-9


def dh_lengths(leg: BipedLeg) -> tuple[float, float, float]:
    """Lengths l1, l2, l3, m, of a leg that is built as the paper's.

    Raises:
        BipedError: It is not: axes z, x, y, y, y, x; hip, knee, ankle and sole straight below each
            other, the sole's axes parallel to the pelvis'.
    """
    pattern = np.eye(3)[[2, 0, 1, 1, 1, 0]]
    chain = [*leg.points[[0, 3, 4]], leg.p_sole]
    steps = np.diff(chain, axis=0)
    off = max(
        np.abs(leg.axes - pattern).max(),
        np.abs(steps[:, :2]).max(),
        np.abs(leg.points[:3] - leg.points[0]).max(),
        np.abs(leg.points[5] - leg.points[4]).max(),
        np.abs(leg.R_sole - np.eye(3)).max(),
    )
    if off > _EXACT or steps[:, 2].max() >= 0.0:
        raise BipedError(
            f"the {leg.side} leg is not that of [CCGD]: it must have the axes yaw z, roll x, pitch "
            "y, knee y, pitch y, roll x, with hip, knee, ankle and sole straight below each other"
        )
    l1, l2, l3 = -steps[:, 2]
    return float(l1), float(l2), float(l3)


def dh_transform(theta: ArrayLike, lengths: tuple[float, float, float]) -> Array:
    """T_06 (4, 4) at the angles theta (6,) rad of the table ([CCGD] eqs 3, 4)."""
    l1, l2, l3 = lengths
    T = np.eye(4)
    for angle, alpha, a in zip(np.asarray(theta), ALPHA, (0, 0, l1, l2, 0, l3), strict=True):
        c, s, ca, sa = np.cos(angle), np.sin(angle), np.cos(alpha), np.sin(alpha)
        T = T @ np.array(
            [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, 0], [0, 0, 0, 1]]
        )
    return T


def dh_angles(q: ArrayLike) -> Array:
    """The table's angles (6,) rad at the robot's angles q (6,)."""
    yaw, roll, pitch, knee, ankle, ankle_roll = np.asarray(q, dtype=float)
    return np.array([yaw + pi / 2, roll + pi / 2, pitch + pi, knee, ankle, -ankle_roll])


@njit
def dh_inverse(R: Array, x: float, y: float, z: float, lengths: Array, q: Array) -> bool:
    """Sets the robot's angles q (6,) rad for a sole pose in the hip's frame (eqs 5 to 10).

    Of two solutions for the ankle's roll it is the one with the hip above the foot.

    Args:
        R: (3, 3) orientation of the sole, in axes of the pelvis.
        x: m, of the sole from the hip, forward.
        y: m, to the left.
        z: m, up.
        lengths: (3,) l1, l2, l3, m.
        q: (6,) set; NaN where out of reach.

    Returns:
        Whether it is within reach.
    """
    l1, l2, l3 = lengths[0], lengths[1], lengths[2]
    # columns of the inverse: rows of T_06's rotation, which has the axes -z, -y, -x of the sole
    nx, ny, nz = -R[0, 2], -R[0, 1], -R[0, 0]
    ox, oy, oz = -R[1, 2], -R[1, 1], -R[1, 0]
    ax, ay, az = -R[2, 2], -R[2, 1], -R[2, 0]
    px = -(nx * x + ox * y + ax * z) + l3
    py = -(ny * x + oy * y + ay * z)
    pz = -(nz * x + oz * y + az * z)
    C = (px * px + py * py + pz * pz - l1 * l1 - l2 * l2) / (2.0 * l1 * l2)
    if not abs(C) <= 1.0 + _STRAIGHT:
        q[:6] = np.nan
        return False
    S = sqrt(max(0.0, 1.0 - C * C))
    th4 = atan2(S, C)
    th5 = atan2(pz, sqrt(px * px + py * py)) - atan2(l1 * S, l1 * C + l2)
    th6 = atan2(py, -px)
    s6, c6 = sin(th6), cos(th6)
    w = ax * s6 + ay * c6
    q[0] = atan2(-ox * s6 - oy * c6, -nx * s6 - ny * c6) - 0.5 * pi
    q[1] = atan2(sqrt(max(0.0, 1.0 - w * w)), w) - 0.5 * pi
    q[2] = atan2(az, -(ax * c6 - ay * s6)) - th4 - th5
    q[3], q[4], q[5] = th4, th5, -th6
    return True


def dh_solve(R: ArrayLike, p: ArrayLike, lengths: tuple[float, float, float]) -> Array:
    """The robot's angles (6,) rad for a sole pose in the hip's frame; NaN out of reach.

    Args:
        R: (3, 3) orientation of the sole.
        p: (3,) m, its origin from the hip.
        lengths: l1, l2, l3, m.
    """
    q = np.empty(6)
    x, y, z = np.asarray(p, dtype=float)
    dh_inverse(np.asarray(R, dtype=float), x, y, z, np.array(lengths), q)
    return q
