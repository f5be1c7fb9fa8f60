"""A rosbag2 recording: a directory or a single file, mcap or sqlite3, also with its end cut off."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.rosbag2 import Reader
from rosbags.rosbag2.storage_mcap import McapReader

from com_bags.exceptions import BagError
from com_bags.storage import MCAP_MAGIC, SQLITE_MAGIC, McapFile, Message, SqliteFile, Storage
from com_model.text import listing

MAX_BLOCK_BYTES = 2**25
_SUFFIXES = (".mcap", ".db3")


@dataclass(frozen=True)
class Topic:
    """A topic of a bag.

    Attributes:
        name: Of the topic.
        type_name: e.g. sensor_msgs/msg/Imu.
        count: Number of messages.
        publishers: How often the bag lists it: above 1, several nodes published it.
        defined: Whether the bag contains the definition of the type.
    """

    name: str
    type_name: str
    count: int
    publishers: int
    defined: bool


@dataclass
class Block:
    """Messages of one topic, in the order of the bag.

    Attributes:
        payloads: Their bytes.
        received: ns, when they were recorded.
    """

    payloads: list[bytes] = field(default_factory=list)
    received: list[int] = field(default_factory=list)


class Bag:
    """An open recording; a context manager.

    Attributes:
        path: As it was given.
        notes: What is wrong with the files, in sentences; grows while messages are read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.notes: list[str] = []
        self._storages: list[Storage] = []
        self._cut_off: set[int] = set()  # indices of storages with a note on their damage

    def __enter__(self) -> Bag:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Opens it.

        Raises:
            BagError: There is no such bag, or nothing of it can be read.
        """
        try:
            if not self.path.exists():
                problem = "does not exist. Give the directory of a bag, or its .mcap or .db3 file"
                raise BagError(problem, str(self.path))
            reader, reason = _open_whole(self.path)
            if reader is not None:
                self._storages = [WholeBag(reader)]
            elif self.path.is_dir():
                self._open_files(reason)
            else:
                self._open_damaged(self.path, reason)
        except OSError as error:
            problem = f"cannot be read: {error.strerror or error}"
            raise BagError(problem, str(self.path)) from error

    def close(self) -> None:
        """Closes the files."""
        for storage in self._storages:
            storage.close()
        self._storages = []

    @property
    def connections(self) -> list[Connection]:
        """Connections of all files."""
        return [connection for storage in self._storages for connection in storage.connections]

    def topics(self) -> list[Topic]:
        """The topics by name."""
        found: dict[tuple[str, str], Topic] = {}
        for storage in self._storages:
            publishers: dict[tuple[str, str], int] = {}
            for item in storage.connections:
                key = item.topic, item.msgtype
                publishers[key] = publishers.get(key, 0) + 1
                old = found.get(key, Topic(*key, 0, 0, False))
                defined = old.defined or item.msgdef.format != MessageDefinitionFormat.NONE
                count, most = old.count + item.msgcount, max(old.publishers, publishers[key])
                found[key] = Topic(*key, count, most, defined)
        return [found[key] for key in sorted(found)]

    def messages(
        self, topics: Sequence[str], types: Collection[str] = ()
    ) -> Generator[Message, None, None]:
        """Yields the messages of some topics, file by file, with one chunk in memory.

        Where a file turns out to be damaged, the messages before that are used, and a note is
        added.

        Args:
            topics: Names.
            types: Messages of other types are left out; empty: none is.
        """
        for index, storage in enumerate(self._storages):
            count = 0
            try:
                for message in storage.messages(topics, types):
                    count += 1
                    yield message
            except GeneratorExit:
                raise
            except Exception as error:  # the storage libraries raise many types
                if index in self._cut_off:
                    continue
                total = sum(item.msgcount for item in storage.connections if item.topic in topics)
                note = (
                    f"{self.path.name}: the bag is damaged after {count} of {total} messages "
                    f"({_first_line(error)}); what comes before is used"
                )
                if note not in self.notes:
                    self.notes.append(note)

    def blocks(self, topics: Mapping[str, str], span_ns: int) -> Iterator[dict[str, Block]]:
        """Yields the messages recorded within each interval of time, by topic.

        Args:
            topics: Names, with their types.
            span_ns: Length of the interval, ns; a block is shorter where it would be larger than
                MAX_BLOCK_BYTES.
        """
        current = {topic: Block() for topic in topics}
        start, size = None, 0
        for connection, time, payload in self.messages(list(topics), set(topics.values())):
            if start is None:
                start = time
            elif not 0 <= time - start < span_ns or size > MAX_BLOCK_BYTES:
                yield current
                current = {topic: Block() for topic in topics}
                start, size = time, 0
            block = current[connection.topic]
            if not isinstance(payload, bytes):  # sqlite3 returns the type that a bad page says
                payload = b""
            block.payloads.append(payload)
            block.received.append(time)
            size += len(payload)
        yield current

    def _open_files(self, reason: str) -> None:
        """Opens the files of a directory without metadata one by one."""
        names = sorted(file.name for file in self.path.iterdir())
        files = [self.path / name for name in names if name.endswith(_SUFFIXES)]
        if not files:
            inside = listing(names) or "nothing"
            problem = f"contains no bag ({reason}). Expected .mcap or .db3 files, got {inside}"
            if any(name.endswith(".zstd") for name in names):
                problem += ". Its files are compressed and metadata.yaml is missing or broken: "
                problem += "unpack them with zstd -d first"
            raise BagError(problem, str(self.path))
        self.notes.append(f"{self.path.name}: {reason}; its files are read without metadata.yaml")
        refused: list[BagError] = []
        for file in files:
            reader, reason = _open_whole(file)
            try:
                if reader is None:
                    self._open_damaged(file, reason)
                else:
                    self._storages.append(WholeBag(reader))
            except BagError as error:
                refused.append(error)
                self.notes.append(f"{file.name}: {error.problem}")
        if len(refused) == len(files):
            raise refused[0]

    def _open_damaged(self, file: Path, reason: str) -> None:
        """Opens a file that rosbags refuses, to read it from the front."""
        with file.open("rb") as stream:
            start = stream.read(16)
        storage: McapFile | SqliteFile
        if start.startswith(MCAP_MAGIC):
            storage = McapFile(file)
        elif start == SQLITE_MAGIC:
            storage = SqliteFile(file)
        else:
            what = "is empty" if not start else f"is neither mcap nor sqlite3 ({reason})"
            problem = f"{what}. Give the directory of a rosbag2 bag, or its .mcap or .db3 file"
            raise BagError(problem, str(file))
        damage = storage.count()
        count = sum(item.msgcount for item in storage.connections)
        if count == 0:
            problem = f"is damaged ({reason}) and contains no complete message. Record again"
            raise BagError(problem, str(file))
        if damage:
            note = f"damaged ({reason}; {damage}). The {count} messages before that are used"
        else:
            note = f"read without its index, {count} messages, because rosbags reports: {reason}"
        self.notes.append(f"{file.name}: {note}")
        self._cut_off.add(len(self._storages))
        self._storages.append(storage)


class WholeBag:
    """A bag that rosbags has opened; its mcap files are read by McapFile, which is faster.

    Args:
        reader: Open.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.connections = list(reader.connections)

    def messages(self, topics: Collection[str], types: Collection[str]) -> Iterator[Message]:
        """Yields messages of some topics and, unless empty, of some types."""
        storages = getattr(self._reader.storage, "storages", [self._reader.storage])
        mcap = all(isinstance(storage, McapReader) for storage in storages)
        if mcap and self._reader.compression_mode != "message":
            for storage in storages:
                yield from McapFile(Path(str(storage.path))).messages(topics, types)
            return
        wanted = [
            item
            for item in self.connections
            if item.topic in topics and (not types or item.msgtype in types)
        ]
        if wanted:
            yield from self._reader.messages(wanted)

    def close(self) -> None:
        """Closes the files."""
        with suppress(Exception):
            self._reader.close()


def _open_whole(path: Path) -> tuple[Reader | None, str]:
    """Opens a bag by rosbags; where that fails, returns why."""
    try:
        reader = Reader(path)
        reader.open()
    except PermissionError:
        raise
    except Exception as error:  # rosbags raises many types on damaged bytes
        return None, _first_line(error)
    return reader, ""


def _first_line(error: Exception) -> str:
    """An error in one short line."""
    text = str(error).split("\n", 1)[0].rstrip(".")[:160]
    return text or type(error).__name__
