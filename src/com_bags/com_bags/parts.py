"""The files of a bag: whole ones as rosbags opens them, damaged ones as far as they go."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from rosbags.interfaces import Connection
from rosbags.rosbag2 import Reader
from rosbags.rosbag2.storage_mcap import McapReader

from com_bags.mcap_scan import McapScan

Message = tuple[Connection, int, bytes]


class Part(Protocol):
    """One or more files with messages.

    Attributes:
        connections: Of its topics, with the numbers of messages.
        problem: What was lost in the newest pass; "" where nothing was.
    """

    connections: list[Connection]
    problem: str

    def messages(self, topics: Collection[str], types: Collection[str]) -> Iterator[Message]:
        """Yields messages of some topics and, unless empty, of some types."""

    def close(self) -> None:
        """Closes the files."""


class WholeBag:
    """A bag that rosbags has opened.

    Mcap files are read by McapScan, in less than half of the time.

    Args:
        reader: Open.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.connections = list(reader.connections)
        self.problem = ""

    def messages(self, topics: Collection[str], types: Collection[str]) -> Iterator[Message]:
        """Yields messages of some topics and, unless empty, of some types."""
        self.problem = ""
        files = self._plain_mcap()
        if not files:
            wanted = [
                item
                for item in self.connections
                if item.topic in topics and (not types or item.msgtype in types)
            ]
            if wanted:
                yield from self._reader.messages(wanted)
        for file in files:
            scan = McapScan(file)
            yield from scan.messages(topics, types)
            if scan.lost or scan.broken:
                self.problem = scan.damage()

    def close(self) -> None:
        """Closes the files."""
        with suppress(Exception):
            self._reader.close()

    def _plain_mcap(self) -> list[Path]:
        """The files, if they are mcap and their messages are not compressed one by one."""
        storages = getattr(self._reader.storage, "storages", [self._reader.storage])
        if self._reader.compression_mode == "message":
            return []
        if not all(isinstance(storage, McapReader) for storage in storages):
            return []
        return [Path(str(storage.path)) for storage in storages]


class DamagedMcap:
    """An mcap file without footer or with bad records; one pass to see what there is.

    Args:
        path: Of the file.
    """

    def __init__(self, path: Path) -> None:
        self._scan = McapScan(path)
        self.connections = self._scan.connections()
        self.problem = self._scan.damage()

    def messages(self, topics: Collection[str], types: Collection[str]) -> Iterator[Message]:
        """Yields messages of some topics and, unless empty, of some types."""
        yield from self._scan.messages(topics, types)

    def close(self) -> None:
        """Nothing is open between passes."""
