"""state_adapter against a client of the robots' maker, over DDS: what it costs.

    tools/in_env python benchmarks/state_adapter.py [--seconds 20]

PyPI's unitree-dds-wrapper, in an environment of its own, publishes rt/lowstate at 500 Hz through
Cyclone DDS, as a Go2 does. Two programs receive it at the same time: state_adapter, and a bare
rclpy node that leaves the bytes unread and publishes two ready messages of the same sizes. The last
line is one JSON object: cpu_ratio (a message of the first over one of the second), received and
published (outputs of the bare node and of state_adapter that arrive, over messages sent), client.
Exit status 2: the client cannot be installed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import rclpy
import yaml
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from com_bags.robot_states import STATE_TYPES
from com_model import load_robot

CLIENT = ("cyclonedds==11.0.1", "unitree-dds-wrapper==2.0.9")
GO = "unitree_go/msg/LowState"
TAIL = """uint8[40] wireless_remote
uint8 bit_flag
float32 adc_reel
uint8 temperature_ntc1
uint8 temperature_ntc2
float32 power_v
float32 power_a
uint16[4] fan_frequency
uint32 reserve
uint32 crc
"""
PACKAGE = """<package format="3"><name>unitree_go</name><version>0.1.0</version>
<description>messages</description><maintainer email="none@example.com">none</maintainer>
<license>BSD-3-Clause</license><buildtool_depend>ament_cmake</buildtool_depend>
<buildtool_depend>rosidl_default_generators</buildtool_depend>
<exec_depend>rosidl_default_runtime</exec_depend>
<member_of_group>rosidl_interface_packages</member_of_group>
<export><build_type>ament_cmake</build_type></export></package>
"""
CMAKE = """cmake_minimum_required(VERSION 3.14)
project(unitree_go)
find_package(ament_cmake REQUIRED)
find_package(rosidl_default_generators REQUIRED)
rosidl_generate_interfaces(${PROJECT_NAME} %s)
ament_package()
"""
SENDER = """
import sys, time
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.topic import Topic
from cyclonedds.util import duration
from unitree_dds_wrapper.idl.unitree_go.msg.dds_ import LowState_
participant = DomainParticipant(int(sys.argv[1]))
qos = Qos(Policy.Reliability.BestEffort, Policy.Durability.Volatile, Policy.History.KeepLast(1))
writer = DataWriter(participant, Topic(participant, "rt/lowstate", LowState_), qos=qos)
message, end, k = LowState_(), time.monotonic() + float(sys.argv[2]), 0
message.imu_state.quaternion = [1.0, 0.0, 0.0, 0.0]
message.imu_state.accelerometer = [0.0, 0.0, 9.81]
begin = time.monotonic()
while time.monotonic() < end:
    message.tick = 1000 + 2 * k
    message.motor_state[0].q = 1e-3 * k
    writer.write(message)
    k += 1
    time.sleep(max(0.0, begin + 0.002 * k - time.monotonic()))
print(k)
"""
BARE = """
import sys, rclpy, rclpy.executors
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, JointState
from rclpy.qos import QoSProfile, ReliabilityPolicy
from unitree_go.msg import LowState
rclpy.init()
node = rclpy.create_node("bare")
state = JointState(name=sys.argv[1].split(","), position=[0.0] * 12, velocity=[0.0] * 12,
                   effort=[0.0] * 12)
ready = [(node.create_publisher(type(m), f"bare/{t}", 100), serialize_message(m))
         for t, m in (("joint_states", state), ("imu", Imu()))]
def forward(payload):
    for publisher, data in ready:
        publisher.publish(data)
node.create_subscription(LowState, "lowstate", forward, QoSProfile(
    depth=500, reliability=ReliabilityPolicy.BEST_EFFORT), raw=True)
try:
    rclpy.spin(node)
except rclpy.executors.ExternalShutdownException:
    pass
"""


def install_client(folder: Path) -> Path | None:
    """Python of an environment with the client; None where it cannot be installed."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LD_"))}
    command = [str(python), "-m", "pip", "install", "-q", *CLIENT]
    done = subprocess.run(command, env=clean, check=False)
    return python if done.returncode == 0 else None


