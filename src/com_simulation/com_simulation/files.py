"""Files that appear whole or not at all."""

import os
from pathlib import Path

from matplotlib.figure import Figure


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as PNG: into a neighbour with another name first, then renamed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        figure.savefig(part, format="png", pil_kwargs={"optimize": True})
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
