"""A recording: a rosbag2 directory or file (mcap or sqlite3), a ROS 1 bag, or a table by a mapping.

Of messages that are not standard ones joint states, IMU readings and wrenches are made.

A recording also grows, by whole mcap files: what kills the recorder loses only the last one. A
file is written out of sight, brought to the disk and renamed. There is no metadata.yaml, which
Bag does not need; `ros2 bag reindex` makes it.
"""

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

import yaml
from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from com_bags import storage
from com_bags.channels import Conversion
from com_bags.conversions import Converter, convert
from com_bags.exceptions import BagError, StorageError
from com_bags.log_format import LogFormat
from com_bags.other_files import ROS1_MAGIC, Ros1File, TableFile, standard_definition
from com_bags.storage import McapFile, Message, SqliteFile
from com_bags.tables import is_table
from com_model.files import sync
from com_model.text import listing


@dataclass(frozen=True)
class Topic:
    """A topic of a bag.

    Attributes:
        name: Its name.
        type_name: Type of its messages.
        count: Number of its messages.
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
    """An open recording.

    Args:
        path: Folder of a rosbag2 recording, or its .mcap or .db3 file; a bag of ROS 1; a table.
        format: What else than standard messages means joint states, IMU readings and wrenches;
            None: nothing does.

    Attributes:
        notes: What is wrong with the files read so far, sentences.
    """

    def __init__(self, path: str | Path, format: LogFormat | None = None) -> None:
        self.path = Path(path)
        self.notes: list[str] = []
        self._format = format
        self._converters: list[tuple[Connection, Converter]] = []
        self._files: list[McapFile | SqliteFile | Ros1File | TableFile] = []
        self._packed = False  # each message is compressed
        self._unpacked: TemporaryDirectory[str] | None = None

    def __enter__(self) -> "Bag":
        """Opens it; BagError where there is no such bag, or nothing of it can be read."""
        try:
            if not self.path.exists():
                raise BagError(
                    "does not exist. Give the directory of a bag, or its .mcap or .db3 file",
                    str(self.path),
                )
            if self.path.is_dir():
                self._open_directory()
            elif is_table(self.path):
                self._open_table()
            else:
                self._open_file(self.path)
            if self._format is not None and not is_table(self.path):
                self._converters = self._find_conversions(self._format)
        except (OSError, ValueError) as error:
            self.close()
            raise BagError(
                f"cannot be read: {getattr(error, 'strerror', None) or error}",
                str(self.path),
            ) from error
        except BagError:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Removes what was unpacked; no file stays open between two passes."""
        self._files = []
        if self._unpacked is not None:
            self._unpacked.cleanup()
            self._unpacked = None

    @property
    def connections(self) -> list[Connection]:
        """Connections of all files, and of the messages that are made of theirs."""
        return [each for file in self._files for each in self._connections_of(file)]

    @property
    def conversions(self) -> list[Conversion]:
        """How messages, or a table's rows, become standard messages; those that are need none."""
        tables = [file for file in self._files if isinstance(file, TableFile)]
        made = [converter.conversion for _, converter in self._converters]
        return made + [each for table in tables for each in table.conversions]

    def _connections_of(
        self, file: McapFile | SqliteFile | Ros1File | TableFile
    ) -> list[Connection]:
        """Connections of a file, without those that messages of the same name replace."""
        made = [
            converter.made._replace(msgcount=each.msgcount)
            for each in file.connections
            for source, converter in self._converters
            if (each.topic, each.msgtype) == (source.topic, source.msgtype)
        ]
        return [each for each in file.connections if not self._replaced(each)] + made

    def _replaced(self, connection: Connection) -> bool:
        """Whether messages are made that have a connection's topic and type."""
        key = connection.topic, connection.msgtype
        made = ((c.made.topic, c.made.msgtype) for _, c in self._converters)
        return key in made

    def topics(self) -> list[Topic]:
        """The topics by name."""
        found: defaultdict[tuple[str, str], list[Connection]] = defaultdict(list)
        publishers: Counter[tuple[str, str]] = Counter()
        for file in self._files:
            own = self._connections_of(file)
            publishers |= Counter((each.topic, each.msgtype) for each in own)
            for each in own:
                found[each.topic, each.msgtype].append(each)
        none = MessageDefinitionFormat.NONE
        return [
            Topic(
                *key,
                count=sum(each.msgcount for each in own),
                publishers=publishers[key],
                defined=any(each.msgdef.format != none for each in own),
            )
            for key, own in sorted(found.items())
        ]

    def messages(
        self, topics: Sequence[str], types: Collection[str] = ()
    ) -> Generator[Message, None, None]:
        """Yields the messages of some topics, and types if given, with one chunk in memory.

        Where a file turns out to be damaged, the messages before are used, and a note is added.
        """
        wanted = [
            (source, converter)
            for source, converter in self._converters
            if converter.made.topic in topics
            and (not types or converter.made.msgtype in types)
        ]
        if not wanted:
            yield from self._stored(topics, types)
            return

        def own(connection: Connection) -> bool:
            is_own = connection.topic in topics
            is_own &= not types or connection.msgtype in types
            return is_own and not self._replaced(connection)

        sources = {source.topic for source, _ in wanted}
        kinds = {source.msgtype for source, _ in wanted}.union(types) if types else ()
        with closing(self._stored([*topics, *sources], kinds)) as stored:
            yield from convert(stored, wanted, own)
        for note in dict.fromkeys(converter.note() for _, converter in wanted):
            self.notes += [note] * (bool(note) and note not in self.notes)

    def _stored(
        self, topics: Sequence[str], types: Collection[str] = ()
    ) -> Generator[Message, None, None]:
        """Yields messages as they are stored."""
        for file in self._files:
            count = 0
            try:
                for connection, time, payload in file.messages(topics, types):
                    data = storage.unpack_zstd(payload) if self._packed else payload
                    count += 1
                    yield connection, time, data
            except StorageError as error:
                if file.damage:  # there is a note
                    continue
                total = sum(
                    item.msgcount for item in file.connections if item.topic in topics
                )
                note = (
                    f"{self.path.name}: the bag is damaged after {count} of {total} messages "
                    f"({_first_line(error)}); what comes before is used"
                )
                if note not in self.notes:
                    self.notes.append(note)

    def blocks(
        self, keys: Sequence[tuple[str, str]], span_ns: int
    ) -> Iterator[dict[tuple[str, str], Block]]:
        """Yields the messages recorded within each interval of time.

        Args:
            keys: Topics with their types.
            span_ns: ns, length of an interval; shorter where a block would be larger than
                32 MiB.

        Yields:
            Messages by topic and type.
        """
        current = {key: Block() for key in keys}
        start, size = None, 0
        topics, types = ({key[i] for key in keys} for i in (0, 1))
        for connection, time, payload in self.messages(list(topics), types):
            key = connection.topic, connection.msgtype
            if key not in current:
                continue
            if start is None:
                start = time
            elif not 0 <= time - start < span_ns or size > 2**25:
                yield current
                current = {key: Block() for key in keys}
                start, size = time, 0
            block = current[key]
            block.payloads.append(payload)
            block.received.append(time)
            # a message needs 100 bytes beside its payload
            size += len(payload) + 100
        yield current

    def _open_directory(self) -> None:
        """Opens the files that metadata.yaml names, or without it all that there are."""
        try:
            names, packed = _metadata(self.path)
        except StorageError as error:
            names, packed = self._names_without_metadata(_first_line(error)), ""
        self._packed = packed == "message"
        refused: list[str] = []
        for name in names:
            file = self.path / name
            try:
                if packed == "file":
                    self._unpacked = self._unpacked or TemporaryDirectory()
                    file = storage.unpack_file(file, Path(self._unpacked.name))
                self._open_file(file)
            except (BagError, StorageError) as error:
                refused.append(getattr(error, "problem", str(error)))
                self.notes.append(f"{name}: {refused[-1]}")
        if not self._files:
            raise BagError(
                refused[0] if refused else "contains no files", str(self.path)
            )

    def _open_table(self) -> None:
        """Opens a table."""
        about = self._format or LogFormat(())
        file = TableFile(self.path, about.table_mapping)
        self.notes += file.notes
        self._files.append(file)

    def _find_conversions(self, about: LogFormat) -> list[tuple[Connection, Converter]]:
        """Converters with the connections whose messages they convert."""
        stored = [each for file in self._files for each in file.connections]
        found = []
        for each in about.conversions(stored):
            source = next(other for other in stored if other.topic == each.source)
            converter = Converter(each, source, about.types(source))
            converter.made = converter.made._replace(
                msgdef=standard_definition(each.type_name)
            )
            found.append((source, converter))
        return found

    def _names_without_metadata(self, reason: str) -> list[str]:
        names = sorted(file.name for file in self.path.iterdir())
        files = [name for name in names if name.endswith((".mcap", ".db3"))]
        if not files:
            packed = any(name.endswith(".zstd") for name in names)
            raise BagError(
                f"contains no bag ({reason}). Expected .mcap or .db3 files, got "
                f"{listing(names) or 'nothing'}"
                + ". Its files are compressed and metadata.yaml is missing or broken: "
                "unpack them with zstd -d first" * packed,
                str(self.path),
            )
        self.notes.append(
            f"{self.path.name}: {reason}; its files are read without metadata.yaml"
        )
        return files

    def _open_file(self, path: Path) -> None:
        """Opens a storage file, a damaged one from the front; BagError without a message."""
        with path.open("rb") as stream:
            start = stream.read(16)
        file: McapFile | SqliteFile | Ros1File
        if start.startswith(storage.MCAP_MAGIC):
            file = McapFile(path)
        elif start == storage.SQLITE_MAGIC:
            file = SqliteFile(path)
        elif start.startswith(ROS1_MAGIC):
            file = Ros1File(path)
        else:
            what = "is empty" if not start else "is neither mcap nor sqlite3"
            raise BagError(
                f"{what}. Give the directory of a rosbag2 bag, or its .mcap or .db3 file",
                str(path),
            )
        if file.damage:
            count = sum(item.msgcount for item in file.connections)
            if count == 0:
                raise BagError(
                    f"is damaged ({file.damage}) and contains no complete message. Record again",
                    str(path),
                )
            self.notes.append(
                f"{path.name}: damaged ({file.damage}). The {count} messages before that are used"
            )
        self._files.append(file)


