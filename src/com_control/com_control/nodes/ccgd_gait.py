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
from functools import partial
from typing import Any

from geometry_msgs.msg import WrenchStamped
from rclpy.action import ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import Imu, JointState
from std_srvs.srv import Trigger

from com_control.nodes.ccgd_output import WalkOutput
from com_control.nodes.ccgd_parameters import Parameters
from com_control.nodes.ccgd_robot import Robot, request_of
from com_control.nodes.ccgd_services import REFUSALS, fill_plan, fill_solution, solve_com_ik
from com_control.walking.walk_request import WalkRequest
from com_control.walking.walk_session import MOVING, Order, Outcome, State
from com_control.walking.walk_view import WalkView
from com_control.walking.walker import Walk
from com_model import RobotConfig, RobotModel
from com_msgs.action import Walk as WalkAction
from com_msgs.msg import WalkGoal, WalkState
from com_msgs.srv import PlanWalk, SolveComIk
from com_ros import diagnostics, qos
from com_ros.background_job import BackgroundJobs
from com_ros.conversions import NS_PER_S, ns_to_stamp
from com_ros.exceptions import ComRosError, ParameterError
from com_ros.freshness import sample_time_ns
from com_ros.main import run
from com_ros.model_source import RobotDescription
from com_ros.parameters import declare
from com_ros.silence import SilenceWatch
from com_ros.throttle import ThrottledLog
from com_ros.walk_conversions import walk_goal_to_values

LEVELS = {
    State.UNKNOWN: diagnostics.ERROR,
    State.REFUSED: diagnostics.WARN,
    State.STOPPING: diagnostics.WARN,
    State.FALLEN: diagnostics.ERROR,
}


