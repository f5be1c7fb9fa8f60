"""A directory of results that appear together or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from com_identification.exceptions import OutputError
from com_model.files import sync
from com_model.text import listing, quote

_STAGING = ".identify_bag."
_MEND = "Free space on the disk, or give --out a directory that can be written to"


class OutputDirectory:
    """Gathers files out of sight in a directory and puts them into place at the end.

    Used as a context manager; files are written into `staging`, then publish() is called. Without
    it nothing is left behind.

    Args:
        path: The directory; it is made where it is missing.
        names: Files that will be put there.
        force: Whether files of these names may be replaced, and a directory with other things in
            it be used.

    Attributes:
        staging: Where to write the files.

    Raises:
        OutputError: The path cannot be used, or things are there already.
    """

    def __init__(self, path: str | Path, names: Sequence[str], force: bool = False) -> None:
        self._path = Path(path)
        self._names = tuple(names)
        self._made: list[Path] = []
        self._published = False
        try:
            self._check(force)
            self._make()
            self.staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self._path))
        except OSError as error:
            self._unmake()
            raise OutputError(f"{self._path} cannot be used: {_words(error)}. {_MEND}") from error

    def __enter__(self) -> OutputDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)
        if not self._published:
            self._unmake()

    def publish(self) -> list[Path]:
        """Puts the files into place.

        Raises:
            OutputError: One is missing, or cannot be put there.
        """
        places = []
        try:
            for name in self._names:
                sync(self.staging / name)
            for name in self._names:
                os.replace(self.staging / name, self._path / name)
                places.append(self._path / name)
            sync(self._path)
        except OSError as error:
            raise OutputError(
                f"the results cannot be put into {self._path}: {_words(error)}. {_MEND}"
            ) from error
        self._published = True
        return places

    def _check(self, force: bool) -> None:
        if "\0" in str(self._path):
            raise OutputError(f"--out: {quote(str(self._path))} is no path")
        if self._path.exists() and not self._path.is_dir():
            raise OutputError(f"{self._path} is no directory: give --out another one")
        if not self._path.is_dir():
            return
        names = sorted(entry.name for entry in self._path.iterdir())
        there = [
            name for name in names if not name.startswith(_STAGING)
        ]  # of a run that was killed
        if there and not force:
            raise OutputError(
                f"{self._path} is not empty: it holds {listing(there)}. Give another directory, "
                "or --force to replace the results of an earlier run in it"
            )
        for name in self._names:
            if (self._path / name).is_dir():
                raise OutputError(f"{self._path / name} is a directory: remove it first")

    def _make(self) -> None:
        missing = []
        folder = self._path
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for folder in reversed(missing):
            folder.mkdir()
            self._made.append(folder)

    def _unmake(self) -> None:
        """Removes the directories that were made, if nothing has come into them."""
        for folder in reversed(self._made):
            with suppress(OSError):
                folder.rmdir()


def _words(error: OSError) -> str:
    return error.strerror or str(error)
