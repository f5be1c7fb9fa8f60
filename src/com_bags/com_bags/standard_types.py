"""Types of standard messages that are read, and where their numbers are."""

from collections.abc import Mapping
from types import MappingProxyType

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH = "geometry_msgs/msg/WrenchStamped"
IMU = "sensor_msgs/msg/Imu"
POINT = "geometry_msgs/msg/PointStamped"

FIELDS: Mapping[str, Mapping[str, int | None]] = MappingProxyType(
    {
        JOINT_STATE: {"position": None, "velocity": None, "effort": None},
        WRENCH: {"wrench": 6},
        POINT: {"point": 3},
        IMU: {
            "orientation": 4,
            "orientation_covariance": 9,
            "angular_velocity": 3,
            "angular_velocity_covariance": 9,
            "linear_acceleration": 3,
            "linear_acceleration_covariance": 9,
        },
    }
)
"""Float64 fields after the header (and the names of a JointState); None: a list of any length."""


STAMP = {"sec": "header.stamp.sec", "nanosec": "header.stamp.nanosec"}
"""Paths of a header's stamp, by key."""
