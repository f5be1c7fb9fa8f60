"""Plays a motion: approaches its first row, then follows its rows; can be paused and resumed.

A pure function of the times that it is given. Targets are computed a horizon ahead, with a tail
that comes to rest along the path: a robot that receives nothing more stops smoothly, and when
the next message is late the path continues from where the tail has led.
"""

from copy import copy
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike

from com_control.command_guard import CommandGuard, GuardOptions
from com_control.exceptions import MotionError
from com_control.motion.motion import Motion, MotionLayout, PathTiming, plan_approach
from com_model.arrays import as_array
from com_model.joint_path import JointPath
from com_model.parameters import parameter


class MotionPhase(IntEnum):
    """State of a player; values of com_msgs/MotionState.

    Attributes:
        UNKNOWN: not known yet; used by the node.
        EMPTY: no motion is loaded.
        READY: a motion is loaded.
        REFUSED: the last file cannot be played.
        APPROACHING: moving to the first row.
        PLAYING: following the rows.
        PAUSING: slowing down to a pause.
        PAUSED: at rest on the path.
        STOPPING: slowing down; play() then starts again.
        FINISHED: at the last row.
    """

    UNKNOWN = 0
    EMPTY = 1
    READY = 2
    REFUSED = 3
    APPROACHING = 4
    PLAYING = 5
    PAUSING = 6
    PAUSED = 7
    STOPPING = 8
    FINISHED = 9


MOVING = (
    MotionPhase.APPROACHING,
    MotionPhase.PLAYING,
    MotionPhase.PAUSING,
    MotionPhase.STOPPING,
)
UNDER_WAY = (*MOVING, MotionPhase.PAUSED)


@dataclass(frozen=True)
class PlayerOptions:
    """Options of a player.

    Attributes:
        joint_timeout: s between two steps, after which it stops.
    """

    horizon: float = parameter(0.05, "s, lead of the targets", (0.001, 1.0))
    stop_time: float = parameter(
        0.5, "s, from full speed to rest and back", (0.01, 10.0)
    )
    approach_fraction: float = parameter(
        0.1,
        "fraction of velocity and acceleration limits on the way to row 1",
        (0.001, 1.0),
    )
    following_error: float = parameter(
        0.35,
        "rad, distance of a joint from its target that stops the motion",
        (0.001, 10.0),
    )
    joint_timeout: float = 0.2


