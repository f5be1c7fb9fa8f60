"""Feet in the air: paths with continuous acceleration ([CCGD] 2.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array


def quintic(s: ArrayLike) -> tuple[Array, Array, Array]:
    """Quintic from 0 to 1, 10 s^3 - 15 s^4 + 6 s^5, at rest at both ends.

    Returns:
        Its value and its first and second derivative by s; s is clipped to 0 .. 1.
    """
    x = np.clip(np.asarray(s, dtype=float), 0.0, 1.0)
    u = x * (1.0 - x)
    return x**3 * (10.0 + x * (6.0 * x - 15.0)), 30.0 * u**2, 60.0 * u * (1.0 - 2.0 * x)


def hill(s: ArrayLike) -> tuple[Array, Array, Array]:
    """Hill of height 1, 64 s^3 (1 - s)^3, at rest at both ends; as quintic."""
    x = np.clip(np.asarray(s, dtype=float), 0.0, 1.0)
    u, v = x * (1.0 - x), 1.0 - 2.0 * x
    return 64.0 * u**3, 192.0 * u**2 * v, 384.0 * u * (v * v - u)


def swing_path(
    start: ArrayLike, end: ArrayLike, height: float, duration: float, t: ArrayLike
) -> tuple[Array, Array, Array]:
    """Path of a swing foot: quintics in place and direction, and a hill above them.

    The hill grows by half of what the foot climbs or descends, to clear the edge of a step.

    Args:
        start: (4,) x, y, z (m) and yaw (rad) where it is lifted.
        end: (4,) where it is set down.
        height: m, of the hill.
        duration: s.
        t: (N,) s, since it was lifted.

    Returns:
        x, y, z, yaw (N, 4) and their first and second derivatives by time.
    """
    first, last = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    s = np.asarray(t, dtype=float) / duration
    height_of_hill = np.zeros(4)
    height_of_hill[2] = height + 0.5 * abs(last[2] - first[2])
    along, over = quintic(s), hill(s)
    value, speed, acceleration = (
        np.multiply.outer(a, last - first) + np.multiply.outer(b, height_of_hill)
        for a, b in zip(along, over, strict=True)
    )
    return first + value, speed / duration, acceleration / duration**2
