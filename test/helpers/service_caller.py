"""Calls of services and actions that take long, while the caller goes on."""

from rclpy.action import ActionClient
from rclpy.task import Future


class ServiceCaller:
    """Clients of one node's services and actions.

    Args:
        node: Calls.
        until: until(condition, what) waits.
        server: Name of the node that serves.
    """

    def __init__(self, node, until, server):
        self._node, self._until, self._server, self._clients = node, until, server, {}

    def begin(self, kind, name, /, **fields):
        """Future of a service's answer, or of an action's result."""
        path, key = f"{self._server}/{name}", (kind, name)
        if hasattr(kind, "Goal"):
            if key not in self._clients:
                self._clients[key] = ActionClient(self._node, kind, path)
            client = self._clients[key]
            self._until(client.server_is_ready, f"action {name}")
            return self._result_of(client.send_goal_async(kind.Goal(**fields)))
        if key not in self._clients:
            self._clients[key] = self._node.create_client(kind, path)
        client = self._clients[key]
        self._until(client.service_is_ready, f"service {name}")
        return client.call_async(kind.Request(**fields))

    @staticmethod
    def _result_of(sent):
        """Future of the result of a goal that was sent."""
        result = Future()

        def on_result(ended):
            result.set_result(ended.result().result)

        sent.add_done_callback(
            lambda sent: sent.result().get_result_async().add_done_callback(on_result)
        )
        return result
