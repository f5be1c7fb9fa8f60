"""The action `walk` of ccgd_gait."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.action import ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node

from com_control.nodes.ccgd_control import WalkControl
from com_control.walking.session import Outcome
from com_msgs.action import Walk
from com_msgs.msg import WalkGoal, WalkState


class WalkActions:
    """Serves the action.

    Args:
        node: That serves.
        control: Of the walks.
        ask: Begins what a goal says; returns why not, or nothing.
        told: The last word on gait/state.
        period: s, between two feedbacks.
    """

    def __init__(
        self,
        node: Node,
        control: WalkControl,
        ask: Callable[[WalkGoal], str],
        told: Callable[[], WalkState],
        period: float,
    ) -> None:
        self._node, self._control = node, control
        self._ask, self._told, self._period = ask, told, period
        self._walking: ServerGoalHandle | None = None  # whose walk it is, or was last
        self._server = ActionServer(
            node,
            Walk,
            "walk",
            lambda goal: Walk.Result(),
            handle_accepted_callback=self._on_walk,
            cancel_callback=self._on_cancel,
        )

    def destroy(self) -> None:
        """Serve no more."""
        self._server.destroy()

    def _on_walk(self, goal: ServerGoalHandle) -> None:
        """Begin a walk. No coroutine waits for its end: rclpy would spin without rest meanwhile."""
        reason = self._ask(goal.request.goal)
        if reason:
            _finish(goal, Outcome(False, reason, 0))
            return
        self._walking = goal
        timer = self._node.create_timer(
            self._period, lambda: goal.publish_feedback(Walk.Feedback(state=self._told()))
        )

        def ended(outcome: Outcome) -> None:
            self._node.destroy_timer(timer)
            _finish(goal, outcome)

        self._control.at_end(ended)

    def _on_cancel(self, goal: ServerGoalHandle) -> CancelResponse:
        if goal is self._walking:  # not one that waits to be refused while another one walks
            self._control.stop("cancelled")
        return CancelResponse.ACCEPT


def _finish(goal: ServerGoalHandle, outcome: Outcome) -> None:
    """Ends a goal with its result."""

    def execute(handle: ServerGoalHandle) -> Walk.Result:
        if outcome.completed:
            handle.succeed()
        elif handle.is_cancel_requested:
            handle.canceled()
        else:
            handle.abort()
        return Walk.Result(completed=outcome.completed, reason=outcome.reason, steps=outcome.steps)

    goal.execute(execute)
