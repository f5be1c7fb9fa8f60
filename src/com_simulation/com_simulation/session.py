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

from com_simulation.background import Background
from com_simulation.exceptions import RunError
from com_simulation.live import LiveView
from com_simulation.recording import Recording

POLL_S = 0.01
REFRESH_S = 0.25
SHOWN = 500  # newest samples that the view tells of
# What tools/run_launch and ros2 launch say of a node that ended by an error.
DEAD_NODE = re.compile(r"^\[run_launch\] \S+ (died|cannot be started)|: process has died ", re.M)


class Listener(Protocol):
    """What hears a run; see com_simulation.nodes.monitor."""

    recording: Recording
    unknown: int
    reason: str

    def poll(self) -> None:
        """Take in what has arrived."""

    def start_over(self) -> None:
        """Forget what has been recorded."""


@dataclass(frozen=True)
class Times:
    """How long the parts of a run last, s.

    Attributes:
        record: of data.
        settle: from the first message on, not recorded: further programs start meanwhile, and
            take the processors.
        first_message: until then one must have arrived; a first start compiles kernels.
        silence: longest pause between messages.
    """

    record: float
    settle: float = 4.0
    first_message: float = 90.0
    silence: float = 5.0


def record(listener: Listener, launch: Background, times: Times, view: LiveView) -> None:
    """Listen to a launch until the data of a run has arrived.

    Raises:
        RunError: no data came, or it stopped coming, or the launch ended.
        KeyboardInterrupt: SIGINT or SIGTERM arrived.
    """
    with view, deferred_interrupts() as interrupts:
        session = _Session(listener, launch, view, interrupts)
        session.listen(lambda _: bool(listener.recording.samples), times.first_message, False)
        session.listen(lambda seconds: seconds >= times.settle, times.silence, False)
        listener.start_over()
        session.listen(lambda seconds: seconds >= times.record, times.silence, True)


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

    def listen(self, done: Callable[[float], bool], patience: float, recording: bool) -> None:
        """Listen until done(seconds), while something arrives within patience (s)."""
        begin = heard = now = time.monotonic()
        samples = self.listener.recording.samples
        while not done(now - begin):
            count = len(samples)
            self._poll(REFRESH_S)
            now = time.monotonic()
            heard = now if len(samples) > count else heard
            newest = self.listener.recording.series(last=SHOWN)
            self.view.show(newest, now - begin if recording else None)
            self._check_launch()
            if now - heard > patience:
                raise RunError(self._silence(now - heard))

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

    def _silence(self, seconds: float) -> str:
        if self.listener.unknown:
            said = f"the CoM is not known: {self.listener.reason}"
        else:
            said = f"no message on com for {seconds:.0f} s"
        return f"{said}; the launch's log ends with:\n{self.launch.tail()}"
