"""Prints the path of a robot's URDF by the robot's name; launch files ask it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from com_simulation.exceptions import UnknownRobotError
from com_simulation.physics.robots import find_robot


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 when there is no such robot."""
    parser = argparse.ArgumentParser(prog="find_urdf", description=__doc__)
    parser.add_argument("robot", help="a name (hoap2, anymal, ...) or the path of a URDF")
    options = parser.parse_args(words)
    try:
        print(find_robot(options.robot).urdf, end="")
    except UnknownRobotError as error:
        print(f"find_urdf: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
