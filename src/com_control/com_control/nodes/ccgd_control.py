"""Walks of ccgd_gait: planned in a background thread, commanded, ended.

All commands leave through WalkControl._handle (a whole path) or, with the parameter `streamed`,
WalkControl._stream (one point for each sample).
"""

import time
from collections.abc import Callable
from math import acos

from rclpy.impl.rcutils_logger import RcutilsLogger

from com_control.exceptions import ComControlError
from com_control.nodes.ccgd_parameters import Parameters
from com_control.walking.biped import Biped
from com_control.walking.com_ik import ComIk
from com_control.walking.session import MOVING, WalkOutcome, WalkPhase, WalkSession
from com_control.walking.stabiliser import Stabiliser, ankle_stiffness
from com_control.walking.walk import Walk, WalkRequest, make_stand
from com_control.walking.walk_monitor import Reading, WalkChecks, WalkEstimator
from com_control.walking.walk_plan import find_stance
from com_control.walking.walker import Walker
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.dynamics.link_frames import LinkFrames
from com_model.joint_path import JointPath
from com_ros.conversions import NS_PER_S
from com_ros.exceptions import ComRosError
from com_ros.inputs import ImuInput, InputWatch, WrenchInputs
from com_ros.jobs import BackgroundJobs
from com_ros.joint_input import JointSample
from com_ros.raw_messages import TrajectoryWriter

# decisions' delays, within which a stop is planned; doubled when it is late
STOP_DELAYS = 3.0


class WalkingRobot:
    """Session, planner, solver and inputs of one robot.

    Args:
        model: the robot.
        config: its configuration.
        settings: parameters of the node.
        wrenches: of the left and right foot.
        imu: its messages, if there is one.

    Attributes:
        biped: pelvis and legs.
        walker: plans walks.
        ik: solves CoM targets.
        estimator: of CoM and ZMP.
        checks: whether the robot stands.
        session: of its walks.
        names: of all joints.
        reading: the last one; None before the first.

    Raises:
        ComModelError: the configuration belongs to another robot.
        ComRosError: the robot cannot walk on two legs.
    """

    def __init__(
        self,
        model: RobotModel,
        config: RobotConfig,
        settings: Parameters,
        wrenches: WrenchInputs,
        imu: ImuInput,
    ) -> None:
        try:
            self.biped = Biped.from_config(model, config)
            self.walker = Walker(self.biped, settings.point_period)
            self.ik = ComIk(self.biped)
            self.estimator = WalkEstimator(self.biped)
            self.checks = WalkChecks(self.biped, settings.check, settings.use_wrench)
            stance = find_stance(self.biped, self.biped.posture)
            self._up = stance.R_walk_root[2]  # in the root's axes
            stabiliser = None
            free = any(
                leg.free for leg in self.biped.legs
            )  # which the stabiliser does not do
            if settings.stabiliser and not free:
                stiffness = settings.ankle_stiffness or ankle_stiffness(
                    self.biped, config
                )
                period = 1.0 / settings.rate_hz
                feeds = settings.step_adjustment, settings.heading_feedback
                stabiliser = Stabiliser(
                    self.biped, stiffness, period, settings.lead, *feeds
                )
                stand = make_stand(
                    self.biped, self.biped.posture
                )  # compiles before a walk
                stabiliser.start(stand.plan, stand.samples, self.biped.posture)
        except ComControlError as error:
            raise ComRosError(f"this robot cannot walk on two legs: {error}") from error
        self.session = WalkSession(
            self.biped,
            self.checks,
            settings.approach_time,
            settings.delay,
            settings.guard,
            stabiliser,
        )
        self.session.balances = settings.balance
        self.names, self._config = model.joint_names, config
        self.reading: Reading | None = None
        self._wrenches, self._use_wrench = wrenches, settings.use_wrench
        self._imu = imu
        link = config.imu_link or model.root_link
        self._imu_frame = LinkFrames(model, [link])
        self._imu_on_root = model.bodies.body_of_link[model.link_index(link)] == 0

    def apply(self, settings: Parameters) -> None:
        """Applies changed parameters.

        Args:
            settings: all parameters.

        Raises:
            BipedError: ankle_stiffness is not possible for this robot.
        """
        if (stabiliser := self.session.stabiliser) is not None:
            given = settings.ankle_stiffness or ankle_stiffness(
                self.biped, self._config
            )
            stabiliser.set_stiffness(given)
        self.checks.limits, self.session.guard.options = settings.check, settings.guard
        self.session.balances = settings.balance

    def read(self, sample: JointSample) -> Reading:
        """Combines a sample of the joints with the wrenches and the attitude at its time.

        Args:
            sample: of the joints.

        Returns:
            The reading, also stored in `reading`.
        """
        time_ns, tilt, missing = sample.time_ns, float("nan"), ""
        wrenches, wrench_problem = self._wrenches.wrenches(time_ns)
        if self._use_wrench and wrench_problem:
            missing = f"{wrench_problem}, or set use_wrench false"
        imu, R, omega = self._imu.reading(time_ns), None, None
        if self._imu.value is not None:
            missing = imu.problem or missing
        if self._imu.current(time_ns) is not None:
            R_root_imu, _ = self._imu_frame.poses(sample.position)
            R = imu.R_world_imu @ R_root_imu[0].T
            if self._imu_on_root:
                omega = R_root_imu[0] @ imu.angular_velocity
            tilt = acos(min(max(float(R[2] @ self._up), -1.0), 1.0))
        self.reading = Reading(
            time_ns / NS_PER_S, sample.position, wrenches, tilt, missing, R, omega
        )
        return self.reading


