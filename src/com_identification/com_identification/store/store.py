"""Stores captured postures on disk: what was acknowledged survives a kill at any moment."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from com_identification.exceptions import OutputError, StoreError
from com_identification.regression.postures import Posture
from com_identification.store.files import AppendFile, FileLock, write_whole
from com_identification.store.records import (
    StoreContents,
    decode,
    encode,
    posture_record,
    read_contents,
    robot_record,
)
from com_model import Foot, RobotModel
from com_model.arrays import Array, as_array
from com_model.files import sync
from com_model.text import listing


class PostureStore:
    """A file of postures, one JSON line each, that is only ever appended to.

    The first line names the robot. Each change is one line, written and synced to the disk before
    the call returns; an incomplete last line is removed when the file is opened again. One process
    at a time uses the file, which is made where it is missing, its directory too. `last_backup` is
    what the file that reset() or load() replaced last is called now. Raises StoreError.
    """

    def __init__(
        self, path: str | os.PathLike[str], model: RobotModel, feet: Sequence[Foot]
    ) -> None:
        self.path = Path(path)
        self._model, self._feet = model, tuple(feet)
        self._robot = robot_record(model, feet)
        self._contents = StoreContents(np.zeros((len(self._feet), 6)))
        self.last_backup: Path | None = None
        self._file: AppendFile | None = None
        self._lock: FileLock | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _check_regular(self.path)
            self._lock = FileLock(self.path.with_name(self.path.name + ".lock"))
            self._open()
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
        self._append(posture_record(identity, posture, stamp_ns))
        return identity

    def remove(self, identity: int) -> None:
        """Removes a posture; a StoreError lists those that there are. Or as add()."""
        if identity not in self.postures:
            known = listing([str(i) for i in self.postures], limit=50) or "none"
            raise StoreError(f"no posture has the id {identity}; there are: {known}")
        self._append({"kind": "remove", "id": identity})

    def set_bias(self, foot: int, bias: ArrayLike) -> None:
        """Stores the bias (6,) of a foot's sensor, as read, finite; errors as add()."""
        values = as_array("bias", bias, (6,))
        if not np.isfinite(values).all():
            raise StoreError(f"the bias of a sensor must be finite, got {values}")
        self._append(self._bias_record(foot, values))

    def reset(self) -> Path | None:
        """Removes all postures, not the bias; ids go on. Gives the old file's new name."""
        if not self.postures:
            return None
        return self._replace(StoreContents(self._contents.bias, next_id=self._contents.next_id))

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Writes all postures to another file, whole or not at all: StoreError."""
        target = Path(path)
        if target.exists() and target.samefile(self.path):
            raise StoreError(f"{target} is the store itself, which is on disk already")
        try:
            return write_whole(target, self._lines(self._contents), overwrite)
        except OutputError as error:
            raise StoreError(str(error)) from error

    def load(self, path: str | os.PathLike[str]) -> int:
        """Replaces the postures by those of another file of this robot; returns their number.

        The old file is renamed as by reset(), to last_backup. The bias is replaced, too. Postures
        get new ids, which go on from those that were used. A StoreError changes nothing.
        """
        try:
            _check_regular(Path(path))
            with Path(path).open("rb") as stream:
                read = read_contents(stream, str(path), self._model, self._robot)
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} cannot be read: {error}") from error
        start = self._contents.next_id
        postures = dict(enumerate(read.postures.values(), start))
        stamps = dict(enumerate(read.stamps.values(), start))
        self._replace(StoreContents(read.bias, postures, stamps, start + len(postures)))
        return len(postures)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
        if self._lock is not None:
            self._lock.release()
        self._file = self._lock = None

    def __enter__(self) -> "PostureStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        self._file = AppendFile(self.path)
        with self.path.open("rb") as stream:
            self._contents = read_contents(stream, str(self.path), self._model, self._robot)
        if self._contents.size < self._file.size:
            self._file.truncate(self._contents.size)
        if self._contents.size == 0:
            self._file.append(encode(self._robot))
            sync(self.path.parent)

    def _append(self, record: Mapping[str, Any]) -> None:
        try:
            line = encode(record)
            apply = self._contents.change(decode(line), self._model)
        except ValueError as error:
            raise StoreError(f"the posture cannot be stored: {error}") from error
        if self._file is None:
            raise StoreError(f"{self.path} is closed")
        try:
            self._file.append(line)
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written: {error.strerror}. Its postures are still there; "
                "free space on the disk and try again"
            ) from error
        apply()

    def _replace(self, new: StoreContents) -> Path:
        """Puts new contents in place of the file, which gets another name."""
        if self._file is None:
            raise StoreError(f"{self.path} is closed")
        backup = self._free_name()
        try:
            os.link(self.path, backup)
            sync(self.path.parent)
            write_whole(self.path, self._lines(new), overwrite=True)
            file = AppendFile(self.path)
        except (OSError, OutputError) as error:
            backup.unlink(missing_ok=True)
            raise StoreError(
                f"{self.path} cannot be replaced: {error}. Its postures are still there"
            ) from error
        self._file.close()
        self._file, self._contents, self.last_backup = file, new, backup
        return backup

    def _free_name(self) -> Path:
        for number in range(1, 1_000_000):
            path = self.path.with_name(f"{self.path.name}.{number}.old")
            if not path.exists():
                return path
        raise StoreError(f"too many backups beside {self.path}: remove some")

    def _lines(self, contents: StoreContents) -> bytes:
        lines = [encode(self._robot), encode({"kind": "next", "id": contents.next_id})]
        for foot, bias in enumerate(contents.bias):
            if bias.any():
                lines.append(encode(self._bias_record(foot, bias)))
        lines += [
            encode(posture_record(i, posture, contents.stamps[i]))
            for i, posture in contents.postures.items()
        ]
        return b"".join(lines)

    def _bias_record(self, foot: int, bias: Array) -> dict[str, Any]:
        if not 0 <= foot < len(self._feet):
            raise StoreError(f"foot {foot}: expected 0 to {len(self._feet) - 1}")
        return {"kind": "tare", "foot": foot, "offset": bias.tolist()}


def _check_regular(path: Path) -> None:
    """Refuses pipes and devices, which may never end: OSError."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no regular file")