def _metadata(folder: Path) -> tuple[list[str], str]:
    """Names of a bag's files, and what is compressed: file, message or nothing; or StorageError."""
    most = 2**20  # bytes
    try:
        with (folder / "metadata.yaml").open("rb") as stream:
            text = stream.read(most + 1)
        if len(text) > most:
            raise StorageError("metadata.yaml is too large")
        # It leaves merge keys as they are, which can grow without bound.
        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
        data = yaml.load(text, Loader=loader)["rosbag2_bagfile_information"]  # noqa: S506
        version, paths = int(data["version"]), list(data["relative_file_paths"])
        mode = str(data.get("compression_mode") or "").lower()
        names = [PurePath(path).name for path in paths]
        missing = [name for name in names if not (folder / name).is_file()]
    except FileNotFoundError:
        raise StorageError("metadata.yaml is missing") from None
    except (PermissionError, StorageError):
        raise
    except Exception as error:  # damaged text becomes values of any type
        raise StorageError(
            f"metadata.yaml cannot be read: {_first_line(error)}"
        ) from error
    newest = 9  # version of metadata.yaml
    if version > newest:
        raise StorageError(
            f"metadata.yaml has version {version}, known are those up to {newest}"
        )
    if missing or not names:
        raise StorageError(
            f"files of metadata.yaml are missing: {listing(missing) or 'all'}"
        )
    return names, mode


def _first_line(error: Exception) -> str:
    """An error in one short line."""
    text = str(error).split("\n", 1)[0].rstrip(".")[:160]
    return text or type(error).__name__


def append_messages(
    folder: Path, types: Mapping[str, str], messages: Sequence[tuple[str, int, bytes]]
) -> Path:
    """Adds a file of messages: topic, time of recording in ns, CDR bytes; returns its path.

    The first one makes the folder; types are by topic. Raises OSError where it cannot be written;
    what is there stays as it is.
    """
    folder.mkdir(exist_ok=True)
    file = folder / f"{folder.name}_{len(list(folder.glob('*.mcap'))):04d}.mcap"
    store = get_typestore(Stores.ROS2_JAZZY)
    with tempfile.TemporaryDirectory(prefix=".part.", dir=folder) as hidden:
        part = Path(hidden) / "part"
        with Writer(part, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            connections = {
                topic: writer.add_connection(topic, kind, typestore=store)
                for topic, kind in types.items()
            }
            for topic, time, payload in messages:
                writer.write(connections[topic], time, payload)
        sync(part / "part.mcap")
        os.replace(part / "part.mcap", file)
    sync(folder)
    return file
