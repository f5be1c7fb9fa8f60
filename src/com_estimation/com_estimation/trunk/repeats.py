"""Sensors that say exactly the same again and again while the robot moves.

A sensor with noise never does, one with coarse steps does for as long as nothing moves: what is
usual for each channel is learned from the runs of equal values that ended by themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Repeats:
    """For how long each of k channels has said exactly the same.

    Attributes:
        run: (k,) number of times that the last value was repeated; 0 just after a change.
        duration: (k,) s since the last change.
        longest: (k,) s, longest run that ended by itself and was not taken for a fault.
        ended: (k,) the channels that changed at this sample, with `lasted` (k,) s before.
    """

    def __init__(self, count: int) -> None:
        self.run = np.zeros(count, dtype=np.int64)
        self.duration = np.zeros(count)
        self.longest = np.zeros(count)
        self.ended = np.zeros(count, dtype=np.bool_)
        self.lasted = np.zeros(count)
        self._last = np.full(count, np.nan)
        self._since = np.full(count, np.nan)

    def update(self, time: float, values: Array) -> None:
        """Take in the values (k,) of one sample; NaN is never the same."""
        same = values == self._last
        self.lasted = np.where(same, 0.0, self.duration)
        self.ended = ~same
        self.run = np.where(same, self.run + 1, 0)
        self._since = np.where(same, self._since, time)
        self.duration = time - self._since
        self._last = values.copy()

    def skip(self, pause: float) -> None:
        """Count nothing for a pause in the samples, s."""
        self._since += pause

    def learn(self, usual: Flags) -> None:
        """Count the runs that just ended as usual, where (k,) `usual` says so."""
        taken = self.ended & usual
        self.longest = np.where(taken, np.maximum(self.longest, self.lasted), self.longest)


class Recovery:
    """Keeps k channels under suspicion for a while after their fault is over.

    Args:
        count: k.
        time: s.
    """

    def __init__(self, count: int, time: float) -> None:
        self._time = time
        self._until = np.full(count, -np.inf)

    def update(self, time: float, faulty: Flags) -> Flags:
        """(k,) the channels that are faulty, or were so a moment ago."""
        self._until = np.where(faulty, time + self._time, self._until)
        return faulty | (time < self._until)