class Player:
    """Plays motions of one robot.

    Args:
        layout: joints and limits.
        options: timing and limits of the approach; the defaults by default.

    Attributes:
        state: of the player.
        reason: why it is refused or stops; "" otherwise.
        name: of the loaded file; "" for none.
        guard: checks all commands, and whether the joints follow.
    """

    def __init__(
        self, layout: MotionLayout, options: PlayerOptions | None = None
    ) -> None:
        self._layout, self._options = layout, options or PlayerOptions()
        self.state, self.reason, self.name = MotionPhase.EMPTY, "", ""
        self.guard = CommandGuard(
            layout.joints,
            layout.lower,
            layout.upper,
            layout.velocity,
            GuardOptions(
                following_error=self._options.following_error, following_time=0.0
            ),
        )
        self._motion: Motion | None = None
        # the way to the first row from time 0, then the motion; None: it was not played yet
        self._path: JointPath | None = None
        self._timing = PathTiming(0.0, self._options.stop_time)
        # on the path, s: where the way ends, and where the motion's time is 0
        self._way_end = self._begin = 0.0
        self._time = self._due = 0.0  # of the last step, and of its first target
        self._held = np.full(len(layout.joints), np.nan)  # where joints were sent last

    # --- files ---------------------------------------------------------------------------------
    def load(self, name: str, motion: Motion) -> None:
        """Loads a motion, whose limits have been checked.

        Args:
            name: of its file, for the state.
            motion: of the layout's joints, in its order.

        Raises:
            MotionError: another one is being played, it has no rows, or other joints.
        """
        if motion.joints != self._layout.joints:
            raise MotionError(
                "the motion's joints are not those of the layout, in its order"
            )
        _ = motion.path  # raises where there are no rows
        self._change_file(name, MotionPhase.READY, "")
        self._motion = motion

    def refuse(self, name: str, reason: str) -> None:
        """Unloads the motion and sets the state REFUSED.

        Args:
            name: of the file that cannot be played.
            reason: why, and how to fix it.

        Raises:
            MotionError: a motion is being played.
        """
        self._change_file(name, MotionPhase.REFUSED, reason)

    def _change_file(self, name: str, state: MotionPhase, reason: str) -> None:
        if self.state in UNDER_WAY:
            raise MotionError(f"{self.name} is being played: stop it first")
        self._motion = self._path = None
        self.name, self.state, self.reason = name, state, reason

    # --- requests ------------------------------------------------------------------------------
    def play(self, time: float, measured: ArrayLike) -> JointPath:
        """Starts playing.

        Args:
            time: s.
            measured: (k,) rad or m, present positions of the layout's joints.

        Returns:
            The way to the first row, of the layout's joints, from time 0.

        Raises:
            MotionError: nothing is loaded, it is being played already, or the positions are
                unknown or implausible.
        """
        if self._motion is None:
            raise MotionError(self.reason or "no motion is loaded: load one")
        if self.state in UNDER_WAY:
            raise MotionError(
                "it is being played: stop it first, or resume it when it is paused"
            )
        options, motion = self._options, self._motion.path
        measured = as_array("measured", measured, (len(self._layout.joints),))
        self.guard.restart()
        if np.isfinite(measured).all() and (
            problem := self.guard.measure(time, measured)
        ):
            raise MotionError(problem)
        # joints are held at a target that is nearer than 0.05 rad or m
        held = np.abs(self._held - measured) < 0.05
        start = np.where(
            held, self._held, measured
        )  # where a joint is held near to where it is
        way = plan_approach(self._layout, start, motion.q[0], options.approach_fraction)
        self._way_end, self._begin = way.end, way.end - float(motion.time[0])
        self._path = way.followed_by(motion.shifted(self._begin))
        self._timing = PathTiming(time + options.horizon, options.stop_time)
        self._timing.change(time + options.horizon, 1.0)
        self._time, self._due = time, time + options.horizon
        self.state, self.reason = MotionPhase.APPROACHING, ""
        return way

    def pause(self) -> None:
        """Slows down along the motion to rest.

        Raises:
            MotionError: nothing is being played.
        """
        if self.state not in (
            MotionPhase.APPROACHING,
            MotionPhase.PLAYING,
            MotionPhase.PAUSING,
        ):
            raise MotionError(
                f"nothing is being played: the player is {self.state.name}"
            )
        self._change(self._due, 0.0)
        self.state = MotionPhase.PAUSING

    def resume(self) -> None:
        """Continues after a pause.

        Raises:
            MotionError: it is not paused.
        """
        if self.state not in (MotionPhase.PAUSING, MotionPhase.PAUSED):
            raise MotionError(f"it is not paused: the player is {self.state.name}")
        self._change(self._due, 1.0)
        self._settle(self._due)

    def stop(self, reason: str) -> None:
        """Slows down along the motion to rest; after that only play() starts it again.

        Args:
            reason: for the state.
        """
        if self.state not in UNDER_WAY or self.state is MotionPhase.STOPPING:
            return
        self._change(self._due, 0.0)
        self.state, self.reason = MotionPhase.STOPPING, reason
        self._settle(self._due)

    def input_lost(self, time: float, reason: str) -> None:
        """Stops, as no measurement is received: the robot comes to rest on earlier targets.

        Args:
            time: s, now.
            reason: for the state.
        """
        self.stop(reason)
        if self.state is MotionPhase.STOPPING:
            self._settle(time)

    # --- steps ---------------------------------------------------------------------------------
    def step(self, time: float, measured: ArrayLike) -> JointPath | None:
        """Processes a measurement.

        Args:
            time: s, of the measurement.
            measured: (k,) rad or m, of the layout's joints.

        Returns:
            The next targets of the joints `driven`, times from that of the step on, that end at
            rest; None: the joints stand.
        """
        if self._path is None:
            return None
        time = max(time, self._time)
        self.guard.measure(
            time, as_array("measured", measured, (len(self._layout.joints),))
        )
        moving = self.state in MOVING
        if moving:
            self._check_gap(time)
        self._catch_up(time)
        self._time, self._due = time, time + self._options.horizon
        if not moving and self.state is not MotionPhase.PAUSED:
            return None
        self._settle(self._due)
        return self._targets(self._path) if moving else None

    def _check_gap(self, time: float) -> None:
        gap = time - self._time
        if gap > self._options.joint_timeout:
            self.stop(f"joint_states timed out, none for {gap:.2f} s: check its driver")
        elif self.guard.reason and self.state in (
            MotionPhase.APPROACHING,
            MotionPhase.PLAYING,
        ):
            self.stop(self.guard.reason)

    def _catch_up(self, time: float) -> None:
        """Continues from the tail, which the drives have followed without further commands."""
        rate = self._timing.goal
        if time > self._due and rate > 0.0:
            self._change(self._due, 0.0)
            self._change(time, rate)

    def _change(self, time: float, rate: float) -> None:
        if self._timing.goal != rate:
            self._timing.change(time, rate)

    def _settle(self, due: float) -> None:
        """Updates the state for the time of the next target."""
        assert self._path is not None  # noqa: S101 - it is under way
        place, still = self._timing.progress(due), self._timing.goal == 0.0
        over, at_rest = place >= self._path.end, still and due >= self._timing.settled
        if self.state is MotionPhase.STOPPING:
            self.state = MotionPhase.READY if over or at_rest else MotionPhase.STOPPING
        elif over:
            self.state = MotionPhase.FINISHED
        elif still:
            self.state = MotionPhase.PAUSED if at_rest else MotionPhase.PAUSING
        else:
            near = place < self._way_end
            self.state = MotionPhase.APPROACHING if near else MotionPhase.PLAYING

    # --- progress ------------------------------------------------------------------------------
    @property
    def row(self) -> int:
        """Row that is being played, from 1; 0 before it."""
        place = self._motion_time()
        return (
            0 if self._motion is None or place is None else self._motion.row_at(place)
        )

    @property
    def rows(self) -> int:
        """Number of rows of the motion; 0 for none."""
        return 0 if self._motion is None else len(self._motion.times)

    @property
    def motion_time(self) -> float:
        """Time in the motion, s; NaN when it is not being played."""
        place = self._motion_time()
        return float("nan") if place is None else max(place, 0.0)

    @property
    def duration(self) -> float:
        """Duration of the motion, s; NaN for none."""
        return float("nan") if self._motion is None else float(self._motion.times[-1])

    @property
    def rate(self) -> float:
        """Playing rate: 1 as in the file, 0 at rest."""
        return self._timing.rate(self._due) if self.state in MOVING else 0.0

    def _motion_time(self) -> float | None:
        """Time in the motion of the next target, s; None: not played, or still on the way."""
        place = self._timing.progress(self._due)
        if self._path is None or place < self._way_end:
            return None
        return place - self._begin

    @property
    def driven(self) -> tuple[str, ...]:
        """Names of the joints that the motion drives; empty for no motion."""
        return () if self._motion is None else self._motion.driven

    def _targets(self, path: JointPath) -> JointPath:
        """The next target, and the tail after it that comes to rest."""
        due, tail = self._due, copy(self._timing)
        if tail.goal > 0.0:
            tail.change(due, 0.0)
        left = max(tail.settled - due, 0.0)
        # s, from which nine times are apart in a message; before, only the rest is sent
        apart = left > 1e-3
        times = due + np.linspace(0.0, left, 9 if apart else 1)
        sampled = times if apart else times + left
        points = [path.sample(tail.progress(t)) for t in sampled.tolist()]
        rates = np.array([tail.rate(t) for t in sampled.tolist()])
        drive = np.isfinite(path.q[-1])  # of the others the motion has no positions
        positions, velocities = self.guard.limit(
            times,
            np.array([q for q, _ in points]),
            rates[:, None] * np.array([qd for _, qd in points]),
            drive,
        )
        if self.guard.held:
            self.stop(self.guard.reason)
        self._held = np.where(drive, positions[-1], self._held)
        sent = times - self._time, positions[:, drive], velocities[:, drive]
        return JointPath(*sent)
