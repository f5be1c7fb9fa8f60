"""Parameters from a plain mapping of names to defaults, for options that are such a mapping."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass, make_dataclass
from typing import Any

from rclpy.node import Node

from com_ros.parameters import attributes_of, declare, parameter

Value = bool | int | float | str


def declare_flat(
    node: Node, defaults: Mapping[str, Value], descriptions: Mapping[str, str]
) -> dict[str, Value]:
    """Declares a parameter for each entry and reads them.

    Args:
        node: the node.
        defaults: by name; "." parts a name into sections. The types are those of the defaults.
        descriptions: purpose and unit by name, for those that have one.

    Returns:
        The values by name.

    Raises:
        ParameterError: a given value has the wrong type.
    """
    tree: dict[str, Any] = {}
    for name, default in defaults.items():
        *sections, last = name.split(".")
        branch = tree
        for section in sections:
            branch = branch.setdefault(section, {})
        branch[last] = parameter(default, descriptions.get(name, ""))
        branch[last].type = type(default)
    return _flat(declare(node, _dataclass("Flat", tree)))


def descriptions_of(options: type) -> dict[str, str]:
    """What the docstring of a dataclass says of its attributes, by name."""
    return attributes_of(inspect.getdoc(options) or "")


def _dataclass(name: str, tree: Mapping[str, Any]) -> type:
    made: list[tuple[str, type, Any]] = []
    for key, item in tree.items():
        if isinstance(item, dict):
            kind = _dataclass(key, item)
            made.append((key, kind, field(default_factory=kind)))
        else:
            made.append((key, item.type, item))
    return make_dataclass(name, made, frozen=True)


def _flat(values: Any, prefix: str = "") -> dict[str, Value]:
    found: dict[str, Value] = {}
    for item in fields(values):
        value = getattr(values, item.name)
        if is_dataclass(value):
            found |= _flat(value, f"{prefix}{item.name}.")
        else:
            found[prefix + item.name] = value
    return found
