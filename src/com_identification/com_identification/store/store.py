"""Captured postures on disk, in SQLite: what was acknowledged survives a kill at any time."""

import json
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from com_identification.exceptions import IdentificationError, OutputError, StoreError
from com_identification.regression.postures import Posture
from com_identification.store import records
from com_model import Foot, RobotModel
from com_model.arrays import Array, as_array
from com_model.files import whole_file
from com_model.text import listing

SUFFIX = ".db"
# A record is JSON: under id 0 that of the robot, under -1, -2, ... the bias of the first, second,
# ... foot, above 0 that of a posture.
_SCHEMA = "CREATE TABLE records (id INTEGER PRIMARY KEY AUTOINCREMENT, record TEXT)"
_MAGIC = b"SQLite format 3\0"  # at the beginning of databases
_INSERT = "INSERT OR REPLACE INTO records VALUES (?, ?)"


@dataclass
class _Contents:
    """Contents of a file of postures.

    Attributes:
        model: the robot.
        bias: (f, 6) N and N m, of the force sensors, as read; 0 where none was measured.
        postures: by id.
        stamps: ns, when each was captured, by id; 0: not known.
    """

    model: RobotModel
    bias: Array
    postures: dict[int, Posture] = field(default_factory=dict)
    stamps: dict[int, int] = field(default_factory=dict)

    def add_record(self, record: Mapping[str, Any], identity: int) -> None:
        """Adds a posture or a bias that was read.

        Args:
            record: what was decoded.
            identity: of the posture.

        Raises:
            ValueError: says why that is not possible.
        """
        most = 20_000  # postures
        if record["kind"] == "tare":
            foot, bias = record["foot"], records.numbers(record["offset"], 6)
            if records.whole(foot, "foot") >= len(self.bias):
                raise ValueError(f"there is no foot {foot}")
            if not np.isfinite(bias).all():
                raise ValueError("offset: expected 6 numbers")
            self.bias[foot] = bias
        elif record["kind"] == "posture":
            if len(self.postures) >= most:
                raise ValueError(f"there are more than {most} postures")
            posture = records.decode_posture(record, self.model, len(self.bias))
            self.postures[identity] = posture
            self.stamps[identity] = records.whole(record.get("stamp_ns", 0), "stamp_ns")

    def records(self) -> Iterator[tuple[int, str]]:
        """Ids and records of all."""
        for foot in np.flatnonzero(self.bias.any(axis=1)).tolist():
            yield -1 - foot, records.encode_bias(foot, self.bias[foot])
        for i, posture in self.postures.items():
            yield i, records.encode_posture(posture, self.stamps[i])


