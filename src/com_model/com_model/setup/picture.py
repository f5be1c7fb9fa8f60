"""A picture of what was found: the robot in its standing posture, its feet, CoM and frames."""

import os

import numpy as np
from matplotlib.axes import Axes

from com_model.plotting import AXIS_COLORS, INK, draw_robot, new_figure, save_png
from com_model.setup.describe import RobotSetup

_VIEWS = (("from the side", 0, 2), ("from the front", 1, 2), ("the soles from above", 0, 1))


def draw_setup(setup: RobotSetup, path: str | os.PathLike[str]) -> None:
    """Draws the robot from the side and the front, and its soles from above, as a PNG file."""
    limbs, model = setup.limbs, setup.model
    title = f"{setup.name}: {limbs.kind}, {model.n_joints} joints, {model.mass:.1f} kg"
    poses = setup.standing.R, setup.standing.p
    figure = new_figure((12.5, 4.8), title)
    for axes, (name, i, j) in zip(figure.subplots(1, 3), _VIEWS, strict=True):
        _draw_feet(axes, setup, i, j)
        draw_robot(axes, model, setup.outside.points, poses, (i, j))
        _draw_frame(axes, setup, i, j)
        axes.set_title(name, fontsize=10, color=INK, loc="left")
    save_png(figure, path)


def _draw_feet(axes: Axes, setup: RobotSetup, i: int, j: int) -> None:
    for foot in setup.feet:
        points = foot.points[:, [i, j]]
        closed = np.concatenate([points, points[:1]])
        axes.plot(closed[:, 0], closed[:, 1], "-o", color=AXIS_COLORS[2], lw=1.5, ms=3)
        if j == 1:
            middle = tuple(points.mean(axis=0).tolist())
            axes.annotate(foot.name, middle, color=INK, fontsize=8, ha="center", va="center")


def _draw_frame(axes: Axes, setup: RobotSetup, i: int, j: int) -> None:
    """The frames of the soles and the IMU's link."""
    standing, bodies, model = setup.standing, setup.model.bodies, setup.model
    frames = []
    for foot in setup.feet:
        b = foot.leg.foot
        R = standing.R[b]
        frames.append((R @ foot.sole.R_body, R @ foot.sole.p_body + standing.p[b]))
    if setup.imu.link and j == 2:
        link = model.link_index(setup.imu.link)
        b = int(bodies.body_of_link[link])
        R = standing.R[b]
        frames.append((R @ bodies.R_body_link[link], R @ bodies.p_body_link[link] + standing.p[b]))
    size = 0.06 * setup.limbs.height
    for R, p in frames:
        for k, color in enumerate(AXIS_COLORS):
            end = p + size * R[:, k]
            axes.plot([p[i], end[i]], [p[j], end[j]], "-", color=color, lw=2.0, zorder=4)
