"""Fields of a frozen dataclass that describe themselves: unit, bounds, valid choices.

    @dataclass(frozen=True)
    class FilterOptions:
        bandwidth: float = live_parameter(250.0, "rad/s, of the low-pass filter", (0.1, 1e4))

The options of an estimator and the parameters of the node that offers them are the same class:
com_ros.parameters declares it on a node.
"""

from collections.abc import Callable
from dataclasses import field, fields
from functools import partial
from math import isfinite
from typing import Any

NOT_NEGATIVE = (0.0, 1e9)  # bounds of a number that is 0 or more, and finite


def parameter(
    default: Any,
    description: str,
    bounds: tuple[float, float] | None = None,
    *,
    choices: tuple[str, ...] = (),
    live: bool = False,
) -> Any:
    """Makes a field of options.

    Args:
        default: Its value where nothing is given.
        description: Text for `ros2 param describe`: the unit, and what it is.
        bounds: Least and largest value, both allowed; None: any.
        choices: The texts that it may be; any where there are none.
        live: Whether it may change while the node runs.

    Returns:
        The dataclass field.
    """
    metadata = {
        "description": description,
        "bounds": bounds,
        "choices": choices,
        "live": live,
    }
    return field(default=default, metadata=metadata)


live_parameter = partial(parameter, live=True)
"""Like `parameter`, of one that may change while the node runs."""


def check_options(
    options: Any, error: Callable[[str], Exception], prefix: str = ""
) -> None:
    """Checks the numbers of some options against their bounds, and texts against their choices.

    A number is finite unless its default is not.

    Args:
        options: A dataclass whose fields are made by `parameter`.
        error: Type of the error to raise.
        prefix: What stands in front of the fields' names in messages, "fit." for example.
    """
    for item in fields(options):
        value, bounds = getattr(options, item.name), item.metadata.get("bounds")
        choices, name = item.metadata.get("choices"), prefix + item.name
        if choices and value not in choices:
            raise error(f"{name} is {value!r}: give {' or '.join(choices)}")
        if bounds is None:
            continue
        low, high = bounds
        kind = int if isinstance(item.default, int) else (int, float)
        if not all(
            isinstance(v, kind)
            and (isfinite(v) or v == item.default)
            and low <= v <= high
            for v in (value if isinstance(value, tuple) else (value,))
        ):
            number = "a whole number" if kind is int else "a number"
            fix = (
                f"{number} from {low:g} to {high:g}"
                if isfinite(low)
                else "a finite number"
            )
            raise error(f"{name} is {value}: give {fix}")
