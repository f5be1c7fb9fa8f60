"""Long computations on request, by service or by action, one at a time.

Services and actions: ~/identify_links, ~/propose_postures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rclpy.action import ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node

from com_identification.background import BackgroundJob, Outcome, Task
from com_identification.exceptions import IdentificationError
from com_identification.nodes.com_identification_robot import Found, Robot
from com_identification.nodes.com_identification_values import result_values, summary
from com_identification.nodes.identification_conversions import numpy_to_proposed_posture
from com_identification.nodes.identification_result import numpy_to_identification_result
from com_identification.tasks import IdentifyTask, LinksAnswer, ProposeTask
from com_msgs import action, srv
from com_ros.conversions import ns_to_stamp
from com_ros.jobs import DeferredService

Fill = Callable[[Robot, Any, Any], None]
"""Puts what a task returned into a response or an action's result, which have the same fields."""


@dataclass
class _Client:
    """Who wants to know how it ends."""

    name: str
    answer: Any
    finish: Callable[[Any], None]
    feedback: Callable[[Any], None] | None = None
    goal: ServerGoalHandle | None = None


@dataclass
class _Running:
    robot: Robot
    ids: tuple[int, ...]
    job: BackgroundJob
    client: _Client
    fill: Fill
    told: tuple[float, str] = (0.0, "")


class JobDesk:
    """Serves the long computations.

    Args:
        node: that serves.
        robot: gives the robot of the moment.
        waiting: tells why there is none.
        on_found: called after each new result.
    """

    def __init__(
        self,
        node: Node,
        robot: Callable[[], Robot | None],
        waiting: Callable[[], str],
        on_found: Callable[[], None],
    ) -> None:
        self._robot, self._waiting, self._on_found = robot, waiting, on_found
        self._logger = node.get_logger()
        self._running: _Running | None = None
        for name, begin in (
            ("identify_links", self._identify),
            ("propose_postures", self._propose),
        ):
            self._offer(node, name, begin)

    @property
    def state(self) -> tuple[str, float, str]:
        """Name, progress and step of what runs; empty and NaN when nothing does."""
        run = self._running
        if run is None:
            return "", float("nan"), ""
        return run.client.name, run.job.progress, run.job.step

    def cancel(self) -> None:
        """Ends what runs."""
        if self._running is not None:
            self._running.job.cancel()

    def serve(self) -> None:
        """Tells progress, and the result when there is one."""
        run = self._running
        if run is None:
            return
        outcome = run.job.outcome
        if outcome is not None:
            self._running = None
            self._end(run, outcome)
            return
        told = (run.job.progress, run.job.step)
        if run.client.feedback is not None and told != run.told:
            run.told = told
            run.client.feedback(told)

    # --- requests ----------------------------------------------------------------------------
    def _offer(self, node: Node, name: str, begin: Callable[[Any, _Client], None]) -> None:
        kind = "".join(word.capitalize() for word in name.split("_"))
        service, acting = getattr(srv, kind), getattr(action, kind)

        def serve(request: Any, reply: Callable[[Any], None]) -> None:
            self._begin(begin, request, _Client(name, service.Response(), reply))

        def accept(goal: ServerGoalHandle) -> None:
            client = _Client(
                name,
                acting.Result(),
                finish=lambda answer: _finish(goal, answer),
                feedback=lambda told: goal.publish_feedback(
                    acting.Feedback(progress=told[0], step=told[1])
                ),
                goal=goal,
            )
            self._begin(begin, goal.request, client)

        DeferredService(node, service, f"~/{name}", serve)
        ActionServer(
            node,
            acting,
            f"~/{name}",
            lambda goal: acting.Result(),
            handle_accepted_callback=accept,
            cancel_callback=self._on_cancel,
        )

    def _begin(self, begin: Callable[[Any, _Client], None], request: Any, client: _Client) -> None:
        try:
            if self._running is not None:
                raise IdentificationError(
                    f"{self._running.client.name} is running: wait for its end, or cancel it"
                )
            begin(request, client)
        except IdentificationError as error:
            client.answer.message = str(error)
            client.finish(client.answer)

    def _on_cancel(self, goal: ServerGoalHandle) -> CancelResponse:
        run = self._running
        if run is None or run.client.goal is not goal:
            return CancelResponse.REJECT
        run.job.cancel()
        return CancelResponse.ACCEPT

    def _identify(self, request: Any, client: _Client) -> None:
        robot = self._need_robot()
        postures = robot.choose(request.postures)
        arguments = _job(robot, tuple(postures.values()))
        self._start(robot, tuple(postures), IdentifyTask(**arguments), client, self._fill_links)

    def _propose(self, request: Any, client: _Client) -> None:
        robot = self._need_robot()
        taken = (
            () if request.ignore_stored or robot.opened is None else robot.opened.postures.values()
        )
        task = ProposeTask(**_job(robot, tuple(taken)), count=max(1, request.count))
        self._start(robot, (), task, client, _fill_proposed)

    def _need_robot(self) -> Robot:
        robot = self._robot()
        if robot is None:
            raise IdentificationError(self._waiting())
        return robot

    def _start(
        self, robot: Robot, ids: tuple[int, ...], task: Task, client: _Client, fill: Fill
    ) -> None:
        self._running = _Running(robot, ids, BackgroundJob(task), client, fill)

    # --- results -----------------------------------------------------------------------------
    def _end(self, run: _Running, outcome: Outcome) -> None:
        answer = run.client.answer
        if outcome.trace:
            self._logger.error(outcome.trace)
        if outcome.problem:
            answer.message = outcome.problem
        elif run.robot is not self._robot():
            answer.message = "the robot's description has changed meanwhile: ask again"
        else:
            if run.client.name == "identify_links" and outcome.value.found is not None:
                run.robot.found = Found(outcome.value.found, run.ids)
            run.fill(run.robot, outcome.value, answer)
        self._logger.info(f"{run.client.name}: {answer.message}")
        run.client.finish(answer)

    def _fill_links(self, robot: Robot, value: LinksAnswer, answer: Any) -> None:
        names = robot.model.joint_names
        answer.helpful = [numpy_to_proposed_posture(posture, names) for posture in value.helpful]
        if value.found is None:
            answer.message = value.problem
            return
        answer.success, answer.message = True, summary(value.found)
        answer.result = result_message(robot)
        self._on_found()


def result_message(robot: Robot) -> Any:
    """The latest result of a robot as a message, with the stamp of its newest posture."""
    ids = robot.found.ids if robot.found is not None else ()
    stamp = ns_to_stamp(max(map(robot.stamp_ns, ids), default=0))
    return numpy_to_identification_result(result_values(robot), stamp, robot.frame)


def _job(robot: Robot, postures: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "xml": robot.model.xml,
        "feet": robot.config.feet,
        "postures": postures,
        "settings": robot.settings,
        "rest": robot.rest,
    }


def _fill_proposed(robot: Robot, value: tuple[Any, ...], answer: Any) -> None:
    names = robot.model.joint_names
    answer.success = True
    answer.postures = [numpy_to_proposed_posture(posture, names) for posture in value]
    answer.message = f"{len(value)} postures, the most telling first"


def _finish(goal: ServerGoalHandle, answer: Any) -> None:
    """Ends a goal with its result."""

    def execute(handle: ServerGoalHandle) -> Any:
        if handle.is_cancel_requested:
            handle.canceled()
        elif answer.success:
            handle.succeed()
        else:
            handle.abort()
        return answer

    goal.execute(execute)
