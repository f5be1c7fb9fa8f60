"""Conversion of serialized messages (CDR bytes) to numbers and back, without rclpy's objects.

rclpy creates an object of each vector, header and name, which takes longer than what a node
computes. Most bytes of a topic equal those of the message before: frame and names. A Reader
recognizes them and reads only the stamp before and the numbers after them; a Writer puts those
into the bytes of an earlier message with the same text. rclpy converts the rest: new frames or
names, other encodings, broken bytes.
"""

import struct
from collections import namedtuple
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState
from trajectory_msgs.msg import JointTrajectory

from com_model.arrays import Array
from com_ros import qos
from com_ros.conversions import NS_PER_S, ns_to_stamp, numpy_to_joint_trajectory

# Stand-ins with the fields of the messages. Arrays are read-only, all messages share one list of
# names, and only the first element of a covariance is read.
Stamp = namedtuple("Stamp", "sec nanosec")
Header = namedtuple("Header", "stamp frame_id")
Xyz = namedtuple("Xyz", "x y z")
Xyzw = namedtuple("Xyzw", "x y z w")
Wrench = namedtuple("Wrench", "force torque")
RawWrench = namedtuple("RawWrench", "header wrench")
RawJoints = namedtuple("RawJoints", "header name position velocity effort")
RawImu = namedtuple(
    "RawImu",
    "header orientation orientation_covariance angular_velocity angular_velocity_covariance "
    "linear_acceleration linear_acceleration_covariance",
)

NO_VALUES = np.empty(0)
MAX_TEXTS = 256  # that a reader stores; bytes between strings may differ too
MAX_TEMPLATES = 32  # that a writer stores

_ENCODING = b"\0\1\0\0"  # plain CDR, little-endian, without options
_HEAD = len(_ENCODING)  # alignment counts from here
_STAMP, _COUNT = struct.Struct("<iI"), struct.Struct("<I")
_TEXT_AT, _NATIVE_STAMP = _HEAD + _STAMP.size, struct.Struct("=iI")
_IMU, _WRENCH = struct.Struct("<4dd64x3dd64x3dd64x"), struct.Struct("<6d")


def _read_joints(body: bytes, at: int, header: Header, names: list[str]) -> RawJoints:
    arrays = []
    for _ in range(3):
        (count,) = _COUNT.unpack_from(body, at)
        at = at + 11 & -8 if count else at + 4
        arrays.append(
            np.frombuffer(body, np.float64, count, at) if count else NO_VALUES
        )
        at += 8 * count
    return RawJoints(header, names, *arrays)


def _read_imu(body: bytes, at: int, header: Header, _: list[str]) -> RawImu:
    n = _IMU.unpack_from(body, at + 7 & -8)
    q, w, a = Xyzw(*n[:4]), Xyz(*n[5:8]), Xyz(*n[9:12])
    return RawImu(header, q, n[4:5], w, n[8:9], a, n[12:])


def _read_wrench(body: bytes, at: int, header: Header, _: list[str]) -> RawWrench:
    n = _WRENCH.unpack_from(body, at + 7 & -8)
    return RawWrench(header, Wrench(Xyz(*n[:3]), Xyz(*n[3:])))


# Bytes may follow, as rclpy allows: rmw_fastrtps serializes into buffers that are too large.
_READ: dict[type, Any] = {
    JointState: _read_joints,
    Imu: _read_imu,
    WrenchStamped: _read_wrench,
}


class Reader:
    """Reads the messages of a topic from their bytes.

    A JointState, Imu or WrenchStamped becomes a RawJoints, RawImu or RawWrench, or the message
    that rclpy makes of it, as with other types. Raises what rclpy raises for bytes that are no
    message.

    Args:
        kind: type of the messages.
    """

    def __init__(self, kind: type) -> None:
        self.kind, self._read = kind, _READ.get(kind)
        self._ends: dict[int, int] = {}  # where the text ends in messages of a size
        self._texts: dict[bytes, tuple[str, list[str]]] = {}  # their frames and names

    def __call__(self, data: bytes) -> Any:
        """Returns the message.

        Args:
            data: its CDR bytes.
        """
        end = self._ends.get(len(data), 0)
        text = self._texts.get(data[_TEXT_AT:end])
        if text and self._read and data.startswith(_ENCODING):
            header = Header(Stamp(*_STAMP.unpack_from(data, _HEAD)), text[0])
            try:  # of a copy, so that numbers are aligned
                return self._read(data[_HEAD:], end - _HEAD, header, text[1])
            except (ValueError, struct.error):  # bytes are missing
                pass
        msg = deserialize_message(data, self.kind)
        if self._read is not None:
            self._store_text(data, msg.header.frame_id, getattr(msg, "name", None))
        return msg

    def _store_text(self, data: bytes, frame: str, names: list[str] | None) -> None:
        """Stores the text of a message, if it is where it is expected."""
        texts = [
            text.encode(errors="replace") + b"\0" for text in (frame, *(names or []))
        ]
        parts, at = [_COUNT.pack(len(text)) + text for text in texts], _TEXT_AT
        if names is not None:
            parts.insert(1, _COUNT.pack(len(names)))
        for part in parts:
            if not data.startswith(part, at):
                return
            at = at + len(part) + 3 & -4
        if max(len(self._texts), len(self._ends)) >= MAX_TEXTS:
            self._texts, self._ends = {}, {}
        self._ends[len(data)] = at
        self._texts[data[_TEXT_AT:at]] = frame, names or []


