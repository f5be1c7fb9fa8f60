"""Warnings that do not flood: each kind at most once a period."""

import time
from collections.abc import Callable

from rclpy.impl.rcutils_logger import RcutilsLogger


class ThrottledLog:
    """Writes a warning when its kind has been silent for `period_s`.

    Args:
        period_s: shortest time between two warnings of one kind, s.
        clock: monotonic seconds; real time, because people read the log in real time.
    """

    def __init__(
        self,
        logger: RcutilsLogger,
        period_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logger = logger
        self._period = period_s
        self._clock = clock
        self._last: dict[str, float] = {}

    def warn(self, kind: str, text: str) -> bool:
        """Log `text` unless a warning of this kind was logged within the period.

        Args:
            kind: one of the few situations that the node knows, never made from input.
            text: what is wrong and what to do about it.

        Returns:
            True when it was logged.
        """
        now = self._clock()
        if now - self._last.get(kind, -float("inf")) < self._period:
            return False
        self._last[kind] = now
        self._logger.warning(text)
        return True
