"""What can still be read of an sqlite3 bag whose end is missing, or that holds bad pages."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote as quote_url

from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)

from com_bags.exceptions import BagError

_FORMATS = {"ros2msg": MessageDefinitionFormat.MSG, "ros2idl": MessageDefinitionFormat.IDL}
_MESSAGES = "SELECT topic_id, timestamp, data FROM messages NOT INDEXED ORDER BY id"
_COUNTS = "SELECT topic_id, length(data) FROM messages NOT INDEXED ORDER BY id"


class DamagedSqlite:
    """Reads messages from the front until a page is bad.

    Attributes:
        connections: The topics, with the number of messages that can be read.
        problem: What sqlite said when it came to the bad page; "" where all could be read.

    Raises:
        BagError: Not even the list of topics can be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.problem = ""
        try:
            with closing(self._open()) as database:
                rows = database.execute(
                    "SELECT id, name, type, serialization_format FROM topics ORDER BY id"
                ).fetchall()
                definitions = _definitions(database)
        except sqlite3.Error as error:
            problem = f"no topics can be read of it ({error}). Copy it once more, or record anew"
            raise BagError(problem, str(path)) from error
        counts: Counter[int] = Counter(topic for topic, _ in self._rows(_COUNTS))
        undefined = MessageDefinition(MessageDefinitionFormat.NONE, "")
        self.connections = [
            Connection(
                number,
                topic,
                kind,
                definitions.get(kind, undefined),
                "",
                counts[number],
                ConnectionExtRosbag2(encoding, []),
                self,
            )
            for number, topic, kind, encoding in rows
        ]

    def messages(
        self, topics: Collection[str], types: Collection[str]
    ) -> Iterator[tuple[Connection, int, bytes]]:
        """Yields messages of some topics and, unless empty, of some types, as they came."""
        wanted = {
            item.id: item
            for item in self.connections
            if item.topic in topics and (not types or item.msgtype in types)
        }
        for topic, time, data in self._rows(_MESSAGES):
            if topic in wanted:
                yield wanted[topic], time, data

    def close(self) -> None:
        """Nothing is open between passes."""

    def _rows(self, query: str) -> Iterator[tuple]:
        with closing(self._open()) as database:
            try:
                yield from database.execute(query)
            except sqlite3.Error as error:
                self.problem = str(error)

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(f"file:{quote_url(str(self._path))}?immutable=1", uri=True)
        # Otherwise sqlite refuses a file that is shorter than its header says, whole pages or not.
        database.execute("PRAGMA writable_schema=ON")
        return database


def _definitions(database: sqlite3.Connection) -> dict[str, MessageDefinition]:
    found: dict[str, MessageDefinition] = {}
    query = "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
    with suppress(sqlite3.Error):  # old bags have no such table
        for name, encoding, text in database.execute(query):
            if encoding in _FORMATS:
                found[name] = MessageDefinition(_FORMATS[encoding], text)
    return found
