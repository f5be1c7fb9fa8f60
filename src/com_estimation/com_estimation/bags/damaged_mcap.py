"""What can still be read of an mcap file without footer or index, or with broken chunks.

A recorder that was killed, or a disk that was full, leaves such files. Records stand one behind
the other with their lengths, so all that are whole can be read from the front.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from lz4.frame import LZ4FrameDecompressor
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)
from rosbags.rosbag2.storage_mcap import decompress, zstd

MAGIC = b"\x89MCAP0\r\n"
MAX_RECORD = 2**30  # bytes; a longer one is taken for broken
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK = 0x03, 0x04, 0x05, 0x06
_FORMATS = {
    "ros2msg": MessageDefinitionFormat.MSG,
    "ros2idl": MessageDefinitionFormat.IDL,
    "omgidl": MessageDefinitionFormat.IDL,
}
_UNDEFINED = MessageDefinition(MessageDefinitionFormat.NONE, "")


class DamagedMcap:
    """Reads the whole records of a damaged file; one pass to see what there is, one to read.

    Attributes:
        connections: Of the topics that were found, with the number of their whole messages.
        lost: Bytes at the end that make no whole record; of a chunk that was cut its start is used.
        broken: Chunks that cannot be unpacked.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._schemas: dict[int, tuple[str, MessageDefinition]] = {}
        self._channels: dict[int, Connection] = {}
        self.lost = 0
        self.broken = 0
        counts: Counter[int] = Counter(channel for channel, _, _ in self._walk())
        self.connections = [
            channel._replace(msgcount=counts[number])
            for number, channel in sorted(self._channels.items())
        ]

    def messages(self, connections: list[Connection]) -> Iterator[tuple[Connection, int, bytes]]:
        """Yields messages of some connections in the order of the file."""
        wanted = {connection.id: connection for connection in connections}
        for channel, time, data in self._walk():
            if channel in wanted:
                yield wanted[channel], time, data

    def _walk(self) -> Iterator[tuple[int, int, bytes]]:
        self.lost = self.broken = 0
        with self._path.open("rb") as stream:
            if stream.read(8) != MAGIC:
                return
            size = self._path.stat().st_size
            while stream.tell() < size:
                start = stream.tell()
                content = _content(stream)
                if content is None:
                    self.lost = size - start
                    return
                kind, whole, data = content
                if not whole:
                    self.lost = size - start
                yield from self._record(kind, whole, data)

    def _record(self, kind: int, whole: bool, content: bytes) -> Iterator[tuple[int, int, bytes]]:
        if kind != _CHUNK:
            yield from self._plain(kind, content) if whole else ()
            return
        try:
            inner = _unpack(content) if whole else _unpack_cut(content)
        except Exception:  # of any decompressor
            self.broken += 1
            return
        at = 0
        while at + 9 <= len(inner):
            kind, length = struct.unpack_from("<BQ", inner, at)
            if at + 9 + length > len(inner):
                return
            yield from self._plain(kind, inner[at + 9 : at + 9 + length])
            at += 9 + length

    def _plain(self, kind: int, content: bytes) -> Iterator[tuple[int, int, bytes]]:
        try:
            if kind == _MESSAGE:
                channel, _, time = struct.unpack_from("<HIQ", content)
                yield channel, time, content[22:]
            elif kind == _SCHEMA:
                self._schema(content)
            elif kind == _CHANNEL:
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


def _content(stream: BinaryIO) -> tuple[int, bool, bytes] | None:
    """Reads a record: kind, whether it is whole, content; None where it cannot be one."""
    head = stream.read(9)
    if len(head) < 9 or head[:8] == MAGIC:
        return None
    kind, length = struct.unpack("<BQ", head)
    if length > MAX_RECORD:
        return None
    content = stream.read(length)
    return kind, len(content) == length, content


def _unpack(content: bytes) -> bytes:
    """The records of a chunk."""
    _, _, size, crc = struct.unpack_from("<QQQI", content)
    compression, at = _text(content, 28)
    (length,) = struct.unpack_from("<Q", content, at)
    if size > MAX_RECORD:
        raise ValueError("the chunk is too large")
    return decompress(content[at + 8 : at + 8 + length], compression, size, crc)


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
