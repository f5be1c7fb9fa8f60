"""Shows the identification: a robot whose URDF is wrong visits postures, and the URDF is corrected.

Its battery is mounted elsewhere than the URDF has it, and each link's CoM is off. The sensors have
the noise of real ones; they are calibrated, and the settings of the identification say so. It
writes a picture of the errors before and after. identify_monitor lists the topics.
"""

import argparse
import shutil
import sys
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from com_demos import demonstration
from com_demos.compare_urdfs import COUNT, SEED, Comparison, compare, standing_postures
from com_demos.demonstration import Times
from com_demos.exceptions import RunError
from com_demos.hidden_load import displace_battery
from com_demos.identify_monitor import LONGEST, IdentifyMonitor, corrected_urdf
from com_identification import identify
from com_identification.regression.statics import Statics, prediction_rows
from com_identification.settings import IdentificationSettings, SensorPriors
from com_identification.store.store import PostureStore
from com_model import RobotConfig, RobotFiles, RobotModel, plotting
from com_model.arrays import Array
from com_model.files import write_file
from com_model.plotting import save_png
from com_ros.conversions import vector3_to_numpy

SIZE = (9.6, 7.2)  # inches
BEFORE, AFTER = plotting.RED, plotting.AXIS_COLORS[2]
BEST = 0.8  # of the prior's standard deviation: what is less is drawn, the rest is not observable


def identification_figure(
    comparison: Comparison, stds: Array, prior: float, title: str
) -> Figure:
    """Return the figure of an identification, by the comparison with the truth.

    stds (B, 3) m are standard deviations that it gives its bodies' CoMs, prior, m, those before.
    """
    figure = plotting.new_figure(SIZE, title)
    upper, lower = figure.subplots(2, 1, height_ratios=(1, 1.5))
    _whole(upper, comparison)
    _bodies(lower, comparison, stds, prior)
    for axes in (upper, lower):
        plotting.style_axes(axes)
        plotting.add_legend(axes, 3)
    return figure


def _whole(axes: Axes, comparison: Comparison) -> None:
    """Errors of the whole robot's CoM in postures that were not measured, the largest last."""
    percent = np.linspace(0.0, 100.0, len(comparison.before))
    for name, values, color in (
        ("URDF as believed", comparison.before, BEFORE),
        ("identified", comparison.after, AFTER),
    ):
        rms = 1000.0 * np.sqrt(np.mean(values**2))
        label = f"{name}: {rms:.2f} mm RMS"
        axes.plot(percent, 1000.0 * np.sort(values), color=color, lw=2, label=label)
    axes.set_ylim(0.0, 1300.0 * comparison.before.max())
    axes.set_xlim(0.0, 100.0)
    axes.set_xlabel("postures that were not measured, in order of the error (%)")
    axes.set_ylabel("error of the CoM (mm)")


def _bodies(axes: Axes, comparison: Comparison, stds: Array, prior: float) -> None:
    """Errors of the observable components of bodies' CoMs, with two standard deviations."""
    observable = np.argwhere(stds < BEST * prior)
    order = np.argsort([stds[body, axis] for body, axis in observable])
    observable = observable[order]
    places = np.arange(len(observable))
    before, after, spread = (
        np.array([1000.0 * values[body, axis] for body, axis in observable])
        for values in (comparison.bodies_before, comparison.bodies_after, stds)
    )
    axes.bar(
        places,
        4.0 * spread,
        bottom=-2.0 * spread,
        color="#d0ebff",
        label="two standard deviations",
    )
    axes.plot(places, before, "x", color=BEFORE, ms=5, label="URDF as believed")
    axes.plot(places, after, "o", color=AFTER, ms=4, label="identified")
    names = [f"{comparison.bodies[body]} {'xyz'[axis]}" for body, axis in observable]
    axes.set_xticks(places, names, rotation=90, fontsize=7)
    reach = 1.3 * max(np.abs(before).max(initial=1.0), np.abs(after).max(initial=1.0))
    axes.set_ylim(-reach, reach * 1.25)
    axes.set_ylabel("error of a body's CoM (mm)")


PUBLISH_HZ = 100.0
"""Of simulated sensors: enough for a robot that stands still, at half of the default's work."""

PRIOR = 0.01  # m; that of the launch file's parameters
MUST_SHRINK = 0.5  # error after over error before
COVERS = 3.0  # standard deviations, at most, of the error after


