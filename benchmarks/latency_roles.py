"""The processes around the node in node_latency.py: a driver, a listener, a bare node to compare.

python latency_roles.py drive --rate 1000 [--sensors]
python latency_roles.py bare [--sensors]
python latency_roles.py listen received.npz
python latency_roles.py first came.txt
"""

import argparse
import itertools
import struct
import sys
import time
from array import array
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from ament_index_python.packages import get_package_share_directory
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Vector3, WrenchStamped
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import Imu, JointState

from com_model import RobotConfig, RobotModel
from com_model.dynamics import GRAVITY
from com_msgs.msg import CenterOfMass, TrunkCom
from com_ros import qos
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state, stamp_to_ns
from com_ros.main import make_fast_executor, run, settle_memory
from com_ros.stream import with_info


class Listener(Node):
    """Notes when each com comes.

    With the first com it touches a file beside the one that it will write when it ends.

    Args:
        file: npz with com_stamp_ns, com_sent_ns, com_time_ns, com_known, and joint_stamp_ns,
            joint_time_ns: the stamps, when DDS sent them off, and when com was received.
    """

    def __init__(self, file: Path) -> None:
        super().__init__("latency_listener")
        self._file = file
        self._com = array("q")
        callback = with_info(self._on_com)
        self.create_subscription(CenterOfMass, "com", callback, qos.stream(1000))
        # A node that nobody spins: its messages wake nobody, and are fetched after each com.
        self._sent = array("q")
        self._recorder = Node("latency_recorder")
        self._joints = self._recorder.create_subscription(
            JointState, "joint_states", print, qos.stream(10000), raw=True
        )

    def _on_com(self, msg: CenterOfMass, info: dict[str, Any]) -> None:
        now_ns = time.time_ns()
        known = msg.status != CenterOfMass.STATUS_UNKNOWN
        if known and not self._com:
            self._file.with_suffix(".first").touch()
        stamp_ns = stamp_to_ns(msg.header.stamp)
        self._com.extend((stamp_ns, info["source_timestamp"], now_ns, known))
        self._fetch_joints()

    def _fetch_joints(self) -> None:
        with self._joints.handle:
            while (
                taken := self._joints.handle.take_message(JointState, True)
            ) is not None:
                data, info = taken
                sec, nanosec = struct.unpack_from(
                    "<iI", data, 4
                )  # after the CDR header
                self._sent.extend(
                    (sec * 1_000_000_000 + nanosec, info["source_timestamp"])
                )

    def destroy_node(self) -> None:
        """Write what was received."""
        com = np.array(self._com).reshape(-1, 4)
        self._fetch_joints()
        joints = np.array(self._sent).reshape(-1, 2)
        np.savez(
            self._file,
            com_stamp_ns=com[:, 0],
            com_sent_ns=com[:, 1],
            com_time_ns=com[:, 2],
            com_known=com[:, 3].astype(bool),
            joint_stamp_ns=joints[:, 0],
            joint_time_ns=joints[:, 1],
        )
        self._recorder.destroy_node()
        super().destroy_node()


class FirstListener(Node):
    """Writes the system's time, ns, when the first com or trunk_com comes that is not UNKNOWN."""

    def __init__(self, file: Path) -> None:
        super().__init__("latency_first")
        self._file = file
        self.create_subscription(CenterOfMass, "com", self._on_com, qos.stream(1))
        self.create_subscription(TrunkCom, "trunk_com", self._on_com, qos.stream(1))

    def _on_com(self, msg: CenterOfMass | TrunkCom) -> None:
        if msg.status and not self._file.exists():  # 0 is UNKNOWN
            self._file.write_text(str(time.time_ns()))


class BareNode(Node):
    """Receives what sesc_publisher does and answers each joint_states by a com of the same size.

    It computes nothing: what any node in Python costs that listens to these topics.

    Args:
        sensors: also imu and the feet's wrenches.
    """

    def __init__(self, sensors: bool = False) -> None:
        super().__init__("sesc_publisher")
        self._received = 0
        feet = [foot.frame for foot in hoap2()[1].feet]
        self._msg = CenterOfMass(status=CenterOfMass.STATUS_OK, mass=7.0, contacts=feet)
        self._msg.header.frame_id = "base_link"
        self._com = self.create_publisher(CenterOfMass, "com", qos.RESULT)
        self.create_subscription(
            JointState, "joint_states", self._on_joints, qos.stream(500)
        )
        if sensors:
            self.create_subscription(Imu, "imu", self._on_sensor, qos.stream(500))
            for foot in hoap2()[1].feet:
                topic, profile = foot.wrench_topic, qos.stream(500)
                self.create_subscription(WrenchStamped, topic, self._on_sensor, profile)

    def _on_sensor(self, _: Imu | WrenchStamped) -> None:
        self._received += 1

    def _on_joints(self, msg: JointState) -> None:
        self._msg.header.stamp = msg.header.stamp
        self._com.publish(self._msg)


