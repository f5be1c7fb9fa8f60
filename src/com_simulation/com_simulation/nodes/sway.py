"""Sends a slow motion of a robot's whole body around its nominal posture.

Publishes
    joint_trajectory (trajectory_msgs/JointTrajectory): the next second of the motion, twice a
        second, as soon as there is a subscriber; it starts from where the robot is
Subscribes
    robot_description (std_msgs/String): when neither of the parameters contains the robot
Parameters: see Parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from trajectory_msgs.msg import JointTrajectory

from com_model import RobotModel
from com_ros import qos
from com_ros.conversions import NS_PER_S, numpy_to_joint_trajectory
from com_ros.parameters import live_parameter
from com_ros.robot_node import RobotNode
from com_simulation.nodes.simulator_parameters import SimulatedRobot
from com_simulation.physics.sway import Sway, plan_sway

# s; longer than the period, so that a late message does not stop the robot
HORIZON = 1.2
LEAD_IN = 2.0  # s, from the robot's posture to the nominal one


@dataclass(frozen=True)
class Parameters(SimulatedRobot):
    """Parameters of sway."""

    amplitude: float = live_parameter(
        0.1,
        "amplitude of joints and sideways lean, rad; reduced until it is safe",
        (0.0, 1.0),
    )
    period: float = live_parameter(8.0, "period of the motion, s", (1.0, 600.0))


class SwayNode(RobotNode[Parameters]):
    """ROS 2 node `sway`: sends a slow motion of the whole body, piece by piece.

    Args:
        **options: passed on to RobotNode and rclpy's Node, such as parameter_overrides.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("sway", Parameters, **options)
        self._sway: Sway | None = None
        self._start_ns: int | None = None
        self._attempts = 0
        self._publisher = self.create_publisher(
            JointTrajectory, "joint_trajectory", qos.RESULT
        )
        model = self.parameters.model()
        if model is not None:
            self.use_model(model)
        else:
            self.follow_robot_description()
        self.create_timer(0.5, self._send)

    def use_model(self, model: RobotModel) -> None:
        """Plans the motion of a new model.

        Args:
            model: the robot.

        Raises:
            SwayError: no motion keeps it standing.
        """
        self._plan(model, self.parameters)

    def apply_parameters(self, new: Parameters) -> None:
        """Plans the motion again; it starts from the robot's present posture.

        Args:
            new: all parameters.
        """
        if self._sway is not None:
            self._plan(self._robot, new)

    def _plan(self, robot: RobotModel, parameters: Parameters) -> None:
        config = self.config
        if config is not None:
            robot = config.attach(robot)
        standing = parameters.base != "fixed"
        sway = plan_sway(
            robot, config, standing, parameters.amplitude, parameters.period
        )
        self._robot, self._sway, self._start_ns = robot, sway, None
        self._names = list(robot.joint_names)
        margin = (
            ""
            if np.isnan(sway.margin)
            else f", support margin {1000 * sway.margin:.0f} mm"
        )
        self.get_logger().info(
            f"swaying '{robot.name}' by {sway.amplitude:.3g} rad in {sway.period:g} s{margin}"
        )

    def _send(self) -> None:
        if self._sway is None:
            return
        if self._publisher.get_subscription_count() == 0:
            self._start_ns = None  # the next subscriber gets a new lead-in
            self._attempts += 1
            # times to send that go by before a missing listener is worth a warning
            if self._attempts >= 6:
                topic = self._publisher.topic_name
                what = f"nobody listens to {topic}: start the robot or simulator"
                self.log.warn("listener", what)
            return
        self._attempts = 0
        now_ns = self.get_clock().now().nanoseconds
        if (
            self._start_ns is None or now_ns < self._start_ns
        ):  # a simulated clock may restart
            self._start_ns = now_ns
        time = (now_ns - self._start_ns) / NS_PER_S
        self._publisher.publish(next_piece(self._names, self._sway.sample, time))


def next_piece(
    names: list[str],
    motion: Callable[[float], tuple[np.ndarray, np.ndarray]],
    time: float,
) -> JointTrajectory:
    """Message with the points of the next HORIZON.

    Args:
        names: of the n joints.
        motion: time from its start, s -> positions (n,), velocities (n,); begins LEAD_IN later.
        time: s since the lead-in began.

    Returns:
        A trajectory with the stamp 0, "begin at once".
    """
    step = 0.1  # s
    first = int(np.floor(time / step)) + 1
    last = int(np.floor((time + HORIZON) / step))
    lead_in = round(LEAD_IN / step)
    ahead = np.arange(max(first, lead_in), max(last, lead_in) + 1) * step
    q, qd = zip(*(motion(t - lead_in * step) for t in ahead.tolist()), strict=True)
    return numpy_to_joint_trajectory(names, ahead - time, q, qd, Time())
