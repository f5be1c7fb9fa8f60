"""Session of a trotting robot: approaches the standing posture, trots, stops on faults."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from com_control.command_guard import CommandGuard, GuardOptions, ReadingTimes
from com_control.sensor_guard import Sensor, SensorGuard
from com_control.trot.trot import NO_FEEDBACK, Flags, GaitTarget, TrotFeedback, TrotGait
from com_model.arrays import Array
from com_model.joint_path import JointPath


class TrotPhase(IntEnum):
    """State of a session; values of com_msgs/GaitPhase.

    Attributes:
        UNKNOWN: the joints' positions are not known yet.
        APPROACHING: moving to the standing posture.
        STANDING: on all feet.
        TROTTING: by the gait.
    """

    UNKNOWN = 0
    APPROACHING = 1
    STANDING = 2
    TROTTING = 3


@dataclass(frozen=True, eq=False)
class TrotCommand:
    """Joint targets of one time.

    Attributes:
        state: of the session.
        position: (n,) rad.
        velocity: (n,) rad/s.
        gait: target of the gait; None unless it trots.
    """

    state: TrotPhase
    position: Array
    velocity: Array
    gait: GaitTarget | None = None

    @property
    def stance(self) -> Flags:
        """(4,) legs in stance."""
        return np.ones(4, dtype=bool) if self.gait is None else self.gait.stance


class GaitSession:
    """Approaches the standing posture, stands, trots on request, and returns.

    The guard checks all commands: when it stops, the swing ends, and the robot keeps that
    posture, on all feet, until start() is called.

    Args:
        gait: of the robot.
        approach_time: s, for a motion between postures.
        horizon: s, from a measurement to the time its targets are due.
        guard: limits of commands and following errors.

    Attributes:
        gait: as given.
        guard: checks all commands.
        trot: whether to trot when possible.
        last: the last command; None: the robot's posture is unknown.
    """

    def __init__(
        self,
        gait: TrotGait,
        approach_time: float,
        horizon: float = 0.0,
        guard: GuardOptions | None = None,
    ) -> None:
        self.gait, self._approach_time, self._horizon = gait, approach_time, horizon
        self.guard = CommandGuard.from_model(gait.model, guard)
        self._standing = gait.posture.copy()
        self._way: JointPath | None = None  # to the standing posture
        self._trot_since = self._trot_time = 0.0
        self._time, self._restarted = -np.inf, False
        self._readings = ReadingTimes()
        self._sensors = SensorGuard(gait.model, [leg.joints for leg in gait.legs])
        self.last: TrotCommand | None = None
        # time of the trot at which all feet are down
        self._landing: float | None = None
        self.trot = True
        self._stop_reason = self._waits_for = ""

    @property
    def reason(self) -> str:
        """Why it has stopped, or does not trot yet; "" when neither."""
        return self._stop_reason or (self._waits_for and f"waits: {self._waits_for}")

    def stop(self, reason: str) -> None:
        """Returns to the standing posture, all feet down, from the next step on.

        Args:
            reason: for the state.
        """
        self.trot, self._stop_reason = False, reason

    def start(self) -> None:
        """Trots as soon as the robot stands; after a stop of the guard, from where it is."""
        self.trot, self._stop_reason, self._waits_for = True, "", ""
        if self.guard.reason:
            self.guard.restart()
            self.last = self._way = self._landing = None

    def check(self, problem: str) -> None:
        """Sets the present obstacle to trotting.

        A robot that trots stops, until start() is called; one that does not trot yet waits until
        there is no problem any more.

        Args:
            problem: why it must not trot; "" for none.
        """
        trots = self.last is not None and self.last.state is TrotPhase.TROTTING
        if problem and self.trot and trots:
            self.stop(problem)
        self._waits_for = problem

    def restart_clock(self, jump: float) -> None:
        """Continues with times of another clock; see CommandGuard.change_clock.

        Args:
            jump: s, by which the clock has jumped; 0: it has started.
        """
        self.guard.change_clock(jump)
        self._restarted = self.last is not None

    def step(
        self, time: float, measured: Array, feedback: TrotFeedback = NO_FEEDBACK
    ) -> TrotCommand | None:
        """Targets for a horizon after a measurement.

        Args:
            time: s, of the measurement.
            measured: (n,) rad, positions of the joints.
            feedback: attitude and CoM, as measured.

        Returns:
            The targets; None as long as the robot's posture is unknown.
        """
        gap = self._readings.gap(time)
        if self._restarted or (gap and self.last is not None):
            # later times stay as far ahead as they were
            jump, self._restarted = time - self._time, False
            self._way = self._way and self._way.shifted(jump)
            self._trot_since, self._time = self._trot_since + jump, time
            # what turned or moved in a gap is not known
            self._sensors.restart()
        passed, self._time = time - self._time, max(time, self._time)
        time = self._time
        problem = self.guard.measure(time, measured)
        if self.last is None:
            if problem:
                self.check(problem)
                return None
            self._way = self._way_from(measured, time + self._horizon)
        elif self.last.state is TrotPhase.TROTTING and self.trot:
            R, omega = feedback.R_world_root, feedback.angular_velocity
            target = self.last.position
            self._sensors.update(R, measured, None, target, True, passed, omega)
            self.check(self._sensors.problem)
        if self.guard.reason:
            self.stop(self.guard.reason)
        act = self._land if self.guard.reason else self._advance
        command = act(time + self._horizon, feedback.ahead(self._horizon))
        self.last = self._guarded(time + self._horizon, command)
        return self.last

    def way_to_rest(self, time: float, count: int) -> JointPath | None:
        """The motion to the standing posture, after stop(), to be sent in advance.

        For a robot that can no longer be observed.

        Args:
            time: s, when it begins.
            count: number of points, evenly in time, the last one at rest; one at the end of
                the motion.

        Returns:
            The path, after that time; None if the robot's posture is unknown.
        """
        if self.last is None:
            return None
        if self.guard.reason and self.last.state is not TrotPhase.TROTTING:
            q = self.last.position[None]
            return JointPath(np.array([time]), q, np.zeros_like(q))
        self._readings = ReadingTimes()  # drives follow the whole way in a gap
        way = self._way = self._way or self._way_from(self.last.position, time)
        left = max(way.end - time, 0.0)
        # s, from which the times are apart in a message
        steps = count if left > 1e-3 else 1
        times = time + left * np.arange(1, steps + 1) / steps
        q, qd = np.swapaxes([way.sample(at) for at in times.tolist()], 0, 1)
        self.last = self._approach(way, time)
        return JointPath(times, *self.guard.limit(times, q, qd))

    def _advance(self, due: float, feedback: TrotFeedback) -> TrotCommand:
        """Approaches, stands or trots."""
        trots, before = self.trot and not self._waits_for, self.last
        if before is not None and before.state is TrotPhase.TROTTING and not self.trot:
            self._way = self._way_from(before.position, due)
        elif before is not None and before.state is TrotPhase.STANDING and trots:
            self._trot_since, self._trot_time = due, 0.0
            self._sensors.failed = Sensor.NONE
            self._sensors.restart()
            self.gait.reset()
        if self._way is not None:
            command = self._approach(self._way, due)
            if command.state is TrotPhase.STANDING:
                self._way = None
            return command
        if not trots:
            return self._still(self._standing)
        self._trot_time = max(
            due - self._trot_since, self._trot_time
        )  # rounding of a new clock
        target = self.gait.step(self._trot_time, feedback)
        return TrotCommand(TrotPhase.TROTTING, target.position, target.velocity, target)

    def _land(self, due: float, feedback: TrotFeedback) -> TrotCommand:
        """Ends the swing after the guard has stopped, and keeps the posture."""
        assert self.last is not None  # noqa: S101 - it has sent a command
        self._way = None
        if self.last.state is not TrotPhase.TROTTING:
            return self._still(self.last.position)
        if self._landing is None:
            self._landing = self.gait.support_time()
        at = max(due - self._trot_since, self._trot_time)
        target = self.gait.step(min(at, self._landing), feedback)
        if at < self._landing:
            return TrotCommand(
                TrotPhase.TROTTING, target.position, target.velocity, target
            )
        return self._still(target.position)

    def _guarded(self, due: float, command: TrotCommand) -> TrotCommand:
        """The command, limited by the guard; at rest if the guard has stopped."""
        position, velocity = self.guard.limit(
            np.array([due]), command.position[None], command.velocity[None]
        )
        if self.guard.held:
            self.stop(self.guard.reason)
            return self._still(position[0])
        return TrotCommand(command.state, position[0], velocity[0], command.gait)

    def _way_from(self, position: Array, since: float) -> JointPath:
        """The way from a posture (n,), rad, at a time, s, to the standing one."""
        way = JointPath.through([position, self._standing], self._approach_time)
        return way.shifted(since)

    def _approach(self, way: JointPath, time: float) -> TrotCommand:
        """Command on the way to the standing posture."""
        if time >= way.end - 1e-9:
            return self._still(self._standing)
        return TrotCommand(TrotPhase.APPROACHING, *way.sample(time))

    def _still(self, position: Array) -> TrotCommand:
        return TrotCommand(TrotPhase.STANDING, position, np.zeros_like(position))
