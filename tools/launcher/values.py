"""Types of parameter values, by the rules of launch_ros.

A value with a type is converted to it; without one YAML decides, so that type="str" is the way
to keep "1" a text. Where launch_ros looks at a value before it expands the substitutions in it
(lists, quotes), a substitution is refused instead of being given a meaning of its own here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

from launcher.substitutions import Template, parse

SCALARS: dict[str, type] = {"str": str, "bool": bool, "int": int, "float": float}
LISTS: dict[str, type] = {f"list_of_{name}": scalar for name, scalar in SCALARS.items()}
BY_YAML = "yaml"
TYPES = (*SCALARS, *LISTS, BY_YAML)

Value = Any  # bool, int, float, str or a list of one of them


def check_value(text: str, type_name: str) -> None:
    """Refuse a value that cannot be right whatever its substitutions give.

    Args:
        text: the attribute as written, with substitutions.
        type_name: one of TYPES; BY_YAML where the file gives no type.

    Raises:
        ValueError: the type is not known, the text is not of that type, or a substitution
            stands inside a list or quotes.
    """
    if type_name not in TYPES:
        raise ValueError(f"type '{type_name}' is not known; known: {', '.join(TYPES)}")
    if _is_plain(parse(text)):
        _convert(text, type_name)
    elif type_name in LISTS:
        raise ValueError(
            f"type '{type_name}' takes no substitution: leave the type away"
        )
    elif type_name in ("bool", BY_YAML) and _yaml(text) != text:
        raise ValueError(
            "a substitution inside a list or quotes: make it the whole value"
        )


def parameter_value(
    text: str, type_name: str, expand: Callable[[Template], str]
) -> Value:
    """Value of a parameter that has passed check_value.

    Args:
        text: the attribute as written, with substitutions.
        type_name: one of TYPES; BY_YAML where the file gives no type.
        expand: gives the value of a parsed text.

    Raises:
        ValueError: the expanded text is not of that type.
    """
    template = parse(text)
    if _is_plain(template):
        return _without_escapes(_convert(text, type_name))
    return _convert(expand(template), type_name)


def _is_plain(template: Template) -> bool:
    """Whether a text has no substitutions."""
    return all(isinstance(part, str) for part in template)


def _convert(text: str, type_name: str) -> Value:
    """Convert a text to a type."""
    try:
        if type_name == "str" or (type_name == BY_YAML and not text):
            return text
        if type_name in ("int", "float"):
            return SCALARS[type_name](text)
        if type_name == "bool":
            return _scalar(_yaml({"0": "false", "1": "true"}.get(text, text)), bool)
        value = _yaml(text)
        if isinstance(value, list):
            return [
                _scalar(item, LISTS.get(type_name, type(value[0]))) for item in value
            ]
        if type_name in LISTS:
            raise ValueError
        return _scalar(value, type(value))
    except ValueError:
        raise ValueError(f"{_short(text)} is not of type '{type_name}'") from None


def _scalar(value: object, wanted: type) -> Value:
    """The value if it is a scalar of exactly the wanted type."""
    if type(value) is not wanted or wanted not in SCALARS.values():
        raise ValueError
    return value


def _yaml(text: str) -> object:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(
            f'{_short(text)} is not YAML (type="str" makes it a text)'
        ) from error


def _without_escapes(value: Value) -> Value:
    """Take the backslashes out of the texts in a value, as in every other attribute."""
    if isinstance(value, list):
        return [_without_escapes(item) for item in value]
    return (
        "".join(str(part) for part in parse(value)) if isinstance(value, str) else value
    )


def _short(text: str, length: int = 60) -> str:
    return repr(text if len(text) <= length else text[:length] + "...")
