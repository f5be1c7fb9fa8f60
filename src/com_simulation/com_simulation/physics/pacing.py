"""Synchronises a simulation with the wall clock and with nodes."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MAX_BACKLOG = 1.0  # s; a larger backlog is given up, not caught up in a burst


@dataclass(frozen=True)
class PaceReport:
    """Measured pace since the last report.

    Attributes:
        drift: s of wall time, by which the simulation is behind the clock, including the backlog
            given up since the last report.
        real_time_factor: s of simulation per s of wall time.
        load: fraction of the time that was not spent waiting.
    """

    drift: float
    real_time_factor: float
    load: float


class Pacer:
    """Waits until the wall clock has reached the time of a sample.

    Args:
        real_time_factor: s of simulation per s of wall time; 0 never waits.
        clock: returns the wall time, s.
        sleep: waits for some s.
    """

    def __init__(
        self,
        real_time_factor: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._factor = real_time_factor
        self._clock, self._sleep = clock, sleep
        # _start is delayed by the backlog that is given up
        self._start = self._report_wall = clock()
        self._given_up = 0.0  # s, since the last report
        self._report_sim = 0.0
        self._slept = 0.0

    def wait(self, sim_time: float) -> None:
        """Waits until a sample is due; not at all when it is overdue.

        Args:
            sim_time: s, of the sample.
        """
        if self._factor <= 0.0:
            return
        now = self._clock()
        ahead = self._start + sim_time / self._factor - now
        if ahead > 0.0:
            self._sleep(ahead)
            self._slept += self._clock() - now
        elif ahead < -MAX_BACKLOG:
            self._given_up -= ahead
            self._start -= ahead

    def report(self, sim_time: float) -> PaceReport:
        """Reports the pace since the last report.

        Args:
            sim_time: s, of the newest sample.
        """
        now = self._clock()
        wall = max(now - self._report_wall, 1e-9)
        drift = 0.0
        if self._factor > 0.0:
            drift = self._given_up + max(
                now - self._start - sim_time / self._factor, 0.0
            )
        load = min(max(1.0 - self._slept / wall, 0.0), 1.0)
        report = PaceReport(drift, (sim_time - self._report_sim) / wall, load)
        self._report_wall, self._report_sim = now, sim_time
        self._slept = self._given_up = 0.0
        return report


class Lockstep:
    """Lets a simulation wait until nodes have processed its last sample.

    Args:
        nodes: names of the nodes that answer.

    Attributes:
        newest: s, time of the newest answer by time.monotonic(), also of a repeated one.
        late: nodes that did not answer in time; until they do, nothing waits for them.
    """

    def __init__(self, nodes: Sequence[str]) -> None:
        self._answered = dict.fromkeys(nodes, -1)  # stamps, ns
        self._changed = threading.Condition()
        self.newest = time.monotonic()
        self.late: tuple[str, ...] = ()

    def answer(self, node: str, stamp_ns: int) -> None:
        """Stores that a node has processed the samples up to a stamp.

        Args:
            node: its name; unknown nodes are ignored.
            stamp_ns: ns, of the newest sample that it has processed.
        """
        with self._changed:
            if node in self._answered:
                self._answered[node], self.newest = stamp_ns, time.monotonic()
                self._changed.notify_all()

    def wait(self, stamp_ns: int, longest: float) -> tuple[str, ...]:
        """Waits for the answers to a sample.

        Args:
            stamp_ns: ns, stamp of the sample.
            longest: s of real time, longest wait.

        Returns:
            The nodes whose answer is missing, without those that were late before.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._missing(stamp_ns), longest)
            missing = self._missing(stamp_ns)
            self.late = tuple(
                name for name in self.late if self._answered[name] < stamp_ns
            )
            return missing

    def continue_without(self, nodes: Sequence[str]) -> None:
        """Continues without nodes, until they answer the last sample again.

        Args:
            nodes: their names.
        """
        self.late += tuple(nodes)

    def _missing(self, stamp_ns: int) -> tuple[str, ...]:
        return tuple(
            name
            for name, answered_ns in self._answered.items()
            if answered_ns < stamp_ns and name not in self.late
        )
