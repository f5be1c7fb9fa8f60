"""The picture of an identification: the CoM's error before and after, and that of every body."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from com_demos.plots import AXIS_COLORS, DPI, style
from com_simulation.commands.compare_urdfs import Comparison
from com_simulation.drawing.marks import ALARM, INK, plain
from com_simulation.files import save_figure

Array = NDArray[np.float64]

SIZE = (9.6, 7.2)  # inches
BEFORE, AFTER = ALARM, AXIS_COLORS[2]
BEST = 0.8  # of the prior's deviation: what is less is drawn, the rest the data do not tell


def draw_identification(
    comparison: Comparison, deviations: Array, prior: float, title: str, path: str | Path
) -> None:
    """Draw an identification into a PNG file, which appears whole or not at all.

    Args:
        comparison: with the truth.
        deviations: (B, 3) m, standard deviations that the identification gives its bodies' CoMs.
        prior: m, those before.
        title: of the figure.
        path: of the file.
    """
    save_figure(identification_figure(comparison, deviations, prior, title), path)


def identification_figure(
    comparison: Comparison, deviations: Array, prior: float, title: str
) -> Figure:
    """Return the figure; see draw_identification()."""
    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subplots(2, 1, height_ratios=(1, 1.5))
    heading = {"fontsize": 13, "fontweight": "bold", "color": INK}
    figure.suptitle(plain(title, 100), x=0.012, ha="left", **heading)
    _whole(upper, comparison)
    _bodies(lower, comparison, deviations, prior)
    for axes in (upper, lower):
        style(axes)
        axes.legend(loc="upper left", ncols=3, frameon=False, fontsize=9, labelcolor=INK)
    return figure


def _whole(axes: Axes, comparison: Comparison) -> None:
    """Errors of the whole robot's CoM in postures that were not measured, the largest last."""
    shares = np.linspace(0.0, 100.0, len(comparison.before))
    for name, values, color in (
        ("URDF as believed", comparison.before, BEFORE),
        ("identified", comparison.after, AFTER),
    ):
        rms = 1000.0 * np.sqrt(np.mean(values**2))
        label = f"{name}: {rms:.2f} mm RMS"
        axes.plot(shares, 1000.0 * np.sort(values), color=color, lw=2, label=label)
    axes.set_ylim(0.0, 1300.0 * comparison.before.max())
    axes.set_xlim(0.0, 100.0)
    axes.set_xlabel("share of postures that were not measured (%)", color=INK)
    axes.set_ylabel("error of the CoM (mm)", color=INK)


def _bodies(axes: Axes, comparison: Comparison, deviations: Array, prior: float) -> None:
    """Errors of the components of bodies' CoMs that the data tell, with two deviations."""
    told = np.argwhere(deviations < BEST * prior)
    order = np.argsort([deviations[body, axis] for body, axis in told])
    told = told[order]
    places = np.arange(len(told))
    before, after, spread = (
        np.array([1000.0 * values[body, axis] for body, axis in told])
        for values in (comparison.bodies_before, comparison.bodies_after, deviations)
    )
    axes.bar(places, 4.0 * spread, bottom=-2.0 * spread, color="#d0ebff", label="two deviations")
    axes.plot(places, before, "x", color=BEFORE, ms=5, label="URDF as believed")
    axes.plot(places, after, "o", color=AFTER, ms=4, label="identified")
    names = [f"{comparison.bodies[body]} {'xyz'[axis]}" for body, axis in told]
    axes.set_xticks(places, names, rotation=90, fontsize=7)
    reach = 1.3 * max(np.abs(before).max(initial=1.0), np.abs(after).max(initial=1.0))
    axes.set_ylim(-reach, reach * 1.25)
    axes.set_ylabel("error of a body's CoM (mm)", color=INK)
