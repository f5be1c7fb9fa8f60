"""Nodes in this process, talking over DDS with a node that plays the rest of the robot."""

import threading
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
import rclpy
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_srvs.srv import Trigger
from walker_urdf import walker_urdf

from com_ros.main import make_fast_executor

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class World:
    """Starts nodes under test, sends them messages and collects what they publish."""

    def __init__(self, context):
        self.executor = make_fast_executor(context)
        self.context = context
        self.node = Node("world", context=context)
        self.executor.add_node(self.node)
        self.nodes = [self.node]
        self.publishers = {}
        self.topics = set()

    def start(self, make_node, *, namespace="", **parameters):
        """Start a node; "__" in the name of a parameter stands for "."."""
        overrides = [
            rclpy.Parameter(name.replace("__", "."), value=value)
            for name, value in parameters.items()
        ]
        node = make_node(
            context=self.context,
            namespace=namespace or None,
            parameter_overrides=overrides,
        )
        self.nodes.append(node)
        self.executor.add_node(node)
        outputs = [p for p in node.publishers if p.topic_name in self.topics]
        self.spin_until(
            lambda: all(p.get_subscription_count() for p in outputs), "it is received"
        )
        return node

    def collect(self, kind, topic, qos=200):
        """A list that grows with each message on a topic."""
        received = []
        subscription = self.node.create_subscription(kind, topic, received.append, qos)
        self.topics.add(subscription.topic_name)
        return received

    def publisher(self, kind, topic, qos=200):
        """A publisher that somebody listens to."""
        if topic not in self.publishers:
            self.publishers[topic] = self.node.create_publisher(kind, topic, qos)
        self.spin_until(
            self.publishers[topic].get_subscription_count, f"{topic} is received"
        )
        return self.publishers[topic]

    def send(self, topic, msg, qos=200):
        """Publish a message to somebody who listens."""
        self.publisher(type(msg), topic, qos).publish(msg)

    def latch(self, topic, msg):
        """Publish a message for whoever comes later, too."""
        if topic not in self.publishers:
            self.publishers[topic] = self.node.create_publisher(
                type(msg), topic, LATCHED
            )
        self.publishers[topic].publish(msg)

    def spin_until(self, condition, what="", timeout=200.0):
        """Serve all nodes until a condition holds."""
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, f"in vain waited until {what or condition}"
            self.executor.spin_once(timeout_sec=0.02)

    def spin_for(self, seconds):
        """Serve all nodes for a time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.executor.spin_once(timeout_sec=left)

    def trigger(self, name):
        """Call a service without arguments; return the response."""
        client = self.node.create_client(Trigger, name)
        self.spin_until(client.service_is_ready, name)
        future = client.call_async(Trigger.Request())
        self.spin_until(future.done, name)
        return future.result()

    @contextmanager
    def served(self, *messages):
        """Serve all nodes in a thread, and publish messages, by topic, again and again."""
        senders = [
            (self.node.create_publisher(type(m), name, 10), m) for name, m in messages
        ]
        timer = self.node.create_timer(
            0.05, lambda: [sender.publish(m) for sender, m in senders]
        )
        ended = threading.Event()

        def serve():
            while not ended.is_set():
                self.executor.spin_once(timeout_sec=0.05)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            timer.destroy()

    def close(self):
        self.executor.shutdown()
        for node in self.nodes:
            node.destroy_node()


@pytest.fixture
def world(ros_context):
    world = World(ros_context)
    yield world
    world.close()


@pytest.fixture
def ros2(capsys, monkeypatch):
    """ros2(*words): exit code of the ros2 of tools/, what it prints, and its errors."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "tools")
    from ros2_command.cli import main

    def run(*words):
        code = main([str(word) for word in words])
        return (code, *capsys.readouterr())

    return run


WALKER_CONFIG = """
name: walker
root_link: base_link
feet:
  l_sole: {corners: [[0.1, 0.05], [0.1, -0.05], [-0.1, -0.05], [-0.1, 0.05]]}
  r_sole: {corners: [[0.1, 0.05], [0.1, -0.05], [-0.1, -0.05], [-0.1, 0.05]],
           wrench: {topic: right/force, sign: -1}}
imu: {link: imu_link}
"""


@pytest.fixture
def walker():
    """The text of a small biped's URDF; see walker_urdf."""
    return walker_urdf()


@pytest.fixture
def make_walker():
    """walker_urdf, for other masses and names."""
    return walker_urdf


@pytest.fixture
def walker_config(tmp_path):
    """Path of its configuration: soles of 0.2 m x 0.1 m."""
    path = tmp_path / "walker.yaml"
    path.write_text(WALKER_CONFIG)
    return str(path)


@pytest.fixture
def simulator_bench():
    """simulator_bench(**parameters): a simulator, and a node that commands it."""
    from simulator_bench import Bench  # needs MuJoCo, only here

    with ExitStack() as benches:
        yield lambda **parameters: benches.enter_context(closing(Bench(**parameters)))


@pytest.fixture
def warnings(monkeypatch):
    """Texts of the throttled warnings, without the throttle."""
    texts = []
    monkeypatch.setattr(
        "com_ros.diagnostics.ThrottledLog.warn",
        lambda self, kind, text: texts.append(text),
    )
    return texts
