"""The parameters of trunk_estimator."""

from dataclasses import dataclass, field

from com_estimation.trunk.ding import DingOptions
from com_estimation.trunk.floating_base import FloatingBaseOptions
from com_estimation.trunk.ground_reaction import INVERSE_DYNAMICS, METHODS
from com_ros.parameters import (
    AssumedJoints,
    FramePrefix,
    JointTimeout,
    RobotParameters,
    WrenchTimeout,
    live_parameter,
    parameter,
)

FLOATING_BASE, DING = "floating_base", "ding"


@dataclass(frozen=True)
class Parameters(RobotParameters, JointTimeout, WrenchTimeout, AssumedJoints, FramePrefix):
    """Parameters of trunk_estimator; robot_config must give four feet with side and end."""

    method: str = parameter(FLOATING_BASE, "the estimator", choices=(FLOATING_BASE, DING))
    ground_reaction: str = parameter(
        INVERSE_DYNAMICS, "where the forces on ground_reaction come from", choices=METHODS
    )
    publish_rate_hz: float = live_parameter(
        200.0, "1/s, highest rate of trunk_com and ground_reaction", (1.0, 10000.0)
    )
    display_rate_hz: float = parameter(
        30.0, "1/s, rate of trunk_com/markers and /tf; 0: none of them", (0.0, 1000.0)
    )
    expected_rate_hz: float = parameter(
        0.0,
        "1/s, of joint_states as the driver is set; slower ones are reported; 0: 150 Hz at least",
        (0.0, 10000.0),
    )
    imu_wait: float = parameter(
        0.02, "s of the stamps, for which joint_states wait for an imu that is as new", (0.0, 1.0)
    )
    imu_tolerance: float = live_parameter(
        0.005,
        "s, time between joint_states and the imu reading paired with it that is not reported",
        (0.0, 1.0),
    )
    imu_max_offset: float = parameter(
        0.03,
        "s, largest time between joint_states and the imu reading paired with it; without imu "
        "beyond",
        (0.0001, 1.0),
    )
    stance_timeout: float = live_parameter(
        0.2, "s, largest time between gait/stance and joint_states", (0.001, 60.0)
    )
    assume_posture: bool = parameter(
        True,
        "joints that belong to no leg and that joint_states does not carry are taken to be where "
        "the configuration's posture has them",
    )
    publish_corrected: bool = parameter(
        False,
        "publish robot_description_corrected, the URDF with the trunk's mass and CoM as estimated",
    )
    corrected_change: float = live_parameter(
        0.002, "m, change of the CoM that triggers a new corrected URDF", (0.0, 10.0)
    )
    corrected_mass_change: float = live_parameter(
        0.01, "fraction of the trunk's mass whose change triggers a new corrected URDF", (0.0, 10.0)
    )
    floating_base: FloatingBaseOptions = field(default_factory=FloatingBaseOptions)
    ding: DingOptions = field(default_factory=DingOptions)
