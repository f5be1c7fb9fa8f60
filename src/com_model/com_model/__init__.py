"""The true centre of mass of any URDF by statically equivalent serial chains (no ROS).

Throughout the package, an argument of another shape than documented raises ShapeError, and a name
that the robot does not have UnknownNameError, which lists those that it has. The public names are
imported when they are first used, so that com_model.interrupt is there before anything slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from com_model.public_names import import_when_used

if TYPE_CHECKING:
    from com_model.checks.audit import AuditReport, Issue, audit
    from com_model.dynamics.kinematics import link_pose, link_poses
    from com_model.exceptions import (
        ComModelError,
        ConfigError,
        ConfigWarning,
        GeometryError,
        ShapeError,
        UnknownNameError,
        UnknownRobotError,
        UrdfError,
    )
    from com_model.geometry.support import SupportPolygon, fit_plane
    from com_model.legs import Leg, quadruped_legs
    from com_model.model import Frame, RobotModel
    from com_model.robot_config import Foot, RobotConfig, Servo, ServoGains
    from com_model.robots import RobotFiles, find_robot, load_robot
    from com_model.sesc.sesc import Sesc
    from com_model.status import Status

__getattr__, __all__ = import_when_used(__name__, __file__)
