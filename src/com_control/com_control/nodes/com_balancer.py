"""Keeps the centre of mass of a standing robot where it is desired ([Cotton] Fig. 11).

Subscribes:
    robot_description (std_msgs/String, latched): the URDF, unless the parameter gives it.
    joint_states (sensor_msgs/JointState): where the joints are, and the time.
    imu (sensor_msgs/Imu): gravity, and so the slope of the ground; not with use_imu false.
    <foot>/wrench (geometry_msgs/WrenchStamped): by the configuration; which feet stand, and whether
        it falls; not with use_wrench false.
    balance/com_desired (geometry_msgs/PointStamped): the CoM in the balance frame (the middle of
        the soles, z upwards; also without any frame), or in a link's frame, which is transformed
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

It holds the joints where they are, and says why, when imu or wrenches time out or are not finite,
and goes on when they are back. When joints do not follow or report absurd positions it holds until
~/start. A robot that does not stand yet is waited for. When it falls while it is balanced no more
is sent until ~/start.

Parameters: see balancer_input.Parameters.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PointStamped, WrenchStamped
from sensor_msgs.msg import Imu

from com_control.balance.demonstrations import DemonstrationPlayer
from com_control.balance.session import BalanceReading, BalanceSession, State
from com_control.exceptions import BalanceError, ComControlError
from com_control.nodes.balancer_input import Parameters, RobotInput
from com_control.nodes.balancer_output import BalanceOutput
from com_model import RobotModel, link_pose
from com_ros import diagnostics, qos
from com_ros.conversions import ns_to_stamp, point_to_numpy
from com_ros.diagnostics import Diagnosis
from com_ros.exceptions import ComRosError
from com_ros.joint_input import JointInput, JointSample
from com_ros.main import make_fast_executor, run
from com_ros.robot_node import EVERY_SAMPLE, RobotNode
from com_ros.stream import RateLimit

LEVELS = {
    State.UNKNOWN: diagnostics.ERROR,
    State.HOLDING: diagnostics.ERROR,
    State.FALLEN: diagnostics.ERROR,
}


@dataclass
class _Robot:
    """What belongs to one model."""

    session: BalanceSession
    input: RobotInput
    reading: BalanceReading | None = None


class ComBalancerNode(RobotNode[Parameters]):
    """The node; see the module's text. Its options are those of RobotNode."""

    def __init__(self, **options: Any) -> None:
        super().__init__("com_balancer", Parameters, subject="balance", **options)
        p = self.parameters
        self._config = self.require_config("its feet with corners")
        self._output = BalanceOutput(self, p)
        self._player = DemonstrationPlayer(p.demonstration, p.control.margin)
        self._robot: _Robot | None = None
        self._display_rate = RateLimit(p.display_rate_hz)
        self.follow_robot_description()
        if p.use_imu:
            self.subscribe(Imu, "imu", self._on_imu)
        for index, foot in enumerate(self._config.feet if p.use_wrench else ()):
            self.subscribe(WrenchStamped, foot.wrench_topic, partial(self._on_wrench, index))
        self.subscribe_with(PointStamped, "balance/com_desired", self._on_desired, qos.RESULT)
        self.follow_joint_states(self._on_joints, rate_hz=p.rate_hz, depth=EVERY_SAMPLE)
        self.serve_trigger("~/start", self._start, (ComRosError, ComControlError))
        self.serve_trigger("~/stop", self._stop)

    def use_model(self, model: RobotModel) -> None:
        """Make what belongs to a new model."""
        p = self.parameters
        try:
            session = BalanceSession(model, self._config, p.control, p.check, p.guard, p.horizon)
        except ComControlError as error:
            raise ComRosError(f"this robot cannot be balanced: {error}") from error
        if p.autostart and (self._robot is None or self._robot.session.active):
            session.start()
        self._robot = _Robot(session, RobotInput(model, self._config, p))
        self.joints = JointInput(model.joint_names, p.joint_timeout)

    def apply_parameters(self, new: Parameters) -> None:
        """Use changed gains, bounds, timeouts and rates."""
        self.set_sample_rate(new.rate_hz)
        self._display_rate.set(new.display_rate_hz)
        if self._robot is not None:
            self._robot.session.set_options(new.control, new.check)
            self._robot.session.guard.options = new.guard
            self._robot.input.imu.timeout_s = new.imu_timeout
            self._robot.input.wrenches.timeout_s = new.wrench_timeout

    def on_restart(self, jump_s: float) -> None:
        """Hold until asked to go on, by another clock."""
        if self._robot is not None:
            self._robot.session.restart_clock(jump_s)

    # --- inputs --------------------------------------------------------------------------------
    def _on_imu(self, msg: Imu, time_ns: int) -> None:
        if self._robot is not None:
            self._robot.input.imu.update(msg, time_ns)

    def _on_wrench(self, foot: int, msg: WrenchStamped, time_ns: int) -> None:
        if self._robot is not None:
            self._robot.input.wrenches.update(foot, msg, time_ns)

    def _on_desired(self, msg: PointStamped) -> None:
        problem = self.waiting if self._robot is None else self._desire(msg)
        if problem:
            self.log.warn("com_desired", f"balance/com_desired refused: {problem}")
        else:
            self._player.stop()

    def _desire(self, msg: PointStamped) -> str:
        """Set the desired CoM; returns why not, or nothing."""
        robot, p = self._robot, self.parameters
        assert robot is not None  # noqa: S101 - the caller has looked
        point, frame = point_to_numpy(msg.point), msg.header.frame_id
        if frame in ("", self._output.frame):
            return robot.session.desire(point)
        link = frame.removeprefix(p.frame_prefix)
        if link not in robot.session.model.link_names:
            return (
                f"its frame is {frame!r}: give {self._output.frame!r}, a link of the robot, or "
                "leave it empty"
            )
        if robot.reading is None:
            return "no joint_states yet: where the frame is is not known"
        R, origin = link_pose(robot.session.model, robot.reading.position, link)
        try:
            desired = robot.session.place(robot.reading, origin + R @ np.nan_to_num(point))
        except ComControlError as error:
            return str(error)
        return robot.session.desire(np.where(np.isnan(point), np.nan, desired))

    def _on_joints(self, sample: JointSample) -> None:
        robot = self._robot
        assert robot is not None  # noqa: S101 - without a model no sample comes
        robot.reading = robot.input.reading(sample.time_ns, sample)
        stamp, before = ns_to_stamp(sample.time_ns), robot.session.state
        command = robot.session.step(robot.reading)
        if command is not None:
            self._output.send(robot.session.model.joint_names, command, stamp)
        step = None if command is None else command.step
        if step is None:
            self._player.pause()
        elif desired := self._player.next(robot.reading.time, step):
            robot.session.desire(*desired)  # what the demonstration has for the next step
        self._output.publish_state(robot.session, step, stamp)
        if step is not None and self._display_rate.due(sample.time_ns):
            self._output.show(robot.session.model.root_link, step, stamp)
        if robot.session.state in LEVELS and robot.session.state != before:
            self.get_logger().error(robot.session.reason)

    # --- services and timeouts -----------------------------------------------------------------
    def _start(self) -> str:
        robot = self._robot
        if robot is None or robot.reading is None:
            raise BalanceError("no joint_states yet")
        problem = robot.session.problem(robot.reading)
        if problem:
            raise BalanceError(problem)
        robot.session.start()
        return "balances, the centre of mass where it is"

    def _stop(self) -> str:
        assert self._robot is not None  # noqa: S101 - without a model the base refuses
        self._robot.session.stop()
        return "the joints stay where they are"

    def watch(self) -> None:
        """Say what is waited for."""
        if self._robot is None:
            self._output.publish_waiting(self.waiting, self.get_clock().now().to_msg())

    def on_joints_timeout(self, reason: str) -> None:
        """Say that nothing is known any more."""
        self.get_logger().error(reason)
        self._output.publish_waiting(reason, self.get_clock().now().to_msg())

    def diagnose(self) -> Diagnosis:
        """Level and text by the state of the session."""
        robot = self._robot
        if robot is None or robot.reading is None:
            return Diagnosis(diagnostics.ERROR, self.waiting or "no joint_states yet")
        session = robot.session
        level, reason = LEVELS.get(session.state, diagnostics.OK), session.reason
        if self.joint_watch.stale:
            level, reason = diagnostics.ERROR, "joint_states timed out: check its driver"
        elif level == diagnostics.OK and reason:
            level = diagnostics.WARN
        name, feet = session.state.name, ", ".join(session.feet)
        return Diagnosis(level, reason or name.lower(), {"state": name, "feet": feet})


def main() -> int:
    """Run the node."""
    return run(ComBalancerNode, make_executor=make_fast_executor)
