"""The messages that sesc_publisher sends for each sample of the joints.

Publishes:
    com (com_msgs/CenterOfMass): always, also when the CoM is not known.
    com/point (geometry_msgs/PointStamped), com/jacobian (com_msgs/ComJacobian): only when it is
        known and someone listens.
"""

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped
from rclpy.node import Node

from com_estimation.nodes.com_conversions import numpy_to_center_of_mass, numpy_to_com_jacobian
from com_estimation.whole_body.com_state import ComState
from com_msgs.msg import CenterOfMass, ComJacobian
from com_ros.conversions import numpy_to_point
from com_ros.qos import RESULT


class ComOutput:
    """Publishes states of the CoM; its messages are filled again and again.

    Args:
        node: that publishes.
        with_jacobian: False for no com/jacobian.
    """

    def __init__(self, node: Node, *, with_jacobian: bool) -> None:
        self._com = node.create_publisher(CenterOfMass, "com", RESULT)
        self._point = node.create_publisher(PointStamped, "com/point", RESULT)
        self._jacobian = (
            node.create_publisher(ComJacobian, "com/jacobian", RESULT) if with_jacobian else None
        )
        self._com_msg, self._point_msg = CenterOfMass(), PointStamped()
        self._jacobian_msg = ComJacobian()

    def publish(self, state: ComState, stamp: Time, frame: str, joint_names: list[str]) -> None:
        """Publish a state.

        Args:
            state: what is known.
            stamp: of the joint_states message that it belongs to.
            frame: root link, empty without a model.
            joint_names: n columns of the Jacobian.
        """
        com = numpy_to_center_of_mass(state, stamp, frame, self._com_msg)
        self._com.publish(com)
        if state.jacobian is None:
            return
        if self._point.get_subscription_count():
            self._point_msg.header = com.header
            numpy_to_point(state.position, self._point_msg.point)
            self._point.publish(self._point_msg)
        if self._jacobian is not None and self._jacobian.get_subscription_count():
            matrix, position, out = state.jacobian, state.position, self._jacobian_msg
            self._jacobian.publish(
                numpy_to_com_jacobian(joint_names, matrix, position, stamp, frame, out)
            )
