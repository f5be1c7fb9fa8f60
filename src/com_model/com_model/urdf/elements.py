"""What a URDF consists of, as the model uses it: links, joints, the tree that they form."""

from collections.abc import Mapping
from dataclasses import dataclass

from com_model.arrays import Array
from com_model.urdf.xml_reader import Node, Schema

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


@dataclass(frozen=True, eq=False)
class Link:
    """A link as the file gives it.

    Attributes:
        name: Its name.
        element: The element for messages, with its line.
        mass: kg; 0 without inertial.
        com: (3,) m, centre of mass in the link's frame.
        inertia: (3, 3) kg m^2, about the centre of mass, axes of the link.
        has_inertial: Whether the link has an <inertial> element.
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
        parent: Name of the link that carries it.
        child: Name of the link that it carries.
        R: (3, 3), R_parent_child at position 0.
        d: (3,) m, origin of the joint in the parent link's frame.
        axis: (3,) unit vector in the child link's frame; zero where the kind has none.
        lower: Smallest position, rad or m, -inf where there is none.
        upper: Largest position, inf where there is none.
        velocity: Largest speed, rad/s or m/s; inf where there is none, or a negative one (which
            is how converters from SDF write that).
        effort: Largest torque or force, N m or N; inf where there is none, as for the speed.
        mimic: The joint that it follows, or None.
        warnings: What is wrong but can only mean one thing: message and fix of each.
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
    warnings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Urdf:
    """A URDF that was read.

    Attributes:
        name: Name of the robot.
        links: In the order of the file.
        joints: In the order of the file.
        text: The document.
        node: Its top element.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    text: str
    node: Node


@dataclass(frozen=True, eq=False)
class Tree:
    """The links of a robot in depth-first order; children in the order of their joints in the file.

    Attributes:
        links: L links, the root first.
        parents: (L,) index of each link's parent; -1 for the root.
        joints: (L,) the joint above each link; None for the root.
        drives: Of each joint that moves, by name, the independent joint that drives it.
    """

    links: tuple[Link, ...]
    parents: tuple[int, ...]
    joints: tuple[Joint | None, ...]
    drives: Mapping[str, Mimic]
