"""A rosbag2 recording: a directory or a single file, mcap or sqlite3, whole or damaged."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.rosbag2 import Reader

from com_bags.damaged_sqlite import DamagedSqlite
from com_bags.exceptions import BagError
from com_bags.mcap_scan import MAGIC
from com_bags.parts import DamagedMcap, Message, Part, WholeBag
from com_model.text import listing

_SUFFIXES = (".mcap", ".db3")
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class Topic:
    """A topic of a bag.

    Attributes:
        name: Of the topic.
        type_name: e.g. sensor_msgs/msg/Imu.
        count: Number of messages.
        writers: How often the bag lists it: a number above 1 says that several nodes wrote it.
        defined: Whether the bag holds the definition of the type.
    """

    name: str
    type_name: str
    count: int
    writers: int
    defined: bool


class Bag:
    """An open recording; a context manager.

    Attributes:
        path: As it was given.
        notes: What is wrong with the files, in sentences; grows while messages are read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.notes: list[str] = []
        self._parts: list[Part] = []

    def __enter__(self) -> Bag:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        at: TracebackType | None,
    ) -> None:
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
            reader, reason = _whole(self.path)
            if reader is not None:
                self._parts = [WholeBag(reader)]
            elif self.path.is_dir():
                self._open_files(reason)
            else:
                self._parts = [self._damaged(self.path, reason)]
        except OSError as error:
            problem = f"cannot be read: {error.strerror or error}"
            raise BagError(problem, str(self.path)) from error

    def close(self) -> None:
        """Closes the files."""
        for part in self._parts:
            part.close()
        self._parts = []

    @property
    def connections(self) -> list[Connection]:
        """Connections of all files."""
        return [connection for part in self._parts for connection in part.connections]

    def topics(self) -> list[Topic]:
        """The topics by name."""
        found: dict[tuple[str, str], Topic] = {}
        for part in self._parts:
            mine: dict[tuple[str, str], int] = {}
            for item in part.connections:
                key = item.topic, item.msgtype
                mine[key] = mine.get(key, 0) + 1
                old = found.get(key, Topic(*key, 0, 0, False))
                defined = old.defined or item.msgdef.format != MessageDefinitionFormat.NONE
                count, writers = old.count + item.msgcount, max(old.writers, mine[key])
                found[key] = Topic(*key, count, writers, defined)
        return [found[key] for key in sorted(found)]

    def messages(
        self, topics: Sequence[str], types: Collection[str] = ()
    ) -> Generator[Message, None, None]:
        """Yields the messages of some topics, file by file, without holding more than a chunk.

        Where a file turns out to be damaged, what can be read is used, and a note tells.

        Args:
            topics: Names.
            types: Messages of other types are left out; empty: none is.
        """
        for part in self._parts:
            count = 0
            try:
                for message in part.messages(topics, types):
                    count += 1
                    yield message
            except GeneratorExit:
                raise
            except Exception as error:  # whatever the storage runs into
                total = sum(item.msgcount for item in part.connections if item.topic in topics)
                self._note(
                    f"the bag is damaged after {count} of {total} messages ({_words(error)}); "
                    "what comes before is used"
                )
            if isinstance(part, WholeBag) and part.problem:
                self._note(f"the bag is damaged: {part.problem}; the other messages are used")

    def _note(self, text: str) -> None:
        """Notes something once, however often the bag is read."""
        note = f"{self.path.name}: {text}"
        if note not in self.notes:
            self.notes.append(note)

    def _open_files(self, reason: str) -> None:
        """Opens the files of a directory one by one."""
        files = sorted(file for file in self.path.iterdir() if file.suffix in _SUFFIXES)
        if not files:
            inside = listing(sorted(file.name for file in self.path.iterdir())) or "nothing"
            problem = f"holds no bag ({reason}). Expected .mcap or .db3 files, got {inside}"
            if any(name.suffix == ".zstd" for name in self.path.iterdir()):
                problem += ". Its files are compressed and metadata.yaml is missing or broken: "
                problem += "unpack them with zstd -d first"
            raise BagError(problem, str(self.path))
        problem = f"{self.path.name}: {reason}; its files are read without metadata.yaml"
        self.notes.append(problem)
        refused: list[BagError] = []
        for file in files:
            reader, reason = _whole(file)
            try:
                part = self._damaged(file, reason) if reader is None else WholeBag(reader)
                self._parts.append(part)
            except BagError as error:
                refused.append(error)
                self.notes.append(f"{file.name}: {error.problem}")
        if len(refused) == len(files):
            raise refused[0]

    def _damaged(self, file: Path, reason: str) -> Part:
        """Reads what is left of a file."""
        with file.open("rb") as stream:
            start = stream.read(16)
        if start[:8] == MAGIC:
            return self._checked(DamagedMcap(file), file, reason)
        if start == _SQLITE:
            return self._checked(DamagedSqlite(file), file, reason)
        what = "is empty" if not start else f"is neither mcap nor sqlite3 ({reason})"
        problem = f"{what}. Give the directory of a rosbag2 recording, or its .mcap or .db3 file"
        raise BagError(problem, str(file))

    def _checked(self, part: DamagedMcap | DamagedSqlite, file: Path, reason: str) -> Part:
        count = sum(item.msgcount for item in part.connections)
        if count == 0:
            problem = f"is damaged ({reason}), and holds no whole message. Record anew"
            raise BagError(problem, str(file))
        if part.problem:
            text = f"damaged ({reason}; {part.problem}). {count} messages before that are used"
        else:
            text = f"read record by record, {count} messages, because rosbags says: {reason}"
        self.notes.append(f"{file.name}: {text}")
        return part


def _whole(path: Path) -> tuple[Reader | None, str]:
    """Opens a bag that is whole; else says why it is not."""
    try:
        reader = Reader(path)
        reader.open()
    except PermissionError:
        raise
    except Exception as error:  # rosbags lets through what the bytes make of its readers
        return None, _words(error)
    return reader, ""


def _words(error: Exception) -> str:
    """An error in one short line, without the path that the user knows."""
    text = str(error).split("\n", 1)[0].rstrip(".")[:160]
    return text or type(error).__name__
