"""Plays a motion: from where the robot stands to its first row, then its rows; pauses, goes on.

A pure function of the times that it is given. What it wants is always asked for a horizon ahead,
and with a tail that comes to rest along the path: a robot that hears nothing more stops smoothly,
and when the next word comes late the path goes on from where the tail has led.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from com_control.motion.course import Course
from com_control.motion.exceptions import MotionError
from com_control.motion.layout import MotionLayout
from com_control.motion.motion import Motion, approach
from com_control.motion.pace import Pace
from com_control.motion.path import RowPath
from com_control.motion.player_state import MOVING, UNDER_WAY, PlayerOptions, State, Targets
from com_control.motion.tracking import Tracking
from com_model.arrays import Array, as_array

LEAD_PERIOD = 0.01  # s, between the rows of the way to the first row
TAIL_POINTS = 8
NEAR = 0.05  # rad or m; a target that the joints stand so near to is where they are held


class Player:
    """Plays motions of one robot.

    Args:
        layout: Its joints and their limits.
        options: How.

    Attributes:
        state: What it does.
        reason: Why it stopped or refuses; "" when all is well.
        name: Of the motion; "" for none.
        tracking: How far the joints are from their targets.
    """

    def __init__(self, layout: MotionLayout, options: PlayerOptions | None = None) -> None:
        self._layout, self._options = layout, options or PlayerOptions()
        self.state, self.reason, self.name = State.EMPTY, "", ""
        self.tracking = Tracking(layout.joints)
        self._file: RowPath | None = None
        self._course: Course | None = None
        self._pace: Pace | None = None
        self._time = self._due = 0.0  # of the last step, and of its first target
        self._held = np.full(len(layout.joints), np.nan)  # where joints were sent last

    # --- what it plays -------------------------------------------------------------------------
    def load(self, name: str, motion: Motion) -> None:
        """Takes a motion, whose limits have been checked.

        Raises:
            MotionError: Another one is under way, it has no rows, or it is of other joints.
        """
        if self.state in UNDER_WAY:
            raise MotionError(f"{self.name} is being played: stop it first")
        if motion.joints != self._layout.joints:
            raise MotionError("the motion's joints are not those of the layout, in its order")
        self._file, self._pace, self.name = RowPath(motion), None, name
        self.state, self.reason = State.READY, ""

    def refuse(self, name: str, reason: str) -> None:
        """Says that a motion cannot be played; there is none then.

        Raises:
            MotionError: Another one is under way.
        """
        if self.state in UNDER_WAY:
            raise MotionError(f"{self.name} is being played: stop it first")
        self._file, self._pace, self.name = None, None, name
        self.state, self.reason = State.REFUSED, reason

    # --- what it is told -----------------------------------------------------------------------
    def play(self, time: float, measured: ArrayLike, share: float | None = None) -> Motion:
        """Begins: the next step leads from where the joints are.

        Args:
            time: s.
            measured: (k,) rad or m, the layout's joints.
            share: In the place of the options' lead_share.

        Returns:
            The way to the first row.

        Raises:
            MotionError: There is nothing to play, it is under way, or where the joints are is not
                known.
        """
        if self._file is None:
            raise MotionError(self.reason or "no motion is loaded: load one")
        if self.state in UNDER_WAY:
            raise MotionError("it is being played: stop it first, or resume it when it is paused")
        options, first = self._options, self._file.motion.positions[0]
        start = self._start(as_array("measured", measured, (len(self._layout.joints),)))
        way = approach(self._layout, start, first, LEAD_PERIOD, share or options.lead_share)
        self._course = Course(RowPath(way), self._file)
        self._pace = Pace(time + options.horizon, options.stop_time)
        self._pace.change(time + options.horizon, 1.0)
        self._time, self._due = time, time + options.horizon
        self.tracking.clear()
        self.state, self.reason = State.APPROACHING, ""
        return way

    def pause(self) -> None:
        """Slows down along the motion until it stands.

        Raises:
            MotionError: Nothing is being played.
        """
        if self.state not in (State.APPROACHING, State.PLAYING, State.PAUSING):
            raise MotionError(f"nothing is being played: the player is {self.state.name}")
        self._change(self._due, 0.0)
        self.state = State.PAUSING

    def resume(self) -> None:
        """Goes on after a pause.

        Raises:
            MotionError: It is not paused.
        """
        if self.state not in (State.PAUSING, State.PAUSED):
            raise MotionError(f"it is not paused: the player is {self.state.name}")
        self._change(self._due, 1.0)
        self._settle(self._due)

    def stop(self, reason: str) -> None:
        """Slows down along the motion until it stands; then only play() begins anew."""
        if self.state not in UNDER_WAY or self.state is State.STOPPING:
            return
        self._change(self._due, 0.0)
        self.state, self.reason = State.STOPPING, reason
        self._settle(self._due)

    def lost(self, time: float, reason: str) -> None:
        """Nothing has been heard up to a time, s: the robot comes to rest on the tail."""
        self.stop(reason)
        if self.state is State.STOPPING:
            self._settle(time)

    # --- what it does --------------------------------------------------------------------------
    def step(self, time: float, measured: ArrayLike) -> Targets | None:
        """Goes on.

        Args:
            time: s, of the measurement.
            measured: (k,) rad or m, the layout's joints.

        Returns:
            What the joints are to do from now on; None: they stand.
        """
        if self._pace is None:
            return None
        self.tracking.measure(time, as_array("measured", measured, (len(self._layout.joints),)))
        if time < self._time and self.state in UNDER_WAY:
            self._rebase(time)
            return None
        moving = self.state in MOVING
        if moving:
            self._check_gap(time)
        self._catch_up(time)
        self._time, self._due = time, time + self._options.horizon
        if not moving and self.state is not State.PAUSED:
            return None
        self._settle(self._due)
        return self._targets() if moving else None

    def _check_gap(self, time: float) -> None:
        gap, most = time - self._time, self._options.following_error
        if gap > self._options.timeout:
            self.stop(f"joint_states silent for {gap:.2f} s: check its driver")
        elif self.tracking.error > most and self.state in (State.APPROACHING, State.PLAYING):
            self.stop(
                f"{self.tracking.joint} is {self.tracking.error:.2f} rad from its target, "
                f"following_error is {most:.2f}: is it blocked, or is the drive off?"
            )

    def _catch_up(self, time: float) -> None:
        """The drives have followed the tail from when they ran out of news until now."""
        assert self._pace is not None  # noqa: S101 - the caller has looked
        rate = self._pace.goal
        if time > self._due and rate > 0.0:
            self._change(self._due, 0.0)
            self._change(time, rate)

    def _rebase(self, time: float) -> None:
        """The clock has gone back: what was asked for last comes to rest by itself."""
        assert self._pace is not None  # noqa: S101 - the caller has looked
        back = self._time - time
        self._pace, self._time = None, time
        self.state = State.READY
        self.reason = f"the stamps of joint_states went back by {back:.3g} s: play again"

    def _change(self, time: float, rate: float) -> None:
        assert self._pace is not None  # noqa: S101 - it is under way
        if self._pace.goal != rate:
            self._pace.change(time, rate)

    def _settle(self, due: float) -> None:
        """The state at a time."""
        assert self._pace is not None and self._course is not None  # noqa: S101, PT018
        place, at_rest = self._pace.place(due), self._pace.goal == 0.0 and self._pace.steady(due)
        if place >= self._course.length and self.state is not State.STOPPING:
            self.state = State.FINISHED
        elif self.state is State.STOPPING:
            self.state = State.READY if at_rest or place >= self._course.length else State.STOPPING
        elif self._pace.goal == 0.0:
            self.state = State.PAUSED if at_rest else State.PAUSING
        else:
            self.state = State.APPROACHING if place < self._course.lead_length else State.PLAYING

    # --- where it is ---------------------------------------------------------------------------
    @property
    def row(self) -> int:
        """Row that is being played, from 1; 0 before it."""
        place = self._file_time()
        return 0 if self._file is None or place is None else self._file.row(place)

    @property
    def rows(self) -> int:
        """Of the motion; 0 for none."""
        return 0 if self._file is None else self._file.rows

    @property
    def motion_time(self) -> float:
        """Time of the motion, s; NaN when it is not under way."""
        place = self._file_time()
        return float("nan") if place is None else max(place, 0.0)

    @property
    def duration(self) -> float:
        """Of the motion, s; NaN for none."""
        return float("nan") if self._file is None else float(self._file.motion.times[-1])

    @property
    def rate(self) -> float:
        """Pace: 1 as in the file, 0 at rest."""
        return self._pace.rate(self._due) if self._pace and self.state in MOVING else 0.0

    @property
    def driven(self) -> tuple[str, ...]:
        """Names of the joints that the motion drives."""
        return () if self._file is None else self._file.motion.driven

    def _file_time(self) -> float | None:
        if self._pace is None or self._course is None:
            return None
        return self._course.file_time(self._pace.place(self._due))

    def _start(self, measured: Array) -> Array:
        """Where each joint is held; where it is, if it is not held near there."""
        held = np.abs(self._held - measured) < NEAR
        return np.where(held, self._held, measured)

    def _targets(self) -> Targets:
        """The next target, and the tail behind it."""
        assert self._pace is not None and self._course is not None  # noqa: S101, PT018
        assert self._file is not None  # noqa: S101
        due, tail = self._due, self._pace.copy()
        if tail.goal > 0.0:
            tail.change(due, 0.0)
        left = max(tail.settled - due, 0.0)
        times = due + np.linspace(0.0, left, TAIL_POINTS + 1 if left > 0.0 else 1)
        points = [self._course.at(tail.place(t), tail.rate(t)) for t in times.tolist()]
        drive = np.isfinite(self._file.motion.positions[0])
        positions = np.array([position for position, _ in points])
        self._held = np.where(drive, positions[-1], self._held)
        self.tracking.tell(due, np.where(drive, positions[0], np.nan))
        return Targets(
            self._file.motion.driven,
            times - self._time,
            positions[:, drive],
            np.array([velocity for _, velocity in points])[:, drive],
        )
