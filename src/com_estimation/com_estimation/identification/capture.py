"""Finds still postures in streams of readings, live or from a recording: one code for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from com_estimation.identification.capture_options import (
    NS_PER_S,
    CaptureOptions,
    CaptureState,
    CaptureStatus,
    Dropped,
    Mark,
    StillInterval,
)
from com_estimation.identification.exceptions import CaptureRefused, IdentificationError
from com_estimation.identification.postures import Posture, SensorNoise
from com_estimation.identification.slices import Stream, Timeline, valid_stamps
from com_estimation.identification.still_finder import StillFinder, silence_of
from com_estimation.identification.still_means import StillMeans
from com_estimation.identification.stillness import Health, Problem, Slices, limits
from com_model import Foot, RobotModel
from com_model.arrays import Array, as_array

_UNIT = 0.01  # how far the length of a direction may be off


class PostureRecorder:
    """Takes streams of readings and gives one posture for each time that the robot is still.

    Streams may come in blocks of any length, each in the order of its stamps. Live, a block is one
    reading; from a recording, blocks of less than options.lag seconds of each stream in turn.
    Memory does not grow with the recording.

    Readings that are late, repeated or not finite are counted and left out. Where a stamp jumps
    back (a recording that is played again), all begins anew.

    Args:
        model: The robot.
        feet: Its feet with their force sensors, in the order of the postures' wrenches.
        options: See CaptureOptions.
        noise: Of one reading of each sensor; the thresholds of motion allow for it.
        use_effort: Whether postures hold joint efforts, where they are known.
        use_up: Whether a direction against gravity is read and needed. Without it the ground is
            taken for level.
        marks: Parts of the recording that are the postures, in order and apart from each other;
            then nothing else is looked at, and no still time is asked for before the first sample.
        gravity: m/s^2.

    Raises:
        IdentificationError: Marks overlap or are out of order.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        options: CaptureOptions | None = None,
        *,
        noise: SensorNoise | None = None,
        use_effort: bool = True,
        use_up: bool = False,
        marks: Sequence[Mark] = (),
        gravity: float = 9.81,
    ) -> None:
        self.model, self.feet = model, tuple(feet)
        self.options = options = options or CaptureOptions()
        weight = model.mass * gravity
        self._timeline = Timeline(int(options.slice_time * NS_PER_S), marks)
        self._means = StillMeans(model, feet, options, weight, use_effort, use_up)
        channels = limits(model, feet, options, noise or SensorNoise(), weight, use_up)
        health = Health(feet, options, use_up)
        self._finder = StillFinder(
            options, self._timeline, channels, health, self._means, len(self.feet)
        )
        names = ["joint_states", *(f"the force sensor of {foot.frame}" for foot in feet)]
        names += ["the IMU"] if use_up else []
        needed = [model.n_joints, *(6 for _ in feet), *([3] if use_up else [])]
        self._streams = [
            Stream(name, limit.channels, count, self._timeline)
            for name, limit, count in zip(names, channels, needed, strict=True)
        ]
        self._use_up = use_up
        self._restarts = self._unusable = 0
        self._lag_ns = int(options.lag * NS_PER_S)
        self._next: int | None = None

    @property
    def dropped(self) -> Dropped:
        """Readings that were left out so far."""
        streams = self._streams
        return Dropped(
            late=sum(stream.late for stream in streams),
            repeated=sum(stream.repeated for stream in streams),
            unusable=sum(stream.unusable for stream in streams) + self._unusable,
            restarts=self._restarts,
        )

    @property
    def tally(self) -> Mapping[str, float]:
        """Seconds by what they were good for: "at rest", or the cause why not."""
        return dict(self._finder.tally)

    def add_joints(self, t_ns: ArrayLike, Q: ArrayLike, effort: ArrayLike | None = None) -> None:
        """Takes joint states.

        Args:
            t_ns: (N,) stamps, ns.
            Q: (N, n) rad or m, in the order of the model's joints; rows with NaN are left out.
            effort: (N, n) N m or N; NaN where not known; None: all unknown.

        Raises:
            ShapeError: An array has the wrong shape.
        """
        Q = as_array("Q", Q, (None, self.model.n_joints))
        if effort is None:
            effort = np.full(Q.shape, np.nan)
        effort = as_array("effort", effort, (len(Q), self.model.n_joints))
        self._add(self._streams[0], t_ns, np.hstack((Q, effort)))

    def add_wrenches(self, foot: int, t_ns: ArrayLike, W: ArrayLike) -> None:
        """Takes readings of a foot's force sensor, in its frame and with its sign.

        Args:
            foot: Index of the foot.
            t_ns: (N,) stamps, ns.
            W: (N, 6) force N and moment N m.

        Raises:
            ShapeError: An array has the wrong shape.
        """
        if not 0 <= foot < len(self.feet):
            raise IdentificationError(f"foot {foot}: expected 0 to {len(self.feet) - 1}")
        self._add(self._streams[1 + foot], t_ns, as_array("W", W, (None, 6)))

    def add_up(self, t_ns: ArrayLike, up: ArrayLike) -> None:
        """Takes directions against gravity; without use_up they are not looked at.

        Args:
            t_ns: (N,) stamps, ns.
            up: (N, 3) unit vectors, root axes.

        Raises:
            ShapeError: An array has the wrong shape.
        """
        up = as_array("up", up, (None, 3))
        if not self._use_up:
            return
        with np.errstate(invalid="ignore", over="ignore"):
            unit = np.abs(np.linalg.norm(up, axis=1) - 1.0) < _UNIT
        self._add(self._streams[-1], t_ns, np.where(unit[:, None], up, np.nan))

    def set_tare(self, offsets: ArrayLike) -> None:
        """Sets what is taken off the wrenches of postures from now on, (f, 6) as read.

        Raises:
            ShapeError: It has the wrong shape.
            IdentificationError: It is not finite.
        """
        self._means.set_tare(as_array("offsets", offsets, (len(self.feet), 6)))

    def state(self, now_ns: int | None = None) -> CaptureState:
        """Tells what can be taken now and why not.

        Args:
            now_ns: The time, where it goes on without readings; else that of the newest reading.
        """
        status, reasons = self._judge_state(now_ns)
        run = self._finder.run
        return CaptureState(
            status=status,
            reasons=reasons,
            samples=run.samples(run.captured_ns) if run else 0,
            needed=self.options.samples,
            still_for=run.time if run else 0.0,
            loads=self._finder.loads,
            dropped=self.dropped,
        )

    def capture(
        self, label: str = "", samples: int | None = None, now_ns: int | None = None
    ) -> Posture:
        """Takes a posture of the newest readings; the next one needs new readings.

        Args:
            label: A name for it.
            samples: How many readings of each stream at least; options.samples by default.
            now_ns: As for state().

        Raises:
            CaptureRefused: With the reasons of state().
        """
        status, reasons = self._judge_state(now_ns, samples)
        run = self._finder.run
        if status != CaptureStatus.READY or run is None:
            raise CaptureRefused(reasons)
        means = run.means(run.captured_ns)
        posture = self._means.posture(means, label)
        self._finder.captured(run, posture.q, means.t1_ns)
        return posture

    def latest(self, samples: int | None = None, now_ns: int | None = None) -> Posture | None:
        """Means of the newest readings like capture(), but nothing is taken; None where refused."""
        status, _ = self._judge_state(now_ns, samples, after_ns=-1)
        run = self._finder.run
        if status != CaptureStatus.READY or run is None:
            return None
        return self._means.posture(run.means(), "")

    def unloaded_wrench(
        self, foot: int, samples: int | None = None, now_ns: int | None = None
    ) -> Array:
        """Averages a foot's sensor while the foot hangs still in the air: its offset (6,) as read.

        Raises:
            CaptureRefused: The robot is not still, or the foot carries load.
        """
        status, reasons = self._judge_state(now_ns, samples, after_ns=-1, contact=False)
        run = self._finder.run
        if status != CaptureStatus.READY or run is None:
            raise CaptureRefused(reasons)
        return self._means.unloaded(run.means(), foot)

    def finished(self) -> list[StillInterval]:
        """Gives each still interval that has ended or has most_samples, once, in order.

        Intervals that gave no posture stand among them with the reasons.
        """
        return self._finder.finished()

    def flush(self) -> list[StillInterval]:
        """Ends the streams and gives the intervals that are left."""
        numbers = [stream.number for stream in self._streams if stream.last_ns is not None]
        if numbers:
            self._judge_until(max(numbers) + 1)
        self._finder.end_marks()
        self._forget()
        return self.finished()

    def _add(self, stream: Stream, t_ns: ArrayLike, values: Array) -> None:
        t = np.asarray(t_ns, dtype=np.int64).reshape(-1)
        if len(t) == len(values) == 1 and stream.add_next(int(t[0]), values[0]):
            return
        if len(t) != len(values):
            raise IdentificationError(f"{stream.name}: {len(t)} stamps for {len(values)} readings")
        good = valid_stamps(t)
        if not good.all():
            self._unusable += int(np.sum(~good))
            t, values = t[good], values[good]
        longest = int(self.options.jump_back * NS_PER_S)
        while len(t):
            cut = stream.jump(t, longest)
            stream.add(t[:cut], values[:cut], self._next or 0)
            if cut < len(t):
                self._restart()
            t, values = t[cut:], values[cut:]
        self._advance()

    def _restart(self) -> None:
        self._restarts += 1
        self._finder.end()
        self._forget()

    def _forget(self) -> None:
        for stream in self._streams:
            stream.restart()
        self._finder.restart()
        self._next = None

    def _advance(self) -> None:
        """Judges the slices that all streams are done with, or that are too long ago."""
        done = min(stream.number for stream in self._streams)  # -1 where one was never heard
        stamps = [stream.last_ns or 0 for stream in self._streams]
        past = max(stamps) - self._lag_ns
        if past > min(stamps):
            done = max(done, self._timeline.number_one(past))
        if self._next is None or self._next < done:
            self._judge_until(done)

    def _judge_until(self, end: int) -> None:
        """Judges the slices before one; of empty ones in a row the first only."""
        while True:
            kept = [k for k in (stream.first_number() for stream in self._streams) if k is not None]
            number = min(kept, default=end) if self._next is None else self._next
            if number >= end:
                return
            parts = [stream.take(number) for stream in self._streams]
            self._finder.judge(number, parts, self._silence(parts))
            self._next = max(number + 1, min(min(kept, default=end), end))

    def _silence(self, parts: Slices) -> list[Problem]:
        """Which streams said nothing of use in a slice of time."""
        found = []
        for i, (stream, part) in enumerate(zip(self._streams, parts, strict=True)):
            is_foot = 1 <= i <= len(self.feet)
            if part is None and not (is_foot and self.options.silent_feet):
                found.append(silence_of(stream))
        return found

    def _judge_state(
        self,
        now_ns: int | None = None,
        samples: int | None = None,
        after_ns: int | None = None,
        contact: bool = True,
    ) -> tuple[CaptureStatus, tuple[str, ...]]:
        heard = [stream.last_ns for stream in self._streams if stream.last_ns is not None]
        if not heard:
            return CaptureStatus.UNKNOWN, ("Nothing was read yet: start the robot's drivers.",)
        silent = self._silent_now(max(heard) if now_ns is None else now_ns)
        if silent:
            return CaptureStatus.WAITING, silent
        finder, run = self._finder, self._finder.run
        if run is None or (finder.motion is not None and run.time < 2.0 * self.options.slice_time):
            text = finder.motion.text if finder.motion else "Nothing was seen at rest yet."
            return CaptureStatus.MOVING, (text,)
        if finder.problems:
            return CaptureStatus.REFUSED, tuple(problem.text for problem in finder.problems)
        if not run.settled:
            time = f"{run.time:.2f} s of {self.options.still_time:g} s"
            return CaptureStatus.SETTLING, (f"At rest for {time}: hold still.",)
        needed = self.options.samples if samples is None else samples
        after_ns = run.captured_ns if after_ns is None else after_ns
        count = run.samples(after_ns)
        if count < max(1, needed):
            return CaptureStatus.GATHERING, (f"{count} of {needed} readings: hold still.",)
        problems = self._means.problems(run.means(after_ns), contact)
        if problems:
            return CaptureStatus.REFUSED, tuple(problem.text for problem in problems)
        return CaptureStatus.READY, ()

    def _silent_now(self, now_ns: int) -> tuple[str, ...]:
        found = []
        for i, stream in enumerate(self._streams):
            if 1 <= i <= len(self.feet) and self.options.silent_feet:
                continue
            if stream.last_ns is None:
                found.append(silence_of(stream).text)
            elif (now_ns - stream.last_ns) / NS_PER_S > self.options.timeout:
                time = (now_ns - stream.last_ns) / NS_PER_S
                found.append(
                    f"{stream.name} is silent for {time:.2f} s: check its driver and its topic."
                )
        return tuple(found)
