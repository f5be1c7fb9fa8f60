"""The picture of an identification: the CoM's error before and after, and that of every body."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from com_model import plotting
from com_model.arrays import Array
from com_simulation.commands.compare_urdfs import Comparison

SIZE = (9.6, 7.2)  # inches
BEFORE, AFTER = plotting.RED, plotting.AXIS_COLORS[2]
BEST = 0.8  # of the prior's standard deviation: what is less is drawn, the rest is not observable


def identification_figure(comparison: Comparison, stds: Array, prior: float, title: str) -> Figure:
    """Return the figure of an identification.

    Args:
        comparison: with the truth.
        stds: (B, 3) m, standard deviations that the identification gives its bodies' CoMs.
        prior: m, those before.
        title: of the figure.
    """
    figure = plotting.new_figure(SIZE, title)
    upper, lower = figure.subplots(2, 1, height_ratios=(1, 1.5))
    _whole(upper, comparison)
    _bodies(lower, comparison, stds, prior)
    for axes in (upper, lower):
        plotting.style_axes(axes)
        plotting.add_legend(axes, 3)
    return figure


def _whole(axes: Axes, comparison: Comparison) -> None:
    """Errors of the whole robot's CoM in postures that were not measured, the largest last."""
    percent = np.linspace(0.0, 100.0, len(comparison.before))
    for name, values, color in (
        ("URDF as believed", comparison.before, BEFORE),
        ("identified", comparison.after, AFTER),
    ):
        rms = 1000.0 * np.sqrt(np.mean(values**2))
        label = f"{name}: {rms:.2f} mm RMS"
        axes.plot(percent, 1000.0 * np.sort(values), color=color, lw=2, label=label)
    axes.set_ylim(0.0, 1300.0 * comparison.before.max())
    axes.set_xlim(0.0, 100.0)
    axes.set_xlabel(
        "postures that were not measured, in order of the error (%)", color=plotting.INK
    )
    axes.set_ylabel("error of the CoM (mm)", color=plotting.INK)


def _bodies(axes: Axes, comparison: Comparison, stds: Array, prior: float) -> None:
    """Errors of the observable components of bodies' CoMs, with two standard deviations."""
    observable = np.argwhere(stds < BEST * prior)
    order = np.argsort([stds[body, axis] for body, axis in observable])
    observable = observable[order]
    places = np.arange(len(observable))
    before, after, spread = (
        np.array([1000.0 * values[body, axis] for body, axis in observable])
        for values in (comparison.bodies_before, comparison.bodies_after, stds)
    )
    axes.bar(
        places, 4.0 * spread, bottom=-2.0 * spread, color="#d0ebff", label="two standard deviations"
    )
    axes.plot(places, before, "x", color=BEFORE, ms=5, label="URDF as believed")
    axes.plot(places, after, "o", color=AFTER, ms=4, label="identified")
    names = [f"{comparison.bodies[body]} {'xyz'[axis]}" for body, axis in observable]
    axes.set_xticks(places, names, rotation=90, fontsize=7)
    reach = 1.3 * max(np.abs(before).max(initial=1.0), np.abs(after).max(initial=1.0))
    axes.set_ylim(-reach, reach * 1.25)
    axes.set_ylabel("error of a body's CoM (mm)", color=plotting.INK)
