"""Readings of the IMU: the orientation of its link, and readings paired with joint samples."""

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import Imu

from com_ros.conversions import NS_PER_S, imu_to_rotation, vector3_to_numpy
from com_ros.exceptions import ConversionError
from com_ros.input_watch import Latest

Array = NDArray[np.float64]
T = TypeVar("T")

KEPT = 100  # readings: a tenth of a second at 1 kHz


@dataclass(frozen=True, eq=False)
class ImuValues:
    """A reading of an IMU, axes of its link; NaN where the message says that it is not known."""

    angular_velocity: Array  # (3,) rad/s
    specific_force: Array  # (3,) m/s^2, gravity included
    R_world_imu: Array  # (3, 3), world z up


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
    """A joint sample with the IMU's reading that belongs to it."""

    time_ns: int
    joints: T
    imu: ImuValues  # the reading; UNKNOWN_IMU where there is none
    age_s: float  # how far the reading is from the joint sample, s; NaN where there is none


@dataclass(frozen=True)
class ImuReading:
    """Orientation at a time."""

    R_world_imu: NDArray[np.float64] | None  # (3, 3), world z up; None when it is not known
    frame: str = ""  # the message's frame_id
    problem: str = ""  # why the orientation is not known and how to fix it; empty when it is


class ImuInput(Latest[Imu]):
    """Stores the latest Imu messages; those used within timeout_s of their stamps are converted."""

    def __init__(self, timeout_s: float, topic: str = "imu") -> None:
        super().__init__(timeout_s)
        self._used: tuple[Imu, ImuReading] | None = None  # the last one, with its reading
        self._topic = topic
        self._asked_ns: int | None = None

    update = Latest.set

    def reading(self, at_ns: int) -> ImuReading:
        """The orientation at a time (of the data that it is combined with)."""
        msg = self.current(at_ns)
        if msg is not None:
            if self._used is None or self._used[0] is not msg:
                self._used = msg, self._convert(msg)
            return self._used[1]
        if self._asked_ns is None:
            self._asked_ns = at_ns
        state = self.describe(self._topic, at_ns)
        fix = "start the imu driver, or set use_imu to false to assume level ground"
        return ImuReading(None, problem=f"{state}: {fix}")

    def _convert(self, msg: Imu) -> ImuReading:
        try:
            return ImuReading(imu_to_rotation(msg), msg.header.frame_id)
        except ConversionError as error:
            fix = "use a driver or filter that gives orientation, or set use_imu to false"
            return ImuReading(None, problem=f"{self._topic}: {error}; {fix}")

    def settling(self, at_ns: int) -> bool:
        """True as long as the first message may still be on its way, so nothing is wrong yet."""
        if self.value is not None or self._asked_ns is None:
            return False
        return 0 <= at_ns - self._asked_ns < self.timeout_s * NS_PER_S


class ImuPairing(Generic[T]):
    """Pairs joint samples with the readings of the IMU of the same instant, within timeout_s.

    A driver that reads both at once stamps both alike and sends joint_states first; and when a
    node is busy, several messages of one topic come before those of the other. So each joint
    sample waits for a reading that is as new, until one wait_s newer comes.
    """

    def __init__(self, timeout_s: float, wait_s: float) -> None:
        self._timeout_ns = int(timeout_s * NS_PER_S)
        self._wait_ns = int(wait_s * NS_PER_S)
        self._readings: deque[tuple[int, ImuValues]] = deque(maxlen=KEPT)
        self._waiting: deque[tuple[int, T]] = deque()

    def add_joints(self, time_ns: int, joints: T) -> list[Paired[T]]:
        """Take in a joint sample; gives those that need not wait any longer, in order."""
        ready: list[Paired[T]] = []
        if self._waiting and time_ns < self._waiting[-1][0]:
            ready = self.flush()  # another recording
        elif self._waiting and time_ns == self._waiting[-1][0]:
            self._waiting.pop()  # a second part of the joints completes the first
        self._waiting.append((time_ns, joints))
        return ready + self._release()

    def add_imu(self, time_ns: int, values: ImuValues) -> list[Paired[T]]:
        """Take in a reading of the IMU; gives the joint samples that waited for it."""
        ready: list[Paired[T]] = []
        if self._readings and time_ns < self._readings[-1][0]:
            ready = self.flush()
            self._readings.clear()  # another recording
        self._readings.append((time_ns, values))
        return ready + self._release()

    def flush(self) -> list[Paired[T]]:
        """Gives the joint samples that wait, with what there is."""
        return [self._pair(*self._waiting.popleft()) for _ in range(len(self._waiting))]

    def _release(self) -> list[Paired[T]]:
        ready = []
        while self._waiting and not self._must_wait(self._waiting[0][0]):
            ready.append(self._pair(*self._waiting.popleft()))
        return ready

    def _must_wait(self, time_ns: int) -> bool:
        if not self._readings or self._waiting[-1][0] - time_ns >= self._wait_ns:
            return False
        behind_ns = time_ns - self._readings[-1][0]
        return 0 < behind_ns <= self._timeout_ns  # further behind: silent

    def _pair(self, time_ns: int, joints: T) -> Paired[T]:
        found = self._nearest(time_ns)
        if found is None:
            return Paired(time_ns, joints, UNKNOWN_IMU, float("nan"))
        return Paired(time_ns, joints, found[1], abs(time_ns - found[0]) / NS_PER_S)

    def _nearest(self, time_ns: int) -> tuple[int, ImuValues] | None:
        best = None
        for entry in reversed(self._readings):
            if best is not None and abs(entry[0] - time_ns) > abs(best[0] - time_ns):
                break
            best = entry
        if best is None or abs(best[0] - time_ns) > self._timeout_ns:
            return None
        return best
