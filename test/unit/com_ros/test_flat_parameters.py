"""Parameters from a mapping: names with sections, types, descriptions, refusals."""

from dataclasses import dataclass

import pytest

from com_ros.exceptions import ParameterError
from com_ros.flat_parameters import declare_flat, descriptions_of

DEFAULTS = {"noise.force": 0.5, "noise.axes.count": 3, "loss": "tukey", "fit.on": True}


@dataclass
class Noise:
    """Of a sensor.

    Attributes:
        force: N, each axis
            of each foot.
        other: 1.
    """


def test_values_by_name(make_node):
    node = make_node(noise__force=2, fit__on=False)
    values = declare_flat(node, DEFAULTS, {"noise.force": "N"})
    assert values == {**DEFAULTS, "noise.force": 2.0, "fit.on": False}
    assert node.get_parameter("noise.axes.count").value == 3
    assert node.describe_parameter("noise.force").description == "N"
    assert node.describe_parameter("loss").read_only


def test_a_wrong_type_is_refused(make_node):
    node = make_node(noise__axes__count="many")
    with pytest.raises(ParameterError, match=r"'noise.axes.count' is 'many': give a whole number"):
        declare_flat(node, DEFAULTS, {})


def test_descriptions():
    assert descriptions_of(Noise) == {"force": "N, each axis of each foot.", "other": "1."}
