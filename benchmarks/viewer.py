"""What the viewer costs: a robot moves, a client follows, the node's processor is measured.

    tools/in_env python benchmarks/viewer.py [--robot talos] [--seconds 15] [--full]

The node com_viewer gets joint_states, com and /tf at 100 Hz and sesc at 30 Hz. Its client here
speaks viser's protocol as a browser does, counts the pictures, and draws nothing, so that only the
node is measured: user and system time of its process by /proc, threads included.

The last line is one JSON object:
    robot, joints     what is shown (default: talos, 32 joints; without example-robot-data hoap2)
    hz                pictures that the client gets a second; 30 are asked for
    core_percent      of one core that the node takes
    idle_percent      the same while nobody looks
    html_mb           size of one instant as a file, 1e6 bytes
    meshes_loaded, meshes_declared    <visual> shapes that are drawn, and that the URDF has

--full: 60 s.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import rclpy
import viser
import zstandard
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage
from websockets.sync.client import ClientConnection, connect

from com_demos.background import Background, free_domain_id
from com_estimation.nodes.com_output import numpy_to_center_of_mass, numpy_to_sesc_chain
from com_estimation.whole_body.com_state import ComObserver
from com_model import RobotConfig, RobotModel, load_robot
from com_model.exceptions import UnknownRobotError
from com_model.robots import find_robot
from com_msgs.msg import CenterOfMass, SescChain
from com_ros.conversions import numpy_to_joint_state
from com_simulation.drawing.shapes import robot_shape
from com_viewer.commands import view

RATE_HZ = 100.0
CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": (1.0, 0.0, 0.0, 0.0),
    "position": (2.0, 0.0, 0.0),
    "fov": 1.0,
    "near": 0.1,
    "far": 100.0,
    "image_height": 600,
    "image_width": 800,
    "look_at": (0.0, 0.0, 0.0),
    "up_direction": (0.0, 0.0, 1.0),
}


class RobotPublisher(Node):
    """Publishes a robot that moves all joints."""

    def __init__(self, model: RobotModel, config: RobotConfig) -> None:
        super().__init__("robot")
        self._model, self._posture = model, config.nominal_posture(model)
        self._observer = ComObserver(model, config.feet)
        self._joints = self.create_publisher(JointState, "joint_states", 10)
        self._com = self.create_publisher(CenterOfMass, "com", 10)
        self._sesc = self.create_publisher(SescChain, "sesc", 10)
        self._frames = self.create_publisher(TFMessage, "/tf", 10)
        self._count = 0

    def step(self) -> None:
        """Publish the next sample."""
        self._count += 1
        stamp, root = self.get_clock().now().to_msg(), self._model.root_link
        swing = 0.1 * np.sin(2.0 * self._count / RATE_HZ)
        q, qd = self._posture + swing, np.full(len(self._posture), 0.1)
        names = list(self._model.joint_names)
        self._joints.publish(numpy_to_joint_state(names, q, qd, stamp=stamp))
        state = self._observer.update(q, qd)
        self._com.publish(numpy_to_center_of_mass(state, stamp, root))
        frame = TransformStamped(child_frame_id=root)
        frame.header.frame_id, frame.header.stamp = "odom", stamp
        frame.transform.translation.z = 1.0 + float(swing)
        self._frames.publish(TFMessage(transforms=[frame]))
        if self._count % 3 == 0:
            sesc, links = self._observer.sesc, self._model.bodies.names
            vectors = self._model.mass, links, sesc.parameters_at(q), sesc.chain(q)
            self._sesc.publish(numpy_to_sesc_chain(*vectors, stamp, root))


class Client:
    """Counts how often the root link is placed."""

    def __init__(self, socket: ClientConnection, name: str) -> None:
        self.pictures = 0
        self._socket, self._name = socket, name
        socket.send(msgspec.msgpack.encode(CAMERA))
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        unpack = zstandard.ZstdDecompressor()
        for data in self._socket:
            assert isinstance(data, bytes)
            packed = data[16 : 16 + int.from_bytes(data[8:16], "little")]
            size = int.from_bytes(data[:8], "little")
            content = msgspec.msgpack.decode(
                unpack.decompress(packed, max_output_size=size)
            )
            for message in content["messages"]:
                if (
                    message["type"] == "SetPositionMessage"
                    and message["name"] == self._name
                ):
                    self.pictures += 1


def processor_seconds(pid: int) -> float:
    """User and system time of a process and its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def moving(robot: RobotPublisher) -> Iterator[None]:
    """Let the robot move meanwhile, in a thread."""
    done = threading.Event()

    def work() -> None:
        next_at = time.monotonic()
        while not done.is_set():
            robot.step()
            next_at += 1.0 / RATE_HZ
            time.sleep(max(0.0, next_at - time.monotonic()))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def measure(name: str, model: RobotModel, config: RobotConfig, seconds: float) -> dict:
    """Start the node, and follow it."""
    files = find_robot(name)
    parameters = {
        "robot_config": files.config or "",
        "urdf_file": files.urdf,
        "port": 8400,
    }
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        urdf = Path(folder) / "parameters.yaml"
        text = {"com_viewer": {"ros__parameters": {"robot_description": model.xml}}}
        urdf.write_text(json.dumps(text))
        options = [
            word
            for key, value in parameters.items()
            for word in ("-p", f"{key}:={value}")
        ]
        command = [
            sys.executable,
            "-m",
            "com_viewer.commands.view",
            "live",
            "--ros-args",
        ]
        rclpy.init(args=[])
        robot = RobotPublisher(model, config)
        with Background([*command, "--params-file", str(urdf), *options], log) as node:
            while not (found := re.search(r"http://(127.0.0.1\S+)", log.read_text())):
                assert node.exit_code is None, node.tail()
                time.sleep(0.2)
            assert node._process is not None
            pid = node._process.pid
            with moving(robot):
                time.sleep(5.0)
                idle = _percent(pid, seconds / 2)
                protocol = [f"viser-v{viser.__version__}"]
                address = f"ws://{found[1]}"
                with connect(address, subprotocols=protocol, max_size=None) as socket:
                    client = Client(socket, f"/robot/{model.root_link}")
                    time.sleep(5.0)
                    before, begin = client.pictures, time.monotonic()
                    percent = _percent(pid, seconds)
                    hz = (client.pictures - before) / (time.monotonic() - begin)
        robot.destroy_node()
        rclpy.shutdown()
        html = Path(folder) / "robot.html"
        view.main([name, "--record", str(html), "--port", "8401"])
        size = html.stat().st_size / 1e6
    return {
        "hz": round(hz, 1),
        "core_percent": round(percent, 1),
        "idle_percent": round(idle, 1),
        "html_mb": round(size, 2),
    }


def _percent(pid: int, seconds: float) -> float:
    before, begin = processor_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return 100.0 * (processor_seconds(pid) - before) / (time.monotonic() - begin)


def main() -> int:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robot", default="")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("ROS_DOMAIN_ID", str(free_domain_id() or 0))
    name = options.robot or "talos"
    try:
        model, config = load_robot(name)
    except UnknownRobotError:
        name = options.robot or "hoap2"
        model, config = load_robot(name)
    shape = robot_shape(model, find_robot(name).urdf)
    for text in shape.missing:
        print(f"missing: {text}")
    figures = {
        "robot": name,
        "joints": model.n_joints,
        **measure(name, model, config, 60.0 if options.full else options.seconds),
        "meshes_loaded": shape.declared - len(shape.missing),
        "meshes_declared": shape.declared,
    }
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
