"""The simulator, and a node that receives what it publishes and commands it."""

import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import rclpy
from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray
from tf2_msgs.msg import TFMessage
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from com_demos.background import free_domain_id
from com_msgs.msg import CenterOfMass
from com_ros import qos
from com_ros.conversions import stamp_to_ns
from com_ros.main import make_fast_executor
from com_simulation.nodes.simulator import Simulator

DESCRIPTIONS = Path(__file__).resolve().parents[2] / "src" / "robot_descriptions"
HOAP2 = {
    "robot_description": (DESCRIPTIONS / "urdf" / "hoap2.urdf").read_text(),
    "robot_config": str(DESCRIPTIONS / "config" / "hoap2.yaml"),
}
ARM = """<robot name="arm"><link name="base"/>
<joint name="a" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
</joint><link name="upper"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="b" type="continuous"><parent link="upper"/><child link="lower"/>
<origin xyz="0.2 0 0"/><axis xyz="0 1 0"/></joint>
<link name="lower"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
TOPICS = {
    "joint_states": JointState,
    "imu": Imu,
    "l_sole/wrench": WrenchStamped,
    "r_sole/wrench": WrenchStamped,
    "ground_truth/com": CenterOfMass,
    "ground_truth/trunk_com": CenterOfMass,
    "/tf": TFMessage,
    "/clock": Clock,
    "/diagnostics": DiagnosticArray,
}


class Bench:
    """A simulator, and a node that hears what it says and commands it."""

    def __init__(self, **parameters):
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=free_domain_id())
        self.received = defaultdict(list)
        self.node = rclpy.create_node("bench", context=self.context)
        for topic, kind in TOPICS.items():
            self.node.create_subscription(
                kind, topic, self.received[topic].append, qos.stream(2000)
            )
        self.trajectory = self.node.create_publisher(
            JointTrajectory, "joint_trajectory", qos.RESULT
        )
        self.commands = self.node.create_publisher(
            Float64MultiArray, "joint_commands", qos.RESULT
        )
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.simulator = None
        try:
            self.simulator = Simulator(
                context=self.context, parameter_overrides=overrides
            )
        except Exception:
            self.close()
            raise
        self.executor = make_fast_executor(self.context)
        self.executor.add_node(self.node)
        self.executor.add_node(self.simulator)

    def until(self, condition, what, limit=30.0):
        end = time.monotonic() + limit
        while not condition():
            counts = {topic: len(messages) for topic, messages in self.received.items()}
            assert time.monotonic() < end, f"no {what}; received {counts}"
            self.executor.spin_once(timeout_sec=0.05)

    def wait_for(self, topic, count=1):
        self.until(lambda: len(self.received[topic]) >= count, f"{count} on {topic}")
        return self.received[topic]

    def spin(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.02)

    def connect(self):
        self.wait_for("joint_states")
        publishers = (self.trajectory, self.commands)
        self.until(
            lambda: all(p.get_subscription_count() for p in publishers), "subscription"
        )

    def positions(self):
        """Joint positions received last."""
        return np.array(self.received["joint_states"][-1].position)

    def send(self, names, times, positions, velocities=None, stamp=None):
        msg = JointTrajectory(joint_names=names)
        for i, t in enumerate(times):
            point = JointTrajectoryPoint(positions=[float(x) for x in positions[i]])
            if velocities:
                point.velocities = [float(x) for x in velocities[i]]
            point.time_from_start = Duration(sec=int(t), nanosec=round((t % 1) * 1e9))
            msg.points.append(point)
        if stamp is not None:
            msg.header.stamp = stamp
        self.trajectory.publish(msg)

    def close(self):
        if self.simulator is not None:
            self.executor.shutdown()
            self.simulator.destroy_node()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)


def by_stamp(messages):
    return {stamp_to_ns(msg.header.stamp): msg for msg in messages}
