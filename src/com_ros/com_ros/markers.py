"""Markers and frames for RViz: each method of MarkerMaker makes one Marker, in its frame, m."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Quaternion, Transform, TransformStamped
from numpy.typing import ArrayLike
from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

from com_model import Frame
from com_model.geometry.rotations import minimal_rotation, rotation_from_rpy
from com_ros.conversions import (
    NS_PER_S,
    ns_to_stamp,
    numpy_to_point,
    numpy_to_points,
    numpy_to_vector3,
    rotation_to_quaternion,
)
from com_ros.qos import LATCHED, RESULT, TF

Color = tuple[float, float, float, float]

RED = (0.85, 0.1, 0.1, 1.0)
ORANGE = (1.0, 0.55, 0.0, 0.9)
BLUE = (0.1, 0.35, 0.85, 1.0)
GREEN = (0.1, 0.7, 0.25, 1.0)


class MarkerMaker:
    """Creates markers that share a frame, a stamp and a lifetime.

    Each name has one Marker, which is filled again the next time: creating one takes longer than
    all the rest. A returned marker must therefore be published before the next call with its
    name.

    Args:
        lifetime_ns: ns, after which RViz removes a marker; 0: never.
    """

    def __init__(self, lifetime_ns: int = 0) -> None:
        lifetime = ns_to_stamp(lifetime_ns)
        self._lifetime = Duration(sec=lifetime.sec, nanosec=lifetime.nanosec)
        self._header = Header()
        self._made: dict[str, Marker] = {}

    def set_header(self, frame: str, stamp: Time) -> None:
        """Sets frame and stamp of the markers that are created next.

        Args:
            frame: name of the frame of their positions.
            stamp: of the data that they show.
        """
        self._header = Header(frame_id=frame, stamp=stamp)

    def sphere(
        self, name: str, center: ArrayLike, diameter: float, color: Color
    ) -> Marker:
        """A sphere.

        Args:
            name: namespace of the marker.
            center: (3,) m.
            diameter: m.
            color: red, green, blue, opacity, 0 to 1.
        """
        return self._marker(name, Marker.SPHERE, (diameter,) * 3, color, center=center)

    def ellipsoid(
        self,
        name: str,
        center: ArrayLike,
        covariance: ArrayLike,
        sigmas: float,
        color: Color,
    ) -> Marker:
        """The confidence ellipsoid of a normal distribution.

        Args:
            name: namespace of the marker.
            center: (3,) m, its mean.
            covariance: (3, 3) m^2.
            sigmas: half axes in standard deviations.
            color: red, green, blue, opacity, 0 to 1.
        """
        variances, axes = np.linalg.eigh(np.asarray(covariance, dtype=np.float64))
        axes[:, 2] *= np.linalg.det(axes)  # right-handed
        sizes = 2.0 * sigmas * np.sqrt(np.maximum(variances, 0.0)).clip(min=1e-6)
        return self._marker(name, Marker.SPHERE, sizes, color, center=center, R=axes)

    def arrow(
        self, name: str, start: ArrayLike, vector: ArrayLike, width: float, color: Color
    ) -> Marker:
        """An arrow from a point along a vector.

        Args:
            name: namespace of the marker.
            start: (3,) m.
            vector: (3,) m.
            width: m, of the shaft.
            color: red, green, blue, opacity, 0 to 1.
        """
        begin = np.asarray(start, dtype=np.float64)
        ends = [begin, begin + np.asarray(vector)]
        return self._marker(
            name, Marker.ARROW, (width, 2.0 * width, 0.0), color, points=ends
        )

    def disc(
        self,
        name: str,
        center: ArrayLike,
        normal: ArrayLike,
        diameter: float,
        color: Color,
    ) -> Marker:
        """A flat disc.

        Args:
            name: namespace of the marker.
            center: (3,) m.
            normal: (3,) across it, of any length.
            diameter: m.
            color: red, green, blue, opacity, 0 to 1.
        """
        direction = np.asarray(normal, dtype=np.float64)
        R = minimal_rotation(
            np.array([0.0, 0.0, 1.0]), direction / np.linalg.norm(direction)
        )
        size = (diameter, diameter, 0.05 * diameter)
        return self._marker(name, Marker.CYLINDER, size, color, center=center, R=R)

    def line(
        self,
        name: str,
        points: ArrayLike,
        width: float,
        color: Color,
        *,
        closed: bool = False,
    ) -> Marker:
        """A line through points.

        Args:
            name: namespace of the marker.
            points: (k, 3) m.
            width: m.
            color: red, green, blue, opacity, 0 to 1.
            closed: it returns to the first point.
        """
        corners = np.asarray(points, dtype=np.float64)
        if closed and len(corners) > 2:
            corners = np.concatenate([corners, corners[:1]])
        return self._marker(
            name, Marker.LINE_STRIP, (width, 0.0, 0.0), color, points=corners
        )

    def segments(
        self, name: str, ends: ArrayLike, width: float, color: Color
    ) -> Marker:
        """Separate lines, each between two points.

        Args:
            name: namespace of the marker.
            ends: (2 k, 3) m.
            width: m.
            color: red, green, blue, opacity, 0 to 1.
        """
        return self._marker(
            name, Marker.LINE_LIST, (width, 0.0, 0.0), color, points=ends
        )

    def balls(
        self, name: str, centers: ArrayLike, diameter: float, color: Color
    ) -> Marker:
        """Spheres of the same size.

        Args:
            name: namespace of the marker.
            centers: (k, 3) m.
            diameter: m.
            color: red, green, blue, opacity, 0 to 1.
        """
        return self._marker(
            name, Marker.SPHERE_LIST, (diameter,) * 3, color, points=centers
        )

    def _marker(
        self,
        name: str,
        kind: int,
        scale: Iterable[float],
        color: Color,
        *,
        center: ArrayLike | None = None,
        R: ArrayLike | None = None,
        points: ArrayLike | None = None,
    ) -> Marker:
        marker = self._made.get(name)
        if marker is None:
            marker = self._made[name] = Marker(
                ns=name, action=Marker.ADD, lifetime=self._lifetime
            )
        marker.header, marker.type = self._header, kind
        marker.scale.x, marker.scale.y, marker.scale.z = scale
        marker.color.r, marker.color.g, marker.color.b, marker.color.a = color
        if center is not None:
            marker.pose.position = numpy_to_point(center)
        if R is not None:
            marker.pose.orientation = rotation_to_quaternion(R)
        if points is not None:
            marker.points = numpy_to_points(points)
        return marker


class MarkerOutput(MarkerMaker):
    """A topic of markers.

    Args:
        node: that publishes.
        topic: name of the topic.
        lifetime_s: s, after which RViz removes a marker: when the node ends.
    """

    def __init__(self, node: Node, topic: str, lifetime_s: float) -> None:
        super().__init__(round(lifetime_s * NS_PER_S))
        self._publisher = node.create_publisher(MarkerArray, topic, RESULT)
        self._shown = False

    @property
    def wanted(self) -> bool:
        """Whether someone subscribes the topic."""
        return self._publisher.get_subscription_count() > 0

    def show(self, markers: list[Marker]) -> None:
        """Publishes markers that this object has made.

        Args:
            markers: in the frame of set_header.
        """
        self._publisher.publish(MarkerArray(markers=markers))
        self._shown = True

    def hide(self) -> None:
        """Removes the markers that are shown."""
        if self._shown:
            clear = [Marker(action=Marker.DELETEALL)]
            self._publisher.publish(MarkerArray(markers=clear))
            self._shown = False


class FramePublisher:
    """Publishes frames with a prefix before their names; several of one time in one message.

    /tf is absolute, as for tf2's own broadcasters: remap it to keep those of a namespace apart.

    Args:
        node: that publishes.
        prefix: of every frame's name, such as "robot1/".
    """

    def __init__(self, node: Node, prefix: str = "") -> None:
        self._publisher = node.create_publisher(TFMessage, "/tf", TF)
        self._prefix = prefix
        self._node = node
        self._fixed: Publisher | None = None

    def send(
        self, stamp: Time, parent: str, children: Iterable[tuple[Any, ...]]
    ) -> None:
        """Publishes frames on /tf, if there is a subscriber.

        Args:
            stamp: of the sample that they were computed from.
            parent: name of the link in whose frame they are.
            children: name, origin (3,) m in the parent, and R_parent_child (3, 3) if rotated.
        """
        if self._publisher.get_subscription_count():  # else nobody receives them
            transforms = [self._transform(stamp, parent, *child) for child in children]
            self._publisher.publish(TFMessage(transforms=transforms))

    def send_fixed(self, frames: Sequence[Frame]) -> None:
        """Publishes frames that are fixed to links of the robot on /tf_static.

        Args:
            frames: of the configuration or the model; none: nothing is published.
        """
        if not frames:
            return
        stamp = self._node.get_clock().now().to_msg()
        transforms = [
            self._transform(
                stamp, f.link, f.name, f.xyz, rotation_from_rpy(list(f.rpy))
            )
            for f in frames
        ]
        if self._fixed is None:
            self._fixed = self._node.create_publisher(TFMessage, "/tf_static", LATCHED)
        self._fixed.publish(TFMessage(transforms=transforms))

    def _transform(
        self,
        stamp: Time,
        parent: str,
        child: str,
        p: ArrayLike,
        R: ArrayLike | None = None,
    ) -> TransformStamped:
        turn = Quaternion() if R is None else rotation_to_quaternion(R)
        return TransformStamped(
            header=Header(stamp=stamp, frame_id=self._prefix + parent),
            child_frame_id=self._prefix + child,
            transform=Transform(translation=numpy_to_vector3(p), rotation=turn),
        )
