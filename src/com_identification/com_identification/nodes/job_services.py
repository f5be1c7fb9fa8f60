"""Computations on request: in a separate process, one at a time, or in a thread.

Actions: ~/identify_links, ~/propose_postures, ~/identify_walk; ~/identify_links is a service too.
Services that take less time than a process needs to start: ~/identify_total_com,
~/identify_two_postures.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rclpy.action import ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node

from com_identification import background
from com_identification.background import BackgroundJob, Fill, Task
from com_identification.exceptions import IdentificationError
from com_identification.feet.feet_reading import find_tilted_shape, identify_total
from com_identification.nodes.identification_conversions import (
    numpy_to_proposed_posture,
    numpy_to_tilted_shape,
    numpy_to_total,
)
from com_identification.nodes.identification_session import Parameters, Result, Session
from com_identification.planning.planner import PlannedPosture
from com_identification.report.comparison import summary
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array
from com_msgs import action
from com_msgs.msg import ProposedPosture
from com_msgs.srv import IdentifyLinks, IdentifyTotalCom
from com_ros.jobs import DeferredService, Reply, finish_goal
from com_ros.robot_node import RobotNode

Begin = Callable[[Session, Any], tuple[Task, Fill]]
"""Makes the task of a request."""


@dataclass
class _Running:
    """A computation for a client.

    Attributes:
        kind: Type of the action.
        name: Of the action, without the node's.
        finish: Sends the result.
        goal: Of the action; None where the service was called.
        reported: Progress and step by the last feedback.
    """

    kind: Any
    name: str
    finish: Callable[[Any], None]
    goal: ServerGoalHandle | None
    session: Session
    job: BackgroundJob
    fill: Fill
    reported: tuple[float, str] = (0.0, "")


class JobServices:
    """Services and actions that compute.

    Args:
        node: that offers them.
        session: returns the current session, or raises IdentificationError.
        on_found: called after a new result.
    """

    def __init__(
        self,
        node: RobotNode[Parameters],
        session: Callable[[], Session],
        on_found: Callable[[], None],
    ) -> None:
        self._session, self._on_found = session, on_found
        self._logger = node.get_logger()
        self._running: _Running | None = None
        self.offer(node, action.IdentifyLinks, "identify_links", self._identify)
        self.offer(node, action.ProposePostures, "propose_postures", _propose)
        DeferredService(node, IdentifyLinks, "~/identify_links", self._serve_identify)
        self._jobs, self._totals = node.background_jobs(), node.background_jobs()
        for name, find, convert in (
            (
                "identify_total_com",
                identify_total,
                lambda found, _: numpy_to_total(found),
            ),
            ("identify_two_postures", find_tilted_shape, numpy_to_tilted_shape),
        ):
            DeferredService(
                node,
                IdentifyTotalCom,
                f"~/{name}",
                partial(self._identify_total, find, convert),
            )

    @property
    def busy(self) -> bool:
        """Whether a computation is running."""
        return self._running is not None or self._totals.busy

    @property
    def state(self) -> tuple[str, float, str]:
        """Name, progress (0 to 1) and step of the running computation; "" and NaN without one."""
        run = self._running
        if run is None:
            return "", float("nan"), ""
        return run.name, run.job.progress, run.job.step

    def cancel(self) -> None:
        """Ends the running computation."""
        if self._running is not None:
            self._running.job.cancel()

    def serve(self) -> None:
        """Publishes the progress of the running computation."""
        run = self._running
        if run is None or run.goal is None:
            return
        state = (run.job.progress, run.job.step)
        if state != run.reported:
            run.reported = state
            run.goal.publish_feedback(
                run.kind.Feedback(progress=state[0], step=state[1])
            )

    # --- requests ----------------------------------------------------------------------------
    def offer(self, node: Node, kind: Any, name: str, begin: Begin) -> None:
        """Offers a computation as an action.

        Args:
            node: Whose action it is.
            kind: Type of the action; its result has the fields success and message, its feedback
                progress (0 to 1) and step.
            name: Of the action, without the node's.
            begin: Makes the task of a goal, or raises IdentificationError.
        """

        def accept(goal: ServerGoalHandle) -> None:
            def finish(result: Any) -> None:
                finish_goal(
                    goal, result.success and not goal.is_cancel_requested, result
                )

            self._begin(kind, name, begin, goal.request, finish, goal)

        ActionServer(
            node,
            kind,
            f"~/{name}",
            lambda goal: kind.Result(),
            handle_accepted_callback=accept,
            cancel_callback=self._on_cancel,
        )

    def _serve_identify(self, request: IdentifyLinks.Request, reply: Reply) -> None:
        """Serves ~/identify_links, whose fields are those of the action."""

        def finish(result: action.IdentifyLinks.Result) -> None:
            fields = IdentifyLinks.Response.get_fields_and_field_types()
            reply(IdentifyLinks.Response(**{k: getattr(result, k) for k in fields}))

        self._begin(
            action.IdentifyLinks, "identify_links", self._identify, request, finish
        )

    def _begin(
        self,
        kind: Any,
        name: str,
        begin: Begin,
        request: Any,
        finish: Callable[[Any], None],
        goal: ServerGoalHandle | None = None,
    ) -> None:
        """Starts a computation, or refuses the request; for the arguments see _Running."""
        try:
            if self._running is not None:
                raise IdentificationError(
                    f"{self._running.name} is running: wait for its end, or cancel it"
                )
            session = self._session()
            task, fill = begin(session, request)
            job = BackgroundJob(task)
            run = _Running(kind, name, finish, goal, session, job, fill)
            self._running = run
            self._jobs.do(job.run, partial(self._end, run))
        except IdentificationError as error:
            finish(kind.Result(message=str(error)))

    def _on_cancel(self, goal: ServerGoalHandle) -> CancelResponse:
        run = self._running
        if run is None or run.goal is not goal:
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
        session = self._session()
        postures = session.select_postures(request.postures)

        def answer(found: Any) -> None:
            if isinstance(found, Exception):
                reply(IdentifyTotalCom.Response(message=str(found)))
                return
            response = convert(found, list(postures))
            self._logger.info(response.message)
            reply(response)

        arguments = (
            session.model,
            session.config.feet,
            list(postures.values()),
            session.settings,
        )
        self._totals.do(partial(find, *arguments), answer)

    # --- results -----------------------------------------------------------------------------
    def _end(self, run: _Running, found: Any) -> None:
        self._running, answer = None, run.kind.Result()
        if isinstance(found, Exception):
            answer.message = str(found)
        elif run.session.closed:
            answer.message = "the robot's description has changed meanwhile: ask again"
        else:
            run.fill(found, answer)
        self._logger.info(f"{run.name}: {answer.message}")
        run.finish(answer)


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
