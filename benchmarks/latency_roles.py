"""The processes around the node in node_latency.py: a driver and a listener.

python latency_roles.py drive --rate 1000
python latency_roles.py listen heard.npz
"""

import argparse
import itertools
import struct
import sys
import time
from array import array
from functools import partial
from pathlib import Path

import numpy as np
import rclpy
from ament_index_python.packages import get_package_share_directory
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

from com_model import RobotConfig, RobotModel
from com_msgs.msg import CenterOfMass
from com_ros import qos
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state, stamp_to_ns
from com_ros.main import make_fast_executor, run, settle_memory


class Listener(Node):
    """Notes when each com comes.

    With the first com it touches a file beside the one that it will write when it ends.

    Args:
        file: npz with com_stamp_ns, com_time_ns, com_known, and joint_stamp_ns, joint_time_ns:
            the stamps of joint_states and when DDS sent them off.
    """

    def __init__(self, file: Path) -> None:
        super().__init__("latency_listener")
        self._file = file
        self._com = array("q")
        self.create_subscription(CenterOfMass, "com", self._on_com, qos.stream(1000))
        # A node that nobody spins: its messages wake nobody, and are fetched after each com.
        self._sent = array("q")
        self._recorder = Node("latency_recorder")
        self._joints = self._recorder.create_subscription(
            JointState, "joint_states", print, qos.stream(1000), raw=True
        )

    def _on_com(self, msg: CenterOfMass) -> None:
        now_ns = time.time_ns()
        known = msg.status != CenterOfMass.STATUS_UNKNOWN
        if known and not self._com:
            self._file.with_suffix(".first").touch()
        self._com.extend((stamp_to_ns(msg.header.stamp), now_ns, known))
        self._fetch_joints()

    def _fetch_joints(self) -> None:
        with self._joints.handle:
            while (taken := self._joints.handle.take_message(JointState, True)) is not None:
                data, info = taken
                sec, nanosec = struct.unpack_from("<iI", data, 4)  # after the CDR header
                self._sent.extend((sec * 1_000_000_000 + nanosec, info["source_timestamp"]))

    def destroy_node(self) -> None:
        """Write what was heard."""
        com = np.array(self._com).reshape(-1, 3)
        self._fetch_joints()
        joints = np.array(self._sent).reshape(-1, 2)
        np.savez(
            self._file,
            com_stamp_ns=com[:, 0],
            com_time_ns=com[:, 1],
            com_known=com[:, 2].astype(bool),
            joint_stamp_ns=joints[:, 0],
            joint_time_ns=joints[:, 1],
        )
        self._recorder.destroy_node()
        super().destroy_node()


def drive(rate_hz: float) -> None:
    """Publish HOAP-2's joints at a fixed rate until interrupted."""
    share = Path(get_package_share_directory("robot_descriptions"))
    model = RobotModel.from_file(share / "urdf" / "hoap2.urdf")
    posture = RobotConfig.from_file(share / "config" / "hoap2.yaml").nominal_posture(model)
    order = np.random.default_rng(1).permutation(model.n_joints)
    names = [model.joint_names[i] for i in order]
    still = np.zeros(model.n_joints)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)  # SIGINT is a KeyboardInterrupt
    node = Node("latency_driver")
    publisher = node.create_publisher(JointState, "joint_states", qos.RESULT)
    msg = JointState()
    settle_memory()
    next_time = time.perf_counter()
    try:
        for step in itertools.count():
            q = posture[order] + 0.05 * np.sin(2.0 * np.pi * 0.5 * step / rate_hz)
            numpy_to_joint_state(names, q, still, still, out=msg)
            msg.header.stamp = ns_to_stamp(time.time_ns())
            publisher.publish(msg)
            next_time += 1.0 / rate_hz
            time.sleep(max(0.0, next_time - time.perf_counter()))
    except KeyboardInterrupt:
        rclpy.shutdown()


def main() -> int:
    """Take a role."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    roles = parser.add_subparsers(dest="role", required=True)
    roles.add_parser("drive").add_argument("--rate", type=float, required=True)
    roles.add_parser("listen").add_argument("file", type=Path)
    options = parser.parse_args()
    if options.role == "listen":
        return run(partial(Listener, options.file), [], make_fast_executor)
    drive(options.rate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