def build_messages(folder: Path) -> Path:
    """Builds unitree_go; returns the script that adds it to the environment."""
    source, files = folder / "src" / "unitree_go", []
    (source / "msg").mkdir(parents=True)
    for name, text in STATE_TYPES[GO].definitions.items():
        files.append(f"msg/{name.rpartition('/')[2]}.msg")
        (source / files[-1]).write_text(text + TAIL * (name == GO))
    (source / "package.xml").write_text(PACKAGE)
    (source / "CMakeLists.txt").write_text(CMAKE % " ".join(files))
    command = ["colcon", "build", "--base-paths", "src", "--cmake-args"]
    command += ["-DBUILD_TESTING=OFF"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "install" / "local_setup.bash"


def cpu_seconds(process: subprocess.Popen) -> float:
    """CPU time of a running program, s."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def number(payload: bytes) -> int:
    """Number of a message of the client, which is 1000 times the position of its first motor."""
    message = deserialize_message(payload, JointState)
    return round(1e3 * message.position[message.name.index("FR_hip_joint")])


def measure(folder: Path, python: Path, setup: Path, seconds: float) -> dict:
    """Runs both receivers against the client."""
    model, _ = load_robot("go2")
    domain = os.environ.setdefault("ROS_DOMAIN_ID", "77")
    parameters = {"driver": "unitree-go2", "robot_description": model.xml}
    file = folder / "parameters.yaml"
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
    (folder / "bare.py").write_text(BARE)
    (folder / "sender.py").write_text(SENDER)

    def receiver(*words: str) -> subprocess.Popen:
        script = f'. {setup}; exec {sys.executable} "$@"'
        return subprocess.Popen(["bash", "-c", script, "receiver", *words])

    adapter = [
        "-m",
        "com_ros.nodes.state_adapter",
        "--ros-args",
        "--params-file",
        str(file),
    ]
    running = [
        receiver(*adapter),
        receiver(str(folder / "bare.py"), ",".join(model.joint_names)),
    ]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LD_"))}
    clean["CYCLONEDDS_URI"] = (
        "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name='lo'/></Interfaces>"
        "<AllowMulticast>false</AllowMulticast></General><Discovery><Peers>"
        "<Peer address='127.0.0.1'/></Peers><ParticipantIndex>auto</ParticipantIndex></Discovery>"
        "</Domain></CycloneDDS>"
    )
    rclpy.init()
    node, counts = (
        rclpy.create_node("count"),
        {"joint_states": 0, "bare/joint_states": 0},
    )
    qos, newest = QoSProfile(depth=1000), {}
    for topic in counts:

        def count(payload: bytes, topic: str = topic) -> None:
            counts[topic] += 1
            newest[topic] = payload

        node.create_subscription(JointState, topic, count, qos, raw=True)
    try:
        sending = [str(python), str(folder / "sender.py"), domain, str(seconds + 20.0)]
        sender = subprocess.Popen(sending, env=clean)
        running.append(sender)
        limit = time.monotonic() + 60.0
        while not all(counts.values()):
            rclpy.spin_once(node, timeout_sec=0.5)
            if time.monotonic() > limit or sender.poll() is not None:
                raise SystemExit(f"nothing was received: {counts}")
        first = number(newest["joint_states"])
        begin, before = time.monotonic(), [cpu_seconds(each) for each in running[:2]]
        counts.update(dict.fromkeys(counts, 0))
        while time.monotonic() < begin + seconds:
            rclpy.spin_once(node, timeout_sec=0.1)
        after = [cpu_seconds(each) for each in running[:2]]
        sent = number(newest["joint_states"]) - first
        rate = sent / (time.monotonic() - begin)
    finally:
        for each in running:
            each.terminate()
        for each in running:
            each.wait(20)
        node.destroy_node()
        rclpy.try_shutdown()
    spent = [b - a for a, b in zip(before, after, strict=True)]
    costs = [s / n for s, n in zip(spent, counts.values(), strict=True)]
    return {
        "cpu_ratio": round(costs[0] / costs[1], 3),
        "cpu_s": [round(own, 2) for own in spent],
        "rate_hz": round(rate, 1),
        "received": round(counts["bare/joint_states"] / sent, 4),
        "published": round(counts["joint_states"] / sent, 4),
        "client": " ".join(CLIENT),
    }


def main() -> int:
    """Makes the environment, measures, and prints the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="of the measurement"
    )
    options = parser.parse_args()
    if not shutil.which("colcon"):
        parser.error("colcon is needed: run it with tools/in_env")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        python = install_client(folder / "client")
        if python is None:
            print(f"the client cannot be installed: pip install {' '.join(CLIENT)}")
            return 2
        setup = build_messages(folder)
        print(json.dumps(measure(folder, python, setup, options.seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
