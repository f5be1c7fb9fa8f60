"""Parameters of a node as one frozen dataclass: default, description, bounds, live or read-only.

    @dataclass(frozen=True)
    class Noise:
        position: float = parameter(0.0, "standard deviation of joint positions, rad", (0.0,
            1.0))

    @dataclass(frozen=True)
    class Parameters(RobotParameters, JointTimeout):
        base: str = parameter("auto", "kind of base", choices=("auto", "floating", "fixed"))
        gain: float = live_parameter(4.0, "1/s, feedback gain", (0.01, 100.0))
        noise: Noise = field(default_factory=Noise)  # parameters noise.position, ...

    parameters = declare(node, Parameters)

Types: bool, int, float, str, tuple[str, ...], tuple[float, ...]. A whole number is accepted as a
float, a single string as a list of one, and both [] and [''] as the empty list (an empty list has
no type in ROS). Of a field like `float | None = parameter(None, ...)` 0.0 stands for None. Fields
of another kind (not `parameter(...)`, not a dataclass of such) are no parameters and keep their
default.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar, get_type_hints

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from com_model.exceptions import ComModelError
from com_model.parameters import live_parameter, parameter
from com_ros.exceptions import ParameterError
from com_ros.input_limits import InputLimits

T = TypeVar("T")

_TYPE_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    tuple[str, ...]: "a list of strings",
    tuple[float, ...]: "a list of numbers",
}


# --- parameters that several nodes have --------------------------------------------------------
@dataclass(frozen=True)
class RobotParameters:
    """Parameters of a node that works on one robot: its model and the limits of its sensors."""

    robot_description: str = parameter(
        "", "the robot's URDF; empty: wait for the topic"
    )
    robot_config: str = parameter("", "path of the robot's configuration (YAML)")
    input_limits: InputLimits = field(default_factory=InputLimits)


@dataclass(frozen=True)
class JointTimeout:
    """Parameter: how long a node works without joint_states."""

    joint_timeout: float = live_parameter(
        0.2,
        "s, time without joint_states after which they are stale; largest time between parts of "
        "the joints",
        (0.001, 60.0),
    )


@dataclass(frozen=True)
class WrenchTimeout:
    """Parameter: how long a node works without the feet's wrenches."""

    wrench_timeout: float = live_parameter(
        0.2,
        "s, largest time between a foot's wrench and joint_states; beyond, the wrench is stale",
        (0.001, 60.0),
    )


@dataclass(frozen=True)
class WrenchSource:
    """Parameter: whether the wrenches of the feet come from sensors or from foot_forces."""

    wrenches: str = parameter(
        "measured",
        "wrenches of the feet: of their sensors, or of foot_forces on <topic>_estimate",
        choices=("measured", "estimated"),
    )


@dataclass(frozen=True)
class ImuTimeout:
    """Parameter: how long a node works without the IMU."""

    imu_timeout: float = live_parameter(
        0.2,
        "s, largest time between imu and joint_states; beyond, the reading is stale",
        (0.001, 60.0),
    )


@dataclass(frozen=True)
class AssumedJoints:
    """Parameters: joints that no driver reports, and the positions that are assumed for them."""

    assumed_joints: tuple[str, ...] = parameter(
        (), "joints that joint_states does not carry ..."
    )
    assumed_positions: tuple[float, ...] = parameter(
        (), "... and their positions, rad or m"
    )

    def assumed(self) -> dict[str, float]:
        """Returns the assumed positions by joint, rad or m.

        Raises:
            ParameterError: the two lists have different lengths.
        """
        if len(self.assumed_joints) != len(self.assumed_positions):
            raise ParameterError(
                "assumed_positions",
                list(self.assumed_positions),
                f"give {len(self.assumed_joints)}, one for each of assumed_joints",
            )
        return dict(zip(self.assumed_joints, self.assumed_positions, strict=True))


@dataclass(frozen=True)
class FramePrefix:
    """Parameter: prefix that keeps the frames of several robots in one tree apart."""

    frame_prefix: str = parameter(
        "", 'prefix of every published frame name, e.g. "robot1/"'
    )


@dataclass(frozen=True)
class SensorParameters(
    RobotParameters, JointTimeout, WrenchTimeout, ImuTimeout, FramePrefix
):
    """Parameters of a node that receives joint_states, wrenches and imu, and publishes frames."""


# --- declaring ---------------------------------------------------------------------------------
def declare(
    node: Node,
    cls: type[T],
    on_change: Callable[[T], None] | None = None,
    defaults: T | None = None,
) -> T:
    """Declares every parameter of a frozen dataclass on a node, and reads them.

    Args:
        node: that gets the parameters.
        cls: the dataclass; see the module's docstring.
        on_change: called with the new values when live parameters are set. It may refuse them by
            a ComModelError or ValueError, whose text is the reason: the old ones stay.
        defaults: values of parameters that are not given, e.g. from a file; those of cls if
            None.

    Returns:
        The dataclass with the node's values.

    Raises:
        ParameterError: a given value has the wrong type or is out of bounds.
        TypeError: a field has a type that ROS has no parameter for.
    """
    base = cls() if defaults is None else defaults
    specs = list(_specs(base))
    values = {spec.name: _declare_one(node, spec) for spec in specs}
    if on_change is not None:
        _follow_changes(node, base, specs, values, on_change)
    return _with_values(base, values)


