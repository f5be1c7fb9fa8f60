"""The look of all plots: colours, axes, labels. It needs matplotlib; import it only to draw."""

import os
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from com_model.files import whole_file

INK, FAINT, RULE, GRID = "#22262b", "#8a929c", "#ced4da", "#e9ecef"
# Vermillion and bluish green: safe for colour-blind readers [Okabe and Ito 2008].
RED, GREEN, BLUE, PURPLE = "#d55e00", "#009e73", "#0072b2", "#cc79a7"
AXIS_COLORS = (RED, GREEN, BLUE)  # x, y, z as in rviz
DPI = 110


def new_figure(size: tuple[float, float], title: str) -> Figure:
    """Returns an empty figure with a heading; size in inches."""
    figure = Figure(figsize=size, dpi=DPI, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    heading = {"fontsize": 13, "fontweight": "bold", "color": INK}
    figure.suptitle(plain_text(title, 100), x=0.012, ha="left", **heading)
    return figure


def style_axes(axes: Axes) -> None:
    """Gives axes the look of all plots."""
    axes.grid(color=GRID, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=9, colors=FAINT, length=2)
    axes.margins(x=0.01)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(INK)
    for name, side in axes.spines.items():
        side.set(visible=name in ("left", "bottom"), color=RULE)


def add_legend(axes: Axes, columns: int, above: bool = False) -> None:
    """Adds a legend into the upper left corner, or at the right above the axes."""
    place: dict[str, Any] = {"loc": "upper left"}
    if above:
        place = {"loc": "lower right", "bbox_to_anchor": (1.005, 0.985)}
    axes.legend(ncols=columns, frameon=False, fontsize=9, labelcolor=INK, **place)


def corner_text(axes: Axes, text: str) -> None:
    """Writes a figure of the run into the upper right corner."""
    box = {"facecolor": "white", "edgecolor": "none", "pad": 2, "alpha": 0.8}
    place: dict[str, Any] = {"transform": axes.transAxes, "ha": "right", "va": "top"}
    axes.text(0.995, 0.93, text, fontsize=9, color=INK, bbox=box, **place)


def center_text(axes: Axes, text: str) -> None:
    """Writes into empty axes why they are empty."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=FAINT)
    axes.set_yticks([])


def minus(text: str) -> str:
    """Returns text with minus signs in place of hyphens, for numbers."""
    return text.replace("-", "\N{MINUS SIGN}")


def plain_text(text: str, longest: int = 40) -> str:
    """Returns text from a file fit for a picture: printable, not too long, no formula."""
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return text.replace("$", r"\$")


def save_png(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Writes a figure as a PNG file, which appears whole or not at all; makes its folder."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as part:
        figure.savefig(part, format="png", pil_kwargs={"optimize": True})
