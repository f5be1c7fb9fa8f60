"""Orientation of the IMU's link from Imu messages, only while it is current and real."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import Imu

from com_ros.conversions import imu_to_rotation
from com_ros.exceptions import ConversionError
from com_ros.freshness import Latest


@dataclass(frozen=True)
class ImuReading:
    """Orientation at a time.

    Attributes:
        R_world_imu: (3, 3), world z up; None when it is not known.
        frame: the message's frame_id.
        problem: why the orientation is not known and how to fix it; empty when it is.
    """

    R_world_imu: NDArray[np.float64] | None
    frame: str = ""
    problem: str = ""


class ImuInput:
    """Keeps what the latest Imu messages say.

    Args:
        timeout_s: largest time between the IMU's sample and the data that it is used with, s.
        topic: for messages to people.
    """

    def __init__(self, timeout_s: float, topic: str = "imu") -> None:
        self._latest: Latest[ImuReading] = Latest(timeout_s)
        self._topic = topic
        self._asked_ns: int | None = None

    def update(self, msg: Imu, time_ns: int) -> None:
        """Take in a message that was sampled at a time."""
        try:
            reading = ImuReading(imu_to_rotation(msg), msg.header.frame_id)
        except ConversionError as error:
            fix = "use a driver or filter that gives orientation, or set use_imu to false"
            reading = ImuReading(None, problem=f"{self._topic}: {error}; {fix}")
        self._latest.set(reading, time_ns)

    def reading(self, at_ns: int) -> ImuReading:
        """The orientation at a time (of the data that it is combined with)."""
        reading = self._latest.current(at_ns)
        if reading is not None:
            return reading
        if self._asked_ns is None:
            self._asked_ns = at_ns
        state = self._latest.describe(self._topic, at_ns)
        fix = "start the imu driver, or set use_imu to false to assume level ground"
        return ImuReading(None, problem=f"{state}: {fix}")

    def settling(self, at_ns: int) -> bool:
        """True as long as the first message may still be on its way, so nothing is wrong yet."""
        if self._latest.value is not None or self._asked_ns is None:
            return False
        return 0 <= at_ns - self._asked_ns < self._latest.timeout_ns
