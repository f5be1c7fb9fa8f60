"""Has an input fallen silent? In real time: a clock that stands must not hide it."""

import time
from collections.abc import Callable


class SilenceWatch:
    """Measures how long an input has been silent.

    Args:
        timeout_s: silence after which it counts as silent, s.
        clock: monotonic seconds.
    """

    def __init__(self, timeout_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._timeout = timeout_s
        self._clock = clock
        self._last = clock()
        self._reported = False
        self.ever_heard = False

    def heard(self) -> None:
        """A message came."""
        self._last = self._clock()
        self._reported = False
        self.ever_heard = True

    @property
    def silent_for_s(self) -> float:
        """Time since the last message, or since the start of the watch, s."""
        return self._clock() - self._last

    @property
    def silent(self) -> bool:
        """True when that is longer than the timeout."""
        return self.silent_for_s > self._timeout

    def fell_silent(self) -> bool:
        """True once for each time that an input that was heard falls silent."""
        if self._reported or not self.ever_heard or not self.silent:
            return False
        self._reported = True
        return True
