"""The picture of a robot: its shape, the SESC chain, the CoM, its projection, the support polygon.

The body is painted pale and the chain over it, so that what is inside can be seen.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Polygon, Wedge
from matplotlib.patheffects import Normal, Stroke
from scipy.ndimage import gaussian_filter

from com_demos.exceptions import RenderError
from com_demos.plots import minus
from com_demos.render import Camera, render
from com_demos.scene import Part, Scene, body_parts
from com_demos.walk_record import WalkRecord
from com_model import RobotModel
from com_model.arrays import Array
from com_model.plotting import BLUE, FAINT, GREEN, GRID, INK, RULE, plain_text, save_png
from com_simulation.drawing.shapes import RobotShape

CHAIN = "#e8590c"
COM = "#ffd43b"
GRAVITY = BLUE
SUPPORT = GREEN
DPI = 100
SIZE = (12.4, 8.0)  # inches
_AZIMUTH_DEG, _ELEVATION_DEG = 38.0, 13.0


def draw_picture(scene: Scene, path: str | Path) -> None:
    """Draw a scene into a PNG file, which appears whole or not at all."""
    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    with_feet = len(scene.polygon) > 0
    _title(figure, scene)
    body_panel(figure.add_axes((0.0, 0.05, 0.60, 0.87)), scene)
    chain_box = (0.62, 0.50, 0.36, 0.37) if with_feet else (0.62, 0.09, 0.36, 0.78)
    chain_panel(figure.add_axes(chain_box), scene)
    if with_feet:
        support_panel(figure.add_axes((0.67, 0.085, 0.30, 0.33)), scene)
    _legend(figure, scene)
    save_png(figure, path)


def body_panel(axes: Axes, scene: Scene) -> None:
    """Draw the whole robot in perspective."""
    width, height = pixel_axes(axes)
    points = [scene.points]
    if scene.projection is not None:
        points.append(scene.projection[None])
    if scene.has_ground:
        points += [_flattened(scene).reshape(-1, 3), _grid(scene).reshape(-1, 3)]
    camera = _camera(scene, np.concatenate(points), width, height, border=0.04)
    if scene.has_ground:
        _ground(axes, scene, camera)
    if len(scene.polygon):
        outline = camera.project(scene.polygon)[:, :2]
        colors = {"facecolor": SUPPORT + "40", "edgecolor": SUPPORT}
        axes.add_patch(Polygon(outline, closed=True, lw=2, zorder=2, **colors))
    draw_body(axes, scene.parts, camera, opacity=0.72)
    if scene.projection is not None:
        ends = camera.project(np.stack([scene.com, scene.projection]))[:, :2]
        axes.plot(*ends.T, color=GRAVITY, lw=1.6, ls=(0, (4, 2)), zorder=5)
        axes.plot(*ends[1], "o", ms=7, mfc="white", mec=GRAVITY, mew=2, zorder=6)
    _chain(axes, scene, camera, width=2.0)
    com_symbol(axes, _pixel(camera, scene.com), radius=8.5)


def chain_panel(axes: Axes, scene: Scene) -> None:
    """Draw the neighbourhood of the chain, enlarged."""
    width, height = pixel_axes(axes)
    # A chain that is next to nothing is not enlarged without end.
    middle, least = (
        scene.chain.mean(axis=0),
        0.02 * scene.size * np.array([[0, 0, -1], [0, 0, 1]]),
    )
    points = np.concatenate([scene.chain, middle + least])
    camera = _camera(scene, points, width, height, border=0.17)
    draw_body(axes, scene.parts, camera, opacity=0.25)
    _chain(axes, scene, camera, width=2.6)
    com_symbol(axes, _pixel(camera, scene.com), radius=9.5)
    (x, y), (_, next_y) = _pixel(camera, scene.chain[0]), _pixel(camera, scene.chain[1])
    style: dict[str, Any] = {"color": CHAIN, "fontsize": 9, "path_effects": halo(4.2)}
    above = y - 11 if next_y > y else y + 20
    axes.text(x, above, plain_text(scene.root_link), ha="center", zorder=12, **style)
    depth = camera.project(scene.com)[2]
    scale_bar(axes, camera.scale / depth, width, height)
    for side in axes.spines.values():
        side.set(visible=True, color=RULE)
    count = len(scene.chain) - 1
    panel_title(axes, f"SESC: {count} link{'s' if count > 1 else ''}, enlarged")


def support_panel(axes: Axes, scene: Scene) -> None:
    """Draw the ground from above, the robot's front upwards, in mm from its root link."""
    c, s = np.cos(scene.heading), np.sin(scene.heading)
    left_and_forward = 1000 * np.array([[-s, c, 0], [c, s, 0]])

    def plan(points: np.ndarray) -> np.ndarray:
        return points @ left_and_forward.T

    outlines = [(sole, "#dee2e6", FAINT, 0.8) for sole in scene.soles]
    for outline, face, edge, width in (
        *outlines,
        (scene.polygon, SUPPORT + "22", SUPPORT, 1.8),
    ):
        axes.add_patch(Polygon(plan(outline), facecolor=face, edgecolor=edge, lw=width))
    if len(scene.trace):
        axes.plot(*plan(scene.trace).T, color=GRAVITY, lw=0.9, alpha=0.6)
    if scene.projection is not None:
        here = plan(scene.projection)
        nearest = plan(nearest_edge_point(scene.polygon, scene.projection))
        axes.plot(*np.stack([here, nearest]).T, color=INK, lw=1.1)
        style: dict[str, Any] = {
            "color": INK,
            "fontsize": 9.5,
            "path_effects": halo(4.2),
        }
        text = minus(f"{1000 * scene.margin:.1f} mm")
        axes.annotate(
            text, (here + nearest) / 2, (6, 5), textcoords="offset points", **style
        )
        axes.plot(*here, "o", ms=7, mfc="white", mec=GRAVITY, mew=2)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.12)
    axes.invert_xaxis()
    axes.set_xlabel("left (mm)", fontsize=9, color=INK)
    axes.set_ylabel("forward (mm)", fontsize=9, color=INK)
    axes.tick_params(labelsize=8, colors=FAINT, length=2)
    for name, side in axes.spines.items():
        side.set(visible=name in ("left", "bottom"), color=RULE)
    panel_title(axes, "Support polygon, from above")


