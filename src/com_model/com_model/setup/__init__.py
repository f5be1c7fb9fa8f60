"""A robot's configuration from its URDF: legs, feet, posture, sensors, servos, gait (no ROS)."""

from com_model.setup.describe import RobotSetup, describe
from com_model.setup.writing import to_yaml

__all__ = ["RobotSetup", "describe", "to_yaml"]
