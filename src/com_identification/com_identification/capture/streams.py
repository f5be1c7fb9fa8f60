"""Streams of readings in slices of time: statistics of each channel, and issues."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from com_bags.streams import NS_PER_S, Times
from com_identification.exceptions import IdentificationError
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array, Flags

Band = tuple[Array, Array, int]
"""Lowest and highest means (C,) of one stream's slices, and the readings of the smallest one."""


@dataclass
class SliceStats:
    """Statistics of the readings of one stream in one slice of time; NaN without readings.

    Attributes:
        count: number of readings.
        total: (C,) sum.
        low: (C,) smallest values.
        high: (C,) largest values.
        first_ns: ns, stamp of the first.
        last_ns: ns, stamp of the last.
    """

    count: int
    total: Array
    low: Array
    high: Array
    first_ns: int
    last_ns: int

    @classmethod
    def none(cls, channels: int) -> "SliceStats":
        """Returns the statistics of no reading; its stamps are after and before all others.

        Args:
            channels: their number C.
        """
        nan = np.full(channels, np.nan)
        return cls(0, nan, nan, nan, 2**62, -1)

    @property
    def mean(self) -> Array:
        """(C,) mean; NaN without readings."""
        return np.asarray(self.total / self.count)


TimeSlice = Sequence[SliceStats]
"""Of each stream in one slice of time, or several: joints, feet, direction against gravity."""


def join(slices: Sequence[TimeSlice]) -> TimeSlice:
    """Returns the statistics of several slices of time together.

    Args:
        slices: one or more; a stream without readings in one of them has none in the result.
    """
    return [_joined(stream) for stream in zip(*slices, strict=True)]


def _joined(parts: Sequence[SliceStats]) -> SliceStats:
    return SliceStats(
        sum(part.count for part in parts) if all(part.count for part in parts) else 0,
        np.sum([part.total for part in parts], axis=0),
        np.min([part.low for part in parts], axis=0),
        np.max([part.high for part in parts], axis=0),
        *span_ns(parts),
    )


def fewest(parts: TimeSlice) -> int:
    """Returns the number of readings of the stream with the fewest, of those that have some.

    Args:
        parts: statistics of each stream.
    """
    return min((part.count for part in parts if part.count), default=0)


def span_ns(parts: TimeSlice) -> tuple[int, int]:
    """Returns the first and the last stamp of all streams, ns.

    Args:
        parts: statistics of each stream.
    """
    return min(part.first_ns for part in parts), max(part.last_ns for part in parts)


@dataclass(frozen=True)
class StreamIssue:
    """Why a slice of time cannot be used.

    Attributes:
        cause: a few words, to group by.
        text: what is wrong and how to fix it.
    """

    cause: str
    text: str


@dataclass(frozen=True)
class PostureMark:
    """A part of a recording that the user marked as a posture.

    Attributes:
        t0_ns: first stamp, ns.
        t1_ns: last stamp, ns.
        label: a name.
    """

    t0_ns: int
    t1_ns: int
    label: str = ""

    def __post_init__(self) -> None:
        if not self.t0_ns < self.t1_ns:
            raise IdentificationError(
                f"mark {self.label!r}: it ends ({self.t1_ns} ns) before it begins ({self.t0_ns} ns)"
            )


