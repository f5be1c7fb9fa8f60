"""Fields of a frozen dataclass that describe themselves: unit, bounds, valid choices.

    @dataclass(frozen=True)
    class FilterOptions:
        bandwidth: float = live_parameter(250.0, "rad/s, of the low-pass filter", (0.1, 1e4))

The options of an estimator and the parameters of the node that offers them are the same class:
com_ros.parameters declares it on a node.
"""

from dataclasses import field
from functools import partial
from typing import Any

NOT_NEGATIVE = (0.0, 1e9)
"""Bounds of a number that is 0 or more, and finite."""


def parameter(
    default: Any,
    description: str,
    bounds: tuple[float, float] | None = None,
    *,
    choices: tuple[str, ...] = (),
    live: bool = False,
) -> Any:
    """Field of a dataclass of options or parameters.

    Args:
        description: purpose and unit, as `ros2 param describe` shows it.
        bounds: smallest and largest value, both allowed; for numbers and lists of numbers.
        choices: the valid strings, if only some are.
        live: a node's parameter may change while it runs; else it is read-only.
    """
    metadata = {"description": description, "bounds": bounds, "choices": choices, "live": live}
    return field(default=default, metadata=metadata)


live_parameter = partial(parameter, live=True)
"""Like `parameter`, of one that may change while the node runs."""
