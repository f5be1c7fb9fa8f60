"""Changes the inertials of links in the text of a URDF and leaves everything else as it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from com_model.arrays import Array, as_array, freeze
from com_model.exceptions import UnknownNameError, UrdfError
from com_model.urdf.parsing import Link, parse_urdf
from com_model.urdf.xml_reader import Schema
from com_model.urdf.xml_tags import Edit, Element, apply_edits, find_elements

_ELEMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_UPPER = np.triu_indices(3)  # the same, as indices
_SYMMETRY_TOLERANCE = 1e-9  # of the largest element
_SCHEMA: Schema = {"robot": {"link": {"inertial": {"origin": {}, "mass": {}, "inertia": {}}}}}


@dataclass(frozen=True, eq=False)
class Inertial:
    """Mass, centre of mass and inertia of a rigid body; arrays are read-only.

    Attributes:
        mass: kg, not negative.
        com: (3,) m, centre of mass in the frame of the link.
        inertia: (3, 3) kg m^2, about the centre of mass, axes of the link.

    Raises:
        ShapeError: An array has another shape.
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
    """Writes new inertials of links into a URDF.

    Only the values that change are written again: a mass, the xyz of an origin, the six numbers of
    an inertia (its origin's rotation then becomes the identity). Comments, spaces, the order and
    the quotes of attributes stay; a link without inertial gets one.

    Args:
        xml: The text of the URDF.
        inertials: The new inertial by name of the link.

    Returns:
        The new text. RobotModel.from_urdf reads from it what was given.

    Raises:
        UnknownNameError: The URDF has no such link; lists those that there are.
        UrdfError: It is no URDF, it declares entities, or an inertial is none that a link can have.
    """
    urdf = parse_urdf(xml)
    links = {link.name: link for link in urdf.links}
    for name, inertial in inertials.items():
        if name not in links:
            raise UnknownNameError("link", name, list(links))
        _check(inertial, links[name].element)
    edits: list[Edit] = []
    text = xml.encode()
    (robot,) = find_elements(text, _SCHEMA)
    for element in robot.children:
        name = element.attributes["name"]
        if name in inertials:
            edits += _edits(element, links[name], inertials[name])
    return apply_edits(text, edits).decode()


def _check(inertial: Inertial, element: str) -> None:
    com, inertia = inertial.com, inertial.inertia
    values = np.concatenate([[inertial.mass], com, inertia.ravel()])
    if not np.isfinite(values).all():
        raise UrdfError("the new inertial is not finite", element, "Give finite numbers")
    if inertial.mass < 0.0:
        problem = f"the new mass is negative ({inertial.mass:g} kg)"
        raise UrdfError(problem, element, "A mass is zero or positive")
    if np.abs(inertia - inertia.T).max() > _SYMMETRY_TOLERANCE * np.abs(inertia).max():
        fix = "Give the inertia about the centre of mass, in the axes of the link"
        raise UrdfError("the new inertia is not symmetric", element, fix)


def _edits(element: Element, link: Link, new: Inertial) -> Iterator[Edit]:
    """What to change in a <link>."""
    com, inertia = new.com, new.inertia
    if not element.children:
        yield element.insert_child(_inertial_tags(new.mass, com, inertia))
        return
    (inertial,) = element.children
    tags = {child.tag: child for child in inertial.children}
    if new.mass != link.mass:
        yield tags["mass"].set("value", _text(new.mass))
    turned = not np.array_equal(inertia, link.inertia)
    moved = not np.array_equal(com, link.com)
    if "origin" in tags:
        yield from _origin_edits(tags["origin"], com if moved else None, turned=turned)
    elif moved:
        yield inertial.insert_child([_origin_tag(com)])
    if turned and "inertia" in tags:
        for key, value in zip(_ELEMENTS, inertia[_UPPER], strict=True):
            yield tags["inertia"].set(key, _text(value))
    elif turned:
        yield tags["mass"].insert_after(_inertia_tag(inertia))


def _origin_edits(origin: Element, com: Array | None, *, turned: bool) -> Iterator[Edit]:
    if com is not None:
        yield origin.set("xyz", _vector(com))
    if turned and "rpy" in origin.attributes:
        yield origin.set("rpy", "0 0 0")
    if turned and "quat_xyzw" in origin.attributes:
        yield origin.set("quat_xyzw", "0 0 0 1")


def _inertial_tags(mass: float, com: Array, inertia: Array) -> list[str]:
    lines = [_origin_tag(com), f'<mass value="{_text(mass)}"/>', _inertia_tag(inertia)]
    return ["<inertial>", *("  " + line for line in lines), "</inertial>"]


def _origin_tag(com: Array) -> str:
    return f'<origin xyz="{_vector(com)}"/>'


def _inertia_tag(inertia: Array) -> str:
    pairs = zip(_ELEMENTS, inertia[_UPPER], strict=True)
    return "<inertia " + " ".join(f'{key}="{_text(value)}"' for key, value in pairs) + "/>"


def _vector(values: Array) -> str:
    return " ".join(_text(value) for value in values)


def _text(value: float) -> str:
    """The shortest text that is read back as the same number."""
    return repr(float(value) + 0.0)
