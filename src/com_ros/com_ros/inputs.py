"""Inputs beside joint_states: their latest values by stamps, the IMU, the wrenches of the feet.

Here the convention of a force sensor (the configuration's wrench sign) is undone, for all nodes:
what comes out is force and torque of the ground on the foot, in the axes and about the origin of
the sensor's frame; see com_model.robot_config.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Generic, TypeVar

import numpy as np
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu

from com_model import Foot
from com_model.arrays import Array
from com_ros.conversions import NS_PER_S, imu_to_rotation, vector3_to_numpy
from com_ros.exceptions import ConversionError

T = TypeVar("T")

HISTORY = 500  # values kept: half a second at 1 kHz
KEPT = 100  # readings of an IMU: a tenth of a second at 1 kHz


class Latest(Generic[T]):
    """The latest values with their times, current up to an age of timeout_s.

    The age of a value is taken between sample times (its stamp against the stamp of the data that
    it is combined with), so that a replayed bag gives the same result at any speed. A value from
    the future is as wrong as an old one. Some values are kept, because a busy node may take in
    this input's newest message before older ones of the data that it is combined with.
    """

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._values: deque[tuple[int, T]] = deque(maxlen=HISTORY)

    @property
    def value(self) -> T | None:
        """The latest value however old, None before the first."""
        return self._values[-1][1] if self._values else None

    def set(self, value: T, time_ns: int) -> None:
        """Store a value that was sampled at `time_ns`; a clock that goes back begins again."""
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
        if found is None or abs(at_ns - found[0]) > self.timeout_s * NS_PER_S:
            return None
        return found[1]

    def _at(self, at_ns: int) -> tuple[int, T] | None:
        """The last value up to a time; the next one where that is too old or there is none."""
        following = None
        for entry in reversed(self._values):
            if entry[0] <= at_ns:
                late = (
                    following is not None
                    and at_ns - entry[0] > self.timeout_s * NS_PER_S
                )
                return following if late else entry
            following = entry
        return following

    def describe(self, name: str, at_ns: int) -> str:
        """Why there is no current value, for a reason or a log: `imu is stale, 0.52 s old`.

        Args:
            name: of the input.
            at_ns: ns, the stamp that the value is wanted for.
        """
        age = self.age_s(at_ns)
        if age == float("inf"):
            return f"{name} has not been received"
        if age < 0:
            return f"{name} is {-age:.2f} s ahead of joint_states (other clock, or overloaded node)"
        return f"{name} is stale, {age:.2f} s old"


class InputWatch:
    """Measures how long an input has been without a message, in real time; stale after timeout_s.

    By stamps or simulated time it would go unnoticed that the clock has stopped, too.
    """

    def __init__(
        self, timeout_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.timeout_s = timeout_s
        self._clock = clock
        self._last = clock()
        self._reported = False
        self.ever_received = False

    def received(self) -> None:
        """A message came."""
        self._last = self._clock()
        self._reported = False
        self.ever_received = True

    def extend(self) -> None:
        """A message came that is not used; it shows that the driver goes on."""
        if self.ever_received:
            self.received()

    @property
    def age_s(self) -> float:
        """Time since the last message, or since the start of the watch, s."""
        return self._clock() - self._last

    @property
    def stale(self) -> bool:
        """True when that is longer than the timeout."""
        return self.age_s > self.timeout_s

    def timed_out(self) -> bool:
        """True once for each time that an input that was received becomes stale."""
        if self._reported or not self.ever_received or not self.stale:
            return False
        self._reported = True
        return True


# --- IMU -------------------------------------------------------------------------------------
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
    gyro, force = (
        vector3_to_numpy(msg.angular_velocity),
        vector3_to_numpy(msg.linear_acceleration),
    )
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
        imu: the reading; UNKNOWN_IMU where there is none.
        age_s: how far the reading is from the joint sample, s; NaN where there is none.
    """

    time_ns: int
    joints: T
    imu: ImuValues
    age_s: float


@dataclass(frozen=True)
class ImuReading:
    """Orientation at a time.

    Attributes:
        R_world_imu: (3, 3), world z up; None when it is not known.
        frame: the message's frame_id.
        problem: why the orientation is not known and how to fix it; empty when it is.
    """

    R_world_imu: Array | None
    frame: str = ""
    problem: str = ""


