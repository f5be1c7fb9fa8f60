"""The latest values of an input and whether one is current."""

from collections import deque
from typing import Generic, TypeVar

from builtin_interfaces.msg import Time
from rclpy.clock import Clock

from com_ros.conversions import NS_PER_S, stamp_to_ns

T = TypeVar("T")


def sample_time_ns(stamp: Time, clock: Clock) -> int:
    """Time of a sample: its stamp, or the time of the clock where the stamp was left at zero."""
    return stamp_to_ns(stamp) or clock.now().nanoseconds


HISTORY = 500  # values kept: half a second at 1 kHz


class Latest(Generic[T]):
    """The latest values with their times.

    The age of a value is taken between sample times (its stamp against the stamp of the data that
    it is combined with), so that a replayed bag gives the same result at any speed. A value from
    the future is as wrong as an old one. Some values are kept, because a busy node may take in
    this input's newest message before older ones of the data that it is combined with.

    Args:
        timeout_s: age up to which a value is current, s.
    """

    def __init__(self, timeout_s: float) -> None:
        self.timeout_ns = int(timeout_s * NS_PER_S)
        self._values: deque[tuple[int, T]] = deque(maxlen=HISTORY)

    @property
    def value(self) -> T | None:
        """The latest value however old, None before the first."""
        return self._values[-1][1] if self._values else None

    def set(self, value: T, time_ns: int) -> None:
        """Keep a value that was sampled at `time_ns`; a clock that goes back starts anew."""
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
        if found is None or abs(at_ns - found[0]) > self.timeout_ns:
            return None
        return found[1]

    def _at(self, at_ns: int) -> tuple[int, T] | None:
        """The last value up to a time; the next one where that is too old or there is none."""
        following = None
        for entry in reversed(self._values):
            if entry[0] <= at_ns:
                late = following is not None and at_ns - entry[0] > self.timeout_ns
                return following if late else entry
            following = entry
        return following

    def describe(self, name: str, at_ns: int) -> str:
        """Why there is no current value, for a reason or a log: `imu is 0.52 s old`."""
        age = self.age_s(at_ns)
        if age == float("inf"):
            return f"{name} has not been heard"
        if age < 0:
            return f"{name} is {-age:.2f} s ahead of joint_states (other clock, or overloaded node)"
        return f"{name} is silent for {age:.2f} s"
