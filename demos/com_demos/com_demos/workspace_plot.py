"""A picture of the workspace of a robot's centre of mass."""

from collections.abc import Sequence
from io import BytesIO
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from com_demos.com_workspace import StandingReach, Workspace
from com_model.arrays import Array
from com_model.geometry.support import convex_hull
from com_model.plotting import BLUE, INK, RED, new_figure, style_axes

_DOTS = 2500  # samples that are drawn
_LEGEND = (("CoM that can be held at rest", BLUE, "."), ("CoM that falls", RED, "x"))


def workspace_png(
    workspace: Workspace, title: str, standing: Sequence[StandingReach] = ()
) -> bytes:
    """Draws samples and hull from two sides, and the CoM over the feet from above."""
    rows = ceil((2 + len(standing)) / 3)
    figure = new_figure((12.0, 0.8 + 3.2 * rows), title)
    axes = figure.subplots(rows, 3, squeeze=False).ravel()
    _hull(axes[0], workspace, 2, "the side")
    _hull(axes[1], workspace, 1, "above")
    for axis, reach in zip(axes[2:], standing, strict=False):
        _standing(axis, reach)
    for axis in axes[2 + len(standing) :]:
        axis.remove()
    lines = [Line2D([], [], color=INK, label="hull of all postures; support polygon")]
    lines += [
        Line2D([], [], color=c, marker=m, ls="", label=n)
        for n, c, m in _LEGEND
        if standing
    ]
    figure.legend(
        handles=lines, loc="outside lower center", ncols=3, frameon=False, fontsize=9
    )
    png = BytesIO()
    figure.savefig(png, format="png")
    return png.getvalue()


def _hull(axes: Axes, workspace: Workspace, j: int, view: str) -> None:
    """Postures along x and another axis, coloured by the third, within their hull."""
    k = 3 - j
    points = 1e3 * workspace.points[:: 1 + len(workspace.points) // _DOTS]
    dots = axes.scatter(points[:, 0], points[:, j], 2.0, points[:, k], cmap="viridis")
    bar = axes.figure.colorbar(dots, ax=axes, shrink=0.8, pad=0.02)
    bar.set_label(f"{'xyz'[k]} (mm)")
    _outline(axes, convex_hull(workspace.vertices[:, [0, j]]))
    axes.annotate(
        "root link", (0.0, 0.0), (5, 5), textcoords="offset points", fontsize=8
    )
    axes.plot(0.0, 0.0, "+", color=INK, ms=9)
    _style(axes, "xyz"[j], f"root link held, from {view}")


def _standing(axes: Axes, reach: StandingReach) -> None:
    inside = reach.margin >= 0.0
    for chosen, (_, color, symbol) in zip((inside, ~inside), _LEGEND, strict=True):
        points = 1e3 * reach.points[chosen, :2]
        points = points[:: 1 + len(points) // _DOTS]
        axes.plot(*points.T, symbol, ms=2, mew=0.5, alpha=0.6, color=color)
    _outline(axes, reach.support)
    _style(axes, "y", f"on {', '.join(reach.feet)}: {reach.fraction:.0%} can be held")


def _outline(axes: Axes, corners: Array) -> None:
    axes.plot(*(1e3 * np.vstack((corners, corners[:1])).T), color=INK, lw=1.4)


def _style(axes: Axes, y: str, title: str) -> None:
    style_axes(axes)
    axes.set(xlabel="x (mm)", ylabel=f"{y} (mm)", aspect="equal")
    axes.set_title(title, fontsize=10)
