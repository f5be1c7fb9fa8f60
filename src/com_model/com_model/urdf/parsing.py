"""URDF text to links and joints, read by urdf_parser_py.

Real files often break the specification, mostly in what masses and kinematics do not need
(visuals, transmissions, tags of other programs). So one pass checks what is needed, with messages
that name the element, its line and the fix; it leaves out all else and completes what
urdf_parser_py cannot read (limits that are missing, a second <axis>, quaternions).
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from lxml import etree
from urdf_parser_py import urdf
from urdf_parser_py.xml_reflection.core import Path as XmlPath

from com_model.arrays import Array
from com_model.exceptions import UrdfError, closest, listing, quote
from com_model.geometry.rotations import rotation_from_rpy, rpy_from_rotation
from com_model.urdf.elements import FREE_TYPES, SCHEMA, Joint, Link, Mimic, Urdf
from com_model.urdf.xml_reader import Node, read_xml

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
    """A tag that is not known where it stands and looks like one that is.

    Attributes:
        tag: As it is written.
        meant: The tag that it looks like.
        inside: The tag that it stands in.
        first: The first of them, with its line.
    """

    tag: str
    meant: str
    inside: str
    count: int
    first: str

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
    """Renames the misspelt tags on which masses or kinematics depend.

    Args:
        text: The URDF.
        found: What find_misspellings found in it.

    Returns:
        The corrected URDF.
    """
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


JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", *FREE_TYPES)
INERTIA = tuple(urdf.Inertia.KEYS)
"""Attributes of <inertia>: the upper triangle by rows."""
UPPER = np.triu_indices(3)
_REQUIRED: Mapping[str, Sequence[str]] = {
    "robot": ("name",),
    "link": ("name",),
    "joint": ("name", "type"),
    "mass": ("value",),
    "inertia": INERTIA,
    "parent": ("link",),
    "child": ("link",),
    "axis": ("xyz",),
    "mimic": ("joint",),
}
"""Attributes that an element must have."""
_REQUIRED_TAGS = {"inertial": ("mass",), "joint": ("parent", "child")}
_NUMBERS: Mapping[str, Mapping[str, int]] = {
    "mass": {"value": 1},
    "inertia": dict.fromkeys(INERTIA, 1),
    "origin": {"xyz": 3, "rpy": 3, "quat_xyzw": 4},
    "axis": {"xyz": 3},
    "limit": dict.fromkeys(("lower", "upper", "velocity", "effort"), 1),
    "mimic": {"multiplier": 1, "offset": 1},
}
"""How many numbers an attribute holds."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_MOST = 1e30  # of any value but a limit, in SI units
_XACRO = re.compile(r"\$[({]")


def parse_urdf(xml: str | bytes) -> Urdf:
    """Reads the links and joints of a URDF, whether they form one tree or not.

    Args:
        xml: The document.

    Returns:
        Its links and joints.

    Raises:
        UrdfError: It is not well-formed, or an element is not as it should be.
    """
    return urdf_of(*read_xml(xml, SCHEMA))


def urdf_of(node: Node, text: str) -> Urdf:
    """Reads the links and joints of a document that has been read with SCHEMA.

    Args:
        node: Its top element.
        text: The document.

    Returns:
        Its links and joints.

    Raises:
        UrdfError: An element is not as it should be.
    """
    links, joints = node.all("link"), node.all("joint")
    if not links:
        raise UrdfError("has no <link>", str(node), _no_links_fix(node))
    _check_unique([*links, *joints])
    robot = urdf.Robot.from_xml(_prepare(node, node), XmlPath("robot"))
    return Urdf(
        robot.name,
        tuple(map(_link, links, robot.links)),
        tuple(map(_joint, joints, robot.joints)),
        text,
        node,
    )


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


def _check_unique(nodes: Sequence[Node]) -> None:
    seen: dict[tuple[str, str], Node] = {}
    for node in nodes:
        name = node.attributes.get("name", "")
        other = seen.setdefault((node.tag, name), node)
        if name and other is not node:
            fix = f"Give each {node.tag} a name of its own, or delete the copy of {quote(name)}"
            raise UrdfError(f"the name is taken by {other}", str(node), fix)


