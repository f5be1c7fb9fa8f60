"""The parameters of sesc_publisher."""

from dataclasses import dataclass

from com_ros.exceptions import ParameterError
from com_ros.parameters import parameter


@dataclass(frozen=True)
class Parameters:
    """What the node can be told."""

    robot_description: str = parameter("", "the robot's URDF; empty: wait for the topic")
    robot_config: str = parameter("", "path of the robot's configuration (YAML); empty: none")
    feet: tuple[str, ...] = parameter(
        (), "sole frames, links of the URDF; empty: those of robot_config"
    )
    use_imu: bool = parameter(
        False, "take gravity's direction from imu; false: the ground is level"
    )
    imu_link: str = parameter(
        "", "link that carries the IMU; empty: robot_config's, else the frame_id of imu"
    )
    imu_timeout: float = parameter(
        0.2, "s, largest time between imu and joint_states", (0.001, 60.0)
    )
    joint_timeout: float = parameter(
        0.5,
        "s, silence of joint_states after which the CoM is not known; largest time between parts "
        "of the joints, and between a wrench and joint_states",
        (0.001, 60.0),
    )
    publish_jacobian: bool = parameter(True, "publish com/jacobian")
    display_rate_hz: float = parameter(
        30.0, "1/s, rate of com/markers, sesc and /tf; 0: none of them", (0.0, 1000.0)
    )
    assumed_joints: tuple[str, ...] = parameter((), "joints that joint_states does not carry ...")
    assumed_positions: tuple[float, ...] = parameter((), "... and their positions, rad or m")
    contact_force: float = parameter(
        5.0, "N, force across a sole from which its foot counts as in contact", (0.0, 1e6)
    )
    contact_tolerance: float = parameter(
        0.005,
        "m, height over the lowest foot up to which a foot counts as in contact where forces are "
        "not known",
        (0.0, 1.0),
    )
    frame_prefix: str = parameter("", 'stands in front of every frame name, e.g. "robot1/"')

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
