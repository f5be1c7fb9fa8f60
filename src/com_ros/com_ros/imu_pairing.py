"""Joint samples and IMU readings of the same instant, which come in messages of their own.

A driver that reads both at once stamps both alike and sends joint_states first: so each joint
sample waits for the IMU's reading, until the next joint sample at the longest.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import Imu

from com_ros.conversions import NS_PER_S, imu_to_rotation, vector3_to_numpy
from com_ros.exceptions import ConversionError

Array = NDArray[np.float64]
T = TypeVar("T")

KEPT = 100  # readings: a tenth of a second at 1 kHz


@dataclass(frozen=True, eq=False)
class ImuValues:
    """A reading of an IMU, axes of its link; NaN where the message says that it is not known.

    Attributes:
        angular_velocity: (3,) rad/s.
        specific_force: (3,) m/s^2, gravity included.
        R_world_imu: (3, 3), world z up.
    """

    angular_velocity: Array
    specific_force: Array
    R_world_imu: Array


UNKNOWN_IMU = ImuValues(np.full(3, np.nan), np.full(3, np.nan), np.full((3, 3), np.nan))


def imu_to_values(msg: Imu) -> ImuValues:
    """Values of an Imu message; a covariance that starts with -1 says that one is not known."""
    gyro, force = vector3_to_numpy(msg.angular_velocity), vector3_to_numpy(msg.linear_acceleration)
    if msg.angular_velocity_covariance[0] == -1.0:
        gyro = UNKNOWN_IMU.angular_velocity
    if msg.linear_acceleration_covariance[0] == -1.0:
        force = UNKNOWN_IMU.specific_force
    try:
        rotation = imu_to_rotation(msg)
    except ConversionError:
        rotation = UNKNOWN_IMU.R_world_imu
    return ImuValues(gyro, force, rotation)


@dataclass(frozen=True, eq=False)
class Paired(Generic[T]):
    """A joint sample with the IMU's reading that belongs to it.

    Attributes:
        time_ns: of the joint sample.
        joints: the joint sample.
        imu: the reading; UNKNOWN_IMU where there is none.
        age_s: how far the reading is from the joint sample, s; NaN where there is none.
    """

    time_ns: int
    joints: T
    imu: ImuValues
    age_s: float


class ImuPairing(Generic[T]):
    """Pairs joint samples with readings of the IMU.

    Args:
        timeout_s: largest time between the two, s.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_ns = int(timeout_s * NS_PER_S)
        self._readings: deque[tuple[int, ImuValues]] = deque(maxlen=KEPT)
        self._waiting: tuple[int, T] | None = None

    def add_joints(self, time_ns: int, joints: T) -> list[Paired[T]]:
        """Take in a joint sample; gives those that need not wait any longer, in order."""
        ready = self.flush()
        self._waiting = (time_ns, joints)
        newest = self._readings[-1][0] if self._readings else None
        silent = newest is None or time_ns - newest > self._timeout_ns
        if silent or (newest is not None and newest >= time_ns):
            ready += self.flush()
        return ready

    def add_imu(self, time_ns: int, values: ImuValues) -> list[Paired[T]]:
        """Take in a reading of the IMU; gives the joint sample that waited for it."""
        if self._readings and time_ns < self._readings[-1][0]:
            self._readings.clear()  # another recording
        self._readings.append((time_ns, values))
        if self._waiting is not None and time_ns >= self._waiting[0]:
            return self.flush()
        return []

    def flush(self) -> list[Paired[T]]:
        """Gives the joint sample that waits, with what there is."""
        if self._waiting is None:
            return []
        (time_ns, joints), self._waiting = self._waiting, None
        found = self._nearest(time_ns)
        if found is None:
            return [Paired(time_ns, joints, UNKNOWN_IMU, float("nan"))]
        return [Paired(time_ns, joints, found[1], abs(time_ns - found[0]) / NS_PER_S)]

    def _nearest(self, time_ns: int) -> tuple[int, ImuValues] | None:
        best = None
        for entry in reversed(self._readings):
            if best is not None and abs(entry[0] - time_ns) > abs(best[0] - time_ns):
                break
            best = entry
        if best is None or abs(best[0] - time_ns) > self._timeout_ns:
            return None
        return best
