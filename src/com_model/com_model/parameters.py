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
    """Field of options: text for `ros2 param describe`, bounds (both allowed), live or not."""
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
    """Raises an error where a number of some options is out of its bounds, or a choice is none.

    A number is finite unless its default is not.
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
