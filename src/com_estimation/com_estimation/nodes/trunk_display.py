"""What a person looks at: the trunk's CoM, how sure it is, and the forces on the feet.

Publishes:
    trunk_com/markers (visualization_msgs/MarkerArray): a ball at the CoM, the ellipsoid of three
        standard deviations, a ball at the URDF's CoM, arrows of the ground's forces.
    /tf (tf2_msgs/TFMessage): frame `trunk_com`, parallel to the root link.
"""

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.node import Node
from visualization_msgs.msg import Marker, MarkerArray

from com_estimation.nodes.trunk_robot import TrotRobot
from com_estimation.trunk.interface import Status, TrunkEstimate
from com_model.dynamics import GRAVITY
from com_ros.conversions import NS_PER_S
from com_ros.markers import MarkerMaker, clear_markers
from com_ros.qos import RESULT
from com_ros.tf import FramePublisher

RED = (0.85, 0.1, 0.1, 1.0)
PALE_RED = (0.85, 0.1, 0.1, 0.25)
GREY = (0.5, 0.5, 0.5, 1.0)
GREEN = (0.1, 0.7, 0.25, 1.0)
LIFETIME_NS = NS_PER_S  # markers of a node that died vanish
SIGMAS = 3.0
FULL_ARROW = 0.5  # m, for a force as large as the robot's weight


class TrotDisplay:
    """Shows estimates.

    Args:
        node: that publishes.
        frame_prefix: stands in front of every frame name.
    """

    def __init__(self, node: Node, frame_prefix: str = "") -> None:
        self._markers = node.create_publisher(MarkerArray, "trunk_com/markers", RESULT)
        self._frames = FramePublisher(node, frame_prefix)
        self._maker = MarkerMaker(LIFETIME_NS)
        self._shown = False

    def show(self, estimate: TrunkEstimate, robot: TrotRobot, stamp: Time) -> None:
        """Show an estimate; what is not known is not shown."""
        known = estimate.status is not Status.UNKNOWN and bool(np.isfinite(estimate.com).all())
        if known:
            self._frames.send(stamp, robot.model.root_link, [("trunk_com", estimate.com)])
        if not self._markers.get_subscription_count():
            return
        if self._shown and not known:
            self._markers.publish(clear_markers())
        self._shown = known
        self._maker.at(robot.frame, stamp)
        markers = self._trunk(estimate, robot) if known else []
        self._markers.publish(MarkerArray(markers=markers + self._forces(robot)))

    def _trunk(self, estimate: TrunkEstimate, robot: TrotRobot) -> list[Marker]:
        size = _size(robot)
        com, maker = estimate.com, self._maker
        markers = [
            maker.sphere("trunk_com", com, size, RED),
            maker.sphere("urdf_com", com - estimate.offset_from_urdf, size, GREY),
        ]
        if np.isfinite(estimate.covariance).all():
            cloud = maker.ellipsoid("deviation", com, estimate.covariance, SIGMAS, PALE_RED)
            markers.append(cloud)
        return markers

    def _forces(self, robot: TrotRobot) -> list[Marker]:
        meter, width = robot.pipeline.meter, 0.3 * _size(robot)
        scale = FULL_ARROW / (robot.model.mass * GRAVITY)
        rows = zip(robot.legs, meter.points, meter.latest.forces, strict=True)
        return [
            self._maker.arrow(f"force_{leg.name}", point, scale * force, width, GREEN)
            for leg, point, force in rows
            if np.isfinite(force).all() and np.isfinite(point).all()
        ]


def _size(robot: TrotRobot) -> float:
    return 0.02 * float(robot.model.mass) ** (1.0 / 3.0)  # m: 4 cm for 7 kg, 14 cm for 350 kg
