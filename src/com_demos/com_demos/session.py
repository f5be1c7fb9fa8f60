"""A run from its start to its end: wait for the first data, let it settle, record."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Protocol

from com_demos.background import Background
from com_demos.live import LiveView, Rows
from com_simulation.exceptions import RunError

POLL_S = 0.01
REFRESH_S = 0.25
# What tools/run_launch and ros2 launch print of a node that ended by an error.
DEAD_NODE = re.compile(r"^\[run_launch\] \S+ (died|cannot be started)|: process has died ", re.M)


class Listener(Protocol):
    """What receives a run; see com_demos.nodes.listener."""

    @property
    def received(self) -> int:
        """Number of messages so far that say something."""

    @property
    def ready(self) -> bool:
        """Whether what is to be recorded has begun."""

    def poll(self) -> None:
        """Process what has arrived."""

    def start_over(self) -> None:
        """Forget what need not be recorded."""

    def rows(self) -> Rows:
        """Return what a view shows."""

    def problem(self, seconds: float) -> str:
        """Return why nothing came, or was not ready, for a time."""


@dataclass(frozen=True)
class Times:
    """How long the parts of a run last, s.

    Attributes:
        record: of data, at most.
        settle: from the first message on, not recorded: further programs start meanwhile, and
            take the processors.
        first_message: until then one must have arrived; a first start compiles kernels.
        silence: longest pause between messages.
        ready: until then, from the first message on, what is to be recorded must have begun.
    """

    record: float
    settle: float = 4.0
    first_message: float = 90.0
    silence: float = 5.0
    ready: float = 60.0


def record(
    listener: Listener,
    launch: Background,
    times: Times,
    view: LiveView,
    ended: Callable[[], bool] = lambda: False,
    act: Callable[[], None] = lambda: None,
) -> None:
    """Listen to a launch until the data of a run has arrived.

    Args:
        listener: receives the run.
        launch: what is listened to.
        times: how long.
        view: shows what is received.
        ended: whether all is over before its time.
        act: called again and again while recording.

    Raises:
        RunError: no data came, or it stopped coming, or the launch ended.
        KeyboardInterrupt: SIGINT or SIGTERM arrived.
    """
    with view, deferred_interrupts() as interrupts:
        session = _Session(listener, launch, view, interrupts)
        session.listen(lambda _: listener.received > 0, times.first_message)
        session.settle(times)
        listener.start_over()
        session.listen(lambda seconds: ended() or seconds >= times.record, times.silence, act)


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


@dataclass(frozen=True)
class _Session:
    listener: Listener
    launch: Background
    view: LiveView
    interrupts: list[int]

    def listen(
        self,
        done: Callable[[float], bool],
        timeout: float,
        act: Callable[[], None] | None = None,
    ) -> None:
        """Listen until done(seconds), while something arrives within timeout (s).

        With act, which is called again and again, this is what is recorded.
        """
        begin = last = now = time.monotonic()
        while not done(now - begin):
            count = self.listener.received
            self._poll(REFRESH_S)
            now = time.monotonic()
            last = now if self.listener.received > count else last
            self.view.show(self.listener.rows(), now - begin if act else None)
            self._check_launch()
            if now - last > timeout:
                raise self._silence(now - last)
            if act:
                act()

    def settle(self, times: Times) -> None:
        """Listen until the listener is ready, and for a while at least."""

        def done(seconds: float) -> bool:
            if not self.listener.ready and seconds > times.ready:
                raise self._silence(seconds)
            return self.listener.ready and seconds >= times.settle

        self.listen(done, times.silence)

    def _check_launch(self) -> None:
        if self.launch.exit_code is not None:
            raise RunError(f"the launch ended early, its log says:\n{self.launch.tail()}")
        if DEAD_NODE.search(self.launch.tail(lines=500)):
            raise RunError(f"a node died, the launch's log says:\n{self.launch.tail()}")

    def _poll(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.listener.poll()
            if self.interrupts:
                raise KeyboardInterrupt
            time.sleep(POLL_S)

    def _silence(self, seconds: float) -> RunError:
        problem = self.listener.problem(seconds)
        return RunError(f"{problem}; the launch's log ends with:\n{self.launch.tail()}")
