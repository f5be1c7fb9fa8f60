"""One node of the command line's own, and what it finds of the other nodes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions

FOUND_S = 7.0  # within which another node is found; a missed announcement is sent again after 3 s
UNCHANGED_S = 0.7  # for so long nothing new: all are found
ALONE_S = 3.5  # the same where not one other node is found yet


class CommandError(Exception):
    """What was asked for cannot be done; the text says why."""


class Session:
    """A context and a node; a context manager."""

    def __enter__(self) -> Session:
        self.context = rclpy.Context()
        options = SignalHandlerOptions.NO
        rclpy.init(args=[], context=self.context, signal_handler_options=options)
        self.node = Node(
            f"_ros2_{os.getpid()}",
            context=self.context,
            start_parameter_services=False,
            enable_rosout=False,
        )
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)

    def until(self, condition: Callable[[], Any], seconds: float | None = None) -> bool:
        """Serve the node until a condition is true, or for a time at most; whether it is."""
        end = None if seconds is None else time.monotonic() + seconds
        while not condition():
            left = 0.1 if end is None else min(0.1, end - time.monotonic())
            if left <= 0.0:
                return False
            self._executor.spin_once(timeout_sec=left)
        return True

    def wait(self, seconds: float) -> None:
        """Serve the node for a time."""
        self.until(lambda: False, seconds)

    def result(self, future: Any, what: str, seconds: float | None = None) -> Any:
        """Wait for an answer."""
        if not self.until(future.done, seconds):
            raise CommandError(f"{what} has not answered within {seconds:g} s")
        return future.result()

    def all_of(self, look: Callable[[], Any]) -> Any:
        """What look() returns once nothing has been added for a while."""
        found, since = look(), time.monotonic()
        end, patience = since + FOUND_S, ALONE_S
        while (now := time.monotonic()) < end and now - since < patience:
            self.wait(0.1)
            patience = UNCHANGED_S if len(self.node.get_node_names()) > 1 else ALONE_S
            if (newer := look()) != found:
                found, since = newer, now
        return found

    def topics(self) -> dict[str, list[str]]:
        """Types by the names of topics that somebody has; hidden ones and our own are left out."""
        return _visible(self.node.get_topic_names_and_types())

    def services(self) -> dict[str, list[str]]:
        """Types by the names of services."""
        return _visible(self.node.get_service_names_and_types())

    def topic_type(self, topic: str) -> str:
        """Type of a topic.

        Raises:
            CommandError: nobody has it.
        """
        if not self.until(lambda: topic in self.topics(), FOUND_S):
            raise CommandError(
                f"topic [{topic}] does not appear to be published yet: its type is not known. "
                f"There are: {', '.join(sorted(self.topics())) or 'none'}"
            )
        return self.topics()[topic][0]

    def qos(self, topic: str, depth: int = 100) -> QoSProfile:
        """Quality of service that all present publishers of a topic offer."""
        qos = QoSProfile(depth=depth)
        offers = [
            info.qos_profile for info in self.node.get_publishers_info_by_topic(topic)
        ]
        if any(offer.reliability == ReliabilityPolicy.BEST_EFFORT for offer in offers):
            qos.reliability = ReliabilityPolicy.BEST_EFFORT
        local = DurabilityPolicy.TRANSIENT_LOCAL
        if offers and all(offer.durability == local for offer in offers):
            qos.durability = local
        return qos


def absolute(name: str) -> str:
    """A name as the command line means it: without a slash it is in the root namespace."""
    return name if name.startswith("/") else f"/{name}"


def _visible(pairs: list[tuple[str, list[str]]]) -> dict[str, list[str]]:
    return {
        name: kinds
        for name, kinds in sorted(pairs)
        if not any(part.startswith("_") for part in name.split("/"))
    }
