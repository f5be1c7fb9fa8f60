"""The latest value of an input and whether it is still current."""

from typing import Generic, TypeVar

from builtin_interfaces.msg import Time

from com_ros.conversions import NS_PER_S, stamp_to_ns

T = TypeVar("T")


def sample_time_ns(stamp: Time, received_ns: int) -> int:
    """Time of a sample: its stamp, or when it came where the stamp was left at zero."""
    return stamp_to_ns(stamp) or received_ns


class Latest(Generic[T]):
    """The latest value with its time.

    The age of a value is taken between sample times (its stamp against the stamp of the data that
    it is combined with), so that a replayed bag gives the same result at any speed. A value from
    the future is as wrong as an old one.

    Args:
        timeout_s: age up to which the value is current, s.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_ns = int(timeout_s * NS_PER_S)
        self._value: T | None = None
        self._time_ns = 0

    @property
    def value(self) -> T | None:
        """The latest value however old, None before the first."""
        return self._value

    def set(self, value: T, time_ns: int) -> None:
        """Keep a value that was sampled at `time_ns`."""
        self._value = value
        self._time_ns = time_ns

    def age_s(self, at_ns: int) -> float:
        """Age at a time, s: negative for a value from the future, inf before the first value."""
        if self._value is None:
            return float("inf")
        return (at_ns - self._time_ns) / NS_PER_S

    def current(self, at_ns: int) -> T | None:
        """The value if it is current at a time, else None."""
        if self._value is None or abs(at_ns - self._time_ns) > self._timeout_ns:
            return None
        return self._value

    def describe(self, name: str, at_ns: int) -> str:
        """Why there is no current value, for a reason or a log: `imu is 0.52 s old`."""
        age = self.age_s(at_ns)
        if age == float("inf"):
            return f"{name} has not been heard"
        if age < 0:
            return f"{name} is {-age:.2f} s ahead of joint_states (other clock, or overloaded node)"
        return f"{name} is silent for {age:.2f} s"
