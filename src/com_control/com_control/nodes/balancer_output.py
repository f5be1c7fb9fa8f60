"""What com_balancer publishes: joint targets, error, state, markers, the balance frame."""

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Vector3Stamped
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from com_control.balance.balancer import BalanceStep
from com_control.balance.session import BalanceCommand, BalanceSession
from com_control.nodes.balancer_input import Parameters
from com_msgs.msg import BalanceState
from com_ros import qos
from com_ros.conversions import (
    NS_PER_S,
    numpy_to_joint_trajectory,
    numpy_to_point,
    numpy_to_vector3,
)
from com_ros.markers import BLUE, GREEN, ORANGE, RED, MarkerMaker
from com_ros.tf import FramePublisher

LIFETIME_NS = 2 * NS_PER_S
UP = np.array([0.0, 0.0, 1.0])


class BalanceOutput:
    """Publishes for one node."""

    def __init__(self, node: Node, settings: Parameters) -> None:
        self.frame = settings.frame_prefix + settings.balance_frame
        self._settings = settings
        self._trajectory = node.create_publisher(JointTrajectory, "joint_trajectory", qos.RESULT)
        self._error = node.create_publisher(Vector3Stamped, "balance/com_error", qos.RESULT)
        self._state = node.create_publisher(BalanceState, "balance/state", qos.RESULT)
        self._markers = node.create_publisher(MarkerArray, "balance/markers", qos.RESULT)
        self._frames = FramePublisher(node, settings.frame_prefix)
        self._maker = MarkerMaker(LIFETIME_NS)

    def send(self, names: tuple[str, ...], command: BalanceCommand, stamp: Time) -> None:
        """Send one target, `horizon` after the stamp."""
        q, qd, after = command.position, command.velocity, self._settings.horizon
        self._trajectory.publish(
            numpy_to_joint_trajectory(names, [after], q[None], qd[None], stamp)
        )

    def publish_state(
        self, session: BalanceSession, step: BalanceStep | None, stamp: Time
    ) -> BalanceState:
        """Publish state and error of one instant; returns the state."""
        state = make_state(session.state, session.reason, stamp, self.frame)
        state.feet = list(session.feet)
        if step is not None:
            set_step(state, step, session.options.friction)
            msg = Vector3Stamped()
            msg.header.stamp, msg.header.frame_id = stamp, self.frame
            numpy_to_vector3(step.com - step.reference, msg.vector)
            self._error.publish(msg)
        self._state.publish(state)
        return state

    def publish_waiting(self, reason: str, stamp: Time) -> None:
        """Publish that it waits, and for what."""
        self._state.publish(make_state(BalanceState.UNKNOWN, reason, stamp, self.frame))

    def show(self, root: str, step: BalanceStep, stamp: Time) -> None:
        """Publish the balance frame and, where somebody looks, markers."""
        frame = step.frame
        R = frame.R_balance_root.T
        self._frames.send_pose(stamp, root, self._settings.balance_frame, R, frame.origin)
        if self._markers.get_subscription_count() == 0:
            return
        self._maker.at(self.frame, stamp)
        n = frame.normal
        heights = -(frame.corners @ n[:2]) / n[2]
        outline = np.column_stack((frame.corners, heights))
        below = np.append(step.com[:2], -(step.com[:2] @ n[:2]) / n[2])
        wanted = np.append(step.reference[:2], -(step.reference[:2] @ n[:2]) / n[2])
        self._markers.publish(
            MarkerArray(
                markers=[
                    self._maker.sphere("com", step.com, 0.04, RED),
                    self._maker.line("line_of_gravity", np.array([step.com, below]), 0.004, RED),
                    self._maker.disc("com_projection", below, n, 0.03, ORANGE),
                    self._maker.disc("com_reference", wanted, n, 0.02, BLUE),
                    self._maker.line("support", outline, 0.006, GREEN, closed=True),
                ]
            )
        )


def make_state(state: int, reason: str, stamp: Time, frame: str) -> BalanceState:
    """A message in which nothing else is known."""
    nan = float("nan")
    msg = BalanceState(state=int(state), reason=reason)
    msg.header.stamp, msg.header.frame_id = stamp, frame
    for point in (msg.com_desired, msg.com_reference, msg.com):
        point.x = point.y = point.z = nan
    msg.com_error = msg.support_margin = msg.slope = nan
    return msg


def set_step(msg: BalanceState, step: BalanceStep, friction: float) -> None:
    """Set what a step of the control knows; friction is that of the ground."""
    numpy_to_point(step.desired, msg.com_desired)
    numpy_to_point(step.reference, msg.com_reference)
    numpy_to_point(step.com, msg.com)
    msg.com_error, msg.support_margin, msg.slope = step.error, step.margin, step.frame.slope
    msg.held_at_margin, msg.limited = step.held, bool(step.limits)
    msg.beyond_friction = bool(np.tan(step.frame.slope) > friction)
