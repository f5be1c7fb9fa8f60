"""Reduces a URDF to its kinematic and inertial elements and checks every number in them.

What is left parses anywhere: known tags and attributes only, finite decimal numbers, no duplicates.
"""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree as ET

from scipy.spatial.transform import Rotation

from com_model.exceptions import UrdfError
from com_model.text import closest, listing, quote
from com_model.urdf.xml_reader import Node, Schema

SCHEMA: Schema = {
    "robot": {
        "link": {"inertial": {"origin": {}, "mass": {}, "inertia": {}}},
        "joint": {"origin": {}, "parent": {}, "child": {}, "axis": {}, "limit": {}, "mimic": {}},
    }
}
JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST = 1e30  # of any value but a limit, in SI units
_XACRO = re.compile(r"\$[({]")


def clean(robot: Node) -> ET.Element:
    """Builds the reduced URDF of a document.

    Args:
        robot: The <robot> element, read with SCHEMA.

    Returns:
        A <robot> element that every URDF parser accepts.

    Raises:
        UrdfError: An element is missing, is there twice, or holds something that is no number.
    """
    if not robot.all("link"):
        raise UrdfError("has no <link>", str(robot), _mend_no_links(robot))
    result = ET.Element("robot", name=_name(robot))
    for link in robot.all("link"):
        _add_link(result, link)
    for joint in robot.all("joint"):
        _add_joint(result, joint)
    return result


def _mend_no_links(robot: Node) -> str:
    if any(name.startswith("xmlns:xacro") for name in robot.attributes) or any(
        tag.startswith("xacro:") for tag in robot.others
    ):
        return "This is a xacro file that defines no robot by itself: expand the one that uses it"
    meant = closest("link", list(robot.others), 0.6)
    if meant:
        return f"<{meant}> looks like a misspelt <link>"
    return "A URDF needs at least one link"


def _add_link(robot: ET.Element, node: Node) -> None:
    link = ET.SubElement(robot, "link", name=_name(node))
    inertial = _only(node, "inertial")
    if inertial is None:
        return
    where = f"<inertial> of {node}"
    copy = ET.SubElement(link, "inertial")
    _add_origin(copy, inertial, node)
    mass = _required(inertial, "mass", where)
    value = _number(mass, "value", f"<mass> of {node}")
    if float(value) < 0.0:
        fix = "A mass is zero or positive: fix the value"
        raise UrdfError(f"the mass is negative ({value})", f"<mass> of {node}", fix)
    ET.SubElement(copy, "mass", value=value)
    inertia = _only(inertial, "inertia", node)
    if inertia is not None:
        numbers = {key: _number(inertia, key, f"<inertia> of {node}") for key in _INERTIA}
        ET.SubElement(copy, "inertia", numbers)


def _add_joint(robot: ET.Element, node: Node) -> None:
    kind = _attribute(node, "type", str(node))
    if kind not in JOINT_TYPES:
        meant = closest(kind.lower(), JOINT_TYPES)
        guess = f"Did you mean {meant!r}? " if meant else ""
        fix = f"{guess}Use one of {listing(JOINT_TYPES)}"
        raise UrdfError(f"unknown joint type {quote(kind)}", str(node), fix)
    joint = ET.SubElement(robot, "joint", name=_name(node), type=kind)
    _add_origin(joint, node, node)
    for end in ("parent", "child"):
        link = _attribute(_required(node, end, str(node)), "link", f"<{end}> of {node}")
        ET.SubElement(joint, end, link=link)
    axis = _only(node, "axis")
    if axis is not None:
        ET.SubElement(joint, "axis", xyz=_vector(axis, "xyz", f"<axis> of {node}"))
    _add_limit(joint, node)
    mimic = _only(node, "mimic")
    if mimic is not None and kind != "fixed":
        where = f"<mimic> of {node}"
        values = {"joint": _attribute(mimic, "joint", where)}
        values |= _given(mimic, ("multiplier", "offset"), where)
        ET.SubElement(joint, "mimic", values)


def _add_limit(joint: ET.Element, node: Node) -> None:
    """Writes all four limits out; one that the file leaves open is infinite.

    A limit with only one of lower and upper has 0 for the other, as the URDF specification says.
    """
    limit = _only(node, "limit")
    if limit is None:
        return
    keys = "lower", "upper", "velocity", "effort"
    values = _given(limit, keys, f"<limit> of {node}", most=math.inf)
    if "lower" in values or "upper" in values:
        defaults = {"lower": "0", "upper": "0", "velocity": "inf", "effort": "inf"}
    else:
        defaults = {"lower": "-inf", "upper": "inf", "velocity": "inf", "effort": "inf"}
    ET.SubElement(joint, "limit", defaults | values)


