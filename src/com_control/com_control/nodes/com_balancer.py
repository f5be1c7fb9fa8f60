"""Keeps the centre of mass of a standing robot where it is desired ([Cotton] Fig. 11).

Subscribes:
    robot_description (std_msgs/String, latched): the URDF, unless the parameter gives it.
    joint_states (sensor_msgs/JointState): where the joints are, and the time.
    imu (sensor_msgs/Imu): gravity, and so the slope of the ground; not with use_imu false.
    <foot>/wrench (geometry_msgs/WrenchStamped): by the configuration; which feet stand, and whether
        it falls; not with use_wrench false.
    balance/com_desired (geometry_msgs/PointStamped): the CoM in the balance frame (the middle of
        the soles, z against gravity; also without any frame), or in a link's frame, which is turned
        into the balance frame as it comes. A z of NaN leaves the height free.

Publishes, at most at rate_hz and with the stamp of the joint_states that it was computed from:
    joint_trajectory (trajectory_msgs/JointTrajectory): one point, `horizon` later, with velocities.
    balance/com_error (geometry_msgs/Vector3Stamped): CoM minus reference, balance frame.
    balance/state (com_msgs/BalanceState): what it does, and why not.
    balance/markers (visualization_msgs/MarkerArray), /tf: root link -> balance; /diagnostics.

Services:
    ~/start (std_srvs/Trigger): balance, the CoM where it is or is desired; refused, with the
        reason, when the robot does not stand.
    ~/stop (std_srvs/Trigger): leave the joints where they are.

It holds the joints where they are, and says why, when imu or wrenches fall silent or carry what is
no number, and goes on by itself. A robot that does not stand yet is waited for. When it falls while
it is balanced no more is sent until ~/start.

Parameters: see balancer_parameters.Parameters.
"""

import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PointStamped, WrenchStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_srvs.srv import Trigger

from com_control.balance.balancer import BalanceStep
from com_control.balance.demonstrations import DemonstrationPlayer
from com_control.balance.session import BalanceReading, BalanceSession, State
from com_control.exceptions import ComControlError
from com_control.nodes.balancer_input import RobotInput
from com_control.nodes.balancer_output import BalanceOutput
from com_control.nodes.balancer_parameters import Parameters
from com_model import RobotConfig, RobotModel, link_pose
from com_ros import diagnostics, qos
from com_ros.conversions import NS_PER_S, Array, ns_to_stamp, point_to_numpy
from com_ros.exceptions import ComRosError, ParameterError
from com_ros.input_watch import InputWatch, sample_time_ns
from com_ros.main import make_fast_executor, run
from com_ros.parameters import declare
from com_ros.robot_description import RobotDescription
from com_ros.throttle import ThrottledLog

LEVELS = {
    State.UNKNOWN: diagnostics.ERROR,
    State.HOLDING: diagnostics.ERROR,
    State.FALLEN: diagnostics.ERROR,
}


@dataclass
class _Robot:
    """What belongs to one model."""

    model: RobotModel
    session: BalanceSession
    input: RobotInput
    reading: BalanceReading | None = None