class CcgdGaitNode(Node):
    """The node; see the module's text. Its executor must await coroutines: rclpy's default does.

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
        self._robot: Robot | None = None
        self._autostart = p.autostart
        self._ready_since: float | None = None
        self._jobs = BackgroundJobs(self)
        self._stopping = False  # a stop is being planned
        self._waiters: list[Future] = []
        self._outcome: Outcome | None = None
        self._told = WalkState()
        self._silence = SilenceWatch(p.joint_timeout)
        self._next_ns = self._show_ns = self._last_ns = 0
        self._rate = diagnostics.RateMeter()
        self._diagnostics = diagnostics.Diagnostics(self, "walk")
        self._output = WalkOutput(self, p)
        self._description = RobotDescription(self, self._use_model, p.robot_description, self._log)
        self._subscribe()
        self._serve()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(min(p.joint_timeout / 4.0, 0.25), self._on_watch, clock=steady)
        self.create_timer(1.0, self._on_diagnostics, clock=steady)

    def _subscribe(self) -> None:
        self.create_subscription(Imu, "imu", self._on_imu, qos.stream())
        sides = {foot.side: foot.wrench_topic for foot in self._config.feet}
        for side, name in enumerate(("left", "right")):
            if self._settings.use_wrench and name in sides:
                take_in = partial(self._on_wrench, side)
                self.create_subscription(WrenchStamped, sides[name], take_in, qos.stream())
        self.create_subscription(WalkGoal, "gait/footsteps", self._on_goal, qos.RESULT)
        self.create_subscription(JointState, "joint_states", self._on_joint_states, qos.stream())

    def _serve(self) -> None:
        free = ReentrantCallbackGroup()  # answers that wait must not hold up the rest
        self._action = ActionServer(
            self,
            WalkAction,
            "walk",
            self._on_walk,
            callback_group=free,
            cancel_callback=self._on_cancel,
        )
        self.create_service(PlanWalk, "~/plan_walk", self._on_plan, callback_group=free)
        self.create_service(SolveComIk, "~/solve_com_ik", self._on_solve, callback_group=free)
        self.create_service(Trigger, "~/stop", self._on_stop)

    def destroy_node(self) -> None:
        """Let the planner come to its end first."""
        self._jobs.close()
        self._action.destroy()
        super().destroy_node()

    def _use_model(self, model: RobotModel) -> None:
        """Make what belongs to a new model; raises when it does not fit."""
        if self._robot is not None and self._robot.session.state in (*MOVING, State.PLANNING):
            raise ComRosError("a walk is under way: send the new description when it has ended")
        self._robot = Robot(model, self._config, self._settings, self.get_clock())

    # --- inputs --------------------------------------------------------------------------------
    def _on_imu(self, msg: Imu) -> None:
        if self._robot is not None:
            self._robot.input.take_imu(msg)

    def _on_wrench(self, side: int, msg: WrenchStamped) -> None:
        if self._robot is not None:
            self._robot.input.take_wrench(side, msg)

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
        self._silence.heard()
        if self._next_ns - int(10 * NS_PER_S) < time_ns < self._next_ns:
            return
        self._next_ns = time_ns + int(NS_PER_S / self._settings.rate_hz) - 500_000
        self._last_ns = time_ns
        robot.reading = robot.input.reading(time_ns, sample)
        self._handle(robot, robot.session.observe(robot.reading))
        self._stream(robot)
        self._start_by_itself(robot)
        self._publish(robot)
        self._rate.add(self.get_clock().now().nanoseconds - time_ns)

    # --- walks ---------------------------------------------------------------------------------
    def _begin(self, request: WalkRequest) -> str:
        """Have a walk planned and walked; returns why not, or nothing."""
        robot = self._robot
        if robot is None:
            return self._description.waiting
        refusal = robot.session.refusal()
        if refusal or robot.reading is None:
            return refusal or "no joint_states yet: start the robot's driver"
        robot.session.expect()
        self._outcome = None
        whole = request.over(self._settings.walk.request())
        posture = robot.session.posture(robot.reading.position)
        self._jobs.do(
            lambda: robot.walker.plan(whole, posture), lambda walk: self._planned(robot, walk)
        )
        return ""

    def _planned(self, robot: Robot, walk: Walk | Exception) -> None:
        session = robot.session
        if session.state is not State.PLANNING or robot.reading is None:
            return
        if isinstance(walk, Exception):
            _raise_bug(walk)
            session.refuse(str(walk))
        elif self._silence.silent:
            session.refuse(self._silent_reason())
        else:
            if walk.note:
                self.get_logger().warning(f"{walk.method}: {walk.note}")
            self._handle(robot, session.begin(walk, robot.reading))
            return
        self._settle(robot)

    def _handle(self, robot: Robot, order: Order | None) -> None:
        """Send what the session decided, plan the stop that it asks for, tell who waits."""
        if order is not None and (not self._settings.streamed or self._silence.silent):
            self._output.send(robot.names, order)
        if robot.session.stop_due and not self._stopping:
            self._plan_stop(robot, robot.reading.time if robot.reading else 0.0)
        self._settle(robot)

    def _plan_stop(self, robot: Robot, now: float) -> None:
        session, walk = robot.session, robot.session.walk
        if walk is None:
            return
        self.get_logger().error(f"the walk stops: {session.reason}")
        at = max(session.time_of(now), 0.0) + 3.0 * self._settings.delay
        self._stopping = True

        def planned(shorter: Walk | Exception) -> None:
            self._stopping = False
            if isinstance(shorter, Exception):
                raise shorter
            self._handle(robot, session.replace(shorter, at, self._now(robot)))

        self._jobs.do(lambda: robot.walker.stopped(walk, at), planned)

    def _settle(self, robot: Robot) -> None:
        """Hand an outcome on, once."""
        outcome = robot.session.outcome
        if outcome is None or outcome is self._outcome:
            return
        self._outcome = outcome
        if outcome.completed:
            self.get_logger().info(f"walked {outcome.steps} steps")
        else:
            self.get_logger().error(f"no walk, or not all of it: {outcome.reason}")
        for waiter in self._waiters:
            waiter.set_result(outcome)
        self._waiters.clear()

    def _start_by_itself(self, robot: Robot) -> None:
        """Walk once, after it has stood for a lead time."""
        if not self._autostart or robot.reading is None:
            return
        if robot.session.state is not State.READY:
            self._ready_since = None
            return
        now = robot.reading.time
        self._ready_since = now if self._ready_since is None else self._ready_since
        if now - self._ready_since >= self._settings.lead_time:
            self._autostart = False
            self._begin(WalkRequest())

    # --- outputs -------------------------------------------------------------------------------
    def _stream(self, robot: Robot) -> None:
        if not self._settings.streamed or robot.reading is None:
            return
        if robot.session.state in MOVING:
            horizon = self._settings.horizon
            due = robot.reading.time + horizon + self._settings.drive_delay
            target = robot.session.target(due)
            if target is not None:
                stamp = ns_to_stamp(self._last_ns)
                self._output.send_point(robot.names, target, horizon, stamp)

    def _publish(self, robot: Robot) -> None:
        assert robot.reading is not None  # noqa: S101 - the caller has looked
        stamp = ns_to_stamp(self._last_ns)
        view: WalkView | None = robot.viewer.see(robot.reading, robot.session.instant())
        self._told = self._output.tell(robot.session, view, stamp)
        period_ns = int(NS_PER_S / self._settings.display_rate_hz)
        if view is not None and abs(self._last_ns - self._show_ns) >= period_ns:
            self._show_ns = self._last_ns
            self._output.show(robot.biped, robot.session, view, stamp)

    # --- action and services -------------------------------------------------------------------
    async def _on_walk(self, goal: ServerGoalHandle) -> WalkAction.Result:
        outcome = await self._outcome_of(goal)
        if outcome.completed:
            goal.succeed()
        elif goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return WalkAction.Result(
            completed=outcome.completed, reason=outcome.reason, steps=outcome.steps
        )

    async def _outcome_of(self, goal: ServerGoalHandle) -> Outcome:
        reason = self._ask(goal.request.goal)
        if reason:
            return Outcome(False, reason, 0)
        waiter = Future()
        self._waiters.append(waiter)
        timer = self.create_timer(
            1.0 / self._settings.display_rate_hz,
            lambda: goal.publish_feedback(WalkAction.Feedback(state=self._told)),
        )
        try:
            return await waiter
        finally:
            self.destroy_timer(timer)

    def _on_cancel(self, _: ServerGoalHandle) -> CancelResponse:
        if self._robot is not None:
            self._stop(self._robot, "cancelled")
        return CancelResponse.ACCEPT

    def _on_goal(self, msg: WalkGoal) -> None:
        reason = self._ask(msg)
        if reason:
            self.get_logger().error(f"gait/footsteps refused: {reason}")

    def _ask(self, msg: WalkGoal) -> str:
        """Begin what a goal says; returns why not, or nothing."""
        try:
            request = request_of(walk_goal_to_values(msg, self._settings.walk_frame))
        except REFUSALS as error:
            return str(error)
        return self._begin(request)

    async def _on_plan(
        self, request: PlanWalk.Request, response: PlanWalk.Response
    ) -> PlanWalk.Response:
        robot = self._robot
        if robot is None:
            response.reason = self._description.waiting
            return response
        posture = robot.biped.posture
        if robot.reading is not None:
            posture = robot.session.posture(robot.reading.position)
        defaults = self._settings.walk.request()

        def plan() -> Walk:
            goal = request_of(walk_goal_to_values(request.goal, self._settings.walk_frame))
            return robot.walker.plan(goal.over(defaults), posture)

        return fill_plan(robot, await self._result(plan), response)

    async def _on_solve(
        self, request: SolveComIk.Request, response: SolveComIk.Response
    ) -> SolveComIk.Response:
        robot = self._robot
        if robot is None:
            response.reason = self._description.waiting
            return response
        found = await self._result(lambda: solve_com_ik(robot, request))
        return fill_solution(robot, found, response)

    async def _result(self, work: Any) -> Any:
        """What a job gives, or the refusal that it raises."""
        waiter = Future()
        self._jobs.do(work, waiter.set_result)
        result = await waiter
        if isinstance(result, Exception):
            _raise_bug(result)
        return result

    def _on_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._robot is None:
            response.success, response.message = False, self._description.waiting
            return response
        self._stop(self._robot, "stopped by ~/stop")
        response.success, response.message = True, "stands, or will with both feet down"
        return response

    def _stop(self, robot: Robot, reason: str) -> None:
        if robot.session.state is State.PLANNING:
            robot.session.refuse(reason)
        self._handle(robot, robot.session.stop(reason))

    # --- silence -------------------------------------------------------------------------------
    def _now(self, robot: Robot) -> float:
        """Time of the joints' readings, s, also while they are silent."""
        last = robot.reading.time if robot.reading is not None else 0.0
        return last + (self._silence.silent_for_s if self._silence.silent else 0.0)

    def _silent_reason(self) -> str:
        return f"joint_states silent for {self._silence.silent_for_s:.2f} s: check its driver"

    def _on_watch(self) -> None:
        """Stop when joint_states fall silent: the rest is sent in one piece."""
        self._description.warn_while_waiting()
        robot = self._robot
        if robot is None:
            self._output.waiting(self._description.waiting, self.get_clock().now().to_msg())
            return
        now = self._now(robot)
        if self._silence.fell_silent() and robot.session.state in MOVING:
            self._fall_silent(robot, now)
        if self._silence.silent:
            robot.session.advance(now)
            self._settle(robot)

    def _fall_silent(self, robot: Robot, now: float) -> None:
        order = robot.session.stop(self._silent_reason(), now)
        if self._settings.streamed and order is None:
            order = robot.session.rest(now)  # until the stop is planned
        if order is not None:
            self._output.send(robot.names, order)
        if robot.session.stop_due and not self._stopping:
            self._plan_stop(robot, now)
        self._settle(robot)

    def _on_diagnostics(self) -> None:
        robot = self._robot
        if robot is None or robot.reading is None:
            reason = self._description.waiting if robot is None else "no joint_states yet"
            self._diagnostics.publish(diagnostics.ERROR, reason, {})
            return
        session = robot.session
        level, reason = LEVELS.get(session.state, diagnostics.OK), session.reason
        if self._silence.silent:
            level, reason = diagnostics.ERROR, self._silent_reason()
        values = {
            "state": session.state.name,
            "step": self._told.step,
            "com_error_m": self._told.com_error,
            "last_walk": "" if self._outcome is None else self._outcome.reason or "completed",
            **self._rate.take(time.monotonic_ns()),
        }
        text = reason or session.state.name.lower()
        self._diagnostics.publish(level, text, values, robot.biped.model.name)


def _raise_bug(error: Exception) -> None:
    """Raise what is no refusal."""
    if not isinstance(error, REFUSALS):
        raise error


def main() -> int:
    """Run the node."""
    return run(CcgdGaitNode)


if __name__ == "__main__":
    sys.exit(main())