def _prepare(node: Node, owner: Node, most: float = _MOST) -> etree._Element:
    """Checks an element and those in it, and completes them for urdf_parser_py.

    Args:
        node: The element.
        owner: The link, joint or shape that it belongs to, or the element itself: for messages.
        most: Largest number that it may hold, SI units.

    Returns:
        The element with its known attributes and child elements.

    Raises:
        UrdfError: An attribute or a child is missing, is there twice, or is no such number.
    """
    tag = node.tag
    where = str(node) if node is owner else f"<{tag}> of {owner}"
    values = {key: _attribute(node, key, where) for key in _REQUIRED.get(tag, ())}
    largest = math.inf if tag == "limit" else most
    for key, size in _NUMBERS.get(tag, {}).items():
        if key in node.attributes:
            numbers = read_vector(node, key, where, size, largest).tolist()
            values[key] = " ".join(map(repr, numbers))
    if tag == "limit":
        _complete_limit(values)
    elif "quat_xyzw" in values:
        values["rpy"] = _rpy_of_quaternion(values, where)
        del values["quat_xyzw"]
    elif tag == "joint":
        _check_kind(node)
    for required in _REQUIRED_TAGS.get(tag, ()):
        _check_present(node, required, where)
    element = etree.Element(tag, values)
    element.extend(_prepare_children(node, owner, most))
    return element


def _prepare_children(node: Node, owner: Node, most: float) -> Iterator[etree._Element]:
    seen: dict[str, Node] = {}
    fixed = node.attributes.get("type") == "fixed"
    ignored = ("visual", "collision", "mimic") if fixed else ("visual", "collision")
    for child in node.children:
        first = seen.setdefault(child.tag, child)
        if child.tag in ("link", "joint"):
            yield _prepare(child, child)
        elif child.tag in ignored:
            continue
        elif first is child:
            yield _prepare(child, owner, most)
        elif child.tag != "axis":
            fix = "Keep the right one and delete the other"
            problem = f"has <{child.tag}> twice, on lines {first.line} and {child.line}"
            raise UrdfError(problem, str(owner), fix)


def _check_kind(joint: Node) -> None:
    kind = joint.attributes["type"]
    if kind not in JOINT_TYPES:
        meant = closest(kind.lower(), JOINT_TYPES)
        guess = f"Did you mean {meant!r}? " if meant else ""
        fix = f"{guess}Use one of {listing(JOINT_TYPES)}"
        raise UrdfError(f"unknown joint type {quote(kind)}", str(joint), fix)


def _check_present(node: Node, tag: str, where: str) -> None:
    if not node.all(tag):
        meant = closest(tag, list(node.others), 0.6)
        fix = f"Rename <{meant}> to <{tag}>" if meant else f"Add <{tag} .../>"
        raise UrdfError(f"has no <{tag}>", where, fix)


def _complete_limit(values: dict[str, str]) -> None:
    """Makes what a <limit> leaves open infinite, where urdf_parser_py would refuse it.

    Of lower and upper one alone is completed by 0, as the URDF specification says.
    """
    if not values.keys() & {"lower", "upper"}:
        values |= {"lower": "-inf", "upper": "inf"}
    for key in ("velocity", "effort"):
        if float(values.get(key, -1.0)) < 0.0:
            values[key] = "inf"


def _rpy_of_quaternion(values: Mapping[str, str], where: str) -> str:
    """Roll, pitch and yaw, rad, of an origin that has a quaternion (x, y, z, w)."""
    quaternion = [float(number) for number in values["quat_xyzw"].split()]
    if "rpy" in values or not 0.5 < math.hypot(*quaternion) < 2.0:
        fix = "Give either rpy or a unit quaternion quat_xyzw"
        raise UrdfError("has no clear orientation", where, fix)
    from scipy.spatial.transform import Rotation  # takes long, and hardly ever needed

    rpy = rpy_from_rotation(Rotation.from_quat(quaternion).as_matrix())
    return " ".join(map(repr, rpy))


def _link(node: Node, link: urdf.Link) -> Link:
    element, inertial = str(node), link.inertial
    if inertial is None:
        return Link(link.name, element, 0.0, np.zeros(3), np.zeros((3, 3)), False)
    if inertial.mass < 0.0:
        fix = "A mass is zero or positive: fix the value"
        problem = f"the mass is negative ({inertial.mass:g})"
        raise UrdfError(problem, f"<mass> of {element}", fix)
    R, com = _pose(inertial.origin)
    inertia = R @ np.array((inertial.inertia or urdf.Inertia()).to_matrix()) @ R.T
    return Link(link.name, element, inertial.mass, com, (inertia + inertia.T) / 2, True)


