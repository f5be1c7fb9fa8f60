"""Lets a robot on two legs walk, with its true centre of mass where it is to be.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF, unless the parameter gives it.
    joint_states (sensor_msgs/JointState): where the joints are, and the time.
    <foot>/wrench (geometry_msgs/WrenchStamped): by the configuration; whether the robot stands.
    imu (sensor_msgs/Imu): optional; whether it is upright.
    gait/footsteps (com_msgs/WalkGoal): a walk to be made, for those who do not want the action.

Publishes, with the stamp of the joint_states that it was computed from:
    joint_trajectory (trajectory_msgs/JointTrajectory): whole walks, with velocities, each of which
        ends with both feet down; with `streamed` one point at each sample.
    gait/state (com_msgs/WalkState): what it does, and why not.
    gait/com_reference, gait/zmp_reference (geometry_msgs/PointStamped): in the frame of the walk.
    zmp (geometry_msgs/PointStamped): by the feet's force and torque, likewise.
    gait/markers (visualization_msgs/MarkerArray), /tf: root link -> walk; /diagnostics at 1 Hz.

Action:
    walk (com_msgs/Walk): refused, with the reason, when the robot does not stand, the walk cannot
        be walked, or another one is under way. Cancelled, it stops after the present step.

Services:
    ~/plan_walk (com_msgs/PlanWalk): the same without walking.
    ~/solve_com_ik (com_msgs/SolveComIk): one posture.
    ~/stop (std_srvs/Trigger): stops after the present step.

It stops with both feet down, and says why, when joint_states, wrenches or imu fall silent or a
joint does not follow. When the robot falls it comes to rest and sends no more.

Parameters: see ccgd_parameters.Parameters.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from geometry_msgs.msg import WrenchStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_srvs.srv import Trigger

from com_control.nodes.ccgd_action import WalkActions
from com_control.nodes.ccgd_control import WalkControl
from com_control.nodes.ccgd_output import WalkOutput
from com_control.nodes.ccgd_parameters import Parameters
from com_control.nodes.ccgd_robot import Robot, request_of
from com_control.nodes.ccgd_services import (
    REFUSALS,
    fill_plan,
    fill_solution,
    raise_bug,
    solve_com_ik,
)
from com_control.nodes.walk_conversions import NO_STEP, walk_goal_to_values
from com_control.walking.session import State
from com_control.walking.walker import Walk
from com_model import RobotConfig, RobotModel
from com_msgs.msg import WalkGoal, WalkState
from com_msgs.srv import PlanWalk, SolveComIk
from com_ros import diagnostics, qos
from com_ros.conversions import NS_PER_S, ns_to_stamp
from com_ros.exceptions import ComRosError, ParameterError
from com_ros.input_watch import sample_time_ns
from com_ros.jobs import BackgroundJobs, DeferredService, Reply
from com_ros.main import run
from com_ros.parameters import declare
from com_ros.robot_description import RobotDescription
from com_ros.throttle import ThrottledLog

T = TypeVar("T")

LEVELS = {
    State.UNKNOWN: diagnostics.ERROR,
    State.REFUSED: diagnostics.WARN,
    State.STOPPING: diagnostics.WARN,
    State.FALLEN: diagnostics.ERROR,
}


class CcgdGaitNode(Node):
    """The node; see the module's text.

    Args:
        options: passed on to rclpy's Node (namespace, parameter_overrides, context).
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("ccgd_gait", **options)
        self._settings = p = declare(self, Parameters)
        if not p.robot_config:
            raise ParameterError("robot_config", "", "give the path of the robot's configuration")
        self._config = RobotConfig.from_file(p.robot_config)
        self._log = ThrottledLog(self.get_logger())
        self._jobs = BackgroundJobs(self)
        self._output = WalkOutput(self, p)
        self._control = WalkControl(p, self._output, self._jobs, self.get_logger())
        self._told = WalkState()
        self._next_ns = self._show_ns = 0
        self._rate = diagnostics.RateMeter()
        self._diagnostics = diagnostics.Diagnostics(self, "walk")
        self._description = RobotDescription(self, self._use_model, p.robot_description, self._log)
        self._subscribe()
        self._serve()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(min(p.joint_timeout / 4.0, 0.25), self._on_watch, clock=steady)
        self.create_timer(1.0, self._on_diagnostics, clock=steady)

    def _subscribe(self) -> None:
        self.create_subscription(Imu, "imu", self._on_imu, qos.stream())
        topics = {foot.side: foot.wrench_topic for foot in self._config.feet}
        for side, name in enumerate(("left", "right")):
            if self._settings.use_wrench and name in topics:
                take_in = partial(self._on_wrench, side)
                self.create_subscription(WrenchStamped, topics[name], take_in, qos.stream())
        self.create_subscription(WalkGoal, "gait/footsteps", self._on_goal, qos.RESULT)
        self.create_subscription(JointState, "joint_states", self._on_joint_states, qos.stream())

    def _serve(self) -> None:
        period = 1.0 / self._settings.display_rate_hz
        self._actions = WalkActions(self, self._control, self._ask, lambda: self._told, period)
        DeferredService(self, PlanWalk, "~/plan_walk", self._on_plan)
        DeferredService(self, SolveComIk, "~/solve_com_ik", self._on_solve)
        self.create_service(Trigger, "~/stop", self._on_stop)

    def destroy_node(self) -> None:
        """Let the planner come to its end first."""
        self._jobs.close()
        self._actions.destroy()
        super().destroy_node()

    def _use_model(self, model: RobotModel) -> None:
        """Make what belongs to a new model; raises when it does not fit."""
        if self._control.busy:
            raise ComRosError("a walk is under way: send the new description when it has ended")
        self._control.robot = Robot(model, self._config, self._settings, self.get_clock())

    # --- inputs --------------------------------------------------------------------------------
    def _on_imu(self, msg: Imu) -> None:
        if self._control.robot is not None:
            self._control.robot.input.take_imu(msg)

    def _on_wrench(self, side: int, msg: WrenchStamped) -> None:
        if self._control.robot is not None:
            self._control.robot.input.take_wrench(side, msg)

    def _on_joint_states(self, msg: JointState) -> None:
        robot = self._control.robot
        if robot is None:
            return
        time_ns = sample_time_ns(msg.header.stamp, self.get_clock())
        sample = robot.input.joints.update(msg, time_ns)
        if sample is None:
            return
        if sample.error:
            self._log.warn("joint_states", sample.error)
            return
        doubt = self._control.heard(time_ns)
        if doubt:
            self._log.warn("joint_states", doubt)
            return
        if self._next_ns - int(10 * NS_PER_S) < time_ns < self._next_ns:
            return
        self._next_ns = time_ns + int(NS_PER_S / self._settings.rate_hz) - 500_000
        self._control.observe(robot, time_ns, sample)
        self._publish(robot, time_ns)
        self._rate.add(self.get_clock().now().nanoseconds - time_ns)

    def _publish(self, robot: Robot, time_ns: int) -> None:
        assert robot.reading is not None  # noqa: S101 - it has just been made
        stamp = ns_to_stamp(time_ns)
        view = robot.viewer.estimate(robot.reading, robot.session.planned_now())
        self._told = self._output.tell(robot.session, view, stamp)
        period_ns = int(NS_PER_S / self._settings.display_rate_hz)
        if view is not None and abs(time_ns - self._show_ns) >= period_ns:
            self._show_ns = time_ns
            self._output.show(robot.biped, robot.session, view, stamp)

    # --- walks ---------------------------------------------------------------------------------
    def _on_goal(self, msg: WalkGoal) -> None:
        reason = self._ask(msg)
        if reason:
            self.get_logger().error(f"gait/footsteps refused: {reason}")

    def _ask(self, msg: WalkGoal) -> str:
        """Begin what a goal says; returns why not, or nothing."""
        if self._control.robot is None:
            return self._description.waiting
        try:
            request = request_of(walk_goal_to_values(msg, self._settings.walk_frame))
        except REFUSALS as error:
            return str(error)
        return self._control.begin(self._control.robot, request)

    def _on_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._control.robot is None:
            response.success, response.message = False, self._description.waiting
            return response
        self._control.stop("stopped by ~/stop")
        response.success, response.message = True, "stands, or will with both feet down"
        return response

    # --- questions -----------------------------------------------------------------------------
    def _on_plan(self, request: PlanWalk.Request, reply: Reply) -> None:
        robot, response = self._control.robot, PlanWalk.Response()
        if robot is None:
            response.reason, response.step = self._description.waiting, NO_STEP
            reply(response)
            return
        reading, defaults = robot.reading, self._settings.walk.request()
        posture = robot.biped.posture
        if reading is not None:
            posture = robot.session.commanded_posture(reading.position)

        def plan() -> Walk:
            goal = request_of(walk_goal_to_values(request.goal, self._settings.walk_frame))
            return robot.walker.plan(goal.with_defaults(defaults), posture)

        self._do(plan, lambda walk: reply(fill_plan(robot, walk, response)))

    def _on_solve(self, request: SolveComIk.Request, reply: Reply) -> None:
        robot, response = self._control.robot, SolveComIk.Response()
        if robot is None:
            response.reason = self._description.waiting
            reply(response)
            return
        self._do(
            lambda: solve_com_ik(robot, request),
            lambda found: reply(fill_solution(robot, found, response)),
        )

    def _do(self, work: Callable[[], T], then: Callable[[T | Exception], None]) -> None:
        """Hand on what a job gives, or the refusal that it raises."""

        def hand_on(result: T | Exception) -> None:
            if isinstance(result, Exception):
                raise_bug(result)
            then(result)

        self._jobs.do(work, hand_on)

    # --- timers --------------------------------------------------------------------------------
    def _on_watch(self) -> None:
        self._description.warn_while_waiting()
        if self._control.robot is None:
            now = self.get_clock().now().to_msg()
            self._output.waiting(self._description.waiting, now)
            return
        self._control.watch()

    def _on_diagnostics(self) -> None:
        robot = self._control.robot
        if robot is None or robot.reading is None:
            reason = self._description.waiting if robot is None else "no joint_states yet"
            self._diagnostics.publish(diagnostics.ERROR, reason, {})
            return
        session, outcome = robot.session, self._control.outcome
        level, reason = LEVELS.get(session.state, diagnostics.OK), session.reason
        if self._control.silence:
            level, reason = diagnostics.ERROR, self._control.silence
        values = {
            "state": session.state.name,
            "step": self._told.step,
            "com_error_m": self._told.com_error,
            "last_walk": "" if outcome is None else str(outcome),
            **self._rate.take(time.monotonic_ns()),
        }
        text = reason or session.state.name.lower()
        self._diagnostics.publish(level, text, values, robot.biped.model.name)


def main() -> int:
    """Run the node."""
    return run(CcgdGaitNode)


if __name__ == "__main__":
    sys.exit(main())
