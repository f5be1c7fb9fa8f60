"""Lets a robot on two legs walk, with its true centre of mass at its planned position.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF, unless the parameter contains it.
    joint_states (sensor_msgs/JointState): where the joints are, and the time.
    <foot>/wrench (geometry_msgs/WrenchStamped): by the configuration; whether the robot stands.
    imu (sensor_msgs/Imu): optional; whether the robot is upright.
    gait/footsteps (com_msgs/WalkGoal): a walk, as an alternative to the action.
    cmd_vel (geometry_msgs/Twist): walks by linear.x, linear.y and angular.z, axes of the
        walking robot, as far as step_length allows; 0, or none for cmd_vel_timeout: stops.

Publishes, with the stamp of the joint_states that it was computed from:
    joint_trajectory (trajectory_msgs/JointTrajectory): whole walks, with velocities, each of which
        ends with both feet down; with `streamed` or `stabiliser` one point at each sample.
    gait/state (com_msgs/WalkState): state, and the reason of a refusal or stop.
    gait/com_reference, gait/zmp_reference (geometry_msgs/PointStamped): in the frame of the walk;
        these and the next three only with subscribers; gait/state has them, too.
    zmp (geometry_msgs/PointStamped): by the feet's force and torque.
    gait/dcm, gait/dcm_reference (geometry_msgs/PointStamped): with `stabiliser`.
    gait/markers (visualization_msgs/MarkerArray), /tf: root link -> walk; /diagnostics at 1 Hz.

Action:
    walk (com_msgs/Walk): refused, with the reason, when the robot does not stand, the walk cannot
        be walked, or another one is under way. Cancelled, it stops after the present step.

Services:
    ~/plan_walk (com_msgs/PlanWalk): the same without walking.
    ~/solve_com_ik (com_msgs/SolveComIk): one posture.
    ~/calibrate_stiffness (std_srvs/Trigger): the robot sways for 25 s, and the stiffness of its
        ankles' servos, with its sigma, becomes ankle_stiffness.
    ~/stop (std_srvs/Trigger): stops after the present step.

It stops with both feet down, and reports why, when joint_states, wrenches or imu are stale, a joint
does not follow or reports implausible positions, or the clock of joint_states jumps; it walks again
on request. Commands keep the limits of position and speed. When the robot falls it comes to
rest and sends no more commands. Parameters: see ccgd_parameters.Parameters.
"""

from functools import partial
from typing import Any

from com_control.nodes.ccgd_control import WalkControl, WalkingRobot
from com_control.nodes.ccgd_output import NO_STEP, WalkOutput, msg_to_request
from com_control.nodes.ccgd_parameters import Parameters
from com_control.nodes.ccgd_requests import (
    StiffnessCalibration,
    WalkActions,
    plan_response,
    solution_response,
    solve_com_ik,
)
from com_control.nodes.ccgd_velocity import VelocityFollower
from com_control.walking.session import WalkPhase
from com_control.walking.walk import Walk
from com_model import RobotModel
from com_model.exceptions import ComModelError
from com_msgs.msg import WalkGoal
from com_msgs.srv import PlanWalk, SolveComIk
from com_ros import diagnostics, qos
from com_ros.conversions import ns_to_stamp
from com_ros.diagnostics import Diagnosis
from com_ros.exceptions import ComRosError, ParameterError
from com_ros.jobs import DeferredService, Reply
from com_ros.joint_input import JointSample
from com_ros.raw_messages import TrajectoryWriter
from com_ros.robot_node import RobotNode
from com_ros.stream import RateLimit

LEVELS = {
    WalkPhase.UNKNOWN: diagnostics.ERROR,
    WalkPhase.REFUSED: diagnostics.WARN,
    WalkPhase.STOPPING: diagnostics.WARN,
    WalkPhase.FALLEN: diagnostics.ERROR,
}


