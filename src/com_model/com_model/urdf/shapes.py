"""Primitive shapes of links, and the room that they take up, as far as it is needed here."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from com_model.arrays import Array
from com_model.geometry.rotations import rotation_from_rpy
from com_model.urdf.parsing import SCHEMA
from com_model.urdf.xml_reader import Node, Schema

_SHAPE: Schema = {"origin": {}, "geometry": {"box": {}, "cylinder": {}, "sphere": {}}}
_ROBOT = SCHEMA["robot"]
SCHEMA_WITH_SHAPES: Schema = {
    "robot": _ROBOT | {"link": _ROBOT["link"] | {"visual": _SHAPE, "collision": _SHAPE}}
}


class Primitive(NamedTuple):
    """A box, a ball or a cylinder, the latter two in the box around them.

    Attributes:
        tag: "box", "sphere" or "cylinder".
        center: (3,) m, in the link's frame.
        R: (3, 3) orientation in the link.
        half: (3,) m, half sizes of the box.
    """

    tag: str
    center: Array
    R: Array
    half: Array


def bounds_of(link: Node) -> tuple[Array, Array] | None:
    """Finds the box around a link's shapes.

    Args:
        link: The element, read with SCHEMA_WITH_SHAPES.

    Returns:
        Lowest and highest corner (3,) m in the link's frame; None where the link has no shape, a
        mesh, or a shape with numbers that cannot be read.
    """
    primitives = [read_primitive(shape) for shape in (*link.all("visual"), *link.all("collision"))]
    known = [shape for shape in primitives if shape is not None]
    if not known or len(known) < len(primitives):
        return None
    reach = np.array([np.abs(shape.R) @ shape.half for shape in known])
    centers = np.array([shape.center for shape in known])
    return (centers - reach).min(axis=0), (centers + reach).max(axis=0)


def read_primitive(shape: Node) -> Primitive | None:
    """Reads a <visual> or <collision>; None where it is a mesh or has numbers that are none."""
    primitives = [node for geometry in shape.all("geometry") for node in geometry.children]
    try:
        half = _half_size(primitives[0])
        origin = next(iter(shape.all("origin")), None)
        center = np.zeros(3) if origin is None else _numbers(origin, "xyz", "0 0 0", 3)
        rpy = np.zeros(3) if origin is None else _numbers(origin, "rpy", "0 0 0", 3)
    except (ValueError, IndexError):
        return None
    return Primitive(primitives[0].tag, center, rotation_from_rpy(rpy.tolist()), half)


def _half_size(primitive: Node) -> Array:
    if primitive.tag == "box":
        return _numbers(primitive, "size", "", 3) / 2
    radius = float(_numbers(primitive, "radius", "", 1)[0])
    if primitive.tag == "sphere":
        return np.full(3, radius)
    return np.array([radius, radius, float(_numbers(primitive, "length", "", 1)[0]) / 2])


def _numbers(node: Node, key: str, default: str, count: int) -> Array:
    values = [float(text) for text in node.attributes.get(key, default).split()]
    if len(values) != count or not all(math.isfinite(value) for value in values):
        raise ValueError(key)
    return np.array(values)
