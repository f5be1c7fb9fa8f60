"""Services that answer later: the node serves its other callbacks meanwhile."""

import pytest
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from std_srvs.srv import Trigger

from com_ros.jobs import DeferredService


class Later(Node):
    """Keeps its requests until the test answers them."""

    def __init__(self, **options):
        super().__init__("later", **options)
        self.waiting = []
        self.service = DeferredService(
            self, Trigger, "~/ask", lambda request, reply: self.waiting.append(reply)
        )


def test_answers_come_when_they_are_given_and_to_the_right_one(world):
    node = world.start(Later)
    client = world.node.create_client(Trigger, "later/ask")
    world.spin_until(client.service_is_ready, "the service is there")
    answers = [client.call_async(Trigger.Request()) for _ in range(3)]
    world.spin_until(lambda: len(node.waiting) == 3, "the requests")
    world.spin_for(0.2)
    assert not any(answer.done() for answer in answers)
    for i in (2, 0, 1):  # in another order than they came
        node.waiting[i](Trigger.Response(success=True, message=f"answer {i}"))
    world.spin_until(lambda: all(answer.done() for answer in answers), "the answers")
    assert [answer.result().message for answer in answers] == [
        f"answer {i}" for i in range(3)
    ]


def test_at_once_is_late_enough(world):
    class Prompt(Node):
        def __init__(self, **options):
            super().__init__("prompt", **options)
            response = Trigger.Response(message="at once")
            self.service = DeferredService(
                self, Trigger, "~/ask", lambda request, reply: reply(response)
            )

    world.start(Prompt)
    client = world.node.create_client(Trigger, "prompt/ask")
    world.spin_until(client.service_is_ready, "the service is there")
    answer = client.call_async(Trigger.Request())
    world.spin_until(answer.done, "the answer")
    assert answer.result().message == "at once"


@pytest.mark.parametrize("fast", [True, False])
def test_with_each_executor_that_nodes_use(ros_context, fast):
    """The EventsExecutor takes no coroutines, which is why this class exists."""
    pytest.importorskip("rclpy.experimental.events_executor")
    from rclpy.experimental.events_executor import EventsExecutor

    node = Later(context=ros_context)
    executor = (EventsExecutor if fast else SingleThreadedExecutor)(context=ros_context)
    executor.add_node(node)
    asker = Node("asker", context=ros_context)
    executor.add_node(asker)
    client = asker.create_client(Trigger, "later/ask")
    answer = client.call_async(Trigger.Request())

    def reply():
        if node.waiting:
            node.waiting.pop()(Trigger.Response(message="later"))

    asker.create_timer(0.1, reply)
    try:
        executor.spin_until_future_complete(answer, timeout_sec=20.0)
        assert answer.result().message == "later"
    finally:
        executor.shutdown()
        for item in (node, asker):
            item.destroy_node()
