"""Inputs of com_balancer: joints, the IMU, the feet's wrenches -> one reading."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu

from com_control.balance.session import BalanceReading
from com_control.nodes.balancer_parameters import Parameters
from com_model import RobotConfig, RobotModel
from com_model.dynamics.kinematics import link_poses
from com_ros.conversions import NS_PER_S, Array
from com_ros.imu_input import imu_to_values
from com_ros.input_watch import Latest
from com_ros.joint_input import JointInput, JointSample
from com_ros.wrench_input import ground_wrench

MAX_DEFLECTION = (
    0.02  # rad or m; a drive that seems to deflect more has other gains than configured
)


class RobotInput:
    """Inputs of one robot."""

    def __init__(self, model: RobotModel, config: RobotConfig, settings: Parameters) -> None:
        link = config.imu_link or model.root_link
        self.joints = JointInput(model.joint_names, settings.joint_timeout)
        self._settings = settings
        self._R_imu_root = model.bodies.R_body_link[model.link_index(link)].T
        self._attitude: Latest[Array] = Latest(settings.imu_timeout)
        self._feet = config.feet
        self._topics = [foot.wrench_topic for foot in config.feet]
        self._forces: list[Latest[Array]] = [Latest(settings.wrench_timeout) for _ in config.feet]
        self._upwards = _sole_normals(model, config)
        gains = [config.servo.gains(name) for name in model.joint_names]
        self._stiffness = np.array(
            [gain.stiffness if gain and gain.stiffness else np.nan for gain in gains]
        )

    def set_timeouts(self, settings: Parameters) -> None:
        """Use other timeouts."""
        self._attitude.timeout_s = settings.imu_timeout
        for latest in self._forces:
            latest.timeout_s = settings.wrench_timeout

    def set_imu(self, msg: Imu, time_ns: int) -> None:
        """Store a reading of the IMU."""
        self._attitude.set(imu_to_values(msg).R_world_imu, time_ns)

    def set_wrench(self, foot: int, msg: WrenchStamped, time_ns: int) -> None:
        """Store a reading of a foot's force sensor."""
        self._forces[foot].set(ground_wrench(msg, self._feet[foot])[:3], time_ns)

    def reading(self, time_ns: int, sample: JointSample) -> BalanceReading:
        """What is known at the time of a sample of the joints."""
        attitude = self._attitude.current(time_ns) if self._settings.use_imu else None
        forces = [latest.current(time_ns) for latest in self._forces]
        known = [force for force in forces if force is not None]
        loads = None
        if self._settings.use_wrench and len(known) == len(forces):
            loads = np.einsum("fi,fi->f", self._upwards, np.array(known).reshape(-1, 3))
        return BalanceReading(
            time=time_ns / NS_PER_S,
            position=sample.position,
            up=None if attitude is None else (attitude @ self._R_imu_root)[2],
            loads=loads,
            commanded=self._commanded(sample),
            missing=self._missing(time_ns),
        )

    def _commanded(self, sample: JointSample) -> Array | None:
        """Commands of drives that deflect by effort / stiffness; None: not known."""
        deflection = sample.effort / self._stiffness
        if not np.abs(deflection).max(initial=0.0) <= MAX_DEFLECTION:  # or not finite
            return None
        return sample.position + deflection

    def _missing(self, time_ns: int) -> str:
        if self._settings.use_imu and self._attitude.current(time_ns) is None:
            state = self._attitude.describe("imu", time_ns)
            return f"{state}: start its driver, or set use_imu false on horizontal ground"
        if not self._settings.use_wrench:
            return ""
        for topic, latest in zip(self._topics, self._forces, strict=True):
            if latest.current(time_ns) is None:
                state = latest.describe(topic, time_ns)
                return f"{state}: check the force sensor's driver, or set use_wrench false"
        return ""


def _sole_normals(model: RobotModel, config: RobotConfig) -> Array:
    """Normals (f, 3) of the soles in the frames of their sensors."""
    R, _ = link_poses(model, model.neutral)
    rows = [
        R[model.link_index(foot.wrench_frame)].T @ R[model.link_index(foot.frame)][:, 2]
        for foot in config.feet
    ]
    return np.array(rows, dtype=float).reshape(-1, 3)
