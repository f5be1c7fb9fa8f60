"""A directory of results that appear together or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from com_identification.exceptions import OutputError
from com_model.files import sync
from com_model.text import listing, quote

_STAGING = ".identify_bag."


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
        self._path, self._names = Path(path), tuple(names)
        self._made: list[Path] = []  # directories that were missing, the innermost first
        self._published = False
        with self._refusing("cannot be used"):
            self._check(force)
            folders = [self._path, *self._path.parents]
            self._made = list(takewhile(lambda folder: not folder.exists(), folders))
            self._path.mkdir(parents=True, exist_ok=True)
            self.staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self._path))

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
        with self._refusing("cannot take the results"):
            for name in self._names:
                sync(self.staging / name)
            for name in self._names:
                os.replace(self.staging / name, self._path / name)
            sync(self._path)
        self._published = True
        return [self._path / name for name in self._names]

    def _check(self, force: bool) -> None:
        if "\0" in str(self._path):
            raise OutputError(f"--output: {quote(str(self._path))} is no path")
        if self._path.exists() and not self._path.is_dir():
            raise OutputError(f"{self._path} is no directory: give --output another one")
        names = sorted(entry.name for entry in self._path.iterdir()) if self._path.exists() else []
        there = [name for name in names if not name.startswith(_STAGING)]  # left by a kill
        if there and not force:
            raise OutputError(
                f"{self._path} is not empty: it holds {listing(there)}. Give another directory, "
                "or --force to replace the results of an earlier run in it"
            )
        for name in self._names:
            if (self._path / name).is_dir():
                raise OutputError(f"{self._path / name} is a directory: remove it first")

    @contextmanager
    def _refusing(self, problem: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._unmake()
            words = error.strerror or str(error)
            raise OutputError(
                f"{self._path} {problem}: {words}. Free space on the disk, or give --output a "
                "directory that can be written to"
            ) from error

    def _unmake(self) -> None:
        """Removes the directories that were made, if nothing has come into them."""
        for folder in self._made:
            with suppress(OSError):
                folder.rmdir()
