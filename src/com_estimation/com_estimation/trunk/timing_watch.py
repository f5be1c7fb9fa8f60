"""Times of samples: repeated, going back, irregular, or at another rate than before."""

from __future__ import annotations

import math
from enum import Enum

from com_estimation.trunk.problems import Problem, Severity

RESTART = 0.5  # s back, from which it is another recording and not a sample that came late
LEAST_RATE_HZ = 150.0
AVERAGE = 0.3  # s, memory of the present period
USUAL = 10.0  # s, memory of the usual one
CHANGED = 1.4  # ratio of the two that counts as another rate
GAP = 2.5  # usual periods between samples
GAP_SHARE = 0.05  # of the samples come after a gap: irregular
YOUNG = 50  # samples, among which a first pause is not taken for the usual period
SAID_FOR = 1.0  # s, for which a repeated or late sample is spoken of


class Order(Enum):
    """What to do with a sample by its time."""

    USE = "use"
    DROP = "drop"
    RESTART = "restart"


class TimingWatch:
    """Watches the times of samples."""

    def __init__(self) -> None:
        self._begin(-math.inf)

    def _begin(self, time: float) -> None:
        self._last = time
        self._period = math.nan  # s, present
        self._usual = math.nan
        self._count = 0  # periods so far
        self._gaps = 0.0  # share of gaps
        self._dropped = ("", -math.inf)  # what was wrong, and when

    def order(self, time: float) -> Order:
        """Says what to do with a sample of that time, s."""
        if not math.isfinite(time):
            self._dropped = "a stamp is not finite: check the driver's clock", self._last
            return Order.DROP
        if time > self._last:
            self._measure(time)
            return Order.USE
        if self._last - time > RESTART:
            self._begin(time)
            self._dropped = "the stamps went back: everything starts anew", time
            return Order.RESTART
        same = time == self._last
        text = (
            "a stamp of joint_states comes twice: is there a second driver?"
            if same
            else f"a stamp of joint_states went back by {self._last - time:.4f} s: samples must "
            "come in order, from one driver"
        )
        self._dropped = f"{text} Such samples are left out", self._last
        return Order.DROP

    def problem(self) -> Problem | None:
        """What is wrong with the times, or was a moment ago."""
        text, at = self._dropped
        if text and self._last - at < SAID_FOR:
            return Problem(Severity.DEGRADE, text)
        return self._rate_problem()

    def _measure(self, time: float) -> None:
        dt, self._last = time - self._last, time
        if not math.isfinite(dt):
            return
        self._count += 1
        paused = self._count <= YOUNG and dt < self._usual / GAP
        if math.isnan(self._usual) or paused:
            self._period = self._usual = dt
            return
        gap = dt > GAP * self._usual
        self._gaps += min(1.0, self._period / 1.0) * (gap - self._gaps)
        dt = min(dt, 3.0 * self._period)  # one pause is no rate
        self._period += min(1.0, dt / AVERAGE) * (dt - self._period)
        self._usual += min(1.0, dt / USUAL) * (dt - self._usual)

    def _rate_problem(self) -> Problem | None:
        if math.isnan(self._period):
            return None
        rate, usual = 1.0 / self._period, 1.0 / self._usual
        if rate < LEAST_RATE_HZ:
            text = (
                f"joint_states comes at {rate:.0f} Hz: raise it to {LEAST_RATE_HZ:.0f} Hz or "
                "more, 1000 Hz at best"
            )
        elif self._gaps > GAP_SHARE:
            text = (
                f"{100 * self._gaps:.0f} % of the joint_states come after a gap: check the "
                "network and the load of the computer"
            )
        elif not 1.0 / CHANGED < rate / usual < CHANGED:
            text = (
                f"joint_states comes at {rate:.0f} Hz and came at {usual:.0f} Hz before: check "
                "the driver and the load of the computer"
            )
        else:
            return None
        return Problem(Severity.DEGRADE, text)