class WalkControl:
    """Walks of one node. All methods must be called in its executor.

    Args:
        settings: parameters of the node.
        trajectory: publishes the joint targets.
        jobs: runs the planner in the background.
        watch: age of joint_states.
        log: of the node.

    Attributes:
        settings: as given; may be replaced.
        robot: that walks; None: no model yet.
        outcome: how the last walk ended, or why it did not begin; None during one.
        waiters: called with the outcome of the present or planned walk.
        observe: called with each reading of the walk, and the joint targets (n,) for its time.
    """

    def __init__(
        self,
        settings: Parameters,
        trajectory: TrajectoryWriter,
        jobs: BackgroundJobs,
        watch: InputWatch,
        log: RcutilsLogger,
    ) -> None:
        self.settings, self._trajectory, self._jobs = settings, trajectory, jobs
        self._watch, self._log = watch, log
        self._autostart = settings.autostart
        self._automatic = object()  # the walk that autostart requested last
        self._ready_since: float | None = None
        self._asked = object()  # the walk that was requested last
        self._next: Walk | None = None  # is planned, and begins when the robot stands
        self._next_since = 0.0  # s, the reading's time when it was planned
        self._stopping = False  # a stop is being planned
        self._stop_lead = STOP_DELAYS * settings.delay  # s, within which it is
        # real time of the last reading, s; its clock
        self._updated, self._jumped = 0.0, False
        self.waiters: list[Callable[[WalkOutcome], None]] = []
        self.observe: Callable[[Reading, Array], None] | None = None
        self.robot: WalkingRobot | None = None
        self.outcome: WalkOutcome | None = None

    @property
    def busy(self) -> bool:
        """Whether a walk is being planned or walked."""
        return self.robot is not None and self.robot.session.state in (
            *MOVING,
            WalkPhase.PLANNING,
        )

    @property
    def stale(self) -> str:
        """Why joint_states are stale; "" when they are not."""
        if not (self._watch.ever_received and self._watch.stale):
            return ""
        return f"joint_states timed out, none for {self._watch.age_s:.2f} s: check their driver"

    # --- requests ------------------------------------------------------------------------------
    def begin(self, robot: WalkingRobot, request: WalkRequest) -> str:
        """Starts planning a walk, which begins when it is planned.

        Args:
            robot: that walks.
            request: the walk; unset values come from the parameters.

        Returns:
            Why not; "" when it is being planned.
        """
        whole = request.with_defaults(self.settings.walk)
        return self.begin_planned(
            robot, lambda posture: robot.walker.plan(whole, posture)
        )

    def begin_planned(self, robot: WalkingRobot, plan: Callable[[Array], Walk]) -> str:
        """Starts planning a walk with a given planner; the walk begins when it is planned.

        Args:
            robot: that walks.
            plan: called with the commanded joint positions (n,), rad or m, in another thread.

        Returns:
            Why not; "" when it is being planned.
        """
        refusal = self.stale or robot.session.refusal()
        if refusal or robot.reading is None:
            return refusal or "no joint_states yet: start the robot's driver"
        robot.session.start_planning()
        self.outcome = self._next = None
        posture = robot.session.commanded_posture(robot.reading.position)
        self._stop_lead = STOP_DELAYS * self.settings.delay
        self._asked = asked = object()

        def planned(walk: Walk | Exception) -> None:
            if asked is self._asked:  # else it was cancelled, and another one requested
                self._planned(robot, walk)

        self._jobs.do(lambda: plan(posture), planned)
        return ""

    def continue_with(self, robot: WalkingRobot, walk: Walk, at: float) -> bool:
        """Replaces the present walk by one with other further steps.

        Args:
            robot: that walks.
            walk: the new plan, identical up to the time `at`.
            at: s of the walk, from which the new plan is used.

        Returns:
            Whether it was in time.
        """
        path = robot.session.continue_with(walk, at, self.now(robot))
        self._handle(robot, path)
        return path is not None

    def stop(self, reason: str) -> None:
        """Stops after the present step.

        Args:
            reason: for state and outcome.
        """
        robot = self.robot
        if robot is None:
            return
        if robot.session.state is WalkPhase.PLANNING:
            robot.session.refuse(reason)
        self._handle(robot, robot.session.stop(reason, self.now(robot)))

    # --- measurements --------------------------------------------------------------------------
    def on_restart(self) -> None:
        """Handles a jump of joint_states' clock; the next reading is by the new one."""
        self._jumped = True

    def update(self, robot: WalkingRobot, sample: JointSample) -> Reading:
        """Processes a sample: advances the session, sends targets, begins walks.

        Args:
            robot: that walks or stands.
            sample: of the joints.

        Returns:
            The reading made of it.
        """
        jump, now = 0.0, time.monotonic()
        if self._jumped and robot.reading is not None:
            passed = sample.time_ns / NS_PER_S - robot.reading.time
            jump = passed - (now - self._updated)
        self._jumped, self._updated = False, now
        reading = robot.read(sample)
        self._handle(robot, robot.session.update(reading, jump))
        if self.observe is not None and robot.session.state is WalkPhase.WALKING:
            self.observe(reading, robot.session.commanded_posture(reading.position))
        self._begin_when_standing(robot)
        if self.settings.streams:
            self._stream(robot, reading.time, sample.time_ns)
        self._start_automatically(robot)
        return reading

    def on_timeout(self) -> None:
        """Stops, as joint_states are stale: the rest of the motion is sent as one trajectory."""
        robot = self.robot
        if robot is None or robot.reading is None or robot.session.state not in MOVING:
            return
        now = self.now(robot)
        path = robot.session.stop(self.stale, now)
        if path is None and self.settings.streams:
            path = robot.session.remaining(now)  # until the stop is planned
        self._handle(robot, path)

    def watch(self) -> None:
        """Advances the session by time alone while joint_states are stale."""
        robot = self.robot
        if robot is None or not self._watch.stale or robot.reading is None:
            return
        robot.session.advance(self.now(robot))
        self._settle(robot)

    # --- inside --------------------------------------------------------------------------------
    def _planned(self, robot: WalkingRobot, walk: Walk | Exception) -> None:
        session = robot.session
        if session.state is not WalkPhase.PLANNING or robot.reading is None:
            return
        if isinstance(walk, Exception):
            session.refuse(str(walk))
            self._settle(robot)
            return
        if walk.note:
            self._log.warning(f"{walk.method}: {walk.note}")
        self._next, self._next_since = walk, robot.reading.time
        self._begin_when_standing(robot)

    def _begin_when_standing(self, robot: WalkingRobot) -> None:
        """Begins the planned walk; waits up to the approach time for a robot that still sways."""
        session, walk, reading = robot.session, self._next, robot.reading
        if walk is None or reading is None or session.state is not WalkPhase.PLANNING:
            self._next = None
            return
        problem = self.stale or session.problem(reading)
        if not problem:
            self._handle(robot, session.begin(walk, reading))
        elif self._asked is self._automatic:
            self._log.warning(f"the walk waits: {problem}")
            session.refuse("")
            self._autostart, self._ready_since = True, None
        elif (
            self.stale
            or abs(reading.time - self._next_since) > self.settings.approach_time
        ):
            session.refuse(problem)
        else:
            return
        self._next = None
        self._settle(robot)

    def _handle(self, robot: WalkingRobot, path: JointPath | None) -> None:
        """Sends a path of the session, plans the stop that it requests, reports the outcome."""
        state = robot.session.state
        streams = self.settings.streams and state in MOVING
        # nothing more is sent
        fallen = self.settings.stabiliser and state is WalkPhase.FALLEN
        if path is not None and not fallen and (not streams or self._watch.stale):
            self._send(robot.names, robot.session.limited(path), self.now(robot))
        if robot.session.stop_due and not self._stopping:
            self._plan_stop(robot, self.now(robot))
        self._settle(robot)

    def _plan_stop(self, robot: WalkingRobot, now: float) -> None:
        session, walk = robot.session, robot.session.walk
        assert walk is not None  # noqa: S101 - it stops
        self._log.error(f"the walk stops: {session.reason}")
        at = max(session.time_of(now), 0.0) + self._stop_lead
        self._stopping = True

        def planned(shorter: Walk | Exception) -> None:
            self._stopping = False
            if isinstance(shorter, Exception):
                raise shorter
            path = session.replace(shorter, at, self.now(robot))
            if (
                session.stop_due
            ):  # it came too late: the walk is too long to be planned so quickly
                took = self.now(robot) - now
                self._stop_lead = max(2.0 * self._stop_lead, 1.5 * took)
            self._handle(robot, path)

        self._jobs.do(lambda: robot.walker.plan_stop(walk, at), planned)

    def _settle(self, robot: WalkingRobot) -> None:
        """Reports a new outcome to the log and to the waiters, once."""
        outcome = robot.session.outcome
        if outcome is None or outcome is self.outcome:
            return
        self.outcome = outcome
        if outcome.completed:
            self._log.info(f"walked {outcome.steps} steps")
        else:
            self._log.error(f"no walk, or not all of it: {outcome.reason}")
        waiters, self.waiters = self.waiters, []
        for notify in waiters:
            notify(outcome)

    def _send(self, names: tuple[str, ...], path: JointPath, now: float) -> None:
        """Sends a whole path of joint targets; points that are over are left out.

        Args:
            names: of the joints.
            path: in the time of joint_states.
            now: s, by that time.
        """
        times = path.time - now - self.settings.drive_delay
        ahead = times > 0.0
        ahead[-1], times[-1] = True, max(float(times[-1]), 1e-3)
        q, qd, stamp_ns = path.q[ahead], path.qd[ahead], round(now * NS_PER_S)
        self._trajectory.publish(names, times[ahead].tolist(), q, qd, stamp_ns)

    def _stream(self, robot: WalkingRobot, now: float, time_ns: int) -> None:
        horizon = self.settings.lead
        target = robot.session.target_at(now + horizon + self.settings.drive_delay)
        if target is not None:
            q, qd = target
            self._trajectory.publish(robot.names, [horizon], q[None], qd[None], time_ns)

    def _start_automatically(self, robot: WalkingRobot) -> None:
        """Begins a walk once, when the robot has stood for the approach time; or later."""
        if not self._autostart or robot.reading is None:
            return
        if robot.session.state is not WalkPhase.READY:
            self._ready_since = None
            return
        now = robot.reading.time
        self._ready_since = now if self._ready_since is None else self._ready_since
        if now - self._ready_since >= self.settings.approach_time:
            self._autostart = bool(self.begin(robot, WalkRequest()))
            self._automatic = self._automatic if self._autostart else self._asked

    def now(self, robot: WalkingRobot) -> float:
        """Present time by the clock of joint_states, also while they are stale.

        Args:
            robot: with the last reading.

        Returns:
            s.
        """
        last = robot.reading.time if robot.reading is not None else 0.0
        return last + (self._watch.age_s if self._watch.stale else 0.0)
