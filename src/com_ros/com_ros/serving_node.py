"""A node that no request, no timer and no bug ends: each failure is refused or reported."""

import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.service import Service
from rclpy.timer import Timer

from com_model.exceptions import ComModelError
from com_ros.diagnostics import ThrottledLog
from com_ros.jobs import BackgroundJobs
from com_ros.services import answering
from com_ros.stream import Faults


class ServingNode(Node):
    """Services, timers and threads of a node, whose failures it reports and survives.

    Args:
        name: of the node.
        **options: of rclpy's Node.

    Attributes:
        log: for throttled warnings.
        faults: what was dropped of the inputs, and how many callbacks failed.
    """

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.log = ThrottledLog(self.get_logger())
        self.faults = Faults(self.log)
        self._threads: list[BackgroundJobs] = []

    def create_service(
        self, srv_type: Any, srv_name: str, callback: Any, **options: Any
    ) -> Service:
        """Offers a service, as rclpy's method of this name; no request ends the node.

        Args:
            srv_type: type of the service.
            srv_name: its name.
            callback: of a request and a response; an exception becomes a refusal, and one that is
                no ComModelError is reported as a bug.
            **options: of rclpy's method.
        """
        report = partial(self._report_bug, f"a request of {srv_name} was refused")
        answer = answering(srv_type, callback, report)
        return super().create_service(srv_type, srv_name, answer, **options)

    def create_timer(
        self, timer_period_sec: float, callback: Any, *rest: Any, **options: Any
    ) -> Timer:
        """Creates a timer, as rclpy's method of this name; no exception ends the node.

        Args:
            timer_period_sec: s.
            callback: its exceptions are ignored once the node or ROS has been shut down.
            *rest: of rclpy's method.
            **options: of rclpy's method.
        """

        def on_timer() -> None:
            try:
                callback()
            except InvalidHandle:
                pass  # the node was destroyed when the timer was due
            except ComModelError:  # it cannot work with what it has
                if self.context.ok():
                    raise
            except Exception as error:
                self._report_bug("a timer failed", error)

        return super().create_timer(timer_period_sec, on_timer, *rest, **options)

    def create_steady_timer(
        self, period_s: float, callback: Callable[[], None]
    ) -> Timer:
        """Creates a timer in real time, which keeps running when simulated time stops.

        Args:
            period_s: s.
            callback: its exceptions are ignored once the node or ROS has been shut down.
        """
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        return self.create_timer(period_s, callback, clock=clock)

    def background_jobs(self) -> BackgroundJobs:
        """Makes a thread for long computations, which ends with the node."""
        self._threads.append(BackgroundJobs(self))
        return self._threads[-1]

    def destroy_node(self) -> None:
        """Waits for the computation that runs in each thread, then destroys the node."""
        for jobs in self._threads:
            jobs.close()
        super().destroy_node()

    def _report_bug(self, what: str, error: Exception) -> None:
        """Logs and counts an exception that is being handled, unless ROS was shut down."""
        if not self.context.ok():
            return
        self.faults.counts["failed"] += 1
        if self.log.warn(what, f"{what}: {type(error).__name__}: {error}"):
            self.get_logger().error(traceback.format_exc())
