"""Readings of a simulation -> messages, as a robot's drivers publish them.

Messages are made once and filled in place: at 1 kHz that halves the cost.
"""

import math

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState

from com_msgs.msg import CenterOfMass
from com_ros import conversions as cv
from com_ros import qos
from com_ros.tf import FramePublisher
from com_simulation.physics.sensors import NoiseLevels, Reading
from com_simulation.physics.world_builder import World

ODOM = "odom"


class SensorOutput:
    """Publishes joint_states, imu, the feet's wrenches and the true CoM of robot and trunk."""

    def __init__(self, node: Node, world: World, noise: NoiseLevels) -> None:
        robot, profile = world.robot, qos.RESULT
        self._joint_names = list(robot.joint_names)
        self._joints = JointState(name=self._joint_names)
        self._imu = Imu(**noise.imu_covariances())
        self._imu.header.frame_id = world.imu_link
        self._wrenches = [WrenchStamped() for _ in world.feet]
        for foot, msg in zip(world.feet, self._wrenches, strict=True):
            msg.header.frame_id = foot.wrench_frame
        self._truth = _truth_message(robot.root_link)
        self._trunk = _truth_message(robot.root_link)
        self._joints_publisher = node.create_publisher(JointState, "joint_states", profile)
        self._imu_publisher = node.create_publisher(Imu, "imu", profile)
        self._wrench_publishers = [
            node.create_publisher(WrenchStamped, foot.wrench_topic, profile) for foot in world.feet
        ]
        self._truth_publisher = node.create_publisher(CenterOfMass, "ground_truth/com", profile)
        self._trunk_publisher = node.create_publisher(
            CenterOfMass, "ground_truth/trunk_com", profile
        )

    def publish(self, reading: Reading, stamp: Time) -> None:
        """Publish one instant; joint_states last, for nodes combine it with what came before."""
        self._publish_truth(reading, stamp)
        self._publish_imu(reading, stamp)
        for publisher, msg, wrench in zip(
            self._wrench_publishers, self._wrenches, reading.wrenches, strict=True
        ):
            msg.header.stamp = stamp
            cv.numpy_to_wrench(wrench, msg.wrench)
            publisher.publish(msg)
        cv.numpy_to_joint_state(
            self._joint_names,
            reading.position,
            reading.velocity,
            reading.effort,
            stamp,
            out=self._joints,
        )
        self._joints_publisher.publish(self._joints)

    def _publish_imu(self, reading: Reading, stamp: Time) -> None:
        msg = self._imu
        msg.header.stamp = stamp
        cv.numpy_to_quaternion(reading.imu_orientation, msg.orientation)
        cv.numpy_to_vector3(reading.angular_velocity, msg.angular_velocity)
        cv.numpy_to_vector3(reading.specific_force, msg.linear_acceleration)
        self._imu_publisher.publish(msg)

    def _publish_truth(self, reading: Reading, stamp: Time) -> None:
        msg = self._truth
        msg.header.stamp = stamp
        msg.mass = reading.mass
        cv.numpy_to_point(reading.com, msg.position)
        cv.numpy_to_vector3(reading.com_velocity, msg.velocity)
        cv.numpy_to_vector3(reading.gravity, msg.gravity)
        self._truth_publisher.publish(msg)
        trunk = self._trunk
        trunk.header.stamp = stamp
        trunk.mass = reading.trunk_mass
        cv.numpy_to_point(reading.trunk_com, trunk.position)
        cv.numpy_to_vector3(reading.gravity, trunk.gravity)
        self._trunk_publisher.publish(trunk)


class PoseOutput:
    """Publishes the frame of the root link in odom, on /tf, at a rate of its own."""

    def __init__(self, node: Node, root_link: str, rate_hz: float, prefix: str = "") -> None:
        self._frames = FramePublisher(node, prefix)
        self._root_link = root_link
        self._period = 1.0 / rate_hz
        self._next = 0.0

    def publish(self, reading: Reading, stamp: Time) -> None:
        """Publish the pose when it is time to."""
        if reading.time < self._next:
            return
        self._next = reading.time + self._period * (1.0 - 1e-6)
        R = cv.quaternion_to_rotation(cv.numpy_to_quaternion(reading.root_orientation))
        self._frames.send_pose(stamp, ODOM, self._root_link, R, reading.root_position)


def _truth_message(root_link: str) -> CenterOfMass:
    """The truth about the CoM; where the ground is, it does not say."""
    msg = CenterOfMass(status=CenterOfMass.STATUS_OK, support_margin=math.nan)
    msg.header.frame_id = root_link
    cv.numpy_to_point(np.full(3, np.nan), msg.projection)
    return msg
