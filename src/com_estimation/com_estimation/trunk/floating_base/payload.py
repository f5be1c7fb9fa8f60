"""Detects changes of the payload of a trotting robot, by comparing whole strides.

From each quarter stride follow the information L and the value v that fit its base rows best as
a correction of h = (m, m c_x, m c_y), all other states as the filter has them. Four successive
ones, a whole stride, yield (sum L)^-1 sum v, in which every constant error of sensors and model
has the same effect each time: it cancels in the difference to the running mean of earlier
strides, wherever in the gait they began. A step is tested by

  T^2 = d^T (S (1 + 2/n))^-1 d,   S = (F S_0 + n S_d) / (F + n)

with d that difference, S_d its running scatter and S_0 a floor that counts for F quarter
strides.

While the filter improves its estimates of the other errors, h moves, too: an estimate with the
covariance P that becomes one with P' moves by a step of covariance P - P', and successive steps
are independent. So the mean of strides with weights w_j is off by sum_jk w_j w_k P_max(j,k) -
P'. An alarm additionally needs a T^2 with S (1 + 2/n) + D beyond what chi^2 allows, D the
positive part of that.

A stride is added to mean and scatter one stride later, once the last one is not suspicious:
otherwise the first ones with a part of a step in them would make S_d large enough to hide the
step.
"""

from collections import deque
from dataclasses import dataclass
from math import log10

import numpy as np

from com_model.arrays import Array

STRIDE = 4  # windows of a stride


@dataclass(frozen=True)
class PayloadOptions:
    """Memory and thresholds of the payload test.

    Attributes:
        floor: quarter strides that the floor of the scatter counts for.
        memory: quarter strides, of the running mean and scatter.
        quiet: quarter strides after an alarm that are not compared.
        sustained: successive strides, half a stride apart in all, that must be beyond the
            threshold.
        unlike: T^2 above which no estimate is CONVERGED; chi^2 of three exceeds it in 0.1 %.
    """

    floor: float = 12.0
    memory: float = 32.0
    quiet: int = 6
    sustained: int = 3
    unlike: float = 16.3


