"""Sensor messages (CDR bytes) to arrays, in batches of messages of one shape.

rosbags decodes the first message of a shape. Those that differ from it in stamp and numbers only
are sliced by numpy, many at a time.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.typesys import (
    Stores,
    get_types_from_idl,
    get_types_from_msg,
    get_typestore,
)
from rosbags.typesys.store import Typestore

from com_bags.exceptions import DefinitionError
from com_model.arrays import Array, Indices
from com_model.text import listing

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


# of messages of one length in one block; the others are decoded one by one
_MOST_SHAPES = 8


@dataclass(frozen=True, eq=False)
class Batch:
    """Messages of one shape, in the order of the bag.

    Attributes:
        rows: (N,) indices in the block.
        stamps: (N,) ns, of the headers.
        frame: The frame_id of their headers.
        names: k joints of a JointState.
        numbers: (N, k) by field; (N, 0) of a list that is empty.
    """

    rows: Indices
    stamps: Indices
    frame: str
    names: tuple[str, ...]
    numbers: Mapping[str, Array]


class Decoder:
    """Decodes the messages of one topic, of one of FIELDS; `errors` counts the others by reason.

    `store` has the types where the bag's own definition differs (foreign_store()).
    """

    def __init__(self, type_name: str, store: Typestore | None = None) -> None:
        self._type = type_name
        self._shapes = 0 if store else _MOST_SHAPES
        self._store = store or get_typestore(Stores.LATEST)
        self.errors: Counter[str] = Counter()

    def decode(self, payloads: Sequence[bytes]) -> list[Batch]:
        """Decodes a block; messages that cannot be decoded are counted in `errors`."""
        lengths: dict[int, list[int]] = {}
        for i, payload in enumerate(payloads):
            lengths.setdefault(len(payload), []).append(i)
        batches: list[Batch] = []
        for indices in lengths.values():
            left = np.array(indices)
            for _ in range(self._shapes):
                first, left = self._one_by_one(payloads, left[:1]), left[1:]
                if first and len(left):
                    first[0], left = self._add_same(payloads, first[0], left)
                batches += first
                if not len(left):
                    break
            batches += self._one_by_one(payloads, left)
        return batches

    def _add_same(
        self, payloads: Sequence[bytes], first: Batch, indices: Indices
    ) -> tuple[Batch, Indices]:
        """A message with those that differ from it in stamp and numbers only; the other indices."""
        length = len(payloads[indices[0]])
        starts, end = _starts(self._type, first)
        if end != length:
            return first, indices
        indices = np.concatenate((first.rows, indices))
        rows = np.frombuffer(b"".join(payloads[i] for i in indices), np.uint8).reshape(
            -1, length
        )
        fixed = np.ones(length, dtype=np.bool_)
        fixed[4:12] = False
        for start, values in zip(starts, first.numbers.values(), strict=True):
            fixed[start : start + 8 * values.shape[1]] = False
        same = (rows[:, fixed] == rows[0, fixed]).all(axis=1)
        rows, order = rows[same], "<" if rows[0, 1] else ">"
        seconds, rest = rows[:, 4:12].copy().view(f"{order}u4").astype(np.int64).T
        numbers = {}
        for start, (field, values) in zip(starts, first.numbers.items(), strict=True):
            part = (
                rows[:, start : start + 8 * values.shape[1]].copy().view(f"{order}f8")
            )
            numbers[field] = part.astype(np.float64).reshape(len(rows), values.shape[1])
        stamps = seconds.astype(np.int32).astype(np.int64) * 1_000_000_000 + rest
        return Batch(indices[same], stamps, first.frame, first.names, numbers), indices[
            ~same
        ]

    def _one_by_one(self, payloads: Sequence[bytes], indices: Indices) -> list[Batch]:
        """Lets rosbags decode messages, and puts those of one shape together."""
        entries: dict[tuple, list[tuple[int, int, list[Array]]]] = {}
        for i in indices.tolist():
            try:
                message: Any = self._store.deserialize_cdr(payloads[i], self._type)
                stamp, frame = message.header.stamp, str(message.header.frame_id)
                names = tuple(message.name) if self._type == JOINT_STATE else ()
                numbers = [
                    _numbers(getattr(message, f), n)
                    for f, n in FIELDS[self._type].items()
                ]
                time_ns = stamp.sec * 1_000_000_000 + stamp.nanosec
            except Exception as error:  # rosbags raises many types here
                self.errors[f"{type(error).__name__}: {error}"] += 1
            else:
                shape = frame, names, tuple(map(len, numbers))
                entries.setdefault(shape, []).append((i, time_ns, numbers))
        batches = []
        for (frame, names, _), own in entries.items():
            rows, stamps, columns = zip(*own, strict=True)
            fields = zip(
                FIELDS[self._type],
                map(np.array, zip(*columns, strict=True)),
                strict=True,
            )
            batches.append(
                Batch(np.array(rows), np.array(stamps), frame, names, dict(fields))
            )
        return batches


def _starts(type_name: str, message: Batch) -> tuple[list[int], int]:
    """Where the numbers of each field begin in the bytes of a message, and where it ends (CDR)."""
    at = 12
    for k, text in enumerate((message.frame, *message.names)):
        at += -at % 4 + 4 + len(text.encode()) + 1
        if k == 0 and type_name == JOINT_STATE:
            at += -at % 4 + 4  # the number of names
    starts = []
    for field, values in message.numbers.items():
        if FIELDS[type_name][field] is None:
            at += -at % 4 + 4
        if values.shape[1]:
            at += (
                4 - at
            ) % 8  # offsets count from behind the four bytes of the encapsulation
        starts.append(at)
        at += 8 * values.shape[1]
    return starts, at


def _numbers(value: Any, width: int | None) -> Array:
    """Flattens a field: arrays, vectors (x, y, z), quaternions, and a wrench of two vectors."""
    if hasattr(value, "force"):
        return np.concatenate((_numbers(value.force, 3), _numbers(value.torque, 3)))
    if hasattr(value, "x"):
        value = [getattr(value, name) for name in "xyzw" if hasattr(value, name)]
    if width not in (None, len(value)):
        raise ValueError(f"a field has {len(value)} numbers, expected {width}")
    return np.asarray(value, dtype=np.float64)


_IDL = "=" * 80 + "\n"
_MAX_DEFINITION = 2**16  # characters
_LARGE_ARRAY = re.compile(
    r"\[\D*\d{6,}\]|array<[^>]*\d{6,}>"
)  # what rosbags would unroll


def foreign_store(connection: Connection) -> Typestore | None:
    """Types to decode messages with, where a bag's definition is not the one that Decoder knows.

    Raises DefinitionError where it cannot be read, or lacks a field that is needed.
    """
    if connection.msgdef.format == MessageDefinitionFormat.NONE:
        return None
    known = get_typestore(Stores.LATEST).fielddefs
    try:
        types = message_types(connection)
        same = all(types[name] == known[name] for name in types if name in known)
        if same and connection.msgtype in known:
            return None
        store = get_typestore(Stores.EMPTY)
        store.register(types)
        fields = {name for name, _ in types[connection.msgtype][1]}
    except Exception as error:  # the parser raises many types
        problem = f"its definition in the bag cannot be read: {str(error)[:160]}"
        raise DefinitionError(problem, connection.msgtype) from error
    needed = {"header", *FIELDS.get(connection.msgtype, ())}
    needed |= {"name"} if connection.msgtype == JOINT_STATE else set()
    if not needed <= fields:
        raise DefinitionError(
            f"its definition in the bag has the fields {listing(sorted(fields))}; expected "
            f"{listing(sorted(needed))} too. Convert the topic before you record it",
            connection.msgtype,
        )
    return store


def message_types(connection: Connection) -> dict:
    """Definitions of a topic's type and of all that it contains, by name, from the bag.

    Args:
        connection: Of the topic.

    Raises:
        Exception: Of many types, where they cannot be read.
    """
    text = connection.msgdef.data
    if len(text) > _MAX_DEFINITION or _LARGE_ARRAY.search(text):
        raise ValueError("it is too long, or has an array of a million entries")
    if connection.msgdef.format == MessageDefinitionFormat.MSG:
        return get_types_from_msg(text, connection.msgtype)
    if not text.startswith(f"{_IDL}IDL: "):
        return get_types_from_idl(text)
    types: dict = {}
    for part in text.split(_IDL)[1:]:
        types.update(get_types_from_idl(part.split("\n", 1)[1]))
    return types
