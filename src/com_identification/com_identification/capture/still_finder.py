"""Finds the times in which a robot is at rest, slice by slice."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from com_identification.capture.capture_options import NS_PER_S, CaptureOptions, StillInterval
from com_identification.capture.slices import Timeline
from com_identification.capture.still_means import StillMeans
from com_identification.capture.still_run import StillRun
from com_identification.capture.stillness import Health, Limits, Problem, Slices
from com_model.arrays import Array

_MOST_WAITING = 4096  # intervals that nobody has asked for yet


class StillFinder:
    """Joins slices of time to runs at rest, and gives an interval for each run or mark.

    Args:
        options: When a robot is still.
        timeline: Of the slices, with the marks.
        limits: Of each stream.
        health: Of the sensors.
        means: Makes postures.
        feet: How many feet there are: the streams after the first.

    Attributes:
        run: The run at rest that goes on; None while something moves.
        problems: What was wrong with the newest slice.
        motion: What ended the run before; None where nothing moved.
        loads: (f,) N, of the feet in the newest slice; NaN where not known.
        tally: Seconds by what they were good for.
    """

    def __init__(
        self,
        options: CaptureOptions,
        timeline: Timeline,
        limits: Sequence[Limits],
        health: Health,
        means: StillMeans,
        feet: int,
    ) -> None:
        self._options, self._timeline, self._limits = options, timeline, limits
        self._health, self._means, self._feet = health, means, feet
        self._finished: deque[StillInterval] = deque(maxlen=_MOST_WAITING)
        self._last_q: Array | None = None
        self.tally: dict[str, float] = {}
        self.restart()

    def restart(self) -> None:
        """Forgets what was read; intervals that nobody has asked for stay."""
        self._health.restart()
        self.run: StillRun | None = None
        self.problems: list[Problem] = []
        self.motion: Problem | None = None
        self.loads: Array = np.full(self._feet, np.nan)
        self._mark: int | None = None
        self._marks_done = 0

    def finished(self) -> list[StillInterval]:
        """Gives each interval once."""
        found = list(self._finished)
        self._finished.clear()
        return found

    def captured(self, run: StillRun, q: Array, t1_ns: int) -> None:
        """Notes that a posture was captured by hand: the run gives no other by itself."""
        run.captured_ns, run.taken = t1_ns, True
        self._last_q = q

    def judge(self, number: int, parts: Slices, silence: Sequence[Problem]) -> None:
        """Takes the next slice of time.

        Args:
            number: Of the slice.
            parts: The readings of each stream; None of one that said nothing.
            silence: What is wrong about that.
        """
        mark = self._timeline.mark_of(number)
        if self._timeline.marks and mark != self._mark:
            self.end()
            self._mark = mark
        if self._timeline.marks and mark is None:
            return
        for i, part in enumerate(parts[1 : 1 + self._feet]):
            self.loads[i] = self._means.load(i, part.mean) if part else np.nan
        self.problems = [*silence, *self._health.problems(parts[1:])]
        run = self.run or self._new_run()
        motion = run.moved(parts)
        self._count(motion)
        if mark is None:
            self._follow(run, parts, motion)
        else:
            self._follow_mark(run, parts, motion)

    def end(self) -> None:
        """Ends the run and the mark, and gives their interval where it has not been given."""
        run, self.run = self.run, None
        mark, self._mark = self._mark, None
        if mark is not None:
            self._skip_marks(mark)
            self._marks_done = mark + 1
        if run is None:
            return
        if mark is not None:
            run.commit()
            self._emit_mark(run, mark)
        elif not run.taken and run.time >= self._options.still_time > 0.0:
            self._emit(run)

    def end_marks(self) -> None:
        """Says of all marks that are left that nothing was read in them."""
        self.end()
        self._skip_marks(len(self._timeline.marks))

    def _follow(self, run: StillRun, parts: Slices, motion: Problem | None) -> None:
        """Goes on with the run, or begins anew."""
        if motion is not None:
            self.end()
            self.motion = motion
            run = self._new_run()
            if run.moved(parts) is not None:
                return
        run.add(parts, self.problems)
        self.run = run
        if not run.taken and run.samples() >= self._options.most_samples:
            self._emit(run)

    def _follow_mark(self, run: StillRun, parts: Slices, motion: Problem | None) -> None:
        run.add(parts, [*self.problems, *([motion] if motion else [])])
        self.run = run

    def _new_run(self) -> StillRun:
        settle = 0.0 if self._timeline.marks else self._options.still_time
        return StillRun(self._limits, int(settle * NS_PER_S), self._options.most_samples)

    def _skip_marks(self, end: int) -> None:
        for mark in self._timeline.marks[self._marks_done : end]:
            reasons = ("There are no readings in it: check its times.",)
            self._finished.append(StillInterval(mark.t0_ns, mark.t1_ns, None, reasons, mark.label))

    def _emit(self, run: StillRun) -> None:
        """Gives the interval of a run, with a posture or with the reasons why not."""
        interval = self._interval(run, "")
        run.taken = True
        if interval.posture is not None and self._alike(interval.posture.q):
            reasons = ("It is the posture before it.",)
            interval = StillInterval(interval.t0_ns, interval.t1_ns, None, reasons)
        if interval.posture is not None:
            self._last_q = interval.posture.q
        self._finished.append(interval)

    def _alike(self, q: Array) -> bool:
        if self._last_q is None:
            return False
        return bool(np.abs(q - self._last_q).max(initial=0.0) < self._options.least_change)

    def _emit_mark(self, run: StillRun, index: int) -> None:
        """Gives the interval of a mark; whatever was wrong anywhere in it spoils it."""
        mark = self._timeline.marks[index]
        interval = self._interval(run, mark.label)
        if run.problems:
            reasons = tuple(problem.text for problem in run.problems.values())
            interval = StillInterval(mark.t0_ns, mark.t1_ns, None, reasons, mark.label)
        self._finished.append(interval)

    def _interval(self, run: StillRun, label: str) -> StillInterval:
        needed, count = self._options.samples, run.samples()
        if count < needed:
            reasons = tuple(problem.text for problem in run.problems.values()) or (
                f"At rest for {run.time:.2f} s: {count} of {needed} readings; hold each posture "
                "longer, or ask for fewer samples.",
            )
            return StillInterval(run.t0_ns, run.t1_ns, None, reasons, label)
        means = run.means()
        reasons = tuple(problem.text for problem in self._means.problems(means))
        posture = None if reasons else self._means.posture(means, label)
        return StillInterval(means.t0_ns, means.t1_ns, posture, reasons, label)

    def _count(self, motion: Problem | None) -> None:
        found = [*self.problems, *([motion] if motion else [])]
        cause = found[0].cause if found else "at rest"
        self.tally[cause] = self.tally.get(cause, 0.0) + self._options.slice_time