class PayloadTest:
    """Test for a change of payload, by comparing whole strides.

    Args:
        mass: kg, of the trunk.
        hip_distance: m, between diagonal hips.
        per_hour: rate of false alarms, 1/h.

    Attributes:
        options: memory and thresholds.
        level: threshold of T^2 for an alarm.
        statistic: T^2 of the last stride; 0 while there is nothing to compare.
        step: (3,) d of the last stride that was compared: kg, kg m, kg m.
        surplus: (3,) the step that has become the usual value without an alarm; else 0.
    """

    def __init__(
        self,
        mass: float,
        hip_distance: float,
        per_hour: float,
    ) -> None:
        self.options = PayloadOptions()
        # over the mass times the hips' distance, standard deviation of the floor
        moment = 0.0004 * mass * hip_distance
        self._floor = np.diag(
            # over the trunk's mass, the same
            np.square([0.001 * mass, moment, moment])
        )
        # decades from 0.1 false alarms an hour, for which the two levels are. What a tenth of
        # them costs: T^2 of trots on rough ground falls by a decade in 9.5, more slowly than chi^2
        # of three does (4.6), which T^2 with D follows.
        decades = log10(per_hour / 0.1)
        self.level = 40.0 - 9.5 * decades
        self._learning_level = 25.0 - 4.6 * decades
        self._last = 1.0  # s, duration of the last quarter stride, or while it stands
        self.restart()

    def restart(self, skip: int | None = None) -> None:
        """Forgets the usual values.

        Args:
            skip: number of quarter strides that are not used from now on; None: those of a gait
                that begins.
        """
        # quarter strides of a gait that are not compared
        self._skip = 8 if skip is None else skip
        self._windows: deque[tuple[Array, Array, float]] = deque(maxlen=STRIDE)
        self._mean, self._scatter, self._count = np.zeros(3), np.zeros((3, 3)), 0
        self._known = np.zeros(
            (3, 3)
        )  # sum_jk w_j w_k P_max(j,k) of the strides in the mean
        self._recent: list[
            bool
        ] = []  # of suspicious strides so far: both T^2 beyond their levels
        # values and P, not in the mean yet
        self._waiting: deque[tuple[Array, Array]] = deque()
        self.statistic, self.step, self.surplus = 0.0, np.zeros(3), np.zeros(3)

    def pause(self) -> None:
        """Starts a new sequence: the next quarter stride does not follow the last one."""
        self._windows.clear()
        self._recent.clear()
        self._waiting.clear()
        self.statistic = 0.0

    @property
    def suspicious(self) -> bool:
        """Whether the last stride differs too much from those before to be added to them."""
        return self.statistic > 0.5 * self.level

    @property
    def scatter(self) -> Array:
        """(3, 3) covariance of a stride's values, with the floor: kg^2, kg^2 m, kg^2 m^2."""
        n = min(self._count, self.options.memory)
        return (self.options.floor * self._floor + n * self._scatter) / (
            self.options.floor + n
        )

    @property
    def repeatability(self) -> Array:
        """(3, 3) the same, including the strides that are not added yet."""
        n, waiting = min(self._count, self.options.memory), len(self._waiting)
        d = np.array([value for value, _ in self._waiting]).reshape(-1, 3) - self._mean
        total = (self.options.floor + n) * self.scatter + d.T @ d
        return np.asarray(total / (self.options.floor + n + waiting))

    @property
    def learned(self) -> bool:
        """Whether enough strides were seen for the scatter to describe their repeatability."""
        return self._count + len(self._waiting) > 2

    def add(
        self, information: Array, weighted: Array, duration: float, P: Array
    ) -> int:
        """Adds a quarter stride.

        Args:
            information: (3, 3) of the tested states, from this quarter stride alone.
            weighted: (3,) information times their value.
            duration: s.
            P: (3, 3) covariance of the tested states after it.

        Returns:
            0, or when the strides of half a stride are beyond the threshold: how many quarter
            strides ago the last one ended that was before the change.
        """
        # whose quarters may differ among themselves
        whole = len(self._windows) == STRIDE
        usual = self._windows[0][2] if whole else self._last
        self._last, self.surplus = duration, np.zeros(3)
        if abs(np.log(duration / usual)) > (
            # of a quarter's duration (its logarithm) against a stride before: another gait; against
            # the quarter before, while there is no stride: it starts or stops
            0.25 if whole else 1.0
        ):
            self.restart()
        if self._skip > 0:
            self._skip -= 1
            return 0
        windows = self._windows
        windows.append((information, weighted, duration))
        if len(windows) < STRIDE:
            return 0
        try:
            value = np.linalg.solve(
                sum(w[0] for w in windows), sum(w[1] for w in windows)
            )
        except np.linalg.LinAlgError:
            return 0
        return self._compare(np.asarray(value, dtype=np.float64), P)

    def _compare(self, value: Array, P: Array) -> int:
        """Tests the value (3,) of a stride, and stores it for the running mean."""
        if self._count == 0:
            self._mean, self._known, self._count = value, P.copy(), 1
            return 0
        self.step = d = value - self._mean
        n = min(self._count, self.options.memory)
        scatter = self.scatter * (1.0 + 2.0 / n)
        self.statistic = float(d @ np.linalg.solve(scatter, d))
        if not self.suspicious:
            self._recent.clear()
            self._waiting.append((value, P.copy()))
            if len(self._waiting) > STRIDE:
                self._learn(*self._waiting.popleft())
            return 0
        dropped, axes = np.linalg.eigh(self._known - P)
        moved = axes * np.maximum(dropped, 0.0) @ axes.T
        with_moved = float(d @ np.linalg.solve(scatter + moved, d))
        self._recent.append(
            self.statistic > self.level and with_moved > self._learning_level
        )
        if len(self._recent) >= self.options.sustained and all(
            self._recent[-self.options.sustained :]
        ):
            return len(self._recent) + STRIDE - 1
        # successive suspicious strides after which the new value is the usual one
        if len(self._recent) == 16:
            self.restart(0)
            self.surplus = d
        return 0

    def _learn(self, value: Array, P: Array) -> None:
        d, self._count = value - self._mean, self._count + 1
        weight = max(1.0 / self._count, 1.0 / self.options.memory)
        self._mean = self._mean + weight * d
        self._scatter = self._scatter + weight * (np.outer(d, d) - self._scatter)
        self._known = self._known + weight * (2.0 - weight) * (P - self._known)


def is_withdrawn(test: PayloadTest, step: Array) -> bool:
    """Whether an alarm was false: the step since it is none, or not the one that raised it.

    The stride of the alarm may have begun before the step, and shows a part of it.

    Args:
        test: as it was at the alarm.
        step: (3,) kg, kg m, kg m: change of m, m c_x, m c_y a stride later, by the filter.
    """
    weighted = np.linalg.solve(test.scatter, step)
    size = float(step @ weighted)
    # T^2 of what is left of a step one stride later, below which it was none
    if size < 2.0 * 16.0:
        return True
    # of a step one stride later, which the stride of the alarm saw at least
    part = min(max(float(test.step @ weighted) / size, 0.4), 1.0) * step
    rest, least = (
        float(d @ np.linalg.solve(test.scatter, d)) for d in (test.step - part, part)
    )
    # of that part, by which the step at the alarm may differ from it
    return rest > 0.5**2 * least
