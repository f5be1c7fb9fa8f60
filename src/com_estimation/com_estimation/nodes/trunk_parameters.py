"""The parameters of trunk_estimator."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from com_estimation.trunk.ding import DingOptions
from com_estimation.trunk.floating_base import FloatingBaseOptions
from com_estimation.trunk.ground_reaction import INVERSE_DYNAMICS, METHODS
from com_ros.exceptions import ParameterError
from com_ros.flat_parameters import parameters_of
from com_ros.parameters import parameter

FLOATING_BASE, DING = "floating_base", "ding"

if TYPE_CHECKING:
    FloatingBaseParameters = FloatingBaseOptions
    DingParameters = DingOptions
else:
    FloatingBaseParameters = parameters_of(FloatingBaseOptions)
    DingParameters = parameters_of(DingOptions)


@dataclass(frozen=True)
class Parameters:
    """What the node can be told."""

    robot_description: str = parameter("", "the robot's URDF; empty: wait for the topic")
    robot_config: str = parameter(
        "", "path of the robot's configuration (YAML), with four feet and their side and end"
    )
    method: str = parameter(FLOATING_BASE, "the estimator", choices=(FLOATING_BASE, DING))
    ground_reaction: str = parameter(
        INVERSE_DYNAMICS, "where the forces on ground_reaction come from", choices=METHODS
    )
    publish_rate_hz: float = parameter(
        200.0, "1/s, highest rate of trunk_com and ground_reaction", (1.0, 10000.0)
    )
    display_rate_hz: float = parameter(
        30.0, "1/s, rate of trunk_com/markers and /tf; 0: none of them", (0.0, 1000.0)
    )
    imu_wait: float = parameter(
        0.02, "s of the stamps, for which joint_states wait for an imu that is as new", (0.0, 1.0)
    )
    imu_tolerance: float = parameter(
        0.005, "s, time between imu and joint_states that nothing is said about", (0.0, 1.0)
    )
    imu_timeout: float = parameter(
        0.03, "s, largest time between imu and joint_states; without imu beyond", (0.0001, 1.0)
    )
    joint_timeout: float = parameter(
        0.2,
        "s, silence of joint_states that is spoken of; largest time between parts of the joints, "
        "and between a wrench or gait/stance and joint_states",
        (0.001, 60.0),
    )
    assumed_joints: tuple[str, ...] = parameter((), "joints that joint_states does not carry ...")
    assumed_positions: tuple[float, ...] = parameter((), "... and their positions, rad or m")
    assume_posture: bool = parameter(
        True,
        "joints that belong to no leg and that joint_states does not carry are taken to be where "
        "the configuration's posture has them",
    )
    publish_corrected: bool = parameter(
        False,
        "publish robot_description_corrected, the URDF with the trunk's mass and CoM as found",
    )
    corrected_change: float = parameter(
        0.002, "m, change of the CoM that is worth a new corrected URDF", (0.0, 10.0)
    )
    corrected_mass_change: float = parameter(
        0.01, "share of the trunk's mass whose change is worth a new corrected URDF", (0.0, 10.0)
    )
    frame_prefix: str = parameter("", 'stands in front of every frame name, e.g. "robot1/"')
    floating_base: FloatingBaseParameters = field(default_factory=FloatingBaseParameters)
    ding: DingParameters = field(default_factory=DingParameters)

    def assumed(self) -> dict[str, float]:
        """Assumed positions by joint, rad or m.

        Raises:
            ParameterError: the two lists differ in length.
        """
        if len(self.assumed_joints) != len(self.assumed_positions):
            raise ParameterError(
                "assumed_positions",
                list(self.assumed_positions),
                f"give {len(self.assumed_joints)}, one for each of assumed_joints",
            )
        return dict(zip(self.assumed_joints, self.assumed_positions, strict=True))
