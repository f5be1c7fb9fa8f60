"""Any bytes as the request of a service, which rclpy cannot send: by the middleware's C functions.

A service takes its requests from a topic that no name of ROS reaches: of /node/name it is
`rq/node/nameRequest`.
"""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

from rclpy.node import Node
from rclpy.type_support import check_for_type_support
from rclpy.utilities import get_rmw_implementation_identifier


class _Duration(ctypes.Structure):
    """rmw_time_t; zero: the middleware's default."""

    _fields_: ClassVar[list[tuple[str, Any]]] = [
        ("sec", ctypes.c_uint64),
        ("nsec", ctypes.c_uint64),
    ]


class _Profile(ctypes.Structure):
    """rmw_qos_profile_t."""

    _fields_: ClassVar[list[tuple[str, Any]]] = [
        ("history", ctypes.c_int),
        ("depth", ctypes.c_size_t),
        ("reliability", ctypes.c_int),
        ("durability", ctypes.c_int),
        ("deadline", _Duration),
        ("lifespan", _Duration),
        ("liveliness", ctypes.c_int),
        ("lease", _Duration),
        ("avoid_ros_names", ctypes.c_bool),
    ]


class _Options(ctypes.Structure):
    """rmw_publisher_options_t."""

    _fields_: ClassVar[list[tuple[str, Any]]] = [
        ("payload", ctypes.c_void_p),
        ("unique_flow", ctypes.c_int),
    ]


class _Bytes(ctypes.Structure):
    """rcutils_uint8_array_t; its allocator is not used, as nothing is allocated."""

    _fields_: ClassVar[list[tuple[str, Any]]] = [
        ("buffer", ctypes.c_char_p),
        ("length", ctypes.c_size_t),
        ("capacity", ctypes.c_size_t),
        ("allocator", ctypes.c_void_p * 5),
    ]


class RawWriter:
    """Sends any bytes to one service.

    Args:
        node: Whose participant writes; it must live longer.
        service: Full name, such as /com_balancer/start.
        request: Type of its requests.

    Raises:
        RuntimeError: The middleware refuses.
    """

    def __init__(self, node: Node, service: str, request: Any) -> None:
        self._rmw = ctypes.CDLL(f"lib{get_rmw_implementation_identifier()}.so")
        rcl = ctypes.CDLL("librcl.so")
        rcl.rcl_node_get_rmw_handle.restype = ctypes.c_void_p
        self._rmw.rmw_create_publisher.restype = ctypes.c_void_p
        check_for_type_support(request)
        kind = ctypes.pythonapi.PyCapsule_GetPointer
        kind.restype, kind.argtypes = (
            ctypes.c_void_p,
            [ctypes.py_object, ctypes.c_char_p],
        )
        keep_last, reliable, volatile = 1, 1, 2  # as services have it
        profile = _Profile(keep_last, 10, reliable, volatile, avoid_ros_names=True)
        with node.handle:
            handle = rcl.rcl_node_get_rmw_handle(ctypes.c_void_p(node.handle.pointer))
            self._node = ctypes.c_void_p(handle)
            publisher = self._rmw.rmw_create_publisher(
                self._node,
                ctypes.c_void_p(kind(request._TYPE_SUPPORT, None)),
                f"rq{service}Request".encode(),
                ctypes.byref(profile),
                ctypes.byref(_Options()),
            )
        if not publisher:
            raise RuntimeError(f"no writer of requests of {service}")
        self._publisher = ctypes.c_void_p(publisher)

    @property
    def matched(self) -> bool:
        """Whether a server takes what is sent."""
        count = ctypes.c_size_t()
        self._rmw.rmw_publisher_count_matched_subscriptions(
            self._publisher, ctypes.byref(count)
        )
        return count.value > 0

    def send(self, data: bytes) -> None:
        """Sends a request.

        Args:
            data: Its bytes, with or without the four of the encapsulation that CDR begins with.

        Raises:
            RuntimeError: The middleware refuses.
        """
        message = _Bytes(data, len(data), len(data))
        error = self._rmw.rmw_publish_serialized_message(
            self._publisher, ctypes.byref(message), None
        )
        if error:
            raise RuntimeError(f"not sent, error {error}")

    def close(self) -> None:
        """Ends it, before its node ends."""
        self._rmw.rmw_destroy_publisher(self._node, self._publisher)
