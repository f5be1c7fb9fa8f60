"""Requests to ccgd_gait: the action `walk`, PlanWalk, SolveComIk and calibrate_stiffness."""

from collections.abc import Callable
from functools import partial

import numpy as np
from geometry_msgs.msg import Pose
from rclpy.action import ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from com_control.exceptions import PlanError
from com_control.nodes.ccgd_control import WalkControl, WalkingRobot
from com_control.nodes.ccgd_output import NO_STEP, footstep_to_msg
from com_control.walking.ankle_sway import AnkleFit, fit_ankles, plan_sway
from com_control.walking.com_ik import ComSolution
from com_control.walking.session import WalkOutcome
from com_control.walking.walk import Walk
from com_control.walking.walk_monitor import Reading
from com_model.text import listing
from com_msgs.action import Walk as WalkAction
from com_msgs.msg import WalkGoal, WalkState
from com_msgs.srv import PlanWalk, SolveComIk
from com_ros.conversions import (
    ns_to_stamp,
    numpy_to_doubles,
    numpy_to_joint_trajectory,
    numpy_to_point,
    numpy_to_points,
    numpy_to_pose,
    point_to_numpy,
    pose_to_numpy,
    quaternion_to_rotation,
)
from com_ros.exceptions import ComRosError, ConversionError
from com_ros.jobs import BackgroundJobs, DeferredService, Reply, finish_goal


def plan_response(robot: WalkingRobot, walk: Walk | Exception) -> PlanWalk.Response:
    """The response of PlanWalk.

    Args:
        robot: whose joints the response names.
        walk: as it was planned, or the error.
    """
    if isinstance(walk, Exception):
        step = walk.step if isinstance(walk, PlanError) else None
        number = NO_STEP if step is None else step
        return PlanWalk.Response(reason=str(walk), step=number)
    path = walk.path
    return PlanWalk.Response(
        possible=True,
        reason=walk.note,
        step=NO_STEP,
        duration=float(walk.duration),
        footsteps=[footstep_to_msg(step) for step in walk.plan.steps],
        time=numpy_to_doubles(walk.samples.time),
        com=numpy_to_points(walk.samples.com),
        zmp=numpy_to_points(walk.samples.zmp),
        trajectory=numpy_to_joint_trajectory(
            robot.names, path.time, path.q, path.qd, ns_to_stamp(0)
        ),
    )


def solve_com_ik(robot: WalkingRobot, request: SolveComIk.Request) -> ComSolution:
    """Solves a request for CoM inverse kinematics, without an initial guess.

    Args:
        robot: whose legs are solved; its upper body has the request's posture.
        request: CoM, soles and pelvis' orientation in the world.

    Returns:
        The solution, or the nearest point and why the CoM is not reached.

    Raises:
        ConversionError: an orientation is no quaternion of unit length.
        ComModelError: a joint has no such name, or positions and names do not match.
        ShapeError: a pose is not finite or no rotation.
    """
    robot.ik.set_upper_body(_posture(robot, request))
    soles = np.array([np.column_stack(pose_to_numpy(pose)) for pose in request.soles])
    pelvis = quaternion_to_rotation(request.pelvis)
    return robot.ik.solve(point_to_numpy(request.com), soles, pelvis)


def solution_response(
    robot: WalkingRobot, found: ComSolution | Exception
) -> SolveComIk.Response:
    """The response of SolveComIk.

    Args:
        robot: whose joints the response names.
        found: the solution, or the error.
    """
    names = list(robot.names)
    if isinstance(found, Exception):
        nothing = numpy_to_point(np.full(3, np.nan))
        return SolveComIk.Response(
            joint_names=names, nearest=nothing, reason=str(found)
        )
    root = found.R_world_root, found.p_world_root
    return SolveComIk.Response(
        joint_names=names,
        reached=found.reached,
        reason=found.reason,
        nearest=numpy_to_point(found.nearest),
        joint_positions=numpy_to_doubles(found.q),
        root=numpy_to_pose(*root) if found.reached else Pose(),
    )


def _posture(robot: WalkingRobot, request: SolveComIk.Request) -> np.ndarray:
    names, positions = request.joint_names, request.joint_positions
    if len(names) != len(positions):
        raise ConversionError(
            f"{len(names)} joint_names and {len(positions)} joint_positions: give one for each"
        )
    q = robot.biped.posture.copy()
    legs = [name for leg in robot.biped.legs for name in leg.joint_names]
    for name, position in zip(names, positions, strict=True):
        if name in legs:
            raise ConversionError(
                f"{name} is a joint of a leg, which the solver determines: give only others, not "
                f"{listing(legs)}"
            )
        if not np.isfinite(position):
            raise ConversionError(
                f"the position of {name} is {position}: give a finite number"
            )
        q[robot.biped.model.joint_index(name)] = position
    return q


