"""Messages of an mcap file by its records from the front, whether or not its end is there.

A recorder that was killed, or a disk that was full, leaves files without footer and index. Records
stand one behind the other with their lengths, so all that are whole can be read, and of a chunk
that was cut its start. It is the quick way for whole files too: no object is made for a record but
the message's bytes.
"""

from __future__ import annotations

import struct
from binascii import crc32
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from lz4.frame import LZ4FrameDecompressor
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)
from rosbags.rosbag2.storage_mcap import DECOMPRESSORS, zstd

MAGIC = b"\x89MCAP0\r\n"
MAX_RECORD = 2**30  # bytes; a longer one is taken for broken
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK = 0x03, 0x04, 0x05, 0x06
_HEAD = struct.Struct("<BQ")  # kind and length of a record
_MESSAGE_HEAD = struct.Struct("<H4xQ8x")  # channel and time of recording
_FORMATS = {
    "ros2msg": MessageDefinitionFormat.MSG,
    "ros2idl": MessageDefinitionFormat.IDL,
    "omgidl": MessageDefinitionFormat.IDL,
}
_UNDEFINED = MessageDefinition(MessageDefinitionFormat.NONE, "")


class McapScan:
    """Reads a file from the front.

    Args:
        path: Of the file.

    Attributes:
        lost: Bytes at the end that make no whole record, after a pass; of a chunk that was cut the
            start is used.
        broken: Chunks and records that cannot be unpacked, after a pass.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._schemas: dict[int, tuple[str, MessageDefinition]] = {}
        self._channels: dict[int, Connection] = {}
        self.lost = 0
        self.broken = 0

    def connections(self) -> list[Connection]:
        """Passes through the file for its topics and the numbers of their messages."""
        counts: Counter[int] = Counter(connection.id for connection, _, _ in self.messages())
        return [
            channel._replace(msgcount=counts[number])
            for number, channel in sorted(self._channels.items())
        ]

    def messages(
        self, topics: Collection[str] | None = None, types: Collection[str] = ()
    ) -> Iterator[tuple[Connection, int, bytes]]:
        """Yields messages in the order of the file.

        Args:
            topics: Names; None: all.
            types: Messages of other types are left out; empty: none is.
        """
        self.lost = self.broken = 0
        wanted = self._wanted(topics, types)
        for records in self._records():
            at, end = 0, len(records)
            while at + _HEAD.size <= end:
                kind, length = _HEAD.unpack_from(records, at)
                start = at + _HEAD.size
                at = start + length
                if at > end:
                    break
                if kind == _MESSAGE and length >= _MESSAGE_HEAD.size:
                    channel, time = _MESSAGE_HEAD.unpack_from(records, start)
                    if channel in wanted:
                        yield wanted[channel], time, records[start + _MESSAGE_HEAD.size : at]
                elif kind in (_SCHEMA, _CHANNEL):
                    self._define(kind, records[start:at])
                    wanted = self._wanted(topics, types)

    def damage(self) -> str:
        """What the newest pass could not read, in words; "" where it read all."""
        words = []
        if self.lost:
            size = self._path.stat().st_size
            words.append(f"the last {self.lost} of {size} bytes make no whole record")
        if self.broken:
            words.append(f"{self.broken} chunks or records cannot be unpacked")
        return ", ".join(words)

    def _wanted(
        self, topics: Collection[str] | None, types: Collection[str]
    ) -> dict[int, Connection]:
        return {
            number: item
            for number, item in self._channels.items()
            if (topics is None or item.topic in topics) and (not types or item.msgtype in types)
        }

    def _records(self) -> Iterator[bytes]:
        """Yields records, those of a chunk together."""
        with self._path.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                return
            size = self._path.stat().st_size
            while stream.tell() < size:
                start = stream.tell()
                record = _record(stream)
                if record is None or len(record[2]) < record[1]:
                    self.lost = 0 if _at_end(stream, start) else size - start
                if record is None:
                    return
                kind, length, content = record
                if kind != _CHUNK:
                    yield _HEAD.pack(kind, length) + content
                    continue
                try:
                    yield _unpack(content) if len(content) == length else _unpack_cut(content)
                except Exception:  # of any decompressor
                    self.broken += 1

    def _define(self, kind: int, content: bytes) -> None:
        try:
            if kind == _SCHEMA:
                self._schema(content)
            else:
                self._channel(content)
        except (struct.error, UnicodeDecodeError):
            self.broken += 1

    def _schema(self, content: bytes) -> None:
        (number,) = struct.unpack_from("<H", content)
        name, at = _text(content, 2)
        encoding, at = _text(content, at)
        text, _ = _text(content, at)
        kind = _FORMATS.get(encoding)
        self._schemas[number] = name, _UNDEFINED if kind is None else MessageDefinition(kind, text)

    def _channel(self, content: bytes) -> None:
        number, schema = struct.unpack_from("<HH", content)
        topic, at = _text(content, 4)
        encoding, _ = _text(content, at)
        name, definition = self._schemas.get(schema, ("", _UNDEFINED))
        ext = ConnectionExtRosbag2(encoding, [])
        self._channels.setdefault(
            number, Connection(number, topic, name, definition, "", 0, ext, self)
        )


def _record(stream: BinaryIO) -> tuple[int, int, bytes] | None:
    """Reads a record: kind, length, content, which is shorter where it is cut."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    kind, length = _HEAD.unpack(head)
    return None if length > MAX_RECORD else (kind, length, stream.read(length))


def _at_end(stream: BinaryIO, start: int) -> bool:
    """Whether the end mark of a whole file stands there."""
    stream.seek(start)
    return stream.read(len(MAGIC) + 1) == MAGIC


def _unpack(content: bytes) -> bytes:
    """The records of a chunk."""
    _, _, size, crc = struct.unpack_from("<QQQI", content)
    compression, at = _text(content, 28)
    (length,) = struct.unpack_from("<Q", content, at)
    if size > MAX_RECORD:
        raise ValueError("the chunk is too large")
    records = DECOMPRESSORS[compression](content[at + 8 : at + 8 + length], size)
    if len(records) != size or (crc and crc32(records) != crc):
        raise ValueError("the chunk is not what it was")
    return records


def _unpack_cut(content: bytes) -> bytes:
    """The records at the start of a chunk that was cut."""
    compression, at = _text(content, 28)
    data = content[at + 8 :]
    if compression == "zstd":
        return zstd.ZstdDecompressor().decompress(data, max_length=MAX_RECORD)
    if compression == "lz4":
        return LZ4FrameDecompressor().decompress(data, max_length=MAX_RECORD)
    return data


def _text(content: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<I", content, at)
    return content[at + 4 : at + 4 + length].decode(), at + 4 + length
