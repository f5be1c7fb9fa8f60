"""A run from its start to its end: wait for the first data, let it settle, record."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from com_demos.background import Background
from com_demos.live import WAITING, LiveView
from com_demos.nodes.listener import ListeningNode
from com_simulation.exceptions import RunError

POLL_S = 0.01
REFRESH_S = 0.25
# What tools/run_launch and ros2 launch print of a node that ended by an error.
DEAD_NODE = re.compile(r"^\[run_launch\] \S+ (died|cannot be started)|: process has died ", re.M)
LOG_PREFIX = re.compile(r"^(\[[^]]*\]:? ?)*")  # of a node's line in the log


@dataclass(frozen=True)
class Times:
    """How long the parts of a run last, s.

    Attributes:
        record: of data, at most, by its stamps.
        settle: from the first message on, not recorded: further programs start meanwhile, and
            take the processors.
        first_message: until then one must have arrived; a first start compiles kernels.
        silence: longest pause between messages; a simulator in lockstep waits for kernels, too.
        ready: until then, from the first message on, what is to be recorded must have begun.
    """

    record: float
    settle: float = 0.0
    first_message: float = 600.0
    silence: float = 600.0
    ready: float = 600.0


def record(
    monitor: ListeningNode,
    launch: Background,
    times: Times,
    view: LiveView,
    ended: Callable[[], bool] = lambda: False,
) -> None:
    """Listen to a launch until the data of a run has arrived.

    Args:
        monitor: receives the run.
        launch: what is listened to.
        times: how long.
        view: shows what is received.
        ended: whether all is over before its time.

    Raises:
        RunError: no data came, or it stopped coming, or the launch ended.
        KeyboardInterrupt: SIGINT or SIGTERM arrived.
    """
    with view, deferred_interrupts() as interrupts:
        session = _Session(monitor, launch, view, interrupts)
        session.listen(lambda _: monitor.received > 0, times.first_message)

        def settled(seconds: float) -> bool:
            if not monitor.ready and seconds > times.ready:
                raise session.problem(seconds)
            return monitor.ready and seconds >= times.settle

        session.listen(settled, times.silence)
        monitor.start_over()
        session.recording = True
        session.listen(lambda _: ended() or monitor.elapsed >= times.record, times.silence)


@contextmanager
def deferred_interrupts() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM, for exceptions must not be raised inside the middleware."""
    arrived: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        arrived.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, remember) for number in numbers]
    try:
        yield arrived
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@dataclass
class _Session:
    monitor: ListeningNode
    launch: Background
    view: LiveView
    interrupts: list[int]
    recording: bool = False

    def listen(self, done: Callable[[float], bool], timeout: float) -> None:
        """Listen until done(seconds), while something arrives within timeout (s)."""
        begin = last = now = time.monotonic()
        while not done(now - begin):
            count = self.monitor.received
            self._poll(REFRESH_S)
            now = time.monotonic()
            last = now if self.monitor.received > count else last
            self._show(now - begin)
            self._check_launch()
            if now - last > timeout:
                raise self.problem(now - last)

    def problem(self, seconds: float) -> RunError:
        """Return why nothing came, or nothing began, for a time."""
        problem = self.monitor.problem(seconds)
        return RunError(f"{problem}; the launch's log ends with:\n{self.launch.tail()}")

    def _show(self, seconds: float) -> None:
        rows = self.monitor.rows()
        if rows[0][0] == WAITING:
            log = LOG_PREFIX.sub("", self.launch.tail(lines=1))
            rows = [(WAITING, f"{rows[0][1]}, {seconds:.0f} s"), ("log", log)]
        self.view.show(rows, self.monitor.elapsed if self.recording else None)

    def _check_launch(self) -> None:
        if self.launch.exit_code is not None:
            raise RunError(f"the launch ended early, its log says:\n{self.launch.tail()}")
        if DEAD_NODE.search(self.launch.tail(lines=500)):
            raise RunError(f"a node died, the launch's log says:\n{self.launch.tail()}")

    def _poll(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.monitor.poll()
            if self.interrupts:
                raise KeyboardInterrupt
            time.sleep(POLL_S)
