"""Shows why a URDF must be right: a robot falls with a wrong one, is measured, and stands.

A load that the URDF does not have hangs on the simulated robot's back. Three launches follow:
the robot balances and leans to the edge of its soles, by the CoM of the wrong URDF, and falls; it
moves through a few postures, and the suite finds what its feet carry and corrects the URDF; it
leans again, by the corrected URDF. The second launch begins while the first one still runs, and
what draws is imported while the robot leans. A robot without two feet that have soles only sways,
and its CoM is published.

Subscribes:
    com, ground_truth/com, sesc, joint_states, balance/state: see com_demos.balance_monitor.
    identification/...: see com_demos.identify_monitor.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import yaml

from com_demos import demonstration
from com_demos.balance_monitor import LEAN_TIME, BalanceMonitor, Track
from com_demos.demonstration import AheadLaunch, Times
from com_demos.exceptions import RunError
from com_demos.hidden_load import FoundLoad, HiddenLoad, find_load, flat_feet, hide_load
from com_demos.identify_monitor import LONGEST, IdentifyMonitor, corrected_urdf
from com_demos.lean_check import lean_problem
from com_identification.settings import SensorPriors
from com_model import RobotConfig, RobotFiles, RobotModel, find_robot
from com_model.files import write_file

PARTS = (
    "1 of 3: balance by the URDF",
    "2 of 3: measure in a few postures",
    "3 of 3: balance by the corrected URDF",
)
POSTURES = 3
EFFORT = {"candidates": 6, "refinements": 10}
"""Of the search for these postures: any three tell where a load hangs."""

MASS_STD = 0.3
"""Of a body's mass, relative: of a robot that may carry what its URDF does not have."""

PUBLISH_HZ = 100.0
"""Of simulated sensors: enough for the control, and a fifth of the work of the default."""

IMPROVEMENT = 4.0
"""Error before over error after, that the correction should reach at least."""


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot = find_robot(options.robot, options.config)
    model = RobotModel.from_file(robot.urdf)
    robot, config = demonstration.with_fitting_config(robot, model)
    if config is None or not flat_feet(config):
        _drawing()[1].show(options)
        return
    folder = options.output / f"{robot.name}_corrected"
    shutil.rmtree(folder, ignore_errors=True)
    model = config.attach(model)
    true, load = hide_load(model, config)
    if problem := lean_problem(model, config, load.margin, LEAN_TIME):
        raise RunError(f"{robot.name} cannot lean to the edge of its soles: {problem}")
    folder.mkdir(parents=True)
    write_file(folder / "truth.urdf", true.xml)
    print(
        f"{robot.name}: {model.mass:.2f} kg by its URDF. In the simulation a load of "
        f"{load.mass:g} kg hangs on {load.link}, which no node is told."
    )
    lean = partial(_balance, load=load, folder=folder, config=config, options=options)
    measuring = _measuring(robot, load, folder, options)
    with AheadLaunch.start(measuring, robot, folder / "launch.log") as ahead:
        before, first = lean(PARTS[0], robot, model)
        corrected, reason = _measure(ahead, robot, folder, options)
        new = config.attach(RobotModel.from_file(corrected.urdf))
        found = find_load(model, new, config)
        print(f"found: {found.text()}\n       by the feet: {reason}")
        after, second = lean(PARTS[2], corrected, new, meanwhile=_drawing)
    _report(options, robot, new, config, (before, after), (first, second), found, load)


def _drawing() -> tuple[ModuleType, ModuleType]:
    """Return the modules that draw: the figure of both runs, and the picture of the robot."""
    from com_demos import correction_plot, sway_demo  # takes a second

    return correction_plot, sway_demo


def command_line() -> demonstration.DemoParser:
    """Options of the demo."""
    parser = demonstration.DemoParser(
        "demo", str(__doc__), "hoap2", "hoap2, talos", speed=2.0
    )
    text = "how long to record a robot that only sways"
    parser.add_number("--seconds", 20.0, (1, 3600), text)
    return parser


def _balance(
    part: str,
    robot: RobotFiles,
    model: RobotModel,
    load: HiddenLoad,
    folder: Path,
    config: RobotConfig,
    options: argparse.Namespace,
    meanwhile: Callable[[], object] = lambda: None,
) -> tuple[BalanceMonitor, Track]:
    """Let the robot with the load lean by a URDF; return what was recorded.

    As soon as it balances, meanwhile is called.
    """
    nodes = ("com_balancer", "sesc_publisher", "balance_monitor")
    command = demonstration.launch_words(
        "balance.launch.xml",
        robot,
        true_urdf=(folder / "truth.urdf").resolve(),
        demonstration="reach",
        margin=f"{load.margin:.4f}",
        state_publisher="false",
        publish_rate_hz=PUBLISH_HZ,
        **demonstration.lockstep_arguments(options.speed, *nodes),
    )
    make = partial(BalanceMonitor, model, part)
    times = Times(LEAN_TIME, ready=120.0)
    what = f"{robot.name}: {part}"
    monitor = demonstration.listen(command, make, times, what, options, meanwhile)
    track = monitor.track(config)
    if not len(track.time):
        raise RunError(
            "no chain arrived on sesc together with com, joint_states and the truth"
        )
    end = f"falls after {track.fell_at:.1f} s" if monitor.fell else "stands"
    error = 1000 * float(np.median(track.error))
    print(f"{part}: its CoM is {error:.1f} mm off; {robot.name} {end}", flush=True)
    return monitor, track


