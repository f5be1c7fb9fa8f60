"""URDF text to links and joints: what the file says, checked element by element.

Masses and kinematics need little of a URDF, and the rest of real files (visuals, transmissions,
tags of other programs) often breaks the specification: only what is needed is read.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from com_model.arrays import Array
from com_model.exceptions import UrdfError
from com_model.geometry.rotations import rotation_from_rpy
from com_model.text import closest, listing, quote
from com_model.urdf.xml_reader import Node, Schema, read_xml

SCHEMA: Schema = {
    "robot": {
        "link": {"inertial": {"origin": {}, "mass": {}, "inertia": {}}},
        "joint": {
            "origin": {},
            "parent": {},
            "child": {},
            "axis": {},
            "limit": {},
            "mimic": {},
        },
    }
}
FREE_TYPES = ("floating", "planar")
JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", *FREE_TYPES)
INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
"""Attributes of <inertia>: the upper triangle by rows."""
UPPER = np.triu_indices(3)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST = 1e30  # of any value but a limit, in SI units
_XACRO = re.compile(r"\$[({]")


@dataclass(frozen=True, eq=False)
class Link:
    """A link as the file gives it."""

    name: str
    element: str  # the element for messages, with its line
    mass: float  # kg; 0 without inertial
    com: Array  # (3,) m, centre of mass in the link frame
    inertia: Array  # (3, 3) kg m^2, about the centre of mass, axes of the link
    has_inertial: bool  # the link has an <inertial> element


@dataclass(frozen=True)
class Mimic:
    """position = multiplier * position of the joint `master` + offset (rad or m)."""

    master: str
    multiplier: float
    offset: float


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint as the file gives it."""

    name: str
    element: str  # the element for messages, with its line
    kind: str  # revolute, continuous, prismatic, fixed, floating or planar
    parent: str
    child: str
    R: Array  # (3, 3), R_parent_child at position 0
    d: Array  # (3,) m, origin of the joint in the parent link's frame
    axis: Array  # (3,) unit vector in the child link's frame
    lower: float  # smallest position, rad or m, -inf where there is none
    upper: float  # largest position, inf where there is none
    # largest speed, rad/s or m/s; inf where there is none, or a negative one (which is how
    # converters from SDF write that)
    velocity: float
    effort: float  # largest torque or force, N m or N; inf likewise
    mimic: Mimic | None  # the joint that it follows, or None
    # what is wrong but can only mean one thing: message and fix of each
    warnings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Urdf:
    """A URDF: its name, links and joints in the order of the file, its text, its elements."""

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    text: str
    node: Node


def parse_urdf(xml: str | bytes) -> Urdf:
    """Reads the links and joints of a URDF, one tree or not; or UrdfError."""
    return urdf_of(*read_xml(xml, SCHEMA))


def urdf_of(node: Node, text: str) -> Urdf:
    """Reads the links and joints of a document that has been read with SCHEMA."""
    if not node.all("link"):
        raise UrdfError("has no <link>", str(node), _no_links_fix(node))
    name = _name(node)
    links = tuple(_link(link) for link in node.all("link"))
    joints = tuple(_joint(joint) for joint in node.all("joint"))
    _check_unique(links)
    _check_unique(joints)
    return Urdf(name, links, joints, text, node)


def _no_links_fix(robot: Node) -> str:
    if any(name.startswith("xmlns:xacro") for name in robot.attributes) or any(
        tag.startswith("xacro:") for tag in robot.others
    ):
        return "This is a xacro file that defines no robot: expand the one that uses it"
    meant = closest("link", list(robot.others), 0.6)
    return (
        f"<{meant}> looks like a misspelt <link>"
        if meant
        else "A URDF needs at least one link"
    )


