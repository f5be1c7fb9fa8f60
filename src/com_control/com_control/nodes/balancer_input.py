"""Inputs of com_balancer: joints, the IMU, the feet's wrenches -> one reading."""

from dataclasses import dataclass, field

import numpy as np

from com_control.balance.demonstrations import DEMONSTRATIONS
from com_control.balance.options import BalanceOptions, StandingLimits
from com_control.balance.session import BalanceReading
from com_control.command_guard import GuardOptions
from com_model import RobotConfig, RobotModel, link_poses
from com_ros.conversions import NS_PER_S, Array
from com_ros.imu_input import ImuInput
from com_ros.joint_input import JointSample
from com_ros.parameters import SensorParameters, live_parameter, parameter
from com_ros.wrench_input import WrenchInputs


@dataclass(frozen=True)
class Parameters(SensorParameters):
    """Parameters of the node."""

    control: BalanceOptions = field(default_factory=BalanceOptions)
    check: StandingLimits = field(default_factory=StandingLimits)
    guard: GuardOptions = field(default_factory=lambda: GuardOptions(0.15, 0.5))
    autostart: bool = parameter(
        False, "balance as soon as the robot stands, without ~/start; after a fall call it"
    )
    demonstration: str = parameter(
        "none",
        "motion of the CoM while it balances; ends with the first balance/com_desired",
        choices=DEMONSTRATIONS,
    )
    use_imu: bool = parameter(True, "gravity from imu; false: the ground counts as horizontal")
    use_wrench: bool = parameter(True, "feet must carry; false: no sensors")
    horizon: float = parameter(0.01, "s, by which targets are ahead of joint_states", (0.001, 1.0))
    rate_hz: float = live_parameter(500.0, "1/s, of joint_trajectory at most", (1.0, 2000.0))
    display_rate_hz: float = live_parameter(
        20.0, "1/s, of balance/markers and tf, at most", (0.1, 200.0)
    )
    balance_frame: str = parameter("balance", "name of the frame in the middle of the soles")


MAX_DEFLECTION = 0.02  # rad or m; what seems to deflect more has other gains than configured


class RobotInput:
    """Inputs of one robot."""

    def __init__(self, model: RobotModel, config: RobotConfig, settings: Parameters) -> None:
        link = config.imu_link or model.root_link
        self._settings = settings
        self._R_imu_root = model.bodies.R_body_link[model.link_index(link)].T
        self.imu = ImuInput(settings.imu_timeout)
        self.wrenches = WrenchInputs(config.feet, settings.wrench_timeout)
        self._upwards = _sole_normals(model, config)
        gains = [config.servo.gains(name) for name in model.joint_names]
        self._stiffness = np.array(
            [gain.stiffness if gain and gain.stiffness else np.nan for gain in gains]
        )

    def reading(self, time_ns: int, sample: JointSample) -> BalanceReading:
        """What is known at the time of a sample of the joints."""
        up = loads = None
        missing = ""
        if self._settings.use_imu:
            imu = self.imu.reading(time_ns)
            missing = imu.problem
            up = None if imu.R_world_imu is None else (imu.R_world_imu @ self._R_imu_root)[2]
        if self._settings.use_wrench:
            wrenches, problem = self.wrenches.wrenches(time_ns)
            missing = missing or (problem and f"{problem}, or set use_wrench false")
            if wrenches is not None:
                loads = np.einsum("fi,fi->f", self._upwards, wrenches[:, :3])
        commanded = self._commanded(sample)
        return BalanceReading(time_ns / NS_PER_S, sample.position, up, loads, commanded, missing)

    def _commanded(self, sample: JointSample) -> Array | None:
        """Commands of drives that deflect by effort / stiffness; None: not known."""
        deflection = sample.effort / self._stiffness
        if not np.abs(deflection).max(initial=0.0) <= MAX_DEFLECTION:  # or not finite
            return None
        return sample.position + deflection


def _sole_normals(model: RobotModel, config: RobotConfig) -> Array:
    """Normals (f, 3) of the soles in the frames of their sensors."""
    R, _ = link_poses(model, model.neutral)
    rows = [
        R[model.link_index(foot.wrench_frame)].T @ R[model.link_index(foot.frame)][:, 2]
        for foot in config.feet
    ]
    return np.array(rows, dtype=float).reshape(-1, 3)
