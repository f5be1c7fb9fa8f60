"""Sensor messages (CDR bytes) to arrays, in batches of messages with the same texts and lengths."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.typesys import (
    Stores,
    get_types_from_idl,
    get_types_from_msg,
    get_typestore,
)

from com_bags.channels import FIELDS, JOINT_STATE, STAMP
from com_bags.exceptions import DefinitionError
from com_bags.message_layout import NumberReader, Types
from com_model.arrays import Array, Indices
from com_model.text import listing


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
    """Decodes the messages of one topic, of one of FIELDS.

    Args:
        type_name: Their type.
        types: Definitions of the types, where the bag's own differ; None: those of ROS 2.

    Attributes:
        errors: Messages that cannot be decoded, by reason.
    """

    def __init__(self, type_name: str, types: Types | None = None) -> None:
        own = get_typestore(Stores.LATEST).fielddefs if types is None else types
        self._widths = FIELDS[type_name]
        texts = {"frame": "header.frame_id"}
        texts |= {"names": "name"} if type_name == JOINT_STATE else {}
        paths = dict(STAMP) | {field: field for field in self._widths}
        self._reader = NumberReader(own, type_name, paths, texts, exact=True)
        self.errors: Counter[str] = Counter()

    def decode(self, payloads: Sequence[bytes]) -> list[Batch]:
        """Decodes a block; messages that cannot be decoded are counted in `errors`.

        Args:
            payloads: Messages as a bag has them.
        """
        found, problems = self._reader.read(payloads)
        self.errors.update(problems)
        batches: list[Batch] = []
        for rows, values, texts in found:
            stamps = stamps_ns(values)
            numbers = {field: values[field] for field in self._widths}
            wrong = [
                f"{field} has {numbers[field].shape[1]} numbers, expected {width}"
                for field, width in self._widths.items()
                if width not in (None, numbers[field].shape[1])
            ]
            if wrong:
                self.errors[wrong[0]] += len(rows)
                continue
            (frame,) = texts["frame"]
            names = texts.get("names", ())
            batches.append(Batch(rows, stamps, frame, names, numbers))
        return batches


def stamps_ns(values: Mapping[str, Array]) -> Indices:
    """Times of headers (N,) ns, of the numbers that STAMP names."""
    seconds, rest = (values[key][:, 0].astype(np.int64) for key in STAMP)
    return np.asarray(1_000_000_000 * seconds + rest)


_IDL = "=" * 80 + "\n"
_LARGE_ARRAY = re.compile(
    r"\[\D*\d{6,}\]|array<[^>]*\d{6,}>"
)  # what rosbags would unroll


def foreign_types(connection: Connection) -> Types | None:
    """Definitions to decode messages with, where a bag's own is not the one that Decoder knows.

    Args:
        connection: Of the topic.

    Raises:
        DefinitionError: It cannot be read, or lacks a field that is needed.
    """
    if connection.msgdef.format == MessageDefinitionFormat.NONE:
        return None
    known = get_typestore(Stores.LATEST).fielddefs
    try:
        types = message_types(connection)
        same = all(types[name] == known[name] for name in types if name in known)
        if same and connection.msgtype in known:
            return None
        fields = {name for name, _ in types[connection.msgtype][1]}
    except Exception as error:  # the parser raises many types
        raise DefinitionError(
            f"its definition in the bag cannot be read: {str(error)[:160]}",
            connection.msgtype,
        ) from error
    needed = {"header", *FIELDS.get(connection.msgtype, ())}
    needed |= {"name"} if connection.msgtype == JOINT_STATE else set()
    if not needed <= fields:
        raise DefinitionError(
            f"its definition in the bag has the fields {listing(sorted(fields))}; expected "
            f"{listing(sorted(needed))} too. Convert the topic before you record it",
            connection.msgtype,
        )
    return types


def message_types(connection: Connection) -> dict:
    """Definitions of a topic's type and of all that it contains, by name, from the bag.

    Args:
        connection: Of the topic.

    Raises:
        Exception: Of many types, where they cannot be read.
    """
    text = connection.msgdef.data
    if len(text) > 2**16 or _LARGE_ARRAY.search(text):
        raise ValueError("it is too long, or has an array of a million entries")
    if connection.msgdef.format == MessageDefinitionFormat.MSG:
        return get_types_from_msg(text, connection.msgtype)
    if not text.startswith(f"{_IDL}IDL: "):
        return get_types_from_idl(text)
    types: dict = {}
    for part in text.split(_IDL)[1:]:
        types.update(get_types_from_idl(part.split("\n", 1)[1]))
    return types
