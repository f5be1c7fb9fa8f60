"""The action `walk` of ccgd_gait."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.action import ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node

from com_control.nodes.ccgd_control import WalkControl
from com_control.walking.walk_session import Outcome
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
        group: Of callbacks that wait.
    """

    def __init__(
        self,
        node: Node,
        control: WalkControl,
        ask: Callable[[WalkGoal], str],
        told: Callable[[], WalkState],
        period: float,
        group: CallbackGroup,
    ) -> None:
        self._node, self._control = node, control
        self._ask, self._told, self._period = ask, told, period
        self._walking: ServerGoalHandle | None = None  # whose walk it is, or was last
        self._server = ActionServer(
            node,
            Walk,
            "walk",
            self._on_walk,
            callback_group=group,
            cancel_callback=self._on_cancel,
        )

    def destroy(self) -> None:
        """Serve no more."""
        self._server.destroy()

    async def _on_walk(self, goal: ServerGoalHandle) -> Walk.Result:
        reason = "cancelled" if goal.is_cancel_requested else self._ask(goal.request.goal)
        outcome = Outcome(False, reason, 0) if reason else await self._outcome_of(goal)
        if outcome.completed:
            goal.succeed()
        elif goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return Walk.Result(completed=outcome.completed, reason=outcome.reason, steps=outcome.steps)

    async def _outcome_of(self, goal: ServerGoalHandle) -> Outcome:
        """Tell how the walk goes on until it ends."""
        self._walking = goal
        timer = self._node.create_timer(
            self._period, lambda: goal.publish_feedback(Walk.Feedback(state=self._told()))
        )
        try:
            outcome: Outcome = await self._control.end()
            return outcome
        finally:
            self._node.destroy_timer(timer)

    def _on_cancel(self, goal: ServerGoalHandle) -> CancelResponse:
        if goal is self._walking:  # not one that waits to be refused while another one walks
            self._control.stop("cancelled")
        return CancelResponse.ACCEPT
