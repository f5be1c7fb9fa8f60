"""Answers to a simulator that waits until the nodes have processed its last sample.

A simulator that uses simulated time outruns nodes on a busy machine. One that waits (the parameter
lockstep.nodes of com_simulation's simulator) subscribes `lockstep` (std_msgs/Header), on which each
node that follows joint_states answers: frame_id is its name, the stamp that up to which it has
received all of its sensors and published what it makes of them. Its first answer, with stamp 0,
says that it has a model and that its sensors are connected. While a computation holds its answer
back it repeats the one before. Without a subscriber nothing is sent.
"""

from collections.abc import Callable

from rclpy.node import Node
from rclpy.subscription import Subscription
from std_msgs.msg import Header

from com_ros import qos
from com_ros.conversions import ns_to_stamp

TOPIC = "lockstep"


class LockstepAnswers:
    """The answers of one node to a simulator that waits for it.

    Args:
        node: that follows joint_states.

    Attributes:
        awaited: whether a simulator waits. Then what the node otherwise does by a timer it must
            do by stamps, so that the result does not depend on real time.
        sensors: subscriptions to what a simulator publishes for each sample.
        held: returns whether answers are held back, because a computation runs whose result
            belongs to the last sample.
    """

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(Header, TOPIC, qos.RESULT)
        self._name = node.get_name()
        self._newest: dict[str, int] = {}  # stamp, ns, of each sensor's last message
        self._answered = 0  # stamp, ns
        self._due = False
        self.awaited = False
        self.sensors: list[Subscription] = []
        self.held: Callable[[], bool] = lambda: False

    def received(self, topic: str, stamp_ns: int) -> None:
        """Records that a sensor's message was processed, and answers when a sample is complete.

        Called only while a simulator waits.

        Args:
            topic: of the message.
            stamp_ns: ns, its stamp.
        """
        self._newest[topic] = stamp_ns
        if (
            len(self._newest) == len(self.sensors)
            and min(self._newest.values()) == stamp_ns
        ):
            self._due = True
            self._answer()

    def watch(self, ready: bool) -> None:
        """Checks whether a simulator waits, and sends an answer that was held back.

        Called several times a second.

        Args:
            ready: whether the node has a model.
        """
        self.awaited = self._publisher.get_subscription_count() > 0
        if self.awaited and ready and not self._newest:
            self._due |= all(sensor.get_publisher_count() for sensor in self.sensors)
        self._answer()

    def _answer(self) -> None:
        if not self._due:
            return
        if not self.held():
            self._due = False
            self._answered = min(self._newest.values(), default=0)
        elif not self._answered:
            return
        self._publisher.publish(
            Header(stamp=ns_to_stamp(self._answered), frame_id=self._name)
        )
