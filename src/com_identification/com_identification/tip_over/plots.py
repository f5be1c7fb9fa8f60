"""A picture of tip angles: measured, simulated by others, ours."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO, StringIO

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from com_model.arrays import Array

INK, FAINT = "#343a40", "#868e96"
OURS = ("#1971c2", "#e8590c", "#2f9e44")
_WIDEST = 10.0  # degrees: errors beyond the edge of the right side


def angles_png(
    tests: tuple[str, ...],
    measured: Array,
    others: Mapping[str, Array],
    ours: Mapping[str, Array],
) -> bytes:
    """Draws the angles of each test, and beside them the errors.

    Args:
        tests: T names.
        measured: (T,) rad.
        others: (T,) rad by name, drawn as small numbers in their order from 1 on.
        ours: (T,) rad by name, at most three.

    Returns:
        A PNG file.
    """
    content = BytesIO()
    _figure(tests, measured, others, ours).savefig(content, format="png")
    return content.getvalue()


def angles_svg(
    tests: tuple[str, ...],
    measured: Array,
    others: Mapping[str, Array],
    ours: Mapping[str, Array],
) -> str:
    """Draws the same as an <svg> element; without date, so that it is the same each time."""
    content = StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "tip_angles", "svg.fonttype": "none"}):
        figure = _figure(tests, measured, others, ours)
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    text = content.getvalue()
    return text[text.index("<svg") :]


def _figure(
    tests: tuple[str, ...],
    measured: Array,
    others: Mapping[str, Array],
    ours: Mapping[str, Array],
) -> Figure:
    figure = Figure(figsize=(11.0, 1.1 + 0.32 * len(tests)), dpi=90, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.4, 1.0))
    rows = np.arange(len(tests))
    left.barh(rows, np.degrees(measured), color="#e9ecef", edgecolor="#adb5bd", label="measured")
    for axes, zero in ((left, np.zeros(len(tests))), (right, measured)):
        _points(axes, zero, others, ours)
        _style(axes)
    left.set_yticks(rows, [_plain(test) for test in tests])
    left.invert_yaxis()
    left.set_xlabel("tip angle (deg)")
    right.set_xlabel(f"error (deg), shown up to {_WIDEST:g}")
    right.set_xlim(-_WIDEST, _WIDEST)
    right.axvline(0.0, color=INK, lw=0.8)
    handles = left.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=5, frameon=False)
    return figure


def _points(
    axes: Axes, zero: Array, others: Mapping[str, Array], ours: Mapping[str, Array]
) -> None:
    """Angles less `zero` (T,) rad, one line of the picture a test."""
    rows = np.arange(len(zero))
    for i, (name, angles) in enumerate(others.items(), start=1):
        error = np.degrees(angles - zero)
        axes.plot(error, rows, ls="", marker=f"${i}$", color=FAINT, ms=6, label=_plain(name))
    for (name, angles), colour in zip(ours.items(), OURS, strict=False):
        error = np.degrees(angles - zero)
        axes.plot(error, rows, "o", color=colour, ms=5, label=_plain(name))


def _plain(name: str) -> str:
    """A name as it stands: no formula, and not hidden from the legend by an underscore."""
    return name.replace("$", r"\$").removeprefix("_")


def _style(axes: Axes) -> None:
    axes.grid(axis="x", color="#dee2e6", lw=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=INK, length=0)
