"""Estimates mass and CoM of a quadruped's trunk from a recording of its trot, as the node does."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from com_bags import (
    Bag,
    BagError,
    LogFormat,
    SensorReader,
    TopicRequest,
    add_log_options,
    check_units,
    even_times,
    find_topics,
    in_bursts,
    read_walk,
    spread_bursts,
)
from com_bags.channels import IMU
from com_estimation.trunk.floating_base import (
    FloatingBaseEstimator,
    FloatingBaseOptions,
)
from com_estimation.trunk.ground_reaction import INVERSE_DYNAMICS, ForceMeter
from com_estimation.trunk.interface import Sample, TrunkEstimate
from com_estimation.trunk.pipeline import SETTLING, InputChecks, TrunkPipeline
from com_model import ComModelError, RobotConfig, RobotModel, load_robot, quadruped_legs
from com_model.arrays import Array
from com_model.commands import add_robot, command_parser, reports_errors
from com_model.files import write_file
from com_model.geometry.rotations import minimal_rotation
from com_model.html import Raw, element, number, plus_minus, report, svg, table
from com_model.parameters import check_options
from com_model.plotting import BLUE, INK, new_figure, style_axes
from com_model.status import TRUSTED
from com_model.strict_yaml import Section, read_yaml
from com_model.text import columns
from com_model.urdf.editing import correct_body, edit_inertials

NAMES = ("x (mm)", "y (mm)", "z (mm)", "mass (kg)")


def estimates(
    path: str,
    model: RobotModel,
    config: RobotConfig,
    log_format: LogFormat | None = None,
    even: bool = False,
    part: tuple[float | None, float | None] = (None, None),
    settings: FloatingBaseOptions | None = None,
) -> list[TrunkEstimate]:
    """Runs the floating-base estimator over a recording.

    Where samples arrive in bursts, they count as evenly spaced.

    Args:
        path: folder or file of the bag, or a table.
        model: the robot.
        config: its four legs, IMU and servos.
        log_format: what its messages or columns mean; None: as the robot's names say.
        even: its times are those of receipt, of a sender of constant rate; see even_times.
        part: s from the first sample, where the part that is used begins and ends; None: all.
        settings: of the estimator; None: its defaults.

    Returns:
        The estimates in the order of time, at least one; where a robot ends off its feet, up to
        SETTLING before that.

    Raises:
        BagError: the bag cannot be read, or lacks joint states with efforts or an IMU.
        ConfigError: the robot is no quadruped, or its IMU is not on the trunk.
        UnitError: readings are in another unit, like degrees or amperes.
    """
    legs, bodies = quadruped_legs(model, config), model.bodies
    estimator = FloatingBaseEstimator(model, config, settings or FloatingBaseOptions())
    meter = ForceMeter(model, config, legs, INVERSE_DYNAMICS)
    pipeline = TrunkPipeline(
        estimator, InputChecks(model, legs), meter, float(bodies.mass[0])
    )
    link = config.imu_link or model.root_link
    about = LogFormat.of(model, config.feet) if log_format is None else log_format
    with Bag(path, about) as bag:
        if not any(topic.type_name == IMU for topic in bag.topics()):
            raise BagError(
                "it has no IMU, without which the trunk's CoM is not observable: record one; "
                "identify --use walk finds the robot's mass of what there is",
                path,
            )
        topics = find_topics(bag.topics(), (), TopicRequest(), True, path)
        reader = SensorReader(bag, model, (), topics, link)
        log = read_walk(reader).between(*part)
        print(*(f"note: {note}\n" for note in reader.warnings()), sep="", end="")
    check_units(log, config.attach(model), config.feet, link)
    R_imu_root = bodies.R_body_link[model.link_index(link)].T
    unknown, level, found = np.full(model.n_joints, np.nan), np.full((3, 3), np.nan), []
    if in_bursts(log.time) and not even:
        print("note: samples arrive in bursts: they count as evenly spaced")
    times, last = even_times(log.time) if even else spread_bursts(log.time), 0
    for k, time in enumerate(times.tolist()):
        if log.up is not None:
            level = minimal_rotation(R_imu_root @ log.up[k], np.array([0.0, 0.0, 1.0]))
        turning = log.angular_velocity[k], log.specific_force[k], level
        sample = Sample(time, log.position[k], log.effort[k], unknown, *turning)
        held = pipeline.held
        found += [estimate] if (estimate := pipeline.update(sample)) is not None else []
        last = len(found) if pipeline.held == held else last
    if not found:
        raise BagError("no joint states with readings of the IMU near them", path)
    if pipeline.held:
        share = pipeline.held / pipeline.seen
        print(
            f"note: {100.0 * share:.0f} % of the samples were left out: {found[-1].reason}"
        )
    end = found[last].time - SETTLING if last < len(found) else np.inf
    return [each for each in found if each.time < end] or found


def read_settings(path: str) -> FloatingBaseOptions:
    """Reads the estimator's settings from a parameters file of the node trunk_estimator.

    Its other parameters say nothing about recordings, and are not read.

    Args:
        path: of the file: `/**` or the node's name, ros__parameters, floating_base.

    Raises:
        ConfigError: it has no such parameters, or wrong ones.
    """
    top = Section(read_yaml(path), path)
    nodes = [
        top.section(name)
        for name in top.entries()
        if name.endswith(("/**", "trunk_estimator"))
    ]
    if not nodes:
        raise top.error("expected the node's name, trunk_estimator or /**")
    found = nodes[-1].section("ros__parameters")
    if dotted := [
        name for name in found.entries() if name.startswith("floating_base.")
    ]:
        raise found.error("write it as a section floating_base", dotted[0])
    options = found.section("floating_base").options(FloatingBaseOptions())
    check_options(options, found.error, "floating_base.")
    check_options(options.priors, found.error, "floating_base.priors.")
    return options


def _values(estimate: TrunkEstimate) -> tuple[Array, Array]:
    """CoM in mm and mass in kg, and their standard deviations (4,)."""
    std = np.sqrt(np.diag(estimate.covariance))
    return np.append(1e3 * estimate.com, estimate.mass), np.append(
        1e3 * std, estimate.mass_std
    )


def _figure(found: Sequence[TrunkEstimate], urdf: Array) -> Figure:
    """CoM and mass over time with three standard deviations; the URDF's dashed."""
    time, figure = (
        [e.time for e in found],
        new_figure(
            (9.0, 8.0),
            "CoM and mass of the trunk over time, with 3 σ; dashed: the URDF",
        ),
    )
    values, std = np.array([_values(e) for e in found]).transpose(1, 2, 0)
    for k, axes in enumerate(figure.subplots(4, sharex=True)):
        style_axes(axes)
        y, band = values[k], 3.0 * std[k]
        axes.fill_between(time, y - band, y + band, color=BLUE, alpha=0.2, lw=0)
        axes.plot(time, y, color=BLUE, lw=1.0)
        axes.axhline(urdf[k], color=INK, ls="--", lw=0.8)
        axes.set_ylabel(NAMES[k])
        if np.isfinite(reach := 2.0 * band[-1] + 1.2 * abs(values[k, -1] - urdf[k])):
            axes.set_ylim(values[k, -1] - reach, values[k, -1] + reach)
    axes.set_xlabel("time (s)")
    return figure