class CcgdGaitNode(RobotNode[Parameters]):
    """ROS 2 node `ccgd_gait`: walking of a biped by its true CoM.

    The module's docstring lists its topics and services, ccgd_parameters.Parameters its parameters.

    Args:
        **options: passed on to RobotNode and rclpy's Node, such as parameter_overrides.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("ccgd_gait", Parameters, subject="walk", **options)
        p = self.parameters
        self._config = self.require_config()
        feet = [
            f for side in ("left", "right") for f in self._config.feet if f.side == side
        ]
        self._imu = self.follow_imu(otherwise="leave imu unconnected")
        self._wrenches = self.follow_wrenches(feet, listens=p.use_wrench)
        self._jobs = self.background_jobs()
        self.lockstep.held = lambda: self._jobs.busy
        self._output = WalkOutput(self, p)
        log = self.get_logger()
        self._control = WalkControl(
            p, TrajectoryWriter(self), self._jobs, self.joint_watch, log
        )
        self._follower = VelocityFollower(
            self._control, self._jobs, log, self.follow_velocity()
        )
        self._display_rate = RateLimit(p.display_rate_hz)
        self.follow_robot_description()
        self.subscribe_with(WalkGoal, "gait/footsteps", self._on_goal, qos.RESULT)
        self.follow_joint_states(self._on_joints)
        period = 1.0 / p.display_rate_hz
        make_state = self._output.make_state
        WalkActions(self, self._control, self._ask, make_state, period)
        DeferredService(self, PlanWalk, "~/plan_walk", self._on_plan)
        DeferredService(self, SolveComIk, "~/solve_com_ik", self._on_solve)
        StiffnessCalibration(self, self._control, self._jobs, lambda: self.waiting)
        self.serve_trigger(
            "~/stop",
            lambda: self._control.stop("stopped by ~/stop"),
            "stands, or will with both feet down",
        )

    def use_model(self, model: RobotModel) -> None:
        """Starts with a new model.

        Args:
            model: the robot, a biped.

        Raises:
            ComRosError: a walk is under way, or the robot cannot walk.
        """
        if self._control.busy:
            raise ComRosError(
                "a walk is under way: send the new description when it has ended"
            )
        self._control.robot = WalkingRobot(
            model, self._config, self.parameters, self._wrenches, self._imu
        )

    def apply_parameters(self, new: Parameters) -> None:
        """Applies changed parameters; a walk that is under way keeps its plan.

        Args:
            new: all parameters.

        Raises:
            ParameterError: the stabiliser would get another rate than the one it is made for.
        """
        if new.stabiliser and new.rate_hz != self.parameters.rate_hz:
            fix = "the stabiliser keeps its rate: start the node again with this one"
            raise ParameterError("rate_hz", new.rate_hz, fix)
        if self._control.robot is not None:
            self._control.robot.apply(new)
        self._control.settings = new
        self._display_rate.set(new.display_rate_hz)

    # --- inputs --------------------------------------------------------------------------------
    def _on_joints(self, sample: JointSample) -> None:
        robot = self._control.robot
        if robot is None:
            return
        reading = self._control.update(robot, sample)
        self._follower.update(robot)
        planned = robot.session.planned_now()
        view = robot.estimator.estimate(reading, planned)
        self._output.publish(robot.session, planned, view, sample.time_ns)
        if view is not None and self._display_rate.due(sample.time_ns):
            self._output.show(
                robot.biped, robot.session, view, ns_to_stamp(sample.time_ns)
            )

    def on_joints_timeout(self, reason: str) -> None:
        """Stops with both feet down.

        Args:
            reason: why joint_states are stale.
        """
        super().on_joints_timeout(reason)
        self._control.on_timeout()

    def on_restart(self, jump_s: float) -> None:
        """Stops with both feet down, as the clock has jumped.

        Args:
            jump_s: s, by which the stamps have jumped.
        """
        self._control.on_restart()

    def watch(self) -> None:
        """Publishes what is missing for a model; lets a motion end while joint_states are stale."""
        if self._control.robot is None:
            self._output.waiting(self.waiting, self.get_clock().now().nanoseconds)
        else:
            self._control.watch()

    # --- walks ---------------------------------------------------------------------------------
    def _on_goal(self, msg: WalkGoal) -> None:
        reason = self._ask(msg)
        if reason:
            self.get_logger().error(f"gait/footsteps refused: {reason}")

    def _ask(self, msg: WalkGoal) -> str:
        """Begins the walk of a goal; returns why not, or ""."""
        if self._control.robot is None:
            return self.waiting
        try:
            request = msg_to_request(msg, self.parameters.walk_frame)
        except ComModelError as error:
            return str(error)
        return self._control.begin(self._control.robot, request)

    # --- questions -----------------------------------------------------------------------------
    def _on_plan(self, request: PlanWalk.Request, reply: Reply) -> None:
        robot = self._control.robot
        if robot is None:
            reply(PlanWalk.Response(reason=self.waiting, step=NO_STEP))
            return
        reading, defaults = robot.reading, self.parameters.walk
        posture = robot.biped.posture
        if reading is not None:
            posture = robot.session.commanded_posture(reading.position)

        def plan() -> Walk:
            goal = msg_to_request(request.goal, self.parameters.walk_frame)
            return robot.walker.plan(goal.with_defaults(defaults), posture)

        self._jobs.do(plan, lambda walk: reply(plan_response(robot, walk)))

    def _on_solve(self, request: SolveComIk.Request, reply: Reply) -> None:
        robot = self._control.robot
        if robot is None:
            raise ComRosError(self.waiting)
        solve = partial(solve_com_ik, robot, request)
        self._jobs.do(solve, lambda found: reply(solution_response(robot, found)))

    # --- diagnostics ---------------------------------------------------------------------------
    def diagnose(self) -> Diagnosis:
        """Status for /diagnostics: that of the walk.

        Returns:
            Level by LEVELS, ERROR for stale joint_states; state, step, CoM error and last walk.
        """
        robot = self._control.robot
        if robot is None or robot.reading is None:
            reason = self.waiting or "no joint_states yet"
            return Diagnosis(diagnostics.ERROR, reason)
        session, outcome = robot.session, self._control.outcome
        level, reason = LEVELS.get(session.state, diagnostics.OK), session.reason
        if self._control.stale:
            level, reason = diagnostics.ERROR, self._control.stale
        state = self._output.make_state()
        values = {
            "state": session.state.name,
            "step": state.step,
            "com_error_m": state.com_error,
            "last_walk": "" if outcome is None else str(outcome),
        }
        if session.stabiliser is not None:
            values["fault"] = session.fault.name
        return Diagnosis(level, reason or session.state.name.lower(), values)
