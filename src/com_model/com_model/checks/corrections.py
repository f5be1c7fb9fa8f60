"""Corrections of a URDF that are beyond doubt, each with what was done, into a new text."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from com_model.checks.audit import audit
from com_model.checks.issues import Correction
from com_model.exceptions import UrdfError
from com_model.model import RobotModel
from com_model.urdf.editing import Inertial, XmlText, edit_inertials
from com_model.urdf.elements import SCHEMA
from com_model.urdf.misspellings import correct_misspellings, find_misspellings
from com_model.urdf.parsing import parse_urdf
from com_model.urdf.xml_reader import read_xml


def correct(given: bytes, path: Path | None = None) -> tuple[str, list[str]]:
    """Corrects misspelt tags, units of the whole file, and inertials that count twice.

    Args:
        given: The URDF.
        path: Its file, from which relative names of meshes count; None: not known.

    Returns:
        The corrected URDF, and what was done, in sentences.

    Raises:
        UrdfError: It cannot be read.
    """
    node, xml = read_xml(given, SCHEMA)
    found = find_misspellings(node)
    done = [f"{each}" for each in found if each.matters]
    xml = correct_misspellings(xml, found)
    for _ in range(200):
        try:
            model = replace(RobotModel.from_urdf(xml), path=path)
        except UrdfError:  # audit says why
            break
        for issue in audit(model).issues:
            if issue.correction:
                xml = _EDITS[issue.correction.what](xml, issue.correction)
                done.append(f"{issue.element}: {issue.message}: {issue.correction}")
                break  # a unit of masses may hide one of inertias
        else:
            break
    return xml, done


def _scale_inertials(xml: str, correction: Correction) -> str:
    masses = correction.what == "masses"
    factors = (correction.factor, 1.0) if masses else (1.0, correction.factor)
    scaled = {
        link.name: Inertial(link.mass * factors[0], link.com, link.inertia * factors[1])
        for link in parse_urdf(xml).links
        if link.mass > 0.0
    }
    return edit_inertials(xml, scaled)


def _scale_limits(xml: str, correction: Correction) -> str:
    node, text = parse_urdf(xml).node, XmlText(xml.encode())
    for joint in node.all("joint"):
        for limit in (
            joint.all("limit") if joint.attributes.get("type") == "revolute" else ()
        ):
            for key in {"lower", "upper"} & set(limit.attributes):
                value = float(limit.attributes[key]) * correction.factor
                text.set(limit, key, f"{value:.9g}")
    return text.edited().decode()


def _delete_inertials(xml: str, correction: Correction) -> str:
    node, text = parse_urdf(xml).node, XmlText(xml.encode())
    for link in node.all("link"):
        if link.attributes["name"] in correction.links:
            for inertial in link.all("inertial"):
                text.replace(inertial, "")
    return text.edited().decode()


_EDITS: dict[str, Callable[[str, Correction], str]] = {
    "masses": _scale_inertials,
    "inertias": _scale_inertials,
    "limits": _scale_limits,
    "no mass": _delete_inertials,
}
