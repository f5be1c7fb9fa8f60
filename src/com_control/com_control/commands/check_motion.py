"""Command line: a motion file against the limits of a robot's joints."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence

from com_control.motion.files import UNITS, read_motion
from com_control.motion.limits import check_motion
from com_control.motion.motion import MotionLayout
from com_model import ComModelError, load_robot
from com_model.commands import add_robot, command_parser, reports_errors


@reports_errors("check_motion", 2, ComModelError)
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line: checks a motion file against the limits of a robot's joints.

    Args:
        argv: command-line arguments without the program's name; None: those of the process.

    Returns:
        Exit status: 0 if all limits are kept, 1 if not, 2 where an input cannot be used.
    """
    parser = command_parser(
        "check_motion",
        "Checks a motion file against the limits of a robot's joints.",
        __file__,
    )
    parser.add_argument("file", help="the motion file (csv)")
    parser.add_argument(
        "--unit", choices=UNITS, default=UNITS[0], help="unit of the positions"
    )
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
    """Adds the robot and the layout of its files to a command line, and runs a command.

    Args:
        parser: extended by the arguments for robot and layout.
        argv: command-line arguments; None: those of the process.
        command: called with the arguments and the layout; returns the exit status.

    Returns:
        The exit status.

    Raises:
        ComModelError: an input cannot be used.
    """
    add_robot(parser)
    parser.add_argument("--layout", required=True, help="meaning of the columns (yaml)")
    arguments = parser.parse_args(argv)
    model, config = load_robot(arguments.robot, arguments.config)
    return command(arguments, MotionLayout.from_file(arguments.layout, config, model))


if __name__ == "__main__":
    sys.exit(main())
