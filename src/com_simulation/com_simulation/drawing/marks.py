"""Marks and colours of the pictures of robots."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Wedge
from matplotlib.patheffects import Normal, Stroke

from com_model.plotting import BLUE, GREEN, INK

CHAIN = "#e8590c"
COM = "#ffd43b"
GRAVITY = BLUE
SUPPORT = GREEN


def halo(width: float) -> list:
    """Return the path effects of a white seam around a line or text."""
    return [Stroke(linewidth=width, foreground="white"), Normal()]


def panel_title(axes: Axes, text: str) -> None:
    """Put a panel's heading at its left."""
    axes.set_title(text, fontsize=10.5, color=INK, loc="left", fontweight="bold", pad=7)


def pixel_axes(axes: Axes) -> tuple[int, int]:
    """Make axes whose unit is a pixel, y downwards; return width and height."""
    box = axes.get_window_extent()
    width, height = round(box.width), round(box.height)
    axes.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[], facecolor="none")
    for side in axes.spines.values():
        side.set_visible(False)
    return width, height


def com_symbol(axes: Axes, center: tuple[float, float], radius: float) -> None:
    """Draw the quartered disc that stands for a centre of mass."""
    axes.add_patch(Circle(center, radius + 1.5, facecolor="white", edgecolor="none", zorder=9))
    for k in range(4):
        color = INK if k % 2 else COM
        axes.add_patch(Wedge(center, radius, 90 * k, 90 * (k + 1), facecolor=color, zorder=10))
    axes.add_patch(Circle(center, radius, facecolor="none", edgecolor=INK, lw=1.2, zorder=11))


def scale_bar(axes: Axes, pixels_per_m: float, width: int, height: int) -> None:
    """Draw a bar of a round length into the lower left corner of pixel axes."""
    length = round_length(0.25 * width / pixels_per_m)
    left, y = 16, height - 16
    axes.plot([left, left + length * pixels_per_m], [y, y], color=INK, lw=2, solid_capstyle="butt")
    text = f"{1000 * length:g} mm" if length < 1 else f"{length:g} m"
    axes.text(left, y - 6, text, fontsize=8.5, color=INK)


def round_length(length: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is not above length."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * max(k for k in (1, 2, 5) if k * power <= length * (1 + 1e-9)))


def label(axes: Axes, where: tuple[float, float], text: str, color: str = INK) -> None:
    """Write a small text centred at a point."""
    x, y = where
    axes.text(x, y, text, color=color, fontsize=9, ha="center", zorder=12, path_effects=halo(4.2))
