"""Drawings of a robot: outlines of its shapes, links, their centres of mass."""

from collections.abc import Collection, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from com_model.arrays import Array
from com_model.dynamics.kinematics import body_poses
from com_model.geometry.hull import convex_hull
from com_model.model import RobotModel
from com_model.plotting import BLUE, FAINT, INK, RED, RULE, new_figure, style_axes
from com_model.setup.body_tree import read_outside


def robot_figure(model: RobotModel, q: Array, title: str, marked: Collection[str] = ()) -> Figure:
    """Draws a robot at joint positions q (n,) from the side and the front, the root's z up."""
    poses, outside = body_poses(model.bodies, q), read_outside(model, model.path).points
    figure = new_figure((9.6, 5.4), title)
    for axes, (i, view) in zip(figure.subplots(1, 2), ((0, "side"), (1, "front")), strict=True):
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
    """Draws two coordinates of bodies at poses R (B, 3, 3), p (B, 3) m, with their outside points.

    Discs are the links' centres of mass, their areas proportional to the masses; those of marked
    links are vermillion, and never tiny.
    """
    bodies, (R, p), axis = model.bodies, poses, list(shown)
    for b, points in enumerate(outside):
        if len(points) > 2:
            outline = convex_hull((points @ R[b].T + p[b])[:, axis])
            axes.fill(*outline.T, facecolor=RULE, edgecolor=FAINT, lw=0.5, alpha=0.5)
        if b > 0:
            axes.plot(*p[[int(bodies.parent[b]), b]][:, axis].T, "-", color=INK, marker=".", ms=3)
    coms = np.einsum("lij,lj->li", bodies.R_body_link, model.link_coms) + bodies.p_body_link
    coms = p[bodies.body_of_link] + np.einsum("lij,lj->li", R[bodies.body_of_link], coms)
    heavy, wrong = model.link_masses > 0.0, np.isin(model.link_names, list(marked))
    sizes = np.maximum(900.0 * model.link_masses / model.mass, np.where(wrong, 45.0, 8.0))[heavy]
    colors = np.where(wrong, RED, BLUE)[heavy].tolist()
    label = "CoM of a link" + "; vermillion: to look at" * bool(wrong.any())
    x, y = coms[heavy][:, axis].T
    axes.scatter(x, y, sizes, colors, alpha=0.6, lw=0.0, zorder=3, label=label)
    com = (model.link_masses @ coms / model.mass)[axis]
    axes.plot(*com, "*", ms=13, mfc="white", mec=INK, ls="", label="CoM of the robot", zorder=5)
    style_axes(axes)
    axes.set(aspect="equal", xlabel=f"{'xyz'[axis[0]]} (m)", ylabel=f"{'xyz'[axis[1]]} (m)")
