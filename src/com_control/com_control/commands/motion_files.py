"""Command lines: motion files between pulses, radians and recordings, and checked before use."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from com_control.exceptions import MotionError
from com_control.motion.bag_file import STORAGES, read_bag, write_bag
from com_control.motion.csv_file import UNITS, read_motion, write_motion
from com_control.motion.limits import check_motion
from com_control.motion.motion import MotionLayout
from com_model import ComModelError, load_robot
from com_model.commands import add_robot, command_parser

_EPILOG = """\
Files that end in .csv are motion files, all others rosbag2 recordings (folder, .mcap or .db3).
From a recording, the only topic of trajectory_msgs/JointTrajectory is read, or else that of
sensor_msgs/JointState; --topic selects another. Unusable messages are listed. A recording is
interpolated linearly at rows that are --period apart.

Examples:
  convert_motion walk.csv walk_bag --robot hoap2 --layout config/motion/hoap2.yaml
  convert_motion walk_bag walk.csv --robot ... --layout ... --to radians --period 0.002

Exit status: 0 converted, 2 a file or an argument cannot be used.
"""
_SUFFIX = ".csv"


def convert(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status, see the help."""
    parser = command_parser(
        "convert_motion",
        "Converts motion files between pulses, radians and rosbag2 recordings.",
        _EPILOG,
    )
    parser.add_argument("source", help="a motion file (.csv) or a recording")
    parser.add_argument("target", help="the file to write; must not exist")
    parser.add_argument("--from", dest="unit", choices=UNITS, default=UNITS[0], help="its unit")
    parser.add_argument("--to", choices=UNITS, default=UNITS[0], help="unit of target")
    parser.add_argument("--topic", default="", help="topic of the recording")
    parser.add_argument("--period", type=float, default=0.002, help="s between rows of a recording")
    parser.add_argument("--storage", choices=tuple(STORAGES), default="mcap", help="bag format")
    return run_with_layout(parser, argv, _convert)


def _convert(arguments: Namespace, layout: MotionLayout) -> int:
    source, target = Path(arguments.source), Path(arguments.target)
    if target.exists():
        raise MotionError(f"{target} exists already: give another path, or remove it")
    notes: list[str] = []
    if source.suffix == _SUFFIX and not source.is_dir():
        motion = read_motion(source, layout, arguments.unit)
    else:
        if not 0.0 < arguments.period <= 1.0:
            raise MotionError(f"--period {arguments.period:g}: give more than 0, up to 1 s")
        motion, notes = read_bag(source, layout, arguments.period, arguments.topic)
    if target.suffix == _SUFFIX:
        write_motion(target, motion, layout, arguments.to)
    else:
        write_bag(target, motion, arguments.storage)
    print("\n".join([*notes, check_motion(layout, motion).text()]))
    return 0


_CHECKED = """\
It lists each joint that exceeds its position, velocity or acceleration limit: the worst row, by
how much, and how many rows. A wrong sign is reported if a column would be within the joint's range
with the opposite sign.

Example:
  check_motion walk.csv --robot hoap2 --layout config/motion/hoap2.yaml

Exit status: 0 within all limits, 1 not, 2 the file or an argument cannot be used.
"""


def check(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status, see the help."""
    parser = command_parser(
        "check_motion", "Checks a motion file against the limits of a robot's joints.", _CHECKED
    )
    parser.add_argument("file", help="the motion file (csv)")
    parser.add_argument("--unit", choices=UNITS, default=UNITS[0], help="unit of the positions")
    return run_with_layout(parser, argv, _check)


def _check(arguments: Namespace, layout: MotionLayout) -> int:
    report = check_motion(layout, read_motion(arguments.file, layout, arguments.unit))
    print(report.text())
    return 0 if report.ok else 1


def run_with_layout(
    parser: ArgumentParser,
    argv: Sequence[str] | None,
    command: Callable[[Namespace, MotionLayout], int],
) -> int:
    """Adds the robot and the layout of its files, and runs; returns 2 where one cannot be used."""
    add_robot(parser)
    parser.add_argument("--layout", required=True, help="meaning of the columns (yaml)")
    arguments = parser.parse_args(argv)
    try:
        model, config = load_robot(arguments.robot, arguments.config)
        return command(arguments, MotionLayout.from_file(arguments.layout, config, model))
    except ComModelError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
