"""Finds the intervals in which a robot is stationary, and makes postures of them."""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from com_bags.streams import Times
from com_identification.capture.streams import (
    NS_PER_S,
    Band,
    ReadingTimeline,
    SliceStats,
    StreamIssue,
    StreamSpec,
    TimeSlice,
    fewest,
    frozen_sensor,
    join,
    span_ns,
)
from com_identification.exceptions import CaptureRefused
from com_identification.regression.postures import ComConstraint, Posture, make_posture
from com_identification.settings import CaptureOptions, IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array


@dataclass(frozen=True, eq=False)
class StationaryInterval:
    """A stationary interval that has ended, or a mark.

    Attributes:
        t0_ns: ns, stamp of the first reading that is used.
        t1_ns: ns, stamp of the last.
        posture: means of its readings; None where it cannot be used.
        reasons: why it cannot be used.
        label: of the mark.
    """

    t0_ns: int
    t1_ns: int
    posture: Posture | None
    reasons: tuple[str, ...] = ()
    label: str = ""


class StationaryRun:
    """Consecutive slices of time in which nothing moved.

    Args:
        streams: what the readings of each stream are.
        settle_ns: ns, how long the run must last before a slice is used.
        slice_ns: ns, length of a slice.
        max_slices: number of slices that are used, the newest.

    Attributes:
        t0_ns, t1_ns: ns, stamps of the first and the last reading; -1 before.
        issues: by cause, the first of each.
        done: whether its interval was reported.
        captured_ns: ns, stamp up to which readings were captured.
    """

    def __init__(
        self,
        streams: Sequence[StreamSpec],
        settle_ns: int,
        slice_ns: int,
        max_slices: int,
    ) -> None:
        self._specs, self._settle_ns, self._slice_ns = streams, settle_ns, slice_ns
        nothing = np.array(np.inf), np.array(-np.inf), 2**62
        self._bands: list[Band] = [nothing] * len(streams)
        self._window: deque[TimeSlice] = deque(maxlen=max_slices)
        self._newest: TimeSlice | None = None
        self._clean_ns: int | None = None
        self.t0_ns = self.t1_ns = -1
        self.issues: dict[str, StreamIssue] = {}
        self.done = False
        self.captured_ns = -1

    @property
    def time(self) -> float:
        """How long it has lasted, s."""
        return (self.t1_ns - self.t0_ns) / NS_PER_S

    @property
    def settled(self) -> bool:
        """Whether it has lasted long enough for readings to be used."""
        clean = self._clean_ns
        return clean is not None and self.t1_ns - clean >= self._settle_ns

    @property
    def complete(self) -> bool:
        """Whether as many slices as possible are used."""
        return len(self._window) == self._window.maxlen

    def find_motion(self, parts: TimeSlice) -> StreamIssue | None:
        """Returns motion within the next slice, or since the first one; None for none.

        Args:
            parts: statistics of each stream in the slice.
        """
        triples = zip(self._specs, self._bands, parts, strict=True)
        found = (
            spec.find_motion(part, _widened(band, part)) for spec, band, part in triples
        )
        return next((issue for issue in found if issue is not None), None)

    def add(self, parts: TimeSlice, issues: Sequence[StreamIssue]) -> None:
        """Adds the next slice, in which nothing moved.

        Args:
            parts: statistics of each stream in the slice.
            issues: why the slice cannot be used; empty: it can.
        """
        if not any(part.count for part in parts):
            self.reject(issues)
            return
        first, last = span_ns(parts)
        self.t0_ns, self.t1_ns = (first if self.t1_ns < 0 else self.t0_ns), last
        self._bands = [_widened(*pair) for pair in zip(self._bands, parts, strict=True)]
        if issues:
            self.reject(issues)
            return
        self._clean_ns = first if self._clean_ns is None else self._clean_ns
        self.commit()
        if first - self._clean_ns >= self._settle_ns:
            self._newest = parts

    def reject(self, issues: Sequence[StreamIssue]) -> None:
        """Stores the issues of a slice; the slices before it are no longer used.

        Args:
            issues: of the slice.
        """
        for issue in issues:
            if len(self.issues) < 8:
                self.issues.setdefault(issue.cause, issue)
        self._clean_ns = self._newest = None
        self._window.clear()

    def commit(self) -> None:
        """Accepts the newest slice, as the robot was stationary after it too."""
        if self._newest is not None:
            self._window.append(self._newest)
            self._newest = None

    def seconds(self, after_ns: int = -1) -> float:
        """Returns the length of the readings that are used, s.

        Args:
            after_ns: ns, only readings newer than this stamp.
        """
        return len(list(self._after(after_ns))) * self._slice_ns / NS_PER_S

    def readings(self, after_ns: int = -1) -> TimeSlice:
        """Returns the statistics of each stream over the slices that are used.

        Args:
            after_ns: ns, only readings newer than this stamp.
        """
        return join(list(self._after(after_ns)))

    def _after(self, after_ns: int) -> Iterator[TimeSlice]:
        for parts in self._window:
            if all(part.first_ns > after_ns for part in parts):
                yield parts