def _measuring(
    robot: RobotFiles, load: HiddenLoad, folder: Path, options: argparse.Namespace
) -> list[str]:
    """Return the command that moves the robot through postures and corrects its URDF.

    Nobody need listen to it before it ends.
    """
    parameters, sensors = folder / "identification.yaml", folder / "settings.yaml"
    write_file(sensors, yaml.safe_dump({"sensors": asdict(SensorPriors.calibrated())}))
    # The true CoM is elsewhere than the proposed postures have it: they keep away from the edges.
    settings = {
        "plan": {"margin": 0.75 * load.reach, "most_tilt": 0.2, **EFFORT},
        "prior": {"mass_std_fraction": MASS_STD},
    }
    write_file(parameters, json.dumps({"/**": {"ros__parameters": settings}}))
    return demonstration.launch_words(
        "identification.launch.xml",
        robot,
        true_urdf=(folder / "truth.urdf").resolve(),
        com_error=0.0,
        identification_parameters=parameters.resolve(),
        settings=sensors.resolve(),
        storage=folder.resolve(),
        tour="true",
        automatic="true",
        tour_count=POSTURES,
        tour_batch=POSTURES,
        tour_speed=1.0,
        publish_rate_hz=PUBLISH_HZ,
        sesc="false",
        state_publisher="false",
        **demonstration.lockstep_arguments(
            2 * options.speed, "com_identification", "posture_tour"
        ),
    )


def _measure(
    ahead: AheadLaunch, robot: RobotFiles, folder: Path, options: argparse.Namespace
) -> tuple[RobotFiles, str]:
    """Wait for the measurement; return the robot by its new URDF, and why the old was wrong."""
    what, times = f"{robot.name}: {PARTS[1]}", Times(LONGEST)
    monitor = ahead.listen(IdentifyMonitor, times, what, options)
    if monitor.failure or monitor.result is None:
        raise RunError(monitor.failure or "no result arrived on identification/result")
    return replace(robot, urdf=corrected_urdf(folder)), monitor.suspicion


def _report(
    options: argparse.Namespace,
    robot: RobotFiles,
    model: RobotModel,
    config: RobotConfig,
    monitors: tuple[BalanceMonitor, BalanceMonitor],
    tracks: tuple[Track, Track],
    found: FoundLoad,
    load: HiddenLoad,
) -> None:
    """Write pictures and page; print the figures of the run."""
    before, after = tracks
    series = monitors[1].recording.series(until=LEAN_TIME)
    plot = options.output / f"{robot.name}_com.png"
    title = (
        f"{robot.name} with {load.mass:g} kg on its back leans to the edge of its soles"
    )
    correction_plot, sway_demo = _drawing()
    correction_plot.write_figure(before, after, title, plot)
    was, now = (1000 * float(np.mean(track.error)) for track in tracks)
    figures = {
        "robot": robot.name,
        **series.summary(),
        "believed_error_mm": round(was, 2),
        "corrected_error_mm": round(now, 2),
        "load_kg": load.mass,
        "found_kg": round(found.mass, 3),
        "fell_before": monitors[0].fell,
        "fell_after": monitors[1].fell,
        "corrected_urdf": str(options.output / f"{robot.name}_corrected"),
    }
    figures |= sway_demo.write_picture(
        robot, model, config, monitors[1], options.output
    )
    figures["plot"] = str(plot)

    def check() -> None:
        if monitors[1].fell:
            raise RunError("the robot fell with the corrected URDF, too")
        if was < IMPROVEMENT * now:
            raise RunError(
                f"the CoM was {was:.1f} mm off and still is {now:.1f} mm off"
            )

    end = "fell" if monitors[0].fell else "stood"
    verdict = (
        f"By its URDF {robot.name}'s CoM was {was:.1f} mm off, and it {end}; "
        f"{found.text()} were found, and by the corrected URDF the CoM is {now:.1f} mm off, and it "
        "stands."
    )
    then = (
        "Your own robot: `make setup-robot URDF=robot.urdf` writes its configuration, then "
        "`make demo ROBOT=robot.urdf` shows the same with it."
    )
    path = options.output / f"{robot.name}.json"
    title = f"{robot.name} with a load that its URDF does not have: found and corrected"
    demonstration.finish(figures, path, check, verdict, then, title)


main = partial(demonstration.run_demo, show, command_line)

if __name__ == "__main__":
    sys.exit(main())