class WalkActions:
    """Server of the action `walk`.

    Args:
        node: that serves.
        control: of the walks.
        ask: begins the walk of a goal; returns why not, or "".
        state: makes the feedback message.
        period: s, of the feedback.
    """

    def __init__(
        self,
        node: Node,
        control: WalkControl,
        ask: Callable[[WalkGoal], str],
        state: Callable[[], WalkState],
        period: float,
    ) -> None:
        self._node, self._control = node, control
        self._ask, self._state, self._period = ask, state, period
        self._walking: ServerGoalHandle | None = None  # whose walk it is, or was last
        ActionServer(
            node,
            WalkAction,
            "walk",
            lambda goal: WalkAction.Result(),
            handle_accepted_callback=self._on_walk,
            cancel_callback=self._on_cancel,
        )

    def _on_walk(self, goal: ServerGoalHandle) -> None:
        """Begins a walk. No coroutine waits for its end: rclpy would spin without pause."""
        reason = self._ask(goal.request.goal)
        if reason:
            _finish(goal, WalkOutcome(False, reason, 0))
            return
        self._walking = goal
        timer = self._node.create_timer(
            self._period,
            lambda: goal.publish_feedback(WalkAction.Feedback(state=self._state())),
        )

        def ended(outcome: WalkOutcome) -> None:
            self._node.destroy_timer(timer)
            _finish(goal, outcome)

        self._control.waiters.append(ended)

    def _on_cancel(self, goal: ServerGoalHandle) -> CancelResponse:
        if (
            goal is self._walking
        ):  # not one that waits to be refused while another one walks
            self._control.stop("cancelled")
        return CancelResponse.ACCEPT


def _finish(goal: ServerGoalHandle, outcome: WalkOutcome) -> None:
    result = WalkAction.Result(
        completed=outcome.completed, reason=outcome.reason, steps=outcome.steps
    )
    finish_goal(goal, outcome.completed, result)


class StiffnessCalibration:
    """Service ~/calibrate_stiffness: lets the robot sway, and sets ankle_stiffness.

    Args:
        node: that serves.
        control: of the walks.
        jobs: runs the fit in the background.
        waiting: returns what is missing for a model.
    """

    def __init__(
        self,
        node: Node,
        control: WalkControl,
        jobs: BackgroundJobs,
        waiting: Callable[[], str],
    ) -> None:
        self._node, self._control, self._jobs, self._waiting = (
            node,
            control,
            jobs,
            waiting,
        )
        DeferredService(node, Trigger, "~/calibrate_stiffness", self._on_request)

    def _on_request(self, _: Trigger.Request, reply: Reply) -> None:
        control, samples = self._control, list[tuple[Reading, np.ndarray]]()
        robot = self._begin()

        def ended(outcome: WalkOutcome) -> None:
            control.observe = None
            if not outcome.completed or robot.session.walk is None:
                reply(Trigger.Response(message=outcome.reason))
                return
            height = robot.session.walk.plan.timing.com_height
            work = partial(fit_ankles, robot.biped, samples, height)
            self._jobs.do(work, lambda found: reply(self._use(found)))

        control.observe = lambda reading, q: samples.append((reading, q))
        control.waiters.append(ended)

    def _begin(self) -> WalkingRobot:
        """Starts planning the sway of the robot, or raises why not."""
        robot = self._control.robot
        if robot is None:
            raise ComRosError(self._waiting())
        if robot.reading is not None and robot.reading.wrenches is None:
            raise ComRosError(
                "the feet's wrenches are needed: check their sensors, use_wrench true"
            )
        sway = partial(plan_sway, robot.walker)
        if refusal := self._control.begin_planned(robot, sway):
            raise ComRosError(refusal)
        return robot

    def _use(self, found: tuple[AnkleFit, AnkleFit] | Exception) -> Trigger.Response:
        if isinstance(found, Exception):
            return Trigger.Response(message=str(found))
        new = Parameter("ankle_stiffness", value=[fit.stiffness for fit in found])
        (changed,) = self._node.set_parameters([new])
        yaml = [
            f"{j}: {{stiffness: {fit.stiffness:.4g}}}"
            for fit in found
            for j in fit.joints
        ]
        text = (
            f"{found[0]}, {found[1]}; for robot.yaml: servo: joints: {', '.join(yaml)}"
        )
        return Trigger.Response(
            success=changed.successful, message=changed.reason or text
        )