class PostureStore:
    """A file of postures of one robot: an SQLite database in WAL mode.

    When add() returns, the posture is on the disk; each change is made whole or not at all. One
    process at a time uses the file, which is created where it is missing, with its directory. A
    damaged file is refused and not changed.

    Args:
        path: of the file.
        model: the robot.
        feet: its feet, f, with the force sensors.

    Attributes:
        last_backup: the copy of the postures that reset() or load() replaced last; None: none.

    Raises:
        StoreError: it cannot be opened, is in use, damaged, or another robot's.
    """

    def __init__(
        self, path: str | os.PathLike[str], model: RobotModel, feet: Sequence[Foot]
    ) -> None:
        self.path = Path(path)
        self._robot = records.robot_record(model, feet)
        self._database: sqlite3.Connection | None = None
        self._contents = _Contents(model, np.zeros((len(feet), 6)))
        self.last_backup: Path | None = None
        try:
            with _errors(
                str(self.path), "Give a file in a directory that can be written to"
            ):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._open()
        except StoreError:
            self.close()
            raise

    @property
    def postures(self) -> Mapping[int, Posture]:
        """The postures by id, in the order in which they were added; ids are never used again."""
        return MappingProxyType(self._contents.postures)

    @property
    def bias(self) -> Array:
        """(f, 6) N and N m, bias of the force sensors, as read; 0 where none was measured."""
        return self._contents.bias.copy()

    @property
    def stamps(self) -> Mapping[int, int]:
        """When each posture was captured, ns; 0: not known."""
        return MappingProxyType(self._contents.stamps)

    def add(self, posture: Posture, stamp_ns: int = 0) -> int:
        """Adds a posture; when it returns, the posture is on the disk.

        Args:
            posture: Of this robot.
            stamp_ns: When it was captured, ns; 0: not known.

        Returns:
            Its id.

        Raises:
            StoreError: It is another robot's, or the disk is full; the file is as it was.
        """
        return self.add_all([(posture, stamp_ns)])[0]

    def add_all(self, postures: Iterable[tuple[Posture, int]]) -> list[int]:
        """Adds postures, all or none.

        Args:
            postures: each with its stamp, ns; 0: not known.

        Returns:
            Their ids.

        Raises:
            StoreError: as add().
        """
        new = _Contents(self._contents.model, self.bias)
        texts = []
        try:
            for number, (posture, stamp_ns) in enumerate(postures):
                texts.append(records.encode_posture(posture, stamp_ns))
                new.add_record(records.decode(texts[-1]), number)
        except ValueError as error:
            raise StoreError(f"the posture cannot be stored: {error}") from error
        with self._writing() as database:
            ids = [database.execute(_INSERT, (None, t)).lastrowid or 0 for t in texts]
        self._contents.postures |= zip(ids, new.postures.values(), strict=True)
        self._contents.stamps |= zip(ids, new.stamps.values(), strict=True)
        return ids

    def remove(self, identity: int) -> None:
        """Removes a posture.

        Args:
            identity: its id.

        Raises:
            StoreError: there is no such posture (lists those that there are); or as add().
        """
        if identity not in self.postures:
            known = listing([str(i) for i in self.postures], limit=50) or "none"
            raise StoreError(f"no posture has the id {identity}; there are: {known}")
        with self._writing() as database:
            database.execute("DELETE FROM records WHERE id = ?", (identity,))
        del self._contents.postures[identity], self._contents.stamps[identity]

    def set_bias(self, foot: int, bias: ArrayLike) -> None:
        """Stores the bias of a foot's sensor.

        Args:
            foot: 0 to f - 1.
            bias: (6,) N, N m, as read.

        Raises:
            StoreError: It is not finite, there is no such foot; or as add().
        """
        values = as_array("bias", bias, (6,))
        if not np.isfinite(values).all():
            raise StoreError(f"the bias of a sensor must be finite, got {values}")
        if not 0 <= foot < len(self._contents.bias):
            raise StoreError(
                f"foot {foot}: expected 0 to {len(self._contents.bias) - 1}"
            )
        with self._writing() as database:
            database.execute(_INSERT, (-1 - foot, records.encode_bias(foot, values)))
        self._contents.bias[foot] = values

    def reset(self) -> Path | None:
        """Removes all postures, but not the bias.

        Ids continue after those that were used.

        Returns:
            Path of a copy of what was removed; None where there was nothing.

        Raises:
            StoreError: as add().
        """
        new = _Contents(self._contents.model, self.bias)
        return self._replace(new) if self.postures else None

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Writes all postures to another file, whole or not at all.

        Args:
            path: Of that file.
            overwrite: Whether it may be there already.

        Raises:
            StoreError: It is the store itself.
            OutputError: It is there already, or cannot be written.
        """
        target = Path(path)
        if target.exists() and target.samefile(self.path):
            raise StoreError(f"{target} is the store itself, which is on disk already")
        if target.exists() and not overwrite:
            raise OutputError(
                f"{target} exists already: give another name, or allow overwriting"
            )
        fix = "Free space on the disk, or give a directory that can be written to"
        with self._writing() as database, _errors(str(target), fix, OutputError):
            _copy(database, target, overwrite)
        return target

    def load(self, path: str | os.PathLike[str]) -> int:
        """Replaces postures and bias by those of another file of this robot.

        The previous ones are copied as by reset(), to last_backup. Postures get new ids.

        Args:
            path: of a file that save() has written, or of another store.

        Returns:
            The number of postures.

        Raises:
            StoreError: the file cannot be used; nothing is changed. Or as add().
        """
        with _errors(str(path), "Give another file"):
            found = self._read_file(Path(path))
        self._replace(found)
        return len(found.postures)

    def close(self) -> None:
        """Closes the file, so that other processes can use it."""
        if self._database is not None:
            self._database.close()
        self._database = None

    def __enter__(self) -> "PostureStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the database ------------------------------------------------------------------------
    def _open(self) -> None:
        """Opens the file, makes it where it is missing, and reads it."""
        self.path.touch()
        _check_kind(self.path)
        self._database = database = _connect(self.path)
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        is_new = not database.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()[
            0
        ]
        if not is_new:  # before WAL mode, which changes the file of another program
            self._contents = self._read(database, self.path)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        if is_new:
            rows = [(0, json.dumps(self._robot)), *self._contents.records()]
            with database:
                database.execute("BEGIN")
                database.execute(_SCHEMA)
                database.executemany(_INSERT, rows)

    def _read_file(self, path: Path) -> _Contents:
        """Reads another file; see load()."""
        _check_kind(path)
        wal = path.with_name(path.name + "-wal")
        database = _connect(path, "mode=ro" if wal.exists() else "mode=ro&immutable=1")
        with closing(database):
            return self._read(database, path)

    def _read(self, database: sqlite3.Connection, path: Path) -> _Contents:
        """Reads a database that is not trusted, of a file; a StoreError says what is wrong."""
        schema = "SELECT sql FROM sqlite_schema WHERE name != 'sqlite_sequence' LIMIT 2"
        if database.execute(schema).fetchall() != [(_SCHEMA,)]:
            raise StoreError(f"{path} is not a posture file: give another file")
        rows = database.execute("SELECT * FROM records ORDER BY abs(id)")
        found = _Contents(self._contents.model, np.zeros_like(self._contents.bias))
        number = 0
        try:
            for number, (identity, text) in enumerate(rows):
                record = records.decode(text)
                if number:
                    found.add_record(record, records.whole(abs(identity), "id"))
                else:
                    records.check_robot(record, self._robot, str(path))
        except (TypeError, KeyError, ValueError) as error:
            raise StoreError(
                f"{path}: record {number} is damaged: {error}. Give another file"
            ) from error
        return found

    def _replace(self, new: _Contents) -> Path:
        """Puts new contents in place of the present ones, of which it writes a copy."""
        names = (f"{self.path.name}.{number}.old" for number in range(1, 1_000_000))
        paths = (self.path.with_name(name) for name in names)
        backup = next((path for path in paths if not path.exists()), None)
        if backup is None:
            raise StoreError(f"too many backups beside {self.path}: remove some")
        rows = [(i if i < 0 else None, text) for i, text in new.records()]
        try:
            with self._writing() as database:
                _copy(database, backup, overwrite=False)
                database.execute("DELETE FROM records WHERE id != 0")
                database.executemany(_INSERT, rows)
        except StoreError:
            backup.unlink(missing_ok=True)
            raise
        self._contents, self.last_backup = self._read(database, self.path), backup
        return backup

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all or nothing of it is stored; raises StoreError."""
        if self._database is None:
            raise StoreError(f"{self.path} is closed")
        fix = "Its postures are still there; free space on the disk and try again"
        with _errors(str(self.path), fix):
            if not self.path.exists():  # it was removed
                self._database.close()
                self._open()
            with self._database:
                yield self._database


