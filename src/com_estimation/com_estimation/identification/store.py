"""Keeps captured postures on disk: what was acknowledged survives a kill at any moment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from numpy.typing import ArrayLike

from com_estimation.identification.postures import Posture
from com_model import Foot, RobotModel
from com_model.arrays import Array


class PostureStore:
    """A file of postures, one JSON line each, that is only ever appended to.

    The first line names the robot. Each change is one line, written and brought to the disk before
    the call returns; a last line that was cut is left out when the file is opened again, and cut
    off. One process at a time has the file.

    Args:
        path: The file; it is made where it is missing, its directory too.
        model: The robot.
        feet: Its feet, in the order of the postures' wrenches.

    Attributes:
        path: The file.
        warnings: What was found amiss when it was opened, sentences.

    Raises:
        StoreError: It cannot be read or written, another process has it, or it is another
            robot's.
    """

    path: Path
    warnings: tuple[str, ...]

    def __init__(
        self, path: str | os.PathLike[str], model: RobotModel, feet: Sequence[Foot]
    ) -> None:
        raise NotImplementedError

    @property
    def postures(self) -> Mapping[int, Posture]:
        """The postures by id, in the order in which they were added; ids are never used again."""
        raise NotImplementedError

    @property
    def tare(self) -> Array:
        """(f, 6) offsets of the force sensors, as read; 0 where none was taken."""
        raise NotImplementedError

    def add(self, posture: Posture) -> int:
        """Appends a posture and gives its id; when it returns, the posture is on disk.

        Raises:
            StoreError: The disk is full or gone; the file is as it was.
        """
        raise NotImplementedError

    def remove(self, identity: int) -> None:
        """Takes a posture out.

        Raises:
            StoreError: No posture has this id; lists those that there are.
        """
        raise NotImplementedError

    def set_tare(self, foot: int, offset: ArrayLike) -> None:
        """Notes the offset (6,) of a foot's sensor, as read."""
        raise NotImplementedError

    def reset(self) -> Path | None:
        """Starts anew; the old file is renamed, to what is returned (None: it held nothing)."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Writes what is held now to another file, whole or not at all."""
        raise NotImplementedError

    def load(self, path: str | os.PathLike[str]) -> int:
        """Takes the postures of another file of this robot in place of those held.

        The old file is renamed as by reset(). Tare offsets are taken over too.

        Returns:
            How many postures there are now.

        Raises:
            StoreError: The file cannot be used; what was held stays.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Lets go of the file."""
        raise NotImplementedError

    def __enter__(self) -> PostureStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
