"""Service calls of a tour, as steps of a script that yields while it waits."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

from rclpy.client import Client
from rclpy.node import Node

from com_msgs.srv import CapturePosture, ExportUrdf, IdentifyLinks, ProposePostures

ServiceCall = Generator[None, None, Any]


class TourError(Exception):
    """The tour cannot go on; the message says why and how to fix it."""


class Calls:
    """Calls the services of com_identification.

    Args:
        node: that calls.
        name: of the node that serves.
        timeout: s to wait for an answer.
    """

    def __init__(self, node: Node, name: str, timeout: float) -> None:
        self._timeout = timeout

        def client(kind: type, service: str) -> Client:
            return node.create_client(kind, f"{name}/{service}")

        self._propose = client(ProposePostures, "propose_postures")
        self._capture = client(CapturePosture, "capture_posture")
        self._identify = client(IdentifyLinks, "identify_links")
        self._export = client(ExportUrdf, "export_urdf")

    @property
    def ready(self) -> bool:
        """Whether all services are there."""
        clients = (self._propose, self._capture, self._identify, self._export)
        return all(client.service_is_ready() for client in clients)

    def propose(self, count: int) -> ServiceCall:
        """Postures to take next."""
        return self.ask(self._propose, ProposePostures.Request(count=count))

    def capture(self, label: str) -> ServiceCall:
        """Capture the posture of the robot."""
        return self.ask(self._capture, CapturePosture.Request(label=label))

    def identify(self) -> ServiceCall:
        """Identify the links from all postures."""
        return self.ask(self._identify, IdentifyLinks.Request())

    def export(self, name: str) -> ServiceCall:
        """Write the URDF."""
        return self.ask(self._export, ExportUrdf.Request(name=name, overwrite=True))

    def ask(self, client: Client, request: Any) -> ServiceCall:
        """Call a service.

        Raises:
            TourError: No answer came in time.
        """
        future = client.call_async(request)
        deadline = time.monotonic() + self._timeout
        while not future.done():
            if time.monotonic() > deadline:
                client.remove_pending_request(future)
                raise TourError(
                    f"{client.srv_name} did not answer within {self._timeout:g} s: is its node "
                    "running?"
                )
            yield
        return future.result()
