"""Sensor messages (CDR bytes) to arrays: many messages of one layout at a time.

Where a number is stored in a message depends on the lengths of the strings and lists before it. The
first message of a layout is read step by step; its Layout says which bytes all messages of that
layout have in common, and where the numbers are. All others are compared and sliced by numpy.
"""

import re
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from com_bags.exceptions import DefinitionError, LayoutError
from com_model.arrays import Array
from com_model.text import listing

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
"""Float64 fields after the header (and the names of a JointState); None: a list of any length."""

_ORDERS = {b"\x00\x00": ">", b"\x00\x01": "<"}


@dataclass(frozen=True, eq=False)
class Layout:
    """What messages of one layout have in common."""

    template: Bytes  # (L,) bytes of the first message, 0 where others may differ
    mask: Bytes  # (L,) 255 where all are equal: lengths, frame, names
    order: str  # "<" or ">", the byte order
    frame: str
    names: tuple[str, ...]
    numbers: Mapping[str, tuple[int, int]]  # first byte and number of float64 values by field

    def matches(self, rows: Bytes) -> NDArray[np.bool_]:
        """Which rows (N, L) have this layout, (N,)."""
        different = np.bitwise_xor(rows, self.template)
        np.bitwise_and(different, self.mask, out=different)
        return np.asarray(~different.any(axis=1))

    def stamps(self, rows: Bytes) -> NDArray[np.int64]:
        """Stamps of the headers, (N,) ns."""
        times = np.ascontiguousarray(rows[:, HEADER : HEADER + 8]).view(f"{self.order}u4")
        seconds = times[:, 0].astype(np.int32).astype(np.int64)
        return np.asarray(seconds * 1_000_000_000 + times[:, 1])

    def values(self, rows: Bytes, field: str) -> Array:
        """Numbers of a field, (N, k)."""
        start, count = self.numbers[field]
        part = np.ascontiguousarray(rows[:, start : start + 8 * count])
        return part.view(f"{self.order}f8").astype(np.float64).reshape(len(rows), count)


def read_layout(payload: bytes, type_name: str) -> Layout:
    """Reads the layout of a message of one of FIELDS step by step; else LayoutError."""
    cursor = _Cursor(payload)
    cursor.skip(8)  # the stamp
    frame = cursor.text()
    names: tuple[str, ...] = ()
    if type_name == JOINT_STATE:
        names = tuple(cursor.text() for _ in range(cursor.length(5)))
    numbers = {field: cursor.doubles(count) for field, count in FIELDS[type_name].items()}
    if len(payload) - cursor.at >= 8:
        raise LayoutError(f"{len(payload) - cursor.at} bytes are left after the last field")
    mask = cursor.mask
    template = np.frombuffer(payload, dtype=np.uint8) & mask
    return Layout(template, mask, cursor.order, frame, names, numbers)


class _Cursor:
    """Reads a message from its start and marks the bytes that define its layout."""

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
        """Skips bytes that may differ; returns where they start."""
        start = self.at
        if start + size > len(self._payload):
            raise LayoutError(f"it ends after {len(self._payload)} bytes, in the middle of a field")
        self.at += size
        return start

    def length(self, least: int) -> int:
        """Reads the number of entries that follow, each of `least` bytes or more."""
        self.at += -(self.at - HEADER) % 4
        start = self.skip(4)
        self.mask[start : self.at] = 255
        count = int(struct.unpack_from(f"{self.order}I", self._payload, start)[0])
        if count * least > len(self._payload) - self.at:
            raise LayoutError(f"it declares {count} entries and ends before them")
        return count

    def text(self) -> str:
        """Reads a string."""
        size = self.length(1)
        start = self.skip(size)
        self.mask[start : self.at] = 255
        return self._payload[start : self.at].rstrip(b"\0").decode(errors="replace")

    def doubles(self, count: int | None) -> tuple[int, int]:
        """Skips float64 values; returns where they start and their number."""
        if count is None:
            count = self.length(8)
        if count == 0:
            return self.at, 0
        self.at += -(self.at - HEADER) % 8
        return self.skip(8 * count), count


_MAX_LAYOUTS = 32  # of a topic
_MAX_NEW = 8  # new layouts in one block; the remaining messages are read one by one


@dataclass(frozen=True, eq=False)
class Batch:
    """Messages of one layout, in the order of the bag."""

    rows: NDArray[np.int64]  # (N,) indices in the block
    stamps: NDArray[np.int64]  # (N,) ns, of the headers
    frame: str
    names: tuple[str, ...]  # k joints of a JointState
    numbers: Mapping[str, Array]  # (N, k) by field; (N, 0) of a list that is empty


