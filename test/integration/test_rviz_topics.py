"""Layouts show only what is published; launch files give nodes only parameters that they have.

The nodes are made as hoap2.launch.xml, scalf2.launch.xml and itu_biped.launch.xml would start
them, and asked.
"""

import math
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import rclpy
import yaml
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Vector3
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import (
    DurabilityPolicy,
    QoSCompatibility,
    QoSProfile,
    ReliabilityPolicy,
    qos_check_compatible,
)
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray

from com_control.nodes.ccgd_gait import CcgdGaitNode
from com_control.nodes.com_balancer import ComBalancerNode
from com_control.nodes.trot_gait import TrotGaitNode
from com_control.walking.biped import Biped
from com_control.walking.walk import WalkRequest
from com_control.walking.walk_monitor import WalkEstimate
from com_control.walking.walker import Walker
from com_estimation.nodes.humanoid_com_estimator import HumanoidComEstimator
from com_estimation.nodes.sesc_publisher import SescPublisher
from com_estimation.nodes.trunk_estimator import TrunkEstimatorNode
from com_estimation.nodes.trunk_output import TrunkDisplay
from com_estimation.trunk.interface import TrunkEstimate
from com_identification.nodes.com_identification import ComIdentification
from com_model import RobotConfig, RobotModel
from com_model.robots import find_robot
from com_model.status import Status
from com_simulation.nodes.simulator import Simulator
from com_simulation.nodes.sway import SwayNode

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import layouts  # noqa: E402
from launcher.interpreter import nodes_of  # noqa: E402

RVIZ_FILES = sorted((ROOT / "launch" / "rviz").glob("*.rviz"))
CLASSES = {
    "sesc_publisher": SescPublisher,
    "simulator": Simulator,
    "sway": SwayNode,
    "ccgd_gait": CcgdGaitNode,
    "trot_gait": TrotGaitNode,
    "trunk_estimator": TrunkEstimatorNode,
    "com_balancer": ComBalancerNode,
    "com_identification": ComIdentification,
    "humanoid_com_estimator": HumanoidComEstimator,
}
NAMESPACE = "/lab"
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TF = QoSProfile(depth=100)
# What robot_state_publisher, which is no part of the suite, publishes by its documentation.
FOREIGN = {
    f"{NAMESPACE}/robot_description": (String, LATCHED),
    "/tf": (TFMessage, TF),
    "/tf_static": (TFMessage, LATCHED),
}
SHOWS = {
    "rviz_default_plugins/MarkerArray": "MarkerArray",
    "rviz_default_plugins/RobotModel": "String",
    "rviz_default_plugins/PointStamped": "PointStamped",
    "rviz_default_plugins/Wrench": "WrenchStamped",
}
LEG_NAMES = ("left_front", "right_front", "left_hind", "right_hind")
PATIENCE = 250.0  # s, of a busy machine: nothing here takes that long


@pytest.fixture(scope="module", autouse=True)
def domain(draw_domain):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", str(draw_domain()))
        yield


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """Make a node of hoap2.launch.xml, scalf2 or itu_biped in this order; hand it on; end it."""
    folder = tmp_path_factory.mktemp("parameters")
    given = {
        "namespace": NAMESPACE,
        "sway": "true",
        "simulation": "true",
        "use_imu": "false",
    }
    given["diagnosis"] = "true"
    by_name = {
        node.executable: node
        for file in ("balance", "identification", "itu_biped", "scalf2", "hoap2")
        for node in nodes_of(ROOT / f"launch/{file}.launch.xml", given)
    }

    class Started:
        def __init__(self, name):
            self.plan = by_name[name]
            self.make = CLASSES[name]

        def __enter__(self):
            rclpy.init(args=self.plan.command(folder))
            self.node = self.make()
            return self.node

        def __exit__(self, *_):
            self.node.destroy_node()
            rclpy.shutdown()

    return Started


@pytest.fixture(scope="module")
def published(started):
    """Topic -> message type and QoS, of all nodes."""
    found = dict(FOREIGN)
    for name in CLASSES:
        with started(name) as node:
            found |= {
                p.topic_name: (p.msg_type, p.qos_profile) for p in node.publishers
            }
    return found


