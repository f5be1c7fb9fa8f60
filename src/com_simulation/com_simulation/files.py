"""Files that appear whole or not at all, with this package's errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matplotlib.figure import Figure

from com_model.files import whole_file, whole_folder
from com_simulation.exceptions import OutputError


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as PNG."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as part:
        figure.savefig(part, format="png", pil_kwargs={"optimize": True})


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give the path of a folder to be made, in a hidden one beside it; move it to its place.

    Raises:
        OutputError: it is there already.
    """
    if path.exists():
        raise OutputError(path, "exists already: give another path, or remove it")
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(path) as part:
        yield part
