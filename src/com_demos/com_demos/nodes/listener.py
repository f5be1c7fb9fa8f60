"""Nodes that hear every message of their topics when they are asked to, beside a launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription

from com_demos.background import Background

QUEUE = QoSProfile(depth=2000)  # reliable: a recording is to miss nothing


class ListeningNode(Node):
    """Takes in messages in poll(), in place of an executor.

    That would take several times as much of the processor for messages at such rates. The times of
    receipt are the middleware's, so that it does not matter when poll() is called.

    Args:
        name: of the node.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, enable_rosout=False, start_parameter_services=False)
        self._inputs: list[tuple[Subscription, Callable[[Any, dict], None]]] = []

    def poll(self) -> None:
        """Take in whatever has arrived; to be called again and again."""
        for subscription, take_in in self._inputs:
            with subscription.handle:
                while taken := subscription.handle.take_message(subscription.msg_type, False):
                    take_in(*taken)

    def _listen(
        self,
        kind: type,
        topic: str,
        take_in: Callable[[Any, dict], None],
        profile: QoSProfile = QUEUE,
    ) -> None:
        subscription = self.create_subscription(kind, topic, lambda _: None, profile)
        self._inputs.append((subscription, take_in))


@contextmanager
def launched(command: Sequence[str], log: Path) -> Iterator[Background]:
    """Run a launch in the background, and ROS in this process."""
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        with Background(command, log) as launch:
            yield launch
    finally:
        rclpy.try_shutdown()
