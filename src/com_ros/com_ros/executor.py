"""The executor of nodes that follow sensors at high rates.

rclpy's own executors build a wait set of everything in a node for every message: 0.3 ms for a
node with the parameter services and a few topics. Its EventsExecutor is woken by the middleware
instead, and halves the processor time of a node at 1 kHz (benchmarks/README.md). It is
experimental: releases that lack it get the default executor.
"""

from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future

SPIN_S = 1.0


class EventsSpinner:
    """rclpy's EventsExecutor, spun in pieces: its endless spin() never sleeps nor delivers.

    Raises:
        ImportError: when this rclpy has no EventsExecutor.
    """

    def __init__(self) -> None:
        from rclpy.experimental.events_executor import EventsExecutor

        self._executor = EventsExecutor()
        self._nodes: list[Node] = []

    def add_node(self, node: Node) -> bool:
        """Serve a node's callbacks."""
        self._nodes.append(node)
        return self._executor.add_node(node)

    def spin(self) -> None:
        """Serve callbacks until ROS is shut down.

        Raises:
            ExternalShutdownException: ROS was shut down.
        """
        while all(node.context.ok() for node in self._nodes):
            self._executor.spin_until_future_complete(Future(), timeout_sec=SPIN_S)

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Stop serving."""
        return self._executor.shutdown(timeout_sec)


def make_fast_executor() -> Executor | EventsSpinner:
    """The fastest executor that this rclpy has."""
    try:
        return EventsSpinner()
    except ImportError:
        return SingleThreadedExecutor()
