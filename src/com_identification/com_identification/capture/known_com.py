"""The CoM of the whole robot where another source knows it, over time."""

from collections import deque

import numpy as np

from com_bags.streams import Times
from com_identification.regression.postures import ComConstraint
from com_model.arrays import Array

_MOST = 100_000


class KnownCom:
    """Positions of the CoM by another source; those of a posture become constraints of it.

    With them [Muscolo]'s second formulation identifies links without forces. The newest 100 000
    readings count. `std` is the standard deviation of each component, m.
    """

    def __init__(self, std: float) -> None:
        self.std = std
        self._readings: deque[tuple[int, str, Array]] = deque(maxlen=_MOST)

    def add(self, t_ns: Times, link: str, points: Array) -> None:
        """Adds (N,) stamps, ns, and positions (N, 3) m in a link's frame, NaN where not known."""
        for time, point in zip(t_ns.tolist(), points, strict=True):
            self._readings.append((time, link, point))

    def between(self, t0_ns: int, t1_ns: int) -> tuple[ComConstraint, ...]:
        """One constraint for each component that is known, of the mean from t0_ns to t1_ns."""
        points: dict[str, list[Array]] = {}
        for time, link, point in self._readings:
            if t0_ns <= time <= t1_ns:
                points.setdefault(link, []).append(point)
        found = []
        for link, own in points.items():
            for normal, values in zip(np.eye(3), np.array(own).T, strict=True):
                known = values[np.isfinite(values)]
                if len(known):
                    found.append(ComConstraint(link, normal, float(known.mean()), self.std))
        return tuple(found)
