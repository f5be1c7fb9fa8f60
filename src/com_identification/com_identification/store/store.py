"""Stores captured postures on disk: what was acknowledged survives a kill at any moment."""

import errno
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from com_identification.exceptions import StoreError
from com_identification.regression.postures import Posture
from com_identification.store import records
from com_identification.store.results import write_whole
from com_model import Foot, RobotModel
from com_model.arrays import Array, as_array
from com_model.files import sync, write_file
from com_model.text import listing

_MAX_POSTURES = 20_000
_MAX_LINES = 100_000


@dataclass
class _Contents:
    bias: Array  # (f, 6) of the force sensors, as read
    postures: dict[int, Posture] = field(default_factory=dict)  # by id
    stamps: dict[int, int] = field(
        default_factory=dict
    )  # when captured, ns; 0 where not known
    next_id: int = 1
    warnings: tuple[str, ...] = ()  # sentences; of a file that is to be written again

    def copy(self) -> "_Contents":
        postures, stamps = dict(self.postures), dict(self.stamps)
        return replace(self, bias=self.bias.copy(), postures=postures, stamps=stamps)

    def change(self, record: Mapping[str, Any], model: RobotModel) -> None:
        """Applies a line; a ValueError says why it is not valid."""
        kind = record["kind"]
        if kind == "posture":
            identity = records.whole(record, "id")
            if identity in self.postures:
                raise ValueError(f"the id {identity} is there twice")
            if len(self.postures) >= _MAX_POSTURES:
                raise ValueError(f"there are more than {_MAX_POSTURES} postures")
            self.postures[identity] = records.posture_of(record, model, len(self.bias))
            self.stamps[identity] = (
                records.whole(record, "stamp_ns") if "stamp_ns" in record else 0
            )
            self.next_id = max(self.next_id, identity + 1)
        elif kind == "remove":
            self.remove(records.whole(record, "id"))
        elif kind == "tare":
            foot, bias = (
                records.whole(record, "foot"),
                records.numbers(record.get("offset"), 6),
            )
            if foot >= len(self.bias):
                raise ValueError(f"there is no foot {foot}")
            if not np.isfinite(bias).all():
                raise ValueError("offset: expected 6 numbers")
            self.bias[foot] = bias
        elif kind == "next":
            self.next_id = max(self.next_id, records.whole(record, "id"))
        else:
            raise ValueError(f"unknown kind {kind[:20]!r}")

    def remove(self, identity: int) -> None:
        if identity not in self.postures:
            known = listing([str(i) for i in self.postures], limit=50) or "none"
            raise ValueError(f"no posture has the id {identity}; there are: {known}")
        del self.postures[identity], self.stamps[identity]

    @classmethod
    def read(
        cls, stream: BinaryIO, name: str, model: RobotModel, robot: Mapping[str, Any]
    ) -> "_Contents":
        """Reads a file; an incomplete last line is ignored, a bad one a StoreError."""
        found = cls(np.zeros((len(robot["feet"]), 6)))
        for number in range(1, _MAX_LINES + 2):
            if not (line := stream.readline(records.MAX_LINE + 1)):
                return found
            if not line.endswith(b"\n") and len(line) <= records.MAX_LINE:
                problem = "is incomplete and is ignored: it was never acknowledged"
                found.warnings = (f"{name}: line {number} {problem}.",)
                return found
            try:
                record = records.decode(line)
                if number > 1:
                    found.change(record, model)
            except (ValueError, RecursionError, OverflowError) as error:
                fix = "Give another file, or remove that line"
                raise StoreError(
                    f"{name}: line {number} is damaged: {error}. {fix}"
                ) from error
            if number == 1:
                records.check_robot(record, robot, name)
        raise StoreError(f"{name} has more than {_MAX_LINES} lines: give another file")

    def encoded(self, robot: Mapping[str, Any]) -> bytes:
        """The lines of a file."""
        lines: list[Mapping[str, Any]] = [robot]
        if self.next_id > max(self.postures, default=0) + 1:
            lines.append({"kind": "next", "id": self.next_id})
        for foot, bias in enumerate(self.bias):
            if bias.any():
                lines.append({"kind": "tare", "foot": foot, "offset": bias.tolist()})
        stamps = self.stamps
        lines += [
            records.posture_record(i, posture, stamps[i])
            for i, posture in self.postures.items()
        ]
        return b"".join(map(records.encode, lines))


