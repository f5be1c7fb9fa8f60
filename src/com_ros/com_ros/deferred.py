"""Services that answer later, while the node goes on serving its other callbacks.

A coroutine would do the same with some of rclpy's executors, but its EventsExecutor takes only
services whose callback returns the response. So the response that rclpy is about to send at the
end of the callback is held back here, and sent when it is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from rclpy.node import Node

Reply = Callable[[Any], None]
"""Sends the response, once; call it in the executor's thread."""


class DeferredService:
    """A service whose callback is given a function that sends the response.

    Args:
        node: that serves.
        kind: type of the service.
        name: of the service.
        begin: called with each request and its Reply; may call that at once.
    """

    def __init__(
        self, node: Node, kind: type, name: str, begin: Callable[[Any, Reply], None]
    ) -> None:
        self._begin = begin
        self._logger = node.get_logger()
        service = node.create_service(kind, name, lambda request, _: request)
        self._service = cast(Any, service)  # whose method is replaced
        self._send = self._service.send_response
        self._service.send_response = self._take

    def _take(self, request: Any, header: Any) -> None:
        """In place of rclpy's sending: gets what the callback returned, which is the request."""
        self._begin(request, lambda response: self._reply(response, header))

    def _reply(self, response: Any, header: Any) -> None:
        try:
            self._send(response, header)
        except RuntimeError as error:  # rclpy's RCLError: the one who asked has gone
            name = self._service.srv_name
            self._logger.warning(f"the answer of {name} could not be sent: {error}")
