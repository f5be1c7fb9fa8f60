"""Sways a robot on all feet, or moves the limbs of a hanging humanoid, to be recorded.

Plans the motion from the URDF at the start and plays it as motion_player plays files: the same
topics, services and safety stops; ~/load is for files with a motion_layout only. A sway is refused
unless the robot stands in the posture of robot_config. Record joint_states with effort and imu.

Parameters: those of motion_player, and Tour.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from com_control.commands.plan_sway import describe
from com_control.exceptions import MotionError
from com_control.motion.motion import MotionLayout
from com_control.motion.sway_tour import plan_hang, plan_sway
from com_control.nodes.motion_player import MotionPlayerNode
from com_ros.parameters import declare, parameter


@dataclass(frozen=True)
class Tour:
    """Further parameters of sway_tour."""

    hang: bool = parameter(
        False, "the robot hangs from a rope; false: it stands on all feet"
    )
    seconds: float = parameter(60.0, "s, of the motion", (15.0, 600.0))
    seed: int = parameter(
        1, "of periods and phases; another one for validation", (0, 1_000_000)
    )


class SwayTourNode(MotionPlayerNode):
    """ROS 2 node `sway_tour`: plays a planned slow motion.

    The module's docstring lists what it does, Tour and motion_player's Parameters its parameters.

    Args:
        **options: passed on to RobotNode and rclpy's Node, such as parameter_overrides.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("sway_tour", **options)
        name = "hang" if self._tour.hang else "sway"
        self._player.load(name, self._planned.motion)
        self.get_logger().info(f"{name}: {describe(self._planned)}")

    def make_layout(self) -> MotionLayout:
        """Returns all joints in rad with the limits of the URDF, and plans the motion.

        Raises:
            ComControlError: no motion is possible; says why.
        """
        self._tour = tour = declare(self, Tour)
        model, config = self.load_model(), self.require_config("its feet and posture")
        plan = plan_hang if tour.hang else plan_sway
        self._planned = plan(model, config, tour.seconds, tour.seed)
        n = model.n_joints
        return MotionLayout(
            columns=("period", *model.joint_names),
            joints=model.joint_names,
            index=np.arange(1, n + 1),
            counts_per_rad=np.ones(n),
            period=0.001,
            lower=model.lower,
            upper=model.upper,
            velocity=model.velocity_limits,
            acceleration=np.full(n, 0.5),  # rad/s^2, to the first posture
        )

    def _play(self) -> str:
        first = self._planned.motion.positions[0]
        off = np.abs(self._measured - first)
        most = 0.15  # rad, of a leg's joint from the first posture of the sway
        if not self._tour.hang and np.isfinite(off).all() and off.max() > most:
            joint = self._layout.joints[int(off.argmax())]
            raise MotionError(
                f"{joint} is {off.max():.2f} rad from the posture of robot_config, limit "
                f"{most:g}: let the robot stand in it, feet flat, then play"
            )
        return super()._play()
