"""The state machine of a walking robot, and the joint targets that it commands.

  UNKNOWN, REFUSED, READY   update(): by the measurements (WalkChecks)
  READY -> PLANNING         start_planning(); then begin() with the plan, or refuse()
  APPROACHING               to the walk's first posture; then
  WALKING                   until the walk's end, then READY; continue_with() replaces its
                            further steps; stop() leads to
  STOPPING                  a shorter walk is planned and passed to replace()
  FALLEN                    from any motion, by update(); left when the robot stands again

A walk stops when an input is missing, when joints do not follow or report implausible positions
(CommandGuard), and when the clock of the readings jumps; another one begins only on request.

Without clocks, threads and messages: times are those of the joints' readings, s. Each transition
that changes the joint targets returns a JointPath, later than now, that ends stationary with both
feet on the ground. So nothing worse than a finished walk happens when no further command
follows. Before it is sent it must pass limited(); target_at() returns the limited joint targets
of any time, for streamed trajectory points. There a Stabiliser's feedback is added, on walks and
while the robot stands; it is faded in and out within 0.5 s.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from com_control.command_guard import CommandGuard, GuardOptions, ReadingTimes
from com_control.exceptions import PlanError
from com_control.sensor_guard import Sensor
from com_control.walking.biped import Biped, sole_slip
from com_control.walking.stabiliser import FIXES, Fault, Stabilised, Stabiliser
from com_control.walking.walk import Walk, make_stand
from com_control.walking.walk_joints import check_path, plan_approach
from com_control.walking.walk_monitor import Reading, WalkChecks
from com_control.walking.walk_plan import WalkInstant, quintic
from com_model.arrays import Array
from com_model.joint_path import JointPath

MAX_GAP = 0.1  # s between readings, for which feedback and a plan's waiting count


class WalkPhase(IntEnum):
    """State of a session; values of com_msgs/WalkState.

    Attributes:
        UNKNOWN: no reading yet.
        READY: the robot stands, a walk may begin.
        REFUSED: a walk may not begin, see the reason.
        PLANNING: a walk is being planned.
        APPROACHING: moving to the walk's first posture.
        WALKING: along the walk.
        STOPPING: a shorter walk is planned or walked.
        FALLEN: until the robot stands again.
    """

    UNKNOWN = 0
    READY = 1
    REFUSED = 2
    PLANNING = 3
    APPROACHING = 4
    WALKING = 5
    STOPPING = 6
    FALLEN = 7


MOVING = (WalkPhase.APPROACHING, WalkPhase.WALKING, WalkPhase.STOPPING)
STANDING = (WalkPhase.READY, WalkPhase.REFUSED, WalkPhase.PLANNING)


@dataclass(frozen=True)
class WalkOutcome:
    """How a walk ended.

    Attributes:
        completed: all steps were made.
        reason: why not; "" when they were.
        steps: number of steps that were made.
    """

    completed: bool
    reason: str
    steps: int

    def __str__(self) -> str:
        return "completed" if self.completed else self.reason


class WalkSession:
    """Controls the walks of one robot.

    Args:
        biped: the robot.
        checks: whether it stands.
        approach_time: s, shortest time for the motion to a walk's first posture.
        delay: s, from a decision to the first point that it changes.
        limits: of commands and following errors.
        stabiliser: feedback for the targets of target_at; None: none.

    Attributes:
        guard: checks all commands.
        stabiliser: as given.
        balances: whether feedback is used also while the robot stands.
        state: of the session.
        reason: why it does not walk, or stops; "" otherwise.
        walk: the present or last one; None before the first.
        outcome: of the last walk; None during one and before the first.
    """

    def __init__(
        self,
        biped: Biped,
        checks: WalkChecks,
        approach_time: float = 1.0,
        delay: float = 0.1,
        limits: GuardOptions | None = None,
        stabiliser: Stabiliser | None = None,
    ) -> None:
        self._biped, self._checks = biped, checks
        self.guard = CommandGuard.from_model(biped.model, limits)
        self._approach_time, self._delay = approach_time, delay
        self._commanded: JointPath | None = None  # in the time of the joints' readings
        self._begin = 0.0  # when the walk begins, s
        # s, of the last reading; of the last that stood
        self._last = self._stood = -np.inf
        self._readings = ReadingTimes()
        self._stop_reason = ""
        self._awaited = False  # a stop must be planned
        self.stabiliser = stabiliser
        self._reading: Reading | None = None
        self._followed: Walk | None = None  # by the stabiliser
        self._fed: Stabilised | None = None  # its last result
        self._fed_at, self._asked_at = 0.0, np.inf  # s
        self._feeds, self.balances = False, True
        # last change by feedback, (n,) rad or m, and its weight, 0 to 1
        self._change, self._gain = np.zeros(biped.model.n_joints), 0.0
        self.state, self.reason = WalkPhase.UNKNOWN, "no joint_states yet"
        self.walk: Walk | None = None
        self.outcome: WalkOutcome | None = None

    # --- requests -------------------------------------------------------------------------------
    def refusal(self) -> str:
        """Why no walk may be planned now and how to fix it; "" when one may."""
        if self.state in (WalkPhase.READY, WalkPhase.REFUSED, WalkPhase.UNKNOWN):
            return self.reason
        if self.state is WalkPhase.FALLEN:
            return f"the robot has fallen: {self.reason}"
        return "a walk is under way: wait for its end, or stop it first"

    def commanded_posture(self, measured: Array) -> Array:
        """Present joint targets.

        Args:
            measured: (n,) rad or m, used before the first command.

        Returns:
            (n,) rad or m.
        """
        if self._commanded is None:
            return measured
        return self._commanded.sample(self._last)[0]

    def start_planning(self) -> None:
        """Sets the state PLANNING; allowed only if refusal() is ""."""
        self.state, self.reason, self.outcome = WalkPhase.PLANNING, "", None

    def refuse(self, reason: str) -> None:
        """Ends PLANNING without a walk.

        Args:
            reason: for the outcome; "": no outcome, the walk will be requested again later.
        """
        self.state, self.reason = WalkPhase.READY, ""
        self.outcome = WalkOutcome(False, reason, 0) if reason else None

    def problem(self, reading: Reading, sways: bool = False) -> str:
        """Checks whether a planned walk may begin now.

        Args:
            reading: of the sensors.
            sways: as for WalkChecks.problem.

        Returns:
            Why not and how to fix it; "" when it may.
        """
        aim = None
        if self._commanded is not None:
            aim = self._commanded.sample(reading.time)[0] + self._gain * self._change
        return self._checks.problem(reading, aim, sways)

    def begin(self, walk: Walk, reading: Reading) -> JointPath | None:
        """Begins the walk that was planned.

        Args:
            walk: as planned.
            reading: of the sensors.

        Returns:
            The path to send; None, with an outcome, when it may not begin.
        """
        problem = self.problem(reading)
        if problem:
            self.refuse(problem)
            return None
        start = reading.time + self._delay
        posture, first = self.commanded_posture(reading.position), walk.path.q[0]
        try:
            # with a quarter of the joints' speed limits
            way = plan_approach(
                posture, first, self._biped.model, self._approach_time, 0.25
            )
            moved = sole_slip(self._biped, way.q[:: max(len(way.q) // 10, 1)])
            # soles may move by 0.01 m or rad to each other on that way
            if moved > 0.01:
                raise PlanError(
                    f"on the way to the walk's first posture the soles would slip by {moved:.3f} m "
                    "or rad: bring the robot nearer to its nominal posture, or give a com_height "
                    "nearer to that at which it stands"
                )
            check_path(self._biped.model, way)
        except PlanError as error:
            self.refuse(str(error))
            return None
        self.guard.restart()
        self.guard.measure(reading.time, reading.position)
        self._followed, self._fed, self._feeds = None, None, False
        self.walk, self._begin = walk, start + way.end
        path = way.shifted(start).followed_by(walk.path.shifted(self._begin))
        self.state, self.reason, self._stop_reason = WalkPhase.APPROACHING, "", ""
        return self._command(path, reading.time)

    def stop(self, reason: str, now: float | None = None) -> JointPath | None:
        """Stops a motion with both feet down; where that needs a plan, stop_due requests it.

        Args:
            reason: for the state.
            now: s, of the joints' readings; None: of the last one.

        Returns:
            The path to send; None if nothing changes yet.
        """
        stands = self.walk is not None and not self.walk.plan.steps
        if self.state is WalkPhase.APPROACHING or (
            self.state is WalkPhase.WALKING and stands
        ):
            return self._halt(
                reason, WalkPhase.REFUSED, self._last if now is None else now
            )
        if self.state is WalkPhase.WALKING:
            self.state, self.reason, self._stop_reason = (
                WalkPhase.STOPPING,
                reason,
                reason,
            )
            self._awaited = True
        return None

    @property
    def stop_due(self) -> bool:
        """Whether a stop must be planned, by Walker.plan_stop from walk_time on."""
        return self._awaited and self.state is WalkPhase.STOPPING

    def replace(self, walk: Walk, changes_at: float, now: float) -> JointPath | None:
        """Continues with a shorter walk that stops.

        Args:
            walk: by Walker.plan_stop.
            changes_at: s of the walk, up to which it is identical to the present one.
            now: s, of the joints' readings.

        Returns:
            The path to send; None where it came too late and must be planned again, or nothing
            changes.
        """
        if self.state is not WalkPhase.STOPPING:
            return None
        if now + 0.5 * self._delay > self._begin + changes_at:
            return None
        self._awaited = False
        if walk is self.walk:
            return None
        self.walk = walk
        return self._command(walk.path.shifted(self._begin), now)

    def continue_with(
        self, walk: Walk, changes_at: float, now: float
    ) -> JointPath | None:
        """Continues with a walk whose further steps were planned again.

        Args:
            walk: by Walker.change.
            changes_at: s of the present walk, up to which both are identical.
            now: s, of the joints' readings.

        Returns:
            The path to send; None where it came too late, or the robot does not walk.
        """
        late = now + 0.5 * self._delay > self._begin + changes_at
        if late or self.state is not WalkPhase.WALKING:
            return None
        self.walk, self._begin = walk, self._begin + walk.later
        return self._command(walk.path.shifted(self._begin), now)

    # --- measurements ---------------------------------------------------------------------------
    def update(self, reading: Reading, jump: float = 0.0) -> JointPath | None:
        """Updates the state with a reading.

        Args:
            reading: of the sensors.
            jump: s, by which the clock of the readings has jumped before this one.

        Returns:
            The path to send when the robot must stop; else None.
        """
        gap = self._readings.gap(reading.time)
        # drives that were sent the whole plan went on in a gap
        shift = jump or (gap if self.balance is not None else 0.0)
        if shift:
            self._begin, self._last = self._begin + shift, -np.inf
            self._fed_at, self._asked_at = self._fed_at + shift, self._asked_at + shift
            if self._commanded is not None:
                self._commanded = self._commanded.shifted(shift)
        if jump:
            self.guard.change_clock(jump)
        if self.stabiliser is not None and self.stabiliser.failed & Sensor.IMU:
            reading = replace(reading, tilt=np.nan)
        self._wait_for_feet(reading.time - self._last)
        problem, self._reading = self.guard.reason, reading
        if reading.time >= self._last:
            self._last = reading.time
            problem = self.guard.measure(reading.time, reading.position)
        if self.state in MOVING:
            tilted = FIXES[self.fault] if self.fault is Fault.FALLEN else ""
            if fallen := self._checks.fallen(reading) or tilted:
                return self._halt(fallen, WalkPhase.FALLEN, reading.time)
            problem = self._checks.missing(reading) or problem
            if self._fed is not None and self._fed.must_stop:
                problem = problem or FIXES[self.fault]
            order = (
                self.stop(problem)
                if problem and self.state is not WalkPhase.STOPPING
                else None
            )
            if order is None:
                self.advance(reading.time)
            return order
        if self._feeds and self.fault is Fault.FALLEN:
            if self.state is WalkPhase.PLANNING:
                self.refuse(FIXES[Fault.FALLEN])
            self._fall(FIXES[Fault.FALLEN])
        if self.state is not WalkPhase.PLANNING:
            self._set_standing(reading)
        return None

    def _wait_for_feet(self, dt: float) -> None:
        """Delays the rest of the walk by what the stabiliser's plan lags behind in dt, s."""
        if self.balance is None or self._fed is None or self._commanded is None:
            return
        late = (1.0 - self._fed.rate) * dt
        if late != 0.0 and dt < MAX_GAP:
            self._begin, self._commanded = (
                self._begin + late,
                self._commanded.shifted(late),
            )

    def _feed_back(self, time: float, q: Array, qd: Array) -> tuple[Array, Array]:
        """Targets for a time, including the stabiliser's feedback if there is one."""
        stabiliser, reading = self.stabiliser, self._reading
        if stabiliser is None or reading is None:
            return q, qd
        passed = min(max(reading.time - self._asked_at, 0.0), MAX_GAP) / 0.5
        self._asked_at, followed, rate = (
            reading.time,
            self._walk_to_follow(reading),
            1.0,
        )
        self._feeds = followed is not None
        if followed is not None:
            dt = min(max(reading.time - self._fed_at, 0.0), MAX_GAP)
            if self._followed is None:
                stabiliser.start(followed.plan, followed.samples, q)
                dt = 0.0
            elif self._followed is not followed:
                stabiliser.replace(followed.plan, followed.samples, followed.later)
            self._followed, self._fed_at = followed, reading.time
            if followed is self.walk:
                stabiliser.state.phase[0] = min(
                    max(self.walk_time, 0.0), followed.duration
                )
            R = (
                np.full((3, 3), np.nan)
                if reading.R_world_root is None
                else reading.R_world_root
            )
            lead = time - reading.time
            self._fed = stabiliser.update(
                R,
                reading.position,
                reading.wrenches,
                dt,
                lead,
                reading.angular_velocity,
            )
            self._change, rate = self._fed.q - q, self._fed.rate
        step = passed if self._feeds else -passed
        self._gain = min(max(self._gain + step, 0.0), 1.0)
        part = 1.0 if self._gain == 1.0 else float(quintic(self._gain)[0])
        return q + part * self._change, rate * qd

    def _walk_to_follow(self, reading: Reading) -> Walk | None:
        """The walk that the stabiliser should follow now; None: none."""
        if self.state in (WalkPhase.WALKING, WalkPhase.STOPPING):
            return self.walk if self.walk is not None and self.walk.fed_back else None
        upright = (
            reading.R_world_root is not None and np.isfinite(reading.R_world_root).all()
        )
        stands = self.state in STANDING and self.balances and upright
        if not stands or self._commanded is None or self.problem(reading, sways=True):
            return None
        if self._followed is None:
            with suppress(PlanError):
                return make_stand(self._biped, self._commanded.sample(reading.time)[0])
        return self._followed

    def _fall(self, reason: str) -> None:
        self.state, self.reason, self._commanded = WalkPhase.FALLEN, reason, None
        self._followed, self._feeds, self._gain = None, False, 0.0

    def advance(self, now: float) -> None:
        """Updates the state to a time; also while readings are stale.

        Args:
            now: s, of the joints' readings.
        """
        if self.walk is None or self.state not in MOVING:
            return
        if self.state is WalkPhase.APPROACHING and now >= self._begin:
            self.state = WalkPhase.WALKING
        if (
            self.state is not WalkPhase.APPROACHING
            and now >= self._begin + self.walk.duration
        ):
            made = self.walk.steps_made(self.walk.duration)
            self.outcome = WalkOutcome(not self._stop_reason, self._stop_reason, made)
            self.state, self.reason, self._awaited = WalkPhase.READY, "", False
            self._stood = now

    def _set_standing(self, reading: Reading) -> None:
        """Updates whether the robot stands as commanded, or, if moved, in its nominal posture."""
        problem = self.problem(reading)
        if (
            problem
            and self._commanded is not None
            and not self._checks.problem(reading, None)
        ):
            self._commanded, self._followed, self._gain, problem = None, None, 0.0, ""
        if self.state is WalkPhase.FALLEN and problem:
            return
        if not problem:
            self._stood = reading.time
        # a robot that stood may seem not to for 0.3 s
        recently = (
            abs(reading.time - self._stood) < 0.3 and self.state is WalkPhase.READY
        )
        if problem and recently and not self.problem(reading, sways=True):
            return
        self.state, self.reason = (
            (WalkPhase.REFUSED if problem else WalkPhase.READY),
            problem,
        )
        if problem or self.stabiliser is None or not self.balances:
            return
        if self._commanded is None or self.guard.reason:  # as begin() does
            self.guard.restart()
            self.guard.measure(reading.time, reading.position)
        if self._commanded is None:
            q = reading.position[None]
            self._commanded = JointPath(np.array([reading.time]), q, np.zeros(q.shape))

    # --- queries --------------------------------------------------------------------------------
    @property
    def balance(self) -> Stabiliser | None:
        """The stabiliser, while its feedback is used; else None."""
        return self.stabiliser if self._feeds and self._fed is not None else None

    @property
    def fault(self) -> Fault:
        """Last fault of the stabiliser."""
        return Fault.NONE if self._fed is None else self._fed.fault

    @property
    def walk_time(self) -> float:
        """Time of the walk, s; negative before it begins, NaN when there is none."""
        return self.time_of(self._last)

    def time_of(self, now: float) -> float:
        """Time of the walk at a time of the joints' readings.

        Args:
            now: s, of the joints' readings.

        Returns:
            s; NaN when there is no walk.
        """
        return now - self._begin if self.walk is not None else float("nan")

    def remaining(self, now: float) -> JointPath | None:
        """The targets after a time.

        Args:
            now: s, of the joints' readings.

        Returns:
            The path; None before the first command.
        """
        return None if self._commanded is None else self._commanded.after(now)

    def limited(self, path: JointPath) -> JointPath:
        """Joint targets limited by the guard; to be sent in their place.

        Args:
            path: returned by this session.
        """
        return JointPath(path.time, *self.guard.limit(path.time, path.q, path.qd))

    def planned_now(self) -> WalkInstant | None:
        """The plan at the present time; None before the first walk."""
        if self.walk is None:
            return None
        return self.walk.instant(min(max(self.walk_time, 0.0), self.walk.duration))

    def target_at(self, time: float) -> tuple[Array, Array] | None:
        """Joint targets for a time, with feedback and limits.

        Args:
            time: s, of the joints' readings.

        Returns:
            Positions (n,) rad or m and velocities (n,) rad/s or m/s; None: nothing must be sent.
        """
        if self._commanded is None:
            return None
        q, qd = self._feed_back(time, *self._commanded.sample(time))
        if self.state not in MOVING and not self._gain:
            return None
        sent, speeds = self.guard.limit(np.array([time]), q[None], qd[None])
        return sent[0], speeds[0]

    def _halt(self, reason: str, state: WalkPhase, now: float) -> JointPath:
        assert self._commanded is not None  # noqa: S101 - it moves
        assert self.walk is not None  # noqa: S101
        # an interrupted motion comes to a stop in 0.3 s
        path = self._commanded.halted(now + self._delay, 0.3)
        order = self._command(path, now)
        self.outcome = WalkOutcome(
            False, reason, self.walk.steps_made(now - self._begin)
        )
        self.state, self.reason, self._awaited = state, reason, False
        if state is WalkPhase.FALLEN:  # it will be set up in the nominal posture
            self._fall(reason)
        return order

    def _command(self, path: JointPath, now: float) -> JointPath:
        before = self._commanded
        self._commanded = path if before is None else _join(before, path, now)
        return path.after(now)


def _join(before: JointPath, path: JointPath, now: float) -> JointPath:
    """The earlier targets up to a path and then the path, without those older than 1 s."""
    recent = before.time > now - 1.0
    if before.time[0] >= path.time[0] or before.end < now or not recent.any():
        return path
    return JointPath(
        before.time[recent], before.q[recent], before.qd[recent]
    ).followed_by(path)
