"""Long computations outside a node's callbacks, and services that answer when these are done."""

import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar, cast

from rclpy.action.server import ServerGoalHandle
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from com_model.exceptions import ComModelError
from com_ros.services import answering

T = TypeVar("T")
Reply = Callable[
    [Any], None
]  # sends the response, once; call it in the executor's thread


class BackgroundJobs:
    """Runs a node's long computations one after the other in a single worker thread.

    The result of each is handed over in the node's executor, so that no part of the node is used
    by two threads. By the executor's tasks, as the EventsExecutor supports no guard conditions.

    Args:
        node: whose executor receives the results; names the thread.
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
        """Whether a computation was requested whose result has not been handed over yet."""
        return self._pending > 0

    def do(self, work: Callable[[], T], then: Callable[[T | Exception], None]) -> None:
        """Queues a computation for the worker thread.

        Args:
            work: runs in the worker thread; must not use the node.
            then: called in the node's executor with the result of `work`, or with the exception
                that it raised; one that is a bug is logged before.
        """
        self._pending += 1
        self._pool.submit(work).add_done_callback(
            lambda future: self._ended(future, then)
        )

    def finish(self) -> None:
        """Hands over the results of computations that have ended; called by the executor too."""
        while self._done:
            future, then = self._done.popleft()
            self._pending -= 1
            error = future.exception()
            if error and not isinstance(error, ComModelError | OSError):  # a bug
                text = "".join(traceback.format_exception(error))
                self._node.get_logger().error(text)
            try:
                then(error if isinstance(error, Exception) else future.result())
            except Exception:  # a bug, which ends no node
                self._node.get_logger().error(traceback.format_exc())

    def close(self) -> None:
        """Cancels queued computations and waits for the running one; its result is dropped."""
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
    """A service that sends its response after the callback has returned.

    A coroutine would do the same with some of rclpy's executors, but its EventsExecutor accepts
    only services whose callback returns the response. So the response that rclpy is about to send
    at the end of the callback is held back here, and sent when it is known.

    Args:
        node: that offers the service.
        kind: type of the service.
        name: of the service.
        begin: called with each request and with a function that sends the response; that one must
            be called once, in the executor's thread, unless begin raises a ComModelError.
    """

    def __init__(
        self, node: Node, kind: type, name: str, begin: Callable[[Any, Reply], None]
    ) -> None:
        self._begin, self._kind = begin, cast(Any, kind)
        self._logger = node.get_logger()
        service = node.create_service(kind, name, lambda request, _: request)
        self._service = cast(Any, service)  # whose method is replaced
        self._send = self._service.send_response
        self._service.send_response = self._begin_reply

    def _begin_reply(self, request: Any, header: Any) -> None:
        """In place of rclpy's sending: gets what the callback returned, which is the request."""

        def begin(request: Any, _: Any) -> None:
            self._begin(request, lambda response: self._reply(response, header))

        refusal = answering(self._kind, begin, self._report)(request, None)
        if refusal is not None:
            self._reply(refusal, header)

    def _report(self, _: Exception) -> None:
        self._logger.error(traceback.format_exc())

    def _reply(self, response: Any, header: Any) -> None:
        try:
            self._send(response, header)
        except RuntimeError as error:  # rclpy's RCLError: the one who asked has gone
            name = self._service.srv_name
            self._logger.warning(f"the answer of {name} could not be sent: {error}")


def finish_goal(goal: ServerGoalHandle, success: bool, result: Any) -> None:
    """Ends an action's goal with its result: succeeded, canceled on request, or aborted.

    Args:
        goal: handle of the goal, from the action server.
        success: whether it has succeeded; otherwise it is canceled if that was requested, else
            aborted.
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
