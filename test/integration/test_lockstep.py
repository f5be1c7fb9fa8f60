"""A node answers a simulator that waits for it: when it has all sensors of a sample."""

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header, String

from com_model import Foot
from com_ros.parameters import RobotParameters
from com_ros.robot_node import RobotNode

URDF = """<robot name="arm"><link name="base"/><link name="tip"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="a" type="continuous"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/>
</joint>
</robot>"""
SENSORS = {"imu": Imu, "tip/wrench": WrenchStamped, "joint_states": JointState}


class Follower(RobotNode[RobotParameters]):
    """Follows joints, IMU and a foot."""

    def __init__(self, **options):
        super().__init__("follower", RobotParameters, **options)
        feet = [Foot("tip", "left", np.empty((0, 2)), 0.0, "tip/wrench", "tip", 1)]
        self.follow_robot_description()
        self.subscribe(Imu, "imu", lambda *_: None)
        self.follow_wrenches(feet)
        self.follow_joint_states(self._on_joints)
        self.joined = []

    def _on_joints(self, sample):
        self.joined.append(sample.time_ns)
        if sample.time_ns == 3:
            raise ValueError("a bug")


@pytest.fixture
def answers(world):
    return world.collect(Header, "lockstep")


def send(world, time_ns, *topics):
    stamp = Time(nanosec=time_ns)
    for topic in topics or SENSORS:
        msg = SENSORS[topic]()
        msg.header.stamp = stamp
        if topic == "joint_states":
            msg.name, msg.position = ["a"], [0.0]
        world.send(topic, msg)


def given(answers):
    assert {answer.frame_id for answer in answers} <= {"follower"}
    return [answer.stamp.nanosec for answer in answers]


def test_it_is_ready_with_a_model_and_all_sensors(world, answers):
    node = world.start(Follower)
    for topic in ("imu", "joint_states"):
        world.publisher(SENSORS[topic], topic)
    world.latch("robot_description", String(data=URDF))
    world.spin_until(lambda: node.joints is not None)
    world.spin_for(0.6)
    assert not answers
    world.publisher(WrenchStamped, "tip/wrench")
    world.spin_until(lambda: answers, "it is ready")
    assert given(answers)[0] == 0


def test_each_sample_is_answered_when_it_is_complete(world, answers):
    node = world.start(Follower, robot_description=URDF)
    for topic, kind in SENSORS.items():
        world.publisher(kind, topic)
    world.spin_until(lambda: answers, "it is ready")
    answers.clear()
    send(world, 1)
    world.spin_until(lambda: 1 in given(answers))
    send(world, 2, "joint_states", "imu")
    world.spin_until(lambda: node.joined == [1, 2])
    world.spin_for(0.3)
    assert 2 not in given(answers)
    send(world, 2, "tip/wrench")
    world.spin_until(lambda: 2 in given(answers))
    send(world, 3)  # also a message that is dropped is answered
    world.spin_until(lambda: 3 in given(answers))
    held = True
    node.lockstep.held = lambda: held
    answers.clear()
    send(world, 4)
    world.spin_until(lambda: len(answers) > 2, "it repeats its last answer")
    assert set(given(answers)) == {3}
    held = False
    world.spin_until(
        lambda: given(answers)[-1] == 4, "it answers after the computation"
    )


def test_without_a_subscriber_nothing_is_sent(world):
    node = world.start(Follower, robot_description=URDF)
    send(world, 1)
    world.spin_until(lambda: node.joined == [1])
    answers = world.collect(Header, "lockstep")
    world.spin_until(lambda: answers, "it is ready")
    assert given(answers)[0] == 0