def _page(
    model: RobotModel,
    found: Sequence[TrunkEstimate],
    urdf: Array,
    notes: Sequence[str],
    rows: Raw,
) -> str:
    values, std = _values(found[-1])
    then = "Trot longer, turn, vary the speed: docs/tutorial_trunk.md#what-is-observable-when"
    if good := found[-1].status in TRUSTED:
        then = (
            "How to use the corrected URDF: docs/tutorial_trunk.md#6-use-the-result. Check it, in "
            "the folder of this page: `ros2 run com_model audit corrected.urdf`"
        )
    return report(
        f"CoM and mass of the trunk of {model.name}, estimated from its trot",
        f"{notes[0]} of recording: the trunk weighs {plus_minus(values[3], std[3])} kg, and its "
        f"CoM is {number(float(np.linalg.norm(values[:2] - urdf[:2])), 1)} mm from where the URDF "
        "has it, horizontally.",
        svg(_figure(found, urdf)),
        rows,
        element("p", f"In the frame of {model.root_link}, ± one standard deviation."),
        *(element("p", note) for note in notes[1:]),
        then=[then],
        failed=not good,
    )


@reports_errors("trunk_bag", 2, ComModelError, OSError)
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line: estimates the trunk, prints the result, writes it on request.

    Args:
        argv: command-line arguments without the program's name; None: those of the process.

    Returns:
        Exit status: 0 when the last estimate is USABLE or CONVERGED, 1 when it is not, 2 for an
        error of the input or the output.
    """
    parser = command_parser("trunk_bag", __doc__, __file__)
    parser.add_argument(
        "bag",
        help="a recording with joint_states (effort) and imu, a Unitree robot's /lowstate, or "
        "anything else with --mapping",
    )
    add_robot(parser)
    add_log_options(parser)
    text = "even: the log's times are those of receipt, jittered; its rate is constant"
    parser.add_argument(
        "--time", choices=("stamps", "even"), default="stamps", help=text
    )
    text = "s from the first joint state, where the part that is used "
    parser.add_argument(
        "--from", dest="since", type=float, metavar="S", help=f"{text}begins"
    )
    parser.add_argument(
        "--to", dest="until", type=float, metavar="S", help=f"{text}ends"
    )
    text = "a parameters file of trunk_estimator, whose floating_base is used"
    parser.add_argument("--settings", metavar="YAML", help=text)
    parser.add_argument("--output", type=Path, help="folder for page and URDF")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    options = parser.parse_args(argv)
    model, config = load_robot(options.robot, options.config)
    about = LogFormat.of(model, config.feet, options)
    even = options.time == "even"
    part = options.since, options.until
    settings = None if options.settings is None else read_settings(options.settings)
    found = estimates(options.bag, model, config, about, even, part, settings)
    last, mass = found[-1], model.bodies.mass[0]
    urdf = np.append(1e3 * model.bodies.first_moment[0] / mass, mass)
    rows = list(
        zip(NAMES, map(plus_minus, *_values(last)), map(number, urdf), strict=True)
    )
    notes = [
        f"{last.status.name} after {last.time:.1f} s",
        last.reason,
        last.limited_by,
    ]
    notes, head = [n for n in notes if n], ("", "estimate", "URDF")
    print("\n".join([columns(head, rows), *notes]))
    if options.output is not None:
        text = _page(model, found, urdf, notes, table(head, rows))
        files = {"trunk.html": text}
        if last.status in TRUSTED:
            change = correct_body(model, last.mass, last.com)
            files["corrected.urdf"] = edit_inertials(model.xml, change)
        options.output.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            print(f"wrote {write_file(options.output / name, text, options.force)}")
    return 0 if last.status in TRUSTED else 1


if __name__ == "__main__":
    sys.exit(main())
