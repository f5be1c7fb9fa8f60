"""Work that takes long, beside a node's callbacks, and services that answer when it is done."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar, cast

from rclpy.action.server import ServerGoalHandle
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

T = TypeVar("T")
Reply = Callable[
    [Any], None
]  # sends the response, once; call it in the executor's thread


class BackgroundJobs:
    """Does jobs for a node, in order, in one thread.

    What comes of each is handed to the node's executor, so that nothing of the node is touched from
    two threads. By tasks: the EventsExecutor takes no guard conditions.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=node.get_name())
        self._done: deque[tuple[Future, Callable[[Any], None]]] = deque()
        self._pending = 0
        self._closed = False
        clock = Clock(
            clock_type=ClockType.STEADY_TIME
        )  # for jobs done before the executor
        self._first = node.create_timer(0.0, self._begin, clock=clock)

    @property
    def busy(self) -> bool:
        """Whether some work has begun whose result is not handed on yet."""
        return self._pending > 0

    def do(self, work: Callable[[], T], then: Callable[[T | Exception], None]) -> None:
        """Do some work in the thread.

        Args:
            work: runs in the thread.
            then: gets its result, or exception, in the node's executor.
        """
        self._pending += 1
        self._pool.submit(work).add_done_callback(
            lambda future: self._ended(future, then)
        )

    def finish(self) -> None:
        """Hand on what is done; the node's executor calls it, too."""
        while self._done:
            future, then = self._done.popleft()
            self._pending -= 1
            error = future.exception()
            then(error if isinstance(error, Exception) else future.result())

    def close(self) -> None:
        """Drop what has not begun, and wait for what has."""
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _ended(self, future: Future, then: Callable[[Any], None]) -> None:
        if self._closed or future.cancelled():
            return
        self._done.append((future, then))
        if (executor := self._node.executor) is not None:
            with suppress(Exception):  # one that is shut down meanwhile takes no tasks
                executor.create_task(self.finish)

    def _begin(self) -> None:
        self._first.cancel()
        self.finish()


class DeferredService:
    """A service whose `begin` gets a request, and a function that sends the response later.

    A coroutine would do the same with some of rclpy's executors, but its EventsExecutor takes only
    services whose callback returns the response. So the response that rclpy is about to send at
    the end of the callback is held back here, and sent when it is known.
    """

    def __init__(
        self, node: Node, kind: type, name: str, begin: Callable[[Any, Reply], None]
    ) -> None:
        self._begin = begin
        self._logger = node.get_logger()
        service = node.create_service(kind, name, lambda request, _: request)
        self._service = cast(Any, service)  # whose method is replaced
        self._send = self._service.send_response
        self._service.send_response = self._begin_reply

    def _begin_reply(self, request: Any, header: Any) -> None:
        """In place of rclpy's sending: gets what the callback returned, which is the request."""
        self._begin(request, lambda response: self._reply(response, header))

    def _reply(self, response: Any, header: Any) -> None:
        try:
            self._send(response, header)
        except RuntimeError as error:  # rclpy's RCLError: the one who asked has gone
            name = self._service.srv_name
            self._logger.warning(f"the answer of {name} could not be sent: {error}")


def finish_goal(goal: ServerGoalHandle, success: bool, result: Any) -> None:
    """Ends an action's goal with its result: succeeded, canceled on request, or aborted.

    Args:
        goal: of the action server.
        success: it has succeeded.
        result: message of the action's result.
    """

    def execute(handle: ServerGoalHandle) -> Any:
        if success:
            handle.succeed()
        elif handle.is_cancel_requested:
            handle.canceled()
        else:
            handle.abort()
        return result

    goal.execute(execute)
