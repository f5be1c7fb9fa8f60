"""The command com-demo: a robot whose URDF lacks a battery, in the browser."""

import argparse
import os
import sys
import time
import webbrowser
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from com_viewer.commands.view import ShownRobot
    from com_viewer.page import Page

ROBOT = "hoap2"


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        words: command-line arguments without the program's name; None: those of the process.

    Returns:
        Exit status: 0; 2 for wrong arguments, or where the viewer is not installed.
    """
    # Compiling would take half a minute; one posture at a time needs no compiler. It is read when
    # numba is imported: the suite's modules are imported only below.
    os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
    from com_model import ComModelError
    from com_viewer.commands.view import PAUSE_S
    from com_viewer.page import HOST, PORT, Page

    options = _parser(PORT).parse_args(words)
    try:
        page = Page(HOST, options.port)
    except OSError as error:
        print(f"com-demo: no page can be served: {error}", file=sys.stderr)
        return 2
    try:
        _show(page, options)
        print(f"viewer: {page.address} (Ctrl-C ends it)", flush=True)
        if not options.no_browser:
            webbrowser.open(page.address)
        while not options.once:
            time.sleep(PAUSE_S)
    except ComModelError as error:
        print(f"com-demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        pass
    finally:
        page.close()
    return 0


def _parser(port: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="com-demo",
        description="A robot carries a battery that its URDF does not have. In the browser: the "
        "robot, and in blue what its URDF believes. Sliders move the joints: see how far the CoM "
        "is off, and what is left of the distance to the edge of the feet.",
    )
    add = parser.add_argument
    add("--robot", default=ROBOT, help="a name, or a URDF's path; default: %(default)s")
    add("--kg", type=float, default=1.0, help="of the battery; default: 1")
    add("--port", type=int, default=port, help="of the page; default: %(default)s")
    add("--no-browser", action="store_true", help="only print the page's address")
    add("--once", action="store_true", help="end as soon as the page is there")
    return parser


def _show(page: "Page", options: argparse.Namespace) -> "ShownRobot":
    """Shows the robot with the battery, and in blue the one that its URDF believes in."""
    from com_model import RobotModel, find_robot, load_robot
    from com_model.urdf.editing import Inertial, edit_inertials
    from com_viewer.commands.view import ShownRobot, add_sliders
    from com_viewer.panel import JOINTS, joint_groups

    files = find_robot(options.robot)
    believed, config = load_robot(options.robot)
    trunk = int(believed.link_masses.argmax())
    old, com = believed.link_masses[trunk], believed.link_coms[trunk]
    mass = old + options.kg
    com = com - [options.kg / mass * 0.08, 0.0, 0.0]
    heavy = Inertial(mass, com, believed.link_inertias[trunk])
    text = edit_inertials(believed.xml, {believed.link_names[trunk]: heavy})
    page.tab(JOINTS)
    shown = ShownRobot(
        page, config.attach(RobotModel.from_urdf(text)), config, files.urdf
    )
    shown.overlay(believed, files.urdf, "its URDF believes")
    groups = joint_groups(believed, config, files.urdf)
    add_sliders(shown, groups, config.nominal_posture(believed))
    return shown


if __name__ == "__main__":
    sys.exit(main())