@contextmanager
def _errors(
    file: str, fix: str, kind: type[IdentificationError] = StoreError
) -> Iterator[None]:
    """Turns errors of the system and of SQLite into an error that names the file and the fix."""
    try:
        yield
    except (OSError, ValueError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if "locked" in reason:
            reason, fix = "in use by another process", "Stop it, or give another file"
        raise kind(f"{file} cannot be used: {reason}. {fix}") from error


def _copy(database: sqlite3.Connection, path: Path, overwrite: bool) -> None:
    """Copies a database into a file, whole or not at all; OSError or sqlite3.Error."""
    with whole_file(path, overwrite) as part:
        database.execute("VACUUM INTO ?", (str(part),))


def _connect(path: Path, options: str = "mode=rwc") -> sqlite3.Connection:
    """Connects to a database that is not trusted; `options` are those of SQLite's URIs."""
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?{options}",
        timeout=0.0,
        uri=True,
        check_same_thread=False,
    )
    if sys.version_info >= (3, 11):  # before, SQLite's own limit counts, 1 GB
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, records.MAX_RECORD)
    database.execute("PRAGMA trusted_schema = OFF")
    return database


def _check_kind(path: Path) -> None:
    """Checks that a file is a database, or empty.

    Raises:
        OSError: It is a pipe or a device, which may never end.
        StoreError: Its content is something else; SQLite would overwrite some such files.
    """
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is not a regular file")
    with path.open("rb") as stream:
        if stream.read(len(_MAGIC)) not in (b"", _MAGIC):
            raise StoreError(f"{path} is not a posture file: give another file")
