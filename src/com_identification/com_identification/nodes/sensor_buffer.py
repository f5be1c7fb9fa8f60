"""Gathers the messages of a robot's sensors, and hands them to the recorder in blocks.

A message costs a few appends; the arithmetic is done once for all of a block.
"""

import time

import numpy as np
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu

from com_identification.capture.recorder import PostureRecorder
from com_model.arrays import Array
from com_model.dynamics.link_frames import LinkFrames
from com_ros.conversions import NS_PER_S, wrench_to_numpy
from com_ros.imu_input import imu_to_values
from com_ros.joint_input import JointSample

MAX_READINGS = 100_000  # of a stream, between two blocks


class SensorBuffer:
    """Readings that the recorder has not got yet; `imu` is the frame of the IMU's link."""

    def __init__(self, recorder: PostureRecorder, feet: int, imu: LinkFrames | None) -> None:
        self._recorder, self._imu = recorder, imu
        # stamps and values: of the joints, of each foot, of the direction against gravity
        self._streams: list[list[tuple[int, Array]]] = [[] for _ in range(feet + 2)]
        self._newest = [0] * (feet + 2)
        self._received_at = time.monotonic()
        self.q: Array | None = None
        self.problem = ""

    @property
    def newest_ns(self) -> int:
        """Stamp of the newest joint_states; 0: none yet."""
        return self._newest[0]

    @property
    def now_ns(self) -> int | None:
        """The newest stamp and the real time since then, ns; None before the first reading.

        Each reading sets it, so that streams of a recording that is played slowly do not time out.
        """
        newest = max(self._newest)
        waited_ns = int((time.monotonic() - self._received_at) * NS_PER_S)
        return newest + waited_ns if newest else None

    def add_joints(self, sample: JointSample) -> None:
        """Adds joint states; what is wrong with them becomes `problem`."""
        self.problem = sample.error
        if sample.error:
            return
        self.q = sample.position
        self._add(0, sample.time_ns, np.concatenate((sample.position, sample.effort)))

    def add_wrench(self, foot: int, msg: WrenchStamped, time_ns: int) -> None:
        """Adds a reading of a foot's sensor."""
        self._add(1 + foot, time_ns, wrench_to_numpy(msg.wrench))

    def add_imu(self, msg: Imu, time_ns: int) -> None:
        """Adds the direction against gravity in the axes of the IMU.

        Without orientation it is that of the acceleration, which is right for a stationary robot.
        """
        values = imu_to_values(msg)
        up = values.R_world_imu[2]
        if not np.isfinite(up).all():
            up = _direction(values.specific_force)
        self._add(-1, time_ns, up)

    def hand_over(self) -> None:
        """Hands all readings to the recorder."""
        if any(self._streams):
            self._received_at = time.monotonic()
        for i, stream in enumerate(self._streams):
            if not stream:
                continue
            times, values = (np.array(column) for column in zip(*stream, strict=True))
            stream.clear()
            if i == 0:
                self._recorder.add_joints(times, *np.hsplit(values, 2))
            elif i < len(self._streams) - 1:
                self._recorder.add_wrenches(i - 1, times, values)
            elif self._imu is not None and self.q is not None:
                R_root_imu = self._imu.poses(self.q)[0][0]
                self._recorder.add_up(times, values @ R_root_imu.T)

    def _add(self, index: int, time_ns: int, values: Array) -> None:
        self._newest[index] = time_ns
        if len(self._streams[index]) < MAX_READINGS:
            self._streams[index].append((time_ns, values))


def _direction(vector: Array) -> Array:
    """Unit vector along another; NaN where that is 0 or not finite."""
    largest = float(np.abs(vector).max())
    if not 0.0 < largest < np.inf:
        return np.full(3, np.nan)
    return np.asarray(vector / largest / np.linalg.norm(vector / largest))
