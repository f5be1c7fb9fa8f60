"""Files that appear whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matplotlib.figure import Figure

from com_simulation.exceptions import OutputError


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as PNG."""
    with _part_of(Path(path)) as part:
        figure.savefig(part, format="png", pil_kwargs={"optimize": True})


def save_text(text: str, path: str | Path) -> None:
    """Write a text as UTF-8, its line ends as they are."""
    with _part_of(Path(path)) as part:
        part.write_bytes(text.encode())


@contextmanager
def _part_of(path: Path) -> Iterator[Path]:
    """A neighbour with another name, which is renamed at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give the path of a folder to be made, in a hidden one beside it; move it to its place.

    Raises:
        OutputError: it is there already.
    """
    if path.exists():
        raise OutputError(path, "exists already: give another path, or remove it")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as hidden:
        part = Path(hidden) / path.name
        yield part
        part.rename(path)
