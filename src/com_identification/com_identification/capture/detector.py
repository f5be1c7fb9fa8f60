"""Finds the intervals in which a robot is stationary, and makes postures of them."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.capture.motion import (
    MotionLimits,
    RunMeans,
    SensorHealth,
    StationaryRun,
    frozen_sensor,
)
from com_identification.capture.slices import NS_PER_S, Issue, SliceStats, Timeline, TimeSlice
from com_identification.exceptions import CaptureRefused, IdentificationError
from com_identification.regression.postures import Posture, make_posture
from com_identification.settings import CaptureOptions
from com_model import Foot, RobotModel
from com_model.arrays import Array

_CONSTANT = 10  # identical readings make a sensor frozen
_MAX_BIAS = 0.2  # fraction of the weight


@dataclass(frozen=True, eq=False)
class StationaryInterval:
    """A stationary interval that has ended, or a mark."""

    t0_ns: int  # stamp of the first reading that counts, ns
    t1_ns: int  # of the last
    posture: Posture | None  # means of its readings; None where it cannot be used
    reasons: tuple[str, ...] = ()  # why not
    label: str = ""  # of the mark


class PostureBuilder:
    """Makes a posture of means of readings, or finds why it cannot be one; weight in N."""

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        options: CaptureOptions,
        weight: float,
        use_effort: bool,
        use_up: bool,
    ) -> None:
        self._model, self._feet, self._options = model, tuple(feet), options
        self._weight, self._use_effort, self._use_up = weight, use_effort, use_up
        self._bias = np.zeros((len(feet), 6))

    def set_bias(self, bias: Array) -> None:
        """Sets what is subtracted from the wrenches, (f, 6) as read."""
        if not np.isfinite(bias).all():
            raise IdentificationError("bias: expected finite numbers")
        self._bias = np.array(bias)

    def posture(self, means: RunMeans, label: str) -> Posture:
        """Makes the posture."""
        n, joints = self._model.n_joints, means.values[0]
        if joints is None:
            raise CaptureRefused(("joint_states has no readings: check its driver.",))
        wrenches = np.full((len(self._feet), 6), np.nan)
        for i, value in enumerate(means.values[1 : 1 + len(self._feet)]):
            if value is not None:
                wrenches[i] = value - self._bias[i]
        up = means.values[-1] if self._use_up else None
        return make_posture(
            self._model,
            joints[:n],
            wrenches,
            joints[n:] if self._use_effort else None,
            None if up is None else up / np.linalg.norm(up),
            samples=means.samples,
            label=label,
        )

    def issues(self, means: RunMeans, contact: bool = True) -> list[Issue]:
        """Why it cannot be a posture: a frozen sensor, or (with `contact`) feet without contact."""
        found = self._frozen(means)
        wrenches = means.values[1 : 1 + len(self._feet)]
        known = [w[:3] for w in wrenches if w is not None]
        if not contact or not self._feet or len(known) < len(self._feet):
            return found
        loads = np.linalg.norm(known - self._bias[:, :3], axis=1).tolist()
        if sum(loads) < self._options.min_load * self._weight:
            text = (
                f"The feet carry {sum(loads):.3g} N together, the robot's weight is "
                f"{self._weight:.4g} N: put it on its feet; if it stands on them, check the unit "
                "of the force sensors."
            )
            found.append(Issue("no contact", text))
        elif self._options.all_feet:
            found += self._in_air(loads)
        return found

    def sensor_bias(self, means: RunMeans, foot: int) -> Array:
        """Bias (6,) of a foot's sensor in the air; CaptureRefused where it carries load."""
        name = self._feet[foot].frame
        value = means.values[1 + foot]
        if value is None:
            raise CaptureRefused(
                (f"The force sensor of {name} has no readings: check its driver.",)
            )
        force = float(np.linalg.norm(value[:3]))
        if force > _MAX_BIAS * self._weight:
            raise CaptureRefused(
                (
                    f"{name} reads {force:.3g} N, more than {_MAX_BIAS:.0%} of the robot's weight: "
                    "lift the foot off the ground to tare it.",
                )
            )
        return np.array(value)

    def _frozen(self, means: RunMeans) -> list[Issue]:
        if not self._options.frozen_time > 0.0 or means.samples < _CONSTANT:
            return []
        names = [f"the force sensor of {foot.frame}" for foot in self._feet]
        names += ["the IMU"] if self._use_up else []
        time = (means.t1_ns - means.t0_ns) / NS_PER_S
        return [
            frozen_sensor(name, time)
            for name, value, constant in zip(
                names, means.values[1:], means.constant[1:], strict=True
            )
            if constant and value is not None and value.any()
        ]

    def _in_air(self, loads: Sequence[float]) -> list[Issue]:
        least = self._options.min_foot_load * self._weight
        return [
            Issue(
                f"{foot.frame} has no contact",
                f"{foot.frame} carries {load:.3g} N, less than {least:.3g} N: put it on the "
                "ground, or allow postures on fewer feet (capture.all_feet: false).",
            )
            for foot, load in zip(self._feet, loads, strict=True)
            if load < least
        ]


_MAX_HISTORY = 40_000  # slices
_MAX_PENDING = 4096  # intervals that finished() has not returned


