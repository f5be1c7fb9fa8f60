"""A ROS context of its own for each test that needs a node; nothing is sent to other processes."""

import itertools

import pytest
import rclpy
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message


@pytest.fixture
def make_node(ros_context):
    """make_node(name="value", ...): a node with these parameter overrides; "__" stands for "."."""
    nodes = []
    numbers = itertools.count()

    def make(**overrides):
        node = Node(
            f"node_{next(numbers)}",
            context=ros_context,
            parameter_overrides=[
                rclpy.Parameter(name.replace("__", "."), value=value)
                for name, value in overrides.items()
            ],
        )
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        node.destroy_node()


@pytest.fixture
def over_the_wire():
    """over_the_wire(msg): what arrives of it."""
    return lambda msg: deserialize_message(serialize_message(msg), type(msg))