class ImuInput(Latest[Imu]):
    """Stores the latest Imu messages; those used within timeout_s of their stamps are converted."""

    def __init__(self, timeout_s: float, topic: str = "imu") -> None:
        super().__init__(timeout_s)
        # the last one, with its reading
        self._used: tuple[Imu, ImuReading] | None = None
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
            fix = (
                "use a driver or filter that gives orientation, or set use_imu to false"
            )
            return ImuReading(None, problem=f"{self._topic}: {error}; {fix}")

    def settling(self, at_ns: int) -> bool:
        """True as long as the first message may still be on its way, so nothing is wrong yet."""
        if self.value is not None or self._asked_ns is None:
            return False
        return 0 <= at_ns - self._asked_ns < self.timeout_s * NS_PER_S


class ImuPairing(Generic[T]):
    """Pairs joint samples with the readings of the IMU of the same instant, within timeout_s.

    A driver that reads both at once gives them one stamp and sends joint_states first; and when a
    node is busy, several messages of one topic come before those of the other. So each joint
    sample waits for a reading that is as new, until one wait_s newer comes.
    """

    def __init__(self, timeout_s: float, wait_s: float) -> None:
        self._timeout_ns = int(timeout_s * NS_PER_S)
        self._wait_ns = int(wait_s * NS_PER_S)
        self._readings: deque[tuple[int, ImuValues]] = deque(maxlen=KEPT)
        self._waiting: deque[tuple[int, T]] = deque()

    def add_joints(self, time_ns: int, joints: T) -> list[Paired[T]]:
        """Take in a joint sample.

        Args:
            time_ns: ns, its stamp.
            joints: the sample.

        Returns:
            Those that need not wait any longer, in order, each with its reading of the IMU.
        """
        ready: list[Paired[T]] = []
        if self._waiting and time_ns < self._waiting[-1][0]:
            ready = self.flush()  # another recording
        elif self._waiting and time_ns == self._waiting[-1][0]:
            self._waiting.pop()  # a second part of the joints completes the first
        self._waiting.append((time_ns, joints))
        return ready + self._release()

    def add_imu(self, time_ns: int, values: ImuValues) -> list[Paired[T]]:
        """Take in a reading of the IMU.

        Args:
            time_ns: ns, its stamp.
            values: the reading.

        Returns:
            The joint samples that waited for it.
        """
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
        return 0 < behind_ns <= self._timeout_ns  # further behind: stale

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


# --- wrenches of the feet --------------------------------------------------------------------
def ground_wrench(msg: WrenchStamped, foot: Foot) -> Array:
    """Wrench of the ground on a foot from a message of its sensor.

    Args:
        msg: of the foot's sensor.
        foot: says the sensor's sign.

    Returns:
        (6,) N and N m, axes and origin of the sensor.
    """
    sign, f, t = foot.wrench_sign, msg.wrench.force, msg.wrench.torque
    return np.array(
        (sign * f.x, sign * f.y, sign * f.z, sign * t.x, sign * t.y, sign * t.z)
    )


class WrenchInputs:
    """Stores the latest wrenches of each foot.

    Args:
        feet: of the configuration.
        timeout_s: s, after which a wrench is stale; see Latest.
    """

    def __init__(self, feet: Sequence[Foot], timeout_s: float) -> None:
        self._feet = tuple(feet)
        self._latest: list[Latest[Array]] = [Latest(timeout_s) for _ in feet]
        self.timeout_s = timeout_s
        self.ever_received = False

    def update(self, index: int, msg: WrenchStamped, time_ns: int) -> None:
        """Take in a message.

        Args:
            index: of the foot.
            msg: of its sensor.
            time_ns: ns, when it was sampled.
        """
        self._latest[index].set(ground_wrench(msg, self._feet[index]), time_ns)
        self.ever_received = True

    def wrenches(self, at_ns: int) -> tuple[Array | None, str]:
        """Wrenches (f, 6) N and N m of the ground on the feet, or None, and why."""
        found = []
        for foot, latest in zip(self._feet, self._latest, strict=True):
            latest.timeout_s = self.timeout_s
            wrench = latest.current(at_ns)
            if wrench is None:
                why = latest.describe(foot.wrench_topic, at_ns)
                return None, f"{why}: check the force sensor's driver"
            if not isfinite(sum(wrench.tolist())):
                return None, f"{foot.wrench_topic} is not finite: check its driver"
            found.append(wrench)
        return np.array(found).reshape(-1, 6), ""

    def forces(self, at_ns: int) -> tuple[Array | None, str]:
        """The forces (f, 3) N of `wrenches`; no problem as long as no sensor was ever received."""
        if not self.ever_received:
            return None, ""
        wrenches, problem = self.wrenches(at_ns)
        return None if wrenches is None else np.ascontiguousarray(
            wrenches[:, :3]
        ), problem