class StationaryDetector:
    """Joins slices of time to stationary runs, and reports an interval for each run or mark.

    Attributes:
        run: The stationary run that goes on; None while something moves.
        issues: Of the newest slice.
        motion: What ended the previous run; None where nothing moved.
        seconds: Seconds of each cause; "stationary" where nothing was wrong.
    """

    def __init__(
        self,
        options: CaptureOptions,
        timeline: Timeline,
        limits: Sequence[MotionLimits],
        health: SensorHealth,
        builder: PostureBuilder,
    ) -> None:
        self._options, self._timeline, self._limits = options, timeline, limits
        self._health, self._builder = health, builder
        self._finished: deque[StationaryInterval] = deque(maxlen=_MAX_PENDING)
        self._last_q: Array | None = None
        self.seconds: dict[str, float] = {}
        # slices in which all streams have readings, with their numbers; None: not stored
        self.history: list[tuple[int, list[SliceStats]]] | None = None
        self.restart()

    def restart(self) -> None:
        """Drops what was read; intervals that finished() has not returned stay."""
        self._health.restart()
        self.run: StationaryRun | None = None
        self.issues: list[Issue] = []
        self.motion: Issue | None = None
        self._mark: int | None = None
        self._marks_done = 0

    def finished(self) -> list[StationaryInterval]:
        """Returns each interval once."""
        found = list(self._finished)
        self._finished.clear()
        return found

    def mark_captured(self, run: StationaryRun, q: Array, t1_ns: int) -> None:
        """Marks a run as captured on request: it is not reported automatically."""
        run.captured_ns, run.done = t1_ns, True
        self._last_q = q

    def add(self, number: int, parts: TimeSlice, missing: Sequence[Issue]) -> None:
        """Adds the next slice of time: the parts of each stream, None of one without readings."""
        mark = self._timeline.mark_index(number)
        if self._timeline.marks and mark != self._mark:
            self.end()
            self._mark = mark
        if self._timeline.marks and mark is None:
            return
        if self.history is not None and len(self.history) < _MAX_HISTORY:
            known = [part for part in parts if part is not None]
            self.history += [(number, known)] if len(known) == len(parts) else []
        self.issues = [*missing, *self._health.issues(parts[1:])]
        run = self.run or self._new_run()
        motion = run.find_motion(parts)
        self._count(motion)
        if mark is None:
            self._follow(run, parts, motion)
        else:
            run.add(parts, [*self.issues, *([motion] if motion else [])])
            self.run = run

    def end(self) -> None:
        """Ends the run and the mark, and reports their interval."""
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
        elif not run.done and run.time >= self._options.settle_time > 0.0:
            self._emit(run)

    def end_marks(self) -> None:
        """Ends all marks; those without readings are reported as such."""
        self.end()
        self._skip_marks(len(self._timeline.marks))

    def _follow(self, run: StationaryRun, parts: TimeSlice, motion: Issue | None) -> None:
        """Continues the run, or starts a new one."""
        if motion is not None:
            self.end()
            self.motion = motion
            run = self._new_run()
            if run.find_motion(parts) is not None:
                return
        run.add(parts, self.issues)
        self.run = run
        if not run.done and run.samples() >= self._options.max_samples:
            self._emit(run)

    def _new_run(self) -> StationaryRun:
        settle = 0.0 if self._timeline.marks else self._options.settle_time
        return StationaryRun(self._limits, int(settle * NS_PER_S), self._options.max_samples)

    def _skip_marks(self, end: int) -> None:
        for mark in self._timeline.marks[self._marks_done : end]:
            reasons = ("There are no readings in it: check its times.",)
            self._finished.append(
                StationaryInterval(mark.t0_ns, mark.t1_ns, None, reasons, mark.label)
            )

    def _emit(self, run: StationaryRun) -> None:
        """Reports the interval of a run, with a posture or with the reasons why not."""
        interval = self._interval(run, "")
        run.done = True
        if interval.posture is not None:
            q, before = interval.posture.q, self._last_q
            if before is None or np.abs(q - before).max(initial=0.0) >= self._options.min_change:
                self._last_q = q
            else:
                reasons = ("It is the same posture as the one before.",)
                interval = StationaryInterval(interval.t0_ns, interval.t1_ns, None, reasons)
        self._finished.append(interval)

    def _emit_mark(self, run: StationaryRun, index: int) -> None:
        """Reports the interval of a mark; any issue in it makes it unusable."""
        mark = self._timeline.marks[index]
        interval = self._interval(run, mark.label)
        if run.issues:
            reasons = tuple(issue.text for issue in run.issues.values())
            interval = StationaryInterval(mark.t0_ns, mark.t1_ns, None, reasons, mark.label)
        self._finished.append(interval)

    def _interval(self, run: StationaryRun, label: str) -> StationaryInterval:
        needed, count = self._options.samples, run.samples()
        if count < needed:
            reasons = tuple(issue.text for issue in run.issues.values()) or (
                f"Stationary for {run.time:.2f} s: {count} of {needed} readings; stay in each "
                "posture longer, or set capture.samples lower.",
            )
            return StationaryInterval(run.t0_ns, run.t1_ns, None, reasons, label)
        means = run.means()
        reasons = tuple(issue.text for issue in self._builder.issues(means))
        posture = None if reasons else self._builder.posture(means, label)
        return StationaryInterval(means.t0_ns, means.t1_ns, posture, reasons, label)

    def _count(self, motion: Issue | None) -> None:
        found = [*self.issues, *([motion] if motion else [])]
        cause = found[0].cause if found else "stationary"
        self.seconds[cause] = self.seconds.get(cause, 0.0) + self._options.slice_time
