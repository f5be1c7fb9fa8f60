"""The time plot of a trot: the trunk's CoM and mass with their band against the truth, the tilt."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from com_demos.trot_recording import CONVERGED, SIGMAS, TrunkSeries
from com_model import plotting

SIZE = (9.6, 10.2)  # inches
NAMES = ("x (mm)", "y (mm)", "z (mm)", "mass (kg)")
COLORS = (*plotting.AXIS_COLORS, plotting.PURPLE)
SCALES = (1000.0, 1000.0, 1000.0, 1.0)
LEAST = (4.0, 4.0, 4.0, 2.0)  # half heights of the axes around the truth, mm and kg


def trunk_figure(series: TrunkSeries, title: str) -> Figure:
    """Return the figure of a trot of at least one estimate; the feet's shift, if there is one."""
    figure = plotting.new_figure(SIZE, title)
    ratios = (1.2, 1.2, 1, 1, 1, 0.8) if np.any(series.shift) else (1.2, 1.2, 1, 1, 1)
    panels = figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios)
    for k, axes in enumerate(panels[:4]):
        _estimate_axes(axes, series, k)
    _tilt_axes(panels[4], series)
    if len(panels) > 5:
        _shift_axes(panels[5], series)
    for axes in panels:
        plotting.style_axes(axes)
        _events(axes, series)
    _name_events(panels[0], series)
    plotting.add_legend(panels[0], 3, above=True)
    begin = min(-0.5, float(series.time[series.status == CONVERGED].min(initial=0.0)))
    panels[-1].set_xlim(max(begin, -2.0), float(series.time[-1]))
    panels[-1].set_xlabel("time since the first step (s)", color=plotting.INK)
    return figure


def _estimate_axes(axes: Axes, series: TrunkSeries, k: int) -> None:
    """Plot one of x, y, z and mass, its band and its truth."""
    value, truth = SCALES[k] * series.values[:, k], SCALES[k] * series.truth[:, k]
    band = SIGMAS * SCALES[k] * series.std[:, k]
    axes.fill_between(
        series.time, value - band, value + band, color=COLORS[k], alpha=0.22, lw=0, label="3 σ"
    )
    axes.plot(series.time, value, color=COLORS[k], lw=1.6, label="estimate")
    matched = np.isfinite(truth)
    axes.plot(
        series.time[matched],
        truth[matched],
        color=plotting.INK,
        lw=1.0,
        ls=(0, (5, 3)),
        label="simulator's truth",
    )
    axes.set_ylabel(NAMES[k], color=plotting.INK)
    if not matched.any():
        plotting.center_text(axes, "no truth arrived")
        return
    settled = (series.status == CONVERGED) & (series.time > 0.0)
    usual = np.nanpercentile(value[settled], (1, 99)) if settled.any() else np.empty(0)
    shown = np.concatenate([truth[matched], usual])  # jumps may leave the picture
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    room = max(LEAST[k], 0.15 * (high - low))
    axes.set_ylim(low - room, high + room)
    plotting.corner_text(
        axes, plotting.minus(f"error at the end {value[-1] - truth[matched][-1]:+.2g}")
    )


def _tilt_axes(axes: Axes, series: TrunkSeries) -> None:
    for k, name in enumerate(("roll", "pitch")):
        tilt = np.degrees(series.tilt[:, k])
        axes.plot(series.tilt_time, tilt, color=plotting.AXIS_COLORS[k], lw=1.1, label=name)
    plotting.add_legend(axes, 2)
    axes.set_ylabel("tilt (°)", color=plotting.INK)


def _shift_axes(axes: Axes, series: TrunkSeries) -> None:
    """Plot how far the gait moves the feet for the CoM; shaded where that is at its bound."""
    axes.set_ylabel("feet's shift (mm)", color=plotting.INK)
    for k, name in enumerate("xy"):
        axes.plot(
            series.gait_time, 1000 * series.shift[:, k], color=plotting.AXIS_COLORS[k], label=name
        )
    if series.saturated.any():
        axes.fill_between(
            series.gait_time,
            *axes.get_ylim(),
            where=series.saturated.tolist(),
            color=plotting.RED,
            alpha=0.12,
            lw=0,
            label="at its bound",
        )
    plotting.add_legend(axes, 3)


def _events(axes: Axes, series: TrunkSeries) -> None:
    for at, line in ((0.0, ":"), (series.loaded_at, "-"), (series.noticed_at, "--")):
        if np.isfinite(at):
            axes.axvline(at, color=plotting.FAINT, lw=1.0, ls=line, zorder=1)


def _name_events(axes: Axes, series: TrunkSeries) -> None:
    named = [(series.loaded_at, "payload ", "right")]
    if np.isfinite(series.loaded_at) and series.noticed_at >= series.loaded_at:
        after = series.noticed_at - series.loaded_at
        named.append((series.noticed_at, f" noticed after {after:.2f} s", "left"))
    for at, text, side in named:
        if np.isfinite(at):
            place = axes.get_xaxis_transform()
            axes.text(
                at,
                0.02,
                text,
                fontsize=9,
                color=plotting.INK,
                transform=place,
                ha=side,
                va="bottom",
            )