def _add_origin(parent: ET.Element, node: Node, owner: Node) -> None:
    origin = _only(node, "origin", owner)
    if origin is None:
        return
    where = f"<origin> of {owner}"
    keys = [key for key in ("xyz", "rpy") if key in origin.attributes]
    values: dict[str, str] = {key: _vector(origin, key, where) for key in keys}
    if "quat_xyzw" in origin.attributes:
        values["rpy"] = _rpy_of_quaternion(origin, where)
    ET.SubElement(parent, "origin", values)


def _rpy_of_quaternion(origin: Node, where: str) -> str:
    quaternion = [float(x) for x in _vector(origin, "quat_xyzw", where, 4).split()]
    length = math.hypot(*quaternion)
    if "rpy" in origin.attributes or not 0.5 < length < 2.0:
        fix = "Give either rpy or a unit quaternion quat_xyzw"
        raise UrdfError("has no clear orientation", where, fix)
    angles = Rotation.from_quat(quaternion).as_euler("xyz")
    return " ".join(repr(float(angle)) for angle in angles)


def _only(node: Node, tag: str, owner: Node | None = None) -> Node | None:
    found = node.all(tag)
    if len(found) > 1:
        lines = " and ".join(str(child.line) for child in found[:2])
        fix = "Keep the right one and delete the other"
        element = str(owner or node)
        raise UrdfError(f"has <{tag}> twice, on lines {lines}", element, fix)
    return found[0] if found else None


def _required(node: Node, tag: str, where: str) -> Node:
    found = _only(node, tag)
    if found is None:
        meant = closest(tag, list(node.others), 0.6)
        fix = f"Rename <{meant}> to <{tag}>" if meant else f"Add <{tag} .../>"
        raise UrdfError(f"has no <{tag}>", where, fix)
    return found


def _attribute(node: Node, key: str, where: str) -> str:
    value = node.attributes.get(key, "")
    if not value.strip():
        others = [k for k in node.attributes if k != key]
        fix = f'Add {key}="..."' + (f" (it has {listing(others)})" if others else "")
        problem = "is empty" if key in node.attributes else "is missing"
        raise UrdfError(f"the attribute {key} {problem}", where, fix)
    return value


def _name(node: Node) -> str:
    return _attribute(node, "name", f"<{node.tag}> (line {node.line})")


def _given(node: Node, keys: tuple[str, ...], where: str, most: float = _MOST) -> dict[str, str]:
    return {key: _number(node, key, where, most) for key in keys if key in node.attributes}


def _number(node: Node, key: str, where: str, most: float = _MOST) -> str:
    return _check_number(_attribute(node, key, where).strip(), key, where, most)


def _vector(node: Node, key: str, where: str, size: int = 3) -> str:
    numbers = _attribute(node, key, where).split()
    if len(numbers) != size:
        text = quote(node.attributes[key])
        if _XACRO.search(text):
            _check_number(node.attributes[key], key, where)
        fix = f"Write {size} numbers with spaces between them"
        raise UrdfError(f"{key} is {text}, not {size} numbers", where, fix)
    return " ".join(_check_number(number, key, where) for number in numbers)


def _check_number(text: str, key: str, where: str, most: float = _MOST) -> str:
    if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        if abs(float(text)) > most:
            fix = "Write it in SI units: m, kg, kg m^2, rad"
            raise UrdfError(f"{key} is {quote(text)}, which no robot has", where, fix)
        return text
    if _XACRO.search(text):
        fix = "This is a xacro file: expand it first with `xacro FILE.xacro > FILE.urdf`"
        raise UrdfError(f"{key} holds the expression {quote(text)}", where, fix)
    if re.fullmatch(r"[+-]?(nan|inf|infinity)", text, re.IGNORECASE) or _NUMBER.fullmatch(text):
        fix = "Write a finite number; leave out a limit that does not exist"
        raise UrdfError(f"{key} is {quote(text)}, which is not finite", where, fix)
    fix = "Write a decimal number with a point, without unit"
    raise UrdfError(f"{key} is {quote(text)}, which is not a number", where, fix)
