"""The true centre of mass of any URDF by statically equivalent serial chains (no ROS)."""

from com_model.exceptions import ComModelError, ConfigError, ShapeError, UnknownNameError, UrdfError
from com_model.model import RobotModel

__all__ = [
    "ComModelError",
    "ConfigError",
    "RobotModel",
    "ShapeError",
    "UnknownNameError",
    "UrdfError",
]
