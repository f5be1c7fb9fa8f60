"""When a robot is where on a way through its joints' positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, as_array, freeze

SHORTEST = 0.3  # s
_PEAK = 1.5  # highest pace of a cubic from rest to rest, over its mean


@dataclass(frozen=True, eq=False)
class TimedWay:
    """Points on a way from rest to rest, without its start; arrays are read-only.

    Attributes:
        times: (m,) s after the start, ascending.
        positions: (m, n) rad or m.
        velocities: (m, n) rad/s or m/s.
    """

    times: Array
    positions: Array
    velocities: Array

    def __post_init__(self) -> None:
        freeze(self)

    @property
    def duration(self) -> float:
        """Time of the last point, s."""
        return float(self.times[-1])


def timed_way(way: ArrayLike, speeds: ArrayLike) -> TimedWay:
    """Gives times to the points of a way, from rest to rest.

    The points are passed at even shares u of the way, u = 3 s^2 - 2 s^3 with s the share of the
    time; the way lasts long enough that no joint is faster than its speed.

    Args:
        way: (k, n) rad or m, k > 1.
        speeds: rad/s or m/s, one or (n,), above 0.

    Raises:
        ShapeError: The way is no table.
        ValueError: It has fewer than two points, or a speed is not above 0.
    """
    points = as_array("way", way, (None, None))
    fastest = np.broadcast_to(np.asarray(speeds, dtype=float), points.shape[1:])
    if len(points) < 2 or not (fastest > 0.0).all():
        raise ValueError("a way has two points or more, and speeds above 0")
    shares = np.linspace(0.0, 1.0, len(points))
    steps = np.abs(np.diff(points, axis=0)) * (len(points) - 1)  # rad or m for a whole share
    duration = max(_PEAK * float((steps / fastest).max(initial=0.0)), SHORTEST)
    s = 0.5 - np.sin(np.arcsin(1.0 - 2.0 * shares) / 3.0)
    pace = 6.0 * s * (1.0 - s) / duration
    slope = np.gradient(points, shares, axis=0)
    return TimedWay((s * duration)[1:], points[1:], (slope * pace[:, None])[1:])
