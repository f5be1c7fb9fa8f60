"""Readings of a simulation -> messages, as a robot's drivers publish them.

Messages are made once and filled in place: at 1 kHz that halves the cost.
"""

import math
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.publisher import Publisher
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
        def make(kind: type, topic: str, frame: str = "", **fields: Any) -> tuple[Publisher, Any]:
            msg = kind(**fields)
            msg.header.frame_id = frame
            return node.create_publisher(kind, topic, qos.RESULT), msg

        self._names, root = list(world.robot.joint_names), world.robot.root_link
        self._joints = make(JointState, "joint_states", name=self._names)
        self._imu = make(Imu, "imu", world.imu_link, **noise.imu_covariances())
        self._wrenches = [
            make(WrenchStamped, foot.wrench_topic, foot.wrench_frame) for foot in world.feet
        ]
        # Where the ground is, the truth does not say.
        known: dict[str, Any] = {"status": CenterOfMass.STATUS_OK, "support_margin": math.nan}
        known["projection"] = cv.numpy_to_point(np.full(3, np.nan))
        self._truth = make(CenterOfMass, "ground_truth/com", root, **known)
        self._trunk = make(CenterOfMass, "ground_truth/trunk_com", root, **known)

    def publish(self, reading: Reading, stamp: Time) -> None:
        """Publish one instant; joint_states last, for nodes combine it with what came before."""
        truth, trunk, imu = self._truth[1], self._trunk[1], self._imu[1]
        truth.mass, trunk.mass = reading.mass, reading.trunk_mass
        cv.numpy_to_point(reading.com, truth.position)
        cv.numpy_to_vector3(reading.com_velocity, truth.velocity)
        cv.numpy_to_vector3(reading.gravity, truth.gravity)
        cv.numpy_to_point(reading.trunk_com, trunk.position)
        cv.numpy_to_vector3(reading.gravity, trunk.gravity)
        cv.numpy_to_quaternion(reading.imu_orientation, imu.orientation)
        cv.numpy_to_vector3(reading.angular_velocity, imu.angular_velocity)
        cv.numpy_to_vector3(reading.specific_force, imu.linear_acceleration)
        for (_, msg), wrench in zip(self._wrenches, reading.wrenches, strict=True):
            cv.numpy_to_wrench(wrench, msg.wrench)
        joints = reading.position, reading.velocity, reading.effort
        cv.numpy_to_joint_state(self._names, *joints, stamp, self._joints[1])
        for publisher, msg in (self._truth, self._trunk, self._imu, *self._wrenches, self._joints):
            msg.header.stamp = stamp
            publisher.publish(msg)


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
