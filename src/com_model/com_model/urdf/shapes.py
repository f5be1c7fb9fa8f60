"""The room that a link's primitive shapes take up, as far as an audit needs it."""

from __future__ import annotations

import math

import numpy as np

from com_model.arrays import Array
from com_model.geometry.rotations import rotation_from_rpy
from com_model.urdf.parsing import SCHEMA
from com_model.urdf.xml_reader import Node, Schema

_SHAPE: Schema = {"origin": {}, "geometry": {"box": {}, "cylinder": {}, "sphere": {}}}
SCHEMA_WITH_SHAPES: Schema = {
    "robot": {**SCHEMA["robot"], "link": {**SCHEMA["robot"]["link"]}},
}
SCHEMA_WITH_SHAPES["robot"]["link"].update(visual=_SHAPE, collision=_SHAPE)


def has_shape(link: Node) -> bool:
    """Whether a link has something to see or to touch."""
    return bool(link.all("visual") or link.all("collision"))


def bounds_of(link: Node) -> tuple[Array, Array] | None:
    """Finds the box around a link's shapes.

    Args:
        link: The element, read with SCHEMA_WITH_SHAPES.

    Returns:
        Lowest and highest corner (3,) m in the link's frame; None where the link has no shape, a
        mesh, or a shape with numbers that cannot be read.
    """
    boxes = [_bounds(shape) for shape in (*link.all("visual"), *link.all("collision"))]
    known = [box for box in boxes if box is not None]
    if not known or len(known) < len(boxes):
        return None
    return np.min([low for low, _ in known], axis=0), np.max([high for _, high in known], axis=0)


def _bounds(shape: Node) -> tuple[Array, Array] | None:
    primitives = [node for geometry in shape.all("geometry") for node in geometry.children]
    try:
        half = _half_size(primitives[0])
        origin = next(iter(shape.all("origin")), None)
        center = np.zeros(3) if origin is None else _numbers(origin, "xyz", "0 0 0", 3)
        rpy = np.zeros(3) if origin is None else _numbers(origin, "rpy", "0 0 0", 3)
    except (ValueError, IndexError):
        return None
    reach = np.abs(rotation_from_rpy(rpy.tolist())) @ half
    return center - reach, center + reach


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
