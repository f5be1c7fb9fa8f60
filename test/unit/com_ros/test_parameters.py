"""Parameters: one dataclass says all; what the user gives is converted or refused by name."""

from dataclasses import dataclass, field

import pytest
from rclpy.exceptions import ParameterNotDeclaredException
from rclpy.parameter import Parameter

from com_identification.settings import IdentificationSettings
from com_ros.exceptions import ParameterError
from com_ros.parameters import declare, live_parameter, parameter


@dataclass(frozen=True)
class Noise:
    position: float = parameter(
        0.0, "standard deviation of joint positions, rad", (0.0, 1.0)
    )


@dataclass(frozen=True)
class Parameters:
    description: str = parameter("", "text")
    use_imu: bool = parameter(False, "switch")
    count: int = parameter(3, "how many", (1, 5))
    rate_hz: float = live_parameter(30.0, "rate, Hz", (0.5, 200.0))
    feet: tuple[str, ...] = parameter((), "sole frames")
    offsets: tuple[float, ...] = parameter((), "offsets, rad", (-1.0, 1.0))
    base: str = parameter("auto", "kind of base", choices=("auto", "fixed"))
    noise: Noise = field(default_factory=Noise)


def test_defaults(make_node):
    assert declare(make_node(), Parameters) == Parameters()


def test_values_are_read_and_seen_from_outside(make_node):
    node = make_node(
        description="<robot/>",
        use_imu=True,
        count=5,
        rate_hz=10.0,
        feet=["l", "r"],
        offsets=[0.5, 1.0],
        base="fixed",
        noise__position=0.25,
    )
    expected = Parameters(
        "<robot/>", True, 5, 10.0, ("l", "r"), (0.5, 1.0), "fixed", Noise(position=0.25)
    )
    assert declare(node, Parameters) == expected
    assert node.get_parameter("noise.position").value == 0.25
    assert list(node.get_parameter("feet").value) == ["l", "r"]


def test_what_people_write_is_understood(make_node):
    node = make_node(rate_hz=10, feet="l_sole", offsets=[1, 0], noise__position=1)
    values = declare(node, Parameters)
    assert values.rate_hz == 10.0
    assert isinstance(values.rate_hz, float)
    assert values.feet == ("l_sole",)
    assert values.offsets == (1.0, 0.0)
    assert values.noise.position == 1.0


@dataclass(frozen=True)
class Open:
    height: float | None = live_parameter(None, "m; 0: by the robot", (0.0, 1.0))


def test_zero_stands_for_what_is_left_open(make_node):
    node = make_node()
    assert declare(node, Open) == Open(None)
    assert node.get_parameter("height").value == 0.0
    assert declare(make_node(height=0.0), Open) == Open(None)
    assert declare(make_node(height=0.5), Open) == Open(0.5)


@pytest.mark.parametrize("empty", [[], [""], ""])
def test_every_way_to_write_no_feet(make_node, empty):
    assert declare(make_node(feet=empty), Parameters).feet == ()


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ({"rate_hz": "fast"}, r"parameter 'rate_hz' is 'fast': give a number"),
        ({"rate_hz": 0.0}, r"parameter 'rate_hz' is 0.0: give a value from 0.5 to 200"),
        ({"rate_hz": float("nan")}, r"'rate_hz' is nan: give a value from 0.5 to 200"),
        ({"rate_hz": True}, r"'rate_hz' is True: give a number"),
        ({"use_imu": 1}, r"'use_imu' is 1: give true or false"),
        ({"count": 2.5}, r"'count' is 2.5: give a whole number"),
        ({"count": 9}, r"'count' is 9: give a value from 1 to 5"),
        ({"description": 4}, r"'description' is 4: give a string"),
        ({"feet": [1, 2]}, r"'feet' is .*: give a list of strings"),
        ({"feet": 7}, r"'feet' is 7: give a list of strings"),
        ({"offsets": ["x"]}, r"'offsets' is \['x'\]: give a list of numbers"),
        ({"offsets": [0.5, 3.0]}, r"'offsets' is .*: give a value from -1 to 1"),
        ({"base": "flying"}, r"'base' is 'flying': give one of auto, fixed"),
        (
            {"noise__position": 2.0},
            r"'noise.position' is 2.0: give a value from 0 to 1",
        ),
    ],
)
def test_wrong_values_are_refused_by_name_with_the_mend(make_node, overrides, text):
    with pytest.raises(ParameterError, match=text):
        declare(make_node(**overrides), Parameters)