def command_line() -> demonstration.DemoParser:
    """Options of the demo."""
    parser = demonstration.DemoParser(
        "demo_identify", str(__doc__), "hoap2", "hoap2, biped3", speed=4.0
    )
    parser.add_number("--postures", 12, (1, 500), "to visit")
    parser.add_argument(
        "--error", type=float, default=0.005, help="error of the links' CoMs, m"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of these errors")
    return parser


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot, path = demonstration.find_configured_robot(
        options, "the feet and their sensors"
    )
    folder = options.output / f"{robot.name}_identification"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = RobotConfig.from_file(path)
    if not all(len(foot.corners) > 2 for foot in config.feet) or not config.feet:
        raise RunError(
            f"{robot.name} cannot be shown: postures are compared on flat soles, and its feet have "
            "no corners in its configuration"
        )
    model = config.attach(RobotModel.from_file(robot.urdf))
    true, wrong = displace_battery(model, config, options.error, options.seed)
    write_file(folder / "truth.urdf", true.xml)
    sensors = asdict(SensorPriors.calibrated())
    write_file(folder / "settings.yaml", yaml.safe_dump({"sensors": sensors}))
    print(f"{robot.name}: in the simulation {wrong}; no node is told.")
    what = f"{robot.name}: {options.postures} postures at {options.speed:g} times real time"
    command = launch_command(robot, folder, options)
    monitor = demonstration.listen(
        command, IdentifyMonitor, Times(LONGEST), what, options
    )
    if monitor.failure or monitor.result is None:
        raise RunError(monitor.failure or "no result arrived on identification/result")
    comparison = judge(robot, folder)
    plot = options.output / f"{robot.name}_identify.png"
    postures = len(monitor.result.postures)
    title = f"{robot.name}: CoM of every link, {postures} postures, before and after"
    found = {
        body.name: vector3_to_numpy(body.com_std) for body in monitor.result.bodies
    }
    stds = np.array([found[name] for name in comparison.bodies])
    save_png(identification_figure(comparison, stds, PRIOR, title), plot)
    figures = {"robot": robot.name, "captured": postures, "rank": monitor.result.rank}
    figures |= comparison.figures()
    figures["com_std_mm"] = round(1000 * prediction_std(model, config, folder), 3)
    figures |= {"corrected_urdf": str(corrected_urdf(folder)), "plot": str(plot)}
    verdict = (
        "In other postures the CoM of the whole robot was {com_rms_before_mm} mm off with the "
        "URDF, and is {com_rms_after_mm} mm off with the corrected one, whose standard deviation "
        "is {com_std_mm} mm; single bodies {body_rms_before_mm} and {body_rms_after_mm} mm."
    )
    then = (
        "docs/tutorial_identification.md leads from your robot's URDF to the corrected one, live "
        "or from a recording. Single bodies are known as far as their postures determine them."
    )

    def check() -> None:
        before, after = (figures[f"com_rms_{name}_mm"] for name in ("before", "after"))
        if after > MUST_SHRINK * before:
            raise RunError(f"the CoM was {before} mm off and still is {after} mm off")
        if after > COVERS * figures["com_std_mm"]:
            std = figures["com_std_mm"]
            raise RunError(
                f"the CoM is {after} mm off with a standard deviation of {std} mm"
            )

    path = options.output / f"{robot.name}_identify.json"
    demonstration.finish(
        figures, path, check, verdict, then, f"{robot.name}: a corrected URDF"
    )


def launch_command(
    robot: RobotFiles, folder: Path, options: argparse.Namespace
) -> list[str]:
    """Return the command that starts the launch file."""
    arguments: dict[str, object] = {
        "storage": folder.resolve(),
        "true_urdf": (folder / "truth.urdf").resolve(),
        "settings": (folder / "settings.yaml").resolve(),
        "sesc": "false",
        "state_publisher": "false",
        "tour": "true",
        "automatic": "true",
        "tour_count": options.postures,
        "tour_batch": options.postures,
        "tour_speed": 1.0,
        "publish_rate_hz": PUBLISH_HZ,
        "com_error": 0.0,
    }
    nodes = ("com_identification", "posture_tour", "identify_monitor")
    arguments |= demonstration.lockstep_arguments(options.speed, *nodes)
    return demonstration.launch_words("identification.launch.xml", robot, **arguments)


def judge(robot: RobotFiles, folder: Path) -> Comparison:
    """Compare the URDF as believed and the one that was written with the truth."""
    files = (folder / "truth.urdf", robot.urdf, corrected_urdf(folder))
    true, before, after = (RobotModel.from_file(file) for file in files)
    return compare(true, before, after, RobotConfig.from_file(str(robot.config)))


def prediction_std(model: RobotModel, config: RobotConfig, folder: Path) -> float:
    """Return the standard deviation of the identified horizontal CoM, m.

    It is the root mean square length over the postures in which judge compares, which need not be
    like those that were captured.

    Args:
        model: the robot by its URDF, with the sole frames of config attached.
        config: with the feet.
        folder: with the postures and the settings of the identification.
    """
    settings = IdentificationSettings.from_file(folder / "settings.yaml")
    settings = replace(settings, fit=replace(settings.fit, use_imu=True, folds=0))
    with PostureStore(folder / "postures.db", model, config.feet) as store:
        found = identify(model, config.feet, list(store.postures.values()), settings)
    Q, ups = standing_postures(model, config, COUNT, SEED)
    statics = Statics(model)
    rows = prediction_rows(statics, statics.poses(Q), ups, found.parameters)
    variances = np.einsum("pki,ij,pkj->p", rows, found.covariance, rows)
    return float(np.sqrt(variances.mean()))


main = partial(demonstration.run_demo, show, command_line)

if __name__ == "__main__":
    sys.exit(main())
