"""Command line: examine a URDF for what makes a wrong centre of mass."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from com_model.checks.audit import audit, correct
from com_model.commands import command_parser
from com_model.exceptions import ComModelError
from com_model.files import write_file
from com_model.urdf.mjcf import read_description
from com_model.urdf.xml_reader import MAX_BYTES


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 0 no errors, 1 errors found, 2 wrong arguments."""
    parser = command_parser(
        None,
        "Checks a robot's URDF for errors that make its centre of mass wrong.",
        __file__,
    )
    text = "paths of URDFs or MJCFs; - reads standard input"
    parser.add_argument("urdf", nargs="+", help=text)
    text = "new URDF, corrected where that is beyond doubt; says what it changed"
    parser.add_argument("--fix", metavar="URDF", help=text)
    text = "page to write (html): verdict, issues, picture of the robot, masses of its links"
    parser.add_argument("--report", metavar="HTML", help=text)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object a file"
    )
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    parser.add_argument(
        "--scale", type=float, metavar="KG", help="measured mass of the robot, kg"
    )
    arguments = parser.parse_args(argv)
    if len(arguments.urdf) > 1 and (arguments.fix or arguments.report):
        parser.error("--fix and --report are for one file: give one URDF")
    try:
        sound = [_examine(robot, arguments) for robot in arguments.urdf]
    except (ComModelError, OSError) as error:
        parser.error(str(error))
    return 0 if all(sound) else 1


def _examine(name: str, arguments: argparse.Namespace) -> bool:
    """Examines one file and prints what is found; returns whether there are no errors."""
    robot: str | bytes = name
    if name == "-":
        robot = sys.stdin.buffer.read(MAX_BYTES + 1)
    if arguments.fix:
        given = robot if isinstance(robot, bytes) else read_description(robot)
        path = None if isinstance(robot, bytes) else Path(robot)
        text, done = correct(given, path)
        write_file(arguments.fix, text.encode(), arguments.force)
        robot = arguments.fix
        if not arguments.json:
            print(
                "\n".join(
                    [*(f"fixed: {what}" for what in done), f"wrote {arguments.fix}"]
                )
            )
    found = audit(robot, scale_mass=arguments.scale)
    if arguments.report:
        from com_model.checks.audit_page import (
            audit_page,  # needs matplotlib, only here
        )

        write_file(arguments.report, audit_page(found, robot), arguments.force)
    if arguments.json:
        issues = [asdict(issue) for issue in found.issues]
        print(json.dumps({"file": name, "title": found.title, "issues": issues}))
    else:
        print(f"{name}:\n" * (len(arguments.urdf) > 1) + found.text())
    return found.ok


if __name__ == "__main__":
    sys.exit(main())
