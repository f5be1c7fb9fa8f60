"""Shows the walk: a robot on two legs walks in simulation, with its CoM where it is to be.

It writes a plot of CoM and ZMP against the plan, and a film strip.
"""

import argparse
import sys
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from com_demos import demonstration
from com_demos.demonstration import Times
from com_demos.nodes.walk_monitor import WalkMonitor, WalkSeries
from com_model import RobotFiles, RobotModel, plotting
from com_model.plotting import save_png
from com_simulation.drawing.pictures import FilmRow, draw_film
from com_simulation.drawing.shapes import robot_shape
from com_simulation.exceptions import RunError

SIZE = (9.6, 9.2)  # inches
MEANT, TRUE, ZMP = plotting.GREEN, plotting.RED, plotting.BLUE


def walk_figure(series: WalkSeries, title: str) -> Figure:
    """Return the figure of a walk."""
    figure = plotting.new_figure(SIZE, title)
    ground, *over_time = figure.subplots(4, 1, height_ratios=(1.5, 1.0, 1.0, 0.8))
    _ground_axes(ground, series)
    for k, name in enumerate(("x (m)", "y (m)")):
        _along_axes(over_time[k], series, k, name)
    _error_axes(over_time[2], series)
    for axes in (ground, *over_time):
        plotting.style_axes(axes)
    for axes in over_time:
        axes.sharex(over_time[0])
        axes.axvline(0.0, color=plotting.FAINT, lw=1.0, ls=":")
    first = series.time[np.isfinite(series.time)].min(initial=0.0)
    over_time[0].set_xlim(max(float(first), -2.0), None)
    over_time[2].set_xlabel("time of the walk (s)", color=plotting.INK)
    return figure


def _ground_axes(axes: Axes, series: WalkSeries) -> None:
    prints = PolyCollection(
        list(series.footprints[:, :, :2]), facecolors="#f1f3f5", edgecolors=plotting.RULE, lw=1.2
    )
    axes.add_collection(prints)
    axes.plot(*series.zmp[:, :2].T, color=ZMP, lw=0.8, alpha=0.7, label="ZMP, measured")
    dashed: dict[str, Any] = {"color": plotting.INK, "lw": 0.8, "ls": (0, (4, 3))}
    axes.plot(*series.zmp_reference[:, :2].T, label="ZMP, meant", **dashed)
    axes.plot(*series.com_reference[:, :2].T, color=MEANT, lw=2.4, alpha=0.6, label="CoM, meant")
    axes.plot(*series.truth.com[:, :2].T, color=TRUE, lw=1.1, label="CoM, true")
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("x (m)", color=plotting.INK)
    axes.set_ylabel("y (m)", color=plotting.INK)
    plotting.add_legend(axes, 4)


def _along_axes(axes: Axes, series: WalkSeries, k: int, name: str) -> None:
    axes.plot(series.time, series.zmp[:, k], color=ZMP, lw=0.8, alpha=0.7)
    axes.plot(series.time, series.zmp_reference[:, k], color=plotting.INK, lw=0.8, ls=(0, (4, 3)))
    axes.plot(series.time, series.com_reference[:, k], color=MEANT, lw=2.4, alpha=0.6)
    axes.plot(series.truth.time, series.truth.com[:, k], color=TRUE, lw=1.1)
    axes.set_ylabel(name, color=plotting.INK)


def _error_axes(axes: Axes, series: WalkSeries) -> None:
    axes.set_ylabel("CoM off (mm)", color=plotting.INK)
    figures = series.summary()
    mean, most = figures["com_error_mean_m"], figures["com_error_max_m"]
    if mean is None or most is None:
        plotting.center_text(axes, "no truth arrived")
        return
    axes.plot(series.truth.time, 1000 * series.error, color=plotting.RED, lw=1.1)
    axes.set_ylim(0.0, None)
    plotting.corner_text(axes, f"mean {1000 * mean:.1f} mm, largest {1000 * most:.1f} mm")


PAPER = "itu_biped"  # has a launch file of its own
STANDING = 8.0  # s, at most, before and after the steps
FRAMES = 10


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
    seconds = options.steps * (options.step_time + 0.4) + STANDING
    monitor = demonstration.listen(
        launch_command(robot, options),
        lambda: WalkMonitor(model),
        Times(seconds),
        robot.name,
        f"{robot.name}: {model.mass:.2f} kg walk at {options.speed:g} times real time",
        options,
        ended=lambda monitor: monitor.ended,
    )
    if monitor.refusal:
        raise RunError(f"the walk was refused: {monitor.refusal}")
    series, steps = monitor.recording.series(), monitor.completed
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
    verdict = (
        "The robot walked {steps} steps; its true CoM was {com_error_mean_m} m off the plan in the "
        "mean, {com_error_max_m} m at most."
    )
    then = (
        "docs/tutorial_walking.md leads from your own humanoid's URDF to its walk, "
        "docs/stabiliser.md to feedback against soft ground and wrong encoder zeros."
    )
    path = options.output / f"{name}.json"
    demonstration.finish(figures, path, lambda: check(figures, options), verdict, then)


def launch_command(robot: RobotFiles, options: argparse.Namespace) -> list[str]:
    """Return the command that starts the launch file."""
    file = "itu_biped.launch.xml" if robot.name == PAPER else "walk.launch.xml"
    walk = {"steps": options.steps, "step_time": options.step_time, "method": options.method}
    walk |= demonstration.lockstep_arguments(options.speed, "ccgd_gait", "walk_monitor")
    return demonstration.launch_words(file, robot, sesc="false", walk="true", **walk)


def check(figures: dict, options: argparse.Namespace) -> None:
    """Raise RunError if the robot fell, or did not make its steps."""
    if figures["fell"]:
        raise RunError("the robot fell")
    if figures["steps"] != options.steps:
        raise RunError(f"the robot made {figures['steps']} of {options.steps} steps: see its log")
    if figures["com_error_mean_m"] is None:
        raise RunError("no truth arrived")


main = partial(demonstration.run_demo, show, command_line)

if __name__ == "__main__":
    sys.exit(main())
