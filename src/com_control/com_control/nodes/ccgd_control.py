"""Leads the walks of a node: has them planned beside its callbacks, sends orders, tells the end."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.impl.rcutils_logger import RcutilsLogger

from com_control.nodes.ccgd_output import WalkOutput
from com_control.nodes.ccgd_parameters import Parameters
from com_control.nodes.ccgd_robot import Robot
from com_control.nodes.ccgd_services import raise_bug
from com_control.walking.session import MOVING, Command, Outcome, State
from com_control.walking.walker import Walk, WalkRequest
from com_ros.conversions import NS_PER_S, ns_to_stamp
from com_ros.input_watch import InputWatch
from com_ros.jobs import BackgroundJobs
from com_ros.joint_input import JointSample

STOP_DELAYS = 3.0  # decisions' delays, within which a stop is planned; doubled when it is late
MOST_AHEAD = 1.0  # s, by which a stamp of joint_states may be later than the time that passed


class WalkControl:
    """Walks of one node. All methods are for its executor.

    Args:
        settings: Of the node.
        output: Where orders go.
        jobs: Where walks are planned.
        log: Of the node.

    Attributes:
        robot: None before there is a description.
        outcome: How the last walk ended, or why it did not begin; None while one lasts.
    """

    def __init__(
        self, settings: Parameters, output: WalkOutput, jobs: BackgroundJobs, log: RcutilsLogger
    ) -> None:
        self._settings, self._output, self._jobs, self._log = settings, output, jobs, log
        self._watch = InputWatch(settings.joint_timeout)
        self._autostart = settings.autostart
        self._by_itself = object()  # stands for the walk that autostart asked for last
        self._ready_since: float | None = None
        self._asked = object()  # stands for the walk that was asked for last
        self._stopping = False  # a stop is being planned
        self._stop_lead = STOP_DELAYS * settings.delay  # s, within which it is
        self._waiters: list[Callable[[Outcome], None]] = []
        self.robot: Robot | None = None
        self.outcome: Outcome | None = None

    @property
    def busy(self) -> bool:
        """Whether a walk is planned or under way."""
        return self.robot is not None and self.robot.session.state in (*MOVING, State.PLANNING)

    @property
    def silence(self) -> str:
        """That joint_states are silent; "" when they are not."""
        if not (self._watch.ever_received and self._watch.stale):
            return ""
        return f"joint_states silent for {self._watch.age_s:.2f} s: check its driver"

    # --- what is asked -------------------------------------------------------------------------
    def begin(self, robot: Robot, request: WalkRequest) -> str:
        """Have a walk planned and walked; returns why not, or nothing."""
        refusal = self.silence or robot.session.refusal()
        if refusal or robot.reading is None:
            return refusal or "no joint_states yet: start the robot's driver"
        robot.session.start_planning()
        self.outcome = None
        whole = request.with_defaults(self._settings.walk.request())
        posture = robot.session.commanded_posture(robot.reading.position)
        self._stop_lead = STOP_DELAYS * self._settings.delay
        self._asked = asked = object()

        def planned(walk: Walk | Exception) -> None:
            if asked is self._asked:  # or it was cancelled, and another one asked for
                self._planned(robot, walk)

        self._jobs.do(lambda: robot.walker.plan(whole, posture), planned)
        return ""

    def at_end(self, tell: Callable[[Outcome], None]) -> None:
        """Have the outcome of the walk that is planned or under way told when it is there."""
        self._waiters.append(tell)

    def stop(self, reason: str) -> None:
        """Stop after the present step."""
        robot = self.robot
        if robot is None:
            return
        if robot.session.state is State.PLANNING:
            robot.session.refuse(reason)
        self._handle(robot, robot.session.stop(reason, self._now(robot)))

    # --- what happens --------------------------------------------------------------------------
    def heard(self, time_ns: int) -> str:
        """The joints were heard; returns why that is not believed, or nothing."""
        if self.busy and self.robot is not None and self.robot.reading is not None:
            ahead = time_ns / NS_PER_S - self.robot.reading.time
            if ahead > MOST_AHEAD + self._watch.age_s:
                return (
                    f"the stamp of joint_states jumped by {ahead:.1f} s in a walk: it is not "
                    "heeded; check the clock of its driver"
                )
        self._watch.received()
        return ""

    def observe(self, robot: Robot, time_ns: int, sample: JointSample) -> None:
        """Go on, by what is measured."""
        robot.reading = robot.input.reading(time_ns, sample)
        self._handle(robot, robot.session.update(robot.reading))
        if self._settings.streamed:
            self._stream(robot, time_ns)
        self._start_by_itself(robot)

    def watch(self) -> None:
        """Stop when joint_states fall silent: the rest of the motion is sent in one piece."""
        robot = self.robot
        fell_silent = self._watch.timed_out()
        if robot is None or not self._watch.stale or robot.reading is None:
            return
        now = self._now(robot)
        if fell_silent and robot.session.state in MOVING:
            order = robot.session.stop(self.silence, now)
            if order is None and self._settings.streamed:
                order = robot.session.remaining(now)  # until the stop is planned
            self._handle(robot, order)
        robot.session.advance(now)
        self._settle(robot)

    # --- how -----------------------------------------------------------------------------------
    def _planned(self, robot: Robot, walk: Walk | Exception) -> None:
        session = robot.session
        if session.state is not State.PLANNING or robot.reading is None:
            return
        problem = self.silence or session.problem(robot.reading)
        if isinstance(walk, Exception):
            raise_bug(walk)
            session.refuse(str(walk))
        elif problem and self._asked is self._by_itself:
            self._log.warning(f"the walk waits: {problem}")
            session.postpone()
            self._autostart, self._ready_since = True, None
        elif self.silence:
            session.refuse(self.silence)
        else:
            if walk.note:
                self._log.warning(f"{walk.method}: {walk.note}")
            self._handle(robot, session.begin(walk, robot.reading))
            return
        self._settle(robot)

    def _handle(self, robot: Robot, order: Command | None) -> None:
        """Send what the session decided, plan the stop that it asks for, tell who waits."""
        streams = self._settings.streamed and robot.session.state in MOVING
        if order is not None and (not streams or self._watch.stale):
            self._output.send(robot.names, order)
        if robot.session.stop_due and not self._stopping:
            self._plan_stop(robot, self._now(robot))
        self._settle(robot)

    def _plan_stop(self, robot: Robot, now: float) -> None:
        session, walk = robot.session, robot.session.walk
        assert walk is not None  # noqa: S101 - it stops
        self._log.error(f"the walk stops: {session.reason}")
        at = max(session.time_of(now), 0.0) + self._stop_lead
        self._stopping = True

        def planned(shorter: Walk | Exception) -> None:
            self._stopping = False
            if isinstance(shorter, Exception):
                raise shorter
            order = session.replace(shorter, at, self._now(robot))
            if session.stop_due:  # it came too late: the walk is too long to be planned so quickly
                took = self._now(robot) - now
                self._stop_lead = max(2.0 * self._stop_lead, 1.5 * took)
            self._handle(robot, order)

        self._jobs.do(lambda: robot.walker.plan_stop(walk, at), planned)

    def _settle(self, robot: Robot) -> None:
        """Hand an outcome on, once."""
        outcome = robot.session.outcome
        if outcome is None or outcome is self.outcome:
            return
        self.outcome = outcome
        if outcome.completed:
            self._log.info(f"walked {outcome.steps} steps")
        else:
            self._log.error(f"no walk, or not all of it: {outcome.reason}")
        waiters, self._waiters = self._waiters, []
        for tell in waiters:
            tell(outcome)

    def _stream(self, robot: Robot, time_ns: int) -> None:
        assert robot.reading is not None  # noqa: S101 - the caller has made it
        if robot.session.state not in MOVING:
            return
        horizon = self._settings.horizon
        target = robot.session.target_at(robot.reading.time + horizon + self._settings.drive_delay)
        if target is not None:
            self._output.send_point(robot.names, target, horizon, ns_to_stamp(time_ns))

    def _start_by_itself(self, robot: Robot) -> None:
        """Walk once, after it has stood for a lead time; later where it does not stand then."""
        if not self._autostart or robot.reading is None:
            return
        if robot.session.state is not State.READY:
            self._ready_since = None
            return
        now = robot.reading.time
        self._ready_since = now if self._ready_since is None else self._ready_since
        if now - self._ready_since >= self._settings.approach_time:
            self._autostart = bool(self.begin(robot, WalkRequest()))
            self._by_itself = self._by_itself if self._autostart else self._asked

    def _now(self, robot: Robot) -> float:
        """Time of the joints' readings, s, also while they are silent."""
        last = robot.reading.time if robot.reading is not None else 0.0
        return last + (self._watch.age_s if self._watch.stale else 0.0)
