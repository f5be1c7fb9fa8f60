"""The convention of the feet's force/torque sensors, undone once where readings come in.

The suite's maths takes wrenches of the ground on the foot: force (N) then torque (N m), in the axes
of the sensor's frame `wrench_frame`, the torque about that frame's origin. A sensor that reads the
force of the robot on the ground has wrench_sign = -1. Stored postures and bags hold raw readings.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array
from com_model.robot_config import Foot


def wrench_signs(feet: Sequence[Foot]) -> Array:
    """Signs (f, 1) of the sensors of f feet: 1 reads the ground on the foot, -1 the reverse."""
    return np.array([float(foot.wrench_sign) for foot in feet]).reshape(-1, 1)


def ground_wrenches(readings: ArrayLike, feet: Sequence[Foot]) -> Array:
    """Wrenches (or forces) of the ground on f feet from raw readings of their sensors, or back.

    Args:
        readings: (..., f, 6) N and N m, or (..., f, 3) N.
        feet: f feet.
    """
    return np.asarray(wrench_signs(feet) * np.asarray(readings, dtype=np.float64))