def displays(path):
    return yaml.safe_load(path.read_text())["Visualization Manager"]["Displays"]


def topics(item):
    """Every topic below an entry of an rviz file: (name, its QoS entries)."""
    if isinstance(item, list):
        return [found for part in item for found in topics(part)]
    if not isinstance(item, dict):
        return []
    found = []
    for key, value in item.items():
        if key.endswith("Topic"):
            entry = value if isinstance(value, dict) else {"Value": value}
            found.append((entry["Value"], entry))
        else:
            found += topics(value)
    return found


def resolve(topic):
    return topic if topic.startswith("/") else f"{NAMESPACE}/{topic}"


def test_there_is_something_to_show():
    names = ["balance", "com", "identification", "trot", "walk"]
    assert [path.stem for path in RVIZ_FILES] == names


@pytest.mark.parametrize("path", RVIZ_FILES, ids=lambda path: path.name)
def test_every_topic_is_published(path, published):
    manager = yaml.safe_load(path.read_text())["Visualization Manager"]
    named = [resolve(name) for name, _ in topics(manager)]
    assert f"{NAMESPACE}/com/markers" in named
    assert set(named) <= set(published), "rviz shows topics that no node publishes"


@pytest.mark.parametrize("path", RVIZ_FILES, ids=lambda path: path.name)
def test_topics_are_relative(path):
    """So that rviz in a namespace shows the robot of that namespace."""
    assert [name for name, _ in topics(displays(path)) if name.startswith("/")] == []


@pytest.mark.parametrize("path", RVIZ_FILES, ids=lambda path: path.name)
def test_types_and_qos_fit(path, published):
    for display in displays(path):
        for name, entry in topics(display):
            kind, offered = published[resolve(name)]
            assert kind.__name__ == SHOWS[display["Class"]]
            wanted = QoSProfile(
                depth=entry["Depth"],
                reliability=ReliabilityPolicy[_constant(entry["Reliability Policy"])],
                durability=DurabilityPolicy[_constant(entry["Durability Policy"])],
            )
            verdict, reason = qos_check_compatible(offered, wanted)
            assert verdict != QoSCompatibility.ERROR, f"{name}: {reason}"


@pytest.mark.parametrize("name", layouts.LAYOUTS)
def test_plots_show_numbers_that_are_published(name, published):
    shown, plots = layouts.LAYOUTS[name]
    for path in [*shown, *(path for paths in plots.values() for path in paths)]:
        topic, *fields = path.split(".")
        kind, _ = published[f"{NAMESPACE}{topic}"]
        value, kinds = kind(), kind.get_fields_and_field_types()
        for field in fields:
            field, _, element = field.partition("[")
            assert field in kinds, (path, sorted(kinds))
            if element:
                assert kinds[field].startswith("sequence<geometry_msgs/")
                value = Vector3()
            else:
                value = getattr(value, field)
            kinds = getattr(value, "get_fields_and_field_types", dict)()
        assert not fields or isinstance(value, int | float)


def test_layouts_are_those_of_the_tool():
    assert {
        path: path.read_text() for path in layouts.FOLDER.iterdir()
    } == layouts.files()


def _constant(text):
    return text.upper().replace(" ", "_")


@pytest.mark.parametrize("path", RVIZ_FILES, ids=lambda path: path.name)
def test_marker_namespaces_are_those_that_are_published(path, started):
    expected = {
        display["Topic"]["Value"]: set(display["Namespaces"])
        for display in displays(path)
        if display["Class"] == "rviz_default_plugins/MarkerArray"
        and display["Namespaces"]
    }
    with started("sesc_publisher") as node:
        assert _marker_namespaces(node) == expected.pop("com/markers")
    if "gait/markers" in expected:
        with started("ccgd_gait") as node:
            assert _walk_namespaces(node) == expected.pop("gait/markers")
    if expected:
        with started("trunk_estimator") as node:
            assert _trunk_namespaces(node) == expected.pop("trunk_com/markers")
    assert expected == {}


