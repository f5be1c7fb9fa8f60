"""The monitor matches what arrives on its topics by stamp."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import rclpy
from builtin_interfaces.msg import Time
from rclpy.node import Node
from sensor_msgs.msg import JointState

from com_demos.background import free_domain_id
from com_demos.sway_monitor import SwayMonitor
from com_estimation.nodes.com_output import numpy_to_center_of_mass, numpy_to_sesc_chain
from com_estimation.whole_body.com_state import ComState
from com_model.model import RobotModel
from com_msgs.msg import CenterOfMass, SescChain
from com_ros.qos import RESULT

URDF = """<robot name="arm"><link name="base"/><link name="tip"><inertial><mass value="2"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="lift" type="prismatic"><parent link="base"/><child link="tip"/><axis xyz="0 0 1"/>
<limit lower="0" upper="1" effort="1" velocity="1"/></joint></robot>"""
NAN = np.full(3, np.nan)


class Robot(Node):
    """Publishes what the simulator and sesc_publisher would."""

    def __init__(self) -> None:
        super().__init__("robot")
        self.com = self.create_publisher(CenterOfMass, "com", RESULT)
        self.truth = self.create_publisher(CenterOfMass, "ground_truth/com", RESULT)
        self.sesc = self.create_publisher(SescChain, "sesc", RESULT)
        self.joints = self.create_publisher(JointState, "joint_states", RESULT)


@pytest.fixture
def run() -> Iterator[tuple[Robot, SwayMonitor, Callable[[Callable[[], bool]], None]]]:
    """A robot, a monitor that receives its messages, and a function that waits for a condition."""
    rclpy.init(domain_id=free_domain_id())
    robot, monitor = Robot(), SwayMonitor(RobotModel.from_urdf(URDF))

    def wait(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 200.0
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            monitor.poll()
            time.sleep(0.01)

    publishers = (robot.com, robot.truth, robot.sesc, robot.joints)
    wait(lambda: all(publisher.get_subscription_count() for publisher in publishers))
    yield robot, monitor, wait
    monitor.destroy_node()
    robot.destroy_node()
    rclpy.shutdown()


def stamp(k: int) -> Time:
    return Time(sec=100, nanosec=1000 * k)


def com(
    k: int, z: float, status: int = CenterOfMass.STATUS_OK, reason: str = ""
) -> CenterOfMass:
    values = ComState(
        status=status,
        reason=reason,
        mass=2.0,
        position=np.array([0.0, 0.0, z]),
        velocity=NAN,
        gravity=np.array([0.0, 0.0, -1.0]),
        ground=CenterOfMass.GROUND_ROOT,
        projection=np.zeros(3),
        margin=np.nan,
        contacts=(),
    )
    return numpy_to_center_of_mass(values, stamp(k), "base")


def chain(k: int, z: float) -> SescChain:
    points = [[0, 0, 0], [0, 0, z]]
    return numpy_to_sesc_chain(2.0, ["tip"], [[0, 0, 0.5]], points, stamp(k), "base")


def joints(k: int, position: float, name: str = "lift") -> JointState:
    msg = JointState(name=[name], position=[position])
    msg.header.stamp = stamp(k)
    return msg


def test_com_meets_its_truth_and_a_posture_its_chain(run) -> None:
    robot, monitor, wait = run
    before_ns = time.time_ns()
    for k in (1, 2, 3):
        robot.joints.publish(joints(k, 0.1 * k))
        robot.truth.publish(com(k, 0.1 * k))
        robot.com.publish(com(k, 0.1 * k + 0.25))
    robot.sesc.publish(chain(2, 0.45))
    wait(lambda: len(monitor.recording.samples) == 3)
    wait(
        lambda: len(monitor.snapshots) == 1 and monitor.recording.series().error[-1] > 0
    )

    np.testing.assert_allclose(monitor.recording.series().error, 0.25)
    for _, received_ns, *_ in monitor.recording.samples:
        assert before_ns - 1_000_000 <= received_ns <= time.time_ns() + 1000
    (snapshot,) = monitor.snapshots
    np.testing.assert_allclose(snapshot.q, [0.2])
    np.testing.assert_allclose(snapshot.com, [0, 0, 0.45])
    np.testing.assert_allclose(snapshot.chain, [[0, 0, 0], [0, 0, 0.45]])
    assert not snapshot.on_feet
    assert np.isnan(snapshot.margin)


def test_unknown_com_is_counted_and_not_recorded(run) -> None:
    robot, monitor, wait = run
    robot.com.publish(com(1, np.nan, CenterOfMass.STATUS_UNKNOWN, "lacks joint lift"))
    wait(lambda: monitor.unknown == 1)
    assert monitor.reason == "lacks joint lift"
    assert monitor.recording.samples == []


def test_chain_without_its_joints_makes_no_snapshot(run) -> None:
    robot, monitor, wait = run
    robot.joints.publish(joints(1, 0.1, name="another"))
    robot.com.publish(com(1, 0.1))
    robot.com.publish(com(2, 0.2))
    wait(lambda: len(monitor.recording.samples) == 2)
    for k in (1, 2):  # of the first the joints are others, of the second there are none
        robot.sesc.publish(chain(k, 0.1))
    robot.joints.publish(joints(3, 0.3))
    robot.com.publish(com(3, 0.3))
    wait(lambda: len(monitor.recording.samples) == 3)
    for k in (3, 4):
        robot.sesc.publish(chain(k, 0.3))
    wait(lambda: bool(monitor.snapshots))
    assert [snapshot.q.tolist() for snapshot in monitor.snapshots] == [[0.3]]