def nearest_edge_point(polygon: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return the point (3,) on the outline of a polygon (k, 3) that is nearest to a point (3,)."""
    ends = np.roll(polygon, -1, axis=0)
    along = ends - polygon
    squared = np.maximum(np.sum(along**2, axis=1), 1e-300)
    fraction = np.sum((point - polygon) * along, axis=1) / squared
    candidates = polygon + np.clip(fraction, 0, 1)[:, None] * along
    return candidates[np.argmin(np.linalg.norm(candidates - point, axis=1))]


def _title(figure: Figure, scene: Scene) -> None:
    x, y, z = np.round(1000 * scene.com_in_root, 1) + 0.0  # no -0.0
    com = minus(f"({x:.1f}, {y:.1f}, {z:.1f})")
    facts = [f"{scene.mass:.2f} kg", f"CoM {com} mm in {plain_text(scene.root_link)}"]
    if np.isfinite(scene.margin):
        facts.append(minus(f"margin {1000 * scene.margin:.1f} mm"))
    figure.text(
        0.025, 0.945, plain_text(scene.name), fontsize=17, fontweight="bold", color=INK
    )
    figure.text(
        0.98, 0.945, "   ·   ".join(facts), fontsize=12.5, color=INK, ha="right"
    )


def _legend(figure: Figure, scene: Scene) -> None:
    plane = "ground" if scene.has_ground else f"plane of {plain_text(scene.root_link)}"
    entries = [
        Line2D([], [], color=CHAIN, lw=2.2, marker="o", ms=4, label="SESC chain"),
        Line2D(
            [], [], ls="", marker="o", ms=9, mfc=COM, mec=INK, label="centre of mass"
        ),
        Line2D(
            [],
            [],
            color=GRAVITY,
            lw=1.6,
            ls=(0, (4, 2)),
            label=f"vertical to the {plane}",
        ),
    ]
    if len(scene.polygon):
        entries.append(Line2D([], [], color=SUPPORT, lw=2, label="support polygon"))
    style: dict[str, Any] = {
        "frameon": False,
        "fontsize": 9.5,
        "labelcolor": INK,
        "columnspacing": 1.6,
    }
    style |= {
        "loc": "lower left",
        "bbox_to_anchor": (0.015, 0.008),
        "handletextpad": 0.6,
    }
    figure.legend(handles=entries, ncols=4, **style)
    if scene.note:
        figure.text(
            0.98,
            0.022,
            plain_text(scene.note, 160),
            fontsize=7,
            color=FAINT,
            ha="right",
        )


def _camera(
    scene: Scene, points: np.ndarray, width: int, height: int, border: float
) -> Camera:
    middle = (scene.points.min(axis=0) + scene.points.max(axis=0)) / 2
    azimuth_deg = np.degrees(scene.heading) + _AZIMUTH_DEG
    camera = Camera.looking_at(middle, azimuth_deg, _ELEVATION_DEG, 4 * scene.size)
    return camera.fitted(points, width, height, border)


def _pixel(camera: Camera, point: np.ndarray) -> tuple[float, float]:
    x, y, _ = camera.project(point).tolist()
    return x, y


def draw_body(
    axes: Axes, parts: Sequence[Part], camera: Camera, opacity: float
) -> None:
    """Paint a robot onto pixel axes; plain outlines of its shapes where nothing can be rendered."""
    width, height = round(axes.get_xlim()[1]), round(axes.get_ylim()[0])
    try:
        image = render(camera, parts, width, height)
    except RenderError as error:
        logging.getLogger(__name__).warning("%s", error)
        for triangles, color in parts:
            flat = list(camera.project(triangles)[..., :2])
            axes.add_collection(
                PolyCollection(flat, facecolor=color, alpha=opacity, zorder=3)
            )
        return
    image[..., 3] *= opacity
    extent = (0, width, height, 0)
    axes.imshow(image, extent=extent, interpolation="none", zorder=3, aspect="auto")


def _ground(axes: Axes, scene: Scene, camera: Camera) -> None:
    """Draw a grid on the ground and the robot's soft shadow from straight above."""
    width, height = round(axes.get_xlim()[1]), round(axes.get_ylim()[0])
    with suppress(RenderError):
        shadow = render(camera, [(_flattened(scene), (0.0, 0.0, 0.0))], width, height)
        shadow[..., :3], shadow[..., 3] = 0.0, 0.20 * gaussian_filter(shadow[..., 3], 5)
        axes.imshow(shadow, extent=(0, width, height, 0), zorder=1, aspect="auto")
    lines = camera.project(_grid(scene))[..., :2]
    axes.add_collection(
        LineCollection(list(lines), colors=GRID, linewidths=0.8, zorder=0)
    )


def _grid(scene: Scene) -> np.ndarray:
    """Return the lines (j, 2, 3) of a grid on the ground, their spacing a round length."""
    step = round_length(scene.size / 8)
    ticks = step * np.arange(-3, 4)
    x, y = step * np.round(scene.com[:2] / step)
    z = 0.0 if scene.projection is None else scene.projection[2]
    along_y = [[(x + t, y + ticks[0], z), (x + t, y + ticks[-1], z)] for t in ticks]
    along_x = [[(x + ticks[0], y + t, z), (x + ticks[-1], y + t, z)] for t in ticks]
    return np.array(along_y + along_x)


def _flattened(scene: Scene) -> np.ndarray:
    """Return the triangles (m, 3, 3) of the shape pressed onto the ground."""
    flat = scene.triangles.copy()
    flat[..., 2] = 0.0 if scene.projection is None else scene.projection[2]
    return flat


def _chain(axes: Axes, scene: Scene, camera: Camera, width: float) -> None:
    points = camera.project(scene.chain)[:, :2]
    style: dict[str, Any] = {
        "path_effects": halo(width + 2),
        "solid_joinstyle": "round",
    }
    axes.plot(*points.T, color=CHAIN, lw=width, zorder=7, **style)
    axes.plot(*points.T, "o", ms=width + 1.2, mfc="white", mec=CHAIN, mew=1.1, zorder=8)


def halo(width: float) -> list:
    """Return the path effects of a white seam around a line or text."""
    return [Stroke(linewidth=width, foreground="white"), Normal()]


def panel_title(axes: Axes, text: str) -> None:
    """Put a panel's heading at its left."""
    axes.set_title(text, fontsize=10.5, color=INK, loc="left", fontweight="bold", pad=7)


def pixel_axes(axes: Axes) -> tuple[int, int]:
    """Make axes whose unit is a pixel, y downwards; return width and height."""
    box = axes.get_window_extent()
    width, height = round(box.width), round(box.height)
    axes.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[], facecolor="none")
    for side in axes.spines.values():
        side.set_visible(False)
    return width, height


