"""A player between joint_states and joint_trajectory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from com_control.motion.layout import MotionLayout
from com_control.motion.motion import Motion
from com_control.motion.player import UNDER_WAY, Player, PlayerOptions, Targets
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_ros import qos
from com_ros.conversions import NS_PER_S, ns_to_stamp, numpy_to_joint_trajectory
from com_ros.exceptions import ParameterError
from com_ros.joint_input import JointInput, JointSample
from com_ros.robot_node import RobotNode


def load_robot(node: RobotNode[Any]) -> tuple[RobotConfig, RobotModel]:
    """Configuration and model of a node that needs both at its start.

    Raises:
        ComModelError: One of the files cannot be used.
        ParameterError: A parameter is missing.
    """
    config, xml = node.require_config("name and encoder"), node.parameters.robot_description
    if xml:
        return config, config.attach(RobotModel.from_urdf(xml))
    if config.urdf is None:
        fix = f"give the robot's URDF, or the key urdf in {config.source}"
        raise ParameterError("robot_description", "", fix)
    return config, config.attach(RobotModel.from_file(config.urdf))


class MotionDrive:
    """Lets a node's player move the joints.

    Args:
        node: That subscribes and publishes; its parameters are DriveParameters.
        on_step: Called after each step with its stamp, ns.

    Attributes:
        player: Its load, pause, resume and stop may be called at any time.
        measured: (k,) rad or m, where the joints were last; NaN before.
        time_ns: Stamp of that; 0 before.
        problem: What is wrong with joint_states; "" for nothing.
    """

    def __init__(
        self,
        node: RobotNode[Any],
        layout: MotionLayout,
        options: PlayerOptions,
        on_step: Callable[[int], None],
    ) -> None:
        self.player = Player(layout, options)
        self.measured: Array = np.full(len(layout.joints), np.nan)
        self.time_ns, self.problem = 0, ""
        self._log, self._watch, self._on_step = node.log, node.joint_watch, on_step
        self._origin_ns, self._restarted = 0, False
        self._publisher = node.create_publisher(JointTrajectory, "joint_trajectory", qos.RESULT)
        self.topic = self._publisher.topic_name
        node.joints = JointInput(layout.joints, options.timeout)
        rate_hz = node.parameters.rate_hz
        node.follow_joint_states(self._on_joints, rate_hz=rate_hz, with_problems=True)

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
        if not self.time_ns:
            return "no joint_states yet: start the robot's driver"
        return f"joint_states timed out, none for {self._watch.age_s:.2f} s: check its driver"

    @property
    def subscribed(self) -> bool:
        """Whether somebody receives the commands."""
        return self._publisher.get_subscription_count() > 0

    def play(self) -> Motion:
        """Begins to play from where the joints are; as Player.play."""
        return self.player.play(self._seconds(self.time_ns), self.measured)

    def watch(self) -> bool:
        """Stop where joint_states have timed out; True when that has changed the state."""
        if not self._watch.stale or self.player.state not in UNDER_WAY:
            return False
        state = self.player.state
        self.player.input_lost(self._seconds(self.time_ns) + self._watch.age_s, self.waiting)
        return self.player.state != state

    def restart_clock(self, jump_s: float) -> None:
        """The stamps that follow are those of another clock: a motion stops where it is."""
        self.player.guard.stop_by_clock(jump_s)
        self._restarted = self.time_ns > 0

    def _on_joints(self, sample: JointSample) -> None:
        self.problem = sample.error
        if sample.error:
            self._log.warn("joint_states", sample.error)
            return
        time_ns = sample.time_ns
        self._origin_ns = self._origin_ns or time_ns
        if self._restarted:
            self._origin_ns, self._restarted = self._origin_ns + time_ns - self.time_ns, False
        self.measured, self.time_ns = sample.position, time_ns
        targets = self.player.step(self._seconds(time_ns), sample.position)
        if targets is not None:
            self._send(targets, time_ns)
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
