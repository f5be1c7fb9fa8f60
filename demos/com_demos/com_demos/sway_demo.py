"""Shows the suite at work: a robot sways in simulation, its CoM and SESC are published.

It writes a picture and a plot. sway_monitor lists the topics.
"""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from com_demos.demonstration import (
    DemoParser,
    Times,
    finish,
    launch_words,
    listen,
    lockstep_arguments,
    run_demo,
    with_fitting_config,
)
from com_demos.exceptions import RunError
from com_demos.pictures import draw_picture
from com_demos.plots import center_text, corner_text, minus
from com_demos.scene import build_scene, shape_note
from com_demos.sway_monitor import Series, SwayMonitor
from com_model import RobotConfig, RobotFiles, RobotModel, find_robot, plotting
from com_model.plotting import save_png
from com_simulation.drawing.shapes import robot_shape

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
    bottom.set_xlabel("time (s)")
    return figure


def _com_axes(axes: Axes, series: Series) -> None:
    """Plot x, y, z less their means, which are in the legend."""
    mean = 1000 * np.nanmean(series.com, axis=0)
    for k, name in enumerate("xyz"):
        label = minus(f"{name}, mean {mean[k]:.1f} mm")
        com, truth = (
            1000 * values[:, k] - mean[k] for values in (series.com, series.truth)
        )
        thick: dict[str, Any] = {
            "color": plotting.AXIS_COLORS[k],
            "lw": 2.6,
            "alpha": 0.55,
        }
        axes.plot(series.time, com, label=label, **thick)
        dashed: dict[str, Any] = {"color": plotting.INK, "lw": 0.9, "ls": (0, (5, 4))}
        axes.plot(
            series.time, truth, label="simulator's truth" if k == 2 else None, **dashed
        )
    axes.set_ylabel("CoM − mean (mm)")
    plotting.add_legend(axes, 4, above=True)


def _error_axes(axes: Axes, series: Series) -> None:
    """Plot the distance to the truth; logarithmic, for it spans many powers of ten."""
    error = 1000 * series.error
    if not np.isfinite(error).any():
        center_text(axes, "no truth arrived")
    else:
        axes.semilogy(
            series.time, np.maximum(error, _LEAST_MM), color=plotting.PURPLE, lw=1
        )
        low = 10.0 ** np.floor(np.log10(max(np.nanmin(error), _LEAST_MM)))
        axes.set_ylim(low / 3, max(30 * np.nanmax(error), 10 * low))
        axes.yaxis.set_major_locator(LogLocator(numticks=4))
        axes.minorticks_off()
        corner_text(axes, f"largest {np.nanmax(error):.2g} mm")
    axes.set_ylabel("error (mm)")


def _margin_axes(axes: Axes, series: Series) -> None:
    """Plot the signed distance of the projection to the support polygon's edge."""
    margin = 1000 * series.margin
    if not np.isfinite(margin).any():
        center_text(axes, "no feet known: no support polygon")
    else:
        axes.plot(series.time, margin, color=plotting.GREEN, lw=1.4)
        axes.axhspan(
            min(0.0, 1.1 * np.nanmin(margin)), 0.0, color=plotting.RED, alpha=0.12, lw=0
        )
        axes.axhline(0.0, color=plotting.RED, lw=1)
        low = min(-0.08 * np.nanmax(margin), 1.1 * np.nanmin(margin))
        axes.set_ylim(low, 1.3 * max(np.nanmax(margin), 0.1))
        corner_text(axes, f"smallest {np.nanmin(margin):.1f} mm")
    axes.set_ylabel("margin (mm)")


MAX_ERROR_MM = 1.0


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot = find_robot(options.robot, options.config)
    model = RobotModel.from_file(robot.urdf)
    robot, config = with_fitting_config(robot, model)
    stands = (
        "stands on its feet"
        if config is not None and config.feet
        else "hangs from its base"
    )
    what = f"{robot.name}: {model.n_joints} joints, {model.mass:.2f} kg, {stands}"
    times, command = (
        Times(options.seconds, settle=4.0),
        launch_command(robot, options.speed),
    )
    monitor = listen(command, lambda: SwayMonitor(model), times, what, options)
    series = monitor.recording.series(until=options.seconds)
    figures = {"robot": robot.name, **series.summary()}
    figures |= write_picture(robot, model, config, monitor, options.output)
    plot = options.output / f"{robot.name}_com.png"
    title = f"{robot.name}: CoM in {model.root_link}, {series.rate_hz:.0f} Hz, against the truth"
    save_png(plot_figure(series, title), plot)
    figures["plot"] = str(plot)
    verdict = (
        "The CoM on the topic com is within {com_error_max_mm} mm of the simulator's truth, at "
        "{rate_hz} Hz."
    )
    then = (
        "`make setup-robot URDF=robot.urdf` configures your own robot, "
        "`make demo ROBOT=robot.urdf` shows it. "
        "`make demo-identify` corrects a URDF whose masses are wrong."
    )
    path, title = (
        options.output / f"{robot.name}.json",
        f"The CoM of {robot.name}, live",
    )
    finish(figures, path, lambda: check(figures), verdict, then, title)


def command_line() -> DemoParser:
    """Options of the demo."""
    parser = DemoParser("demo", str(__doc__), "hoap2", "hoap2, talos", speed=1.0)
    parser.add_number("--seconds", 20.0, (1, 3600), "how long to record")
    return parser


def launch_command(robot: RobotFiles, speed: float) -> list[str]:
    """Return the command that starts the launch file; simulated over wall time is at most speed."""
    file = (
        "hoap2.launch.xml"
        if robot.name == "hoap2" and robot.config
        else "view_robot.launch.xml"
    )
    waits = lockstep_arguments(speed, "sesc_publisher", "sway_monitor")
    return launch_words(file, robot, simulation="true", sway="true", **waits)


def write_picture(
    robot: RobotFiles,
    model: RobotModel,
    config: RobotConfig | None,
    monitor: SwayMonitor,
    out: Path,
) -> dict[str, str | float]:
    """Write the picture of the last instant; return where it is, and the robot's mass."""
    if not monitor.snapshots:
        raise RunError("no chain arrived on sesc together with com and joint_states")
    shape = robot_shape(model, robot.urdf)
    if note := shape_note(shape):
        print(f"{robot.name}: {note}")
    picture = out / f"{robot.name}.png"
    feet = config.feet if config is not None else ()
    draw_picture(
        build_scene(model, shape, feet, monitor.snapshots, robot.name), picture
    )
    return {"mass_kg": round(model.mass, 6), "picture": str(picture)}


def check(figures: dict) -> None:
    """Raise RunError if the CoM was not compared with the truth, or differs from it."""
    error = figures["com_error_max_mm"]
    if error is None:
        raise RunError("no message on ground_truth/com has the stamp of one on com")
    if error > MAX_ERROR_MM:
        raise RunError(
            f"the CoM is up to {error:.3g} mm off the truth, {MAX_ERROR_MM:g} allowed"
        )


main = partial(run_demo, show, command_line)

if __name__ == "__main__":
    sys.exit(main())
