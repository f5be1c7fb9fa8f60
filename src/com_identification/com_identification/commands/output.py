"""Where commands write their results: a directory, and the record of the robot."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import takewhile
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from com_identification.exceptions import OutputError
from com_model.files import sync
from com_model.text import listing, quote

_STAGING = ".identify_bag."


@contextmanager
def output_directory(
    path: str | Path, names: Sequence[str], force: bool
) -> Iterator[Path]:
    """Yields a hidden folder for files of given names; at the end moves them into place.

    Files of an earlier run that are not written now are removed; an error leaves no files.

    Args:
        path: of the directory, made where it is missing.
        names: of the files that may be written.
        force: whether such files may be replaced, and the directory may have others.

    Raises:
        OutputError: the directory cannot be used; says why.
    """
    target, problem = Path(path), "cannot be used"
    made: list[Path] = []  # directories that were missing, the innermost first
    try:
        _check_output(target, names, force)
        made = list(
            takewhile(lambda folder: not folder.exists(), (target, *target.parents))
        )
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_STAGING, dir=target) as folder:
            yield Path(folder)
            problem = "cannot take the results"
            files = sorted(Path(folder).iterdir())
            for file in files:
                sync(file)
            for file in files:
                os.replace(file, target / file.name)
            for name in set(names) - {file.name for file in files}:
                (target / name).unlink(missing_ok=True)
            sync(target)
            made = []
    except OSError as error:
        raise OutputError(
            f"{target} {problem}: {error.strerror or error}. Free space on the disk, or give "
            "--output a directory that can be written to"
        ) from error
    finally:
        for missing in made:
            with suppress(OSError):
                missing.rmdir()


def _check_output(path: Path, names: Sequence[str], force: bool) -> None:
    if "\0" in str(path):
        raise OutputError(f"--output: {quote(str(path))} is not a path")
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path} is not a directory: give --output another one")
    entries = sorted(entry.name for entry in path.iterdir()) if path.exists() else []
    there = [
        name for name in entries if not name.startswith(_STAGING)
    ]  # left by a kill
    if there and not force:
        raise OutputError(
            f"{path} is not empty: it holds {listing(there)}. Give another directory, "
            "or --force to replace the results of an earlier run in it"
        )
    for name in names:
        if (path / name).is_dir():
            raise OutputError(f"{path / name} is a directory: remove it first")


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """Yields a progress bar on standard error, hidden if that is no terminal.

    Args:
        what: text before it.
    """
    console = Console(stderr=True)
    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    shown = console.is_terminal
    bar = Progress(*columns, console=console, transient=True, disable=not shown)
    # A hidden bar is not started: before version 15, rich prints a line at its end.
    with bar if shown else nullcontext(bar):
        yield bar
