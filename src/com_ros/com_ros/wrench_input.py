"""Forces of several feet's sensors, only while all of them are current."""

from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import WrenchStamped
from numpy.typing import NDArray

from com_ros.conversions import vector3_to_numpy
from com_ros.freshness import Latest, sample_time_ns


class WrenchInputs:
    """Keeps the latest wrench of each sensor.

    Args:
        topics: f topics, for messages to people.
        timeout_s: largest time between a wrench and the data that it is used with, s.
    """

    def __init__(self, topics: Sequence[str], timeout_s: float) -> None:
        self._topics = tuple(topics)
        self._latest: list[Latest[WrenchStamped]] = [Latest(timeout_s) for _ in topics]
        self._heard = False

    def update(self, index: int, msg: WrenchStamped, received_ns: int) -> None:
        """Take in a message of the sensor with this index."""
        self._heard = True
        self._latest[index].set(msg, sample_time_ns(msg.header.stamp, received_ns))

    def forces(self, at_ns: int) -> tuple[NDArray[np.float64] | None, str]:
        """The forces at a time.

        Returns:
            (f, 3) N, each in its sensor's frame as it came, or None when one is not known; and why
            it is not, empty as long as no sensor was ever heard (a robot without them).
        """
        if not self._heard:
            return None, ""
        messages = [latest.current(at_ns) for latest in self._latest]
        for topic, latest, msg in zip(self._topics, self._latest, messages, strict=True):
            if msg is None:
                return None, f"{latest.describe(topic, at_ns)}: check the force sensor's driver"
        forces = np.array([vector3_to_numpy(msg.wrench.force) for msg in messages if msg])
        for topic, force in zip(self._topics, forces, strict=True):
            if not np.isfinite(force).all():
                return None, f"{topic} carries a force that is not finite: check its driver"
        return forces, ""
