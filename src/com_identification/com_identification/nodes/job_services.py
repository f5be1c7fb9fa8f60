"""Computations on request: in a process of their own, one at a time, or in a thread.

Services and actions: ~/identify_links, ~/propose_postures. Services that take less time than a
process needs to start: ~/identify_total_com, ~/identify_two_postures.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rclpy.action import ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node

from com_identification import background
from com_identification.background import BackgroundJob, Outcome, Task
from com_identification.exceptions import IdentificationError
from com_identification.feet.feet_reading import find_tilted_shape, identify_total
from com_identification.nodes.identification_conversions import (
    numpy_to_proposed_posture,
    numpy_to_tilted_shape,
    numpy_to_total,
)
from com_identification.nodes.identification_session import Result, Session
from com_identification.planning.planner import PlannedPosture
from com_identification.report.comparison import summary
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array
from com_msgs import action, srv
from com_msgs.msg import ProposedPosture
from com_msgs.srv import IdentifyTotalCom
from com_ros.jobs import BackgroundJobs, DeferredService, Reply, finish_goal

Fill = Callable[[Any, Any], None]
"""Puts what a task returned into a response or an action's result, which have the same fields."""
Begin = Callable[[Session, Any], tuple[Task, Fill]]
"""Makes the task of a request."""


@dataclass
class _Client:
    name: str
    answer: Any
    finish: Callable[[Any], None]
    feedback: Callable[[Any], None] | None = None
    goal: ServerGoalHandle | None = None


@dataclass
class _Running:
    client: _Client
    session: Session
    job: BackgroundJob
    fill: Fill
    reported: tuple[float, str] = (0.0, "")