def _link(node: Node) -> Link:
    name, inertial = _name(node), _only(node, "inertial")
    if inertial is None:
        return Link(name, str(node), 0.0, np.zeros(3), np.zeros((3, 3)), False)
    R, com = read_pose(inertial, node)
    where = f"<mass> of {node}"
    mass = _number(_required(inertial, "mass", f"<inertial> of {node}"), "value", where)
    if mass < 0.0:
        fix = "A mass is zero or positive: fix the value"
        raise UrdfError(f"the mass is negative ({mass:g})", where, fix)
    inertia, tensor = _only(inertial, "inertia", node), np.zeros((3, 3))
    if inertia is not None:
        tensor[UPPER] = [
            _number(inertia, key, f"<inertia> of {node}") for key in INERTIA
        ]
        tensor = R @ (tensor + np.triu(tensor, 1).T) @ R.T
    return Link(name, str(node), mass, com, (tensor + tensor.T) / 2, True)


def _joint(node: Node) -> Joint:
    kind = _attribute(node, "type", str(node))
    if kind not in JOINT_TYPES:
        meant = closest(kind.lower(), JOINT_TYPES)
        guess = f"Did you mean {meant!r}? " if meant else ""
        fix = f"{guess}Use one of {listing(JOINT_TYPES)}"
        raise UrdfError(f"unknown joint type {quote(kind)}", str(node), fix)
    name, (R, d) = _name(node), read_pose(node, node)
    parent, child = (
        _attribute(_required(node, end, str(node)), "link", f"<{end}> of {node}")
        for end in ("parent", "child")
    )
    lower, upper, velocity, effort = _limits(node, kind)
    warnings = []
    if lower > upper:
        problem = (
            f"lower ({lower:g}) is above upper ({upper:g}): read the other way round"
        )
        fix = "Swap them, or leave them out if it turns freely, as Bullet reads it"
        warnings.append((problem, fix))
        lower, upper = upper, lower
    axes = node.all("axis")
    if len(axes) > 1:
        lines = " and ".join(str(axis.line) for axis in axes[:2])
        problem = f"has <axis> twice, on lines {lines}: the first counts, as in ROS"
        warnings.append((problem, "Keep the right one and delete the other"))
    axis, mimic = _axis(node, kind), _mimic(node) if kind != "fixed" else None
    moves = parent, child, R, d, axis, lower, upper, velocity, effort, mimic
    return Joint(name, str(node), kind, *moves, tuple(warnings))


def _axis(node: Node, kind: str) -> Array:
    elements, where = node.all("axis"), f"<axis> of {node}"
    axis = read_vector(elements[0], "xyz", where) if elements else np.array([1.0, 0, 0])
    if kind in ("fixed", *FREE_TYPES):
        return np.zeros(3)
    length = math.hypot(*axis)
    if length < 1e-12:
        fix = "Give the direction of the axis, or make the joint fixed"
        raise UrdfError("the axis is zero", where, fix)
    unit = axis / length
    return np.asarray(unit / math.hypot(*unit))


def _limits(node: Node, kind: str) -> tuple[float, float, float, float]:
    """Lower, upper, velocity, effort as they are given; infinite where the file leaves them open.

    A limit with only one of lower and upper has 0 for the other, as the URDF specification says.
    """
    limit, where = _only(node, "limit"), f"<limit> of {node}"
    keys = "lower", "upper", "velocity", "effort"
    given = {} if limit is None else _given(limit, keys, where, most=math.inf)
    velocity, effort = (
        given[key] if given.get(key, -1.0) >= 0.0 else math.inf
        for key in ("velocity", "effort")
    )
    if kind not in ("revolute", "prismatic") or not given.keys() & {"lower", "upper"}:
        return -math.inf, math.inf, velocity, effort
    lower, upper = given.get("lower", 0.0), given.get("upper", 0.0)
    if lower > upper and not given.keys() >= {"lower", "upper"}:
        problem = f"lower ({lower:g}) is above upper ({upper:g}); what is left out is 0"
        raise UrdfError(problem, where, "Give both")
    return lower, upper, velocity, effort


