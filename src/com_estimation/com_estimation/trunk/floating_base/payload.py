"""Whether the payload of a trotting robot has changed: whole strides are compared.

Each half stride gives the information L and the value v that fit its base rows best as a correction
of h = (m, m c_x, m c_y), all else as the filter has it. Two successive ones, a whole stride, give
(L1 + L2)^-1 (v1 + v2), in which every constant error of sensors and model has the same effect
each time: it cancels in the difference to the running mean of earlier strides. A step is tested by

  T^2 = d^T (S (1 + 1/n))^-1 d,   S = (F S_0 + n S_d) / (F + n)

with d that difference, S_d its running scatter and S_0 a floor that counts for F half strides.
"""

from math import log10

import numpy as np

from com_model.arrays import Array

FLOOR = 6.0  # half strides that the floor of the scatter counts for
MEMORY = 16.0  # half strides, of the running mean and scatter
EARLY = 4  # half strides of a gait that are not compared
QUIET = 3  # likewise, after an alarm
CHANGED = 0.25  # relative change of a half stride's duration that makes it another gait
STUBBORN = 8  # successive suspicious strides after which the new value is the usual one
FLOOR_MASS, FLOOR_MOMENT = 1e-3, 4e-4  # over the trunk's mass; over that times the hips' distance
# Threshold at REFERENCE false alarms an hour, and what a tenth of them costs: T^2 of trots on
# rough ground falls by a decade in 9.5, more slowly than chi^2 does (4.6).
REFERENCE, LEVEL, DECADE = 0.1, 40.0, 9.5
WITHDRAWN = 16.0  # T^2 of what is left of a step one stride later, below which it was none


class PayloadTest:
    """Compares whole strides.

    Args:
        mass: kg, of the trunk.
        hip_distance: m, of diagonal hips.
        per_hour: Rate of false alarms.

    Attributes:
        statistic: T^2 of the last stride; 0 while there is nothing to compare.
        surplus: (3,) d of the last stride that has become the usual one without an alarm; else 0.
    """

    def __init__(self, mass: float, hip_distance: float, per_hour: float) -> None:
        moment = FLOOR_MOMENT * mass * hip_distance
        self._floor = np.diag(np.square([FLOOR_MASS * mass, moment, moment]))
        self.level = LEVEL - DECADE * log10(per_hour / REFERENCE)
        self.restart(EARLY)

    def restart(self, skip: int = EARLY) -> None:
        """Forget what is usual, and learn it after so many half strides."""
        self._skip = skip
        self._last: tuple[Array, Array, float] | None = None
        self._mean, self._scatter, self._count = np.zeros(3), np.zeros((3, 3)), 0
        self._recent: list[float] = []  # T^2 of the suspicious strides so far
        self.statistic, self.surplus = 0.0, np.zeros(3)

    def pause(self) -> None:
        """The next half stride does not follow the last one."""
        self._last = None
        self._recent.clear()
        self.statistic = 0.0

    @property
    def suspicious(self) -> bool:
        """The last stride is unlike those before."""
        return self.statistic > 0.5 * self.level

    @property
    def scatter(self) -> Array:
        """(3, 3) covariance of a stride's values; the floor at first."""
        n = min(self._count, MEMORY)
        return (FLOOR * self._floor + n * self._scatter) / (FLOOR + n)

    @property
    def learned(self) -> bool:
        """The scatter tells how strides repeat."""
        return self._count > 2

    def add(self, information: Array, weighted: Array, duration: float) -> int:
        """Takes in a half stride (3, 3), (3,), s.

        Returns:
            0, or when two successive strides are beyond the threshold: how many half strides ago
            the last one ended that was before the change.
        """
        before, self._last = self._last, (information, weighted, duration)
        self.surplus = np.zeros(3)
        if before is None:
            return 0
        if abs(duration - before[2]) > CHANGED * before[2]:
            last = self._last
            self.restart()
            self._last = last
            return 0
        if self._skip > 0:
            self._skip -= 1
            return 0
        try:
            value = np.linalg.solve(before[0] + information, before[1] + weighted)
        except np.linalg.LinAlgError:
            return 0
        return self._compare(np.asarray(value, dtype=np.float64))

    def _compare(self, value: Array) -> int:
        """Tests the value (3,) of a stride, and learns from it."""
        if self._count == 0:
            self._mean, self._count = value, 1
            return 0
        d, n = value - self._mean, min(self._count, MEMORY)
        self.statistic = float(d @ np.linalg.solve(self.scatter * (1.0 + 1.0 / n), d))
        if not self.suspicious:
            self._recent.clear()
            self._count += 1
            weight = max(1.0 / self._count, 1.0 / MEMORY)
            self._mean = self._mean + weight * d
            self._scatter = self._scatter + weight * (np.outer(d, d) - self._scatter)
            return 0
        self._recent.append(self.statistic)
        if len(self._recent) > 1 and min(self._recent[-2:]) > self.level:
            return len(self._recent) + 1
        if len(self._recent) == STUBBORN:
            self.restart(0)
            self.surplus = d
        return 0


def is_withdrawn(before: Array, after: Array, scatter: Array) -> bool:
    """Whether a step (3,) of m, m c_x, m c_y that gave an alarm is not there a stride later."""
    d = after - before
    return bool(d @ np.linalg.solve(2.0 * scatter, d) < WITHDRAWN)
