"""Command line: why a robot leans or drifts, from a minute of swaying or trotting."""

import sys
from collections.abc import Sequence

from com_bags import add_log_options
from com_identification.commands.identify_arguments import add_reading_options
from com_identification.commands.robot_inputs import load_robot, walk_inputs
from com_identification.commands.walk_identification import read_log
from com_identification.slow.checkup import check_up
from com_identification.walking.causes import CheckUp
from com_model import ComModelError
from com_model.commands import add_robot, command_parser, reports_errors
from com_model.text import columns


@reports_errors("checkup", 2, ComModelError)
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        argv: command-line arguments without the program's name; None: those of the process.

    Returns:
        Exit status: 0 healthy, 1 a cause is named or cannot be told from another, 2 an input
        cannot be used.
    """
    parser = command_parser("checkup", "Finds why a robot leans or drifts.", __file__)
    add = parser.add_argument
    add(
        "files",
        metavar="FILE",
        nargs="+",
        help="recordings of it swaying on all feet, or of a trotting quadruped",
    )
    add_robot(parser)
    add_log_options(parser)
    add(
        "--mass",
        type=float,
        metavar="KG",
        help="of the robot, weighed as it was recorded",
    )
    add_reading_options(parser)
    # what reading a recording of identify also asks for
    parser.set_defaults(
        settings=None, wrench=[], effort=True, marks=None, tip_over=None,
        marker_topic="", known_com="",
    )  # fmt: skip
    arguments = parser.parse_args(argv)
    robot = walk_inputs(load_robot(arguments))
    logs = [read_log(path, arguments, robot) for path in arguments.files]
    found = check_up(logs, robot.model, robot.config, arguments.mass)
    print("\n".join(_lines(found)))
    return 0 if found.healthy else 1


def _lines(found: CheckUp) -> list[str]:
    """The answer, and the table of the causes."""
    rows = [
        (cause.kind, cause.joint, f"{100.0 * cause.probability:.1f} %", cause.size)
        for cause in found.causes
    ]
    head = ("cause", "joint", "probability", "most probable size")
    nothing = ("none", "", f"{100.0 * found.none:.1f} %", "")
    return [found.text, "", columns(head, [*rows, nothing], 2)]


if __name__ == "__main__":
    sys.exit(main())
