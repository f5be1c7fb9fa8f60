"""Draws README's moving picture: a robot leans and falls by a wrong URDF, stands by the true one.

The same balance controller, load and motion as in `make demo`, without nodes: what differs between
left and right is the URDF that the controller has.

    tools/in_env python tools/correction_picture.py docs/images/correction.png
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from PIL import Image
from scipy.spatial.transform import Rotation

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))

# ruff: noqa: E402 - that folder is no package
from balance_lab import SETTLE, read_sensors
from moving_pictures import save

from com_control.balance.demonstrations import DemonstrationPlayer
from com_control.balance.session import BalancePhase, BalanceSession
from com_demos.hidden_load import HiddenLoad, hide_load
from com_demos.pictures import com_symbol, draw_body, pixel_axes
from com_demos.render import Camera
from com_demos.scene import body_parts
from com_model import RobotConfig, RobotModel, Sesc, link_poses, load_robot
from com_model.arrays import Array
from com_model.plotting import BLUE, FAINT, GREEN, INK, RED
from com_simulation.drawing.shapes import RobotShape, robot_shape
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

RATE = 250.0  # 1/s, as in the demo
FROM, UNTIL, HZ = 3.6, 7.6, 8.0  # s of balancing, and pictures a second
PANEL = (3.9, 3.9)  # inches, at 100 dots per inch
AZIMUTH_DEG, ELEVATION_DEG = 62.0, 8.0  # of the camera, from the robot's left and front


@dataclass(frozen=True, eq=False)
class Instant:
    """A robot at one time; world frame, SI units."""

    q: Array  # (n,)
    R: Array  # (3, 3) of the root link
    p: Array  # (3,) of the root link
    believed: Array  # (3,) CoM by the URDF that the controller has
    true: Array  # (3,) CoM


def lean(
    model: RobotModel, true: RobotModel, config: RobotConfig, load: HiddenLoad
) -> list[Instant]:
    """Let the true robot lean by a model; return what is to be seen."""
    world = build_world(true, config)
    simulation = Simulation(world, 1.0 / RATE)
    session, player = (
        BalanceSession(model, config),
        DemonstrationPlayer("reach", load.margin),
    )
    sesc, seen, step = Sesc(model), [], None
    for index in range(round((SETTLE + UNTIL) * RATE)):
        reading = simulation.advance()
        time = reading.time - SETTLE
        sensors = read_sensors(model, world.imu_link, reading, world.posture)
        if time >= 0.0 and session.state is not BalancePhase.FALLEN:
            if not session.active:
                session.start()
            if step is not None and (desired := player.next(time, step)):
                session.set_desired_com(*desired)
            command = session.step(sensors)
            if command is not None:
                simulation.lead(command.position, command.velocity)
                step = command.step or step
        elif time < 0.0:
            session.step(sensors)
        if time >= FROM and index % round(RATE / HZ) == 0:
            R = Rotation.from_quat(reading.root_orientation).as_matrix()
            p = np.asarray(reading.root_position)
            believed = R @ sesc.com(reading.position) + p
            seen.append(
                Instant(reading.position.copy(), R, p, believed, R @ reading.com + p)
            )
    print("fell" if session.state is BalancePhase.FALLEN else "stands")
    return seen


def draw(
    pair: tuple[Instant, Instant],
    model: RobotModel,
    shape: RobotShape,
    soles: Array,
    camera: Camera,
) -> Image.Image:
    """Draw both robots at one time."""
    figure = Figure(figsize=(2 * PANEL[0], PANEL[1]), dpi=100, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    titles = "By its URDF", "By the corrected URDF"
    for column, (instant, title) in enumerate(zip(pair, titles, strict=True)):
        axes = figure.add_axes((column / 2, 0.0, 0.5, 1.0))
        width, height = pixel_axes(axes)
        for sole in soles:
            flat = camera.project(sole)[:, :2]
            axes.add_patch(
                Polygon(flat, facecolor=GREEN + "40", edgecolor=GREEN, lw=1.4, zorder=1)
            )
        draw_body(
            axes,
            body_parts(model, shape, instant.q, instant.R, instant.p),
            camera,
            0.75,
        )
        for com, color in ((instant.believed, BLUE), (instant.true, RED)):
            ground = np.array([com[0], com[1], 0.0])
            ends = camera.project(np.array([com, ground]))[:, :2]
            axes.plot(*ends.T, color=color, lw=1.8, zorder=5)
            axes.plot(*ends[1], "o", ms=6, mfc="white", mec=color, mew=2, zorder=6)
            com_symbol(axes, (float(ends[0, 0]), float(ends[0, 1])), 6.0)
        axes.text(14, 26, title, fontsize=13, fontweight="bold", color=INK)
    axes.text(
        width - 12, height - 28, "CoM by the URDF", color=BLUE, ha="right", fontsize=10
    )
    axes.text(width - 12, height - 12, "true CoM", color=RED, ha="right", fontsize=10)
    figure.text(
        0.5,
        0.015,
        "1 kg on its back, which the URDF does not have",
        color=FAINT,
        ha="center",
    )
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("output", type=Path, help="picture, .png")
    output = parser.parse_args().output
    model, config = load_robot("hoap2")
    true, load = hide_load(model, config)
    wrong, right = lean(model, true, config, load), lean(true, true, config, load)
    shape = robot_shape(model, ROOT / "src/robot_descriptions/urdf/hoap2.urdf")
    R, p = link_poses(model, right[0].q, right[0].R, right[0].p)
    feet = [
        (model.link_index(foot.frame), np.asarray(foot.corners)) for foot in config.feet
    ]
    soles = np.array([np.c_[c, np.zeros(len(c))] @ R[k].T + p[k] for k, c in feet])
    camera = Camera.looking_at(right[0].true, AZIMUTH_DEG, ELEVATION_DEG, 2.5)
    parts = body_parts(model, shape, right[0].q, right[0].R, right[0].p)
    shown = np.concatenate([triangles.reshape(-1, 3) for triangles, _ in parts])
    behind = shown.copy()
    behind[:, 0] -= 0.12  # where it falls to
    width, height = (round(100 * n) for n in PANEL)
    camera = camera.fitted(np.concatenate([shown, behind]), width, height, border=0.1)
    pictures = [
        draw(pair, model, shape, soles, camera)
        for pair in zip(wrong, right, strict=True)
    ]
    save(pictures, HZ, output)


if __name__ == "__main__":
    main()
