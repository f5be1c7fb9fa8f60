"""What ccgd_gait hears: joints, the feet's wrenches, the IMU -> one reading."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.clock import Clock
from sensor_msgs.msg import Imu

from com_control.nodes.ccgd_parameters import Parameters
from com_control.walking.biped import Biped, find_stance
from com_control.walking.walk_monitor import Reading
from com_ros.conversions import NS_PER_S, Array
from com_ros.imu_input import imu_to_values
from com_ros.input_watch import Latest, sample_time_ns
from com_ros.joint_input import JointInput, JointSample
from com_ros.wrench_input import ground_wrench


class RobotInput:
    """Inputs of one robot.

    Args:
        biped: The robot.
        imu_link: That carries the IMU; None: the root link.
        settings: Of the node.
        clock: Of the node.
    """

    def __init__(
        self, biped: Biped, imu_link: str | None, settings: Parameters, clock: Clock
    ) -> None:
        model = biped.model
        link = imu_link or model.root_link
        self.joints = JointInput(model.joint_names, settings.joint_timeout)
        self._feet = [leg.foot for leg in biped.legs]
        self.topics = [leg.foot.wrench_topic for leg in biped.legs]
        self._clock, self._use_wrench = clock, settings.use_wrench
        self._wrenches: list[Latest[Array]] = [Latest(settings.wrench_timeout) for _ in range(2)]
        self._attitude: Latest[Array] = Latest(settings.imu_timeout)
        self._R_imu_root = model.bodies.R_body_link[model.link_index(link)].T
        self._up = find_stance(biped, biped.posture).R_walk_root[2]  # root's axes

    def take_wrench(self, side: int, msg: WrenchStamped) -> None:
        """Take in a foot's wrench."""
        time_ns = sample_time_ns(msg.header.stamp, self._clock)
        self._wrenches[side].set(ground_wrench(msg, self._feet[side]), time_ns)

    def take_imu(self, msg: Imu) -> None:
        """Take in a message of the IMU."""
        time_ns = sample_time_ns(msg.header.stamp, self._clock)
        self._attitude.set(imu_to_values(msg).R_world_imu, time_ns)

    def reading(self, time_ns: int, sample: JointSample) -> Reading:
        """What is known at the time of a sample of the joints."""
        wrenches = [latest.current(time_ns) for latest in self._wrenches]
        known = [wrench for wrench in wrenches if wrench is not None]
        return Reading(
            time=time_ns / NS_PER_S,
            position=sample.position,
            wrenches=np.array(known) if len(known) == len(wrenches) else None,
            tilt=self._tilt(time_ns),
            missing=self._missing(time_ns),
        )

    def _tilt(self, time_ns: int) -> float:
        R = self._attitude.current(time_ns)
        if R is None:
            return float("nan")
        up = (R @ self._R_imu_root)[2] @ self._up
        return float(np.arccos(np.clip(up, -1.0, 1.0)))

    def _missing(self, time_ns: int) -> str:
        return self._attitude_problem(time_ns) or (
            self._wrench_problem(time_ns) if self._use_wrench else ""
        )

    def _attitude_problem(self, time_ns: int) -> str:
        if self._attitude.value is None:
            return ""
        R = self._attitude.current(time_ns)
        if R is None:
            return f"{self._attitude.describe('imu', time_ns)}: check its driver"
        if not np.isfinite(R).all():
            return "imu gives no orientation: use a filter that does, or leave imu unconnected"
        return ""

    def _wrench_problem(self, time_ns: int) -> str:
        for topic, latest in zip(self.topics, self._wrenches, strict=True):
            wrench = latest.current(time_ns)
            if wrench is None:
                return (
                    f"{latest.describe(topic, time_ns)}: check the force sensor's driver, or set "
                    "use_wrench false"
                )
            if not np.isfinite(wrench).all():
                return f"{topic} carries numbers that are not finite: check its driver"
        return ""
