"""The true centre of mass of any URDF by statically equivalent serial chains (no ROS)."""

from com_model.audit import AuditReport, Finding, audit
from com_model.exceptions import (
    ComModelError,
    ConfigError,
    GeometryError,
    ShapeError,
    UnknownNameError,
    UrdfError,
)
from com_model.kinematics import link_pose, link_poses
from com_model.model import RobotModel
from com_model.robot_config import Foot, RobotConfig, Servo, ServoGains
from com_model.support import SupportPolygon, fit_plane

__all__ = [
    "AuditReport",
    "ComModelError",
    "ConfigError",
    "Finding",
    "Foot",
    "GeometryError",
    "RobotConfig",
    "RobotModel",
    "Servo",
    "ServoGains",
    "ShapeError",
    "SupportPolygon",
    "UnknownNameError",
    "UrdfError",
    "audit",
    "fit_plane",
    "link_pose",
    "link_poses",
]