def test_descriptors(make_node):
    node = make_node()
    declare(node, Parameters)
    rate = node.describe_parameter("rate_hz")
    assert (rate.description, rate.read_only) == ("rate, Hz", False)
    assert (
        rate.floating_point_range[0].from_value,
        rate.floating_point_range[0].to_value,
    ) == (
        0.5,
        200.0,
    )
    assert node.describe_parameter("count").integer_range[0].to_value == 5
    assert node.describe_parameter("use_imu").read_only
    assert node.describe_parameter("base").description == "kind of base (auto | fixed)"


def test_changes_while_running(make_node):
    node = make_node()
    seen = []
    declare(node, Parameters, seen.append)

    (result,) = node.set_parameters([Parameter("rate_hz", value=50.0)])
    assert result.successful
    assert [values.rate_hz for values in seen] == [50.0]

    (result,) = node.set_parameters([Parameter("rate_hz", value=500.0)])
    assert not result.successful
    (result,) = node.set_parameters([Parameter("use_imu", value=True)])
    assert not result.successful
    assert "read-only" in result.reason
    assert len(seen) == 1


def test_an_empty_list_is_not_unset(make_node):
    @dataclass(frozen=True)
    class Live:
        speeds: tuple[float, ...] = live_parameter((), "speeds, m/s", (-1.0, 1.0))

    node, values = make_node(), []
    declare(node, Live, values.append)
    (result,) = node.set_parameters([Parameter("speeds", Parameter.Type.NOT_SET)])
    assert not result.successful
    assert "'speeds' is None: give a list of numbers" in result.reason
    assert not values


def test_other_parameters_of_the_node_are_left_alone(make_node):
    node = make_node()
    seen = []
    declare(node, Parameters, seen.append)
    node.declare_parameter("foreign", 1)
    node.set_parameters([Parameter("foreign", value=2)])
    assert not seen
    with pytest.raises(ParameterNotDeclaredException):
        node.get_parameter("other")


def test_a_field_without_ros_type_is_a_bug(make_node):
    @dataclass(frozen=True)
    class Wrong:
        table: bytes = parameter(b"", "none")

    with pytest.raises(
        TypeError, match="parameter 'table': no ROS parameter has the type"
    ):
        declare(make_node(), Wrong)


@dataclass(frozen=True)
class Options:
    """Options of an estimator that knows nothing of ROS."""

    bandwidth: float = parameter(20.0, "rad/s", (0.0, 1e9))
    window: tuple = ()  # no parameter
    noise: Noise = field(default_factory=Noise)


def test_options_are_parameters_as_they_are(make_node):
    node = make_node(bandwidth=5, noise__position=0.5)
    values = declare(node, Options)
    assert values == Options(bandwidth=5.0, noise=Noise(0.5))
    assert not node.has_parameter("window")


def test_defaults_of_a_file_are_overridden_by_what_is_given(make_node):
    base = Options(bandwidth=7.0, window=(1,), noise=Noise(0.25))
    assert declare(make_node(), Options, defaults=base) == base
    given = declare(make_node(bandwidth=8.0), Options, defaults=base)
    assert given == Options(8.0, (1,), Noise(0.25))


def test_the_identifications_settings_are_parameters(make_node):
    base = IdentificationSettings.from_dict(
        {
            "noise": {"force": 2.0},
            "links": {"a": {"mass": 1.0}},
            "plan": {"stands": [[0]]},
        }
    )
    node = make_node(prior__mass_std_fraction=0.1)
    values = declare(node, IdentificationSettings, defaults=base)
    assert (values.prior.mass_std_fraction, values.noise.force) == (0.1, 2.0)
    assert (values.links, values.plan.stands) == (base.links, ((0,),))
    assert node.get_parameter("plan.criterion").value == "parameters"
    assert (
        node.describe_parameter("noise.force").description
        == "N, each axis of a foot's sensor"
    )
    with pytest.raises(
        ParameterError, match=r"'plan.criterion' is 'a': give one of parameters"
    ):
        declare(make_node(plan__criterion="a"), IdentificationSettings)


def test_a_change_may_be_refused_with_a_reason(make_node):
    def refuse(values):
        raise ParameterError("rate_hz", values.rate_hz, "give an odd one")

    node = make_node()
    declare(node, Parameters, refuse)
    (result,) = node.set_parameters([Parameter("rate_hz", value=50.0)])
    assert (result.successful, result.reason) == (
        False,
        "parameter 'rate_hz' is 50.0: give an odd one",
    )
    assert node.get_parameter("rate_hz").value == 30.0
