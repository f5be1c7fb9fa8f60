"""Bytes of sensor messages (CDR) to arrays: many messages of one shape at a time.

Where a number stands in a message depends on the lengths of the texts and lists before it. The
first message of a shape is read step by step; its Layout says which bytes all messages of that
shape have in common, and where the numbers are. All others are compared and sliced by numpy.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from com_bags.exceptions import LayoutError

Bytes = NDArray[np.uint8]

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH = "geometry_msgs/msg/WrenchStamped"
IMU = "sensor_msgs/msg/Imu"
HEADER = 4  # bytes before the message; offsets are aligned behind them

FIELDS: Mapping[str, Mapping[str, int | None]] = MappingProxyType(
    {
        JOINT_STATE: {"position": None, "velocity": None, "effort": None},
        WRENCH: {"wrench": 6},
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
"""Doubles behind the header (and the names of a JointState), with their number; None: a list."""

_ORDERS = {b"\x00\x00": ">", b"\x00\x01": "<"}


@dataclass(frozen=True, eq=False)
class Layout:
    """Messages of one shape.

    Attributes:
        template: (L,) bytes of the first one, 0 where others may differ.
        mask: (L,) 255 where all are alike: lengths, frame, names.
        order: "<" or ">", the order of bytes.
        frame: frame_id of the header.
        names: Of a JointState.
        numbers: First byte and count of doubles by field.
    """

    template: Bytes
    mask: Bytes
    order: str
    frame: str
    names: tuple[str, ...]
    numbers: Mapping[str, tuple[int, int]]

    def fits(self, rows: Bytes) -> NDArray[np.bool_]:
        """Which rows (N, L) have this shape."""
        different = np.bitwise_xor(rows, self.template)
        np.bitwise_and(different, self.mask, out=different)
        return np.asarray(~different.any(axis=1))

    def stamps(self, rows: Bytes) -> NDArray[np.int64]:
        """Stamps of the headers, (N,) ns."""
        times = np.ascontiguousarray(rows[:, HEADER : HEADER + 8]).view(f"{self.order}u4")
        seconds = times[:, 0].astype(np.int32).astype(np.int64)
        return np.asarray(seconds * 1_000_000_000 + times[:, 1])

    def values(self, rows: Bytes, field: str) -> NDArray[np.float64]:
        """Numbers of a field, (N, k)."""
        start, count = self.numbers[field]
        part = np.ascontiguousarray(rows[:, start : start + 8 * count])
        return part.view(f"{self.order}f8").astype(np.float64).reshape(len(rows), count)


def read_layout(payload: bytes, type_name: str) -> Layout:
    """Reads the shape of a message step by step.

    Args:
        payload: The message as the bag has it.
        type_name: One of FIELDS.

    Raises:
        LayoutError: It ends early, or is encoded in another way.
    """
    cursor = _Cursor(payload)
    cursor.skip(8)  # the stamp
    frame = cursor.text()
    names: tuple[str, ...] = ()
    if type_name == JOINT_STATE:
        names = tuple(cursor.text() for _ in range(cursor.length(5)))
    numbers = {field: cursor.doubles(count) for field, count in FIELDS[type_name].items()}
    if len(payload) - cursor.at >= 8:
        raise LayoutError(f"{len(payload) - cursor.at} bytes are left behind the last field")
    mask = cursor.mask
    template = np.frombuffer(payload, dtype=np.uint8) & mask
    return Layout(template, mask, cursor.order, frame, names, numbers)


class _Cursor:
    """Reads a message from its start and notes which bytes make its shape."""

    def __init__(self, payload: bytes) -> None:
        order = _ORDERS.get(payload[:2])
        if order is None:
            raise LayoutError(f"it starts with {payload[:2].hex()}; plain CDR has 0000 or 0001")
        self.order = order
        self.at = HEADER
        self.mask = np.zeros(len(payload), dtype=np.uint8)
        self.mask[:2] = 255
        self._payload = payload

    def skip(self, size: int) -> int:
        """Passes over bytes that may differ; gives where they start."""
        start = self.at
        if start + size > len(self._payload):
            raise LayoutError(f"it ends after {len(self._payload)} bytes, in the middle of a field")
        self.at += size
        return start

    def length(self, least: int) -> int:
        """Reads how many entries follow, of some bytes at least each."""
        self.at += -(self.at - HEADER) % 4
        start = self.skip(4)
        self.mask[start : self.at] = 255
        count = int(struct.unpack_from(f"{self.order}I", self._payload, start)[0])
        if count * least > len(self._payload) - self.at:
            raise LayoutError(f"it is to have {count} entries, and ends before")
        return count

    def text(self) -> str:
        """Reads a text."""
        size = self.length(1)
        start = self.skip(size)
        self.mask[start : self.at] = 255
        return self._payload[start : self.at].rstrip(b"\0").decode(errors="replace")

    def doubles(self, count: int | None) -> tuple[int, int]:
        """Passes over numbers; where they start and how many there are."""
        if count is None:
            count = self.length(8)
        if count == 0:
            return self.at, 0
        self.at += -(self.at - HEADER) % 8
        return self.skip(8 * count), count
