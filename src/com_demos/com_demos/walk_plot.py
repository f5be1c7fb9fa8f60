"""The plot of a walk: CoM and ZMP over the footprints, both over time, the CoM's error."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from com_demos.walk_recording import WalkSeries
from com_model import plotting
from com_model.arrays import Array

SIZE = (9.6, 9.2)  # inches
MEANT, TRUE, ZMP = plotting.GREEN, plotting.RED, plotting.BLUE


def walk_figure(series: WalkSeries, title: str) -> Figure:
    """Return the figure of a walk."""
    figure = plotting.new_figure(SIZE, title)
    ground, *over_time = figure.subplots(4, 1, height_ratios=(1.5, 1.0, 1.0, 0.8))
    _ground_axes(ground, series)
    for k, name in enumerate(("x (m)", "y (m)")):
        _along_axes(over_time[k], series, k, name)
    _error_axes(over_time[2], series)
    for axes in (ground, *over_time):
        plotting.style_axes(axes)
    for axes in over_time:
        axes.sharex(over_time[0])
        axes.axvline(0.0, color=plotting.FAINT, lw=1.0, ls=":")
    over_time[0].set_xlim(max(float(_finite(series.time).min(initial=0.0)), -2.0), None)
    over_time[2].set_xlabel("time of the walk (s)", color=plotting.INK)
    return figure


def _ground_axes(axes: Axes, series: WalkSeries) -> None:
    prints = PolyCollection(
        list(series.footprints[:, :, :2]), facecolors="#f1f3f5", edgecolors=plotting.RULE, lw=1.2
    )
    axes.add_collection(prints)
    axes.plot(*series.zmp[:, :2].T, color=ZMP, lw=0.8, alpha=0.7, label="ZMP, measured")
    axes.plot(
        *series.zmp_reference[:, :2].T,
        color=plotting.INK,
        lw=0.8,
        ls=(0, (4, 3)),
        label="ZMP, meant",
    )
    axes.plot(*series.com_reference[:, :2].T, color=MEANT, lw=2.4, alpha=0.6, label="CoM, meant")
    axes.plot(*series.truth.com[:, :2].T, color=TRUE, lw=1.1, label="CoM, true")
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("x (m)", color=plotting.INK)
    axes.set_ylabel("y (m)", color=plotting.INK)
    plotting.add_legend(axes, 4)


def _along_axes(axes: Axes, series: WalkSeries, k: int, name: str) -> None:
    axes.plot(series.time, series.zmp[:, k], color=ZMP, lw=0.8, alpha=0.7)
    axes.plot(series.time, series.zmp_reference[:, k], color=plotting.INK, lw=0.8, ls=(0, (4, 3)))
    axes.plot(series.time, series.com_reference[:, k], color=MEANT, lw=2.4, alpha=0.6)
    axes.plot(series.truth.time, series.truth.com[:, k], color=TRUE, lw=1.1)
    axes.set_ylabel(name, color=plotting.INK)


def _error_axes(axes: Axes, series: WalkSeries) -> None:
    axes.set_ylabel("CoM off (mm)", color=plotting.INK)
    figures = series.summary()
    mean, most = figures["com_error_mean_m"], figures["com_error_max_m"]
    if mean is None or most is None:
        plotting.center_text(axes, "no truth arrived")
        return
    axes.plot(series.truth.time, 1000 * series.error, color=plotting.RED, lw=1.1)
    axes.set_ylim(0.0, None)
    plotting.corner_text(axes, f"mean {1000 * mean:.1f} mm, largest {1000 * most:.1f} mm")


def _finite(values: Array) -> Array:
    return values[np.isfinite(values)]
