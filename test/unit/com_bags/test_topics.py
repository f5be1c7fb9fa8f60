"""Finding topics by role."""

import numpy as np
import pytest

from com_bags.bag import Topic
from com_bags.channels import IMU, JOINT_STATE, WRENCH
from com_bags.exceptions import TopicError
from com_bags.sensors import TopicRequest, find_topics
from com_model import Foot


def foot(frame):
    return Foot(frame, "", np.zeros((0, 2)), 0.0, f"{frame}/wrench", frame, 1)


def topic(name, kind):
    return Topic(name, kind, 10, 1, True)


FEET = (foot("l_sole"), foot("r_sole"))
USUAL = [
    topic("/imu", IMU),
    topic("/joint_states", JOINT_STATE),
    topic("/l_sole/wrench", WRENCH),
    topic("/r_sole/wrench", WRENCH),
]


def test_usual_names_are_found():
    found = find_topics(USUAL, FEET, TopicRequest(), True, "bag")
    assert found.names == ("/joint_states", "/l_sole/wrench", "/r_sole/wrench", "/imu")
    assert find_topics(USUAL, FEET, TopicRequest(), False, "bag").imu is None


def test_names_in_a_namespace_and_the_only_one_of_its_type_are_found():
    topics = [
        topic("/robot/l_sole/wrench", WRENCH),
        topic("/robot/r_sole/wrench", WRENCH),
        topic("/robot/joints", JOINT_STATE),
    ]
    found = find_topics(topics, FEET, TopicRequest(), False, "bag")
    assert found.names == (
        "/robot/joints",
        "/robot/l_sole/wrench",
        "/robot/r_sole/wrench",
    )


def test_requested_topics_come_first():
    topics = [*USUAL, topic("/ft", WRENCH), topic("/js2", JOINT_STATE)]
    requested = TopicRequest("js2", wrenches={"r_sole": "/ft"})
    found = find_topics(topics, FEET, requested, False, "bag")
    assert found.names == ("/js2", "/l_sole/wrench", "/ft")


@pytest.mark.parametrize(
    ("topics", "requested", "words"),
    [
        (
            [*USUAL[:3], topic("/ft", WRENCH), topic("/ft2", WRENCH)],
            TopicRequest(),
            r"no topic /r_sole/wrench for the force sensor of r_sole \(geometry_msgs/msg/Wrench"
            r"Stamped\). Of the bag's topics would fit, with --wrench r_sole=TOPIC: "
            r"/l_sole/wrench, /ft, /ft2. There are: /imu \(sensor_msgs/msg/Imu\)",
        ),
        (
            USUAL[:1] + USUAL[2:],
            TopicRequest(),
            "no topic /joint_states .* none would fit",
        ),
        (
            USUAL,
            TopicRequest("/joint_state"),
            "no topic /joint_state .*did you mean /joint_states?",
        ),
        (
            USUAL,
            TopicRequest("/imu"),
            "/imu is sensor_msgs/msg/Imu; for the joint states expected",
        ),
        (
            USUAL,
            TopicRequest(wrenches={"foot": "/a"}),
            "no foot 'foot'; valid: l_sole, r_sole",
        ),
        (
            USUAL,
            TopicRequest(wrenches={"r_sole": "/l_sole/wrench"}),
            "l_sole and r_sole both read /l_sole/wrench: give each its own topic",
        ),
        (
            USUAL,
            TopicRequest(markers="/m"),
            "no topic /m of std_msgs/msg/String or std_msgs/msg/Bool",
        ),
        ([], TopicRequest(), "There are: none"),
    ],
)
def test_what_is_missing_is_named_with_the_topics_there_are(topics, requested, words):
    with pytest.raises(TopicError, match=words) as error:
        find_topics(topics, FEET, requested, False, "my_bag")
    assert str(error.value).startswith("my_bag: ")


def test_a_type_without_definition_matters_only_where_it_is_asked_for():
    strange = Topic("/ft", "acme_msgs/msg/Force", 10, 1, False)
    topics = [*USUAL, strange]
    find_topics(topics, FEET, TopicRequest(), True, "bag")
    with pytest.raises(
        TopicError, match=r"/ft is acme_msgs/msg/Force.*does not contain its definition"
    ):
        find_topics(topics, FEET, TopicRequest(wrenches={"l_sole": "/ft"}), True, "bag")
