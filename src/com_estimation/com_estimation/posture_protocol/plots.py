"""A picture of tip angles: measured, simulated by others, ours."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from com_estimation.identification.files import write_whole
from com_model.arrays import Array

INK, FAINT = "#343a40", "#adb5bd"
OURS = ("#1971c2", "#e8590c", "#2f9e44")
_WIDEST = 10.0  # degrees: errors beyond the edge of the right side


def draw_angles(
    path: Path,
    tests: tuple[str, ...],
    measured: Array,
    others: Mapping[str, Array],
    ours: Mapping[str, Array],
    overwrite: bool = False,
) -> None:
    """Draws the angles of each test, and beside them the errors.

    Args:
        path: The PNG file.
        tests: T names.
        measured: (T,) rad.
        others: (T,) rad by name, drawn small.
        ours: (T,) rad by name, at most three.
        overwrite: Whether a file that is there may be replaced.

    Raises:
        OutputError: It cannot be written, or it is there already.
    """
    figure = Figure(figsize=(11.0, 0.8 + 0.32 * len(tests)), dpi=90, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.4, 1.0))
    rows = np.arange(len(tests))
    left.barh(rows, np.degrees(measured), color="#e9ecef", edgecolor=FAINT, label="measured")
    for axes, zero in ((left, np.zeros(len(tests))), (right, measured)):
        for name, angles in others.items():
            text = f"${name[-1]}$"  # the number of the world
            axes.plot(np.degrees(angles - zero), rows, ls="", marker=text, color=FAINT, ms=6)
        for (name, angles), colour in zip(ours.items(), OURS, strict=False):
            error = np.degrees(angles - zero)
            axes.plot(error, rows, "o", color=colour, ms=5, label=name)
        _style(axes)
    left.set_yticks(rows, tests)
    left.invert_yaxis()
    left.set_xlabel("tip angle (deg)")
    right.set_xlabel(f"error (deg), shown up to {_WIDEST:g}")
    right.set_xlim(-_WIDEST, _WIDEST)
    right.axvline(0.0, color=INK, lw=0.8)
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False
    )
    content = BytesIO()
    figure.savefig(content, format="png")
    write_whole(path, content.getvalue(), overwrite)


def _style(axes: Axes) -> None:
    axes.grid(axis="x", color="#dee2e6", lw=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=INK, length=0)
