"""The audit of a URDF as one page: verdict, issues, picture, masses of the links."""

import re
import shlex

from com_model.checks.audit import AuditReport
from com_model.exceptions import ComModelError
from com_model.html import Raw, element, folded, number, report, svg, table
from com_model.model import RobotModel
from com_model.plotting import robot_figure


def audit_page(found: AuditReport, robot: str | bytes) -> str:
    """Writes the page of an audit.

    Args:
        found: The audit.
        robot: The URDF's path or content; the robot is drawn if it can be loaded.

    Returns:
        HTML.
    """
    verdict = "Nothing in this URDF's masses looks wrong"
    if not found.ok or found.select("warning"):
        verdict = "The centre of mass that follows from this URDF may be wrong"
    verdict += f": {found.text().splitlines()[-1]}."
    rows = [(i.severity, i.element, i.message, i.fix) for i in found.issues]
    issues = (
        table(("", "where", "what", "how to fix it"), rows, words=3) if rows else ""
    )
    then = (
        "Correct the errors, then the warnings. Weigh the robot with its batteries and compare, "
        "with its mass in kg in place of 7.1: `ros2 run com_model audit "
        f"{shlex.quote(robot if isinstance(robot, str) else 'robot.urdf')} --scale 7.1`",
        "Masses that look right can still be wrong. A recording of the robot shows what they are: "
        "docs/tutorial_identification.md",
    )
    picture, masses = _robot(found, robot) or ("", "")
    return report(
        f"Audit of {found.title}",
        verdict,
        picture,
        issues,
        masses,
        then=then,
        failed=not found.ok,
    )


def _robot(found: AuditReport, robot: str | bytes) -> list[Raw]:
    """Picture and masses; an empty list where the URDF cannot be loaded."""
    try:
        text = isinstance(robot, bytes)
        model = (
            RobotModel.from_urdf(robot) if text else RobotModel.from_file(str(robot))
        )
    except ComModelError:
        return []
    places = [
        i.element.partition(" ")[2]
        for i in found.issues
        if i.element.startswith("link")
    ]
    marked = {*re.findall(r"[^\s',]+", " ".join(places))}.intersection(model.link_names)
    figure = robot_figure(
        model, model.neutral, "Where the masses are, all joints at 0", marked
    )
    links = zip(model.link_names, model.link_masses, model.link_coms, strict=True)
    rows = [
        (n, number(m, 4), *(number(x, 1, 1e3) for x in com))
        for n, m, com in links
        if m > 0.0
    ]
    head = ("link", "mass (kg)", "CoM x (mm)", "y (mm)", "z (mm)")
    words = "By the URDF, each CoM in its link's own frame. A URDF has no standard deviations."
    masses = folded("Masses of the links", element("p", words), table(head, rows))
    return [svg(figure), masses]
