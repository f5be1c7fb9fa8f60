"""Shows the trot: a quadruped trots in simulation, and a load drops on a corner of its trunk.

Starts the launch file that ships, nodes as processes of their own; shows live what arrives; ends
automatically; writes a plot of the estimate against the truth, and prints the figures of the run as
JSON on its last line, which goes to a file, too. The sensors err as real ones do; the trunk's CoM
is not where the URDF says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from com_demos import demonstration
from com_demos.nodes.trot_monitor import TrotMonitor
from com_demos.session import Times
from com_demos.trot_plot import trunk_figure
from com_model.legs import quadruped_legs
from com_model.model import RobotModel
from com_model.plotting import save_png
from com_model.robot_config import RobotConfig
from com_model.robots import RobotFiles
from com_simulation.exceptions import RunError

DROP_AT = 5.0  # s of trotting, or a little later
OFFSET = (-0.024, 0.08)  # of the trunk's CoM, over the distances of the hips along x and y
MARGIN = 0.1  # s, recorded beyond the end, so that nothing of it is missing
LOAD = 1.0 / 15.0  # of the trunk's mass: 20 kg for 300
STANDING = 2.0  # s, at most, before the robot trots
MAX_ERROR = 0.01  # of the distance of the hips along x


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code, see run_demo()."""
    return demonstration.run_demo(show, command_line().read(words))


def command_line() -> demonstration.DemoParser:
    """Options of the demo."""
    parser = demonstration.DemoParser(
        "demo_trot", str(__doc__), "scalf2", "scalf2, anymal", speed=0.5
    )
    why = ", the load drops at 5"
    parser.add_number("--seconds", 15.0, (6, 3600), "of trotting, simulated", why)
    parser.add_argument("--feedback", action="store_true", help="the gait uses the estimate")
    return parser


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot, config_file = demonstration.find_configured_robot(options, "side and end of its feet")
    model, config = RobotModel.from_file(robot.urdf), RobotConfig.from_file(config_file)
    hips = np.array([leg.hip for leg in quadruped_legs(model, config)])
    load = LOAD * float(model.bodies.mass[0])
    options.output.mkdir(parents=True, exist_ok=True)
    link = model.link_index(config.imu_link or model.root_link)
    monitor = demonstration.listen(
        launch_command(robot, hips, load, options),
        lambda: TrotMonitor(model.bodies.R_body_link[link].T),
        Times(options.seconds + MARGIN),
        robot.name,
        f"{robot.name}: {model.mass:.2f} kg trot at {options.speed:g} times real time",
        options.output,
    )
    series = monitor.recording.series(until=options.seconds)
    name = f"{robot.name}_trot" + ("_feedback" if options.feedback else "")
    plot = options.output / f"{name}.png"
    title = f"{robot.name}: CoM and mass of the trunk, {load:.3g} kg dropped on a corner"
    save_png(trunk_figure(series, title), plot)
    figures = {"robot": robot.name, "feedback": options.feedback, "payload_kg": round(load, 3)}
    figures |= {**series.summary(), "plot": str(plot)}
    demonstration.write_figures(figures, options.output / f"{name}.json")
    check(figures, float(np.ptp(hips[:, 0])))


def launch_command(
    robot: RobotFiles, hips: np.ndarray, load: float, options: argparse.Namespace
) -> list[str]:
    """Return the command that starts the launch file.

    Args:
        robot: that trots.
        hips: (4, 3) m, in the root link's frame; the load drops on the first one.
        load: kg.
        options: of the command line.
    """
    arguments: dict[str, object] = {
        "urdf": robot.urdf,
        "config": robot.config,
        "rviz": "false",
        "sesc": "false",
        "noise": "trot",
        "feedback": str(options.feedback).lower(),
        "payload_mass": load,
        "payload_time": STANDING + DROP_AT,
    }
    nodes = ("trot_gait", "trunk_estimator", "trot_monitor")
    arguments |= demonstration.lockstep_arguments(options.speed, *nodes)
    offset = np.array(OFFSET) * np.ptp(hips[:, :2], axis=0)
    arguments |= {f"offset_{axis}": value for axis, value in zip("xy", offset, strict=True)}
    arguments |= {f"payload_{axis}": value for axis, value in zip("xyz", hips[0], strict=True)}
    return demonstration.launch_words("trot.launch.xml", arguments)


def check(figures: dict, length: float) -> None:
    """Raise RunError if the CoM was not found, or not where it is; length (m) between the hips."""
    errors = [figures["error_x_mm"], figures["error_y_mm"]]
    if None in errors:
        raise RunError("the estimate had not converged at the end, or no truth arrived")
    limit = 1000.0 * MAX_ERROR * length
    if max(errors) > limit:
        raise RunError(f"the CoM is {max(errors):.3g} mm off the truth, {limit:.3g} allowed")


if __name__ == "__main__":
    sys.exit(main())
