"""The time plot of a run: the CoM against the simulator's truth, the error, the margin."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from com_demos.sway_recording import Series
from com_model import plotting

SIZE = (9.6, 7.2)  # inches
_LEAST_MM = 1e-14  # shown in place of no error at all, which a logarithm does not know


def plot_figure(series: Series, title: str) -> Figure:
    """Return the figure of a run of at least one sample."""
    figure = plotting.new_figure(SIZE, title)
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(2.2, 1, 1))
    _com_axes(top, series)
    _error_axes(middle, series)
    _margin_axes(bottom, series)
    for axes in (top, middle, bottom):
        plotting.style_axes(axes)
    bottom.set_xlabel("time (s)", color=plotting.INK)
    return figure


def _com_axes(axes: Axes, series: Series) -> None:
    """Plot x, y, z less their means, which are in the legend."""
    mean = 1000 * np.nanmean(series.com, axis=0)
    for k, name in enumerate("xyz"):
        label = plotting.minus(f"{name}, mean {mean[k]:.1f} mm")
        axes.plot(
            series.time,
            1000 * series.com[:, k] - mean[k],
            color=plotting.AXIS_COLORS[k],
            lw=2.6,
            alpha=0.55,
            label=label,
        )
        axes.plot(
            series.time,
            1000 * series.truth[:, k] - mean[k],
            color=plotting.INK,
            lw=0.9,
            ls=(0, (5, 4)),
            label="simulator's truth" if k == 2 else None,
        )
    axes.set_ylabel("CoM − mean (mm)", color=plotting.INK)
    plotting.add_legend(axes, 4, above=True)


def _error_axes(axes: Axes, series: Series) -> None:
    """Plot the distance to the truth; logarithmic, for it spans many powers of ten."""
    error = 1000 * series.error
    if not np.isfinite(error).any():
        plotting.center_text(axes, "no truth arrived")
    else:
        axes.semilogy(series.time, np.maximum(error, _LEAST_MM), color=plotting.PURPLE, lw=1)
        low = 10.0 ** np.floor(np.log10(max(np.nanmin(error), _LEAST_MM)))
        axes.set_ylim(low / 3, max(30 * np.nanmax(error), 10 * low))
        axes.yaxis.set_major_locator(LogLocator(numticks=4))
        axes.minorticks_off()
        plotting.corner_text(axes, f"largest {np.nanmax(error):.2g} mm")
    axes.set_ylabel("error (mm)", color=plotting.INK)


def _margin_axes(axes: Axes, series: Series) -> None:
    """Plot the signed distance of the projection to the support polygon's edge."""
    margin = 1000 * series.margin
    if not np.isfinite(margin).any():
        plotting.center_text(axes, "no feet known: no support polygon")
    else:
        axes.plot(series.time, margin, color=plotting.GREEN, lw=1.4)
        axes.axhspan(min(0.0, 1.1 * np.nanmin(margin)), 0.0, color=plotting.RED, alpha=0.12, lw=0)
        axes.axhline(0.0, color=plotting.RED, lw=1)
        axes.set_ylim(
            min(-0.08 * np.nanmax(margin), 1.1 * np.nanmin(margin)),
            1.3 * max(np.nanmax(margin), 0.1),
        )
        plotting.corner_text(axes, f"smallest {np.nanmin(margin):.1f} mm")
    axes.set_ylabel("margin (mm)", color=plotting.INK)
