"""What trunk_estimator publishes of its estimates.

Publishes:
    trunk_com (com_msgs/TrunkCom): always, also when nothing is known.
    ground_reaction (com_msgs/GroundReaction): when there is a model and someone listens.
    robot_description_corrected (std_msgs/String, latched): with publish_corrected, the URDF with
        the trunk's mass and CoM as found; when converged, at most once a second.
"""

import math

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.node import Node
from std_msgs.msg import String

from com_estimation.nodes.trunk_conversions import numpy_to_ground_reaction, numpy_to_trunk_com
from com_estimation.nodes.trunk_parameters import Parameters
from com_estimation.nodes.trunk_robot import TrotRobot
from com_estimation.trunk.interface import Status, TrunkEstimate
from com_model import RobotModel, UrdfError
from com_model.urdf.editing import edit_inertials
from com_model.urdf.root_body import correct_root_body
from com_msgs.msg import GroundReaction, TrunkCom
from com_ros.qos import LATCHED, RESULT
from com_ros.throttle import ThrottledLog

CORRECTED_PERIOD = 1.0  # s between two corrected URDFs
SLACK = 1e-4  # s that a message may be early and still count as due


class TrotOutput:
    """Publishes estimates, at most at a rate; a change of the status is published at once.

    Args:
        node: that publishes.
        p: its parameters.
    """

    def __init__(self, node: Node, p: Parameters) -> None:
        self._method = p.method
        self._period = 1.0 / p.publish_rate_hz
        self._trunk = node.create_publisher(TrunkCom, "trunk_com", RESULT)
        self._forces = node.create_publisher(GroundReaction, "ground_reaction", RESULT)
        self._trunk_msg, self._forces_msg = TrunkCom(), GroundReaction()
        self._due = -math.inf  # s, when the next one is
        self._status: Status | None = None

    def publish(self, estimate: TrunkEstimate, robot: TrotRobot | None, stamp: Time) -> bool:
        """Publish an estimate if it is due; True when it was."""
        due = self._is_due(estimate.time)
        if not due and estimate.status is self._status:
            return False
        self._status = estimate.status
        frame = robot.frame if robot else ""
        msg = numpy_to_trunk_com(estimate, self._method, stamp, frame, self._trunk_msg)
        self._trunk.publish(msg)
        if robot is not None and self._forces.get_subscription_count():
            self._publish_forces(robot, stamp)
        return True

    def _is_due(self, time: float) -> bool:
        """By a steady beat, which updates at another rate may be a little ahead of or behind."""
        if 0.0 < self._due - time - SLACK < 2.0 * self._period:
            return False
        following = self._due + self._period
        steady = abs(following - time) < 2.0 * self._period
        self._due = max(following, time) if steady else time + self._period
        return True

    def _publish_forces(self, robot: TrotRobot, stamp: Time) -> None:
        legs = [leg.name for leg in robot.legs]
        feet = [leg.foot.frame for leg in robot.legs]
        self._forces.publish(
            numpy_to_ground_reaction(
                robot.pipeline.meter.latest, legs, feet, stamp, robot.frame, self._forces_msg
            )
        )


class CorrectedDescription:
    """Publishes the URDF with the trunk's mass and CoM as found.

    Args:
        node: that publishes.
        p: its parameters.
        log: for what cannot be corrected.
    """

    def __init__(self, node: Node, p: Parameters, log: ThrottledLog) -> None:
        self._publisher = node.create_publisher(String, "robot_description_corrected", LATCHED)
        self._change, self._mass_change = p.corrected_change, p.corrected_mass_change
        self._log = log
        self.forget()

    def forget(self) -> None:
        """Take the next estimate as a change; for a new model."""
        self._time, self._mass, self._com = -math.inf, math.nan, np.full(3, np.nan)

    def update(self, estimate: TrunkEstimate, model: RobotModel) -> None:
        """Publish when an estimate has converged and is another than the one before."""
        if estimate.status is not Status.CONVERGED or not self._is_news(estimate):
            return
        self._time, self._mass, self._com = estimate.time, estimate.mass, estimate.com
        try:
            change = correct_root_body(model, estimate.mass, estimate.com)
            self._publisher.publish(String(data=edit_inertials(model.xml, change)))
        except UrdfError as error:
            self._log.warn("corrected", f"no robot_description_corrected: {error}")

    def _is_news(self, estimate: TrunkEstimate) -> bool:
        if 0.0 <= estimate.time - self._time < CORRECTED_PERIOD:
            return False
        if not (math.isfinite(estimate.mass) and np.isfinite(estimate.com).all()):
            return False
        moved = float(np.abs(estimate.com - self._com).max())
        gained = abs(estimate.mass - self._mass) / estimate.mass
        return not (moved <= self._change and gained <= self._mass_change)  # True for NaN, too
