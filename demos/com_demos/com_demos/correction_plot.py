"""The figure of a robot that leans by two URDFs: from above, and its support margins over time."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from com_demos.balance_monitor import LEAN_TIME, Track
from com_model import plotting

SIZE = (9.6, 7.6)  # inches
BELIEVED, TRUE = plotting.BLUE, plotting.RED


def write_figure(before: Track, after: Track, title: str, path: Path) -> None:
    """Write the figure of both runs into a PNG file."""
    plotting.save_png(correction_figure(before, after, title), path)


def correction_figure(before: Track, after: Track, title: str) -> Figure:
    """Return the figure of both runs: from above, and the margins over time."""
    figure = plotting.new_figure(SIZE, title)
    grid = figure.add_gridspec(2, 2, height_ratios=(1.3, 1.0))
    for column, (track, name) in enumerate(
        ((before, "the URDF"), (after, "the corrected URDF"))
    ):
        end = (
            f"falls after {track.fell_at:.1f} s"
            if np.isfinite(track.fell_at)
            else "stands"
        )
        above = figure.add_subplot(grid[0, column])
        _above_axes(above, track, f"By {name}: {end}")
        over_time = figure.add_subplot(grid[1, column])
        _margin_axes(over_time, track)
        plotting.style_axes(above)
        plotting.style_axes(over_time)
    figure.axes[1].set_xlim(0.0, LEAN_TIME)
    figure.axes[1].sharey(figure.axes[3])
    plotting.add_legend(figure.axes[0], 2)
    return figure


def _above_axes(axes: Axes, track: Track, title: str) -> None:
    """Plot support polygon and paths of the CoM, mm, the robot's front upwards."""
    closed = 1000 * np.concatenate([track.polygon, track.polygon[:1]])
    axes.fill(closed[:, 1], closed[:, 0], color=plotting.GREEN, alpha=0.12, lw=0)
    axes.plot(
        closed[:, 1],
        closed[:, 0],
        color=plotting.GREEN,
        lw=1.4,
        label="support polygon",
    )
    for path, color, name in (
        (track.believed, BELIEVED, "CoM by the URDF"),
        (track.true, TRUE, "true CoM"),
    ):
        axes.plot(*1000 * path.T[::-1], color=color, lw=1.6, label=name)
    end = 1000 * track.true[-1:]
    axes.plot(
        end[:, 1],
        end[:, 0],
        "X" if np.isfinite(track.fell_at) else "o",
        color=TRUE,
        ms=8,
    )
    axes.set_title(title, fontsize=11, loc="left", color=plotting.INK)
    axes.set_aspect("equal", adjustable="datalim")
    axes.invert_xaxis()
    axes.set_xlabel("left (mm)")
    axes.set_ylabel("forwards (mm)")


def _margin_axes(axes: Axes, track: Track) -> None:
    """Plot the margins of believed and true CoM over time, mm."""
    for k, color in ((0, BELIEVED), (1, TRUE)):
        axes.plot(track.time, 1000 * track.margin[:, k], color=color, lw=1.6)
    axes.axhline(0.0, color=plotting.INK, lw=1.0)
    axes.set_xlim(0.0, LEAN_TIME)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("support margin (mm)")
