"""Texts in the demos' plots."""

from typing import Any

from matplotlib.axes import Axes

from com_model.plotting import FAINT, INK


def minus(text: str) -> str:
    """Returns text with minus signs in place of hyphens, for numbers."""
    return text.replace("-", "\N{MINUS SIGN}")


def corner_text(axes: Axes, text: str) -> None:
    """Writes a figure of the run into the upper right corner."""
    box = {"facecolor": "white", "edgecolor": "none", "pad": 2, "alpha": 0.8}
    place: dict[str, Any] = {"transform": axes.transAxes, "ha": "right", "va": "top"}
    axes.text(0.995, 0.93, text, fontsize=9, color=INK, bbox=box, **place)


def center_text(axes: Axes, text: str) -> None:
    """Writes into empty axes why they are empty."""
    axes.text(
        0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=FAINT
    )
    axes.set_yticks([])
