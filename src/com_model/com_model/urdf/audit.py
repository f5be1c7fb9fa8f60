"""Audit of a robot's model: what in its URDF makes a wrong centre of mass or a wrong simulation."""

from __future__ import annotations

import math
import os
from pathlib import Path

from com_model.exceptions import ComModelError, UrdfError
from com_model.geometry.shapes import SCHEMA_WITH_SHAPES
from com_model.model import RobotModel, model_of
from com_model.urdf.audit_inertials import check_centers, check_inertias, check_masses
from com_model.urdf.audit_symmetry import check_symmetry
from com_model.urdf.findings import AuditReport, Finding, report
from com_model.urdf.parsing import Urdf, urdf_of
from com_model.urdf.spelling import Misspelling, find_misspellings
from com_model.urdf.xml_reader import Node, read_bounded, read_xml

__all__ = ["AuditReport", "Finding", "audit"]


def audit(
    robot: RobotModel | str | bytes | os.PathLike[str], scale_mass: float | None = None
) -> AuditReport:
    """Examines a robot's model; it need not be one that can be loaded.

    Looks for what keeps the URDF from loading; misspelt tags; links that move without mass;
    inertias that no body can have; centres of mass far outside their links; left and right sides
    that differ; and a total mass that is not the one that a scale shows.

    Args:
        robot: A model, the text of a URDF, or the path of one.
        scale_mass: kg, reading of a scale with the whole robot on it.

    Returns:
        The findings, errors first.

    Raises:
        ComModelError: scale_mass is not a positive number.
    """
    if scale_mass is not None and not (math.isfinite(scale_mass) and scale_mass > 0.0):
        raise ComModelError(f"scale_mass: expected kg above 0, got {scale_mass}")
    try:
        node, text = read_xml(_xml(robot), SCHEMA_WITH_SHAPES)
    except UrdfError as error:
        return report("no model: the URDF cannot be read", [_refusal(error)])
    findings = [_misspelling(m) for m in find_misspellings(node)]
    try:
        urdf = urdf_of(node, text)
    except UrdfError as error:
        return report(_title(node), [*findings, _refusal(error)])
    findings += check_inertias(urdf)
    try:
        model = model_of(urdf)
    except UrdfError as error:
        return report(_title(node), [*findings, _refusal(error)])
    findings += check_masses(model, urdf) + check_centers(model, urdf) + check_symmetry(model)
    findings += _check_limits(urdf) + _check_scale(model, scale_mass)
    return report(_title(node, model), findings)


def _xml(robot: RobotModel | str | bytes | os.PathLike[str]) -> str | bytes:
    if isinstance(robot, RobotModel):
        return robot.xml
    if isinstance(robot, bytes) or (isinstance(robot, str) and "<" in robot):
        return robot
    return read_bounded(Path(robot))


def _title(node: Node, model: RobotModel | None = None) -> str:
    name = repr(node.attributes.get("name", "robot without name"))[1:-1]
    if model is None:
        return f"{name}: cannot be loaded"
    return f"{name}: {model.n_links} links, {model.n_joints} joints, {model.mass:.4f} kg"


def _refusal(error: UrdfError) -> Finding:
    return Finding("error", error.element, error.message, error.fix)


def _misspelling(found: Misspelling) -> Finding:
    effect = {
        "inertial": "so these links have no mass",
        "link": "so these links do not exist",
        "joint": "so these joints do not exist",
    }.get(found.meant, "so it has no effect")
    return Finding(
        "error" if found.matters else "warning",
        found.first if found.count == 1 else f"{found.first} and {found.count - 1} more",
        f"misspelt tag: {found}; parsers skip it without a word, {effect}",
        f"Replace <{found.tag}> by <{found.meant}>, and </{found.tag}> by </{found.meant}>",
    )


def _check_limits(urdf: Urdf) -> list[Finding]:
    fix = "Give it <limit lower= upper= velocity= effort=>, or make it continuous"
    message = "has no position limits; other programs refuse it or let it turn freely"
    return [
        Finding("info", joint.element, message, fix)
        for joint in urdf.joints
        if joint.kind in ("revolute", "prismatic") and not joint.mimic and joint.lower == -math.inf
    ]


def _check_scale(model: RobotModel, scale_mass: float | None) -> list[Finding]:
    if scale_mass is None:
        return []
    missing = scale_mass - model.mass
    part = abs(missing) / scale_mass
    message = (
        f"the URDF has {model.mass:.3f} kg, the scale shows {scale_mass:.3f} kg: "
        f"{abs(missing):.3f} kg ({part:.1%}) too {'little' if missing > 0 else 'much'}"
    )
    if missing > 0:
        fix = "Add what the drawing left out: battery, cables, covers, payload"
    else:
        fix = "Look for parts that are counted twice or were taken off the robot"
    severity = "error" if part > 0.05 else "warning" if part > 0.01 else "info"
    return [Finding(severity, "total mass", message, fix if part > 0.01 else "Nothing to do")]
