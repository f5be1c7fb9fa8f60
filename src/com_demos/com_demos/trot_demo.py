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
from dataclasses import dataclass

import numpy as np

from com_demos import demonstration
from com_demos.nodes.trot_monitor import TrotMonitor
from com_demos.session import Times
from com_demos.trot_plot import trunk_figure
from com_demos.trot_recording import TrunkSeries
from com_model.legs import quadruped_legs
from com_model.model import RobotModel
from com_model.plotting import save_png
from com_model.robot_config import RobotConfig
from com_simulation.exceptions import RunError
from com_simulation.physics.robots import RobotFiles

DROP_AT = 5.0  # s of trotting, or a little later
OFFSET = (-0.024, 0.08)  # of the trunk's CoM, over the distances of the hips along x and y
MARGIN = 0.1  # s, recorded beyond the end, so that nothing of it is missing
LOAD = 1.0 / 15.0  # of the trunk's mass: 20 kg for 300
STANDING = 2.0  # s, at most, before the robot trots
MAX_ERROR = 0.01  # of the distance of the hips along x


@dataclass(frozen=True)
class Plan:
    """What is done to the robot.

    Attributes:
        offset: (2,) m, x and y of the trunk's CoM against the URDF's.
        load: kg.
        place: (3,) m, of the load in the root link's frame: the left front corner.
        length: m, between the hips along x.
        feedback: the gait uses the estimate.
        speed: simulated over wall time.
    """

    offset: np.ndarray
    load: float
    place: np.ndarray
    length: float
    feedback: bool
    speed: float


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code, see run_demo()."""
    options = command_line(words)
    return demonstration.run_demo(lambda: show(options))


def command_line(words: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = demonstration.DemoParser(
        "demo_trot", str(__doc__), "scalf2", "scalf2, anymal", speed=0.5
    )
    why = ", the load drops at 5"
    parser.add_number("--seconds", 15.0, (6, 3600), "of trotting, simulated", why)
    parser.add_argument("--feedback", action="store_true", help="the gait uses the estimate")
    return parser.read(words)


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot, config_file = demonstration.find_configured_robot(
        options.robot, "side and end of its feet"
    )
    model, config = RobotModel.from_file(robot.urdf), RobotConfig.from_file(config_file)
    plan = plan_of(model, config, options)
    options.out.mkdir(parents=True, exist_ok=True)
    name = f"{robot.name}_trot" + ("_feedback" if options.feedback else "")
    series = run(robot, model, config, plan, options)
    plot = options.out / f"{name}.png"
    title = f"{robot.name}: CoM and mass of the trunk, {plan.load:.3g} kg dropped on a corner"
    save_png(trunk_figure(series, title), plot)
    figures = {"robot": robot.name, "feedback": plan.feedback, "payload_kg": round(plan.load, 3)}
    figures |= {**series.summary(), "plot": str(plot)}
    demonstration.write_figures(figures, options.out / f"{name}.json")
    check(figures, plan)


def plan_of(model: RobotModel, config: RobotConfig, options: argparse.Namespace) -> Plan:
    """Scale what is done to the robot to its size.

    Raises:
        ConfigError: the robot is no quadruped.
    """
    legs = quadruped_legs(model, config)
    hips = np.array([leg.hip for leg in legs])
    length, width = np.ptp(hips[:, 0]), np.ptp(hips[:, 1])
    load = LOAD * float(model.bodies.mass[0])
    offset = np.array(OFFSET) * (length, width)
    return Plan(offset, load, hips[0], float(length), options.feedback, options.speed)


def launch_command(robot: RobotFiles, plan: Plan) -> list[str]:
    """Return the command that starts the launch file."""
    arguments: dict[str, object] = {
        "urdf": robot.urdf,
        "config": robot.config,
        "rviz": "false",
        "sesc": "false",
        "noise": "trot",
        "feedback": str(plan.feedback).lower(),
        "payload_mass": plan.load,
        "payload_time": STANDING + DROP_AT,
    }
    nodes = ("trot_gait", "trunk_estimator", "trot_monitor")
    arguments |= demonstration.lockstep_arguments(plan.speed, *nodes)
    arguments |= {f"offset_{axis}": value for axis, value in zip("xy", plan.offset, strict=True)}
    arguments |= {f"payload_{axis}": value for axis, value in zip("xyz", plan.place, strict=True)}
    return demonstration.launch_words("trot.launch.xml", arguments)


def run(
    robot: RobotFiles,
    model: RobotModel,
    config: RobotConfig,
    plan: Plan,
    options: argparse.Namespace,
) -> TrunkSeries:
    """Start the launch file, record, stop.

    Raises:
        RunError: no data came, or it stopped coming, or the robot does not trot.
    """
    link = config.imu_link or model.root_link
    R_imu_root = model.bodies.R_body_link[model.link_index(link)].T
    monitor = demonstration.listen(
        launch_command(robot, plan),
        lambda: TrotMonitor(R_imu_root),
        Times(options.seconds + MARGIN),
        robot.name,
        f"{robot.name}: {model.mass:.2f} kg trot at {plan.speed:g} times real time",
        options.out,
    )
    return monitor.recording.series(until=options.seconds)


def check(figures: dict, plan: Plan) -> None:
    """Raise RunError if the trunk's CoM was not found, or not where it is."""
    errors = [figures["error_x_mm"], figures["error_y_mm"]]
    if None in errors:
        raise RunError("the estimate had not converged at the end, or no truth arrived")
    limit = 1000.0 * MAX_ERROR * plan.length
    if max(errors) > limit:
        raise RunError(f"the CoM is {max(errors):.3g} mm off the truth, {limit:.3g} allowed")


if __name__ == "__main__":
    sys.exit(main())
