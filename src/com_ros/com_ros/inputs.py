"""Inputs but joint_states: latest values by stamp, IMU, wrenches of the feet, cmd_vel.

The sign convention of a force sensor (the configuration's wrench sign) is undone here, for all
nodes: the result is force and torque of the ground on the foot, in the axes and about the origin
of the sensor's frame; see com_model.robot_config.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Generic, TypeVar

import numpy as np
from geometry_msgs.msg import Twist, WrenchStamped
from sensor_msgs.msg import Imu

from com_model import Foot
from com_model.arrays import Array
from com_ros.conversions import NS_PER_S, imu_to_rotation, vector3_to_numpy
from com_ros.exceptions import ConversionError
from com_ros.stream import Faults

T = TypeVar("T")

HISTORY = 500  # stored values: half a second at 1 kHz


class Latest(Generic[T]):
    """The latest values of an input with their times; each is current up to an age of timeout_s.

    The age of a value is the difference of sample times (its stamp and the stamp of the data that
    it is combined with), so that a replayed bag gives the same result at any speed. A value from
    the future is as wrong as an old one. HISTORY values are stored, because a busy node may
    receive this input's newest message before older ones of the data that it is combined with.

    Args:
        timeout_s: s, largest difference of sample times.
    """

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._values: deque[tuple[int, T]] = deque(maxlen=HISTORY)

    @property
    def value(self) -> T | None:
        """The latest value however old; None before the first."""
        return self._values[-1][1] if self._values else None

    def set(self, value: T, time_ns: int) -> None:
        """Stores a value; one older than the newest (the clock went back) removes all before it.

        Args:
            value: of the input.
            time_ns: ns, when it was sampled.
        """
        if self._values and time_ns < self._values[-1][0]:
            self._values.clear()
        self._values.append((time_ns, value))

    def age_s(self, at_ns: int) -> float:
        """Returns the age of the value that would be used at a time.

        Args:
            at_ns: ns, sample time of the data that the value is combined with.

        Returns:
            s; negative for a value from the future, inf before the first value.
        """
        found = self._at(at_ns)
        return float("inf") if found is None else (at_ns - found[0]) / NS_PER_S

    def current(self, at_ns: int) -> T | None:
        """Returns the value that is current at a time.

        Args:
            at_ns: ns, sample time of the data that the value is combined with.

        Returns:
            The last value up to that time or, where that is too old, the next one; None where
            neither is within timeout_s.
        """
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
        """Returns why there is no current value, such as `imu is stale, 0.52 s old`.

        Args:
            name: of the input.
            at_ns: ns, sample time that the value was requested for.
        """
        age = self.age_s(at_ns)
        if age == float("inf"):
            return f"{name} has not been received"
        if age < 0:
            return f"{name} is {-age:.2f} s ahead of joint_states (other clock, or overloaded node)"
        return f"{name} is stale, {age:.2f} s old"


class InputWatch:
    """Measures in real time how long an input has been without a message.

    By stamps or simulated time a clock that has stopped would go unnoticed too.

    Args:
        timeout_s: s without a message after which the input is stale.
        clock: returns real time, s.

    Attributes:
        ever_received: whether any message has been received.
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
        """Records that a usable message was received."""
        self._last = self._clock()
        self._reported = False
        self.ever_received = True

    def extend(self) -> None:
        """Records a message that is not used, but shows that the driver still works."""
        if self.ever_received:
            self.received()

    @property
    def age_s(self) -> float:
        """Time since the last message, or since the start of the watch, s."""
        return self._clock() - self._last

    @property
    def stale(self) -> bool:
        """Whether that is longer than the timeout."""
        return self.age_s > self.timeout_s

    def timed_out(self) -> bool:
        """Returns True once for each time that an input that was received before becomes stale."""
        if self._reported or not self.ever_received or not self.stale:
            return False
        self._reported = True
        return True


class VelocityInput(InputWatch):
    """Stores the latest velocity of cmd_vel; one that is implausible is a fault.

    Args:
        timeout_s: s without a message after which the velocity is 0.
        faults: of the node.
    """

    def __init__(self, timeout_s: float, faults: Faults) -> None:
        super().__init__(timeout_s)
        self._faults, self._velocity = faults, np.zeros(3)

    def receive(self, msg: Twist) -> None:
        """Stores a message.

        Args:
            msg: linear.x and linear.y m/s, angular.z rad/s, axes of the walking robot.
        """
        velocity = np.array([msg.linear.x, msg.linear.y, msg.angular.z])
        fastest = 10.0  # m/s and rad/s; larger values are implausible
        if (np.abs(velocity) <= fastest).all():
            self._velocity = velocity
            self.received()
        else:
            fix = f"{velocity} m/s, m/s, rad/s: give at most {fastest:g}"
            self._faults.add("implausible", "cmd_vel", fix)

    @property
    def current(self) -> Array:
        """The velocity (3,): m/s forwards and to the left, rad/s; 0 where it is stale."""
        return np.zeros(3) if self.stale else self._velocity


