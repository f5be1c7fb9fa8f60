"""Is an input current? Its latest values by their stamps, and the time since its last message."""

import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from com_ros.conversions import NS_PER_S

T = TypeVar("T")

HISTORY = 500  # values kept: half a second at 1 kHz


class Latest(Generic[T]):
    """The latest values with their times, current up to an age of timeout_s.

    The age of a value is taken between sample times (its stamp against the stamp of the data that
    it is combined with), so that a replayed bag gives the same result at any speed. A value from
    the future is as wrong as an old one. Some values are kept, because a busy node may take in
    this input's newest message before older ones of the data that it is combined with.
    """

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._values: deque[tuple[int, T]] = deque(maxlen=HISTORY)

    @property
    def value(self) -> T | None:
        """The latest value however old, None before the first."""
        return self._values[-1][1] if self._values else None

    def set(self, value: T, time_ns: int) -> None:
        """Store a value that was sampled at `time_ns`; a clock that goes back begins again."""
        if self._values and time_ns < self._values[-1][0]:
            self._values.clear()
        self._values.append((time_ns, value))

    def age_s(self, at_ns: int) -> float:
        """Smallest age at a time, s: negative from the future, inf before the first value."""
        found = self._at(at_ns)
        return float("inf") if found is None else (at_ns - found[0]) / NS_PER_S

    def current(self, at_ns: int) -> T | None:
        """The value that is current at a time, else None."""
        found = self._at(at_ns)
        if found is None or abs(at_ns - found[0]) > self.timeout_s * NS_PER_S:
            return None
        return found[1]

    def _at(self, at_ns: int) -> tuple[int, T] | None:
        """The last value up to a time; the next one where that is too old or there is none."""
        following = None
        for entry in reversed(self._values):
            if entry[0] <= at_ns:
                late = following is not None and at_ns - entry[0] > self.timeout_s * NS_PER_S
                return following if late else entry
            following = entry
        return following

    def describe(self, name: str, at_ns: int) -> str:
        """Why there is no current value, for a reason or a log: `imu is stale, 0.52 s old`."""
        age = self.age_s(at_ns)
        if age == float("inf"):
            return f"{name} has not been received"
        if age < 0:
            return f"{name} is {-age:.2f} s ahead of joint_states (other clock, or overloaded node)"
        return f"{name} is stale, {age:.2f} s old"


class InputWatch:
    """Measures how long an input has been without a message, in real time; stale after timeout_s.

    By stamps or simulated time it would go unnoticed that the clock has stopped, too.
    """

    def __init__(self, timeout_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.timeout_s = timeout_s
        self._clock = clock
        self._last = clock()
        self._reported = False
        self.ever_received = False

    def received(self) -> None:
        """A message came."""
        self._last = self._clock()
        self._reported = False
        self.ever_received = True

    def extend(self) -> None:
        """A message came that is not used; it shows that the driver goes on."""
        if self.ever_received:
            self.received()

    @property
    def age_s(self) -> float:
        """Time since the last message, or since the start of the watch, s."""
        return self._clock() - self._last

    @property
    def stale(self) -> bool:
        """True when that is longer than the timeout."""
        return self.age_s > self.timeout_s

    def timed_out(self) -> bool:
        """True once for each time that an input that was received becomes stale."""
        if self._reported or not self.ever_received or not self.stale:
            return False
        self._reported = True
        return True
