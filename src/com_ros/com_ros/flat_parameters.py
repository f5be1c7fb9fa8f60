"""Parameters from a plain mapping of names to defaults, for options that are such a mapping."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass, make_dataclass
from typing import Any, get_type_hints

from rclpy.node import Node

from com_ros.parameters import declare, parameter

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


def parameters_of(options: type) -> type:
    """Dataclass of parameters for the options of an object that knows nothing of parameters.

    Args:
        options: a dataclass. Its fields that are bool, int, float or str become parameters of
            that name, type and default; what its docstring says of them under "Attributes:"
            describes them. A number may not be negative.

    Returns:
        A dataclass for `declare`, or for a field of one.
    """
    hints = get_type_hints(options)
    said = attributes_of(inspect.getdoc(options) or "")
    made = []
    for item in fields(options):
        kind = hints[item.name]
        if kind in (bool, int, float, str):
            bounds = (0, 10**9) if kind is int else (0.0, 1e9) if kind is float else None
            made.append((item.name, kind, parameter(item.default, said.get(item.name, ""), bounds)))
    return make_dataclass(f"{options.__name__}Parameters", made, frozen=True)


def attributes_of(text: str) -> dict[str, str]:
    """What a docstring says of each attribute, on one line."""
    found: dict[str, str] = {}
    name = ""
    for line in text.partition("Attributes:\n")[2].splitlines():
        if not line.startswith("    "):
            break
        if not line.startswith("     "):
            name, _, line = line.strip().partition(":")
        found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return found
