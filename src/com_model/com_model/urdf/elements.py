"""What a URDF consists of, as the model uses it: links, joints, the tree that they form.

build_tree orders the links, and refuses what is no tree.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from com_model.arrays import Array
from com_model.exceptions import UrdfError, closest, listing, quote
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


def build_tree(urdf: Urdf) -> Tree:
    """Orders the links and drops a massless world link that carries the robot by a free joint.

    Raises UrdfError where the joints join no tree, or a free joint is inside it.
    """
    links = {link.name: link for link in urdf.links}
    above = _joints_above(urdf, links)
    below: dict[str, list[Joint]] = {}
    for joint in urdf.joints:
        below.setdefault(joint.parent, []).append(joint)
    roots = [link.name for link in urdf.links if link.name not in above]
    _check_loops(links, above)
    if len(roots) > 1:
        problem = f"has {len(roots)} roots: {listing(roots)}"
        fix = (
            "Every link but one is the child of a joint: add the missing joints (fixed, where the "
            "links do not move against each other) or delete the loose links"
        )
        raise UrdfError(problem, str(urdf.node), fix)
    return _depth_first(_base(roots[0], links, below), links, below)


def _joints_above(urdf: Urdf, links: Mapping[str, Link]) -> dict[str, Joint]:
    above: dict[str, Joint] = {}
    for joint in urdf.joints:
        for end, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in links:
                meant = closest(name, list(links))
                fix = f"Did you mean {quote(meant)}?" if meant else "Add that link."
                fix += f" The links are {listing(links)}"
                raise UrdfError(
                    f"its {end} link {quote(name)} does not exist", joint.element, fix
                )
        if joint.child in above:
            other = above[joint.child].element
            problem = f"its child {quote(joint.child)} is already the child of {other}"
            fix = "A link has one parent: delete one of the two joints (URDF has no closed chains)"
            raise UrdfError(problem, joint.element, fix)
        above[joint.child] = joint
    return above


def _check_loops(links: Iterable[str], above: Mapping[str, Joint]) -> None:
    parents = {name: [above[name].parent] if name in above else [] for name in links}
    loop = _order(parents)[1]
    if loop:
        no_root = ", and no link is the root" if all(parents.values()) else ""
        fix = "A URDF is a tree: delete the joint that closes the loop"
        problem = f"the links form a loop: {_chain(loop)}{no_root}"
        raise UrdfError(problem, above[loop[0]].element, fix)


def _order(needs: Mapping[str, Sequence[str]]) -> tuple[list[str], list[str]]:
    """Orders names so that each follows those that it needs; or finds a loop of them."""
    try:
        return list(TopologicalSorter(needs).static_order()), []
    except CycleError as error:
        return [], error.args[1]  # each is needed by the next one


def _chain(names: Sequence[str]) -> str:
    """The first names of a chain for a message."""
    shown = " -> ".join(quote(name)[1:-1] for name in names[:9])
    return shown + (" ..." if len(names) > 9 else "")


def _base(
    root: str, links: Mapping[str, Link], below: Mapping[str, list[Joint]]
) -> str:
    """Finds the robot's base: below a free joint that hangs on nothing but massless links."""
    name = root
    while links[name].mass == 0.0 and len(below.get(name, ())) == 1:
        joint = below[name][0]
        if joint.kind in FREE_TYPES:
            return joint.child
        if joint.kind != "fixed":
            return root
        name = joint.child
    return root


def _depth_first(
    root: str, links: Mapping[str, Link], below: Mapping[str, list[Joint]]
) -> Tree:
    order: list[Link] = []
    parents: list[int] = []
    joints: list[Joint | None] = []
    stack: list[tuple[str, int, Joint | None]] = [(root, -1, None)]
    while stack:
        name, parent, joint = stack.pop()
        if joint is not None and joint.kind in FREE_TYPES:
            raise UrdfError(
                f"a {joint.kind} joint inside the tree",
                joint.element,
                "Only a massless world link above the base may carry one, as its only joint: "
                "write it as prismatic and revolute joints with massless links between them, or "
                "make it fixed",
            )
        index = len(order)
        order.append(links[name])
        parents.append(parent)
        joints.append(joint)
        stack.extend(
            (child.child, index, child) for child in reversed(below.get(name, ()))
        )
    return Tree(tuple(order), tuple(parents), tuple(joints), _drives(joints))


def _drives(joints: Sequence[Joint | None]) -> dict[str, Mimic]:
    """Expresses every joint that moves by the independent joint at the end of its chain of mimics.

    position = multiplier * position of the master + offset; of two in a chain, a (b q + c) + d =
    a b q + (a c + d). Independent ones follow themselves with 1, 0.

    Args:
        joints: The joints of the tree, and None for its root.

    Returns:
        The drive of each joint that moves, by the joint's name.

    Raises:
        UrdfError: A chain leads to a missing or fixed joint, or in a circle.
    """
    moving = {joint.name: joint for joint in joints if joint and joint.kind != "fixed"}
    fixed = {joint.name for joint in joints if joint and joint.kind == "fixed"}
    masters = {
        name: [_master(joint, moving, fixed)] if joint.mimic else []
        for name, joint in moving.items()
    }
    order, loop = _order(masters)
    if loop:
        fix = "Let one of them move independently: delete its <mimic>"
        problem = f"mimics itself: {_chain(loop[::-1])}"
        raise UrdfError(problem, moving[loop[-1]].element, fix)
    resolved: dict[str, Mimic] = {}
    for name in order:
        own = moving[name].mimic or Mimic(name, 1.0, 0.0)
        top = resolved.get(own.master, Mimic(name, 1.0, 0.0))
        multiplier = own.multiplier * top.multiplier
        offset = own.multiplier * top.offset + own.offset
        resolved[name] = Mimic(top.master, multiplier, offset)
    return resolved


def _master(joint: Joint, moving: Mapping[str, Joint], fixed: set[str]) -> str:
    """Name of the moving joint that a mimic joint follows."""
    master, where = (
        joint.mimic.master if joint.mimic else "",
        f"<mimic> of {joint.element}",
    )
    if master in fixed:
        fix = "Delete the <mimic>, make this joint fixed too, or let the other one move"
        raise UrdfError(f"follows {quote(master)}, which is fixed", where, fix)
    if master not in moving:
        meant = closest(master, list(moving))
        fix = (
            f"Did you mean {quote(meant)}? " if meant else "Name a joint that exists. "
        )
        fix += f"The moving joints are {listing(moving)}"
        raise UrdfError(f"follows {quote(master)}, which does not exist", where, fix)
    return master
