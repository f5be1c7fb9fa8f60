"""The true centre of mass of any URDF by statically equivalent serial chains (no ROS).

Throughout the package, an argument of another shape than documented raises ShapeError, and a name
that the robot does not have UnknownNameError, which lists those that it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from com_model.dynamics.kinematics import link_pose, link_poses
from com_model.exceptions import (
    ComModelError,
    ConfigError,
    GeometryError,
    ShapeError,
    UnknownNameError,
    UrdfError,
)
from com_model.geometry.support import SupportPolygon, fit_plane
from com_model.legs import Leg, quadruped_legs
from com_model.model import RobotModel
from com_model.robot_config import Foot, RobotConfig, Servo, ServoGains
from com_model.urdf.audit import AuditReport, Issue, audit

if TYPE_CHECKING:
    from com_model.sesc.sesc import Sesc

__all__ = [
    "AuditReport",
    "ComModelError",
    "ConfigError",
    "Foot",
    "GeometryError",
    "Issue",
    "Leg",
    "RobotConfig",
    "RobotModel",
    "Servo",
    "ServoGains",
    "Sesc",
    "ShapeError",
    "SupportPolygon",
    "UnknownNameError",
    "UrdfError",
    "audit",
    "fit_plane",
    "link_pose",
    "link_poses",
    "quadruped_legs",
]


def __getattr__(name: str) -> Any:
    """Imports Sesc when it is first used: its compiler takes longer to load than all the rest."""
    if name == "Sesc":
        from com_model.sesc.sesc import Sesc

        return Sesc
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
