"""The look of all plots: colours, axes, labels. It needs matplotlib; import it only to draw."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from com_model.arrays import Array
from com_model.dynamics.kinematics import body_poses
from com_model.files import whole_file
from com_model.geometry.support import convex_hull
from com_model.model import RobotModel
from com_model.shapes.hulls import read_outside

INK, FAINT, RULE, GRID = "#22262b", "#8a929c", "#ced4da", "#e9ecef"
# Vermillion and bluish green: safe for colour-blind readers [Okabe and Ito 2008].
RED, GREEN, BLUE, PURPLE = "#d55e00", "#009e73", "#0072b2", "#cc79a7"
AXIS_COLORS = (RED, GREEN, BLUE)  # x, y, z as in rviz


def new_figure(size: tuple[float, float], title: str) -> Figure:
    """Makes an empty figure with a heading.

    Args:
        size: Width and height, inches.
        title: The heading.
    """
    figure = Figure(figsize=size, dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    heading = {"fontsize": 13, "fontweight": "bold", "color": INK}
    figure.suptitle(plain_text(title, 100), x=0.012, ha="left", **heading)
    return figure


def style_axes(axes: Axes) -> None:
    """Gives axes the look of all plots."""
    axes.grid(color=GRID, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=9, colors=FAINT, length=2)
    axes.margins(x=0.01)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(INK)
    for name, side in axes.spines.items():
        side.set(visible=name in ("left", "bottom"), color=RULE)


def add_legend(axes: Axes, columns: int, above: bool = False) -> None:
    """Adds a legend.

    Args:
        axes: Where it belongs.
        columns: Number of its columns.
        above: Whether it is at the right above the axes, not in their upper left corner.
    """
    place: dict[str, Any] = {"loc": "upper left"}
    if above:
        place = {"loc": "lower right", "bbox_to_anchor": (1.005, 0.985)}
    axes.legend(ncols=columns, frameon=False, fontsize=9, labelcolor=INK, **place)


def plain_text(text: str, longest: int = 40) -> str:
    """Makes text from a file fit for a picture: printable, not too long, no formula.

    Args:
        text: The text.
        longest: Number of characters that are kept.
    """
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return text.replace("$", r"\$")


def save_png(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Writes a figure as a PNG file, which appears whole or not at all; makes its folder.

    Args:
        figure: The figure.
        path: The file.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as part:
        figure.savefig(part, format="png", pil_kwargs={"optimize": True})


def robot_figure(
    model: RobotModel, q: Array, title: str, marked: Collection[str] = ()
) -> Figure:
    """Draws a robot from the side and the front, the root's z up.

    Args:
        model: The robot.
        q: (n,) joint positions, rad or m.
        title: Heading of the figure.
        marked: Links whose centres of mass are emphasised.
    """
    poses, outside = body_poses(model.bodies, q), read_outside(model, model.path).points
    figure = new_figure((9.6, 5.4), title)
    for axes, (i, view) in zip(
        figure.subplots(1, 2), ((0, "side"), (1, "front")), strict=True
    ):
        draw_robot(axes, model, outside, poses, (i, 2), marked)
        axes.set_title(f"from the {view}", fontsize=10, color=INK, loc="left")
    legend = {"loc": "outside lower center", "ncols": 3, "frameon": False}
    figure.legend(*axes.get_legend_handles_labels(), **legend)
    return figure


def draw_robot(
    axes: Axes,
    model: RobotModel,
    outside: Sequence[Array],
    poses: tuple[Array, Array],
    shown: tuple[int, int],
    marked: Collection[str] = (),
) -> None:
    """Draws two coordinates of a robot's bodies and of its links' centres of mass.

    Discs are the centres of mass, their areas proportional to the masses; those of marked links are
    vermillion, and never tiny.

    Args:
        axes: Where to draw.
        model: The robot.
        outside: Per body (k, 3) m, points of its shapes in its frame.
        poses: R (B, 3, 3) and p (B, 3) m of the bodies.
        shown: Which coordinates are drawn to the right and upwards: 0, 1, 2 for x, y, z.
        marked: Names of links.
    """
    bodies, (R, p), axis = model.bodies, poses, list(shown)
    for b, points in enumerate(outside):
        if len(points) > 2:
            outline = convex_hull((points @ R[b].T + p[b])[:, axis])
            axes.fill(*outline.T, facecolor=RULE, edgecolor=FAINT, lw=0.5, alpha=0.5)
        if b > 0:
            axes.plot(
                *p[[int(bodies.parent[b]), b]][:, axis].T,
                "-",
                color=INK,
                marker=".",
                ms=3,
            )
    coms = (
        np.einsum("lij,lj->li", bodies.R_body_link, model.link_coms)
        + bodies.p_body_link
    )
    coms = p[bodies.body_of_link] + np.einsum(
        "lij,lj->li", R[bodies.body_of_link], coms
    )
    heavy, wrong = model.link_masses > 0.0, np.isin(model.link_names, list(marked))
    sizes = np.maximum(
        900.0 * model.link_masses / model.mass, np.where(wrong, 45.0, 8.0)
    )[heavy]
    colors = np.where(wrong, RED, BLUE)[heavy].tolist()
    label = "CoM of a link" + "; vermillion: to look at" * bool(wrong.any())
    x, y = coms[heavy][:, axis].T
    axes.scatter(x, y, sizes, colors, alpha=0.6, lw=0.0, zorder=3, label=label)
    com = (model.link_masses @ coms / model.mass)[axis]
    axes.plot(
        *com,
        "*",
        ms=13,
        mfc="white",
        mec=INK,
        ls="",
        label="CoM of the robot",
        zorder=5,
    )
    style_axes(axes)
    axes.set(
        aspect="equal",
        adjustable="datalim",
        xlabel=f"{'xyz'[axis[0]]} (m)",
        ylabel=f"{'xyz'[axis[1]]} (m)",
    )