class Decoder:
    """Decodes the messages of one topic, of one of FIELDS; `errors` counts the others by reason.

    `store` has the types where the bag's own definition differs (foreign_store()).
    """

    def __init__(self, type_name: str, store: Typestore | None = None) -> None:
        self._type = type_name
        self._store = store
        self._layouts: list[Layout] = []
        self.errors: Counter[str] = Counter()

    def decode(self, payloads: Sequence[bytes]) -> list[Batch]:
        """Decodes a block; messages that cannot be decoded are counted in `errors`."""
        if self._store is not None:
            return self._one_by_one(payloads, self._store)
        lengths = np.fromiter(map(len, payloads), dtype=np.int64, count=len(payloads))
        batches: list[Batch] = []
        for length in np.unique(lengths).tolist():
            indices = np.flatnonzero(lengths == length)
            same = (
                payloads
                if len(indices) == len(payloads)
                else [payloads[i] for i in indices.tolist()]
            )
            rows = np.frombuffer(b"".join(same), dtype=np.uint8).reshape(len(indices), length)
            batches += self._same_length(rows, indices)
        return batches

    def _same_length(self, rows: Bytes, indices: NDArray[np.int64]) -> list[Batch]:
        batches: list[Batch] = []
        for layout in [known for known in self._layouts if len(known.mask) == rows.shape[1]]:
            if not len(rows):
                return batches
            rows, indices = self._decode_rows(layout, rows, indices, batches)
        for _ in range(_MAX_NEW):
            if not len(rows):
                return batches
            new = self._add_layout(rows[0])
            if new is None:
                rows, indices = rows[1:], indices[1:]
            else:
                rows, indices = self._decode_rows(new, rows, indices, batches)
        for i in range(len(rows)):
            single = self._add_layout(rows[i])
            if single is not None:
                self._decode_rows(single, rows[i : i + 1], indices[i : i + 1], batches)
        return batches

    def _add_layout(self, row: Bytes) -> Layout | None:
        try:
            layout = read_layout(row.tobytes(), self._type)
        except LayoutError as error:
            self.errors[str(error)] += 1
            return None
        self._layouts = [layout, *self._layouts[: _MAX_LAYOUTS - 1]]
        return layout

    def _decode_rows(
        self, layout: Layout, rows: Bytes, indices: NDArray[np.int64], batches: list[Batch]
    ) -> tuple[Bytes, NDArray[np.int64]]:
        """Decodes the rows that match a layout into `batches`, and returns the others."""
        match = layout.matches(rows)
        if not match.any():
            return rows, indices
        if match.all():
            matching, left = rows, rows[:0]
        else:
            matching, left = rows[match], rows[~match]
        numbers = {field: layout.values(matching, field) for field in layout.numbers}
        stamps = layout.stamps(matching)
        batches.append(Batch(indices[match], stamps, layout.frame, layout.names, numbers))
        return left, indices[~match]

    def _one_by_one(self, payloads: Sequence[bytes], store: Typestore) -> list[Batch]:
        batches = []
        for i, payload in enumerate(payloads):
            try:
                message = store.deserialize_cdr(payload, self._type)
                batches.append(_batch(message, self._type, i))
            except Exception as error:  # rosbags raises many types here
                self.errors[f"{type(error).__name__}: {error}"] += 1
        return batches


def _batch(message: object, type_name: str, index: int) -> Batch:
    """A batch of one message that rosbags has decoded."""
    header = getattr(message, "header")  # noqa: B009 (types made at run time)
    stamp = header.stamp.sec * 1_000_000_000 + header.stamp.nanosec
    names = tuple(getattr(message, "name", ())) if type_name == JOINT_STATE else ()
    numbers = {field: _numbers(message, field)[None] for field in FIELDS[type_name]}
    where = np.array([index]), np.array([stamp], dtype=np.int64)
    return Batch(*where, str(header.frame_id), names, numbers)


def _numbers(message: object, field: str) -> Array:
    """Flattens a field: arrays, vectors (x, y, z), quaternions, and a wrench of two vectors."""
    value = getattr(message, field)
    if field == "wrench":
        return np.concatenate((_numbers(value, "force"), _numbers(value, "torque")))
    if hasattr(value, "x"):
        parts = [value.x, value.y, value.z, *([value.w] if hasattr(value, "w") else [])]
        return np.array(parts, dtype=np.float64)
    return np.asarray(value, dtype=np.float64)


_IDL = "=" * 80 + "\n"
_MAX_DEFINITION = 2**16  # characters
_LARGE_ARRAY = re.compile(r"\[\D*\d{6,}\]|array<[^>]*\d{6,}>")  # what rosbags would unroll


def foreign_store(connection: Connection) -> Typestore | None:
    """Types to decode messages with, where a bag's definition is not the one that Decoder knows.

    Raises DefinitionError where it cannot be read, or lacks a field that is needed.
    """
    if connection.msgdef.format == MessageDefinitionFormat.NONE:
        return None
    known = get_typestore(Stores.LATEST).fielddefs
    try:
        text = connection.msgdef.data
        if len(text) > _MAX_DEFINITION or _LARGE_ARRAY.search(text):
            raise ValueError("it is too long, or has an array of a million entries")
        types = _types(connection)
        if all(types.get(name) == known.get(name) for name in types if name in known):
            return None
        store = get_typestore(Stores.EMPTY)
        store.register(types)
        fields = {name for name, _ in types[connection.msgtype][1]}
    except Exception as error:  # the parser raises many types
        problem = f"its definition in the bag cannot be read: {str(error)[:160]}"
        raise DefinitionError(problem, connection.msgtype) from error
    needed = {"header", *FIELDS[connection.msgtype]}
    needed |= {"name"} if connection.msgtype == JOINT_STATE else set()
    if not needed <= fields:
        raise DefinitionError(
            f"its definition in the bag has the fields {listing(sorted(fields))}; expected "
            f"{listing(sorted(needed))} too. Convert the topic before you record it",
            connection.msgtype,
        )
    return store


def _types(connection: Connection) -> dict:
    text = connection.msgdef.data
    if connection.msgdef.format == MessageDefinitionFormat.MSG:
        return get_types_from_msg(text, connection.msgtype)
    if not text.startswith(f"{_IDL}IDL: "):
        return get_types_from_idl(text)
    types: dict = {}
    for part in text.split(_IDL)[1:]:
        types.update(get_types_from_idl(part.split("\n", 1)[1]))
    return types
