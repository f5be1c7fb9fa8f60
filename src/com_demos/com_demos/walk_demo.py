"""Shows the walk: a robot on two legs walks in simulation, with its CoM where it is to be.

Starts the launch file that ships, nodes as processes of their own; shows live what arrives; ends
automatically; writes a plot of CoM and ZMP against the plan and a film strip, and prints the
figures of the run as JSON on its last line, which goes to a file, too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from com_demos import demonstration
from com_demos.nodes.walk_monitor import WalkMonitor
from com_demos.session import Times
from com_demos.walk_plot import walk_figure
from com_demos.walk_recording import WalkSeries
from com_model.model import RobotModel
from com_model.plotting import save_png
from com_model.robots import RobotFiles
from com_simulation.drawing.film import FilmRow, draw_film
from com_simulation.drawing.shapes import robot_shape
from com_simulation.exceptions import RunError

PAPER = "itu_biped"  # has a launch file of its own
STANDING = 8.0  # s, at most, before and after the steps
FRAMES = 10


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code, see run_demo()."""
    return demonstration.run_demo(show, command_line().read(words))


def command_line() -> demonstration.DemoParser:
    """Options of the demo."""
    parser = demonstration.DemoParser(
        "demo_walk", str(__doc__), PAPER, "itu_biped, hoap2, talos", speed=0.5
    )
    parser.add_number("--steps", 6, (1, 100), "to make")
    parser.add_number("--step-time", 1.2, (0.1, 10), "s, of a step in the air")
    parser.add_argument("--method", default="refined", choices=("exact", "refined", "ccgd"))
    return parser


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot, _ = demonstration.find_configured_robot(options, "the side of its feet")
    model = RobotModel.from_file(robot.urdf)
    options.output.mkdir(parents=True, exist_ok=True)
    series, steps = run(robot, model, options)
    name = f"{robot.name}_walk"
    plot, film = options.output / f"{name}.png", options.output / f"{name}_film.png"
    save_png(walk_figure(series, f"{robot.name}: {steps} steps of {options.step_time:g} s"), plot)
    figures = {"robot": robot.name, "method": options.method, "steps": steps}
    figures |= {**series.summary(), "plot": str(plot)}
    if len(series.truth.time):
        row = FilmRow(f"{robot.name}, {options.method}", series.truth, series.footprints)
        times = np.linspace(0.0, float(series.truth.time[-1]), FRAMES).tolist()
        shape = robot_shape(model, robot.urdf)
        draw_film(model, shape, [row], times, film)
        figures["film"] = str(film)
    demonstration.write_figures(figures, options.output / f"{name}.json")
    check(figures, options)


def launch_command(robot: RobotFiles, options: argparse.Namespace) -> list[str]:
    """Return the command that starts the launch file."""
    arguments: dict[str, object] = {
        "urdf": robot.urdf,
        "config": robot.config,
        "rviz": "false",
        "sesc": "false",
        "walk": "true",
        "steps": options.steps,
        "step_time": options.step_time,
        "method": options.method,
    }
    arguments |= demonstration.lockstep_arguments(options.speed, "ccgd_gait", "walk_monitor")
    file = "itu_biped.launch.xml" if robot.name == PAPER else "walk.launch.xml"
    return demonstration.launch_words(file, arguments)


def run(
    robot: RobotFiles, model: RobotModel, options: argparse.Namespace
) -> tuple[WalkSeries, int]:
    """Start the launch file, record the walk, stop; what arrived, and the steps that were made.

    Raises:
        RunError: no data came, or it stopped coming, or the robot does not walk.
    """
    seconds = options.steps * (options.step_time + 0.4) + STANDING
    monitor = demonstration.listen(
        launch_command(robot, options),
        lambda: WalkMonitor(model),
        Times(seconds),
        robot.name,
        f"{robot.name}: {model.mass:.2f} kg walk at {options.speed:g} times real time",
        options.output,
        ended=lambda monitor: monitor.ended,
    )
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
