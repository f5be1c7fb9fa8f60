"""Storage files of a bag, read from the front: mcap and sqlite3, with or without their end.

A recorder that was killed, or a full disk, leaves files without footer and index. Read in the order
of the file, all complete records before the end are there. For mcap this is also the fast way to
read whole files: 0.6 us a message against 2.1 us by rosbags and 4.3 us by the mcap package, because
no object is made but the payload.

What a damaged length, a chunk or a table may cost is bounded: MAX_RECORD bytes, and steps of sqlite
in proportion to the file.
"""

import sqlite3
import struct
import sys
from binascii import crc32
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote as quote_url

from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)
from rosbags.rosbag2 import storage_mcap

from com_bags.exceptions import BagError, StorageError

Message = tuple[Connection, int, bytes]  # connection, time of recording in ns, payload

MCAP_MAGIC = b"\x89MCAP0\r\n"
SQLITE_MAGIC = b"SQLite format 3\0"
MAX_RECORD = 2**27  # bytes; a longer one is a damaged length
_MOST_GROWTH = 300  # of a compressed file, and of all chunks of one
_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _STATISTICS = (
    0x02,
    0x03,
    0x04,
    0x05,
    0x06,
    0x0B,
)
_HEAD = struct.Struct("<BQ")  # type and length of a record
_MESSAGE_HEAD = struct.Struct("<H4xQ8x")  # channel and time of recording
_FOOTER_SIZE = _HEAD.size + 20 + len(MCAP_MAGIC)
_FORMATS = {
    "ros2msg": MessageDefinitionFormat.MSG,
    "ros2idl": MessageDefinitionFormat.IDL,
    "omgidl": MessageDefinitionFormat.IDL,
}
_UNDEFINED = MessageDefinition(MessageDefinitionFormat.NONE, "")


