"""A running robot, for com_setup: its robot_description, and means of its sensors' readings.

Topics: robot_description (latched), joint_states, imu, and those of the feet's force sensors in
the configuration. Nothing is published.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import WrenchStamped
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from com_identification.feet.wrench_check import check_readings
from com_model import RobotConfig, RobotModel
from com_model.exceptions import ComModelError, listing
from com_ros import qos
from com_ros.conversions import vector3_to_numpy, wrench_to_numpy

WAIT = 10.0  # s

Topics = dict[str, tuple[type, QoSProfile, int]]


def read_description() -> str:
    """Returns the text of the latched robot_description.

    Raises:
        ComModelError: none was received.
    """
    found = _collect({"robot_description": (String, qos.LATCHED, 1)}, WAIT)[
        "robot_description"
    ]
    if not found:
        raise ComModelError(
            f"no robot_description within {WAIT:g} s: start robot_state_publisher, and see that "
            "ROS_DOMAIN_ID is the robot's"
        )
    return str(found[-1].data)


def check_live(
    model: RobotModel, config: RobotConfig, samples: int = 100
) -> tuple[list[str], list[str]]:
    """Compares the readings of the running, stationary robot with its configuration.

    Args:
        model: the robot.
        config: its feet and IMU.
        samples: messages of each topic that are averaged.

    Returns:
        What is right and what is wrong; see check_readings.

    Raises:
        ComModelError: no joint_states of all joints were received, or the robot moves.
    """
    model = config.attach(model)
    sensors: Topics = {"joint_states": (JointState, qos.stream(samples), samples)}
    sensors["imu"] = (Imu, qos.stream(samples), samples)
    for foot in config.feet:
        if foot.wrench_topic:
            sensors[foot.wrench_topic] = (WrenchStamped, qos.stream(samples), samples)
    read = _collect(sensors, WAIT)
    values: dict[str, list[float]] = {name: [] for name in model.joint_names}
    for message in read["joint_states"]:
        for name, position in zip(message.name, message.position, strict=False):
            if name in values:
                values[name].append(position)
    missing = [name for name, readings in values.items() if not readings]
    if missing:
        raise ComModelError(
            f"no joint_states of {listing(missing)} within {WAIT:g} s: start the robot's drivers"
        )
    # rad or m, of a joint that counts as stationary
    moving = [name for name, readings in values.items() if np.ptp(readings) > 0.01]
    if moving:
        raise ComModelError(
            f"{listing(moving)} moves: let the robot stand still on its feet"
        )
    q = np.array([np.mean(values[name]) for name in model.joint_names])
    accelerations = [vector3_to_numpy(m.linear_acceleration) for m in read["imu"]]
    acceleration = (
        np.mean(accelerations, axis=0) if accelerations else np.full(3, np.nan)
    )
    wrenches = np.full((len(config.feet), 6), np.nan)
    for i, foot in enumerate(config.feet):
        readings = [wrench_to_numpy(m.wrench) for m in read.get(foot.wrench_topic, [])]
        if readings:
            wrenches[i] = np.mean(readings, axis=0)
    return check_readings(model, config, q, wrenches, acceleration)


def _collect(topics: Topics, wait_s: float) -> dict[str, list[Any]]:
    """Receives messages by topic, until there are enough of each, or the time is over."""
    context = Context()
    rclpy.init(context=context)
    node = Node("com_setup", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    found: dict[str, list[Any]] = {topic: [] for topic in topics}
    for topic, (kind, profile, _) in topics.items():
        keep: Callable[[Any], None] = found[topic].append
        node.create_subscription(kind, topic, keep, profile)
    end = time.monotonic() + wait_s
    try:
        while time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
            if all(len(found[topic]) >= count for topic, (*_, count) in topics.items()):
                break
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.shutdown(context=context)
    return found