class ComBalancerNode(Node):
    """The node; see the module's text.

    Args:
        options: passed on to rclpy's Node (namespace, parameter_overrides, context).
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("com_balancer", **options)
        self._settings = p = declare(self, Parameters)
        if not p.robot_config:
            raise ParameterError("robot_config", "", "give the path of the robot's configuration")
        self._config = RobotConfig.from_file(p.robot_config)
        self._log = ThrottledLog(self.get_logger())
        self._output = BalanceOutput(self, p)
        self._player = DemonstrationPlayer(p.demonstration, p.control.margin)
        self._robot: _Robot | None = None
        self._watch = InputWatch(p.joint_timeout)
        self._next_ns = self._show_ns = 0
        self._rate = diagnostics.RateMeter()
        self._diagnostics = diagnostics.Diagnostics(self, "balance")
        self._description = RobotDescription(self, self._use_model, p.robot_description, self._log)
        self._subscribe()
        self.create_service(Trigger, "~/start", self._on_start)
        self.create_service(Trigger, "~/stop", self._on_stop)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(min(p.joint_timeout / 4.0, 0.25), self._on_watch, clock=steady)
        self.create_timer(1.0, self._on_diagnostics, clock=steady)

    def _subscribe(self) -> None:
        if self._settings.use_imu:
            self.create_subscription(Imu, "imu", self._on_imu, qos.stream())
        for i, foot in enumerate(self._config.feet if self._settings.use_wrench else ()):
            take_in = partial(self._on_wrench, i)
            self.create_subscription(WrenchStamped, foot.wrench_topic, take_in, qos.stream())
        self.create_subscription(PointStamped, "balance/com_desired", self._on_desired, qos.RESULT)
        self.create_subscription(JointState, "joint_states", self._on_joint_states, qos.stream(100))

    def _use_model(self, model: RobotModel) -> None:
        """Make what belongs to a new model; raises when it does not fit the configuration."""
        p = self._settings
        try:
            session = BalanceSession(model, self._config, p.control.options(), p.check.limits())
        except ComControlError as error:
            raise ComRosError(f"this robot cannot be balanced: {error}") from error
        if p.autostart and (self._robot is None or self._robot.session.active):
            session.start()
        robot_input = RobotInput(model, self._config, p, self.get_clock())
        self._robot = _Robot(model, session, robot_input)

    # --- inputs --------------------------------------------------------------------------------
    def _on_imu(self, msg: Imu) -> None:
        if self._robot is not None:
            self._robot.input.take_imu(msg)

    def _on_wrench(self, foot: int, msg: WrenchStamped) -> None:
        if self._robot is not None:
            self._robot.input.take_wrench(foot, msg)

    def _on_desired(self, msg: PointStamped) -> None:
        problem = self._description.waiting if self._robot is None else self._desire(msg)
        if problem:
            self._log.warn("com_desired", f"balance/com_desired refused: {problem}")
        else:
            self._player.stop()

    def _desire(self, msg: PointStamped) -> str:
        """Take in a desired CoM; returns why not, or nothing."""
        robot, p = self._robot, self._settings
        assert robot is not None  # noqa: S101 - the caller has looked
        point, frame = point_to_numpy(msg.point), msg.header.frame_id
        if frame in ("", self._output.frame):
            return robot.session.desire(point)
        link = frame.removeprefix(p.frame_prefix)
        if link not in robot.model.link_names:
            return (
                f"its frame is {frame!r}: give {self._output.frame!r}, a link of the robot, or "
                "leave it empty"
            )
        if robot.reading is None:
            return "no joint_states yet that would tell where the frame is"
        R, origin = link_pose(robot.model, robot.reading.position, link)
        return self._desire_at(robot, origin + R @ np.nan_to_num(point), point)

    def _desire_at(self, robot: _Robot, place: Array, given: Array) -> str:
        """Take in a CoM at a place in the root link's frame."""
        assert robot.reading is not None  # noqa: S101 - the caller has looked
        try:
            desired = robot.session.place(robot.reading, place)
        except ComControlError as error:
            return str(error)
        return robot.session.desire(np.where(np.isnan(given), np.nan, desired))

    def _on_joint_states(self, msg: JointState) -> None:
        robot = self._robot
        if robot is None:
            return
        time_ns = sample_time_ns(msg.header.stamp, self.get_clock())
        sample = robot.input.joints.update(msg, time_ns)
        if sample is None:
            return
        if sample.error:
            self._log.warn("joint_states", sample.error)
            return
        self._watch.received()
        if self._next_ns - int(10 * NS_PER_S) < time_ns < self._next_ns:
            return
        self._next_ns = time_ns + int(NS_PER_S / self._settings.rate_hz) - 500_000
        robot.reading = robot.input.reading(time_ns, sample)
        self._step(robot, robot.reading, time_ns)
        self._rate.add(self.get_clock().now().nanoseconds - time_ns)

    def _step(self, robot: _Robot, reading: BalanceReading, time_ns: int) -> None:
        stamp, before = ns_to_stamp(time_ns), robot.session.state
        command = robot.session.step(reading)
        if command is not None:
            self._output.send(robot.model.joint_names, command, stamp)
        step = None if command is None else command.step
        self._demonstrate(robot, step, reading.time)
        self._output.tell(robot.session, step, stamp)
        if step is not None and abs(time_ns - self._show_ns) >= self._show_every_ns:
            self._show_ns = time_ns
            self._output.show(robot.model.root_link, step, stamp)
        if robot.session.state in LEVELS and robot.session.state != before:
            self.get_logger().error(robot.session.reason)

    def _demonstrate(self, robot: _Robot, step: BalanceStep | None, time_s: float) -> None:
        """Desire what the demonstration has for the next step."""
        if step is None:
            self._player.pause()
            return
        desired = self._player.next(time_s, step)
        if desired is not None:
            robot.session.desire(*desired)

    @property
    def _show_every_ns(self) -> int:
        return int(NS_PER_S / self._settings.display_rate_hz)

    # --- services and timers -------------------------------------------------------------------
    def _on_start(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        robot = self._robot
        if robot is None or robot.reading is None:
            waiting = self._description.waiting if robot is None else "no joint_states yet"
            response.success, response.message = False, waiting
            return response
        problem = robot.session.problem(robot.reading)
        if problem:
            response.success, response.message = False, problem
            return response
        robot.session.start()
        response.success, response.message = True, "balances, the centre of mass where it is"
        return response

    def _on_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._robot is None:
            response.success, response.message = False, self._description.waiting
            return response
        self._robot.session.stop()
        response.success, response.message = True, "the joints stay where they are"
        return response

    def _on_watch(self) -> None:
        self._description.warn_while_waiting()
        now = self.get_clock().now().to_msg()
        if self._robot is None:
            self._output.waiting(self._description.waiting, now)
        elif self._watch.timed_out():
            reason = f"joint_states silent for {self._watch.age_s:.2f} s: check its driver"
            self.get_logger().error(reason)
            self._output.waiting(reason, now)

    def _on_diagnostics(self) -> None:
        robot = self._robot
        if robot is None or robot.reading is None:
            reason = self._description.waiting if robot is None else "no joint_states yet"
            self._diagnostics.publish(diagnostics.ERROR, reason, {})
            return
        session = robot.session
        level, reason = LEVELS.get(session.state, diagnostics.OK), session.reason
        if self._watch.stale:
            level, reason = diagnostics.ERROR, "joint_states silent: check its driver"
        elif level == diagnostics.OK and reason:
            level = diagnostics.WARN
        values = {
            "state": session.state.name,
            "feet": ", ".join(session.feet),
            **self._rate.take(time.monotonic_ns()),
        }
        text = reason or session.state.name.lower()
        self._diagnostics.publish(level, text, values, robot.model.name)


def main() -> int:
    """Run the node."""
    return run(ComBalancerNode, make_executor=make_fast_executor)


if __name__ == "__main__":
    sys.exit(main())
