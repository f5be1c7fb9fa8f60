"""Prints the path of a robot's URDF, or of its configuration; launch files use it."""

import argparse
import sys
from collections.abc import Sequence

from com_model.commands import reports_errors
from com_model.exceptions import ComModelError
from com_model.robots import find_robot, find_robot_config
from com_model.urdf.xml_reader import is_mjcf


@reports_errors("find_urdf", 1, ComModelError)
def main(words: Sequence[str] | None = None) -> int:
    """Runs the command line: prints the path of a robot's URDF or configuration.

    Args:
        words: command-line arguments without the program's name; None: those of the process.

    Returns:
        Exit status: 0, or 1 when there is no such robot or configuration.
    """
    parser = argparse.ArgumentParser(prog="find_urdf", description=__doc__)
    parser.add_argument(
        "robot", help="a name (hoap2, anymal, ...) or the path of a URDF"
    )
    parser.add_argument(
        "--config",
        metavar="NAME",
        help="print the path of its configuration; if its URDF has none, that of this robot",
    )
    options = parser.parse_args(words)
    found = find_robot(options.robot)
    if options.config is None:
        if is_mjcf(found.urdf):
            fix = f"`ros2 run com_model com_setup {found.urdf}` writes it"
            raise ComModelError(f"{found.urdf} is no URDF, but MuJoCo's: {fix}")
        print(found.urdf, end="")
    else:
        print(found.config or find_robot_config(options.config) or "", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
