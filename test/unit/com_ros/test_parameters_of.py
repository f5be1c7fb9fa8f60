"""Parameters out of the options of an object that knows nothing of parameters."""

from dataclasses import dataclass, field

import pytest

from com_ros.exceptions import ParameterError
from com_ros.flat_parameters import parameters_of
from com_ros.parameters import declare, parameter


@dataclass(frozen=True)
class Options:
    """Of a filter.

    Attributes:
        bandwidth: rad/s, of all
            signals.
        count: how many.
        name: what it is called.
        quick: no waiting.
        window: not a parameter.
    """

    bandwidth: float = 20.0
    count: int = 3
    name: str = "x"
    quick: bool = False
    window: tuple = ()


FilterParameters = parameters_of(Options)


@dataclass(frozen=True)
class Parameters:
    rate: float = parameter(1.0, "Hz")
    filter: FilterParameters = field(default_factory=FilterParameters)


def test_values_and_descriptions(make_node):
    node = make_node(filter__bandwidth=5, filter__quick=True)
    values = declare(node, Parameters)
    assert Options(**vars(values.filter)) == Options(bandwidth=5.0, quick=True)
    described = node.describe_parameter("filter.bandwidth")
    assert described.description == "rad/s, of all signals."
    assert described.floating_point_range[0].from_value == 0.0
    assert node.describe_parameter("filter.name").description == "what it is called."
    assert not node.has_parameter("filter.window")


def test_negative_numbers_are_refused(make_node):
    with pytest.raises(ParameterError, match=r"'filter.bandwidth' is -1.0: give a value from 0"):
        declare(make_node(filter__bandwidth=-1.0), Parameters)
