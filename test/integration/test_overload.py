"""A node that is too slow for a topic: it uses the newest message, counts and reports the rest."""

import statistics
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState

from com_ros import qos
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state
from com_ros.parameters import JointTimeout, RobotParameters
from com_ros.receiving_node import EVERY_SAMPLE
from com_ros.robot_node import RobotNode

URDF = """<robot name="arm"><link name="base"/><link name="tip"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="lift" type="continuous"><parent link="base"/><child link="tip"/></joint></robot>"""


@dataclass(frozen=True)
class Parameters(RobotParameters, JointTimeout):
    pass


class SlowNode(RobotNode[Parameters]):
    """Takes work_s(self) for each sample; ages (ns) are of the samples when it is done."""

    def __init__(self, work_s, **options):
        super().__init__("slow", Parameters, **options)
        self.work_s, self.ages, self.done, self.warnings = work_s, [], [], []
        self.follow_robot_description()
        self.follow_joint_states(self._on_joints, depth=EVERY_SAMPLE)

    def _on_joints(self, sample):
        time.sleep(self.work_s(self))
        self.done.append(time.time_ns())
        self.ages.append(self.done[-1] - sample.time_ns)
        self.warnings.append(sample.warnings)


def make_executor(kind, context):
    if kind == "default":
        return SingleThreadedExecutor(context=context)
    events = pytest.importorskip("rclpy.experimental.events_executor")
    return events.EventsExecutor(context=context)


def publish(node, seconds, enough, done):
    """joint_states at 500 Hz, two at a time, for a while, or until it is enough; then done is."""
    publisher = node.create_publisher(JointState, "joint_states", qos.RESULT)
    end = time.monotonic() + seconds
    while time.monotonic() < end and not enough():
        for _ in range(2):
            stamp = ns_to_stamp(time.time_ns())
            publisher.publish(numpy_to_joint_state(["lift"], [0.5], stamp=stamp))
        time.sleep(0.004)
    done.set_result(None)


@pytest.fixture
def run(ros_context):
    """run(executor, work_s, seconds): a slow node that has followed joint_states for a while.

    work_s(node) gives the time for a sample, s.
    """
    nodes = []

    def start(kind, work_s, seconds, enough=lambda node: False):
        given = [rclpy.Parameter("robot_description", value=URDF)]
        node = SlowNode(work_s, context=ros_context, parameter_overrides=given)
        driver = Node("driver", context=ros_context)
        nodes.extend((node, driver))
        executor = make_executor(kind, ros_context)
        executor.add_node(node)
        done = Future()
        driving = threading.Thread(
            target=publish, args=(driver, seconds, lambda: enough(node), done)
        )
        driving.start()
        while not done.done():  # in pieces, as EventsSpinner does
            executor.spin_until_future_complete(done, timeout_sec=0.5)
        driving.join()
        executor.shutdown()
        return node

    yield start
    for node in nodes:
        node.destroy_node()


@pytest.mark.alone  # beside other tests it may truly be too slow
def test_a_node_that_is_fast_enough_again_uses_each_message(run):
    """Also while messages come in bunches, of which it has used only the newest."""

    def fast(node):
        return bool(node._backlogs) and node._backlogs[0].skipped > 50

    def again(node):
        return fast(node) and node.too_slow == "" and node.warnings[-1:] == [()]

    node = run("events", lambda node: 0.0 if fast(node) else 0.02, 60.0, again)
    assert node._backlogs[0].skipped > 50
    assert node.too_slow == ""
    assert node.warnings[-1] == ()


@pytest.mark.parametrize("kind", ["default", "events"])
def test_a_node_that_is_too_slow_uses_the_newest_message(run, kind):
    node = run(kind, lambda node: 0.02, 3.0)
    (backlog,) = node._backlogs
    assert backlog.skipped > len(node.ages)  # more than half
    assert "cannot keep up with /joint_states" in node.too_slow
    half = len(node.ages) // 2
    age, period = (
        statistics.median(node.ages[half:]),
        statistics.median(np.diff(node.done[half:])),
    )
    assert age < 5 * period  # a second of messages fits in the queue, 50 periods
    assert all("cannot keep up" in warnings[0] for warnings in node.warnings[half:])
