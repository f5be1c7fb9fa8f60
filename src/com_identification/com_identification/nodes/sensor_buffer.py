"""Gathers the messages of a robot's sensors, and hands them to the recorder in blocks.

A message costs a few appends; the arithmetic is done once for all of a block.
"""

import time

import numpy as np
from geometry_msgs.msg import WrenchStamped
from numpy.typing import NDArray
from sensor_msgs.msg import Imu

from com_identification.capture.recorder import PostureRecorder
from com_model.arrays import Array
from com_model.dynamics.link_frames import LinkFrames
from com_ros.conversions import NS_PER_S, wrench_to_numpy
from com_ros.imu_input import imu_to_values
from com_ros.joint_input import JointSample

Times = NDArray[np.int64]

MAX_READINGS = 100_000  # of a stream, between two blocks


class StreamBuffer:
    """Stamps and values of one stream."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._times: list[int] = []
        self._values: list[Array] = []
        self.newest_ns = 0

    def __len__(self) -> int:
        return len(self._times)

    def add(self, time_ns: int, values: Array) -> None:
        """Appends one reading."""
        self.newest_ns = time_ns
        if len(self._times) < MAX_READINGS:
            self._times.append(time_ns)
            self._values.append(values)

    def take(self) -> tuple[Times, Array]:
        """Removes and returns all readings: (N,) ns and (N, width)."""
        times = np.array(self._times, dtype=np.int64)
        values = np.array(self._values).reshape(-1, self._width)
        self._times.clear()
        self._values.clear()
        return times, values


class SensorBuffer:
    """Readings that the recorder has not got yet; `imu` is the frame of the IMU's link."""

    def __init__(self, recorder: PostureRecorder, feet: int, imu: LinkFrames | None) -> None:
        self._recorder, self._imu = recorder, imu
        self._joint_stream: StreamBuffer | None = None
        self._wrenches = [StreamBuffer(6) for _ in range(feet)]
        self._ups = StreamBuffer(3)
        self._received_at = time.monotonic()
        self.q: Array | None = None
        self.problem = ""

    @property
    def newest_ns(self) -> int:
        """Stamp of the newest joint_states; 0: none yet."""
        return 0 if self._joint_stream is None else self._joint_stream.newest_ns

    @property
    def now_ns(self) -> int | None:
        """The newest stamp and the real time since then, ns; None before the first reading.

        Each reading sets it, so that streams of a recording that is played slowly do not time out.
        """
        newest = max(stream.newest_ns for stream in self._streams())
        waited_ns = int((time.monotonic() - self._received_at) * NS_PER_S)
        return newest + waited_ns if newest else None

    def add_joints(self, sample: JointSample) -> None:
        """Adds joint states; what is wrong with them becomes `problem`."""
        self.problem = sample.error
        if sample.error:
            return
        if self._joint_stream is None:
            self._joint_stream = StreamBuffer(2 * len(sample.position))
        self.q = sample.position
        self._joint_stream.add(sample.time_ns, np.concatenate((sample.position, sample.effort)))

    def add_wrench(self, foot: int, msg: WrenchStamped, time_ns: int) -> None:
        """Adds a reading of a foot's sensor."""
        self._wrenches[foot].add(time_ns, wrench_to_numpy(msg.wrench))

    def add_imu(self, msg: Imu, time_ns: int) -> None:
        """Adds the direction against gravity in the axes of the IMU.

        Without orientation it is that of the acceleration, which is right for a stationary robot.
        """
        values = imu_to_values(msg)
        up = values.R_world_imu[2]
        if not np.isfinite(up).all():
            up = _direction(values.specific_force)
        self._ups.add(time_ns, up)

    def hand_over(self) -> None:
        """Hands all readings to the recorder."""
        if any(map(len, self._streams())):
            self._received_at = time.monotonic()
        if self._joint_stream is not None:
            times, values = self._joint_stream.take()
            if len(times):
                n = values.shape[1] // 2
                self._recorder.add_joints(times, values[:, :n], values[:, n:])
        for foot, stream in enumerate(self._wrenches):
            times, values = stream.take()
            if len(times):
                self._recorder.add_wrenches(foot, times, values)
        times, ups = self._ups.take()
        if len(times) and self._imu is not None and self.q is not None:
            R_root_imu = self._imu.poses(self.q)[0][0]
            self._recorder.add_up(times, ups @ R_root_imu.T)

    def _streams(self) -> list[StreamBuffer]:
        joints = [] if self._joint_stream is None else [self._joint_stream]
        return [*joints, *self._wrenches, self._ups]


def _direction(vector: Array) -> Array:
    """Unit vector along another; NaN where that is 0 or not finite."""
    largest = float(np.abs(vector).max())
    if not 0.0 < largest < np.inf:
        return np.full(3, np.nan)
    return np.asarray(vector / largest / np.linalg.norm(vector / largest))
