"""Plots of a report as SVG text: same input, same bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from com_identification.report.fit import PostureFit
from com_model import Foot

BEFORE, AFTER, INK, RULE, REFUSED = "#d9480f", "#1971c2", "#212529", "#ced4da", "#adb5bd"
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.edgecolor": RULE,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.unicode_minus": True,
    "text.usetex": False,
    "text.parse_math": False,
}
_MOST_BARS, _MOST_PLACES, _MOST_SPANS = 150, 500, 1000
_MM = 1000.0

Span = tuple[float, float, bool]  # s, s, whether it gave a posture


def sole_plot(fits: Sequence[PostureFit], feet: Sequence[Foot]) -> str:
    """CoM of each posture on the sole: by the feet, by the URDF, by the result."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9.2, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        shown = [fit for fit in fits if fit.sole >= 0][:_MOST_PLACES]
        measured = _MM * np.array([fit.measured for fit in shown]).reshape(-1, 2)
        for name, color in (("before", BEFORE), ("after", AFTER)):
            places = _MM * np.array([getattr(fit, name) for fit in shown]).reshape(-1, 2)
            lines = np.stack((measured, places), axis=1)
            left.add_collection(LineCollection(list(lines), colors=color, linewidths=0.8))
            left.plot(*places.T, ".", color=color, ms=4)
            right.plot(*(places - measured).T, ".", color=color, ms=5)
        left.plot(*measured.T, "x", color=INK, ms=4)
        _outline(left, fits, feet)
        left.set_title("in the sole's frame (cross: by the feet)")
        right.set_title("off from what the feet say")
        right.axhline(0.0, color=RULE, lw=0.8, zorder=0)
        right.axvline(0.0, color=RULE, lw=0.8, zorder=0)
        for axes in (left, right):
            axes.set_aspect("equal", adjustable="datalim")
            axes.set_xlabel("x of the sole (mm)")
            axes.set_ylabel("y of the sole (mm)")
        _legend(figure)
        return _svg(figure, "sole")


def residual_plot(fits: Sequence[PostureFit]) -> str:
    """Distance from the readings to the model's CoM, posture by posture."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9.2, 2.8), layout="constrained")
        axes = figure.subplots()
        shown = fits[:_MOST_BARS]
        places = 1.0 + np.arange(len(shown))
        for shift, name, color in ((-0.2, "gap_before", BEFORE), (0.2, "gap_after", AFTER)):
            heights = _MM * np.nan_to_num([getattr(fit, name) for fit in shown])
            axes.bar(places + shift, heights, width=0.4, color=color)
        for place, fit in zip(places, shown, strict=True):
            if fit.weight < 0.5:
                axes.annotate("outlier", (place, 0.0), rotation=90, fontsize=7, ha="center")
        axes.set_xlabel("posture")
        axes.set_ylabel("off (mm)")
        axes.set_xticks(places[:: max(1, len(shown) // 25)])
        _legend(figure)
        return _svg(figure, "residuals")


def timeline_plot(spans: Sequence[Span], seconds: float) -> str:
    """Still intervals of the recording: those that gave a posture, and the others."""
    with matplotlib.rc_context(_STYLE):
        shown = spans[:_MOST_SPANS]
        figure = Figure(figsize=(9.2, 1.1), layout="constrained")
        axes = figure.subplots()
        for used, color in ((True, AFTER), (False, REFUSED)):
            bars = [(t0, max(t1 - t0, seconds / 500.0)) for t0, t1, ok in shown if ok is used]
            axes.broken_barh(bars, (0.0, 1.0), facecolors=color)
        axes.set_xlim(0.0, max(seconds, 1e-3))
        axes.set_yticks([])
        axes.set_xlabel("time (s)")
        return _svg(figure, "timeline")


def _outline(axes: Axes, fits: Sequence[PostureFit], feet: Sequence[Foot]) -> None:
    """Draws the soles that the places are in the frames of."""
    for i in sorted({fit.sole for fit in fits if fit.sole >= 0}):
        corners = _MM * feet[i].corners
        if len(corners):
            closed = np.vstack((corners, corners[:1]))
            axes.plot(*closed.T, color=RULE, lw=1.2, zorder=0)


def _legend(figure: Figure) -> None:
    pairs = ((BEFORE, "URDF"), (AFTER, "identified"))
    handles = [Patch(color=color, label=label) for color, label in pairs]
    figure.legend(handles=handles, loc="outside upper right", ncols=2, frameon=False, fontsize=8)


def _svg(figure: Figure, salt: str) -> str:
    """The figure as an <svg> element, without date or version of the tool."""
    FigureCanvasSVG(figure)
    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": salt}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
