"""Shows the walk: a robot on two legs walks in simulation, with its CoM where it is to be.

Starts the launch file that ships, nodes as processes of their own; shows live what arrives; ends
by itself; writes a plot of CoM and ZMP against the plan and a film strip, and prints the figures of
the run as JSON on its last line, which goes to a file, too.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from com_demos.demonstration import launch_words, outcome, own_domain
from com_demos.live import LiveView
from com_demos.nodes.listener import launched
from com_demos.nodes.walk_monitor import WalkMonitor
from com_demos.session import Times, record_until
from com_demos.walk_figure import draw_walk_plot
from com_demos.walk_live import walk_rows
from com_demos.walk_recording import WalkSeries
from com_model.exceptions import ConfigError
from com_model.model import RobotModel
from com_simulation.drawing.film import Strip, draw_film
from com_simulation.drawing.shapes import robot_shape
from com_simulation.exceptions import RunError
from com_simulation.physics.robots import RobotFiles, find_robot

PAPER = "itu_biped"  # has a launch file of its own
STANDING = 8.0  # s, at most, before and after the steps
FRAMES = 10


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code, see outcome()."""
    options = command_line(words)
    return outcome(lambda: show(options))


def command_line(words: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="demo_walk", description=__doc__.partition("\n\n")[0])
    parser.add_argument(
        "robot", nargs="?", default=PAPER, help="a name (itu_biped, hoap2, talos) or a URDF's path"
    )
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--step-time", type=float, default=1.2, help="s, of a step in the air")
    parser.add_argument("--speed", type=float, default=0.5, help="simulated over wall time")
    parser.add_argument("--method", default="refined", choices=("exact", "refined", "ccgd"))
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for what it writes")
    options = parser.parse_args(words)
    if not 1 <= options.steps <= 100:
        parser.error(f"--steps {options.steps}: give 1 to 100")
    if not 0.05 <= options.speed <= 10.0:
        parser.error(f"--speed {options.speed:g}: give 0.05 to 10")
    if not 0.1 <= options.step_time <= 10.0:
        parser.error(f"--step-time {options.step_time:g}: give 0.1 to 10")
    return options


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot = find_robot(options.robot)
    model = RobotModel.from_file(robot.urdf)
    if robot.config is None:
        raise ConfigError(f"{robot.name} has none; one is needed, with the side of its feet")
    options.out.mkdir(parents=True, exist_ok=True)
    series, steps = run(robot, model, options)
    name = f"{robot.name}_walk"
    plot, film = options.out / f"{name}.png", options.out / f"{name}_film.png"
    draw_walk_plot(series, f"{robot.name}: {steps} steps of {options.step_time:g} s", plot)
    figures = {"robot": robot.name, "method": options.method, "steps": steps}
    figures |= {**series.summary(), "plot": str(plot)}
    if len(series.truth.time):
        strip = Strip(f"{robot.name}, {options.method}", series.truth, series.footprints)
        times = np.linspace(0.0, float(series.truth.time[-1]), FRAMES).tolist()
        shape = robot_shape(model, robot.urdf)
        draw_film(model, shape, [strip], times, film)
        figures["film"] = str(film)
    text = json.dumps(figures)
    (options.out / f"{name}.json").write_text(text + "\n")
    print(text)
    check(figures, options)


def launch_command(robot: RobotFiles, options: argparse.Namespace) -> list[str]:
    """Return the command that starts the launch file."""
    arguments = {
        "urdf": robot.urdf,
        "config": robot.config,
        "rviz": "false",
        "sesc": "false",
        "use_sim_time": "true",
        "real_time_factor": options.speed,
        "walk": "true",
        "steps": options.steps,
        "step_time": options.step_time,
        "method": options.method,
    }
    words = [f"{name}:={value}" for name, value in arguments.items()]
    file = "itu_biped.launch.xml" if robot.name == PAPER else "walk.launch.xml"
    return launch_words(file, words)


def run(
    robot: RobotFiles, model: RobotModel, options: argparse.Namespace
) -> tuple[WalkSeries, int]:
    """Start the launch file, record the walk, stop; what arrived, and the steps that were made.

    Raises:
        RunError: no data came, or it stopped coming, or the robot does not walk.
    """
    print(
        f"{robot.name}: {model.mass:.2f} kg walk at {options.speed:g} times real time; "
        f"ROS_DOMAIN_ID {own_domain()}, log {options.out / 'launch.log'}",
        flush=True,
    )
    seconds = (options.steps * (options.step_time + 0.4) + STANDING) / options.speed
    times = Times(seconds, settle=0.0, silence=5.0 / min(options.speed, 1.0))
    with launched(launch_command(robot, options), options.out / "launch.log") as launch:
        monitor = WalkMonitor(model)
        view = LiveView(robot.name, seconds, Console(), walk_rows)
        record_until(monitor, launch, times, view, lambda: monitor.ended)
        if monitor.refusal:
            raise RunError(f"the walk was refused: {monitor.refusal}")
        return monitor.recording.series(), monitor.completed


def check(figures: dict, options: argparse.Namespace) -> None:
    """Raise RunError if the robot fell, or did not make its steps."""
    if figures["fell"]:
        raise RunError("the robot fell")
    if figures["steps"] != options.steps:
        raise RunError(f"the robot made {figures['steps']} of {options.steps} steps: see its log")
    if figures["com_error_mean_m"] is None:
        raise RunError("no truth arrived")


if __name__ == "__main__":
    sys.exit(main())
