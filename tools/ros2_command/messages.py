"""Types of messages, services and actions by name; messages from YAML and to YAML."""

from __future__ import annotations

import importlib
import re
import time
from typing import Any

import yaml

from ros2_command.session import CommandError

MOST = 128  # entries of an array that are printed
_MANY = re.compile(r"sequence<(?P<a>.+?)(, \d+)?>|(?P<b>.+)\[\d+\]")
_Plain = Any  # what YAML knows


def find_type(name: str, kind: str) -> Any:
    """The class of `package/kind/Name`, or `package/Name`; kind: msg, srv or action.

    Raises:
        CommandError: there is none.
    """
    package, *middle, last = name.split("/")
    if middle not in ([], [kind]) or not package or not last:
        raise CommandError(f"'{name}' is no type: expected package/{kind}/Name")
    try:
        return getattr(importlib.import_module(f"{package}.{kind}"), last)
    except (ImportError, AttributeError) as error:
        raise CommandError(
            f"the type '{package}/{kind}/{last}' is not installed"
        ) from error


def read_values(text: str) -> dict[str, Any]:
    """Fields by name, of YAML.

    Raises:
        CommandError: it is not YAML, or no mapping.
    """
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CommandError(f"'{text}' is not YAML: {error}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise CommandError(f"'{text}': expected fields by name, as in '{{data: true}}'")
    return values


def fill(message: Any, values: dict[str, Any]) -> Any:
    """Assign fields of a message by name; return it.

    Raises:
        CommandError: there is no such field, or the value does not fit.
    """
    kinds = message.get_fields_and_field_types()
    for name, value in values.items():
        if name not in kinds:
            known = ", ".join(kinds) or "none"
            raise CommandError(
                f"{type(message).__name__} has no field '{name}'; it has: {known}"
            )
        try:
            setattr(message, name, _value(kinds[name], value))
        except (AssertionError, TypeError, ValueError) as error:
            raise CommandError(
                f"field '{name}' is {kinds[name]}, not {value!r}"
            ) from error
    return message


def _value(kind: str, value: Any) -> Any:
    """A value of a field's type."""
    many = _MANY.fullmatch(kind)
    if many:
        if not isinstance(value, list):
            raise TypeError
        return [_value(many["a"] or many["b"], item) for item in value]
    if "/" in kind:
        message = find_type(kind, "msg")()
        if value in ("now", "auto"):  # of a stamp, of a header
            seconds, nanoseconds = divmod(time.time_ns(), 10**9)
            value = {"sec": seconds, "nanosec": nanoseconds}
            value = {"stamp": value} if kind == "std_msgs/Header" else value
        if not isinstance(value, dict):
            raise TypeError
        return fill(message, value)
    if kind.startswith(("string", "wstring")) and not isinstance(value, (dict, list)):
        return str(value)
    if kind == "boolean" and isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if kind in ("double", "float"):
            return float(value)
        if "int" in kind and value == int(value):
            return int(value)
    raise TypeError


def plain(value: Any, most: int = MOST) -> _Plain:
    """A message as dicts, lists and numbers; `most` entries of each array, then '...'."""
    if hasattr(value, "get_fields_and_field_types"):
        names = value.get_fields_and_field_types()
        return {name: plain(getattr(value, name), most) for name in names}
    if isinstance(value, (str, bool, int, float)):
        return value
    if hasattr(value, "tolist"):  # numpy's and array's arrays
        value = value.tolist()
    items = [plain(item, most) for item in value[:most]]
    return items if len(value) <= most else [*items, "..."]


def yaml_text(message: Any, most: int = MOST) -> str:
    """A message as YAML, in the order of its fields."""
    return str(
        yaml.safe_dump(
            plain(message, most), sort_keys=False, allow_unicode=True, width=10**6
        )
    )
