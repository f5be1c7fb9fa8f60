"""Whether a slice of time shows a stationary robot with sensors that work."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.capture.slices import NS_PER_S, Issue, SliceStats, TimeSlice
from com_identification.settings import CaptureOptions, SensorNoise
from com_model import Foot, RobotModel
from com_model.arrays import Array

_NOISE = 10.0  # standard deviations: the range of a hundred readings is never that large
_UNITS = ("N", "N", "N", "N m", "N m", "N m")
Band = tuple[Array, Array, int]
"""Lowest and highest means (C,) of one stream's slices, and the readings of the smallest one."""


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Limits of one stream, (C,): inf for channels without limit."""

    travel: Array  # range of readings within a slice
    drift: Array  # range of the means of slices, without noise
    noise: Array  # standard deviation of one reading
    channels: tuple[str, ...]  # what they are called
    units: tuple[str, ...]  # their units
    cause: str  # cause of an issue
    fix: str  # how to fix it

    def find_motion(self, part: SliceStats, band: Band) -> Issue | None:
        """Too much motion within a slice, or between the means of slices."""
        (low, high, least), noise = band, _NOISE * self.noise
        drift, begun = self.drift + noise / np.sqrt(least), "since the robot was stationary"
        travel = self._issue(part.high - part.low, self.travel + noise, "within a slice of time")
        return travel or self._issue(high - low, drift, begun)

    def _issue(self, spread: Array, limit: Array, when: str) -> Issue | None:
        if not len(spread):  # a robot without joints
            return None
        with np.errstate(invalid="ignore"):
            fraction = np.where(np.isfinite(limit), spread / limit, 0.0)
        worst = int(np.argmax(fraction))
        if fraction[worst] <= 1.0:
            return None
        unit = self.units[worst]
        return Issue(
            self.cause,
            f"{self.channels[worst]} changed by {spread[worst]:.3g} {unit} {when}, more than "
            f"the {limit[worst]:.3g} {unit} allowed: {self.fix}.",
        )


def motion_limits(
    model: RobotModel,
    feet: Sequence[Foot],
    options: CaptureOptions,
    noise: SensorNoise,
    weight: float,
    use_up: bool,
) -> list[MotionLimits]:
    """Limits of all streams: joints, feet, and the direction against gravity if used."""
    n = model.n_joints
    unlimited = np.full(n, np.inf)
    joints = MotionLimits(
        np.append(np.full(n, options.joint_travel), unlimited),
        np.append(np.full(n, options.joint_drift), unlimited),
        np.append(np.full(n, noise.position), np.zeros(n)),
        (*model.joint_names, *(f"the effort of {name}" for name in model.joint_names)),
        ("rad or m",) * n + ("N m or N",) * n,
        "joints moved",
        "keep the robot stationary, or set noise.position to the noise of the encoders",
    )
    result = [joints]
    axes = [f"{kind} {axis}" for kind in ("force", "moment") for axis in "xyz"]
    for foot in feet:
        result.append(
            MotionLimits(
                weight * np.repeat([options.force_travel, options.pressure_travel], 3),
                weight * np.repeat([options.force_drift, options.pressure_drift], 3),
                np.repeat([noise.force, noise.moment], 3),
                tuple(f"{axis} of {foot.frame}" for axis in axes),
                _UNITS,
                "forces varied",
                "let nothing touch the robot, or set noise.force and noise.moment to the noise of "
                "the sensor",
            )
        )
    if use_up:
        result.append(
            MotionLimits(
                np.full(3, options.tilt_travel),
                np.full(3, options.tilt_drift),
                np.full(3, noise.tilt),
                tuple(f"the direction of gravity, {axis}," for axis in "xyz"),
                ("",) * 3,
                "tilt varied",
                "keep the robot stationary",
            )
        )
    return result


class SensorHealth:
    """Finds sensors that are saturated or frozen."""

    def __init__(self, feet: Sequence[Foot], options: CaptureOptions, use_up: bool) -> None:
        self._options = options
        self._names = [f"the force sensor of {foot.frame}" for foot in feet]
        self._names += ["the IMU"] if use_up else []
        self._wrenches = len(feet)
        limit = np.repeat([options.force_limit, options.moment_limit], 3)
        self._limit = np.where(limit > 0.0, limit, np.inf)
        self.restart()

    def restart(self) -> None:
        """Drops what was read."""
        self._constant: list[tuple[Array, int] | None] = [None] * len(self._names)

    def issues(self, sensors: TimeSlice) -> list[Issue]:
        """Issues of the feet's sensors and the IMU in one slice of time."""
        return [issue for i, part in enumerate(sensors) for issue in self._issues(i, part)]

    def _issues(self, i: int, part: SliceStats | None) -> Iterator[Issue]:
        name, before = self._names[i], self._constant[i]
        self._constant[i] = None
        if part is None:
            return
        most = np.maximum(part.high, -part.low)
        if i < self._wrenches and (most >= self._limit).any():
            worst = int(np.argmax(most / self._limit))
            yield Issue(
                f"{name} saturated",
                f"{name} reads {most[worst]:.4g} {_UNITS[worst]}, its limit is "
                f"{self._limit[worst]:.4g} {_UNITS[worst]}: take load off it, or shift the weight.",
            )
        if (part.low == part.high).all() and part.low.any():  # drivers set small loads to zero
            if before is None or not np.array_equal(before[0], part.low):
                before = (part.low, part.first_ns)
            self._constant[i] = before
            time = (part.last_ns - before[1]) / NS_PER_S
            if 0.0 < self._options.frozen_time <= time:
                yield frozen_sensor(name, time)