class Template:
    """The bytes of a message, in which stamp and numbers can be replaced.

    `runs` are its numbers, float64; each run contains those that directly follow each other.

    Args:
        msg: whose first field is a Header.

    Raises:
        ValueError: the message does not contain these numbers.
    """

    def __init__(self, msg: Any, *runs: Sequence[float]) -> None:
        self._data, self._runs, at = bytearray(serialize_message(msg)), [], _TEXT_AT
        for run in runs:
            numbers = struct.Struct(f"={len(run)}d")
            values, at = numbers.pack(*run), at + (_HEAD - at) % 8
            while not self._data.startswith(
                values, at
            ):  # numbers are aligned, zeros may pad them
                at += 8
                if at >= len(self._data):
                    raise ValueError(
                        "the message does not have these numbers, one after the other"
                    )
            self._runs.append((numbers.pack_into, at))
            at += numbers.size

    def fill(self, stamp_ns: int, *runs: Sequence[float]) -> bytes:
        """Returns the bytes with another stamp and other numbers; runs as long as before.

        Args:
            stamp_ns: ns.
            *runs: Numbers of each run that is contiguous in the message.
        """
        _NATIVE_STAMP.pack_into(self._data, _HEAD, *divmod(stamp_ns, NS_PER_S))
        for (pack_into, at), run in zip(self._runs, runs, strict=True):
            pack_into(self._data, at, *run)
        return bytes(self._data)


class Writer:
    """Publishes the messages of a topic, as bytes where only stamp and numbers are new.

    Args:
        node: that publishes.
        kind: type of the messages.
        topic: its name.
    """

    def __init__(self, node: Node, kind: type, topic: str) -> None:
        self._publisher = node.create_publisher(kind, topic, qos.RESULT)
        self._text: Hashable = (
            None  # of the last message, all but its stamp and numbers
        )
        # of this text, if it was published twice in a row
        self._template: Template | None = None
        self._templates: dict[Hashable, Template] = {}

    def publish(
        self,
        text: Hashable,
        stamp_ns: int,
        runs: Sequence[Sequence[float]],
        make: Callable[[], Any],
    ) -> None:
        """Publishes a message, by filling the bytes of an earlier one where only numbers differ.

        Args:
            text: all of the message that is no number and no stamp.
            stamp_ns: ns, of its header.
            runs: the numbers; see Template.
            make: creates the message where there are no bytes with this text yet.
        """
        again = text == self._text
        if not again:
            self._text, self._template = text, self._templates.get(text)
        if self._template is not None:
            self._publisher.publish(self._template.fill(stamp_ns, *runs))
            return
        msg = make()
        self._publisher.publish(msg)
        if again:
            if len(self._templates) >= MAX_TEMPLATES:
                self._templates.clear()
            self._template = self._templates[text] = Template(msg, *runs)


class TrajectoryWriter:
    """Publishes joint targets on joint_trajectory.

    Args:
        node: that publishes.
    """

    def __init__(self, node: Node) -> None:
        self._writer = Writer(node, JointTrajectory, "joint_trajectory")

    def publish(
        self,
        names: Sequence[str],
        times: Sequence[float],
        q: Array,
        qd: Array,
        stamp_ns: int,
    ) -> None:
        """Publishes the trajectory that numpy_to_joint_trajectory makes.

        Args:
            names: of the n joints.
            times: (N,) s after the stamp.
            q: (N, n) rad or m.
            qd: (N, n) rad/s or m/s.
            stamp_ns: ns, of the start.

        Raises:
            ConversionError: a number is not finite.
        """

        def make() -> JointTrajectory:
            return numpy_to_joint_trajectory(names, times, q, qd, ns_to_stamp(stamp_ns))

        finite = np.isfinite(q).all() and np.isfinite(qd).all()
        runs = [
            row for both in zip(q.tolist(), qd.tolist(), strict=True) for row in both
        ]
        text = (tuple(names), *times) if finite else None
        self._writer.publish(text, stamp_ns, runs, make)
