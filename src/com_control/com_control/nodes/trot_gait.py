"""Lets a robot on four legs trot.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF, unless the parameter gives it.
    joint_states (sensor_msgs/JointState): where the joints are, and the time.
    imu (sensor_msgs/Imu): attitude and angular velocity, with gait.swing_compensation or feedback.
    trunk_com (com_msgs/TrunkCom): only with feedback, only while CONVERGED.

Publishes, at most at rate_hz and with the stamp of the joint_states that it was computed from:
    joint_trajectory (trajectory_msgs/JointTrajectory): one point, `horizon` later, with velocities;
        when joint_states fall silent, once, the whole way down on all feet, from now on.
    gait/stance (com_msgs/GaitPhase): which legs carry.
At 1 Hz: /diagnostics.

Services:
    ~/start, ~/stop (std_srvs/Trigger): trot; stand on all feet.

It stops with all feet down, and says why, when joint_states fall silent, attitude is not known or
the trunk tilts too far; ~/start goes on. Before it has begun to trot it waits for the same.

Parameters: see trot_parameters.Parameters.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from com_control.nodes.trot_parameters import Parameters
from com_control.trot.session import Command, GaitSession
from com_control.trot.trot import TrotGait
from com_model import RobotConfig, RobotModel
from com_msgs.msg import GaitPhase, TrunkCom
from com_ros import diagnostics, qos
from com_ros.conversions import NS_PER_S, ns_to_stamp, vector3_to_numpy
from com_ros.exceptions import ConversionError, ParameterError
from com_ros.imu_input import UNKNOWN_IMU, ImuValues, imu_to_values
from com_ros.input_watch import InputWatch, Latest, sample_time_ns
from com_ros.joint_input import JointInput
from com_ros.main import make_fast_executor, run
from com_ros.parameters import declare
from com_ros.robot_description import RobotDescription
from com_ros.throttle import ThrottledLog

REST_POINTS = 20  # of the way to the standing posture that is sent when joint_states fall silent


@dataclass
class _Robot:
    """What belongs to one model."""

    session: GaitSession
    joints: JointInput
    model: RobotModel
    R_imu_root: np.ndarray


class TrotGaitNode(Node):
    """The node; see the module's text.

    Args:
        options: passed on to rclpy's Node (namespace, parameter_overrides, context).
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("trot_gait", **options)
        self._settings = p = declare(self, Parameters)
        if not p.robot_config:
            raise ParameterError("robot_config", "", "give the path of the robot's configuration")
        self._config = RobotConfig.from_file(p.robot_config)
        self._log = ThrottledLog(self.get_logger())
        self._robot: _Robot | None = None
        self._command: Command | None = None
        self._imu: Latest[ImuValues] = Latest(p.imu_timeout)
        self._com: Latest[np.ndarray] = Latest(p.com_timeout)
        self._watch = InputWatch(p.joint_timeout)
        self._next_ns = self._last_ns = 0
        self._rate = diagnostics.RateMeter()
        self._diagnostics = diagnostics.Diagnostics(self, "trot")
        self._trajectory = self.create_publisher(JointTrajectory, "joint_trajectory", 10)
        self._phase = self.create_publisher(GaitPhase, "gait/stance", 10)
        self._description = RobotDescription(self, self._use_model, p.robot_description, self._log)
        self.create_subscription(Imu, "imu", self._on_imu, qos.stream())
        if p.feedback:
            self.create_subscription(TrunkCom, "trunk_com", self._on_com, qos.stream())
        self.create_subscription(JointState, "joint_states", self._on_joint_states, qos.stream(100))
        self.create_service(Trigger, "~/start", self._on_start)
        self.create_service(Trigger, "~/stop", self._on_stop)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(min(p.joint_timeout / 4.0, 0.25), self._on_watch, clock=steady)
        self.create_timer(1.0, self._on_diagnostics, clock=steady)

    def _use_model(self, model: RobotModel) -> None:
        """Make what belongs to a new model; raises when it does not fit the configuration."""
        p = self._settings
        self._config.check(model)
        session = GaitSession(TrotGait(model, self._config, p.gait.gait()), p.lead_time)
        session.trot = p.autostart
        link = self._config.imu_link
        R = np.eye(3) if link is None else model.bodies.R_body_link[model.link_index(link)].T
        self._robot = _Robot(session, JointInput(model.joint_names, p.joint_timeout), model, R)

    # --- inputs ------------------------------------------------------------------------------
    def _on_imu(self, msg: Imu) -> None:
        try:
            values = imu_to_values(msg)
        except ConversionError as error:
            self._log.warn("imu", f"imu: {error}")
            values = UNKNOWN_IMU
        self._imu.set(values, sample_time_ns(msg.header.stamp, self.get_clock()))

    def _on_com(self, msg: TrunkCom) -> None:
        offset = vector3_to_numpy(msg.offset_from_center)
        if msg.status == TrunkCom.STATUS_CONVERGED and np.isfinite(offset[:2]).all():
            self._com.set(offset, sample_time_ns(msg.header.stamp, self.get_clock()))

    def _on_joint_states(self, msg: JointState) -> None:
        if self._robot is None:
            return
        time_ns = sample_time_ns(msg.header.stamp, self.get_clock())
        sample = self._robot.joints.update(msg, time_ns)
        if sample is None:
            return
        if sample.error:
            self._log.warn("joint_states", sample.error)
            return
        self._watch.received()
        if self._next_ns - int(10 * NS_PER_S) < time_ns < self._next_ns:
            return
        self._next_ns = time_ns + int(NS_PER_S / self._settings.rate_hz) - 500_000
        self._step(time_ns, sample.position)

    def _step(self, time_ns: int, position: np.ndarray) -> None:
        assert self._robot is not None  # noqa: S101 - the caller has looked
        session, p = self._robot.session, self._settings
        R, omega, problem = self._attitude(time_ns)
        if session.check(problem):
            self.get_logger().error(f"the trot stops: {problem}")
        com = self._com.current(time_ns) if p.feedback else None
        at = time_ns / NS_PER_S + p.horizon
        self._last_ns = time_ns
        self._command = session.step(at, position, R, com, omega)
        self._publish(self._command, time_ns)
        self._rate.add(self.get_clock().now().nanoseconds - time_ns)

    def _attitude(self, time_ns: int) -> tuple[np.ndarray | None, np.ndarray | None, str]:
        """Attitude a horizon ahead, angular velocity (root's axes), and what is wrong."""
        p = self._settings
        if not (p.gait.swing_compensation or p.feedback):
            return None, None, ""
        assert self._robot is not None  # noqa: S101
        values = self._imu.current(time_ns)
        if values is None:
            state = self._imu.describe("imu", time_ns)
            return (
                None,
                None,
                f"{state}: start its driver, or turn feedback and gait.swing_compensation off",
            )
        turn = self._robot.R_imu_root
        R = values.R_world_imu @ turn
        if not np.isfinite(R).all():
            return None, None, "imu gives no orientation: use a filter that does"
        tilt = float(np.arccos(np.clip(R[2, 2], -1.0, 1.0)))
        if tilt > p.max_tilt:
            return R, None, f"the trunk tilts by {tilt:.2f} rad, max_tilt is {p.max_tilt:.2f}"
        omega = turn.T @ values.angular_velocity
        if not np.isfinite(omega).all():
            return R, None, ""
        ahead = omega * p.horizon
        return R + np.cross(R, ahead), omega, ""

    # --- outputs -----------------------------------------------------------------------------
    def _publish(self, command: Command, time_ns: int) -> None:
        assert self._robot is not None  # noqa: S101
        stamp = ns_to_stamp(time_ns)
        self._send([(self._settings.horizon, command)], stamp)
        self._tell(command, stamp)

    def _tell(self, command: Command, stamp: Any) -> None:
        assert self._robot is not None  # noqa: S101
        gait, session = command.gait, self._robot.session
        msg = GaitPhase(state=int(command.state), stance=command.stance.tolist())
        msg.header.stamp, msg.header.frame_id = stamp, self._robot.model.root_link
        msg.legs = [leg.name for leg in session.gait.legs]
        msg.reason = session.reason or ("; ".join(gait.problems) if gait else "")
        msg.phase = gait.phase if gait else float("nan")
        msg.com_shift = gait.com_shift if gait else np.zeros(2)
        msg.saturated = bool(gait and gait.saturated)
        self._phase.publish(msg)
        if gait and gait.problems:
            self._log.warn("gait", f"the gait is held back: {'; '.join(gait.problems)}")

    def _send(self, way: Sequence[tuple[float, Command]], stamp: Any) -> None:
        """Send points (s after the stamp, command)."""
        assert self._robot is not None  # noqa: S101
        points = [
            JointTrajectoryPoint(
                positions=command.position.tolist(),
                velocities=command.velocity.tolist(),
                time_from_start=Duration(seconds=after).to_msg(),
            )
            for after, command in way
        ]
        msg = JointTrajectory(joint_names=list(self._robot.model.joint_names), points=points)
        msg.header.stamp = stamp
        self._trajectory.publish(msg)

    # --- services and timers -----------------------------------------------------------------
    def _on_start(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._robot is None:
            response.success, response.message = False, self._description.waiting
            return response
        self._robot.session.start()
        response.success, response.message = True, "trots as soon as it stands"
        return response

    def _on_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._robot is None:
            response.success, response.message = False, self._description.waiting
            return response
        self._robot.session.stop("stopped by ~/stop")
        response.success, response.message = True, "stands with all feet down"
        return response

    def _on_watch(self) -> None:
        """Stop when joint_states fall silent: the last word is to stand."""
        self._description.warn_while_waiting()
        robot = self._robot
        if robot is None or not self._watch.timed_out() or not robot.session.started:
            return
        reason = f"joint_states silent for {self._watch.age_s:.2f} s: check its driver"
        if robot.session.check(reason):
            self.get_logger().error(f"the trot stops: {reason}")
        elif not robot.session.trot:
            robot.session.reason = reason
        self._lie_low(robot.session)

    def _lie_low(self, session: GaitSession) -> None:
        """Send the whole way to the standing posture: nothing tells when a next point is due."""
        begin = self._last_ns / NS_PER_S + self._settings.horizon + self._watch.age_s
        way = session.rest(begin, REST_POINTS)
        self._send([(at - begin, c) for at, c in way], ns_to_stamp(0))
        self._tell(way[0][1], ns_to_stamp(self._last_ns))

    def _on_diagnostics(self) -> None:
        robot, command = self._robot, self._command
        if robot is None or command is None:
            reason = self._description.waiting if robot is None else "no joint_states yet"
            self._diagnostics.publish(diagnostics.ERROR, reason, {})
            return
        level, reason = diagnostics.OK, command.state.name.lower()
        if robot.session.reason:
            level = diagnostics.WARN if robot.session.trot else diagnostics.ERROR
            reason = robot.session.reason
        elif command.gait and (command.gait.problems or command.gait.saturated):
            level = diagnostics.WARN
            reason = "; ".join(command.gait.problems) or "the feet's shift is at its bound"
        values = {"state": command.state.name, **self._rate.take(time.monotonic_ns())}
        self._diagnostics.publish(level, reason, values, robot.model.name)


def main() -> int:
    """Run the node."""
    return run(TrotGaitNode, make_executor=make_fast_executor)


if __name__ == "__main__":
    sys.exit(main())
