"""The robot that a node's parameters name."""

from __future__ import annotations

from com_control.nodes.motion_parameters import DriveParameters
from com_model import RobotConfig, RobotModel
from com_ros.exceptions import ParameterError


def robot_of(settings: DriveParameters) -> tuple[RobotConfig, RobotModel]:
    """Configuration and model.

    Raises:
        ComModelError: One of the files cannot be used.
        ParameterError: A parameter is missing.
    """
    if not settings.robot_config:
        raise ParameterError("robot_config", "", "give the path of the robot's configuration")
    config = RobotConfig.from_file(settings.robot_config)
    if settings.robot_description:
        return config, RobotModel.from_urdf(settings.robot_description)
    if config.urdf is None:
        fix = f"give the robot's URDF, or the key urdf in {config.source}"
        raise ParameterError("robot_description", "", fix)
    return config, RobotModel.from_file(config.urdf)