# --- IMU -------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class ImuValues:
    """A reading of an IMU in the frame of its link; NaN where the message marks it as not known.

    Attributes:
        angular_velocity: (3,) rad/s.
        specific_force: (3,) m/s^2, gravity included: (0, 0, 9.81) at rest with z up.
        R_world_imu: (3, 3) orientation, world z up.
        frame: the message's frame_id.
        problem: why the orientation is not known; empty when it is.
    """

    angular_velocity: Array
    specific_force: Array
    R_world_imu: Array
    frame: str = ""
    problem: str = ""


UNKNOWN_IMU = ImuValues(np.full(3, np.nan), np.full(3, np.nan), np.full((3, 3), np.nan))


def imu_to_values(msg: Imu) -> ImuValues:
    """Converts an Imu message; a quantity whose covariance starts with -1 becomes NaN.

    Args:
        msg: in the frame of the IMU's link.
    """
    gyro, force = (
        vector3_to_numpy(msg.angular_velocity),
        vector3_to_numpy(msg.linear_acceleration),
    )
    if msg.angular_velocity_covariance[0] == -1.0:
        gyro = UNKNOWN_IMU.angular_velocity
    if msg.linear_acceleration_covariance[0] == -1.0:
        force = UNKNOWN_IMU.specific_force
    frame = msg.header.frame_id
    try:
        return ImuValues(gyro, force, imu_to_rotation(msg), frame)
    except ConversionError as error:
        return ImuValues(gyro, force, UNKNOWN_IMU.R_world_imu, frame, str(error))


@dataclass(frozen=True, eq=False)
class Paired(Generic[T]):
    """A joint sample with the IMU's reading of the same instant.

    Attributes:
        time_ns: ns, of the joint sample.
        joints: the joint sample.
        imu: the reading; UNKNOWN_IMU where there is none.
        age_s: s, time between the reading and the joint sample; NaN where there is no reading.
    """

    time_ns: int
    joints: T
    imu: ImuValues
    age_s: float


class ImuInput(Latest[Imu]):
    """Stores the latest Imu messages and converts one only when its reading is requested.

    Args:
        timeout_s: s, largest difference of sample times; see Latest.
        topic: name of the topic, for error texts.
        otherwise: what a robot without this IMU can do, for error texts.
    """

    def __init__(
        self,
        timeout_s: float,
        topic: str = "imu",
        otherwise: str = "set use_imu to false to assume level ground",
    ) -> None:
        super().__init__(timeout_s)
        self._used: tuple[Imu, ImuValues] | None = None  # the last one, converted
        self._topic, self._otherwise = topic, otherwise
        self._asked_ns: int | None = None

    update = Latest.set

    def reading(self, at_ns: int) -> ImuValues:
        """Returns the reading at a time.

        Args:
            at_ns: ns, sample time of the data that the reading is combined with.

        Returns:
            The reading, whose `problem` says why the orientation is not known and how to fix it;
            UNKNOWN_IMU with the problem where no message is current.
        """
        msg = self.current(at_ns)
        if msg is None:
            self._asked_ns = at_ns if self._asked_ns is None else self._asked_ns
            problem = f"{self.describe(self._topic, at_ns)}: start the imu driver, or "
            return replace(UNKNOWN_IMU, problem=problem + self._otherwise)
        if self._used is None or self._used[0] is not msg:
            values = imu_to_values(msg)
            if values.problem:
                fix = f"use a driver or filter that gives orientation, or {self._otherwise}"
                problem = f"{self._topic}: {values.problem}; {fix}"
                values = replace(values, problem=problem)
            self._used = msg, values
        return self._used[1]

    def settling(self, at_ns: int) -> bool:
        """Returns whether the first message may still be on its way; nothing is wrong yet.

        Args:
            at_ns: ns, sample time of the data that an orientation was requested for.

        Returns:
            True for timeout_s after the first request, as long as no message has been received.
        """
        if self.value is not None or self._asked_ns is None:
            return False
        return 0 <= at_ns - self._asked_ns < self.timeout_s * NS_PER_S


