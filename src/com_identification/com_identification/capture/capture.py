"""Finds still postures in streams of readings, live or from a recording: one code for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from com_identification.capture.capture_options import (
    NS_PER_S,
    CaptureOptions,
    CaptureState,
    CaptureStatus,
    Dropped,
    Mark,
    StillInterval,
)
from com_identification.capture.slices import Timeline, usable_numbers
from com_identification.capture.still_finder import StillFinder
from com_identification.capture.still_means import StillMeans
from com_identification.capture.stillness import Health, limits
from com_identification.capture.stream_set import StreamSet
from com_identification.exceptions import CaptureRefused, IdentificationError
from com_identification.regression.postures import Posture, SensorNoise
from com_model import Foot, RobotModel
from com_model.arrays import Array, as_array
from com_model.dynamics import GRAVITY

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
        gravity: float = GRAVITY,
    ) -> None:
        self.model, self.feet = model, tuple(feet)
        self.options = options = options or CaptureOptions()
        weight = model.mass * gravity
        timeline = Timeline(int(options.slice_time * NS_PER_S), marks)
        self._means = StillMeans(model, feet, options, weight, use_effort, use_up)
        channels = limits(model, feet, options, noise or SensorNoise(), weight, use_up)
        health = Health(feet, options, use_up)
        self._finder = StillFinder(options, timeline, channels, health, self._means, len(self.feet))
        names = ["joint_states", *(f"the force sensor of {foot.frame}" for foot in feet)]
        names += ["the IMU"] if use_up else []
        needed = [model.n_joints, *(6 for _ in feet), *([3] if use_up else [])]
        self._streams = StreamSet(
            names, channels, needed, len(self.feet), timeline, self._finder, options
        )
        self._use_up = use_up

    @property
    def dropped(self) -> Dropped:
        """Readings that were left out so far."""
        return self._streams.dropped

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
        known = np.where(usable_numbers(effort), effort, np.nan)
        self._streams.add(0, t_ns, np.hstack((Q, known)))

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
        self._streams.add(1 + foot, t_ns, as_array("W", W, (None, 6)))

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
        self._streams.add(-1, t_ns, np.where(unit[:, None], up, np.nan))

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

        Intervals that gave no posture stand among them with the reasons. A run that was captured
        by hand gives none; capture() gives readings again that stand here, unless kept() was
        called.
        """
        return self._finder.finished()

    def kept(self, interval: StillInterval) -> None:
        """Notes that an interval's posture was kept: capture() takes newer readings only."""
        run = self._finder.run
        if run is not None:
            run.captured_ns = max(run.captured_ns, interval.t1_ns)

    def flush(self) -> list[StillInterval]:
        """Ends the streams and gives the intervals that are left."""
        self._streams.flush()
        return self.finished()

    def _judge_state(
        self,
        now_ns: int | None = None,
        samples: int | None = None,
        after_ns: int | None = None,
        contact: bool = True,
    ) -> tuple[CaptureStatus, tuple[str, ...]]:
        newest = self._streams.newest_ns
        if newest is None:
            return CaptureStatus.UNKNOWN, ("Nothing was read yet: start the robot's drivers.",)
        silent = self._streams.silent(newest if now_ns is None else now_ns)
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
            return CaptureStatus.COLLECTING, (f"{count} of {needed} readings: hold still.",)
        problems = self._means.problems(run.means(after_ns), contact)
        if problems:
            return CaptureStatus.REFUSED, tuple(problem.text for problem in problems)
        return CaptureStatus.READY, ()
