"""Film strips: a robot at some instants of a run, one panel each, on the ground with footprints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from com_model import RobotModel
from com_model.arrays import Array
from com_model.plotting import FAINT, GRID, INK, RULE, plain_text, save_png
from com_simulation.drawing.pictures import com_symbol, draw_body, pixel_axes
from com_simulation.drawing.render import Camera
from com_simulation.drawing.scene import body_parts
from com_simulation.drawing.shapes import RobotShape
from com_simulation.physics.walk_record import WalkRecord

DPI = 100
PANEL = (1.05, 1.75)  # inches
_AZIMUTH_DEG, _ELEVATION_DEG = -58.0, 10.0


@dataclass(frozen=True, eq=False)
class FilmRow:
    """One row of a film.

    Attributes:
        footprints: (k, 4, 3) m, corners of the soles where they are to be set down.
    """

    title: str
    record: WalkRecord
    footprints: Array


def draw_film(
    model: RobotModel,
    shape: RobotShape,
    rows: Sequence[FilmRow],
    times: Sequence[float],
    path: str | Path,
) -> None:
    """Draws runs into a PNG file, a row each, at the same times (s), until they end.

    Args:
        path: Of the file, which appears whole or not at all.
    """
    size = PANEL[0] * len(times), PANEL[1] * len(rows)
    figure = Figure(figsize=size, dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    for row, film_row in enumerate(rows):
        for column, time in enumerate(times):
            if column > 0 and film_row.record.time[-1] < times[column - 1]:
                break
            corner = column / len(times), 1.0 - (row + 1) / len(rows)
            axes = figure.add_axes((*corner, 1.0 / len(times), 0.9 / len(rows)))
            _panel(axes, model, shape, film_row, time)
        top = 1.0 - (row + 0.02) / len(rows)
        title = plain_text(film_row.title, 100)
        figure.text(0.006, top, title, fontsize=10, fontweight="bold", color=INK, va="top")
    save_png(figure, path)


def _panel(
    axes: Axes, model: RobotModel, shape: RobotShape, film_row: FilmRow, time: float
) -> None:
    width, height = pixel_axes(axes)
    record = film_row.record
    k = int(np.argmin(np.abs(record.time - time)))
    camera = _camera(record, k, width, height)
    flat = camera.project(film_row.footprints)[..., :2]
    axes.add_collection(PolyCollection(list(flat), facecolor=GRID, edgecolor=RULE, zorder=1))
    parts = body_parts(model, shape, record.position[k], record.R_root[k], record.root[k])
    draw_body(axes, parts, camera, opacity=0.85)
    x, y, _ = camera.project(record.com[k]).tolist()
    com_symbol(axes, (x, y), radius=5.0)
    at = f"{record.time[k]:.1f} s"
    axes.text(0.5 * width, height - 1, at, fontsize=8, color=FAINT, ha="center", va="bottom")


def _camera(record: WalkRecord, k: int, width: int, height: int) -> Camera:
    """Beside the robot, as far away at each instant."""
    top = 1.35 * record.root[0, 2]
    middle = np.array([record.com[k, 0], record.root[0, 1], 0.46 * top])
    half = top * np.array([0.26, 0.26, 0.56])
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    camera = Camera.looking_at(middle, _AZIMUTH_DEG, _ELEVATION_DEG, 6.0 * top)
    return camera.fitted(middle + signs * half, width, height, border=0.02)
