"""From where a robot stands into the trot and back, and what ends it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from com_control.trot.foot_paths import smooth_step
from com_control.trot.trot import Flags, GaitTarget, TrotGait
from com_model.arrays import Array

BACK = 1.0  # s, by which time must go back to count as that of another robot


class State(IntEnum):
    """What a session does; the numbers are those of com_msgs/GaitPhase."""

    UNKNOWN = 0
    APPROACHING = 1
    STANDING = 2
    TROTTING = 3


@dataclass(frozen=True, eq=False)
class Command:
    """Joint targets (n,) and where they come from; gait is None unless it trots."""

    state: State
    position: Array
    velocity: Array
    gait: GaitTarget | None = None

    @property
    def stance(self) -> Flags:
        """Which legs carry, (4,)."""
        return np.ones(4, dtype=bool) if self.gait is None else self.gait.stance


class GaitSession:
    """Approaches the standing posture, stands, trots when asked to, and goes back.

    Args:
        gait: The trot.
        approach_time: s, of a way between postures.
    """

    def __init__(self, gait: TrotGait, approach_time: float) -> None:
        self.gait, self._approach_time = gait, approach_time
        self._standing = gait.posture.copy()
        self._from: Array | None = None
        self._since = self._trot_since = 0.0
        self._time = -np.inf
        self._last: Command | None = None
        self._waits = False
        self.trot = True  # what is asked for
        self.reason = ""  # why it stopped, or does not trot yet

    @property
    def started(self) -> bool:
        """Whether it has heard where the robot stands."""
        return self._last is not None

    def stop(self, reason: str) -> None:
        """Goes to the standing posture, all feet down, at the next step."""
        self.trot, self.reason = False, reason

    def start(self) -> None:
        """Trots as soon as it stands."""
        self.trot, self.reason, self._waits = True, "", False

    def check(self, problem: str) -> bool:
        """Takes in what speaks against trotting at the next step; "" when nothing does.

        A robot that trots stops, until start() is called; one that does not trot yet waits until
        there is no problem any more.

        Returns:
            Whether it stops.
        """
        if problem and self.trot and self._last and self._last.state is State.TROTTING:
            self.stop(problem)
            return True
        if self.trot:
            self._waits, self.reason = bool(problem), f"waits: {problem}" if problem else ""
        return False

    def step(
        self,
        time: float,
        measured: Array,
        R_world_root: Array | None = None,
        com_offset: Array | None = None,
        angular_velocity: Array | None = None,
    ) -> Command:
        """Targets at a time, s, ascending; arguments as of TrotGait.step.

        A time that goes back by more than a second starts over, as a simulation does.

        Args:
            time: s.
            measured: (n,) rad, where the joints are; only the first one counts.
            R_world_root: (3, 3).
            com_offset: (3,) m.
            angular_velocity: (3,) rad/s.
        """
        if time < self._time - BACK:
            self._start_over()
        self._time = time
        trots = self.trot and not self._waits
        if self._last is None:
            self._approach_from(time, np.array(measured, dtype=float))
        elif self._last.state is State.TROTTING and not self.trot:
            self._approach_from(time, self._last.position)
        elif self._last.state is State.STANDING and trots:
            self._trot_since = time
            self.gait.reset()
        if self._from is not None:
            self._last = self._approach(time)
        elif trots:
            at = time - self._trot_since
            target = self.gait.step(at, R_world_root, com_offset, angular_velocity)
            self._last = Command(State.TROTTING, target.position, target.velocity, target)
        else:
            self._last = self._still(State.STANDING, self._standing)
        return self._last

    def rest(self, time: float, count: int) -> list[tuple[float, Command]]:
        """The way to the standing posture from a time on, after stop(): (time, command) pairs.

        What can be sent ahead when the robot can no longer be watched: `count` points, evenly in
        time, the last one at rest.
        """
        if self._last is None:
            return []
        if self._from is None:
            self._approach_from(time, self._last.position)
        left = max(self._since + self._approach_time - time, 0.0)
        times = [time + left * (k + 1) / count for k in range(count)]
        self._last = self._led(time)
        return [(at, self._led(at)) for at in times]

    def _start_over(self) -> None:
        if self._last and self._last.state is State.TROTTING:
            self.stop("the clock of joint_states went back")
        self._last = self._from = None

    def _approach_from(self, time: float, position: Array) -> None:
        self._from, self._since = position, time

    def _approach(self, time: float) -> Command:
        command = self._led(time)
        if command.state is State.STANDING:
            self._from = None
        return command

    def _led(self, time: float) -> Command:
        """On the way to the standing posture."""
        assert self._from is not None  # noqa: S101 - only called so
        fraction = max((time - self._since) / self._approach_time, 0.0)
        if fraction >= 1.0 - 1e-9:
            return self._still(State.STANDING, self._standing)
        way = self._standing - self._from
        speed = 30.0 * fraction**2 * (1.0 - fraction) ** 2 / self._approach_time
        return Command(State.APPROACHING, self._from + smooth_step(fraction) * way, speed * way)

    def _still(self, state: State, position: Array) -> Command:
        return Command(state, position, np.zeros_like(position))
