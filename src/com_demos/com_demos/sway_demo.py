"""Shows the suite at work: a robot sways in simulation, its CoM and SESC are published.

It writes a picture and a plot.
"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from com_demos.demonstration import DemoParser, Times, finish, launch_words, listen, run_demo
from com_demos.nodes.sway_monitor import Series, SwayMonitor
from com_model import ComModelError, RobotConfig, RobotFiles, RobotModel, find_robot, plotting
from com_model.plotting import save_png
from com_simulation.drawing.pictures import draw_picture
from com_simulation.drawing.scene import build_scene
from com_simulation.drawing.shapes import robot_shape
from com_simulation.exceptions import RunError

SIZE = (9.6, 7.2)  # inches
_LEAST_MM = 1e-14  # shown in place of no error at all, which a logarithm does not know


def plot_figure(series: Series, title: str) -> Figure:
    """Return the figure of a run of at least one sample."""
    figure = plotting.new_figure(SIZE, title)
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(2.2, 1, 1))
    _com_axes(top, series)
    _error_axes(middle, series)
    _margin_axes(bottom, series)
    for axes in (top, middle, bottom):
        plotting.style_axes(axes)
    bottom.set_xlabel("time (s)", color=plotting.INK)
    return figure


def _com_axes(axes: Axes, series: Series) -> None:
    """Plot x, y, z less their means, which are in the legend."""
    mean = 1000 * np.nanmean(series.com, axis=0)
    for k, name in enumerate("xyz"):
        label = plotting.minus(f"{name}, mean {mean[k]:.1f} mm")
        com, truth = (1000 * values[:, k] - mean[k] for values in (series.com, series.truth))
        thick: dict[str, Any] = {"color": plotting.AXIS_COLORS[k], "lw": 2.6, "alpha": 0.55}
        axes.plot(series.time, com, label=label, **thick)
        dashed: dict[str, Any] = {"color": plotting.INK, "lw": 0.9, "ls": (0, (5, 4))}
        axes.plot(series.time, truth, label="simulator's truth" if k == 2 else None, **dashed)
    axes.set_ylabel("CoM − mean (mm)", color=plotting.INK)
    plotting.add_legend(axes, 4, above=True)


def _error_axes(axes: Axes, series: Series) -> None:
    """Plot the distance to the truth; logarithmic, for it spans many powers of ten."""
    error = 1000 * series.error
    if not np.isfinite(error).any():
        plotting.center_text(axes, "no truth arrived")
    else:
        axes.semilogy(series.time, np.maximum(error, _LEAST_MM), color=plotting.PURPLE, lw=1)
        low = 10.0 ** np.floor(np.log10(max(np.nanmin(error), _LEAST_MM)))
        axes.set_ylim(low / 3, max(30 * np.nanmax(error), 10 * low))
        axes.yaxis.set_major_locator(LogLocator(numticks=4))
        axes.minorticks_off()
        plotting.corner_text(axes, f"largest {np.nanmax(error):.2g} mm")
    axes.set_ylabel("error (mm)", color=plotting.INK)


def _margin_axes(axes: Axes, series: Series) -> None:
    """Plot the signed distance of the projection to the support polygon's edge."""
    margin = 1000 * series.margin
    if not np.isfinite(margin).any():
        plotting.center_text(axes, "no feet known: no support polygon")
    else:
        axes.plot(series.time, margin, color=plotting.GREEN, lw=1.4)
        axes.axhspan(min(0.0, 1.1 * np.nanmin(margin)), 0.0, color=plotting.RED, alpha=0.12, lw=0)
        axes.axhline(0.0, color=plotting.RED, lw=1)
        low = min(-0.08 * np.nanmax(margin), 1.1 * np.nanmin(margin))
        axes.set_ylim(low, 1.3 * max(np.nanmax(margin), 0.1))
        plotting.corner_text(axes, f"smallest {np.nanmin(margin):.1f} mm")
    axes.set_ylabel("margin (mm)", color=plotting.INK)


MAX_ERROR_MM = 1.0


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot = find_robot(options.robot, options.config)
    model = RobotModel.from_file(robot.urdf)
    robot, config = with_fitting_config(robot, model)
    options.output.mkdir(parents=True, exist_ok=True)
    stands = "stands on its feet" if config is not None and config.feet else "hangs from its base"
    what = f"{robot.name}: {model.n_joints} joints, {model.mass:.2f} kg, {stands}"
    times, command = Times(options.seconds, settle=4.0), launch_command(robot)
    monitor = listen(command, lambda: SwayMonitor(model), times, robot.name, what, options)
    series = monitor.recording.series(until=options.seconds)
    figures = {"robot": robot.name, **series.summary()}
    figures |= write_images(robot, model, config, monitor, series, options.output)
    verdict = (
        "The CoM on the topic com is within {com_error_max_mm} mm of the simulator's truth, at "
        "{rate_hz} Hz."
    )
    then = (
        "make setup-robot URDF=robot.urdf configures your own robot, make demo ROBOT=robot.urdf "
        "shows it. make demo-identify corrects a URDF whose masses are wrong."
    )
    finish(figures, options.output / f"{robot.name}.json", lambda: check(figures), verdict, then)


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
    return launch_words(file, robot, simulation="true", sway="true")


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


main = partial(run_demo, show, command_line)

if __name__ == "__main__":
    sys.exit(main())