class ReadingTimeline:
    """Numbers the slices of time.

    With marks the slices are those of the marks, with a gap before and after each.

    Args:
        slice_ns: ns, length of a slice.
        marks: in order, without overlap; none: all time is used.

    Raises:
        IdentificationError: marks overlap or are out of order.
    """

    def __init__(self, slice_ns: int, marks: Sequence[PostureMark] = ()) -> None:
        self.slice_ns = slice_ns
        self.marks = tuple(marks)
        for before, after in zip(self.marks, self.marks[1:], strict=False):
            if before.t1_ns >= after.t0_ns:
                raise IdentificationError(
                    f"mark {after.label!r} begins before mark {before.label!r} ends: give marks "
                    "in order, without overlap"
                )
        self._begin = np.array([mark.t0_ns for mark in self.marks], dtype=np.int64)
        self._end = np.array([mark.t1_ns for mark in self.marks], dtype=np.int64)
        self._slices = np.maximum(
            1, (self._end - self._begin + slice_ns // 2) // slice_ns
        )
        self._first = 1 + np.cumsum(self._slices + 1) - (self._slices + 1)

    def slice_numbers(self, t_ns: Times) -> Times:
        """Returns the numbers (N,) of the slices of stamps.

        Args:
            t_ns: (N,) ns, stamps.
        """
        if not self.marks:
            return np.asarray(t_ns // self.slice_ns)
        mark = np.searchsorted(self._begin, t_ns, side="right") - 1
        at = np.maximum(mark, 0)
        after = self._first[at] + self._slices[at]
        inside = self._first[at] + (t_ns - self._begin[at]) // self.slice_ns
        inside = np.minimum(inside, after - 1)
        return np.where(mark < 0, 0, np.where(t_ns > self._end[at], after, inside))

    def mark_index(self, number: int) -> int | None:
        """Returns the index of the mark that a slice is in; None in a gap, or without marks.

        Args:
            number: of the slice.
        """
        mark = int(self.mark_of(np.array([number]))[0]) if self.marks else -1
        return None if mark < 0 else mark

    def mark_of(self, numbers: Times) -> Times:
        """Returns the index of the mark of each slice, (N,); -1 in a gap. Only with marks.

        Args:
            numbers: (N,) of the slices.
        """
        mark = np.searchsorted(self._first, numbers, side="right") - 1
        return np.where(numbers < self._first[mark] + self._slices[mark], mark, -1)


@dataclass(frozen=True, eq=False)
class StreamSpec:
    """Names, units and limits of the C channels of one stream; inf: no limit.

    Attributes:
        name: of the sensor or topic.
        channels: names of the channels.
        units: their units.
        needed: how many of the channels, from the first on, must be finite.
        travel: (C,) range of readings within a slice.
        drift: (C,) range of the means of slices, without noise.
        noise: (C,) standard deviation of one reading.
        largest: (C,) reading at which the sensor saturates.
        cause: cause of an issue.
        fix: how to fix it.
        frozen_time: s of identical readings after which it is frozen; inf: they may be
            identical.
        optional: whether postures may be without its readings.
    """

    name: str
    channels: tuple[str, ...]
    units: tuple[str, ...]
    needed: int
    travel: Array
    drift: Array
    noise: Array
    largest: Array
    cause: str
    fix: str
    frozen_time: float = np.inf
    optional: bool = False

    def find_motion(self, part: SliceStats, band: Band) -> StreamIssue | None:
        """Returns too much motion within a slice, or between the means of slices; None for none.

        Args:
            part: statistics of the slice.
            band: of the means of the slices before.
        """
        # the range of a hundred readings is never ten standard deviations
        (low, high, least), noise = band, 10.0 * self.noise
        drift, begun = (
            self.drift + noise / np.sqrt(least),
            "since the robot was stationary",
        )
        travel = self._issue(
            part.high - part.low, self.travel + noise, "within a slice of time"
        )
        return travel or self._issue(high - low, drift, begun)

    def _issue(self, spread: Array, limit: Array, when: str) -> StreamIssue | None:
        over = spread > limit
        if not over.any():
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            worst = int(np.argmax(np.where(over, spread / limit, 0.0)))
        unit = self.units[worst]
        return StreamIssue(
            self.cause,
            f"{self.channels[worst]} changed by {spread[worst]:.3g} {unit} {when}, more than "
            f"the {limit[worst]:.3g} {unit} allowed: {self.fix}.",
        )


def stream_specs(
    model: RobotModel, feet: Sequence[Foot], settings: IdentificationSettings
) -> list[StreamSpec]:
    """Returns all streams: joints, feet, and the direction against gravity if used.

    Args:
        model: the robot.
        feet: its feet.
        settings: noise, and which sensors are used.
    """
    options, noise, n = settings.capture, settings.noise, model.n_joints
    weight = model.mass * settings.fit.gravity
    frozen = options.frozen_time if options.frozen_time > 0.0 else np.inf
    unlimited = np.full(n, np.inf)
    joints = StreamSpec(
        name="joint_states",
        channels=(
            *model.joint_names,
            *(f"the effort of {name}" for name in model.joint_names),
        ),
        units=("rad or m",) * n + ("N m or N",) * n,
        needed=n,
        travel=np.append(np.full(n, options.joint_travel), unlimited),
        drift=np.append(np.full(n, options.joint_drift), unlimited),
        noise=np.append(np.full(n, noise.position), np.zeros(n)),
        largest=np.append(unlimited, unlimited),
        cause="joints moved",
        fix="keep the robot stationary, or set noise.position to the noise of the encoders",
    )
    axes = [f"{kind} {axis}" for kind in ("force", "moment") for axis in "xyz"]
    largest = np.repeat([options.force_limit, options.moment_limit], 3)
    sensors = [
        StreamSpec(
            name=f"the force sensor of {foot.frame}",
            channels=tuple(f"{axis} of {foot.frame}" for axis in axes),
            units=("N", "N", "N", "N m", "N m", "N m"),
            needed=6,
            travel=weight
            * np.repeat([options.force_travel, options.pressure_travel], 3),
            drift=weight * np.repeat([options.force_drift, options.pressure_drift], 3),
            noise=np.repeat([noise.force, noise.moment], 3),
            largest=np.where(largest > 0.0, largest, np.inf),
            frozen_time=frozen,
            optional=options.missing_feet,
            cause="forces varied",
            fix="let nothing touch the robot, or set noise.force and noise.moment to the noise of "
            "the sensor",
        )
        for foot in feet
    ]
    imu = StreamSpec(
        name="the IMU",
        channels=tuple(f"the direction of gravity, {axis}," for axis in "xyz"),
        units=("",) * 3,
        needed=3,
        travel=np.full(3, options.tilt_travel),
        drift=np.full(3, options.tilt_drift),
        noise=np.full(3, noise.tilt),
        largest=np.full(3, np.inf),
        frozen_time=frozen,
        cause="tilt varied",
        fix="keep the robot stationary",
    )
    return [joints, *sensors, *([imu] if settings.fit.use_imu else [])]


def frozen_sensor(name: str, time: float) -> StreamIssue:
    """Returns the issue of a sensor whose readings do not change.

    Args:
        name: of the sensor.
        time: s, since its readings last changed.
    """
    return StreamIssue(
        f"{name} frozen",
        f"{name} has had identical readings for {time:.2f} s: restart its driver; for a simulation "
        "without noise set capture.frozen_time to 0.",
    )


class SensorStream:
    """One stream of readings, stored as statistics of slices until pop().

    Args:
        spec: what the readings are.
        timeline: numbers the slices.
        dropped: counts readings that are left out.

    Attributes:
        last_ns: ns, stamp of the newest reading; None before the first.
        number: the slice of that.
    """

    def __init__(
        self, spec: StreamSpec, timeline: ReadingTimeline, dropped: "DroppedReadings"
    ) -> None:
        self.spec, self._timeline, self._dropped = spec, timeline, dropped
        self.restart()

    def restart(self) -> None:
        """Drops all readings."""
        self.last_ns: int | None = None
        self.number = -1
        self._bad: tuple[
            str, ...
        ] = ()  # channels that were not finite in the newest reading
        self._slices: dict[int, SliceStats] = {}
        # reading that repeats, since when
        self._constant: tuple[Array, int] | None = None

    def find_jump(self, t_ns: Times, longest_ns: int) -> int:
        """Returns the index of the first stamp that jumps back from the newest; N for none.

        Args:
            t_ns: (N,) ns, stamps.
            longest_ns: ns, by which a stamp may be older than the newest.
        """
        back = self._newest_before(t_ns) - t_ns > longest_ns
        return int(np.argmax(back)) if back.any() else len(t_ns)

    def add(self, t_ns: Times, values: Array, first_number: int) -> None:
        """Adds readings; late, repeated and not finite ones are left out.

        Args:
            t_ns: (N,) ns, stamps.
            values: (N, C) readings.
            first_number: of the first slice that is still open.
        """
        newest = self._newest_before(t_ns)
        fresh = t_ns > newest
        if not fresh.all():
            self._dropped.repeated += int(np.sum(t_ns == newest))
            self._dropped.late += int(np.sum(t_ns < newest))
            t_ns, values = t_ns[fresh], values[fresh]
        if not len(t_ns):
            return
        self.last_ns = int(t_ns[-1])
        numbers = self._timeline.slice_numbers(t_ns)
        self.number = int(numbers[-1])
        finite = usable_numbers(values[:, : self.spec.needed])
        usable = np.asarray(finite.all(axis=1))
        self._dropped.unusable += int(np.sum(~usable))
        self._bad = tuple(self.spec.channels[i] for i in np.flatnonzero(~finite[-1]))
        usable &= numbers >= first_number
        if self._timeline.marks:
            usable &= self._timeline.mark_of(numbers) >= 0
        self._dropped.late += int(np.sum(numbers < first_number))
        self._gather(numbers[usable], t_ns[usable], values[usable])

    def pop(self, number: int) -> SliceStats:
        """Removes a slice and returns its statistics.

        Args:
            number: of the slice.
        """
        return self._slices.pop(number, None) or SliceStats.none(
            len(self.spec.channels)
        )

    def first_number(self) -> int | None:
        """Returns the number of the oldest slice that is stored; None for none."""
        return min(self._slices, default=None)

    def missing(self) -> StreamIssue:
        """Returns the issue of a stream without usable readings."""
        name = self.spec.name
        if self._bad:
            names = ", ".join(self._bad[:5])
            return StreamIssue(
                f"{name} not finite",
                f"{name} has no number for {names}: check its driver.",
            )
        return StreamIssue(
            f"{name} missing",
            f"{name} has no readings: check its driver, its topic and the clocks.",
        )

    def issues(self, part: SliceStats) -> Iterator[StreamIssue]:
        """Yields what is wrong in the next slice of time: missing, saturated or frozen.

        Args:
            part: statistics of the slice.
        """
        spec, before, self._constant = self.spec, self._constant, None
        if not part.count:
            if not spec.optional:
                yield self.missing()
            return
        most = np.maximum(part.high, -part.low)
        if (most >= spec.largest).any():
            worst = int(np.argmax(most / spec.largest))
            unit = spec.units[worst]
            yield StreamIssue(
                f"{spec.name} saturated",
                f"{spec.name} reads {most[worst]:.4g} {unit}, its limit is "
                f"{spec.largest[worst]:.4g} {unit}: take load off it, or shift the weight.",
            )
        if (
            part.low == part.high
        ).all() and part.low.any():  # drivers set small loads to zero
            if before is None or not np.array_equal(before[0], part.low):
                before = (part.low, part.first_ns)
            self._constant = before
            time = (part.last_ns - before[1]) / NS_PER_S
            if spec.frozen_time <= time:
                yield frozen_sensor(spec.name, time)

    def _newest_before(self, t_ns: Times) -> Times:
        start = t_ns[:1] - 1 if self.last_ns is None else np.array([self.last_ns])
        return np.maximum.accumulate(np.concatenate((start, t_ns[:-1])))

    def _gather(self, numbers: Times, t_ns: Times, values: Array) -> None:
        for number in np.unique(numbers).tolist():
            rows = numbers == number
            own, times = values[rows], t_ns[rows].tolist()
            ends = times[0], times[-1]
            part = SliceStats(len(own), own.sum(0), own.min(0), own.max(0), *ends)
            known = self._slices.get(number)
            self._slices[number] = _joined([known, part]) if known else part


def usable_numbers(values: Array) -> Flags:
    """Returns which values are possible: finite, with finite sums; the same shape.

    Args:
        values: of any sensor.
    """
    # no sensor reads 1e12, in any unit
    return np.asarray(np.abs(values) < 1e12)


@dataclass
class DroppedReadings:
    """Number of readings of all streams that were left out, by reason.

    Attributes:
        late: older than the stream's newest.
        repeated: with the stamp of the one before.
        unusable: NaN, infinite, or no unit vector.
        restarts: how often time jumped back and the recorder restarted.
    """

    late: int = 0
    repeated: int = 0
    unusable: int = 0
    restarts: int = 0
