"""Parameters of a node as one frozen dataclass: default, description, bounds, read-only flag.

    @dataclass(frozen=True)
    class Noise:
        position: float = parameter(0.0, "standard deviation of joint positions, rad", (0.0, 1.0))

    @dataclass(frozen=True)
    class Parameters:
        feet: tuple[str, ...] = parameter((), "sole frames")
        base: str = parameter("auto", "kind of base", choices=("auto", "floating", "fixed"))
        noise: Noise = field(default_factory=Noise)  # parameters noise.position, ...

    parameters = declare(node, Parameters)

Types: bool, int, float, str, tuple[str, ...], tuple[float, ...]. A whole number is taken for a
float, a single string for a list of one, and both [] and [''] are the empty list (an empty list
has no type in ROS).
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, TypeVar, get_type_hints

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from com_ros.exceptions import ParameterError

T = TypeVar("T")

_TYPE_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    tuple[str, ...]: "a list of strings",
    tuple[float, ...]: "a list of numbers",
}


def parameter(
    default: Any,
    description: str,
    bounds: tuple[float, float] | None = None,
    *,
    choices: tuple[str, ...] = (),
    read_only: bool = True,
) -> Any:
    """Field of a parameter dataclass.

    Args:
        default: value when none is given.
        description: purpose and unit, as `ros2 param describe` shows it.
        bounds: smallest and largest value, both allowed; for numbers and lists of numbers.
        choices: the valid strings, if only some are.
        read_only: False for a parameter that may change while the node runs.
    """
    metadata = {
        "description": description,
        "bounds": bounds,
        "choices": choices,
        "read_only": read_only,
    }
    return field(default=default, metadata=metadata)


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


@dataclass(frozen=True)
class _Spec:
    """One parameter: its full name and what its field says."""

    name: str
    type: Any
    default: Any
    description: str
    bounds: tuple[float, float] | None
    choices: tuple[str, ...]
    read_only: bool

    def convert(self, value: Any) -> Any:
        """Value as given by ROS -> value of the field's type.

        Raises:
            ParameterError: wrong type, out of bounds, or not one of the choices.
        """
        result = self._typed(value)
        if self.choices and result not in self.choices:
            raise ParameterError(self.name, value, f"give one of {', '.join(self.choices)}")
        if self.bounds is not None:
            low, high = self.bounds
            numbers = result if isinstance(result, tuple) else (result,)
            if not all(low <= number <= high for number in numbers):
                raise ParameterError(self.name, value, f"give a value from {low:g} to {high:g}")
        return result

    def _typed(self, value: Any) -> Any:
        if self.type is bool and isinstance(value, bool):
            return value
        if self.type is str and isinstance(value, str):
            return value
        if self.type is int and _is_number(value) and float(value).is_integer():
            return int(value)
        if self.type is float and _is_number(value):
            return float(value)
        items = (value,) if isinstance(value, (str, bool, int, float)) else tuple(value)
        if self.type == tuple[str, ...] and all(isinstance(item, str) for item in items):
            return tuple(item for item in items if item)
        if self.type == tuple[float, ...] and all(map(_is_number, items)):
            return tuple(float(item) for item in items)
        raise ParameterError(self.name, value, f"give {_TYPE_NAMES[self.type]}")

    def descriptor(self, *, dynamic: bool = False) -> ParameterDescriptor:
        """What `ros2 param describe` shows."""
        description = self.description
        if self.choices:
            description += f" ({' | '.join(self.choices)})"
        result = ParameterDescriptor(
            name=self.name,
            description=description,
            read_only=self.read_only,
            dynamic_typing=dynamic,
        )
        if self.bounds is not None and self.type is float:
            low, high = map(float, self.bounds)
            result.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
        if self.bounds is not None and self.type is int:
            first, last = map(int, self.bounds)
            result.integer_range = [IntegerRange(from_value=first, to_value=last, step=1)]
        return result


def declare(node: Node, cls: type[T], on_change: Callable[[T], None] | None = None) -> T:
    """Declare every parameter of a dataclass on a node and read them.

    Args:
        node: the node.
        cls: frozen dataclass whose fields are `parameter(...)`, or such dataclasses.
        on_change: called with the new values after a parameter that is not read-only changed.

    Returns:
        The values.

    Raises:
        ParameterError: when a given value has the wrong type or is out of bounds.
        TypeError: when a field of the dataclass has a type that ROS has no parameter for.
    """
    specs = list(_specs(cls))
    values = {spec.name: _declare_one(node, spec) for spec in specs}
    if on_change is not None:
        _follow_changes(node, cls, specs, values, on_change)
    return _build(cls, values)


def _specs(cls: type, prefix: str = "") -> Iterator[_Spec]:
    hints = get_type_hints(cls)
    for item in fields(cls):
        name, kind = prefix + item.name, hints[item.name]
        if not item.metadata:
            yield from _specs(kind, prefix=f"{name}.")
            continue
        if kind not in _TYPE_NAMES:
            raise TypeError(f"parameter '{name}': no ROS parameter has the type {kind}")
        yield _Spec(name=name, type=kind, default=item.default, **item.metadata)


def _build(cls: type[T], values: dict[str, Any], prefix: str = "") -> T:
    hints = get_type_hints(cls)
    arguments = {
        item.name: values[prefix + item.name]
        if item.metadata
        else _build(hints[item.name], values, f"{prefix}{item.name}.")
        for item in fields(cls)  # type: ignore[arg-type]
    }
    return cls(**arguments)


def _declare_one(node: Node, spec: _Spec) -> Any:
    # First with any type, to read what the user gave; then for good, with the converted value.
    given = node.declare_parameter(
        spec.name, _to_ros(spec.default), ParameterDescriptor(dynamic_typing=True)
    ).value
    node.undeclare_parameter(spec.name)
    value = spec.convert(spec.default if given is None else given)
    ros_value = _to_ros(value)
    # An empty list has no type of its own, so it can only be declared dynamically typed.
    descriptor = spec.descriptor(dynamic=ros_value == [])
    node.declare_parameter(spec.name, ros_value, descriptor, ignore_override=True)
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _to_ros(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _follow_changes(
    node: Node,
    cls: type[T],
    specs: list[_Spec],
    values: dict[str, Any],
    on_change: Callable[[T], None],
) -> None:
    by_name = {spec.name: spec for spec in specs}

    def check(changed: list[Parameter]) -> SetParametersResult:
        try:
            for item in changed:
                if item.name in by_name:
                    by_name[item.name].convert(item.value)
        except ParameterError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def apply(changed: list[Parameter]) -> None:
        mine = [item for item in changed if item.name in by_name]
        values.update({item.name: by_name[item.name].convert(item.value) for item in mine})
        if mine:
            on_change(_build(cls, values))

    node.add_on_set_parameters_callback(check)
    node.add_post_set_parameters_callback(apply)