@dataclass(frozen=True)
class _Spec:
    """One parameter, as its field describes it.

    Attributes:
        name: full name, with the names of nested dataclasses before it.
        type: of the field.
        default: value of the field; None: unset, which 0, 0.0 or "" stands for.
        description: unit and meaning.
        bounds: least and largest value, both allowed; None: any.
        choices: the texts that it may be; any where there are none.
        live: whether it may change while the node runs.
    """

    name: str
    type: Any
    default: Any
    description: str
    bounds: tuple[float, float] | None
    choices: tuple[str, ...]
    live: bool

    def convert(self, value: Any) -> Any:
        """Converts a value given by ROS to the field's type.

        Args:
            value: as rclpy returns it.

        Raises:
            ParameterError: it has the wrong type or is out of bounds.
        """
        result = self._typed(value)
        if self.choices and result not in self.choices:
            raise ParameterError(
                self.name, value, f"give one of {', '.join(self.choices)}"
            )
        if self.bounds is not None:
            low, high = self.bounds
            numbers = result if isinstance(result, tuple) else (result,)
            if not all(low <= number <= high for number in numbers):
                raise ParameterError(
                    self.name, value, f"give a value from {low:g} to {high:g}"
                )
        return None if self.default is None and not result else result

    def _typed(self, value: Any) -> Any:
        if self.type is bool and isinstance(value, bool):
            return value
        if self.type is str and isinstance(value, str):
            return value
        if self.type is int and _is_number(value) and float(value).is_integer():
            return int(value)
        if self.type is float and _is_number(value):
            return float(value)
        single = value is None or isinstance(value, (str, bool, int, float))
        items = (value,) if single else tuple(value)
        if self.type == tuple[str, ...] and all(
            isinstance(item, str) for item in items
        ):
            return tuple(item for item in items if item)
        if self.type == tuple[float, ...] and all(map(_is_number, items)):
            return tuple(float(item) for item in items)
        raise ParameterError(self.name, value, f"give {_TYPE_NAMES[self.type]}")

    def descriptor(self, *, dynamic: bool = False) -> ParameterDescriptor:
        """Returns what `ros2 param describe` shows.

        Args:
            dynamic: declare it without a fixed type.
        """
        description = self.description
        if self.choices:
            description += f" ({' | '.join(self.choices)})"
        result = ParameterDescriptor(
            name=self.name,
            description=description,
            read_only=not self.live,
            dynamic_typing=dynamic,
        )
        if self.bounds is not None and self.type in (float, tuple[float, ...]):
            low, high = map(float, self.bounds)
            result.floating_point_range = [
                FloatingPointRange(from_value=low, to_value=high)
            ]
        if self.bounds is not None and self.type is int:
            first, last = map(int, self.bounds)
            result.integer_range = [
                IntegerRange(from_value=first, to_value=last, step=1)
            ]
        return result


def _specs(base: Any, prefix: str = "") -> Iterator[_Spec]:
    hints = get_type_hints(type(base))
    for item in fields(base):
        name, hint, default = (
            prefix + item.name,
            hints[item.name],
            getattr(base, item.name),
        )
        if "description" not in item.metadata:
            if is_dataclass(default):
                yield from _specs(default, prefix=f"{name}.")
            continue
        kind = next((kind for kind in _TYPE_NAMES if hint in (kind, kind | None)), None)
        if kind is None:
            raise TypeError(f"parameter '{name}': no ROS parameter has the type {hint}")
        yield _Spec(name=name, type=kind, default=default, **item.metadata)


def _with_values(base: T, values: dict[str, Any], prefix: str = "") -> T:
    """The same dataclass with other values of its parameters."""
    changes = {}
    for item in fields(base):  # type: ignore[arg-type]
        name, value = prefix + item.name, getattr(base, item.name)
        if name in values:
            changes[item.name] = values[name]
        elif is_dataclass(value):
            changes[item.name] = _with_values(value, values, f"{name}.")
    return replace(base, **changes)  # type: ignore[type-var]


def _declare_one(node: Node, spec: _Spec) -> Any:
    # First with any type, to read the user's value; then again, with the converted value.
    given = node.declare_parameter(
        spec.name, _to_ros(spec.default), ParameterDescriptor(dynamic_typing=True)
    ).value
    node.undeclare_parameter(spec.name)
    found = spec.default if given is None else given
    value = None if found is None else spec.convert(found)
    ros_value = spec.type() if value is None else _to_ros(value)
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
    base: T,
    specs: list[_Spec],
    values: dict[str, Any],
    on_change: Callable[[T], None],
) -> None:
    by_name = {spec.name: spec for spec in specs}

    def change(changed: list[Parameter]) -> SetParametersResult:
        mine = [item for item in changed if item.name in by_name]
        try:
            new = {item.name: by_name[item.name].convert(item.value) for item in mine}
            if new:
                on_change(_with_values(base, values | new))
        except (ComModelError, ValueError) as error:
            return SetParametersResult(successful=False, reason=str(error))
        values.update(new)
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(change)
