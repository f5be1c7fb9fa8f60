"""Frames on /tf and /tf_static."""

from collections.abc import Iterable, Sequence
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from numpy.typing import ArrayLike
from rclpy.node import Node
from rclpy.publisher import Publisher
from tf2_msgs.msg import TFMessage

from com_model import Frame
from com_model.geometry.rotations import rotation_from_rpy
from com_ros.conversions import numpy_to_vector3, rotation_to_quaternion
from com_ros.qos import LATCHED, TF


class FramePublisher:
    """Publishes frames, their names with a prefix; several at one time go into one message.

    /tf is absolute, as for tf2's own broadcasters: remap it to keep those of a namespace apart.
    """

    def __init__(self, node: Node, prefix: str = "") -> None:
        self._publisher = node.create_publisher(TFMessage, "/tf", TF)
        self._prefix = prefix
        self._node = node
        self._fixed: Publisher | None = None

    def send(self, stamp: Time, parent: str, children: Iterable[tuple[Any, ...]]) -> None:
        """Publish frames: name, origin (3,) m in the parent, R_parent_child (3, 3) if turned."""
        transforms = [self._transform(stamp, parent, *child) for child in children]
        self._publisher.publish(TFMessage(transforms=transforms))

    def send_fixed(self, frames: Sequence[Frame]) -> None:
        """Publish frames that are fixed to links of the robot on /tf_static."""
        if not frames:
            return
        stamp = self._node.get_clock().now().to_msg()
        transforms = [
            self._transform(stamp, f.link, f.name, f.xyz, rotation_from_rpy(list(f.rpy)))
            for f in frames
        ]
        if self._fixed is None:
            self._fixed = self._node.create_publisher(TFMessage, "/tf_static", LATCHED)
        self._fixed.publish(TFMessage(transforms=transforms))

    def _transform(
        self, stamp: Time, parent: str, child: str, p: ArrayLike, R: ArrayLike | None = None
    ) -> TransformStamped:
        msg = TransformStamped(child_frame_id=self._prefix + child)
        msg.header.stamp = stamp
        msg.header.frame_id = self._prefix + parent
        numpy_to_vector3(p, msg.transform.translation)
        if R is not None:
            rotation_to_quaternion(R, msg.transform.rotation)
        return msg
