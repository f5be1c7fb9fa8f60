"""Command line: motion files between pulses, radians and recordings."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from com_control.commands.check_motion import run_with_layout
from com_control.exceptions import MotionError
from com_control.motion.files import (
    STORAGES,
    UNITS,
    read_bag,
    read_motion,
    write_bag,
    write_motion,
)
from com_control.motion.limits import check_motion
from com_control.motion.motion import MotionLayout
from com_model import ComModelError
from com_model.commands import command_parser, reports_errors

_SUFFIX = ".csv"


@reports_errors("convert_motion", 2, ComModelError)
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line: converts a motion file or recording, and checks it.

    Args:
        argv: command-line arguments without the program's name; None: those of the process.

    Returns:
        Exit status: 0 on success, 2 where an input cannot be used.
    """
    parser = command_parser(
        "convert_motion",
        "Converts motion files between pulses, radians and rosbag2 recordings.",
        __file__,
    )
    parser.add_argument("source", help="a motion file (.csv) or a recording")
    parser.add_argument("target", help="the file to write; must not exist")
    parser.add_argument(
        "--from", dest="unit", choices=UNITS, default=UNITS[0], help="its unit"
    )
    parser.add_argument("--to", choices=UNITS, default=UNITS[0], help="unit of target")
    parser.add_argument("--topic", default="", help="topic of the recording")
    parser.add_argument(
        "--period", type=float, default=0.002, help="s between rows of a recording"
    )
    parser.add_argument(
        "--storage", choices=tuple(STORAGES), default="mcap", help="bag format"
    )
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
            raise MotionError(
                f"--period {arguments.period:g}: give more than 0, up to 1 s"
            )
        motion, notes = read_bag(source, layout, arguments.period, arguments.topic)
    if target.suffix == _SUFFIX:
        write_motion(target, motion, layout, arguments.to)
    else:
        write_bag(target, motion, arguments.storage)
    print("\n".join([*notes, check_motion(layout, motion).text()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
