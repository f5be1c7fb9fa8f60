"""Which topic is what."""

import numpy as np
import pytest

from com_bags.bag import Topic
from com_bags.cdr import IMU, JOINT_STATE, WRENCH
from com_bags.exceptions import TopicError
from com_bags.roles import Wishes, find_roles
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
    roles = find_roles(USUAL, FEET, Wishes(), True, "bag")
    assert roles.topics == ("/joint_states", "/l_sole/wrench", "/r_sole/wrench", "/imu")
    assert find_roles(USUAL, FEET, Wishes(), False, "bag").imu is None


def test_names_in_a_namespace_and_the_only_one_of_its_type_are_found():
    topics = [
        topic("/robot/l_sole/wrench", WRENCH),
        topic("/robot/r_sole/wrench", WRENCH),
        topic("/robot/joints", JOINT_STATE),
    ]
    roles = find_roles(topics, FEET, Wishes(), False, "bag")
    assert roles.topics == ("/robot/joints", "/robot/l_sole/wrench", "/robot/r_sole/wrench")


def test_wishes_come_first():
    topics = [*USUAL, topic("/ft", WRENCH), topic("/js2", JOINT_STATE)]
    wishes = Wishes("js2", wrenches={"r_sole": "/ft"})
    roles = find_roles(topics, FEET, wishes, False, "bag")
    assert roles.topics == ("/js2", "/l_sole/wrench", "/ft")


@pytest.mark.parametrize(
    ("topics", "wishes", "words"),
    [
        (
            [*USUAL[:3], topic("/ft", WRENCH), topic("/ft2", WRENCH)],
            Wishes(),
            r"no topic /r_sole/wrench for the force sensor of r_sole \(geometry_msgs/msg/Wrench"
            r"Stamped\). Of the bag's topics would fit, with --wrench r_sole=TOPIC: "
            r"/l_sole/wrench, /ft, /ft2. There are: /imu \(sensor_msgs/msg/Imu\)",
        ),
        (USUAL[:1] + USUAL[2:], Wishes(), "no topic /joint_states .* none would fit"),
        (USUAL, Wishes("/joint_state"), "no topic /joint_state .*did you mean /joint_states?"),
        (USUAL, Wishes("/imu"), "/imu is sensor_msgs/msg/Imu; for the joint states expected"),
        (USUAL, Wishes(wrenches={"foot": "/a"}), "no foot 'foot'; valid: l_sole, r_sole"),
        (
            USUAL,
            Wishes(wrenches={"r_sole": "/l_sole/wrench"}),
            "l_sole and r_sole are both to read /l_sole/wrench: give each its own topic",
        ),
        (USUAL, Wishes(markers="/m"), "no topic /m of std_msgs/msg/String or std_msgs/msg/Bool"),
        ([], Wishes(), "There are: none"),
    ],
)
def test_what_is_missing_is_told_with_what_there_is(topics, wishes, words):
    with pytest.raises(TopicError, match=words) as error:
        find_roles(topics, FEET, wishes, False, "my_bag")
    assert str(error.value).startswith("my_bag: ")


def test_a_type_without_definition_matters_only_where_it_is_asked_for():
    strange = Topic("/ft", "acme_msgs/msg/Force", 10, 1, False)
    topics = [*USUAL, strange]
    find_roles(topics, FEET, Wishes(), True, "bag")
    with pytest.raises(
        TopicError, match=r"/ft is acme_msgs/msg/Force.*does not hold its definition"
    ):
        find_roles(topics, FEET, Wishes(wrenches={"l_sole": "/ft"}), True, "bag")
