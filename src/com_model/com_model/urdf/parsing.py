"""URDF text to links and joints: what the file says, checked element by element.

The whole of a URDF is not needed for masses and kinematics, and much of real files defeats parsers:
so com_model.urdf.cleaning reduces the document first and urdf_parser_py reads the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray
from urdf_parser_py import urdf as urdf_parser

from com_model.exceptions import UrdfError
from com_model.geometry.rotations import rotation_from_rpy
from com_model.text import quote
from com_model.urdf.cleaning import SCHEMA, clean
from com_model.urdf.xml_reader import Node, read_xml

Array = NDArray[np.float64]
FREE_TYPES = ("floating", "planar")


@dataclass(frozen=True, eq=False)
class Link:
    """A link as the file gives it.

    Attributes:
        name: Its name.
        element: The element for messages, with its line.
        mass: kg; 0 without inertial.
        com: (3,) m, centre of mass in the link frame.
        inertia: (3, 3) kg m^2, about the centre of mass, axes of the link.
        has_inertial: The link has an <inertial> element.
    """

    name: str
    element: str
    mass: float
    com: Array
    inertia: Array
    has_inertial: bool


@dataclass(frozen=True)
class Mimic:
    """position = multiplier * position of the joint `master` + offset (rad or m)."""

    master: str
    multiplier: float
    offset: float


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint as the file gives it.

    Attributes:
        name: Its name.
        element: The element for messages, with its line.
        kind: revolute, continuous, prismatic, fixed, floating or planar.
        parent: Name of the parent link.
        child: Name of the child link.
        R: (3, 3), R_parent_child at position 0.
        d: (3,) m, origin of the joint in the parent link's frame.
        axis: (3,) unit vector in the child link's frame.
        lower: Smallest position, rad or m, -inf where there is none.
        upper: Largest position, inf where there is none.
        velocity: Largest speed, rad/s or m/s; inf where there is none, or a negative one (which is
            how converters from SDF write that).
        effort: Largest torque or force, N m or N; inf likewise.
        mimic: The joint that it follows, or None.
    """

    name: str
    element: str
    kind: str
    parent: str
    child: str
    R: Array
    d: Array
    axis: Array
    lower: float
    upper: float
    velocity: float
    effort: float
    mimic: Mimic | None


@dataclass(frozen=True, eq=False)
class Urdf:
    """A URDF: its name, links and joints in the order of the file, its text, its elements."""

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    text: str
    node: Node


def parse_urdf(xml: str | bytes) -> Urdf:
    """Reads the links and joints of a URDF.

    Args:
        xml: The document; text, or bytes in the encoding that they declare.

    Returns:
        What it says; that the joints form one tree is not checked here.

    Raises:
        UrdfError: The document or one of its elements is wrong.
    """
    node, text = read_xml(xml, SCHEMA)
    return urdf_of(node, text)


def urdf_of(node: Node, text: str) -> Urdf:
    """Reads the links and joints of a document that has been read with SCHEMA."""
    reduced = ET.tostring(clean(node))
    try:
        robot = urdf_parser.URDF.from_xml_string(reduced)
    except Exception as error:  # urdf_parser_py raises whatever comes
        fix = "Check the links and joints against the URDF specification"
        raise UrdfError(f"urdf_parser_py refuses it ({error})", str(node), fix) from error
    links = tuple(_link(p, n) for p, n in zip(robot.links, node.all("link"), strict=True))
    joints = tuple(_joint(p, n) for p, n in zip(robot.joints, node.all("joint"), strict=True))
    _check_unique(links)
    _check_unique(joints)
    return Urdf(robot.name, links, joints, text, node)


def _pose(origin: Any) -> tuple[Array, Array]:
    if origin is None:
        return np.eye(3), np.zeros(3)
    return rotation_from_rpy(origin.rpy or (0, 0, 0)), np.array(
        origin.xyz or (0, 0, 0), dtype=float
    )


def _link(parsed: Any, node: Node) -> Link:
    inertial = parsed.inertial
    if inertial is None:
        return Link(parsed.name, str(node), 0.0, np.zeros(3), np.zeros((3, 3)), False)
    R, com = _pose(inertial.origin)
    inertia = np.zeros((3, 3))
    if inertial.inertia is not None:
        inertia = R @ np.array(inertial.inertia.to_matrix(), dtype=float) @ R.T
        inertia = (inertia + inertia.T) / 2
    return Link(parsed.name, str(node), float(inertial.mass), com, inertia, True)


def _joint(parsed: Any, node: Node) -> Joint:
    limit, moves = parsed.limit, parsed.type not in ("fixed", *FREE_TYPES)
    R, d = _pose(parsed.origin)
    bounded = limit is not None and parsed.type in ("revolute", "prismatic")
    joint = Joint(
        name=parsed.name,
        element=str(node),
        kind=parsed.type,
        parent=parsed.parent,
        child=parsed.child,
        R=R,
        d=d,
        axis=_unit(parsed.axis or (1, 0, 0), node) if moves else np.zeros(3),
        lower=limit.lower if bounded else -math.inf,
        upper=limit.upper if bounded else math.inf,
        velocity=limit.velocity if limit and limit.velocity >= 0.0 else math.inf,
        effort=limit.effort if limit and limit.effort >= 0.0 else math.inf,
        mimic=_mimic(parsed.mimic),
    )
    if joint.lower > joint.upper:
        problem = f"lower ({joint.lower:g}) is above upper ({joint.upper:g})"
        raise UrdfError(problem, f"<limit> of {node}", "Swap them")
    return joint


def _mimic(parsed: Any) -> Mimic | None:
    if parsed is None:
        return None
    multiplier = 1.0 if parsed.multiplier is None else parsed.multiplier
    return Mimic(parsed.joint, multiplier, parsed.offset or 0.0)


def _unit(axis: Sequence[float], node: Node) -> Array:
    length = math.hypot(*axis)
    if length < 1e-12:
        fix = "Give the direction of the axis, or make the joint fixed"
        raise UrdfError("the axis is zero", f"<axis> of {node}", fix)
    unit = np.array(axis, dtype=float) / length
    return unit / math.hypot(*unit)


def _check_unique(elements: Sequence[Link] | Sequence[Joint]) -> None:
    seen: dict[str, str] = {}
    for item in elements:
        if item.name in seen:
            kind = type(item).__name__.lower()
            problem = f"the name is taken by {seen[item.name]}"
            fix = f"Give each {kind} a name of its own, or delete the copy of {quote(item.name)}"
            raise UrdfError(problem, item.element, fix)
        seen[item.name] = item.element
