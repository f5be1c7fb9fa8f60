"""Which elements and attributes of a launch file are understood.

The subset of ROS 2's XML front-end (launch_xml, launch_ros) that the suite's files use. What is
not listed here is refused, also inside a branch that a condition leaves out, so that a
file that starts here starts with `ros2 launch` as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from launcher.document import Element, LaunchError
from launcher.substitutions import SubstitutionError, parse
from launcher.values import BY_YAML, check_value


@dataclass(frozen=True)
class Rule:
    """What an element may hold: attributes that must, attributes that may, child -> its rule."""

    required: frozenset[str]
    optional: frozenset[str]
    children: dict[str, str]


def _rule(
    required: str = "", optional: str = "", children: dict[str, str] | None = None
) -> Rule:
    return Rule(
        frozenset(required.split()), frozenset(optional.split()), children or {}
    )


ACTIONS = {
    tag: tag
    for tag in (
        "arg",
        "let",
        "group",
        "include",
        "node",
        "push_ros_namespace",
        "push-ros-namespace",
        "set_env",
    )
}
RULES = {
    "launch": _rule(children=ACTIONS),
    "group": _rule(optional="if unless", children=ACTIONS),
    "arg": _rule("name", "default description if unless"),
    "let": _rule("name value", "if unless"),
    "include": _rule("file", "if unless", {"arg": "include/arg"}),
    "include/arg": _rule("name value"),
    "node": _rule(
        "pkg exec",
        "name namespace output args ros_args if unless",
        {"param": "param", "remap": "remap"},
    ),
    "set_env": _rule("name value", "if unless"),
    "param": _rule(optional="name value type from"),
    "remap": _rule("from to"),
    "push_ros_namespace": _rule("namespace", "if unless"),
    "push-ros-namespace": _rule("namespace", "if unless"),
}
LITERAL = {
    ("arg", "name"),
    ("arg", "description"),
    ("param", "type"),
    ("set_env", "name"),
}
PARAM_FORMS = ({"name", "value"}, {"name", "value", "type"}, {"from"})


def check(root: Element) -> None:
    """Refuse whatever in a file is not understood.

    Raises:
        LaunchError: names the element or attribute, the file and the line.
    """
    if root.tag != "launch":
        raise root.error("the root of a launch file must be <launch>")
    _check(root, "launch")


def _check(element: Element, rule_name: str) -> None:
    rule = RULES[rule_name]
    known = rule.required | rule.optional
    for name in element.attributes:
        if name not in known:
            raise element.error(
                f"attribute '{name}' is not understood; known: {_list(known)}"
            )
    missing = rule.required - element.attributes.keys()
    if missing:
        raise element.error(f"attribute {_list(missing)} is missing")
    if {"if", "unless"} <= element.attributes.keys():
        raise element.error("'if' and 'unless' exclude each other")
    if element.tag == "param" and element.attributes.keys() not in PARAM_FORMS:
        raise element.error(
            "give either name, value and optionally type, or from alone"
        )
    for name, text in element.attributes.items():
        _check_text(element, name, text)
    if "value" in element.attributes and element.tag == "param":
        _check_value(element)
    for child in element.children:
        if child.tag not in rule.children:
            known_tags = _list(rule.children) or "none"
            raise child.error(
                f"is not understood inside <{element.tag}>; known: {known_tags}"
            )
        _check(child, rule.children[child.tag])


def _check_text(element: Element, attribute: str, text: str) -> None:
    if (element.tag, attribute) in LITERAL:
        if "$(" in text or "\\" in text:
            raise element.error(
                f"attribute '{attribute}' takes no substitution and no backslash"
            )
        return
    try:
        parse(text)
    except SubstitutionError as error:
        raise attribute_error(element, attribute, error) from error


def _check_value(param: Element) -> None:
    try:
        check_value(param.attributes["value"], param.attributes.get("type", BY_YAML))
    except ValueError as error:
        raise attribute_error(param, "value", error) from error


def attribute_error(element: Element, attribute: str, error: Exception) -> LaunchError:
    """An exception that names the attribute besides the element, its file and its line."""
    return element.error(f"attribute '{attribute}': {error}")


def _list(names: frozenset[str] | dict[str, str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))
