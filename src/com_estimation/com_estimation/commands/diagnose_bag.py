"""Names what is wrong with a moving humanoid, from a recording of its joints, IMU and feet."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from com_bags import (
    Bag,
    DecodedBlock,
    LogFormat,
    SensorBlock,
    SensorReader,
    TopicRequest,
    add_log_options,
    find_topics,
)
from com_bags.streams import NS_PER_S, Times
from com_bags.unit_checks import check_forces, check_positions
from com_estimation.humanoid.estimator import HumanoidEstimator
from com_estimation.humanoid.story import Sample, Story, follow, story_page
from com_model import ComModelError, RobotConfig, RobotModel, load_robot
from com_model.arrays import Array
from com_model.commands import add_robot, command_parser, reports_errors
from com_model.dynamics.link_frames import LinkFrames
from com_model.exceptions import ConfigError
from com_model.files import write_file
from com_model.robot_config import ground_wrenches


@reports_errors("diagnose_bag: error", 2, ComModelError, OSError)
def main(words: Sequence[str] | None = None) -> int:
    """Runs the command line: diagnoses a recording and prints the report.

    Args:
        words: command-line arguments without the program's name; None: those of the process.

    Returns:
        Exit status: 0 on success, 2 when the bag, the robot or the page cannot be read or
        written.
    """
    parser = command_parser("diagnose_bag", __doc__, __file__)
    add = parser.add_argument
    add(
        "bag",
        metavar="BAG",
        help="directory of a rosbag2 recording, or its .mcap or .db3 file; others with --mapping",
    )
    add_robot(parser)
    add_log_options(parser)
    add("--output", type=Path, metavar="HTML", help="page to write; default: none")
    add("--force", action="store_true", help="overwrite an existing page")
    add("--joint-states", default="", metavar="TOPIC", help="default: joint_states")
    add("--imu", default="", metavar="TOPIC", help="default: imu")
    text = (
        "topic of a foot's sensor, once for each foot; default: from the configuration"
    )
    add("--wrench", action="append", default=[], metavar="FOOT=TOPIC", help=text)
    options = parser.parse_args(words)
    if not all("=" in each for each in options.wrench):
        parser.error("--wrench: give FOOT=TOPIC")
    model, config = load_robot(options.robot, options.config)
    wrenches = dict(each.split("=", 1) for each in options.wrench)
    request = TopicRequest(options.joint_states, options.imu, wrenches)
    about = LogFormat.of(model, config.feet, options)
    story, notes = diagnose(options.bag, model, config, request, about)
    print(story.sentence)
    print("\n".join(f"{time:8.2f} s  {text}" for time, text in story.lines))
    print(*(f"note: {note}\n" for note in notes), sep="", end="")
    if options.output is not None:
        subject = f"{config.name} in the recording {Path(options.bag).name}"
        page = story_page(story, f"What is wrong with {subject}", notes)
        print(f"wrote {write_file(options.output, page, options.force)}")
    return 0


def diagnose(
    path: str | Path,
    model: RobotModel,
    config: RobotConfig,
    request: TopicRequest,
    log_format: LogFormat | None = None,
) -> tuple[Story, list[str]]:
    """Runs the humanoid estimator over a bag.

    Args:
        path: folder or file of the bag.
        model: the robot.
        config: its feet with their force sensors, and its IMU.
        request: topics that the user has named; others are found by type.
        log_format: what its messages or columns mean; None: as the robot's names say.

    Returns:
        The report on the recording, and warnings about the recording itself.

    Raises:
        BagError: the bag cannot be read, or lacks a topic.
        ConfigError: the configuration lacks feet, or the rate of the joint states is too low.
        UnitError: positions are in degrees, or forces in another unit or of the opposite sign.
    """
    about = LogFormat.of(model, config.feet) if log_format is None else log_format
    slowest = 95.0  # Hz
    with Bag(path, about) as bag:
        topics = find_topics(bag.topics(), config.feet, request, True, str(path))
        imu = config.imu_link or model.root_link
        reader = SensorReader(bag, model, config.feet, topics, imu)
        blocks = reader.blocks()
        first = next(blocks)
        steps = np.diff(np.unique(first.joint_times))
        rate = NS_PER_S / float(np.median(steps)) if len(steps) else 0.0
        if rate < slowest:
            problem = f"{topics.joint_states} has {rate:.0f} Hz, expected {slowest:g} Hz or more"
            raise ConfigError(
                f"{problem}: record at the rate of the drivers", str(path)
            )
        _check_units(first, model, config)
        estimator = HumanoidEstimator(model, config, rate)
        link = LinkFrames(model, [imu])
        story = follow(
            estimator, samples(chain([first], blocks), config, link, 1.0 / rate)
        )
        return story, reader.warnings()


def _check_units(block: SensorBlock, model: RobotModel, config: RobotConfig) -> None:
    """Refuses, by a UnitError, degrees, and forces in another unit or of the opposite sign."""
    check_positions(block.Q, model)
    turns = np.empty((0, 3)) if block.up is None else block.up[1]
    seen = [W[np.isfinite(W).all(axis=1)] for _, W in block.wrenches]
    known, turns = (v[np.isfinite(v).all(axis=1)] for v in (block.Q, turns))
    if len(known) and len(turns) and all(map(len, seen)):
        wrenches = ground_wrenches(
            np.array([W.mean(axis=0) for W in seen])[None], config.feet
        )[0]
        up, q = turns.mean(axis=0), np.median(known, axis=0)
        check_forces(config.attach(model), config.feet, q, wrenches, up)


def samples(
    blocks: Iterable[SensorBlock], config: RobotConfig, imu: LinkFrames, period: float
) -> Iterator[Sample]:
    """Pairs each joint state with the mean orientation and the mean wrenches around its time.

    Args:
        blocks: of the recording, in the order of time.
        config: the feet.
        imu: the IMU's link.
        period: s, of the joint states; readings within half of it (or half of their own period,
            if longer) are averaged.

    Yields:
        Time s, joint positions (n,) rad or m, R_world_root (3, 3) and the ground's wrenches on
        the feet (f, 6) in N and N m, in the axes and about the origins of the sensors. NaN where
        no reading is near.
    """
    near, last = deque[SensorBlock](maxlen=3), 0
    for block in chain(blocks, [None]):
        middle = near[-1] if near else None
        near.extend([block] if block is not None else [])
        if middle is None:
            continue
        turns = [
            _orientations(b.imu) for b in near if b.imu is not None and b.imu.batches
        ]
        R_imu = _means(turns, middle.joint_times, period).reshape(-1, 3, 3)
        feet = [
            _means([b.wrenches[f] for b in near], middle.joint_times, period)
            for f in range(len(config.feet))
        ]
        wrenches = ground_wrenches(np.stack(feet, axis=1), config.feet)
        for k, time in enumerate(middle.joint_times.tolist()):
            if time > last:
                last, q = time, middle.Q[k]
                yield time / NS_PER_S, q, R_imu[k] @ imu.poses(q)[0][0].T, wrenches[k]


def _orientations(imu: DecodedBlock) -> tuple[Times, Array]:
    """Times and orientations of the messages of a block.

    Returns:
        Times (N,) ns, and R_world_imu (N, 9) row by row; NaN where the quaternion is not a unit
        quaternion or the covariance marks the orientation as unknown (-1).
    """
    x = imu.values("orientation")
    # largest error of a quaternion's norm
    known = np.abs(np.linalg.norm(x, axis=1) - 1.0) < 1e-3
    known &= imu.values("orientation_covariance")[:, 0] != -1.0
    found = np.full((len(x), 9), np.nan)
    found[known] = Rotation.from_quat(x[known]).as_matrix().reshape(-1, 9)
    return imu.times[imu.readable], found


def _means(parts: Sequence[tuple[Times, Array]], at: Times, period: float) -> Array:
    """Means of the readings around given times.

    Readings within half the sample period, or half their own period if that is longer, count,
    but none farther away than 20 ms.

    Args:
        parts: times (N,) ns and values (N, c) of consecutive blocks; rows with NaN are left out.
        at: (M,) ns, times to average around.
        period: s, of the samples at these times.

    Returns:
        (M, c) means; NaN where no reading is near.
    """
    empty = np.empty(0, dtype=np.int64), np.empty((0, 9))
    times, values = (
        np.concatenate(part) for part in zip(*(parts or [empty]), strict=True)
    )
    known = np.isfinite(values).all(axis=1)
    order = np.argsort(times[known], kind="stable")
    times, values = times[known][order], values[known][order]
    own = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    half = min(0.5 * max(period * NS_PER_S, own), 0.02 * NS_PER_S) + 1.0
    begin, end = (
        np.searchsorted(times, at - half),
        np.searchsorted(times, at + half, "right"),
    )
    sums = np.vstack((np.zeros(values.shape[1]), np.cumsum(values, axis=0)))
    with np.errstate(invalid="ignore"):
        return np.asarray((sums[end] - sums[begin]) / (end - begin)[:, None])


if __name__ == "__main__":
    sys.exit(main())
