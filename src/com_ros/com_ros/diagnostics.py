"""A node's status on /diagnostics, and the measurement of rate and latency."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.node import Node

from com_ros.conversions import NS_PER_S
from com_ros.qos import RESULT

OK = DiagnosticStatus.OK
WARN = DiagnosticStatus.WARN
ERROR = DiagnosticStatus.ERROR


@dataclass(frozen=True)
class Diagnosis:
    """One status on /diagnostics.

    Attributes:
        level: OK, WARN or ERROR of com_ros.diagnostics.
        text: the state in words and, unless it is OK, how to fix it.
        values: further values by name, for the status' key-value list.
    """

    level: bytes
    text: str
    values: dict[str, object] = field(default_factory=dict)


class Diagnostics:
    """Publishes one status of a node on /diagnostics.

    Args:
        node: whose fully qualified name starts the status' name.
        title: what the status is about; follows the node's name.
    """

    def __init__(self, node: Node, title: str) -> None:
        self._node = node
        self._name = f"{node.get_fully_qualified_name().lstrip('/')}: {title}"
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", RESULT)

    def publish(
        self,
        level: bytes,
        message: str,
        values: Mapping[str, object],
        hardware_id: str = "",
    ) -> None:
        """Publishes the status; floats are written with six significant digits.

        Args:
            level: OK, WARN or ERROR.
            message: the state in words.
            values: by name, for the key-value list.
            hardware_id: name of the robot or sensor; empty: none.
        """
        status = DiagnosticStatus(
            level=level, name=self._name, message=message, hardware_id=hardware_id
        )
        status.values = [
            KeyValue(key=key, value=_text(value)) for key, value in values.items()
        ]
        msg = DiagnosticArray(status=[status])
        msg.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(msg)


class RateMeter:
    """Measures the rate of events and their latencies between two calls of read()."""

    def __init__(self) -> None:
        self._since_ns: int | None = None
        self._latencies_ns: list[int] = []

    def add(self, latency_ns: int) -> None:
        """Counts one event.

        Args:
            latency_ns: ns, from the stamp of the data that caused the event until now.
        """
        self._latencies_ns.append(latency_ns)

    def read(self, now_ns: int) -> dict[str, float]:
        """Returns rate and latencies since the last call, and starts again.

        Args:
            now_ns: ns of a monotonic clock.

        Returns:
            rate_hz in 1/s (NaN in the first call), latency_mean_ms and latency_max_ms in ms (NaN
            without events).
        """
        elapsed_ns = 0 if self._since_ns is None else now_ns - self._since_ns
        found, self._latencies_ns, self._since_ns = self._latencies_ns, [], now_ns
        return {
            "rate_hz": len(found) * NS_PER_S / elapsed_ns
            if elapsed_ns > 0
            else float("nan"),
            "latency_mean_ms": sum(found) / len(found) / 1e6 if found else float("nan"),
            "latency_max_ms": max(0, *found) / 1e6 if found else float("nan"),
        }


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class ThrottledLog:
    """Logs warnings, each kind at most once per period of real time.

    Args:
        logger: of the node.
        period_s: s, least time between two warnings of one kind.
        clock: returns real time, s.
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
        """Logs a warning, unless one of its kind was logged within the period.

        Args:
            kind: of the warning; never made from input, so that there are few.
            text: what is wrong and how to fix it.

        Returns:
            Whether it was logged.
        """
        now = self._clock()
        if now - self._last.get(kind, -float("inf")) < self._period:
            return False
        self._last[kind] = now
        self._logger.warning(text)
        return True
