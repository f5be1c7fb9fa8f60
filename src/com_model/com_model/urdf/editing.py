"""Changes the inertials of links in the text of a URDF and leaves everything else as it stands."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, as_array, freeze
from com_model.exceptions import UnknownNameError, UrdfError, quote
from com_model.urdf.elements import Link
from com_model.urdf.parsing import INERTIA, UPPER, parse_urdf
from com_model.urdf.xml_reader import Node

if TYPE_CHECKING:
    from com_model.model import RobotModel

_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>"']+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


@dataclass(frozen=True, eq=False)
class Inertial:
    """Mass, centre of mass and inertia of a rigid body; arrays are read-only.

    Attributes:
        mass: kg, not negative.
        com: (3,) m, centre of mass in the frame of the link.
        inertia: (3, 3) kg m^2, about the centre of mass, axes of the link.
    """

    mass: float
    com: Array
    inertia: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", float(self.mass))
        object.__setattr__(self, "com", as_array("com", self.com, (3,)))
        object.__setattr__(self, "inertia", as_array("inertia", self.inertia, (3, 3)))
        freeze(self)


def edit_inertials(xml: str, inertials: Mapping[str, Inertial]) -> str:
    """Writes new inertials of links into a URDF: RobotModel.from_urdf reads the same.

    Only the values that change are written again: a mass, the xyz of an origin, the six numbers of
    an inertia (its origin's rotation then becomes the identity). Comments, spaces, the order and
    the quotes of attributes stay; a link without inertial gets one.

    Args:
        xml: The URDF.
        inertials: New inertials by the name of the link.

    Returns:
        The new URDF.

    Raises:
        UrdfError: It is no URDF, declares entities, or an inertial is none that a link can have.
        UnknownNameError: It has no such link.
    """
    urdf = parse_urdf(xml)
    links = {link.name: link for link in urdf.links}
    for name, inertial in inertials.items():
        if name not in links:
            raise UnknownNameError("link", name, list(links))
        _check(inertial, links[name].element)
    text = XmlText(xml.encode())
    for node in urdf.node.all("link"):
        name = node.attributes["name"]
        if name in inertials:
            _edit(text, node, links[name], inertials[name])
    return text.edited().decode()


def _check(inertial: Inertial, element: str) -> None:
    com, inertia = inertial.com, inertial.inertia
    values = np.concatenate([[inertial.mass], com, inertia.ravel()])
    if not np.isfinite(values).all():
        raise UrdfError(
            "the new inertial is not finite", element, "Give finite numbers"
        )
    if inertial.mass < 0.0:
        problem = f"the new mass is negative ({inertial.mass:g} kg)"
        raise UrdfError(problem, element, "A mass is zero or positive")
    if np.abs(inertia - inertia.T).max() > 1e-9 * np.abs(inertia).max():
        fix = "Give the inertia about the centre of mass, in the axes of the link"
        raise UrdfError("the new inertia is not symmetric", element, fix)


class XmlText:
    """A document of UTF-8, and replacements that are to be made in it."""

    def __init__(self, document: bytes) -> None:
        self._document = document
        self._edits: list[tuple[int, int, bytes]] = []  # begin, end, new bytes

    def set(self, node: Node, key: str, value: str) -> None:
        """Gives an attribute a value; one that it has not is put in front of the others.

        Args:
            node: The element.
            key: Name of the attribute.
            value: Its value.
        """
        places, _ = self._scan(node)
        if key.encode() in places:
            self._edits.append((*places[key.encode()], value.encode()))
        else:
            after = self._name_end(node)
            self._edits.append((after, after, f' {key}="{value}"'.encode()))

    def insert_child(self, node: Node, lines: Sequence[str]) -> None:
        """Puts lines of XML in front of its children.

        Args:
            node: The element.
            lines: XML, one or more elements.
        """
        _, end = self._scan(node)
        margin = self._margin(node)
        inner = b"".join(margin + b"  " + line.encode() for line in lines)
        if self._document[end - 2 : end] == b"/>":
            closing = (
                b"</" + self._document[node.begin + 1 : self._name_end(node)] + b">"
            )
            self._edits.append((end - 2, end, b">" + inner + margin + closing))
        else:
            self._edits.append((end, end, inner))

    def replace(self, node: Node, line: str) -> None:
        """Puts a line of XML in its place, whatever it contains.

        Args:
            node: The element.
            line: XML, one element.
        """
        _, end = self._scan(node)
        if self._document[end - 2 : end] != b"/>":
            end = self._document.index(b">", node.end) + 1
        self._edits.append((node.begin, end, line.encode()))

    def insert_after(self, node: Node, line: str) -> None:
        """Puts a line of XML behind it.

        Args:
            node: The element.
            line: XML, one element.
        """
        _, end = self._scan(node)
        if self._document[end - 2 : end] != b"/>":
            end = self._document.index(b">", node.end) + 1
        self._edits.append((end, end, self._margin(node) + line.encode()))

    def edited(self) -> bytes:
        """The document with the replacements; of those at one place the first comes first."""
        parts, done = [], 0
        for begin, end, new in sorted(self._edits, key=lambda edit: edit[0]):
            parts += [self._document[done:begin], new]
            done = end
        return b"".join([*parts, self._document[done:]])

    def _name_end(self, node: Node) -> int:
        return node.begin + 1 + len(node.tag.encode())

    def _scan(self, node: Node) -> tuple[dict[bytes, tuple[int, int]], int]:
        """Places of the attributes' values, and of the end of the start tag."""
        places, end = {}, self._name_end(node)
        while match := _ATTRIBUTE.match(self._document, end):
            places[match[1]] = match.span(2 if match[2] is not None else 3)
            end = match.end()
        return places, self._document.index(b">", end) + 1

    def _margin(self, node: Node) -> bytes:
        """The line break and the spaces in front of it; a bare break where other text is."""
        line = self._document.rfind(b"\n", 0, node.begin) + 1
        newline = b"\r\n" if b"\r\n" in self._document else b"\n"
        before = self._document[line : node.begin]
        return newline + (before if not before.strip() else b"")


def _edit(text: XmlText, node: Node, link: Link, new: Inertial) -> None:
    """Writes what changes in a <link>."""
    origin = f'<origin xyz="{numbers_text(new.com)}"/>'
    numbers = {
        key: _number(v) for key, v in zip(INERTIA, new.inertia[UPPER], strict=True)
    }
    inertia = (
        "<inertia " + " ".join(f'{key}="{v}"' for key, v in numbers.items()) + "/>"
    )
    if not link.has_inertial:
        tags = origin, f'<mass value="{_number(new.mass)}"/>', inertia
        text.insert_child(
            node, ["<inertial>", *("  " + tag for tag in tags), "</inertial>"]
        )
        return
    (inertial,) = node.all("inertial")
    parts = {child.tag: child for child in inertial.children}
    turned = not np.array_equal(new.inertia, link.inertia)
    moved = not np.array_equal(new.com, link.com)
    if new.mass != link.mass:
        text.set(parts["mass"], "value", _number(new.mass))
    if moved and "origin" in parts:
        text.set(parts["origin"], "xyz", numbers_text(new.com))
    elif moved:
        text.insert_child(inertial, [origin])
    if not turned:
        return
    for key, identity in (("rpy", "0 0 0"), ("quat_xyzw", "0 0 0 1")):
        if "origin" in parts and key in parts["origin"].attributes:
            text.set(parts["origin"], key, identity)
    if "inertia" not in parts:
        text.insert_after(parts["mass"], inertia)
        return
    for key, value in numbers.items():
        text.set(parts["inertia"], key, value)


def numbers_text(values: Iterable[float]) -> str:
    """Numbers with spaces between them, each the shortest that is read back as the same.

    Args:
        values: Any numbers.
    """
    return " ".join(_number(value) for value in values)


def _number(value: float) -> str:
    """The shortest text that is read back as the same number."""
    return repr(float(value) + 0.0)


def correct_body(
    model: "RobotModel", mass: float, com: ArrayLike, body: int = 0
) -> dict[str, Inertial]:
    """Finds the new inertial of one link that gives a body a mass and a CoM.

    The heaviest link of the body takes the whole difference of mass and first moment, and keeps its
    inertia about its own CoM.

    Args:
        model: The robot.
        mass: kg, of the body.
        com: (3,) m, of the body, in its frame.
        body: Index of the body; by default the root.

    Returns:
        The inertial by the name of its link.

    Raises:
        UrdfError: The link's mass would not be positive.
    """
    bodies, center = model.bodies, as_array("com", com, (3,))
    links = np.flatnonzero(bodies.body_of_link == body)
    link = int(links[np.argmax(model.link_masses[links])])
    name, old = model.link_names[link], float(model.link_masses[link])
    R, p = bodies.R_body_link[link], bodies.p_body_link[link]
    r = p + R @ model.link_coms[link]
    others = float(bodies.mass[body]) - old
    m = mass - others
    if not m > 0.0:
        fix = (
            f"The body is to have {mass:.6g} kg and the links that are fixed to the link "
            f"{quote(name)} have {others:.6g} kg: correct their masses in the URDF first"
        )
        raise UrdfError(f"its mass would be {m:g} kg", f"link {quote(name)}", fix)
    c = (old * r + mass * center - bodies.first_moment[body]) / m
    return {name: Inertial(m, R.T @ (c - p), model.link_inertias[link])}
