"""A picture of the workspace of a robot's centre of mass."""

from collections.abc import Sequence
from math import ceil
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from com_model.arrays import Array
from com_model.geometry.hull import convex_hull
from com_model.plotting import BLUE, FAINT, RED, new_figure, save_png, style_axes
from com_model.workspace.sampling import StandingReach, Workspace

_DOTS = 2500  # samples that are drawn
_SLICES = 5


def draw_workspace(
    path: Path, workspace: Workspace, title: str, standing: Sequence[StandingReach] = ()
) -> None:
    """Draws samples and hull from two sides, slices, and the CoM over the feet, as a PNG file."""
    rows = 1 + ceil(len(standing) / 3)
    figure = new_figure((10.2, 0.4 + 3.2 * rows), title)
    axes = figure.subplots(rows, 3, squeeze=False).ravel()
    _hull(axes[0], workspace, (0, 2))
    _hull(axes[1], workspace, (0, 1))
    _slices(axes[2], workspace)
    for axis, reach in zip(axes[3:], standing, strict=False):
        _standing(axis, reach)
    for axis in axes[3 + len(standing) :]:
        axis.remove()
    save_png(figure, path)


def _hull(axes: Axes, workspace: Workspace, shown: tuple[int, int]) -> None:
    i, j = shown
    _dots(axes, workspace.points[:, [i, j]], FAINT)
    _outline(axes, convex_hull(workspace.vertices[:, [i, j]]), RED, "hull")
    _style(axes, "xyz"[i], "xyz"[j], "root link held")


def _slices(axes: Axes, workspace: Workspace) -> None:
    z = workspace.points[:, 2]
    for fraction in (np.arange(_SLICES) + 0.5) / _SLICES:
        height = float(z.min() + fraction * np.ptp(z))
        outline = workspace.slice_at(height, float(np.ptp(z)) / (4 * _SLICES))
        if len(outline) > 2:
            shade = str(round(0.7 * (1.0 - fraction), 2))
            _outline(axes, outline, shade, f"z {1e3 * height:.0f}")
    _style(axes, "x", "y", "slices")
    axes.legend(fontsize="x-small", frameon=False)


def _standing(axes: Axes, reach: StandingReach) -> None:
    inside = reach.margin >= 0.0
    _dots(axes, reach.points[~inside, :2], FAINT)
    _dots(axes, reach.points[inside, :2], BLUE)
    _outline(axes, reach.support, RED, "")
    _style(axes, "x", "y", f"over {' and '.join(reach.feet)}")


def _dots(axes: Axes, points: Array, colour: str) -> None:
    every = 1 + len(points) // _DOTS
    axes.plot(*(1e3 * points[::every].T), ".", ms=1, color=colour)


def _outline(axes: Axes, corners: Array, colour: str, label: str) -> None:
    closed = 1e3 * np.vstack((corners, corners[:1]))
    axes.plot(*closed.T, color=colour, lw=1.2, label=label)


def _style(axes: Axes, x: str, y: str, title: str) -> None:
    style_axes(axes)
    axes.set(xlabel=f"{x} (mm)", ylabel=f"{y} (mm)", aspect="equal", title=title)
    axes.title.set_fontsize("medium")
