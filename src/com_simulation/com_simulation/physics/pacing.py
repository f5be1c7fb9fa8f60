"""Keeps a simulation in step with the wall clock and measures how well that works."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

MAX_BACKLOG = 1.0  # s; what is further behind is given up, not caught up in a burst


@dataclass(frozen=True)
class PaceReport:
    """How the pace was kept since the last report.

    Attributes:
        drift: s, by which the simulation is behind the wall clock, in wall time, given up or not.
        real_time_factor: Simulated over wall time.
        load: Share of the time in which there was work to do, 0 to 1.
    """

    drift: float
    real_time_factor: float
    load: float


class Pacer:
    """Waits until the wall clock has reached the time of a sample.

    Args:
        real_time_factor: Seconds of simulation per second of wall time; 0 never waits.
        clock: Monotonic, s.
        sleep: Waits for a number of seconds.
    """

    def __init__(
        self,
        real_time_factor: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._factor = real_time_factor
        self._clock, self._sleep = clock, sleep
        self._start = self._report_wall = clock()
        self._given_up = 0.0
        self._report_sim = 0.0
        self._slept = 0.0

    def wait(self, sim_time: float) -> None:
        """Waits until sample `sim_time` (s) is due; not at all when it is overdue."""
        if self._factor <= 0.0:
            return
        now = self._clock()
        ahead = self._start + self._given_up + sim_time / self._factor - now
        if ahead > 0.0:
            self._sleep(ahead)
            self._slept += self._clock() - now
        elif ahead < -MAX_BACKLOG:
            self._given_up -= ahead

    def report(self, sim_time: float) -> PaceReport:
        """Tells how the time since the last report went; `sim_time` (s) is the newest sample's."""
        now = self._clock()
        wall = max(now - self._report_wall, 1e-9)
        drift = 0.0
        if self._factor > 0.0:
            drift = max(now - self._start - sim_time / self._factor, 0.0)
        report = PaceReport(
            drift=drift,
            real_time_factor=(sim_time - self._report_sim) / wall,
            load=min(max(1.0 - self._slept / wall, 0.0), 1.0),
        )
        self._report_wall, self._report_sim, self._slept = now, sim_time, 0.0
        return report


class CommandWait:
    """Lets a simulation wait for a controller in another process.

    That answers the later the busier the machine is, and a robot that it balances falls then. A
    simulation that waits lags behind instead.

    Args:
        longest: s of real time that one sample waits at most; 0: none waits.
    """

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._answered_ns = self._every_ns = (
            0  # the newest answer, and its time from the one before
        )
        self._changed = threading.Condition()

    def answered(self, stamp_ns: int) -> None:
        """A command came that was computed from the sample of a stamp."""
        with self._changed:
            known = 0 < self._answered_ns < stamp_ns
            self._every_ns = stamp_ns - self._answered_ns if known else 0
            self._answered_ns = stamp_ns
            self._changed.notify_all()

    def wait(self, stamp_ns: int) -> bool:
        """Waits until the sample of a stamp is answered, or is not to be, by the time of answers.

        Returns:
            False when no answer came; then nothing waits until there are two again.
        """
        with self._changed:
            if self._longest <= 0.0 or not self._every_ns:
                return True
            if self._changed.wait_for(lambda: self._is_answered(stamp_ns), self._longest):
                return True
            self._answered_ns = self._every_ns = 0
            return False

    def _is_answered(self, stamp_ns: int) -> bool:
        return not self._every_ns or stamp_ns - self._answered_ns < self._every_ns