class McapFile:
    """An mcap file: connections with their numbers of messages, and what is damaged at its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._schemas: dict[int, tuple[str, MessageDefinition]] = {}
        self._channels: dict[int, Connection] = {}
        self.damage = ""
        try:
            counts = self._summary()
        except StorageError:
            self._schemas, self._channels = {}, {}
            counts = self._count()
        self.connections = [
            channel._replace(msgcount=counts[number])
            for number, channel in sorted(self._channels.items())
        ]

    def messages(
        self, topics: Collection[str] | None, types: Collection[str] = ()
    ) -> Iterator[Message]:
        """Yields messages of topics (None: all) and types (none: all), up to a StorageError."""
        wanted = _select(self._channels.values(), topics, types)
        for records in self._records():
            for kind, start, end in _split(records):
                if kind == _MESSAGE and end - start >= _MESSAGE_HEAD.size:
                    channel, time = _MESSAGE_HEAD.unpack_from(records, start)
                    if channel in wanted:
                        if time >= 2**63:  # times are signed 64-bit numbers
                            raise StorageError(
                                f"a message has the impossible time {time} ns"
                            )
                        yield (
                            wanted[channel],
                            time,
                            records[start + _MESSAGE_HEAD.size : end],
                        )
                elif kind in (_SCHEMA, _CHANNEL):
                    self._define(kind, records[start:end])
                    wanted = _select(self._channels.values(), topics, types)

    def _summary(self) -> Counter[int]:
        """Numbers of messages by channel, from the summary at the end; else StorageError."""
        with self._path.open("rb") as stream:
            end = self._path.stat().st_size - _FOOTER_SIZE
            stream.seek(max(0, end))
            footer = stream.read(_FOOTER_SIZE)
            if len(footer) < _FOOTER_SIZE or not footer.endswith(MCAP_MAGIC):
                raise StorageError("the end is missing")
            start, _, crc = struct.unpack_from("<QQI", footer, _HEAD.size)
            if footer[0] != _FOOTER or not 0 < start < end or end - start > MAX_RECORD:
                raise StorageError("there is no summary")
            stream.seek(start)
            summary = stream.read(end - start)
        if crc and crc32(summary + footer[: _HEAD.size + 16]) != crc:
            raise StorageError("the summary's checksum is wrong")
        counts: Counter[int] | None = None
        for kind, at, after in _split(summary):
            if kind in (_SCHEMA, _CHANNEL):
                self._define(kind, summary[at:after])
            elif kind == _STATISTICS:
                # 46 bytes precede the numbers of messages by channel
                pairs = summary[at + 46 : after]
                if len(pairs) % 10:
                    raise StorageError("the summary's numbers of messages are damaged")
                counts = Counter(dict(struct.iter_unpack("<HQ", pairs)))
        if counts is None or not self._schemas or not self._channels:
            raise StorageError("the summary does not list the topics")
        return counts

    def _count(self) -> Counter[int]:
        """Counts the messages by channel, to the end of the file or to its damage."""
        counts: Counter[int] = Counter()
        try:
            for connection, _, _ in self.messages(None):
                counts[connection.id] += 1
        except StorageError as error:
            self.damage = str(error)
        return counts

    def _records(self) -> Iterator[bytes]:
        """Yields the records outside of chunks one by one, and those of each chunk together."""
        size, unpacked = self._path.stat().st_size, 0
        with self._path.open("rb") as stream:
            stream.seek(len(MCAP_MAGIC))
            while True:
                start = stream.tell()
                head = stream.read(_HEAD.size)
                kind, length = (
                    _HEAD.unpack(head) if len(head) == _HEAD.size else (0, MAX_RECORD)
                )
                if kind in (_FOOTER, 0x0F):  # or the end of the data
                    return
                content = stream.read(length) if length < MAX_RECORD else b""
                if len(content) == length:
                    if kind != _CHUNK:
                        yield head + content
                        continue
                    records = _unpack_chunk(content)
                    unpacked += len(records)
                    if unpacked > max(MAX_RECORD, _MOST_GROWTH * size):
                        raise StorageError(
                            f"its chunks become {_MOST_GROWTH} times as large unpacked"
                        )
                    yield records
                    continue
                with suppress(StorageError):  # of a chunk's head that is cut off, too
                    if kind == _CHUNK and _chunk_data(content)[0] == "":
                        yield _chunk_data(content)[1]
                raise StorageError(
                    f"the last {size - start} of {size} bytes are not a complete record"
                )

    def _define(self, kind: int, content: bytes) -> None:
        """Adds a schema or a channel; StorageError where it is damaged."""
        try:
            number, schema = struct.unpack_from("<HH", content)
            if kind == _SCHEMA:
                name, at = _string(content, 2)
                encoding, at = _string(content, at)
                text, _ = _string(content, at)
                self._schemas[number] = name, _definition(encoding, text)
                return
            topic, at = _string(content, 4)
            encoding, _ = _string(content, at)
        except (struct.error, UnicodeDecodeError) as error:
            raise StorageError(f"a topic or its type is damaged: {error}") from error
        name, definition = self._schemas.get(schema, ("", _UNDEFINED))
        self._channels.setdefault(
            number, _connection(number, topic, name, definition, encoding, self)
        )


class SqliteFile:
    """An sqlite3 file: connections with their numbers of messages, and what is damaged.

    Raises BagError where not even the list of topics can be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.damage = ""
        self._check_tables()
        try:
            topics = list(
                self._rows("SELECT id, name, type, serialization_format FROM topics")
            )
        except sqlite3.Error as error:
            raise BagError(
                f"no topics can be read of it ({error}). Copy it once more, or record again",
                str(path),
            ) from error
        definitions: dict[str, MessageDefinition] = {}
        query = "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
        with suppress(sqlite3.Error):  # old bags have no such table
            definitions = {
                name: _definition(encoding, text)
                for name, encoding, text in self._rows(query)
                if isinstance(text, str)
            }
        good = [row for row in topics if list(map(type, row)) == [int, str, str, str]]
        if len(good) < len(topics):
            self.damage = f"{len(topics) - len(good)} topics without a name or a type"
        counts = self._count()
        self.connections = [
            _connection(number, topic, kind, definitions.get(kind, _UNDEFINED), encoding, self)
            ._replace(msgcount=counts[number])
            for number, topic, kind, encoding in sorted(good)
        ]  # fmt: skip

    def messages(
        self, topics: Collection[str], types: Collection[str] = ()
    ) -> Iterator[Message]:
        """Yields messages in the order of the file.

        Args:
            topics: Names of the topics.
            types: Their types; all where it is empty.

        Yields:
            Connection, time of recording in ns, and payload.

        Raises:
            StorageError: The file is damaged from here on.
        """
        wanted = _select(self.connections, topics, types)
        query = "SELECT topic_id, timestamp, data FROM messages NOT INDEXED ORDER BY id"
        try:
            for topic, time, data in self._rows(query):
                if topic in wanted:
                    if not isinstance(time, int):
                        raise StorageError("a message has no time")
                    # sqlite3 returns the type that a damaged page says
                    yield wanted[topic], time, data if isinstance(data, bytes) else b""
        except sqlite3.Error as error:
            raise StorageError(str(error)) from error

    def _check_tables(self) -> None:
        """Raises BagError where a table's rows are not stored but computed, without bound.

        Such are views, virtual tables, and columns that are generated.
        """
        made = (
            "SELECT name, type, sql FROM sqlite_master WHERE name IN "
            "('topics', 'messages', 'message_definitions')"
        )
        columns = "SELECT name FROM pragma_table_xinfo('{}') WHERE hidden <> 0"
        with suppress(sqlite3.Error):  # the queries themselves will say it
            for name, kind, sql in self._rows(made):
                plain = kind in ("table", "index") and "VIRTUAL" not in str(sql).upper()
                if not plain or any(self._rows(columns.format(name))):
                    raise BagError(
                        f"its {name} is no plain table, as rosbag2 makes it. Record again",
                        str(self._path),
                    )

    def _count(self) -> Counter[object]:
        """Counts the messages by topic, to the end of the file or to its damage."""
        counts: Counter[object] = Counter()
        try:
            query = "SELECT topic_id, length(data) FROM messages NOT INDEXED"
            counts.update(topic for topic, _ in self._rows(query))
        except sqlite3.Error as error:
            self.damage = str(error)
        return counts

    def _rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        path = f"file:{quote_url(str(self._path))}?immutable=1"
        size = self._path.stat().st_size
        with closing(sqlite3.connect(path, uri=True)) as database:
            # Without it sqlite refuses a file that is shorter than its header says.
            database.execute("PRAGMA writable_schema=ON")
            # Damaged pages may refer to each other in circles.
            steps = iter(range(100 + size // 1000))
            database.set_progress_handler(lambda: next(steps, None) is None, 100_000)
            if sys.version_info >= (3, 11):
                database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_RECORD)
            yield from database.execute(query)


def unpack_zstd(data: bytes, most: int = MAX_RECORD) -> bytes:
    """Unpacks bytes of a bag.

    Args:
        data: Compressed bytes.
        most: Largest number of bytes that they may become.

    Returns:
        The bytes.

    Raises:
        StorageError: They are damaged, or more than `most`.
    """
    try:
        with zstd_stream(BytesIO(data)) as stream:
            content = stream.read(most + 1)
    except Exception as error:  # libraries raise many types
        raise StorageError(f"compressed bytes cannot be unpacked: {error}") from error
    if len(content) > most:
        raise StorageError(f"compressed bytes become more than {most}")
    return content


def unpack_file(path: Path, folder: Path) -> Path:
    """Unpacks a compressed file of a bag into a folder; returns its path there, or StorageError."""
    target, most = folder / path.stem, _MOST_GROWTH * path.stat().st_size
    with path.open("rb") as packed, target.open("wb") as unpacked:
        stream = zstd_stream(packed)
        while True:
            try:
                part = stream.read(2**20)
            except Exception as error:  # libraries raise many types
                raise StorageError(
                    f"{path.name} cannot be unpacked: {error}"
                ) from error
            if not part:
                return target
            unpacked.write(part)
            if unpacked.tell() > most:
                raise StorageError(
                    f"{path.name} becomes {_MOST_GROWTH} times as large unpacked"
                )


def zstd_stream(packed: BinaryIO) -> Any:
    """Opens a compressed stream with the library that rosbags has."""
    zstd = getattr(storage_mcap, "zstd", None)
    if zstd is not None:
        return zstd.open(packed, "rb")
    zstandard = getattr(storage_mcap, "zstandard")  # noqa: B009 (that of older versions)
    return zstandard.ZstdDecompressor().stream_reader(packed)


def _split(records: bytes) -> Iterator[tuple[int, int, int]]:
    """Type, start and end of each record, to a StorageError; a cut-off one is left out."""
    at, end = 0, len(records)
    while at + _HEAD.size <= end:
        kind, length = _HEAD.unpack_from(records, at)
        if not kind:
            raise StorageError("a record has the type 0, which does not exist")
        start = at + _HEAD.size
        at = start + length
        if at > end:
            return
        yield kind, start, at


def _select(
    connections: Iterable[Connection],
    topics: Collection[str] | None,
    types: Collection[str],
) -> dict[int, Connection]:
    """Those of topics (None: all) and types (none: all), by their numbers."""
    return {
        item.id: item
        for item in connections
        if (topics is None or item.topic in topics)
        and (not types or item.msgtype in types)
    }


def _definition(encoding: str, text: str) -> MessageDefinition:
    form = _FORMATS.get(encoding)
    return _UNDEFINED if form is None else MessageDefinition(form, text)


def _connection(
    number: int,
    topic: str,
    kind: str,
    definition: MessageDefinition,
    encoding: str,
    owner: object,
) -> Connection:
    return Connection(
        number,
        topic,
        kind,
        definition,
        "",
        0,
        ConnectionExtRosbag2(encoding, []),
        owner,
    )


def _chunk_data(content: bytes) -> tuple[str, bytes]:
    """Compression and data of a chunk, which may be cut off; StorageError if there are none."""
    try:
        compression, at = _string(content, 28)
        (length,) = struct.unpack_from("<Q", content, at)
    except (struct.error, UnicodeDecodeError) as error:
        raise StorageError(f"the head of a chunk is damaged: {error}") from error
    return compression, content[at + 8 : at + 8 + length]


def _unpack_chunk(content: bytes) -> bytes:
    """The records of a chunk; StorageError where it is damaged."""
    try:
        _, _, size, crc = struct.unpack_from("<QQQI", content)
        compression, data = _chunk_data(content)
        if size > MAX_RECORD:
            raise ValueError(f"it declares more than {MAX_RECORD} bytes")
        if compression == "zstd":
            records = unpack_zstd(data, size)
        elif compression in ("", "lz4") and len(data) <= 2 * size + 1024:
            records = storage_mcap.DECOMPRESSORS[compression](data, size)
        else:
            raise ValueError(f"its compression {compression[:20]!r} is unknown")
        if len(records) != size or (crc and crc32(records) != crc):
            raise ValueError("its checksum is wrong")
    except Exception as error:  # decompressors raise many types
        raise StorageError(f"a chunk cannot be unpacked: {error}") from error
    return records


def _string(content: bytes, at: int) -> tuple[str, int]:
    """A string with its length in front, and the place after it."""
    (length,) = struct.unpack_from("<I", content, at)
    return content[at + 4 : at + 4 + length].decode(), at + 4 + length
