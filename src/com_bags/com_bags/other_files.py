"""Logs that are no ROS 2 bags, as files of a bag: ROS 1 bags, and tables by a mapping."""

import heapq
import importlib
from bz2 import BZ2Decompressor
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rosbags.interfaces import Connection, ConnectionExtRosbag2, MessageDefinition
from rosbags.interfaces import MessageDefinitionFormat as Format
from rosbags.rosbag1 import Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from com_bags.channels import Conversion
from com_bags.conversions import StandardWriter
from com_bags.exceptions import BagError, StorageError
from com_bags.mapping import LogMapping
from com_bags.storage import MAX_RECORD, Message
from com_bags.tables import Table, read_table
from com_model.arrays import Array, Indices

ROS1_MAGIC = b"#ROSBAG V2.0"
_LZ4, _BZ2 = b"\x04\x22\x4d\x18", b"BZh"  # as compressed chunks begin
_HEADER = "std_msgs/msg/Header"


def standard_definition(type_name: str) -> MessageDefinition:
    """The definition of a standard type, as bags contain it.

    Args:
        type_name: Of the type.
    """
    store = get_typestore(Stores.LATEST)
    text, _ = store.generate_msgdef(type_name, ros_version=2)
    return MessageDefinition(Format.MSG, text)


class Ros1File:
    """A bag of ROS 1, whose messages are given as those of ROS 2.

    Args:
        path: Of the file.

    Attributes:
        connections: With their numbers of messages.
        damage: Empty: a damaged file is refused.

    Raises:
        BagError: It is damaged, or was not closed.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.damage = path, ""
        self._store = get_typestore(Stores.EMPTY)
        self.connections: list[Connection] = []
        latest = get_typestore(Stores.LATEST).fielddefs
        # the stamp of ROS 1 has the same fields, and its header one more, which rosbags leaves out
        types = {
            name: latest[name]
            for name in (
                "builtin_interfaces/msg/Time",
                "builtin_interfaces/msg/Duration",
            )
        }
        try:
            with Reader(path) as reader:
                own = list(reader.connections)
            readable = []
            for each in own:
                with suppress(Exception):  # of a topic that may not matter
                    types |= get_types_from_msg(each.msgdef.data, each.msgtype)
                    readable.append(each)
            types |= {name: latest[name] for name in types if name == _HEADER}
            self._store.register(types)
            for each in readable:
                with suppress(Exception):  # nor may a type that it contains
                    text, _ = self._store.generate_msgdef(each.msgtype, ros_version=2)
                    made = each._replace(
                        msgdef=MessageDefinition(Format.MSG, text),
                        ext=ConnectionExtRosbag2("cdr", []),
                    )
                    self.connections.append(made)
        except Exception as error:  # rosbags raises many types
            raise BagError(
                f"this ROS 1 bag cannot be read: {str(error)[:160]}. Try `rosbag reindex` first",
                str(path),
            ) from error

    def messages(
        self, topics: Collection[str] | None, types: Collection[str] = ()
    ) -> Iterator[Message]:
        """Yields messages in the order of time.

        Args:
            topics: Names of the topics; None: all.
            types: Their types; all where it is empty.

        Raises:
            StorageError: The file is damaged from here on.
        """
        own = {each.id: each for each in self.connections}
        try:
            with Reader(self._path) as reader:
                wanted = [
                    each
                    for each in reader.connections
                    if each.id in own
                    and (topics is None or each.topic in topics)
                    and (not types or each.msgtype in types)
                ]
                reader.chunks = {
                    place: chunk._replace(
                        decompressor=partial(_unpack_chunk, chunk.decompressor)
                    )
                    for place, chunk in reader.chunks.items()
                }
                for each, time, raw in reader.messages(wanted) if wanted else ():
                    if len(raw) > MAX_RECORD:
                        raise StorageError(f"a message has {len(raw)} bytes")
                    payload = b""  # counted as one that cannot be decoded
                    with suppress(Exception):  # rosbags raises many types
                        payload = bytes(self._store.ros1_to_cdr(raw, each.msgtype))
                    yield own[each.id], time, payload
        except StorageError:
            raise
        except Exception as error:  # rosbags raises many types
            raise StorageError(str(error)[:160]) from error


def _unpack_chunk(unpack: Callable[[bytes], bytes], packed: bytes) -> bytes:
    """Unpacks a chunk of a ROS 1 bag, as far as it may grow; StorageError beyond that."""
    if packed.startswith(_LZ4):
        stream = importlib.import_module("lz4.frame").LZ4FrameDecompressor()
    elif packed.startswith(_BZ2):
        stream = BZ2Decompressor()
    else:
        return unpack(packed)
    content: bytes = stream.decompress(packed, max_length=MAX_RECORD + 1)
    if len(content) > MAX_RECORD:
        raise StorageError(f"a chunk becomes more than {MAX_RECORD} bytes unpacked")
    return content


@dataclass(frozen=True, eq=False)
class _Timed:
    """A table with the times of its rows.

    Attributes:
        table: Its columns.
        times: (N,) ns, of all rows.
        kept: (M,) rows that count, in the order of time.
    """

    table: Table
    times: Indices
    kept: Indices


class TableFile:
    """A table whose rows become standard messages, with those beside it that the mapping names.

    Args:
        path: Of the table.
        mapping_of: Says what a table's columns are.

    Attributes:
        conversions: What becomes what.
        connections: Of the messages that are made.
        damage: Empty.
        notes: What is unusual about its times, sentences.

    Raises:
        ConfigError: The mapping does not fit the table.
        TableError: It cannot be read, or no row is left.
    """

    def __init__(self, path: Path, mapping_of: Callable[[Table], LogMapping]) -> None:
        tables = {"": read_table(path)}
        self.damage, self.notes = "", list(tables[""].notes)
        mapping = mapping_of(tables[""])

        def columns_of(name: str) -> list[str]:
            if name not in tables:
                tables[name] = read_table(path.parent / name)
                self.notes.extend(tables[name].notes)
            return list(tables[name].columns)

        self.conversions = mapping.conversions(columns_of=columns_of)
        self._tables: dict[str, _Timed] = {}
        origin = None
        for name, rows in mapping.tables.items():
            seconds, kept, notes = rows.times(tables[name])
            self.notes += [f"{tables[name].source}: {note}" for note in notes]
            if origin is None:
                first = float(seconds[kept[0]])
                # s; larger times are since 1970
                origin = 0.0 if first > 1e8 else 1.0 - first
            times = np.where(np.isfinite(seconds), seconds + origin, 0.0)
            whole = np.rint(times * 1_000_000_000).astype(np.int64)
            self._tables[name] = _Timed(tables[name], whole, kept)
        self._rows = [self._used(each) for each in self.conversions]
        self.connections = [
            Connection(
                number,
                each.target,
                each.type_name,
                standard_definition(each.type_name),
                "",
                len(rows),
                ConnectionExtRosbag2("cdr", []),
                self,
            )
            for number, (each, rows) in enumerate(
                zip(self.conversions, self._rows, strict=True)
            )
        ]

    def messages(
        self, topics: Collection[str] | None, types: Collection[str] = ()
    ) -> Iterator[Message]:
        """Yields messages in the order of time.

        Args:
            topics: Names of the topics; None: all.
            types: Their types; all where it is empty.
        """
        streams = [
            self._stream(connection, conversion, rows)
            for connection, conversion, rows in zip(
                self.connections, self.conversions, self._rows, strict=True
            )
            if (topics is None or connection.topic in topics)
            and (not types or connection.msgtype in types)
        ]
        yield from heapq.merge(*streams, key=lambda message: message[1])

    def _stream(
        self, connection: Connection, conversion: Conversion, rows: Indices
    ) -> Iterator[Message]:
        """Messages of one conversion."""
        writer, times = (
            StandardWriter(conversion),
            self._tables[conversion.source].times,
        )
        together = 500  # rows
        for start in range(0, len(rows), together):
            own = rows[start : start + together]
            payloads = writer.write(times[own], self._values(conversion, own))
            for time, payload in zip(times[own].tolist(), payloads, strict=True):
                yield connection, time, payload

    def _values(self, conversion: Conversion, rows: Indices) -> dict[str, Array]:
        """Numbers of the fields in some rows."""
        columns = self._tables[conversion.source].table.columns
        numbers = {
            key: columns[channel.path][rows, None]
            for key, channel in conversion.channels.items()
        }
        return conversion.values(numbers, len(rows))

    def _used(self, conversion: Conversion) -> Indices:
        """Rows with any number of the first field; tables of several topics have gaps."""
        kept = self._tables[conversion.source].kept
        first = next(iter(conversion.fields))
        values = self._values(conversion, kept)[first]
        varying = [bool(channel.path) for channel in conversion.fields[first]]
        known = np.isfinite(values[:, varying] if any(varying) else values)
        return kept[known.any(axis=1)]