def hoap2() -> tuple[RobotModel, RobotConfig]:
    """HOAP-2's model and configuration."""
    share = Path(get_package_share_directory("robot_descriptions"))
    model = RobotModel.from_file(share / "urdf" / "hoap2.urdf")
    return model, RobotConfig.from_file(share / "config" / "hoap2.yaml")


class SensorDriver:
    """Publishes imu and the wrenches of both feet, of a robot that stands."""

    def __init__(self, node: Node, config: RobotConfig, weight: float) -> None:
        self._imu = Imu(linear_acceleration=Vector3(z=GRAVITY))
        self._imu.header.frame_id = config.imu_link or "base_link"
        self._wrench = WrenchStamped()
        force = weight / len(config.feet)
        self._imu_publisher = node.create_publisher(Imu, "imu", qos.RESULT)
        self._feet = [
            (node.create_publisher(WrenchStamped, foot.wrench_topic, qos.RESULT), foot)
            for foot in config.feet
        ]
        self._force = force

    def publish(self, stamp: Time) -> None:
        """One message each."""
        self._imu.header.stamp = stamp
        self._imu_publisher.publish(self._imu)
        self._wrench.header.stamp = stamp
        for publisher, foot in self._feet:
            self._wrench.wrench.force.z = foot.wrench_sign * self._force
            publisher.publish(self._wrench)


def drive(rate_hz: float, sensors: bool = False) -> None:
    """Publish HOAP-2's joints at a fixed rate until interrupted; 0: as fast as it goes."""
    model, config = hoap2()
    posture = config.nominal_posture(model)
    order = np.random.default_rng(1).permutation(model.n_joints)
    names = [model.joint_names[i] for i in order]
    zero = np.zeros(model.n_joints)
    messages = []  # one period of a small motion: made beforehand, so that high rates are reached
    for phase in np.linspace(0.0, 2.0 * np.pi, 200, endpoint=False):
        q = posture[order] + 0.05 * np.sin(phase)
        messages.append(numpy_to_joint_state(names, q, zero, zero))
    rclpy.init(
        signal_handler_options=SignalHandlerOptions.NO
    )  # SIGINT is a KeyboardInterrupt
    node = Node("latency_driver")
    publisher = node.create_publisher(JointState, "joint_states", qos.RESULT)
    weight = model.mass * GRAVITY
    others = SensorDriver(node, config, weight) if sensors else None
    period = 1.0 / rate_hz if rate_hz else 0.0
    settle_memory()
    next_time = time.perf_counter()
    try:
        for msg in itertools.cycle(messages):
            stamp = ns_to_stamp(time.time_ns())
            if others is not None:
                others.publish(stamp)
            msg.header.stamp = stamp
            publisher.publish(msg)
            next_time += period
            left = next_time - time.perf_counter()
            if left > 0.0:
                time.sleep(left)
    except KeyboardInterrupt:
        rclpy.shutdown()


def main() -> int:
    """Take a role."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    roles = parser.add_subparsers(dest="role", required=True)
    driver = roles.add_parser("drive")
    driver.add_argument("--rate", type=float, required=True)
    bare = roles.add_parser("bare")
    for role in (driver, bare):
        role.add_argument("--sensors", action="store_true")
    listeners = {"listen": Listener, "first": FirstListener}
    for name in listeners:
        roles.add_parser(name).add_argument("file", type=Path)
    options = parser.parse_args()
    if options.role in listeners:
        return run(
            partial(listeners[options.role], options.file), [], make_fast_executor
        )
    if options.role == "bare":
        return run(partial(BareNode, options.sensors), [], make_fast_executor)
    drive(options.rate, options.sensors)
    return 0


if __name__ == "__main__":
    sys.exit(main())