class JobServices:
    """Services and actions that compute.

    `session` returns the present one or raises IdentificationError; on_found follows a new result.
    """

    def __init__(
        self, node: Node, session: Callable[[], Session], on_found: Callable[[], None]
    ) -> None:
        self._session, self._on_found = session, on_found
        self._logger = node.get_logger()
        self._running: _Running | None = None
        self.offer(node, "identify_links", self._identify)
        self.offer(node, "propose_postures", _propose)
        self._totals = BackgroundJobs(node)
        for name, find, convert in (
            (
                "identify_total_com",
                identify_total,
                lambda found, _: numpy_to_total(found),
            ),
            ("identify_two_postures", find_tilted_shape, numpy_to_tilted_shape),
        ):
            serve = partial(self._identify_total, find, convert)
            DeferredService(node, IdentifyTotalCom, f"~/{name}", serve)

    @property
    def busy(self) -> bool:
        """Whether a computation is running."""
        return self._running is not None or self._totals.busy

    @property
    def state(self) -> tuple[str, float, str]:
        """Name, progress and step of the running computation; empty and NaN without one."""
        run = self._running
        if run is None:
            return "", float("nan"), ""
        return run.client.name, run.job.progress, run.job.step

    def close(self) -> None:
        """Ends all computations."""
        self.cancel()
        self._totals.close()

    def cancel(self) -> None:
        """Ends the running computation."""
        if self._running is not None:
            self._running.job.cancel()

    def serve(self) -> None:
        """Reports progress, and the results when there are any."""
        run = self._running
        if run is None:
            return
        outcome = run.job.outcome
        if outcome is not None:
            self._running = None
            self._end(run, outcome)
            return
        state = (run.job.progress, run.job.step)
        if run.client.feedback is not None and state != run.reported:
            run.reported = state
            run.client.feedback(state)

    # --- requests ----------------------------------------------------------------------------
    def offer(self, node: Node, name: str, begin: Begin) -> None:
        """Offers a computation as a service and an action of that name."""
        kind = "".join(word.capitalize() for word in name.split("_"))
        service, acting = getattr(srv, kind), getattr(action, kind)

        def serve(request: Any, reply: Callable[[Any], None]) -> None:
            self._begin(begin, request, _Client(name, service.Response(), reply))

        def accept(goal: ServerGoalHandle) -> None:
            client = _Client(
                name,
                acting.Result(),
                finish=lambda answer: finish_goal(
                    goal, answer.success and not goal.is_cancel_requested, answer
                ),
                feedback=lambda state: goal.publish_feedback(
                    acting.Feedback(progress=state[0], step=state[1])
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

    def _begin(self, begin: Begin, request: Any, client: _Client) -> None:
        try:
            if self._running is not None:
                raise IdentificationError(
                    f"{self._running.client.name} is running: wait for its end, or cancel it"
                )
            session = self._session()
            task, fill = begin(session, request)
            self._running = _Running(client, session, BackgroundJob(task), fill)
        except IdentificationError as error:
            client.answer.message = str(error)
            client.finish(client.answer)

    def _on_cancel(self, goal: ServerGoalHandle) -> CancelResponse:
        run = self._running
        if run is None or run.client.goal is not goal:
            return CancelResponse.REJECT
        run.job.cancel()
        return CancelResponse.ACCEPT

    def _identify(self, session: Session, request: Any) -> tuple[Task, Fill]:
        postures = session.select_postures(request.postures)
        known, further = session.evidence() if request.use_diagnosis else (None, {})
        postures |= further

        def fill(value: Any, answer: Any) -> None:
            found, helpful = value
            session.result, session.walk = Result(found, tuple(postures)), None
            answer.helpful = _proposed(session, helpful)
            warning = f"Warning: {found.redundancy} " if found.redundancy else ""
            answer.success, answer.message = True, warning + summary(found)
            answer.result = session.result_message()
            self._on_found()

        arguments = *_robot(session), tuple(postures.values()), known
        return partial(background.identify_links, *arguments), fill

    def _identify_total(
        self,
        find: Callable[..., Any],
        convert: Callable[[Any, Sequence[int]], IdentifyTotalCom.Response],
        request: IdentifyTotalCom.Request,
        reply: Reply,
    ) -> None:
        def answer(found: Any) -> None:
            if isinstance(found, Exception):
                reply(IdentifyTotalCom.Response(message=str(found)))
                return
            response = convert(found, list(postures))
            self._logger.info(response.message)
            reply(response)

        try:
            session = self._session()
            postures = session.select_postures(request.postures)
        except IdentificationError as error:
            reply(IdentifyTotalCom.Response(message=str(error)))
            return
        arguments = (
            session.model,
            session.config.feet,
            list(postures.values()),
            session.settings,
        )
        self._totals.do(partial(find, *arguments), answer)

    # --- results -----------------------------------------------------------------------------
    def _end(self, run: _Running, outcome: Outcome) -> None:
        answer = run.client.answer
        if outcome.trace:
            self._logger.error(outcome.trace)
        if outcome.problem:
            answer.message = outcome.problem
        elif run.session.closed:
            answer.message = "the robot's description has changed meanwhile: ask again"
        else:
            run.fill(outcome.value, answer)
        self._logger.info(f"{run.client.name}: {answer.message}")
        run.client.finish(answer)


def _propose(session: Session, request: Any) -> tuple[Task, Fill]:
    used = None if request.ignore_stored else session.opened
    stored = () if used is None else tuple(used.postures.values())

    def fill(value: Any, answer: Any) -> None:
        answer.success, answer.postures = True, _proposed(session, value)
        last = value[-1]
        answer.message = (
            f"{len(value)} postures, the most informative first; the best plan possible would "
            f"leave {100.0 * last.efficiency:.0f} % of their standard deviation. They leave "
            f"{1e3 * last.prediction_std:.2f} mm of the CoM, {1e3 * last.zeroed_std:.2f} mm where "
            "all feet are lifted before and tare_wrench reads the zeros in the air"
        )

    arguments = *_robot(session), stored, max(1, request.count)
    return partial(background.propose_postures, *arguments), fill


def _robot(
    session: Session,
) -> tuple[RobotModel, tuple[Foot, ...], Array, IdentificationSettings]:
    return session.model, session.config.feet, session.rest, session.settings


def _proposed(
    session: Session, postures: Iterable[PlannedPosture]
) -> list[ProposedPosture]:
    return [
        numpy_to_proposed_posture(each, session.model.joint_names) for each in postures
    ]