def frozen_sensor(name: str, time: float) -> Issue:
    """Reports a sensor whose readings do not change."""
    return Issue(
        f"{name} frozen",
        f"{name} has had identical readings for {time:.2f} s: restart its driver; for a simulation "
        "without noise set capture.frozen_time to 0.",
    )


_MAX_SLICES = 10_000
_MAX_ISSUES = 8


@dataclass(frozen=True, eq=False)
class RunMeans:
    """Means over the slices of a run that count."""

    # of each stream (C,); None of one without readings in some slice
    values: tuple[Array | None, ...]
    samples: int  # readings of the stream with the fewest
    t0_ns: int  # stamp of the first reading
    t1_ns: int  # of the last
    constant: tuple[bool, ...]  # whether all readings of a stream are identical


class StationaryRun:
    """Consecutive slices of time in which nothing moved.

    Args:
        settle_ns: How long the run must last before a slice counts.
        max_samples: Older slices beyond so many readings are dropped.

    Attributes:
        t0_ns, t1_ns: Stamps of the first and the last reading; -1 before.
        issues: By cause, the first of each.
        done: Whether its interval was reported.
        captured_ns: Stamp up to which readings were captured.
    """

    def __init__(self, limits: Sequence[MotionLimits], settle_ns: int, max_samples: int) -> None:
        self._limits, self._settle_ns, self._most = limits, settle_ns, max_samples
        nothing = np.array(np.inf), np.array(-np.inf), 2**62
        self._bands: list[Band] = [nothing] * len(limits)
        self._window: deque[TimeSlice] = deque(maxlen=_MAX_SLICES)
        self._newest: TimeSlice | None = None
        self._clean_ns: int | None = None
        self.t0_ns = self.t1_ns = -1
        self.issues: dict[str, Issue] = {}
        self.done = False
        self.captured_ns = -1

    @property
    def time(self) -> float:
        """How long it has lasted, s."""
        return (self.t1_ns - self.t0_ns) / NS_PER_S

    @property
    def settled(self) -> bool:
        """Whether readings count already."""
        clean = self._clean_ns
        return clean is not None and self.t1_ns - clean >= self._settle_ns

    def find_motion(self, parts: TimeSlice) -> Issue | None:
        """Motion within the next slice, or since the first one; None where there is none."""
        triples = zip(self._limits, self._bands, parts, strict=True)
        found = (
            limits.find_motion(part, _widened(band, part)) for limits, band, part in triples if part
        )
        return next((issue for issue in found if issue is not None), None)

    def add(self, parts: TimeSlice, issues: Sequence[Issue]) -> None:
        """Adds the next slice, in which nothing moved."""
        known = [part for part in parts if part is not None]
        if not known:
            self.reject(issues)
            return
        first = min(part.first_ns for part in known)
        self.t0_ns = first if self.t1_ns < 0 else self.t0_ns
        self.t1_ns = max(part.last_ns for part in known)
        pairs = zip(self._bands, parts, strict=True)
        self._bands = [_widened(band, part) if part else band for band, part in pairs]
        if issues:
            self.reject(issues)
            return
        self._clean_ns = first if self._clean_ns is None else self._clean_ns
        self.commit()
        if first - self._clean_ns >= self._settle_ns:
            self._newest = parts

    def reject(self, issues: Sequence[Issue]) -> None:
        """Stores issues of a slice; the slices before it no longer count."""
        for issue in issues:
            if len(self.issues) < _MAX_ISSUES:
                self.issues.setdefault(issue.cause, issue)
        self._clean_ns = self._newest = None
        self._window.clear()

    def commit(self) -> None:
        """Lets the newest slice count: the robot was stationary after it, too."""
        if self._newest is not None:
            self._window.append(self._newest)
            self._newest = None
            self._shorten()

    def samples(self, after_ns: int = -1) -> int:
        """Number of readings that count, of the stream with the fewest, newer than a stamp."""
        counts = self._counts(after_ns)
        return int(counts.min()) if len(counts) else 0

    def means(self, after_ns: int = -1) -> RunMeans:
        """Means of the readings that count, newer than a stamp."""
        window = list(self._after(after_ns))
        streams = [[parts[i] for parts in window] for i in range(len(self._limits))]
        values, constant = [], []
        for stream in streams:
            parts = [part for part in stream if part is not None]
            total = sum(part.total for part in parts) / max(1, sum(part.count for part in parts))
            values.append(np.asarray(total) if len(parts) == len(window) else None)
            low, high = [part.low for part in parts], [part.high for part in parts]
            constant.append(bool(parts) and bool((np.min(low, 0) == np.max(high, 0)).all()))
        known = [part for parts in window for part in parts if part is not None]
        return RunMeans(
            tuple(values),
            self.samples(after_ns),
            min(part.first_ns for part in known),
            max(part.last_ns for part in known),
            tuple(constant),
        )

    def _after(self, after_ns: int) -> Iterator[TimeSlice]:
        for parts in self._window:
            if all(part is None or part.first_ns > after_ns for part in parts):
                yield parts

    def _counts(self, after_ns: int = -1) -> Array:
        """Number of readings of each stream that is not missing."""
        counts = np.zeros(len(self._limits))
        missing = np.zeros(len(self._limits), dtype=np.bool_)
        for parts in self._after(after_ns):
            counts += [0 if part is None else part.count for part in parts]
            missing |= [part is None for part in parts]
        return np.asarray(counts[~missing])

    def _shorten(self) -> None:
        while len(self._window) > 1:
            oldest = [0 if part is None else part.count for part in self._window[0]]
            if self.samples() - max(oldest) < self._most:
                return
            self._window.popleft()


def _widened(band: Band, part: SliceStats) -> Band:
    (low, high, least), mean = band, part.mean
    return np.minimum(low, mean), np.maximum(high, mean), min(least, part.count)
