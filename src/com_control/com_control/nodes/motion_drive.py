"""A player between joint_states and joint_trajectory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from com_control.motion.layout import MotionLayout
from com_control.motion.motion import Motion
from com_control.motion.player import UNDER_WAY, Player, PlayerOptions, Targets
from com_model.arrays import Array
from com_ros import qos
from com_ros.conversions import NS_PER_S, ns_to_stamp, numpy_to_joint_trajectory
from com_ros.diagnostics import RateMeter
from com_ros.input_watch import InputWatch, sample_time_ns
from com_ros.joint_input import JointInput
from com_ros.throttle import ThrottledLog


class MotionDrive:
    """Lets a node's player move the joints.

    Args:
        node: That subscribes and publishes.
        layout: The joints.
        options: Of the player.
        rate_hz: Of commands, at most.
        on_step: Called after each step with its stamp, ns.
        log: For what is wrong with joint_states.

    Attributes:
        player: Its load, pause, resume and stop may be called at any time.
        measured: (k,) rad or m, where the joints were last; NaN before.
        time_ns: Stamp of that; 0 before.
        problem: What is wrong with joint_states; "" for nothing.
        rate: Of the steps.
    """

    def __init__(
        self,
        node: Node,
        layout: MotionLayout,
        options: PlayerOptions,
        rate_hz: float,
        on_step: Callable[[int], None],
        log: ThrottledLog,
    ) -> None:
        self.player = Player(layout, options)
        self.measured: Array = np.full(len(layout.joints), np.nan)
        self.time_ns, self.problem = 0, ""
        self.rate = RateMeter()
        self._clock, self._log, self._on_step = node.get_clock(), log, on_step
        self._period_ns = int(NS_PER_S / rate_hz)
        self._next_ns = self._origin_ns = 0
        self._joints = JointInput(layout.joints, options.timeout)
        self._watch = InputWatch(options.timeout)
        self._publisher = node.create_publisher(JointTrajectory, "joint_trajectory", qos.RESULT)
        self.topic = self._publisher.topic_name
        node.create_subscription(JointState, "joint_states", self._on_joint_states, qos.stream())

    @property
    def current(self) -> bool:
        """Whether it is known where the joints are."""
        return self.time_ns > 0 and not self._watch.stale and not self.problem

    @property
    def waiting(self) -> str:
        """Why it is not known where the joints are and how to fix it; "" when it is."""
        if self.problem:
            return self.problem
        if self.current:
            return ""
        silent = f"for {self._watch.age_s:.2f} s" if self.time_ns else "so far"
        return f"joint_states silent {silent}: check its driver"

    @property
    def heard(self) -> bool:
        """Whether somebody listens to the commands."""
        return self._publisher.get_subscription_count() > 0

    def play(self, fraction: float | None = None) -> Motion:
        """Begins to play from where the joints are; as Player.play."""
        return self.player.play(self._seconds(self.time_ns), self.measured, fraction)

    def watch(self) -> bool:
        """Looks for silence; call it from a steady timer. True when it has changed the state."""
        if not self._watch.stale or self.player.state not in UNDER_WAY:
            return False
        state = self.player.state
        self.player.input_lost(self._seconds(self.time_ns) + self._watch.age_s, self.waiting)
        return self.player.state != state

    def _on_joint_states(self, msg: JointState) -> None:
        time_ns = sample_time_ns(msg.header.stamp, self._clock)
        sample = self._joints.update(msg, time_ns)
        if sample is None:
            return
        self.problem = sample.error
        if sample.error:
            self._log.warn("joint_states", sample.error)
            return
        self._watch.received()
        if self._next_ns - int(10 * NS_PER_S) < time_ns < self._next_ns:
            return
        self._next_ns = time_ns + self._period_ns - 500_000
        self._origin_ns = self._origin_ns or time_ns
        self.measured, self.time_ns = sample.position, time_ns
        targets = self.player.step(self._seconds(time_ns), sample.position)
        if targets is not None:
            self._send(targets, time_ns)
        self.rate.add(self._clock.now().nanoseconds - time_ns)
        self._on_step(time_ns)

    def _send(self, targets: Targets, time_ns: int) -> None:
        self._publisher.publish(
            numpy_to_joint_trajectory(
                targets.joints,
                targets.after,
                targets.positions,
                targets.velocities,
                ns_to_stamp(time_ns),
            )
        )

    def _seconds(self, time_ns: int) -> float:
        return (time_ns - self._origin_ns) / NS_PER_S