def _joint(node: Node, joint: urdf.Joint) -> Joint:
    limit = joint.limit or urdf.JointLimit(math.inf, math.inf, -math.inf, math.inf)
    lower, upper, warnings = limit.lower, limit.upper, []
    if joint.type not in ("revolute", "prismatic"):
        lower, upper = -math.inf, math.inf
    if lower > upper:
        problem = f"lower ({lower:g}) is above upper ({upper:g})"
        if not node.all("limit")[0].attributes.keys() >= {"lower", "upper"}:
            problem += "; what is left out is 0"
            raise UrdfError(problem, f"<limit> of {node}", "Give both")
        fix = "Swap them, or leave them out if it turns freely, as Bullet reads it"
        warnings.append((f"{problem}: read the other way round", fix))
        lower, upper = upper, lower
    axes = node.all("axis")
    if len(axes) > 1:
        lines = " and ".join(str(axis.line) for axis in axes[:2])
        problem = f"has <axis> twice, on lines {lines}: the first counts, as in ROS"
        warnings.append((problem, "Keep the right one and delete the other"))
    follows = joint.mimic and Mimic(
        joint.mimic.joint,
        1.0 if joint.mimic.multiplier is None else joint.mimic.multiplier,
        joint.mimic.offset or 0.0,
    )
    return Joint(
        joint.name,
        str(node),
        joint.type,
        joint.parent,
        joint.child,
        *_pose(joint.origin),
        _axis(node, joint),
        lower,
        upper,
        limit.velocity,
        limit.effort,
        follows,
        tuple(warnings),
    )


def _axis(node: Node, joint: urdf.Joint) -> Array:
    """Unit axis (3,); zero where the joint has none."""
    if joint.type in ("fixed", *FREE_TYPES):
        return np.zeros(3)
    axis = np.array(joint.axis or [1.0, 0.0, 0.0])
    length = math.hypot(*axis)
    if length < 1e-12:
        fix = "Give the direction of the axis, or make the joint fixed"
        raise UrdfError("the axis is zero", f"<axis> of {node}", fix)
    unit = axis / length
    return np.asarray(unit / math.hypot(*unit))


def _pose(origin: urdf.Pose | None) -> tuple[Array, Array]:
    """R (3, 3) and p (3,) m."""
    origin = origin or urdf.Pose([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    return rotation_from_rpy(origin.rpy), np.array(origin.xyz)


def read_pose(node: Node, owner: Node, most: float = _MOST) -> tuple[Array, Array]:
    """Reads the <origin> in an element.

    Args:
        node: The element.
        owner: The link, joint or shape that it belongs to: for messages.
        most: Largest number that it may hold, m or rad.

    Returns:
        Rotation R (3, 3) and position p (3,) m; identity and zero without <origin>.

    Raises:
        UrdfError: It is there twice, or is not made of such numbers.
    """
    origins = _prepare_children(replace(node, children=node.all("origin")), owner, most)
    poses = [urdf.Pose.from_xml(origin, XmlPath("origin")) for origin in origins]
    return _pose(poses[0] if poses else None)


def read_vector(
    node: Node, key: str, where: str, size: int = 3, most: float = _MOST
) -> Array:
    """Reads the numbers of an attribute.

    Args:
        node: The element.
        key: The attribute's name.
        where: The element for messages.
        size: How many numbers it must have.
        most: Largest number that it may hold.

    Returns:
        Its numbers (size,).

    Raises:
        UrdfError: It is missing, or is not made of such numbers.
    """
    text = _attribute(node, key, where)
    expression = size == 1 or _XACRO.search(text)
    numbers = [text.strip()] if expression else text.split()
    if not expression and len(numbers) != size:
        fix = f"Write {size} numbers with spaces between them"
        raise UrdfError(f"{key} is {quote(text)}, not {size} numbers", where, fix)
    return np.array([_convert(number, key, where, most) for number in numbers])


def _attribute(node: Node, key: str, where: str) -> str:
    value = node.attributes.get(key, "")
    if not value.strip():
        others = [k for k in node.attributes if k != key]
        fix = f'Add {key}="..."' + (f" (it has {listing(others)})" if others else "")
        problem = "is empty" if key in node.attributes else "is missing"
        raise UrdfError(f"the attribute {key} {problem}", where, fix)
    return value


def _convert(text: str, key: str, where: str, most: float) -> float:
    """Converts a number of a URDF: decimal, finite, without unit."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if math.isfinite(value) and abs(value) <= most:
        return value
    problem = f"{key} is {quote(text)}, which is not a number"
    fix = "Write a decimal number with a point, without unit"
    if math.isfinite(value):
        problem = f"{key} is {quote(text)}, which no robot has"
        fix = "Write it in SI units: m, kg, kg m^2, rad"
    elif _XACRO.search(text):
        problem = f"{key} holds the expression {quote(text)}"
        fix = (
            "This is a xacro file: expand it first with `xacro FILE.xacro > FILE.urdf`"
        )
    elif math.isinf(value) or _NOT_FINITE.fullmatch(text):
        problem = f"{key} is {quote(text)}, which is not finite"
        fix = "Write a finite number; leave out a limit that does not exist"
    raise UrdfError(problem, where, fix)
