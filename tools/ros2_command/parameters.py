"""ros2 param and ros2 node."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

import yaml
from rcl_interfaces.msg import Parameter, ParameterType
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    ListParameters,
    SetParameters,
)
from rclpy.parameter import get_parameter_value, parameter_value_to_python

from ros2_command.session import FOUND_S, CommandError, Session, absolute

ANSWER_S = 10.0
WORDS = {
    ParameterType.PARAMETER_BOOL: ("Boolean value is:", "boolean"),
    ParameterType.PARAMETER_INTEGER: ("Integer value is:", "integer"),
    ParameterType.PARAMETER_DOUBLE: ("Double value is:", "double"),
    ParameterType.PARAMETER_STRING: ("String value is:", "string"),
    ParameterType.PARAMETER_BYTE_ARRAY: ("Byte values are:", "byte array"),
    ParameterType.PARAMETER_BOOL_ARRAY: ("Boolean values are:", "boolean array"),
    ParameterType.PARAMETER_INTEGER_ARRAY: ("Integer values are:", "integer array"),
    ParameterType.PARAMETER_DOUBLE_ARRAY: ("Double values are:", "double array"),
    ParameterType.PARAMETER_STRING_ARRAY: ("String values are:", "string array"),
}


def show_nodes(_: argparse.Namespace) -> None:
    """Ros2 node list."""
    with Session() as session:
        print(*session.all_of(lambda: _nodes(session)), sep="\n")


def show_names(options: argparse.Namespace) -> None:
    """Ros2 param list."""
    with Session() as session:
        node = options.node and absolute(options.node)
        for name in [node] if node else session.all_of(lambda: _nodes(session)):
            if not node:
                print(f"{name}:")
            print(*(f"  {parameter}" for parameter in _names(session, name)), sep="\n")


def show_value(options: argparse.Namespace) -> None:
    """Ros2 param get."""
    with Session() as session:
        (value,) = _values(session, absolute(options.node), [options.parameter])
    if value.type not in WORDS:
        raise CommandError("Parameter not set.")
    found = parameter_value_to_python(value)
    print(
        WORDS[value.type][0],
        found if isinstance(found, (str, bool, int, float)) else [*found],
    )


def change(options: argparse.Namespace) -> None:
    """Ros2 param set."""
    value = get_parameter_value(options.value)
    request = SetParameters.Request(
        parameters=[Parameter(name=options.parameter, value=value)]
    )
    with Session() as session:
        answer = _ask(session, absolute(options.node), SetParameters, request)
    (result,) = answer.results
    if not result.successful:
        raise CommandError(f"Setting parameter failed: {result.reason}")
    print("Set parameter successful" + (f": {result.reason}" if result.reason else ""))


def describe(options: argparse.Namespace) -> None:
    """Ros2 param describe."""
    request = DescribeParameters.Request(names=options.parameters)
    with Session() as session:
        answer = _ask(session, absolute(options.node), DescribeParameters, request)
    if not answer.descriptors:
        raise CommandError(
            f"{options.node} has no parameter {', '.join(options.parameters)}"
        )
    for found in answer.descriptors:
        print(
            f"Parameter name: {found.name}\n  Type: {WORDS.get(found.type, ('', 'not set'))[1]}"
        )
        print(f"  Description: {found.description}\n  Constraints:")
        for span in (*found.floating_point_range, *found.integer_range):
            print(f"    Min value: {span.from_value}\n    Max value: {span.to_value}")
        if found.read_only:
            print("    Read only: true")


def dump(options: argparse.Namespace) -> None:
    """Ros2 param dump."""
    node = absolute(options.node)
    with Session() as session:
        names = _names(session, node)
        values = map(parameter_value_to_python, _values(session, node, names))
    pairs = {
        name: value if isinstance(value, (str, bool, int, float)) else [*value]
        for name, value in zip(names, values, strict=True)
        if value is not None
    }
    print(yaml.safe_dump({node: {"ros__parameters": pairs}}), end="")


def _nodes(session: Session) -> list[str]:
    pairs = session.node.get_node_names_and_namespaces()
    return sorted(
        f"{space.rstrip('/')}/{name}"
        for name, space in pairs
        if not name.startswith("_")
    )


def _names(session: Session, node: str) -> list[str]:
    return sorted(
        _ask(session, node, ListParameters, ListParameters.Request()).result.names
    )


def _values(session: Session, node: str, names: Iterable[str]) -> Any:
    request = GetParameters.Request(names=list(names))
    values = _ask(session, node, GetParameters, request).values
    if not values:
        raise CommandError("Parameter not set.")
    return values


def _ask(session: Session, node: str, kind: Any, request: Any) -> Any:
    """Call one of the services that each node has for its parameters."""
    last = {ListParameters: "list", GetParameters: "get", SetParameters: "set"}
    client = session.node.create_client(
        kind, f"{node}/{last.get(kind, 'describe')}_parameters"
    )
    if not session.until(client.service_is_ready, FOUND_S):
        raise CommandError(
            f"Node not found: {node}. There are: {', '.join(_nodes(session))}"
        )
    return session.result(client.call_async(request), node, ANSWER_S)
