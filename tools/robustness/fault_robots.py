"""Robots of benchmarks/faults.py that are no plain simulation: a log, moving arms, no drivers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from fault_cases import Batch
from fault_lab import SimulatedRobot
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu, JointState
from trajectory_msgs.msg import JointTrajectory
from trot_lab import TrotRun, run_trot

from com_ros.conversions import (
    numpy_to_joint_state,
    numpy_to_quaternion,
    numpy_to_vector3,
    stamp_to_ns,
)


@dataclass
class _Moment:
    """What the checks need of a log's instant."""

    position: np.ndarray
    com: np.ndarray


class LogRobot:
    """A trotting robot whose log is repeated by whole strides."""

    def __init__(self, name: str, seconds: float = 12.0, rate: float = 250.0) -> None:
        self._log = run_trot(TrotRun(name, seconds=seconds, rate=rate))
        self.model, self.config, self.period = (
            self._log.model,
            self._log.config,
            1.0 / rate,
        )
        # at 1 Hz: 8 strides
        self._first, self._stride = round(4.0 * rate), round(8.0 * rate)
        self._imu = Imu()
        self._imu.header.frame_id = self.config.imu_link or self.model.root_link
        self._joints = JointState(name=list(self.model.joint_names))
        self.reset()

    def reset(self) -> None:
        """Begin again."""
        self._k = self._first

    def advance(self, stamp: Any) -> Batch:
        """Joints and IMU of the next instant."""
        log, k = self._log, self._k
        self._k = self._first + (k + 1 - self._first) % self._stride
        numpy_to_joint_state(
            self._joints.name, log.position[k], log.velocity[k], log.effort[k], stamp,
            out=self._joints,
        )  # fmt: skip
        msg = self._imu
        msg.header.stamp = stamp
        R = log.R_world_imu[k]
        msg.orientation = numpy_to_quaternion(Rotation.from_matrix(R).as_quat())
        msg.angular_velocity = numpy_to_vector3(log.angular_velocity[k])
        msg.linear_acceleration = numpy_to_vector3(log.specific_force[k])
        return [("joints", self._joints), ("imu", msg)]

    def follow(self, msg: JointTrajectory, age_s: float) -> None:
        """A log cannot be commanded."""

    @property
    def truth(self) -> Any:
        """Posture and trunk CoM of the instant."""
        return _Moment(self._log.position[self._k], self._log.trunk_com[self._k])

    @property
    def fallen(self) -> bool:
        """It did not fall."""
        return False


class ArmSwinger(SimulatedRobot):
    """HOAP-2 stands and swings its arms: its CoM moves by 2 cm in a second."""

    def reset(self) -> None:
        """Begin again."""
        super().reset()
        self.past: dict[int, np.ndarray] = {}  # CoM by stamp

    def advance(self, stamp: Any) -> Batch:
        """Messages of the next instant."""
        q = self._simulation.world.posture.copy()
        for side in "RL":
            angle = 0.8 * np.sin(np.pi * self._simulation.time)
            q[self.model.joint_names.index(f"{side}ARM_JOINT1")] += angle
        self._simulation.lead(q)
        batch = super().advance(stamp)
        self.past[stamp_to_ns(stamp)] = self.truth.com
        return batch


class StillRobot(SimulatedRobot):
    """No drivers: the simulator under test is the robot."""

    def advance(self, stamp: Any) -> Batch:
        """No messages."""
        super().advance(stamp)
        return []
