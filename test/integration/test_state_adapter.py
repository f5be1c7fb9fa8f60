"""state_adapter over DDS: messages of another type become joint_states and imu."""

import numpy as np
import pytest
from ament_index_python.packages import get_package_share_directory
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import TwistStamped
from rclpy.time import Time
from sensor_msgs.msg import Imu, JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from com_model import RobotModel
from com_ros.exceptions import ComRosError
from com_ros.nodes.state_adapter import StateAdapter

URDF = f"{get_package_share_directory('robot_descriptions')}/urdf/hoap2.urdf"
MODEL = RobotModel.from_file(URDF)
MAPPING = """
joints.names: [RLEG_JOINT1, LLEG_JOINT2, HEAD_JOINT1]
joints.position: {field: /motors positions, unit: deg, scale: [1.0, -1.0, 1.0]}
joints.effort: {field: /motors effort, scale: 2.0}
imu.gyro: /motion twist.angular
imu.acceleration: {field: /motion twist.linear, unit: g}
"""


@pytest.fixture
def start(world, tmp_path):
    def start(mapping=MAPPING, **parameters):
        (tmp_path / "map.yaml").write_text(mapping)
        xml = MODEL.xml
        return world.start(
            StateAdapter,
            robot_description=xml,
            driver=str(tmp_path / "map.yaml"),
            **parameters,
        )

    return start


def twist(k):
    msg = TwistStamped()
    msg.header.stamp = Time(nanoseconds=10**9 + k * 2_000_000).to_msg()
    msg.twist.angular.x, msg.twist.angular.z = 0.1 * k, -0.2
    msg.twist.linear.z = 1.0
    return msg


def motors(k):
    return JointTrajectoryPoint(
        positions=[10.0, 20.0, 30.0 + k], effort=[1.0, 2.0, 3.0]
    )


def test_messages_of_any_type_become_joint_states_and_imu(world, start):
    states, readings = (
        world.collect(JointState, "joint_states"),
        world.collect(Imu, "imu"),
    )
    senders = [
        world.node.create_publisher(type(msg), topic, 100)
        for topic, msg in (("motors", motors(0)), ("motion", twist(0)))
    ]
    start()
    world.spin_until(lambda: all(s.get_subscription_count() for s in senders))
    before = world.node.get_clock().now().nanoseconds
    for k in range(20):
        senders[0].publish(motors(k))
        senders[1].publish(twist(k))
    world.spin_until(lambda: len(states) == 20 and len(readings) == 20)
    after = world.node.get_clock().now().nanoseconds
    for k, msg in enumerate(states):
        assert msg.name == ["RLEG_JOINT1", "LLEG_JOINT2", "HEAD_JOINT1"]
        expected = np.deg2rad([10.0, -20.0, 30.0 + k])
        np.testing.assert_allclose(msg.position, expected, atol=1e-12)
        assert list(msg.effort) == [2.0, 4.0, 6.0]
        assert not msg.velocity
        # its messages have no stamp: the time of receipt
        assert before <= Time.from_msg(msg.header.stamp).nanoseconds <= after
    for k, msg in enumerate(readings):
        assert Time.from_msg(msg.header.stamp).nanoseconds == 10**9 + k * 2_000_000
        assert msg.angular_velocity.x == pytest.approx(0.1 * k)
        assert msg.linear_acceleration.z == pytest.approx(9.80665)
        assert msg.orientation_covariance[0] == -1.0
        assert msg.angular_velocity_covariance[0] == 0.0


def test_messages_that_do_not_fit_are_reported_and_the_others_published(world, start):
    states = world.collect(JointState, "joint_states")
    statuses = world.collect(DiagnosticArray, "/diagnostics")
    sender = world.node.create_publisher(JointTrajectoryPoint, "motors", 100)
    other = world.node.create_publisher(TwistStamped, "motion", 100)
    start()
    world.spin_until(lambda: sender.get_subscription_count())
    sender.publish(JointTrajectoryPoint(positions=[1.0], effort=[1.0]))
    sender.publish(JointTrajectoryPoint())
    sender.publish(motors(1))
    world.spin_until(lambda: states)
    assert len(states) == 1
    world.spin_until(
        lambda: any("publishing" in s.message for a in statuses for s in a.status)
    )
    assert other.get_subscription_count()


def test_a_topic_that_is_not_there_is_awaited_and_named(world, start):
    statuses = world.collect(DiagnosticArray, "/diagnostics")
    start()
    world.spin_until(
        lambda: any("/motors" in s.message for a in statuses for s in a.status)
    )
    states = world.collect(JointState, "joint_states")
    senders = [
        world.node.create_publisher(type(msg), topic, 100)
        for topic, msg in (("motors", motors(0)), ("motion", twist(0)))
    ]
    world.spin_until(lambda: all(s.get_subscription_count() for s in senders))
    senders[0].publish(motors(3))
    world.spin_until(lambda: states)


def test_without_a_robot_s_driver_it_says_what_it_expects(world):
    statuses = world.collect(DiagnosticArray, "/diagnostics")
    world.start(StateAdapter, robot_description=MODEL.xml, driver="unitree-go2")
    world.spin_until(
        lambda: any(
            "/lowstate is not there yet: expected unitree_go/msg/LowState" in s.message
            for a in statuses
            for s in a.status
        )
    )


def test_a_mapping_that_is_wrong_is_refused_with_the_line(world, start):
    statuses = world.collect(DiagnosticArray, "/diagnostics")
    world.node.create_publisher(JointTrajectoryPoint, "motors", 100)
    start("joints.positions: /motors positions\n")
    world.spin_until(
        lambda: any("positions" in s.message for a in statuses for s in a.status)
    )


def test_a_format_that_nobody_knows_is_refused(world):
    with pytest.raises(ComRosError, match="unitree-g1"):
        world.start(StateAdapter, robot_description=MODEL.xml, driver="unitree-go3")
