"""Nodes that receive every message of their topics when they are polled, beside a launch."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rclpy
from builtin_interfaces.msg import Time
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription
from std_msgs.msg import Header

from com_demos.background import Background
from com_demos.live import Rows
from com_ros import lockstep, qos

QUEUE = QoSProfile(depth=2000)  # reliable: a recording is to miss nothing
FOR_EVER = Time(sec=2**31 - 1)  # stamp of an answer after which the simulator need not wait again


class ListeningNode(Node, ABC):
    """Processes messages in poll(), in place of an executor.

    That would take several times as much of the processor for messages at such rates. The times of
    receipt are the middleware's, so that it does not matter when poll() is called. A simulator in
    lockstep that waits for this node begins when its topics are connected. The topic shows whether
    the run is alive.
    """

    ready = True
    ended = False  # whether all has ended before its time
    recording: Any

    def __init__(self, name: str, topic: str) -> None:
        super().__init__(name, enable_rosout=False, start_parameter_services=False)
        self._topic = topic
        self._inputs: list[tuple[Subscription, Callable[[Any, dict], None]]] = []
        self._lockstep = self.create_publisher(Header, lockstep.TOPIC, qos.RESULT)
        self._connected = False

    @property
    def received(self) -> int:
        """Number of messages so far that say something: of the recording's samples."""
        return len(self.recording.samples)

    @property
    @abstractmethod
    def elapsed(self) -> float:
        """How long what is to be recorded lasts, by its stamps, s."""

    @abstractmethod
    def rows(self) -> Rows:
        """Return what a view shows."""

    def start_over(self) -> None:
        """Forget what need not be recorded; here nothing."""

    def waiting_for(self, seconds: float) -> str:
        """Return what has not begun after a time, and why."""
        return f"nothing has begun after {seconds:.0f} s"

    def problem(self, seconds: float) -> str:
        """Return why nothing came, or was not ready, for a time."""
        if self.received and not self.ready:
            return self.waiting_for(seconds)
        further = "further " if self.received else ""
        return f"no {further}message on {self._topic} for {seconds:.0f} s"

    def poll(self) -> None:
        """Process whatever has arrived; to be called again and again."""
        if not self._connected:  # a simulator that waits for this node may begin when all are
            inputs = all(subscription.get_publisher_count() for subscription, _ in self._inputs)
            self._connected = inputs and self._lockstep.get_subscription_count() > 0
            if self._connected:
                self._lockstep.publish(Header(stamp=FOR_EVER, frame_id=self.get_name()))
        for subscription, process in self._inputs:
            with subscription.handle:
                while taken := subscription.handle.take_message(subscription.msg_type, False):
                    process(*taken)

    def _listen(
        self,
        kind: type,
        topic: str,
        process: Callable[[Any, dict], None],
        profile: QoSProfile = QUEUE,
    ) -> None:
        subscription = self.create_subscription(kind, topic, lambda _: None, profile)
        self._inputs.append((subscription, process))


@contextmanager
def launched(command: Sequence[str], log: Path) -> Iterator[Background]:
    """Run a launch in the background, and ROS in this process."""
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        with Background(command, log) as launch:
            yield launch
    finally:
        rclpy.try_shutdown()
