"""The record of robots in a database: a file of SQLite, or a URL that SQLAlchemy knows.

What was appended is on the disk when append() returns. What cannot be written, because another
program locks the database, or because it is damaged, waits in files beside it, and is added the
next time. Each identification is there once, whoever appends it.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from com_identification.exceptions import HealthError
from com_identification.health.changes import history
from com_identification.health.records import Record
from com_model.files import write_file

_TABLES = (
    "CREATE TABLE IF NOT EXISTS records (id VARCHAR(64) PRIMARY KEY, robot TEXT, serial TEXT, "
    "taken TEXT, body TEXT)",
    # reason is empty where the bag was identified
    "CREATE TABLE IF NOT EXISTS bags (path VARCHAR(700) PRIMARY KEY, stamp TEXT, hash TEXT, "
    "reason TEXT)",
)
_WAIT = 10.0  # s for another writer

Row = Sequence[Any]
BagRow = tuple[str, str, str, str]
"""Path, stamp, hash and reason of the failure, "" where there is none, of a bag that was read."""


class HealthDatabase:
    """The records of robots; may be used by several processes at once.

    `where` is the path of a file of SQLite, which `create` makes where it is missing, or a URL such
    as postgresql://host/health; `wait`, s, is for another writer. Raises HealthError where there is
    none, it is damaged, or the database cannot be reached.
    """

    def __init__(self, where: str | Path, create: bool = False, wait: float = _WAIT) -> None:
        self._url, self._create, self._wait = str(where), create, wait
        self.name = str(where)
        self._engine: Any = None
        if "://" in self._url:
            alchemy = library("sqlalchemy")
            try:
                self._engine = alchemy.create_engine(self._url)
            except Exception as error:  # the drivers have their own
                raise HealthError(f"no URL of a database: {error}") from error
            self.name = self._engine.url.render_as_string(hide_password=True)
            folder = hashlib.sha256(self._url.encode()).hexdigest()[:16]
            self._pending = Path.home() / ".com_health" / folder
        else:
            self._pending = Path(f"{self._url}.pending")
            if not create and not Path(self._url).is_file():
                raise HealthError(
                    f"no record {self._url}: identify BAG --record {self._url} makes one"
                )
        if not create:
            self._read("SELECT COUNT(*) FROM records")

    def append(self, record: Record) -> bool:
        """Adds an identification; returns whether it is new. Errors as append_all."""
        return self.append_all([record]) == 1

    def append_all(self, records: Sequence[Record], bags: Iterable[BagRow] = ()) -> int:
        """Adds identifications, and bags that were read, at once; returns how many are new.

        A HealthError says that nothing can be written now, and in which files the identifications
        wait; or that all is written, and which one that waited is damaged.
        """
        try:
            new = self._insert(records, bags)
        except HealthError as error:
            paths = [self._pending / f"{record.key}.json" for record in records]
            try:
                self._pending.mkdir(parents=True, exist_ok=True)
                for path, record in zip(paths, records, strict=True):
                    write_file(path, record.to_json())
            except OSError as second:
                raise HealthError(f"{error} Nor can it be kept: {second}") from error
            where = ", ".join(map(str, paths))
            raise HealthError(
                f"{error} The identification is in {where}, and is added with the next one"
            ) from error
        for path, waiting in self._waiting().items():
            self._insert([waiting])
            path.unlink(missing_ok=True)
        return new

    def records(self, robot: str = "", serial: str = "") -> list[Record]:
        """Identifications in order of time; of one robot, or of all; else HealthError."""
        rows = self._read(
            "SELECT body FROM records WHERE (robot = :robot OR :robot = '') "
            "AND (serial = :serial OR :serial = '') ORDER BY taken, id",
            {"robot": robot, "serial": serial},
        )
        found = [Record.from_json(row[0]) for row in rows]
        waiting = [r for r in self._waiting().values() if r.key not in {f.key for f in found}]
        found += [r for r in waiting if robot in ("", r.robot) and serial in ("", r.serial)]
        return sorted(found, key=lambda record: (record.taken, record.key))

    def changes(self, record: Record) -> list[str]:
        """What changed in an identification that is in it, in sentences; empty: nothing known."""
        steps = history(self.records(record.robot, record.serial))
        return [line for step in steps if step.new.key == record.key for line in step.lines()]

    def bags(self) -> list[BagRow]:
        """All bags that were read."""
        rows = self._read("SELECT path, stamp, hash, reason FROM bags")
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    def _insert(self, records: Iterable[Record], bags: Iterable[BagRow] = ()) -> int:
        new = 0
        with self._opened(write=True) as run:
            for record in records:
                values = {"id": record.key, "robot": record.robot, "serial": record.serial}
                values |= {"taken": record.taken, "body": record.to_json()}
                if not run("SELECT 1 FROM records WHERE id = :id", values):
                    run("INSERT INTO records VALUES (:id, :robot, :serial, :taken, :body)", values)
                    new += 1
            for row in bags:
                values = dict(zip(("path", "stamp", "hash", "reason"), row, strict=True))
                run("DELETE FROM bags WHERE path = :path", values)
                run("INSERT INTO bags VALUES (:path, :stamp, :hash, :reason)", values)
        return new

    def _waiting(self) -> dict[Path, Record]:
        found = {}
        for path in sorted(self._pending.glob("*.json")):
            try:
                found[path] = Record.from_json(path.read_text())
            except FileNotFoundError:  # another program has added it meanwhile
                continue
            except (OSError, HealthError) as error:
                raise HealthError(f"{path}: {error}. Move it away") from error
        return found

    # --- the two kinds of databases ----------------------------------------------------------
    def _read(self, sql: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        with self._opened(write=self._create) as run:
            return run(sql, values or {})

    @contextmanager
    def _opened(self, write: bool) -> Iterator[Any]:
        """A function that runs SQL within one transaction."""
        try:
            with self._transaction(write) as run:
                if write:
                    for table in _TABLES:
                        run(table, {})
                yield run
        except Exception as error:
            if isinstance(error, sqlite3.Error) or type(error).__module__.startswith("sqlalchemy"):
                raise HealthError(f"{self.name}: {_advice(error)}") from error
            raise

    @contextmanager
    def _transaction(self, write: bool) -> Iterator[Any]:
        if self._engine is not None:
            text = import_module("sqlalchemy").text
            with self._engine.begin() as connection:

                def run_text(sql: str, values: Mapping[str, Any]) -> list[Row]:
                    answer = connection.execute(text(sql), dict(values))
                    return list(answer) if answer.returns_rows else []

                yield run_text
            return
        connection = sqlite3.connect(self._url, timeout=self._wait, isolation_level=None)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            yield lambda sql, values: connection.execute(sql, values).fetchall()
            connection.execute("COMMIT")
        finally:
            connection.close()  # rolls back what is not committed


def _advice(error: Exception) -> str:
    text = str(getattr(error, "orig", None) or error)
    if "locked" in text or "busy" in text:
        return f"{text}: another program writes to it; try again when it has ended."
    if "no such table" in text:
        return f"{text}: it is no record of robots."
    if any(word in text for word in ("malformed", "not a database", "disk image", "corrupt")):
        return f"{text}: it is damaged and stays as it is; move it away, or restore a copy."
    return f"{text}."


def library(name: str) -> Any:
    """Imports what only an extra installs; a HealthError says how."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise HealthError(f"{package} is missing: pip install {package}") from error
