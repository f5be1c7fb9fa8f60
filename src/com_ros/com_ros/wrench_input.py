"""Forces of several feet's sensors, only while all of them are current."""

from collections.abc import Sequence
from math import isfinite, nan

import numpy as np
from geometry_msgs.msg import WrenchStamped
from numpy.typing import NDArray

from com_ros.input_watch import Latest

Force = tuple[float, float, float]

BROKEN: Force = (nan, nan, nan)


class WrenchInputs:
    """Keeps the latest forces of each sensor.

    Args:
        topics: f topics, for messages to people.
        timeout_s: largest time between a wrench and the data that it is used with, s.
    """

    def __init__(self, topics: Sequence[str], timeout_s: float) -> None:
        self._topics = tuple(topics)
        self._latest: list[Latest[Force]] = [Latest(timeout_s) for _ in topics]
        self._heard = False

    def update(self, index: int, msg: WrenchStamped, time_ns: int) -> None:
        """Take in a message, sampled at a time, of the sensor with this index."""
        force = msg.wrench.force
        x, y, z = force.x, force.y, force.z
        self._latest[index].set((x, y, z) if isfinite(x + y + z) else BROKEN, time_ns)
        self._heard = True

    def forces(self, at_ns: int) -> tuple[NDArray[np.float64] | None, str]:
        """The forces at a time.

        Returns:
            (f, 3) N, each in its sensor's frame as it came, or None when one is not known; and why
            it is not, empty as long as no sensor was ever heard (a robot without them).
        """
        if not self._heard:
            return None, ""
        forces = [latest.current(at_ns) for latest in self._latest]
        for topic, latest, force in zip(self._topics, self._latest, forces, strict=True):
            if force is None:
                return None, f"{latest.describe(topic, at_ns)}: check the force sensor's driver"
            if force is BROKEN:
                return None, f"{topic} carries a force that is not finite: check its driver"
        return np.array(forces), ""
