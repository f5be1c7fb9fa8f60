"""The processes around the node in node_latency.py: a driver and a listener.

python latency_roles.py drive --rate 1000
python latency_roles.py listen heard.npz
"""

import argparse
import itertools
import sys
import time
from array import array
from functools import partial
from pathlib import Path

import numpy as np
import rclpy
from ament_index_python.packages import get_package_share_directory
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state, stamp_to_ns
from com_ros.executor import make_fast_executor
from com_ros.main import run, settle_memory
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

from com_model import RobotConfig, RobotModel
from com_msgs.msg import CenterOfMass
from com_ros import qos


class Listener(Node):
    """Notes when each com comes.

    With the first com it touches a file beside the one that it will write when it ends.

    Args:
        file: npz with com_stamp_ns, com_time_ns and com_known.
        with_joint_states: note joint_states as well (unopened, as bytes): joint_stamp_ns and
            joint_time_ns.
    """

    def __init__(self, file: Path, *, with_joint_states: bool) -> None:
        super().__init__("latency_listener")
        self._file = file
        self._com, self._joint_times = array("q"), array("q")
        self._joint_stamps = bytearray()
        self.create_subscription(CenterOfMass, "com", self._on_com, qos.stream(1000))
        if with_joint_states:
            depth = qos.stream(1000)
            self.create_subscription(JointState, "joint_states", self._on_joints, depth, raw=True)

    def _on_com(self, msg: CenterOfMass) -> None:
        now_ns = time.time_ns()
        known = msg.status != CenterOfMass.STATUS_UNKNOWN
        if known and not self._com:
            self._file.with_suffix(".first").touch()
        self._com.extend((stamp_to_ns(msg.header.stamp), now_ns, known))

    def _on_joints(self, data: bytes) -> None:
        self._joint_times.append(time.time_ns())
        self._joint_stamps += data[4:12]  # after the CDR header: int32 sec, uint32 nanosec

    def destroy_node(self) -> None:
        """Write what was heard."""
        com = np.array(self._com).reshape(-1, 3)
        stamps = np.frombuffer(self._joint_stamps, dtype="<u4").reshape(-1, 2).astype(np.int64)
        np.savez(
            self._file,
            com_stamp_ns=com[:, 0],
            com_time_ns=com[:, 1],
            com_known=com[:, 2].astype(bool),
            joint_stamp_ns=stamps[:, 0] * 1_000_000_000 + stamps[:, 1],
            joint_time_ns=np.array(self._joint_times),
        )
        super().destroy_node()


def drive(file: Path, rate_hz: float) -> None:
    """Publish HOAP-2's joints at a fixed rate until interrupted; then write the stamps (npy)."""
    share = Path(get_package_share_directory("robot_descriptions"))
    model = RobotModel.from_file(share / "urdf" / "hoap2.urdf")
    posture = RobotConfig.from_file(share / "config" / "hoap2.yaml").nominal_posture(model)
    order = np.random.default_rng(1).permutation(model.n_joints)
    names = [model.joint_names[i] for i in order]
    still = np.zeros(model.n_joints)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)  # SIGINT is a KeyboardInterrupt
    node = Node("latency_driver")
    publisher = node.create_publisher(JointState, "joint_states", qos.RESULT)
    msg, stamps = JointState(), array("q")
    settle_memory()
    next_time = time.perf_counter()
    try:
        for step in itertools.count():
            q = posture[order] + 0.05 * np.sin(2.0 * np.pi * 0.5 * step / rate_hz)
            numpy_to_joint_state(names, q, still, still, out=msg)
            stamps.append(time.time_ns())
            msg.header.stamp = ns_to_stamp(stamps[-1])
            publisher.publish(msg)
            next_time += 1.0 / rate_hz
            time.sleep(max(0.0, next_time - time.perf_counter()))
    except KeyboardInterrupt:
        np.save(file, np.array(stamps))
        rclpy.shutdown()


def main() -> int:
    """Take a role."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    roles = parser.add_subparsers(dest="role", required=True)
    driver, listener = roles.add_parser("drive"), roles.add_parser("listen")
    for role in (driver, listener):
        role.add_argument("file", type=Path)
    driver.add_argument("--rate", type=float, required=True)
    listener.add_argument("--with-joint-states", action="store_true")
    options = parser.parse_args()
    if options.role == "listen":
        ears = partial(Listener, options.file, with_joint_states=options.with_joint_states)
        return run(ears, [], make_fast_executor)
    drive(options.file, options.rate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
