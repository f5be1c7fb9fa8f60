"""The parameters of com_identification."""

from dataclasses import dataclass

from rclpy.node import Node

from com_identification.exceptions import IdentificationError
from com_identification.settings import IdentificationSettings
from com_ros.exceptions import ComRosError
from com_ros.parameters import (
    AssumedJoints,
    FramePrefix,
    JointTimeout,
    RobotParameters,
    declare,
    live_parameter,
    parameter,
)


@dataclass(frozen=True)
class Parameters(RobotParameters, JointTimeout, AssumedJoints, FramePrefix):
    """Parameters of the node; those of IdentificationSettings besides, see declare_settings."""

    settings: str = parameter(
        "", "path of settings (YAML) of the identification; empty: only the parameters count"
    )
    storage_directory: str = parameter(
        "", "where postures are stored; it is made if missing. Empty: no posture can be captured"
    )
    storage_name: str = parameter("postures", "of the file of postures, without .jsonl")
    export_directory: str = parameter(
        "", "where corrected URDFs may be written; it must exist. Empty: nowhere"
    )
    auto_capture: bool = live_parameter(
        False, "capture each new posture in which the robot is stationary"
    )
    end_of_stream: float = parameter(
        2.0,
        "s of real time without any reading, after which a recording has ended: with auto_capture "
        "the readings of the last posture are used",
        (0.1, 3600.0),
    )
    capture_timeout: float = live_parameter(
        30.0, "s of real time to wait until the robot is stationary", (0.1, 3600.0)
    )
    imu_link: str = parameter(
        "", "link that carries the IMU; empty: robot_config's, else the root link"
    )
    state_rate_hz: float = parameter(5.0, "1/s, rate of identification/state", (0.1, 100.0))
    check_rate_hz: float = parameter(
        2.0, "1/s, rate of identification/model_check and of the markers; 0: none", (0.0, 100.0)
    )
    com_tolerance: float = parameter(
        0.003, "m, error of the model's centre of mass above which it is reported", (0.0, 10.0)
    )
    mass_tolerance: float = parameter(
        0.02, "error of the model's mass, as a fraction, above which it is reported", (0.0, 10.0)
    )


def declare_settings(node: Node, path: str) -> IdentificationSettings:
    """Declares the settings of the identification; a parameter that is given overrides the file.

    Args:
        node: that is given parameters noise.force, capture.samples, prior.com_std, ...
        path: of a settings file that gives the defaults; empty: none.

    Raises:
        ConfigError: the file is wrong.
        ParameterError: a parameter is wrong.
    """
    base = IdentificationSettings.from_file(path) if path else IdentificationSettings()
    try:
        return declare(node, IdentificationSettings, defaults=base)
    except IdentificationError as error:
        raise ComRosError(f"parameters of the identification: {error}") from error
