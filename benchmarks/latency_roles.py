"""The processes around the node in node_latency.py: a driver and a listener.

python latency_roles.py drive --rate 1000
python latency_roles.py listen heard.npz
"""

import argparse
import itertools
import sys
import time
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
    """Notes when each com comes, and the stamps of all joint_states (unopened, as bytes).

    With the first com it touches a file beside the one that it will write when it ends.
    """

    def __init__(self, file: Path) -> None:
        super().__init__("latency_listener")
        self._file = file
        self._heard = False
        self._com: list[tuple[int, int, bool]] = []
        self._joints: list[tuple[bytes, int]] = []
        self.create_subscription(CenterOfMass, "com", self._on_com, qos.stream(1000))
        self.create_subscription(
            JointState, "joint_states", self._on_joints, qos.stream(1000), raw=True
        )

    def _on_com(self, msg: CenterOfMass) -> None:
        now_ns = time.time_ns()
        known = msg.status != CenterOfMass.STATUS_UNKNOWN
        if known and not self._heard:
            self._heard = True
            self._file.with_suffix(".first").touch()
        self._com.append((stamp_to_ns(msg.header.stamp), now_ns, known))

    def _on_joints(self, data: bytes) -> None:
        stamp = data[4:12]  # after the CDR header: int32 sec, uint32 nanosec
        self._joints.append((stamp, time.time_ns()))

    def destroy_node(self) -> None:
        """Write what was heard."""
        com = np.array(self._com, dtype=np.int64).reshape(-1, 3)
        stamps = np.frombuffer(b"".join(stamp for stamp, _ in self._joints), dtype="<u4")
        seconds, nanoseconds = stamps.reshape(-1, 2).astype(np.int64).T
        np.savez(
            self._file,
            com_stamp_ns=com[:, 0],
            com_time_ns=com[:, 1],
            com_known=com[:, 2].astype(bool),
            joint_stamp_ns=seconds * 1_000_000_000 + nanoseconds,
            joint_time_ns=np.array([time_ns for _, time_ns in self._joints], dtype=np.int64),
        )
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
        return run(lambda: Listener(options.file), [], make_fast_executor)
    drive(options.rate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