class FileLock:
    """A lock file beside the file that one process uses; it is removed by release().

    Raises BlockingIOError where another process holds it, OSError where it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1
        while self._handle < 0:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                raise
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    self._handle = handle
                    return
            os.close(handle)  # its owner removed it between opening and locking

    def release(self) -> None:
        """Releases the lock."""
        if self._handle >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1


class PostureStore:
    """A file of postures, one JSON line each.

    The first line names the robot. A posture is appended, written and synced to the disk before the
    call returns; an incomplete last line is removed when the file is opened again. Other changes
    write the file again, whole or not at all. One process at a time uses the file, which is made
    where it is missing, its directory too. `last_backup` is what the file that reset() or load()
    replaced last is called now. Raises StoreError.
    """

    def __init__(
        self, path: str | os.PathLike[str], model: RobotModel, feet: Sequence[Foot]
    ) -> None:
        self.path = Path(path)
        self._model, self._robot = model, records.robot_record(model, feet)
        self.last_backup: Path | None = None
        self._lock: FileLock | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _check_regular(self.path)
            self._lock = FileLock(self.path.with_name(self.path.name + ".lock"))
            self.path.touch()
            self._contents = self._read(self.path)
            if self._contents.warnings:
                write_file(self.path.resolve(), self._contents.encoded(self._robot))
            elif not self.path.stat().st_size:
                _append(self.path, records.encode(self._robot))
                sync(self.path.parent)
        except BlockingIOError as error:
            raise StoreError(
                f"{self.path} is in use by another process: stop that one, or give another file"
            ) from error
        except (OSError, ValueError) as error:
            self.close()
            raise StoreError(
                f"{self.path} cannot be opened: {error}. Give a file in a directory that can be "
                "written to"
            ) from error
        except StoreError:
            self.close()
            raise

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of opening it, sentences."""
        return self._contents.warnings

    @property
    def postures(self) -> Mapping[int, Posture]:
        """The postures by id, in the order in which they were added; ids are never used again."""
        return MappingProxyType(self._contents.postures)

    @property
    def bias(self) -> Array:
        """(f, 6) bias of the force sensors, as read; 0 where none was measured."""
        return self._contents.bias.copy()

    @property
    def stamps(self) -> Mapping[int, int]:
        """When each posture was captured, ns; 0 where nobody said."""
        return MappingProxyType(self._contents.stamps)

    def add(self, posture: Posture, stamp_ns: int = 0) -> int:
        """Appends a posture and gives its id; when it returns, the posture is on disk.

        Raises StoreError where it is of another robot, or the disk is full; the file is as it was.
        """
        identity = self._contents.next_id
        new = self._contents.copy()
        try:
            line = records.encode(records.posture_record(identity, posture, stamp_ns))
            new.change(records.decode(line), self._model)
        except ValueError as error:
            raise StoreError(f"the posture cannot be stored: {error}") from error
        with self._writing():
            if self.path.exists():
                _append(self.path, line)
            else:  # somebody removed it
                write_file(self.path, new.encoded(self._robot))
        self._contents = new
        return identity

    def remove(self, identity: int) -> None:
        """Removes a posture; a StoreError lists those that there are. Or as add()."""
        new = self._contents.copy()
        try:
            new.remove(identity)
        except ValueError as error:
            raise StoreError(str(error)) from error
        self._write(new)

    def set_bias(self, foot: int, bias: ArrayLike) -> None:
        """Stores the bias (6,) of a foot's sensor, as read, finite; errors as add()."""
        values, new = as_array("bias", bias, (6,)), self._contents.copy()
        if not np.isfinite(values).all():
            raise StoreError(f"the bias of a sensor must be finite, got {values}")
        if not 0 <= foot < len(new.bias):
            raise StoreError(f"foot {foot}: expected 0 to {len(new.bias) - 1}")
        new.bias[foot] = values
        self._write(new)

    def reset(self) -> Path | None:
        """Removes all postures, not the bias; ids go on. Gives the old file's new name."""
        if not self.postures:
            return None
        return self._replace(_Contents(self.bias, next_id=self._contents.next_id))

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Writes all postures to another file, whole or not at all: StoreError, OutputError."""
        target = Path(path)
        if target.exists() and target.samefile(self.path):
            raise StoreError(f"{target} is the store itself, which is on disk already")
        return write_whole(target, self._contents.encoded(self._robot), overwrite)

    def load(self, path: str | os.PathLike[str]) -> int:
        """Replaces the postures by those of another file of this robot; returns their number.

        The old file is renamed as by reset(), to last_backup. The bias is replaced, too. Postures
        get new ids, which go on from those that were used. A StoreError changes nothing.
        """
        try:
            _check_regular(Path(path))
            read = self._read(Path(path))
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} cannot be read: {error}") from error
        start = self._contents.next_id
        postures = dict(enumerate(read.postures.values(), start))
        stamps = dict(enumerate(read.stamps.values(), start))
        self._replace(_Contents(read.bias, postures, stamps, start + len(postures)))
        return len(postures)

    def close(self) -> None:
        """Lets other processes use the file."""
        if self._lock is not None:
            self._lock.release()
        self._lock = None

    def __enter__(self) -> "PostureStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, path: Path) -> _Contents:
        with path.open("rb") as stream:
            return _Contents.read(stream, str(path), self._model, self._robot)

    def _write(self, new: _Contents) -> None:
        with self._writing():
            write_file(self.path.resolve(), new.encoded(self._robot))
        self._contents = new

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._lock is None:
            raise StoreError(f"{self.path} is closed")
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written: {error.strerror}. Its postures are still there; "
                "free space on the disk and try again"
            ) from error

    def _replace(self, new: _Contents) -> Path:
        """Puts new contents in place of the file, which gets another name."""
        names = (
            self.path.with_name(f"{self.path.name}.{n}.old")
            for n in range(1, 1_000_000)
        )
        backup = next((path for path in names if not path.exists()), None)
        if backup is None:
            raise StoreError(f"too many backups beside {self.path}: remove some")
        with self._writing():
            os.link(self.path, backup)
            sync(self.path.parent)
        try:
            self._write(new)
        except StoreError:
            backup.unlink(missing_ok=True)
            raise
        self.last_backup = backup
        return backup


def _append(path: Path, line: bytes) -> None:
    """Writes a line at the end of a file, to the disk, or leaves the file as it was: OSError."""
    size = path.stat().st_size
    try:
        with path.open("ab", buffering=0) as file:
            if file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):  # an incomplete line is ignored when the file is read
            os.truncate(path, size)
        raise


def _check_regular(path: Path) -> None:
    """Refuses pipes and devices, which may never end: OSError."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is not a regular file")