def _mimic(node: Node) -> Mimic | None:
    mimic, where = _only(node, "mimic"), f"<mimic> of {node}"
    if mimic is None:
        return None
    values = {"multiplier": 1.0, "offset": 0.0}
    values |= _given(mimic, tuple(values), where)
    return Mimic(_attribute(mimic, "joint", where), **values)


def read_pose(node: Node, owner: Node, most: float = _MOST) -> tuple[Array, Array]:
    """R (3, 3) and p (3,) m, at most so large, of the <origin> in an element; or UrdfError."""
    origin, where = _only(node, "origin", owner), f"<origin> of {owner}"
    R, p = np.eye(3), np.zeros(3)
    if origin is None:
        return R, p
    if "xyz" in origin.attributes:
        p = read_vector(origin, "xyz", where, most=most)
    if "rpy" in origin.attributes:
        R = rotation_from_rpy(read_vector(origin, "rpy", where).tolist())
    if "quat_xyzw" in origin.attributes:
        quaternion = read_vector(origin, "quat_xyzw", where, 4)
        if "rpy" in origin.attributes or not 0.5 < math.hypot(*quaternion) < 2.0:
            fix = "Give either rpy or a unit quaternion quat_xyzw"
            raise UrdfError("has no clear orientation", where, fix)
        from scipy.spatial.transform import (
            Rotation,
        )  # takes long, and hardly ever needed

        R = Rotation.from_quat(quaternion).as_matrix()
    return R, p


def _check_unique(elements: Sequence[Link] | Sequence[Joint]) -> None:
    seen: dict[str, str] = {}
    for item in elements:
        if item.name in seen:
            kind = type(item).__name__.lower()
            problem = f"the name is taken by {seen[item.name]}"
            fix = f"Give each {kind} a name of its own, or delete the copy of {quote(item.name)}"
            raise UrdfError(problem, item.element, fix)
        seen[item.name] = item.element


def _only(node: Node, tag: str, owner: Node | None = None) -> Node | None:
    found = node.all(tag)
    if len(found) > 1:
        lines = " and ".join(str(child.line) for child in found[:2])
        fix = "Keep the right one and delete the other"
        raise UrdfError(f"has <{tag}> twice, on lines {lines}", str(owner or node), fix)
    return found[0] if found else None


def _required(node: Node, tag: str, where: str) -> Node:
    found = _only(node, tag)
    if found is None:
        meant = closest(tag, list(node.others), 0.6)
        fix = f"Rename <{meant}> to <{tag}>" if meant else f"Add <{tag} .../>"
        raise UrdfError(f"has no <{tag}>", where, fix)
    return found


def _name(node: Node) -> str:
    return _attribute(node, "name", f"<{node.tag}> (line {node.line})")


def _attribute(node: Node, key: str, where: str) -> str:
    value = node.attributes.get(key, "")
    if not value.strip():
        others = [k for k in node.attributes if k != key]
        fix = f'Add {key}="..."' + (f" (it has {listing(others)})" if others else "")
        problem = "is empty" if key in node.attributes else "is missing"
        raise UrdfError(f"the attribute {key} {problem}", where, fix)
    return value


def _given(
    node: Node, keys: tuple[str, ...], where: str, most: float = _MOST
) -> dict[str, float]:
    return {
        key: _number(node, key, where, most) for key in keys if key in node.attributes
    }


def _number(node: Node, key: str, where: str, most: float = _MOST) -> float:
    return _convert(_attribute(node, key, where).strip(), key, where, most)


def read_vector(
    node: Node, key: str, where: str, size: int = 3, most: float = _MOST
) -> Array:
    """Numbers (size,) of an attribute, at most so large; or UrdfError."""
    text = _attribute(node, key, where)
    numbers = text.split()
    if len(numbers) != size:
        if _XACRO.search(text):
            _convert(text, key, where)
        fix = f"Write {size} numbers with spaces between them"
        raise UrdfError(f"{key} is {quote(text)}, not {size} numbers", where, fix)
    return np.array([_convert(number, key, where, most) for number in numbers])


