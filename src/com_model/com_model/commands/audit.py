"""Command line: examine a URDF for what makes a wrong centre of mass."""

import sys
from collections.abc import Sequence

from com_model.checks.audit import audit
from com_model.commands import command_parser
from com_model.exceptions import ComModelError
from com_model.files import write_file
from com_model.urdf.elements import SCHEMA
from com_model.urdf.misspellings import correct_misspellings, find_misspellings
from com_model.urdf.mjcf import read_description
from com_model.urdf.xml_reader import MAX_BYTES, read_xml


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 0 no errors, 1 errors found, 2 wrong arguments."""
    parser = command_parser(
        None,
        "Checks a robot's URDF for errors that make its centre of mass wrong.",
        __file__,
    )
    parser.add_argument("urdf", help="path of the URDF or MJCF; - reads standard input")
    text = "URDF to write, with corrected tags where links would have no mass"
    parser.add_argument("--output", metavar="URDF", help=text)
    text = "page to write (html): verdict, issues, picture of the robot, masses of its links"
    parser.add_argument("--report", metavar="HTML", help=text)
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    parser.add_argument(
        "--scale", type=float, metavar="KG", help="measured mass of the robot, kg"
    )
    arguments = parser.parse_args(argv)
    robot: str | bytes = arguments.urdf
    if robot == "-":
        robot = sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        if arguments.output:
            given = robot if isinstance(robot, bytes) else read_description(robot)
            node, xml = read_xml(given, SCHEMA)
            robot = correct_misspellings(xml, find_misspellings(node)).encode()
            write_file(arguments.output, robot, arguments.force)
        found = audit(robot, scale_mass=arguments.scale)
        if arguments.report:
            from com_model.checks.audit_page import (
                audit_page,
            )  # needs matplotlib, only here

            write_file(arguments.report, audit_page(found, robot), arguments.force)
    except (ComModelError, OSError) as error:
        parser.error(str(error))
    print(found.text())
    return 0 if found.ok else 1


if __name__ == "__main__":
    sys.exit(main())
