"""Shows the suite at work: a robot sways in simulation, its CoM and SESC are published.

Starts the launch file that ships, nodes as processes of their own; shows live what arrives; ends
automatically; writes a picture and a plot, and prints the figures of the run as JSON on its last
line.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from com_demos.demonstration import DemoParser, launch_words, listen, run_demo, setup_time
from com_demos.nodes.sway_monitor import SwayMonitor
from com_demos.session import Times
from com_demos.sway_plot import plot_figure
from com_demos.sway_recording import Series
from com_model.exceptions import ComModelError
from com_model.model import RobotModel
from com_model.plotting import save_png
from com_model.robot_config import RobotConfig
from com_model.robots import RobotFiles, find_robot
from com_simulation.drawing.pictures import draw_picture
from com_simulation.drawing.scene import build_scene
from com_simulation.drawing.shapes import robot_shape
from com_simulation.exceptions import RunError

MAX_ERROR_MM = 1.0


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code, see run_demo()."""
    return run_demo(show, command_line().read(words))


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot = find_robot(options.robot, options.config)
    model = RobotModel.from_file(robot.urdf)
    robot, config = with_fitting_config(robot, model)
    options.output.mkdir(parents=True, exist_ok=True)
    monitor = run(robot, model, config, options)
    series = monitor.recording.series(until=options.seconds)
    figures = {"robot": robot.name, **series.summary()}
    figures |= write_images(robot, model, config, monitor, series, options.output)
    print(json.dumps({**figures, "setup_s": setup_time()}))
    check(figures)


def command_line() -> DemoParser:
    """Options of the demo."""
    parser = DemoParser("demo", str(__doc__), "hoap2", "hoap2, talos", speed=None)
    parser.add_number("--seconds", 20.0, (1, 3600), "how long to record")
    return parser


def with_fitting_config(
    robot: RobotFiles, model: RobotModel
) -> tuple[RobotFiles, RobotConfig | None]:
    """Read the configuration of the robot's name, unless it is about another robot."""
    if robot.config is None:
        return robot, None
    config = RobotConfig.from_file(robot.config)
    try:
        config.attach(model)
    except ComModelError as error:
        print(f"{robot.name}: not the robot of that name, so it has no feet: {error}")
        return replace(robot, config=None), None
    return robot, config


def launch_command(robot: RobotFiles) -> list[str]:
    """Return the command that starts the launch file."""
    file = "hoap2.launch.xml" if robot.name == "hoap2" and robot.config else "view_robot.launch.xml"
    arguments: dict[str, object] = {
        "urdf": robot.urdf,
        "config": robot.config or "",
        "simulation": "true",
        "rviz": "false",
        "sway": "true",
    }
    return launch_words(file, arguments)


def run(
    robot: RobotFiles, model: RobotModel, config: RobotConfig | None, options: argparse.Namespace
) -> SwayMonitor:
    """Start the launch file, record, stop it.

    Raises:
        RunError: no data came, or it stopped coming.
    """
    stands = "stands on its feet" if config is not None and config.feet else "hangs from its base"
    what = f"{robot.name}: {model.n_joints} joints, {model.mass:.2f} kg, {stands}"
    times = Times(options.seconds, settle=4.0)
    command = launch_command(robot)
    return listen(command, lambda: SwayMonitor(model), times, robot.name, what, options.output)


def write_images(
    robot: RobotFiles,
    model: RobotModel,
    config: RobotConfig | None,
    monitor: SwayMonitor,
    series: Series,
    out: Path,
) -> dict[str, str | float]:
    """Write the picture and the plot; return where they are."""
    if not monitor.snapshots:
        raise RunError("no chain arrived on sesc together with com and joint_states")
    shape = robot_shape(model, robot.urdf)
    if shape.note:
        print(f"{robot.name}: {shape.note}")
    picture, plot = out / f"{robot.name}.png", out / f"{robot.name}_com.png"
    feet = config.feet if config is not None else ()
    draw_picture(build_scene(model, shape, feet, monitor.snapshots, robot.name), picture)
    title = f"{robot.name}: CoM in {model.root_link}, {series.rate_hz:.0f} Hz, against the truth"
    save_png(plot_figure(series, title), plot)
    return {"mass_kg": round(model.mass, 6), "picture": str(picture), "plot": str(plot)}


def check(figures: dict) -> None:
    """Raise RunError if the CoM was not compared with the truth, or differs from it."""
    error = figures["com_error_max_mm"]
    if error is None:
        raise RunError("no message on ground_truth/com has the stamp of one on com")
    if error > MAX_ERROR_MM:
        raise RunError(f"the CoM is up to {error:.3g} mm off the truth, {MAX_ERROR_MM:g} allowed")


if __name__ == "__main__":
    sys.exit(main())
