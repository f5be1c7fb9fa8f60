"""Sine and cosine of many angles at once, without a branch, for com_model.sesc.

No fastmath: NaN stays NaN.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from com_model.arrays import Array

TWO_OVER_PI = 0.6366197723675814
ROUNDER = 6755399441055744.0  # 1.5 * 2**52: adding and subtracting it rounds to an integer
# pi / 2 in three parts; the first two have 33 bits, so that multiples up to 2**20 are exact.
HALF_PI_1 = 1.5707963267341256
HALF_PI_2 = 6.077100506303966e-11
HALF_PI_3 = 2.0222662487959506e-21
FAR = 1.0e5  # rad; beyond it the library's sine and cosine take over
# Taylor series economised on |r| <= pi/4: errors 1.8e-17 (of sine, relative) and 9e-19 (of cosine).
SIN_1, SIN_2, SIN_3 = -0.16666666666666666, 0.008333333333330938, -0.00019841269836741755
SIN_4, SIN_5, SIN_6 = 2.755731609375319e-06, -2.505112999912784e-08, 1.5917995630635248e-10
COS_1, COS_2, COS_3 = 0.041666666666666664, -0.001388888888888739, 2.480158729875508e-05
COS_4, COS_5, COS_6 = -2.7557317266186513e-07, 2.0876145106497293e-09, -1.1382548343152154e-11


@njit
def sincos(angle: float) -> tuple[float, float]:
    """Computes sine and cosine without a branch, so that a loop over it runs in vector registers.

    Args:
        angle: rad, |angle| <= FAR; NaN and infinity give NaN.

    Returns:
        sine, cosine: both to 1.2e-16 absolute.
    """
    quarters = (angle * TWO_OVER_PI + ROUNDER) - ROUNDER
    r = ((angle - quarters * HALF_PI_1) - quarters * HALF_PI_2) - quarters * HALF_PI_3
    z = r * r
    sine = SIN_3 + z * (SIN_4 + z * (SIN_5 + z * SIN_6))
    sine = r + r * (z * (SIN_1 + z * (SIN_2 + z * sine)))
    cosine = COS_3 + z * (COS_4 + z * (COS_5 + z * COS_6))
    cosine = 1.0 - (0.5 * z - z * z * (COS_1 + z * (COS_2 + z * cosine)))
    quadrant = quarters - 4.0 * np.floor(quarters * 0.25)
    odd = (quadrant == 1.0) | (quadrant == 3.0)
    s = cosine if odd else sine
    c = sine if odd else cosine
    s = -s if quadrant >= 2.0 else s
    c = -c if (quadrant == 1.0) | (quadrant == 2.0) else c
    return s, c


@njit
def fill_sincos(angles: Array, sines: Array, cosines: Array) -> None:
    """Sets the sines and cosines of an array of angles, rad."""
    far = 0
    for i in range(angles.size):
        sines[i], cosines[i] = sincos(angles[i])
    for i in range(angles.size):
        far += np.abs(angles[i]) > FAR
    if far > 0:
        for i in range(angles.size):
            if np.abs(angles[i]) > FAR:
                sines[i], cosines[i] = np.sin(angles[i]), np.cos(angles[i])
