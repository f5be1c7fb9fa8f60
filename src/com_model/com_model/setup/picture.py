"""A picture of a configuration: the robot in its posture, its feet, CoM and frames."""

from pathlib import Path

import numpy as np

from com_model.arrays import Array
from com_model.dynamics.kinematics import body_poses, link_poses
from com_model.geometry.support import sole_points
from com_model.model import RobotModel
from com_model.plotting import AXIS_COLORS, INK, draw_robot, new_figure, save_png
from com_model.robot_config import RobotConfig
from com_model.shapes.hulls import read_outside

_VIEWS = (
    ("from the side", 0, 2),
    ("from the front", 1, 2),
    ("the soles from above", 0, 1),
)


def draw_config(model: RobotModel, config: RobotConfig, urdf: Path, path: Path) -> None:
    """Draws the robot from the side and the front, and its soles from above, as a PNG file.

    Args:
        model: The robot, with the sole frames of the configuration.
        config: Its configuration.
        urdf: Path of its URDF, from which relative names of meshes count.
        path: The file to write.
    """
    q = config.nominal_posture(model)
    R_world_root = _upright(model, config, q)
    poses = body_poses(model.bodies, q, R_world_root)
    R, p = link_poses(model, q, R_world_root)
    feet = [(foot, model.link_index(foot.frame)) for foot in config.feet]
    soles = {
        foot.frame: sole_points(R[k], p[k] + R[k] @ foot.center, foot.corners)
        for foot, k in feet
    }
    imu = [model.link_index(config.imu_link)] if config.imu_link else []
    # length of the frames' axes over the robot's height
    size = 0.06 * float(np.ptp(p[:, 2]))
    title = (
        f"{config.name}: {config.kind}, {model.n_joints} joints, {model.mass:.1f} kg"
    )
    figure = new_figure((12.5, 4.8), title)
    outside = read_outside(model, urdf).points
    for axes, (name, i, j) in zip(figure.subplots(1, 3), _VIEWS, strict=True):
        for frame, points in soles.items():
            x, y = np.concatenate([points, points[:1]])[:, [i, j]].T
            axes.plot(x, y, "-o", color=AXIS_COLORS[2], lw=1.5, ms=3)
            if j == 1:
                middle = (x[:-1].mean(), y[:-1].mean())
                axes.annotate(
                    frame, middle, color=INK, fontsize=8, ha="center", va="center"
                )
        draw_robot(axes, model, outside, poses, (i, j))
        for k in (*(k for _, k in feet), *(imu if j == 2 else [])):
            for axis, color in zip(R[k].T, AXIS_COLORS, strict=True):
                end = p[k] + size * axis
                axes.plot(
                    [p[k][i], end[i]],
                    [p[k][j], end[j]],
                    "-",
                    color=color,
                    lw=2.0,
                    zorder=4,
                )
        axes.set_title(name, fontsize=10, color=INK, loc="left")
    save_png(figure, path)


def _upright(model: RobotModel, config: RobotConfig, q: Array) -> Array:
    """R_world_root: z out of the flat soles and x along them; of other robots the root's axes."""
    R, _ = link_poses(model, q)
    frames = [
        R[model.link_index(foot.frame)] for foot in config.feet if len(foot.corners)
    ]
    x, _, z = np.mean(frames or [np.eye(3)], axis=0).T
    z = z / np.linalg.norm(z)
    y = np.cross(z, x) / np.linalg.norm(np.cross(z, x))
    return np.array([np.cross(y, z), y, z])