def _convert(text: str, key: str, where: str, most: float = _MOST) -> float:
    """A number of a URDF: decimal, finite, without unit."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if math.isfinite(value):
        if abs(value) > most:
            fix = "Write it in SI units: m, kg, kg m^2, rad"
            raise UrdfError(f"{key} is {quote(text)}, which no robot has", where, fix)
        return value
    if _XACRO.search(text):
        fix = (
            "This is a xacro file: expand it first with `xacro FILE.xacro > FILE.urdf`"
        )
        raise UrdfError(f"{key} holds the expression {quote(text)}", where, fix)
    if math.isinf(value) or re.fullmatch(
        r"[+-]?(nan|inf|infinity)", text, re.IGNORECASE
    ):
        fix = "Write a finite number; leave out a limit that does not exist"
        raise UrdfError(f"{key} is {quote(text)}, which is not finite", where, fix)
    fix = "Write a decimal number with a point, without unit"
    raise UrdfError(f"{key} is {quote(text)}, which is not a number", where, fix)


_ROBOT = SCHEMA["robot"]
_LINK, _JOINT = _ROBOT["link"], _ROBOT["joint"]
MATTERING = frozenset({*_ROBOT, *_LINK, *_LINK["inertial"], *_JOINT})
"""Tags without which masses or kinematics come out wrong."""
_OF_OTHERS = (
    "transmission",
    "gazebo",
    "ros2_control",
    "sensor",
    "group",
    "mujoco",
    "drake",
)
KNOWN = {
    "robot": (*_ROBOT, "material", *_OF_OTHERS),
    "link": (*_LINK, "visual", "collision", "contact", "material", "sensor", "gazebo"),
    "inertial": tuple(_LINK["inertial"]),
    "joint": (*_JOINT, "dynamics", "calibration", "safety_controller"),
}
"""Tags that belong below each tag, those of widespread extensions among them."""


@dataclass(frozen=True)
class Misspelling:
    """A tag that is not known where it stands and looks like one that is."""

    tag: str  # as it is written
    meant: str  # the tag that it looks like
    inside: str  # the tag that it stands in
    count: int
    first: str  # the first of them, with its line

    @property
    def matters(self) -> bool:
        """Whether masses or kinematics depend on it."""
        return self.meant in MATTERING

    def __str__(self) -> str:
        holders = f"{self.count} {self.inside}{'s' if self.count > 1 else ''}"
        return f"<{self.tag}> on {holders} should be <{self.meant}>"


def find_misspellings(robot: Node) -> list[Misspelling]:
    """Finds the unknown tags of a document that look like known ones, at each level."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for node, holder in _walk(robot):
        for tag in node.others:
            if tag not in KNOWN.get(node.tag, (tag,)):
                counts[node.tag, tag] += 1
                first.setdefault((node.tag, tag), holder)
    found = []
    for (inside, tag), count in counts.items():
        meant = closest(tag.lower(), KNOWN[inside], cutoff=0.7)
        if meant is not None:
            found.append(Misspelling(tag, meant, inside, count, first[inside, tag]))
    return sorted(found, key=lambda m: (not m.matters, -m.count, m.tag))


def correct_misspellings(text: str, found: Sequence[Misspelling]) -> str:
    """Gives the text of a URDF with the tags renamed on which masses or kinematics depend."""
    for each in found:
        if each.matters:
            tag = rf"(?<=<){re.escape(each.tag)}(?=[\s/>])|(?<=</){re.escape(each.tag)}(?=[\s>])"
            text = re.sub(tag, each.meant, text)
    return text


def _walk(robot: Node) -> Iterator[tuple[Node, str]]:
    """Lists the elements down to the inertials, each with its words for a message."""
    yield robot, str(robot)
    for child in robot.children:
        yield child, str(child)
        for inertial in child.all("inertial"):
            yield inertial, f"<inertial> of {child}"
