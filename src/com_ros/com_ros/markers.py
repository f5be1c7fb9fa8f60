"""Shapes for rviz: each function makes one Marker; positions in the marker's frame, m."""

from dataclasses import dataclass

import numpy as np
from builtin_interfaces.msg import Duration, Time
from numpy.typing import ArrayLike
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from com_ros.conversions import ns_to_stamp, numpy_to_point, numpy_to_points, rotation_to_quaternion

Color = tuple[float, float, float, float]


@dataclass(frozen=True)
class MarkerMaker:
    """Makes markers that share a frame, a stamp and a lifetime.

    Attributes:
        frame: frame_id.
        stamp: of the data that is shown.
        lifetime_ns: after this without a new one a marker vanishes, so that nothing stale is
            shown; 0 keeps it for ever.
    """

    frame: str
    stamp: Time
    lifetime_ns: int = 0

    def sphere(self, name: str, center: ArrayLike, diameter: float, color: Color) -> Marker:
        """A ball."""
        marker = self._marker(name, Marker.SPHERE, (diameter, diameter, diameter), color)
        numpy_to_point(center, marker.pose.position)
        return marker

    def disc(
        self, name: str, center: ArrayLike, normal: ArrayLike, diameter: float, color: Color
    ) -> Marker:
        """A flat disc across `normal` (3,)."""
        marker = self._marker(name, Marker.CYLINDER, (diameter, diameter, 0.05 * diameter), color)
        numpy_to_point(center, marker.pose.position)
        rotation_to_quaternion(rotation_with_z(normal), marker.pose.orientation)
        return marker

    def line(
        self, name: str, points: ArrayLike, width: float, color: Color, *, closed: bool = False
    ) -> Marker:
        """A line through (k, 3) points; a closed one returns to the first."""
        marker = self._marker(name, Marker.LINE_STRIP, (width, 0.0, 0.0), color)
        marker.points = numpy_to_points(points)
        if closed and len(marker.points) > 2:
            marker.points.append(marker.points[0])
        return marker

    def balls(self, name: str, centers: ArrayLike, diameter: float, color: Color) -> Marker:
        """Equal balls at (k, 3) points."""
        marker = self._marker(name, Marker.SPHERE_LIST, (diameter, diameter, diameter), color)
        marker.points = numpy_to_points(centers)
        return marker

    def _marker(
        self, name: str, kind: int, scale: tuple[float, float, float], color: Color
    ) -> Marker:
        marker = Marker(ns=name, type=kind, action=Marker.ADD)
        marker.header.frame_id = self.frame
        marker.header.stamp = self.stamp
        marker.scale.x, marker.scale.y, marker.scale.z = scale
        marker.color = ColorRGBA(r=color[0], g=color[1], b=color[2], a=color[3])
        lifetime = ns_to_stamp(self.lifetime_ns)
        marker.lifetime = Duration(sec=lifetime.sec, nanosec=lifetime.nanosec)
        return marker


def clear_markers() -> MarkerArray:
    """A message that removes everything shown before."""
    return MarkerArray(markers=[Marker(action=Marker.DELETEALL)])


def rotation_with_z(direction: ArrayLike) -> np.ndarray:
    """A rotation matrix (3, 3) whose z axis is along `direction` (3,), not zero."""
    z = np.asarray(direction, dtype=np.float64)
    z = z / np.linalg.norm(z)
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
