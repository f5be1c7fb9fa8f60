"""RobotDescription without a wire: what it accepts, what it refuses, what it says."""

import pytest
from std_msgs.msg import String

from com_model.exceptions import ComModelError
from com_ros.robot_description import RobotDescription


def urdf(name="robot", mass=1.0):
    return f"""<robot name="{name}"><link name="base"><inertial><mass value="{mass}"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


class Models(list):
    """Collects models; refuses those of a name."""

    def __call__(self, model):
        if model.name == "misfit":
            raise ComModelError("the configuration is for another robot")
        self.append(model)

    @property
    def names(self):
        return [model.name for model in self]


@pytest.fixture
def models():
    return Models()


def followed(node, models, xml=""):
    source = RobotDescription(node, models)
    source.follow(xml)
    return source


def test_nothing_is_missing_where_no_robot_is_followed(make_node, models):
    assert RobotDescription(make_node(), models).waiting == ""


def test_waiting(make_node, models):
    source = followed(make_node(), models)
    assert source.model is None
    assert "waiting for a latched message on /robot_description" in source.waiting
    assert "or give the parameter robot_description" in source.waiting


def test_parameter(make_node, models):
    source = followed(make_node(), models, urdf("one"))
    assert models.names == ["one"]
    assert source.model is models[0]
    assert source.waiting == ""


def test_topic_swaps_the_model_and_ignores_the_same_text(make_node, models):
    source = followed(make_node(), models)
    for name in ("one", "one", "two", "one"):
        source._receive(String(data=urdf(name)))
    assert models.names == ["one", "two", "one"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("<robot", "XML"),
        ("<robot name='x'/>", "link"),
        (urdf(mass="nan"), "mass"),
        (urdf(mass=0.0), "mass"),
        (urdf("misfit"), "the configuration is for another robot"),
    ],
)
def test_a_broken_description_is_refused_and_the_last_model_kept(
    make_node, models, text, message
):
    source = followed(make_node(), models, urdf("good"))
    source._receive(String(data=text))
    assert models.names == ["good"]
    assert source.model is models[0]
    assert message.lower() in source.refusal.lower()
    source._receive(String(data=urdf("better")))
    assert models.names == ["good", "better"]
    assert source.refusal == ""


def test_a_broken_parameter_leaves_the_node_waiting(make_node, models):
    source = followed(make_node(), models, "<robot name='x'/>")
    assert source.model is None
    assert source.waiting.startswith("no usable robot_description: ")
    source._receive(String(data=urdf("good")))
    assert models.names == ["good"]