def _widened(band: Band, part: SliceStats) -> Band:
    (low, high, least), mean = band, part.mean
    return np.fmin(low, mean), np.fmax(high, mean), min(least, part.count or least)


class PostureBuilder:
    """Makes a posture of readings, or finds why they cannot be one.

    Args:
        model: the robot.
        feet: its f feet with force sensors.
        settings: the sections capture, fit and noise are used.
        streams: what the readings of each stream are.

    Attributes:
        bias: (f, 6) N and N m, subtracted from the wrenches as read.
        known_com: positions of the CoM by another source.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        settings: IdentificationSettings,
        streams: Sequence[StreamSpec],
    ) -> None:
        self._model, self._feet, self._options = model, tuple(feet), settings.capture
        self._fit, self._streams = settings.fit, tuple(streams)
        self._weight = model.mass * settings.fit.gravity  # N
        self.bias = np.zeros((len(feet), 6))  # subtracted from the wrenches, as read
        self.known_com = KnownCom(settings.noise.known_com)

    def posture(
        self, readings: TimeSlice, label: str, since_ns: int, until_ns: int
    ) -> Posture:
        """Makes a posture of readings.

        Args:
            readings: statistics of each stream.
            label: name of the posture.
            since_ns: ns, stamp from which positions of a known CoM are used.
            until_ns: ns, stamp until which they are used.
        """
        q, effort = np.split(readings[0].mean, 2)
        up = readings[-1].mean
        return make_posture(
            self._model,
            q,
            self._wrenches(readings) - self.bias,
            effort if self._fit.use_effort else None,
            up / np.linalg.norm(up) if self._fit.use_imu else None,
            self.known_com.between(since_ns, until_ns),
            samples=fewest(readings),
            label=label,
        )

    def _wrenches(self, readings: TimeSlice) -> Array:
        """(f, 6) as read."""
        values = [part.mean for part in readings[1 : 1 + len(self._feet)]]
        return np.reshape(values, (len(self._feet), 6))

    def issues(self, readings: TimeSlice, contact: bool = True) -> list[str]:
        """Returns why readings cannot be a posture: a frozen sensor, or feet without contact.

        Args:
            readings: statistics of each stream.
            contact: whether feet must be in contact.
        """
        found, forces = (
            self._frozen(readings),
            (self._wrenches(readings) - self.bias)[:, :3],
        )
        if not contact or not self._feet or not np.isfinite(forces).all():
            return found
        loads = np.linalg.norm(forces, axis=1).tolist()
        if sum(loads) < self._options.min_load * self._weight:
            found.append(
                f"The feet carry {sum(loads):.3g} N together, the robot's weight is "
                f"{self._weight:.4g} N: put it on its feet; if it stands on them, check the unit "
                "of the force sensors."
            )
        elif self._options.all_feet:
            least = self._options.min_foot_load * self._weight
            found += [
                f"{foot.frame} carries {load:.3g} N, less than {least:.3g} N: put it on the "
                "ground, or allow postures on fewer feet (capture.all_feet: false)."
                for foot, load in zip(self._feet, loads, strict=True)
                if load < least
            ]
        return found

    def sensor_bias(self, readings: TimeSlice, foot: int) -> Array:
        """Returns the bias (6,) N and N m, as read, of the sensor of a foot in the air.

        Args:
            readings: statistics of each stream.
            foot: its index.

        Raises:
            CaptureRefused: the sensor has no readings, or carries more than a fifth of the
                weight.
        """
        name = self._feet[foot].frame
        value = readings[1 + foot].mean
        if not np.isfinite(value).all():
            raise CaptureRefused(
                f"The force sensor of {name} has no readings: check its driver."
            )
        force = float(np.linalg.norm(value[:3]))
        most = 0.2  # fraction of the weight
        if force > most * self._weight:
            raise CaptureRefused(
                f"{name} reads {force:.3g} N, more than {most:.0%} of the robot's weight: "
                "lift the foot off the ground to tare it."
            )
        return np.array(value)

    def _frozen(self, readings: TimeSlice) -> list[str]:
        t0_ns, t1_ns = span_ns(readings)
        # ten identical readings make a sensor frozen
        if fewest(readings) < 10:
            return []
        return [
            frozen_sensor(spec.name, (t1_ns - t0_ns) / NS_PER_S).text
            for spec, part in zip(self._streams, readings, strict=True)
            if np.isfinite(spec.frozen_time)
            and part.low.any()
            and (part.low == part.high).all()
        ]


class StationaryDetector:
    """Joins slices of time to stationary runs, and reports an interval for each run or mark.

    Args:
        options: thresholds and times.
        timeline: numbers the slices, with marks if any.
        streams: what the readings of each stream are.
        builder: makes the postures.

    Attributes:
        run: the current stationary run; None while something moves.
        issues: of the newest slice.
        motion: what ended the previous run; None where nothing moved.
        finished: the intervals that have not been fetched yet.
        seconds: seconds by cause; "stationary" where nothing was wrong.
        history: slices in which all streams have readings, with their numbers; None: not stored.
    """

    def __init__(
        self,
        options: CaptureOptions,
        timeline: ReadingTimeline,
        streams: Sequence[StreamSpec],
        builder: PostureBuilder,
    ) -> None:
        self._options, self._timeline, self._streams = options, timeline, streams
        self._builder = builder
        # intervals that nobody fetches are dropped, the oldest first
        self.finished: deque[StationaryInterval] = deque(maxlen=4096)
        self._last_q: Array | None = None
        self.seconds: defaultdict[str, float] = defaultdict(float)
        # slices in which all streams have readings, with their numbers; None: not stored
        self.history: list[tuple[int, TimeSlice]] | None = None
        self.restart()

    def restart(self) -> None:
        """Drops the current run, mark and issues; finished intervals stay."""
        self.run: StationaryRun | None = None
        self.issues: list[StreamIssue] = []
        self.motion: StreamIssue | None = None
        self._mark: int | None = None
        self._marks_done = 0

    def mark_captured(self, run: StationaryRun, q: Array, t1_ns: int) -> None:
        """Marks a run as captured on request, so that it is not reported automatically.

        Args:
            run: the stationary run.
            q: (n,) rad or m, of the posture that was captured.
            t1_ns: ns, stamp of its newest reading.
        """
        run.captured_ns, run.done = t1_ns, True
        self._last_q = q

    def add(self, number: int, parts: TimeSlice, issues: list[StreamIssue]) -> None:
        """Adds the next slice of time.

        Args:
            number: of the slice.
            parts: statistics of each stream in the slice.
            issues: why the slice cannot be used; empty: it can.
        """
        mark = self._timeline.mark_index(number)
        if self._timeline.marks and mark != self._mark:
            self.end()
            self._mark = mark
        if self._timeline.marks and mark is None:
            return
        if self.history is not None and len(self.history) < 40_000:
            self.history += (
                [(number, parts)] if all(part.count for part in parts) else []
            )
        self.issues = issues
        run = self.run or self._new_run()
        motion = run.find_motion(parts)
        found = [*issues, *([motion] if motion else [])]
        self.seconds[found[0].cause if found else "stationary"] += (
            self._options.slice_time
        )
        if mark is None:
            self._follow(run, parts, motion)
        else:
            run.add(parts, found)
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
            own = self._timeline.marks[mark]
            interval = self._interval(run, own.label)
            if run.issues:  # any makes it unusable
                reasons = tuple(issue.text for issue in run.issues.values())
                interval = StationaryInterval(
                    own.t0_ns, own.t1_ns, None, reasons, own.label
                )
            self.finished.append(interval)
        elif not run.done and run.time >= self._options.settle_time > 0.0:
            self._emit(run)

    def end_marks(self) -> None:
        """Ends all marks; those without readings are reported as unusable."""
        self.end()
        self._skip_marks(len(self._timeline.marks))

    def _follow(
        self, run: StationaryRun, parts: TimeSlice, motion: StreamIssue | None
    ) -> None:
        """Continues the run, or starts a new one."""
        if motion is not None:
            self.end()
            self.motion = motion
            run = self._new_run()
            if run.find_motion(parts) is not None:
                return
        run.add(parts, self.issues)
        self.run = run
        if not run.done and run.complete:
            self._emit(run)

    def _new_run(self) -> StationaryRun:
        settle = 0.0 if self._timeline.marks else self._options.settle_time
        return StationaryRun(
            self._streams,
            int(settle * NS_PER_S),
            self._timeline.slice_ns,
            max(1, round(self._options.max_time / self._options.slice_time)),
        )

    def _skip_marks(self, end: int) -> None:
        for mark in self._timeline.marks[self._marks_done : end]:
            reasons = ("There are no readings in it: check its times.",)
            self.finished.append(
                StationaryInterval(mark.t0_ns, mark.t1_ns, None, reasons, mark.label)
            )

    def _emit(self, run: StationaryRun) -> None:
        """Reports the interval of a run, with a posture or with the reasons why not."""
        interval = self._interval(run, "")
        run.done = True
        if interval.posture is not None:
            q, before = interval.posture.q, self._last_q
            if (
                before is None
                or np.abs(q - before).max(initial=0.0) >= self._options.min_change
            ):
                self._last_q = q
            else:
                reasons = ("It is the same posture as the one before.",)
                interval = replace(interval, posture=None, reasons=reasons)
        self.finished.append(interval)

    def _interval(self, run: StationaryRun, label: str) -> StationaryInterval:
        needed, time = self._options.collect_time, run.seconds()
        if not time or time < needed:
            reasons = tuple(issue.text for issue in run.issues.values()) or (
                f"Stationary for {run.time:.2f} s: readings of {time:.2g} s of {needed:g} s; stay "
                "in each posture longer, or set capture.collect_time lower.",
            )
            return StationaryInterval(run.t0_ns, run.t1_ns, None, reasons, label)
        readings = run.readings()
        reasons = tuple(self._builder.issues(readings))
        times = run.t0_ns, run.t1_ns
        posture = None if reasons else self._builder.posture(readings, label, *times)
        return StationaryInterval(*span_ns(readings), posture, reasons, label)


class KnownCom:
    """Positions of the CoM by another source; those of a posture become constraints on it.

    With them [Muscolo]'s second formulation identifies links without forces. The newest 100 000
    positions are stored.

    Args:
        std: m, standard deviation of each component.
    """

    def __init__(self, std: float) -> None:
        self.std = std
        self._readings: deque[tuple[int, str, Array]] = deque(maxlen=100_000)

    def add(self, t_ns: Times, link: str, points: Array) -> None:
        """Adds N positions.

        Args:
            t_ns: (N,) ns, stamps.
            link: name of the link in whose frame the positions are.
            points: (N, 3) m, NaN where not known.
        """
        for time, point in zip(t_ns.tolist(), points, strict=True):
            self._readings.append((time, link, point))

    def between(self, t0_ns: int, t1_ns: int) -> tuple[ComConstraint, ...]:
        """Returns a constraint for each known component of the mean position in an interval.

        Args:
            t0_ns: ns, first stamp of the interval.
            t1_ns: ns, last stamp.
        """
        points: dict[str, list[Array]] = {}
        for time, link, point in self._readings:
            if t0_ns <= time <= t1_ns:
                points.setdefault(link, []).append(point)
        found = []
        for link, own in points.items():
            for normal, values in zip(np.eye(3), np.array(own).T, strict=True):
                known = values[np.isfinite(values)]
                if len(known):
                    found.append(
                        ComConstraint(link, normal, float(known.mean()), self.std)
                    )
        return tuple(found)
