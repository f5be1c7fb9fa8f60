"""Walks of ccgd_gait that follow cmd_vel."""

from rclpy.impl.rcutils_logger import RcutilsLogger

from com_control.nodes.ccgd_control import WalkControl, WalkingRobot
from com_control.walking.session import WalkPhase
from com_control.walking.velocity import VelocityWalker
from com_control.walking.walk import Walk
from com_control.walking.walk_plan import find_stance
from com_model.arrays import Array
from com_ros.inputs import VelocityInput
from com_ros.jobs import BackgroundJobs


class VelocityFollower:
    """Walks by cmd_vel: begins a walk, and plans it again after each step by the velocity.

    Without a velocity, or with an old one, the step after the present one is the last. After any
    stop the velocity must be 0 or absent before a walk begins again. Methods must be called in
    the node's executor.

    Args:
        control: of the walks.
        jobs: runs the planner in the background.
        log: of the node.
        velocity: of cmd_vel.
    """

    def __init__(
        self,
        control: WalkControl,
        jobs: BackgroundJobs,
        log: RcutilsLogger,
        velocity: VelocityInput,
    ) -> None:
        self._control, self._jobs, self._log = control, jobs, log
        self._input, self._released = velocity, True
        self._planner: VelocityWalker | None = None
        self._walk: Walk | None = None  # that is planned by a velocity
        self._planning = False
        self._lead = 0.0  # s, within which it is planned again

    def update(self, robot: WalkingRobot) -> None:
        """Begins, continues or ends the walk; to be called after each reading.

        Args:
            robot: that walks.
        """
        session, velocity = robot.session, self._input.current
        moves = bool(velocity.any())
        begins = self._released and moves and session.state is WalkPhase.READY
        self._released = not moves
        if begins:
            self._lead = 0.0
            self._begin(robot, velocity)
            return
        walk, planner = session.walk, self._planner
        if (
            session.state is not WalkPhase.WALKING
            or walk is None
            or walk is not self._walk
        ):
            return
        # a walk is planned again within three decisions' delays at least
        at = session.walk_time + max(self._lead, 3.0 * self._control.settings.delay)
        if (
            planner is not None
            and not self._planning
            and planner.due(walk, at, velocity)
        ):
            self._plan_again(robot, planner, walk, at, velocity)

    def _begin(self, robot: WalkingRobot, velocity: Array) -> None:
        request = self._control.settings.walk

        def plan(posture: Array) -> Walk:
            self._planner = VelocityWalker(
                robot.walker, request, find_stance(robot.biped, posture)
            )
            self._walk = self._planner.begin(velocity, posture)
            return self._walk

        self._control.begin_planned(robot, plan)

    def _plan_again(
        self,
        robot: WalkingRobot,
        planner: VelocityWalker,
        walk: Walk,
        at: float,
        velocity: Array,
    ) -> None:
        self._planning, begun = True, self._control.now(robot)

        def planned(changed: Walk | Exception) -> None:
            self._planning = False
            self._lead = 1.5 * (self._control.now(robot) - begun)
            if isinstance(changed, Walk):
                if self._control.continue_with(robot, changed, at):
                    self._walk = changed
                return
            self._log.warning(
                f"cmd_vel: the walk ends, as it cannot continue: {changed}"
            )
            self._walk = None

        self._jobs.do(lambda: planner.plan_further(walk, at, velocity), planned)