class ImuPairing(Generic[T]):
    """Pairs joint samples with the readings of the IMU of the same instant.

    A driver that reads both at once gives them the same stamp and sends joint_states first; and
    when a node is busy, several messages of one topic arrive before those of the other. So each
    joint sample waits for a reading that is at least as new, until a joint sample wait_s newer
    arrives.

    Args:
        timeout_s: s, largest time between a joint sample and its reading.
        wait_s: s of sample time that a joint sample waits at most.
    """

    def __init__(self, timeout_s: float, wait_s: float) -> None:
        self._timeout_ns = int(timeout_s * NS_PER_S)
        self._wait_ns = int(wait_s * NS_PER_S)
        # readings of an IMU: a tenth of a second at 1 kHz
        self._readings: deque[tuple[int, ImuValues]] = deque(maxlen=100)
        self._waiting: deque[tuple[int, T]] = deque()

    def add_joints(self, time_ns: int, joints: T) -> list[Paired[T]]:
        """Adds a joint sample.

        Args:
            time_ns: ns, its stamp.
            joints: the sample; one with the stamp of the last replaces it.

        Returns:
            The samples that need not wait any longer, in order, each with its reading of the
            IMU.
        """
        ready: list[Paired[T]] = []
        if self._waiting and time_ns < self._waiting[-1][0]:
            ready = self.flush()  # another recording
        elif self._waiting and time_ns == self._waiting[-1][0]:
            self._waiting.pop()  # a second part of the joints completes the first
        self._waiting.append((time_ns, joints))
        return ready + self._release()

    def add_imu(self, time_ns: int, values: ImuValues) -> list[Paired[T]]:
        """Adds a reading of the IMU.

        Args:
            time_ns: ns, its stamp.
            values: the reading.

        Returns:
            The joint samples that were waiting for it.
        """
        ready: list[Paired[T]] = []
        if self._readings and time_ns < self._readings[-1][0]:
            ready = self.flush()
            self._readings.clear()  # another recording
        self._readings.append((time_ns, values))
        return ready + self._release()

    def flush(self) -> list[Paired[T]]:
        """Returns the waiting joint samples, each with the reading nearest in time, if any."""
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
    """Converts a message of a foot's force sensor to the wrench of the ground on the foot.

    Args:
        msg: of the foot's sensor.
        foot: of the configuration; its wrench_sign is applied.

    Returns:
        (6,) force (N) and torque (N m), in the axes and about the origin of the sensor's frame.
    """
    sign, f, t = foot.wrench_sign, msg.wrench.force, msg.wrench.torque
    return np.array(
        (sign * f.x, sign * f.y, sign * f.z, sign * t.x, sign * t.y, sign * t.z)
    )


class WrenchInputs:
    """Stores the latest wrenches of each foot.

    Args:
        feet: the f feet of the configuration.
        timeout_s: s, largest difference of sample times; see Latest.
    """

    def __init__(self, feet: Sequence[Foot], timeout_s: float) -> None:
        self._feet = tuple(feet)
        self._latest: list[Latest[Array]] = [Latest(timeout_s) for _ in feet]
        self.timeout_s = timeout_s
        self.ever_received = False

    def update(self, index: int, msg: WrenchStamped, time_ns: int) -> None:
        """Stores a message.

        Args:
            index: of the foot.
            msg: of its sensor.
            time_ns: ns, when it was sampled.
        """
        self._latest[index].set(ground_wrench(msg, self._feet[index]), time_ns)
        self.ever_received = True

    def wrenches(self, at_ns: int) -> tuple[Array | None, str]:
        """Returns the wrenches of the ground on all feet at a time.

        Args:
            at_ns: ns, sample time of the data that they are combined with.

        Returns:
            (f, 6) forces (N) and torques (N m) in the sensors' frames, None where one is missing,
            stale or not finite; and why and how to fix it, else "".
        """
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
        """Returns the forces of `wrenches`; it is no problem if no sensor was ever received.

        Args:
            at_ns: ns, sample time of the data that they are combined with.

        Returns:
            (f, 3) N in the sensors' frames or None, and why and how to fix it, else "".
        """
        if not self.ever_received:
            return None, ""
        wrenches, problem = self.wrenches(at_ns)
        return None if wrenches is None else np.ascontiguousarray(
            wrenches[:, :3]
        ), problem