def com_symbol(axes: Axes, center: tuple[float, float], radius: float) -> None:
    """Draw the quartered disc that stands for a centre of mass."""
    axes.add_patch(
        Circle(center, radius + 1.5, facecolor="white", edgecolor="none", zorder=9)
    )
    for k in range(4):
        color = INK if k % 2 else COM
        axes.add_patch(
            Wedge(center, radius, 90 * k, 90 * (k + 1), facecolor=color, zorder=10)
        )
    axes.add_patch(
        Circle(center, radius, facecolor="none", edgecolor=INK, lw=1.2, zorder=11)
    )


def scale_bar(axes: Axes, pixels_per_m: float, width: int, height: int) -> None:
    """Draw a bar of a round length into the lower left corner of pixel axes."""
    length = round_length(0.25 * width / pixels_per_m)
    left, y = 16, height - 16
    axes.plot(
        [left, left + length * pixels_per_m],
        [y, y],
        color=INK,
        lw=2,
        solid_capstyle="butt",
    )
    text = f"{1000 * length:g} mm" if length < 1 else f"{length:g} m"
    axes.text(left, y - 6, text, fontsize=8.5, color=INK)


def round_length(length: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is not above length."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * max(k for k in (1, 2, 5) if k * power <= length * (1 + 1e-9)))


PANEL = (1.05, 1.75)  # inches
_FILM_AZIMUTH_DEG, _FILM_ELEVATION_DEG = -58.0, 10.0


@dataclass(frozen=True, eq=False)
class FilmRow:
    """One row of a film."""

    title: str
    record: WalkRecord
    # (k, 3) m each, corners of the soles where they are to be set down
    footprints: Sequence[Array]


def draw_film(
    model: RobotModel,
    shape: RobotShape,
    rows: Sequence[FilmRow],
    times: Sequence[float],
    path: str | Path,
) -> None:
    """Draws runs into a PNG file, a row each, at the same times (s), until they end."""
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
        figure.text(
            0.006, top, title, fontsize=10, fontweight="bold", color=INK, va="top"
        )
    save_png(figure, path)


def _panel(
    axes: Axes, model: RobotModel, shape: RobotShape, film_row: FilmRow, time: float
) -> None:
    width, height = pixel_axes(axes)
    record = film_row.record
    k = int(np.argmin(np.abs(record.time - time)))
    first, parts = (
        body_parts(model, shape, record.position[i], record.R_root[i], record.root[i])
        for i in (0, k)
    )
    corners = np.concatenate([triangles.reshape(-1, 3) for triangles, _ in first])
    camera = _film_camera(corners, record.com[k], width, height)
    flat = [camera.project(sole)[:, :2] for sole in film_row.footprints]
    axes.add_collection(PolyCollection(flat, facecolor=GRID, edgecolor=RULE, zorder=1))
    draw_body(axes, parts, camera, opacity=0.85)
    x, y, _ = camera.project(record.com[k]).tolist()
    com_symbol(axes, (x, y), radius=5.0)
    at = f"{record.time[k]:.1f} s"
    axes.text(
        0.5 * width, height - 1, at, fontsize=8, color=FAINT, ha="center", va="bottom"
    )


def _film_camera(corners: Array, com: Array, width: int, height: int) -> Camera:
    """Beside the robot, as far away at each instant; all of it is in view.

    Args:
        corners: (m, 3) m, of its shapes at the first instant, world.
        com: (3,) m, its CoM now.
        width: pixels of the picture.
        height: pixels.
    """
    low, high = corners.min(axis=0), corners.max(axis=0)
    middle = np.array([com[0], *(0.5 * (low + high))[1:]])
    # it steps, sways, and lifts its pelvis
    half = 0.5 * (high - low) * (1.4, 1.2, 1.08)
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    distance = 4.5 * float((high - low).max())
    camera = Camera.looking_at(middle, _FILM_AZIMUTH_DEG, _FILM_ELEVATION_DEG, distance)
    return camera.fitted(middle + signs * half, width, height, border=0.02)
