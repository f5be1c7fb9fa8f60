"""The parameters of sesc_publisher."""

from dataclasses import dataclass

from com_ros.parameters import AssumedJoints, SensorParameters, live_parameter, parameter


@dataclass(frozen=True)
class Parameters(SensorParameters, AssumedJoints):
    """Parameters of sesc_publisher."""

    feet: tuple[str, ...] = parameter(
        (), "sole frames, links of the URDF; empty: those of robot_config"
    )
    use_imu: bool = parameter(
        False, "gravity's direction from imu; false: the ground is horizontal"
    )
    imu_link: str = parameter(
        "", "link that carries the IMU; empty: robot_config's, else the frame_id of imu"
    )
    publish_jacobian: bool = parameter(True, "publish com/jacobian")
    display_rate_hz: float = parameter(
        30.0, "1/s, rate of com/markers, sesc and /tf; 0: none of them", (0.0, 1000.0)
    )
    contact_force: float = live_parameter(
        5.0, "N, normal force from which a foot counts as in contact", (0.0, 1e6)
    )
    contact_tolerance: float = live_parameter(
        0.005,
        "m, height over the lowest foot up to which a foot counts as in contact where forces are "
        "not known",
        (0.0, 1.0),
    )
