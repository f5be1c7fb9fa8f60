"""Work that takes long, beside a node's callbacks.

One thread does one job after the other; what comes of each is handed to the node's executor, so
that nothing of the node is touched from two threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from rclpy.node import Node

T = TypeVar("T")
Finish = Callable[[], None]


class BackgroundJobs:
    """Does jobs for a node, in order.

    Args:
        node: whose executor takes in the results.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=node.get_name())
        self._done: deque[tuple[Future, Callable[[Future], None]]] = deque()
        self._wake = node.create_guard_condition(self.finish)
        self._closed = False

    def do(self, work: Callable[[], T], then: Callable[[T | Exception], None]) -> None:
        """Do some work in the thread, and hand its result on in the node's executor.

        Args:
            work: called in the thread.
            then: called in the executor, with what work returned or the exception that it raised.
        """

        def hand_on(future: Future) -> None:
            error = future.exception()
            then(error if isinstance(error, Exception) else future.result())

        self._pool.submit(work).add_done_callback(lambda future: self._ended(future, hand_on))

    def finish(self) -> None:
        """Hand on what is done; the node's executor calls it, too."""
        while self._done:
            future, hand_on = self._done.popleft()
            hand_on(future)

    def close(self) -> None:
        """Drop what has not begun, and wait for what has."""
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _ended(self, future: Future, hand_on: Callable[[Future], Any]) -> None:
        if self._closed or future.cancelled():
            return
        self._done.append((future, hand_on))
        self._wake.trigger()
