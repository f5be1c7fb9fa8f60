"""Runs through a launch file and its includes; the result is the list of nodes to start.

As in ROS: variables are one flat set; an <include> adds its arguments to it and what the
included file declares stays set behind it; a <group> restores variables and namespace at its
end; an <arg> keeps a value that is already set.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from launcher import document, schema
from launcher.document import Element, LaunchError
from launcher.expansion import Scope, expand
from launcher.nodes import Node, ParameterBlock, check_name, join_namespace
from launcher.substitutions import Template, parse
from launcher.values import BY_YAML, parameter_value

DEEPEST_INCLUDE = 20
NAMESPACE = "ros_namespace"
CONDITIONS = {"true": True, "1": True, "false": False, "0": False}


def load(path: Path) -> Element:
    """Read a launch file and refuse it if something in it is not understood."""
    if not path.name.endswith(".xml"):
        raise LaunchError(f"{path}: only launch files in XML are understood")
    root = document.read(path)
    schema.check(root)
    return root


def nodes_of(path: Path, arguments: Mapping[str, str]) -> list[Node]:
    """The nodes that a launch file starts with these arguments, in the order of the file.

    Raises:
        LaunchError: names the file, the line, the element and what is wrong.
    """
    run = _Run(dict(arguments))
    run.launch_file(path, arguments.keys())
    return run.nodes


def required_arguments(element: Element) -> Iterator[Element]:
    """The arguments that whoever starts or includes a file must give, as ROS checks it.

    Those without a default outside of conditions; that a variable of the name is set does not
    count.
    """
    for child in element.children:
        if child.attributes.keys() & {"if", "unless"}:
            continue
        if child.tag == "group":
            yield from required_arguments(child)
        elif child.tag == "arg" and "default" not in child.attributes:
            yield child


def missing(argument: Element) -> LaunchError:
    """An exception for an argument that was not given."""
    name = argument.attributes["name"]
    description = argument.attributes.get("description", "no description")
    return argument.error(
        f"argument '{name}' ({description}) is required: give {name}:=..."
    )


class _Run:
    """State of one run through the files: variables, nodes so far, depth of includes."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables = variables
        self.nodes: list[Node] = []
        self.depth = 0
        self.actions = {
            "arg": self.arg,
            "let": self.let,
            "group": self.group,
            "include": self.include,
            "node": self.node,
            "set_env": self.set_environment,
            "push_ros_namespace": self.push_namespace,
            "push-ros-namespace": self.push_namespace,
        }

    def launch_file(self, path: Path, given: Collection[str]) -> None:
        root = load(Path(os.path.abspath(path)))
        for argument in required_arguments(root):
            if argument.attributes["name"] not in given:
                raise missing(argument)
        for element in root.children:
            self.visit(element)

    def visit(self, element: Element) -> None:
        if self.condition(element):
            self.actions[element.tag](element)

    # --- attributes ----------------------------------------------------------------------------
    def expand(self, template: Template, element: Element) -> str:
        return expand(template, Scope(self.variables, element.path.parent))

    def text(self, element: Element, attribute: str) -> str:
        try:
            return self.expand(parse(element.attributes[attribute]), element)
        except ValueError as error:
            raise schema.attribute_error(element, attribute, error) from error

    def optional(self, element: Element, attribute: str) -> str | None:
        return (
            self.text(element, attribute) if attribute in element.attributes else None
        )

    def condition(self, element: Element) -> bool:
        for attribute, wanted in (("if", True), ("unless", False)):
            text = self.optional(element, attribute)
            if text is None:
                continue
            value = CONDITIONS.get(text.strip().lower())
            if value is None:
                error = ValueError(f"'{text}' is not a condition: true, false, 1 or 0")
                raise schema.attribute_error(element, attribute, error)
            return value is wanted
        return True

    # --- elements ------------------------------------------------------------------------------
    def arg(self, element: Element) -> None:
        name = element.attributes["name"]
        if name in self.variables:
            return
        default = self.optional(element, "default")
        if default is None:
            raise missing(element)
        self.variables[name] = default

    def let(self, element: Element) -> None:
        self.variables[self.text(element, "name")] = self.text(element, "value")

    def group(self, element: Element) -> None:
        outside = dict(self.variables)
        for child in element.children:
            self.visit(child)
        self.variables = outside

    def include(self, element: Element) -> None:
        path = Path(self.text(element, "file"))
        if self.depth == DEEPEST_INCLUDE:
            raise element.error(
                f"more than {DEEPEST_INCLUDE} files deep: do they include each other?"
            )
        for child in element.children:
            self.let(child)
        self.depth += 1
        self.launch_file(path, [child.attributes["name"] for child in element.children])
        self.depth -= 1

    def push_namespace(self, element: Element) -> None:
        try:
            joined = join_namespace(
                self.variables.get(NAMESPACE), self.text(element, "namespace")
            )
        except ValueError as error:
            raise schema.attribute_error(element, "namespace", error) from error
        self.variables[NAMESPACE] = joined or "/"

    def set_environment(self, element: Element) -> None:
        name = element.attributes["name"]
        raise element.error(
            f"{name} is for ROS 2 with sros2, which is not here: start the file by `ros2 launch` "
            "there, or without secure:=true"
        )

    def node(self, element: Element) -> None:
        name, namespace = (
            self.optional(element, "name"),
            self.optional(element, "namespace"),
        )
        try:
            node = Node(
                package=self.text(element, "pkg"),
                executable=self.text(element, "exec"),
                name=None if name is None else check_name(name, "name"),
                namespace=join_namespace(self.variables.get(NAMESPACE), namespace),
                arguments=self.words(element, "args"),
                ros_arguments=self.words(element, "ros_args"),
            )
        except ValueError as error:
            raise element.error(str(error)) from error
        for child in element.children:
            if child.tag == "remap":
                node.remaps.append((self.text(child, "from"), self.text(child, "to")))
            else:
                node.add_parameters(self.parameter(child))
        self.nodes.append(node)

    def words(self, element: Element, attribute: str) -> list[str]:
        """Words of a command line; what a substitution gives is never split.

        Raises:
            ValueError: a quote is not closed.
        """
        words: list[str] = []
        joins = False  # whether the next word continues the last one
        for part in parse(element.attributes.get(attribute, "")):
            if isinstance(part, str):
                fresh = shlex.split(part)
                joins = joins and not part[0].isspace()
            else:
                fresh = [self.expand((part,), element)]
            if joins and fresh:
                words[-1] += fresh.pop(0)
            words += fresh
            joins = not (isinstance(part, str) and part[-1].isspace())
        return words

    def parameter(self, element: Element) -> ParameterBlock:
        """One <param>: a name and its value, or the path of a YAML file."""
        if "from" in element.attributes:
            path = Path(self.text(element, "from"))
            if not path.is_file():
                raise element.error(f"parameter file {path} does not exist")
            return path.absolute()
        type_name = element.attributes.get("type", BY_YAML)
        try:
            value = parameter_value(
                element.attributes["value"],
                type_name,
                lambda t: self.expand(t, element),
            )
        except ValueError as error:
            raise schema.attribute_error(element, "value", error) from error
        return {self.text(element, "name"): value}