def _trunk_namespaces(node):
    """Namespaces of the markers of a trunk that is known, on four feet that carry."""
    forces = SimpleNamespace(forces=np.ones((4, 3)))
    meter = SimpleNamespace(latest=forces, points=np.ones((4, 3)))
    legs = [SimpleNamespace(name=name) for name in LEG_NAMES]
    model = RobotModel.from_file(find_robot("scalf2").urdf)
    pipeline = SimpleNamespace(meter=meter)
    robot = SimpleNamespace(
        model=model, legs=legs, frame="base_link", pipeline=pipeline
    )
    zero, ones = np.zeros(3), np.ones(3, dtype=bool)
    estimate = TrunkEstimate(
        0.0,
        Status.CONVERGED,
        "",
        300.0,
        1.0,
        zero,
        np.eye(3),
        zero,
        zero,
        ones,
        math.nan,
    )
    display = TrunkDisplay(node)
    return _heard_namespaces(
        "trunk_com/markers", lambda: display.show(estimate, robot, Time())
    )


def _walk_namespaces(node):
    """Namespaces of the markers of a robot at the beginning of its walk."""
    files = find_robot("itu_biped")
    biped = Biped.from_config(
        RobotModel.from_file(files.urdf), RobotConfig.from_file(files.config)
    )
    walk = Walker(biped).plan(WalkRequest(), biped.posture)
    begin = walk.instant(0.0)
    session = SimpleNamespace(walk=walk, planned_now=lambda: begin)
    view = WalkEstimate(np.eye(3), np.zeros(3), begin.soles, begin.com, begin.zmp)
    return _heard_namespaces(
        "gait/markers", lambda: node._output.show(biped, session, view, Time())
    )


def _heard_namespaces(topic, publish):
    """Namespaces of the first markers that are received on a topic."""
    ear = rclpy.create_node("ear", namespace=NAMESPACE, use_global_arguments=False)
    received = []
    ear.create_subscription(MarkerArray, topic, received.append, 10)
    executor = SingleThreadedExecutor()
    executor.add_node(ear)
    limit = time.monotonic() + PATIENCE
    while not received:
        assert time.monotonic() < limit, "no markers"
        publish()
        executor.spin_once(timeout_sec=0.05)
    executor.shutdown()
    ear.destroy_node()
    return {marker.ns for marker in received[0].markers}


def _marker_namespaces(node):
    """Namespaces of the first markers that the node publishes for a robot that stands level."""
    ear = rclpy.create_node("ear", namespace=NAMESPACE, use_global_arguments=False)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    executor.add_node(ear)
    received = []
    ear.create_subscription(MarkerArray, "com/markers", received.append, 10)
    driver = ear.create_publisher(JointState, "joint_states", 10)
    names = list(RobotModel.from_file(find_robot("hoap2").urdf).joint_names)
    limit = time.monotonic() + PATIENCE
    while not received:
        assert time.monotonic() < limit, "no markers"
        message = JointState(name=names, position=[0.0] * len(names))
        message.header.stamp = ear.get_clock().now().to_msg()
        driver.publish(message)
        executor.spin_once(timeout_sec=0.05)
    executor.shutdown()
    ear.destroy_node()
    return {marker.ns for marker in received[0].markers}


@pytest.mark.parametrize("name", CLASSES)
def test_launch_files_give_only_parameters_that_the_node_has(name, started):
    run = started(name)
    given = set()
    for block in run.plan.parameters:
        given |= set(block if isinstance(block, dict) else _names_in(block))
    with run as node:
        unknown = {
            parameter for parameter in given if not node.has_parameter(parameter)
        }
    assert unknown == set()


def _names_in(path):
    (content,) = yaml.safe_load(path.read_text()).values()
    return _flat(content["ros__parameters"])


def _flat(tree, prefix=""):
    names = []
    for key, value in tree.items():
        names += (
            _flat(value, f"{prefix}{key}.")
            if isinstance(value, dict)
            else [prefix + key]
        )
    return names
