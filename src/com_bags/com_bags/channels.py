"""Types of standard messages, and by which paths their numbers are found in others."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from com_bags.exceptions import TopicError
from com_model.arrays import Array

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


ROLES = {JOINT_STATE: "joint states", IMU: "IMU", WRENCH: "wrench"}
"""Types of messages that can be made, in words."""


@dataclass(frozen=True)
class Channel:
    """Some numbers of a message, or one column of a table, in their unit.

    Attributes:
        path: See MessageLayout.slices; a table's column. "": a constant.
        scale: Factor of each number, or one for all.
        offset: Added after scaling; the constant.
    """

    path: str
    scale: tuple[float, ...] = (1.0,)
    offset: float = 0.0

    def values(self, numbers: Array) -> Array:
        """Numbers in the unit of the standard message.

        Args:
            numbers: (N, k) as they are stored.

        Returns:
            (N, k).

        Raises:
            ValueError: There is neither one factor nor one for each number.
        """
        if self.scale == (1.0,) and not self.offset:
            return numbers  # live, each operation costs
        if len(self.scale) not in (1, numbers.shape[1]):
            factors, count = len(self.scale), numbers.shape[1]
            raise ValueError(f"{self.path}: {count} numbers, but {factors} factors")
        return numbers * np.array(self.scale) + self.offset


@dataclass(frozen=True)
class Conversion:
    """How each message of a topic, or row of a table, becomes a standard message.

    Attributes:
        source: Topic of the messages; "": rows of a table.
        target: Topic of those that are made.
        type_name: Their type, of ROLES.
        fields: Channels of each field; rad, m, N m, N, rad/s, m/s^2; a quaternion as x, y, z, w.
        names: Of the joints.
        frame: The frame_id.
        clock: Of the sender, s; None: the message's header, else the time of recording.
        must_be_zero: Path of a number, and what it means where it is not 0.
    """

    source: str
    target: str
    type_name: str
    fields: Mapping[str, tuple[Channel, ...]]
    names: tuple[str, ...] = ()
    frame: str = ""
    clock: Channel | None = None
    must_be_zero: tuple[str, str] | None = None

    @property
    def channels(self) -> dict[str, Channel]:
        """Channels that are not constant, by any key."""
        return {
            f"{field} {i}": channel
            for field, channels in self.fields.items()
            for i, channel in enumerate(channels)
            if channel.path
        }

    def values(self, numbers: Mapping[str, Array], count: int) -> dict[str, Array]:
        """Numbers of the fields of N messages.

        Args:
            numbers: (N, k) of each channel, by its key.
            count: N.

        Returns:
            (N, k) by field.

        Raises:
            TopicError: There are not as many numbers as the field has.
        """
        try:
            found = {
                field: np.hstack(
                    [
                        channel.values(numbers[f"{field} {i}"])
                        if channel.path
                        else np.full((count, 1), channel.offset)
                        for i, channel in enumerate(channels)
                    ]
                )
                for field, channels in self.fields.items()
            }
        except ValueError as error:
            raise self._error(str(error)) from error
        for field, values in found.items():
            expected = FIELDS[self.type_name][field] or len(self.names)
            if values.shape[1] != expected:
                fix = ": name them in their order (joints.names)" if self.names else ""
                raise self._error(
                    (f"{field} has {values.shape[1]} numbers, expected {expected}")
                    + fix
                )
        return found

    def _error(self, problem: str) -> TopicError:
        return TopicError(problem, self.source or "table", ROLES[self.type_name])
