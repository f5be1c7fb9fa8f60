"""Sensor streams in slices of time: count, sum and range of each channel, all streams in step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from com_identification.capture.detector import StationaryDetector
from com_identification.capture.slices import (
    NS_PER_S,
    Issue,
    SliceStats,
    Timeline,
    Times,
    TimeSlice,
)
from com_identification.exceptions import IdentificationError
from com_identification.settings import CaptureOptions
from com_model.arrays import Array

_LAST_NS = 2**62  # later stamps are invalid
_LARGEST = 1e12  # of any sensor value, in any unit


class SensorStream:
    """One stream of readings, stored as slices until take().

    Args:
        channels: Names of the C channels.
        needed: How many of the channels, from the first on, must be finite.

    Attributes:
        last_ns: Stamp of the newest reading; None before the first.
        number: The slice of that.
        bad: Names of the channels that were not finite in the newest reading.
    """

    def __init__(self, name: str, channels: Sequence[str], needed: int, timeline: Timeline) -> None:
        self.name, self.channels = name, tuple(channels)
        self._needed, self._timeline = needed, timeline
        self.late = self.repeated = self.unusable = 0
        self.restart()

    def restart(self) -> None:
        """Drops all readings."""
        self.last_ns: int | None = None
        self.number = -1
        self.bad: tuple[str, ...] = ()
        self._slices: dict[int, SliceStats] = {}

    def find_jump(self, t_ns: Times, longest_ns: int) -> int:
        """The index of the first stamp that is older than the newest by more; N for none."""
        back = self._newest_before(t_ns) - t_ns > longest_ns
        return int(np.argmax(back)) if back.any() else len(t_ns)

    def add(self, t_ns: Times, values: Array, first_number: int) -> None:
        """Adds readings (N, C) at stamps (N,); late, repeated and not finite ones are left out."""
        newest = self._newest_before(t_ns)
        fresh = t_ns > newest
        if not fresh.all():
            self.repeated += int(np.sum(t_ns == newest))
            self.late += int(np.sum(t_ns < newest))
            t_ns, values = t_ns[fresh], values[fresh]
        if not len(t_ns):
            return
        self.last_ns = int(t_ns[-1])
        numbers = self._timeline.slice_numbers(t_ns)
        self.number = int(numbers[-1])
        finite = usable_numbers(values[:, : self._needed])
        usable = np.asarray(finite.all(axis=1))
        self.unusable += int(np.sum(~usable))
        self.bad = tuple(self.channels[i] for i in np.flatnonzero(~finite[-1]))
        usable &= self._timeline.in_marks(numbers)
        usable &= numbers >= first_number
        self.late += int(np.sum(numbers < first_number))
        self._gather(numbers[usable], t_ns[usable], values[usable])

    def take(self, number: int) -> SliceStats | None:
        """Removes and returns a slice; None where it has no readings."""
        return self._slices.pop(number, None)

    def first_number(self) -> int | None:
        """Number of the oldest slice that is stored."""
        return min(self._slices, default=None)

    def _newest_before(self, t_ns: Times) -> Times:
        start = t_ns[:1] - 1 if self.last_ns is None else np.array([self.last_ns])
        return np.maximum.accumulate(np.concatenate((start, t_ns[:-1])))

    def _gather(self, numbers: Times, t_ns: Times, values: Array) -> None:
        for number in np.unique(numbers).tolist():
            rows = numbers == number
            own, times = values[rows], t_ns[rows].tolist()
            ends = times[0], times[-1]
            part = SliceStats(len(own), own.sum(0), own.min(0), own.max(0), *ends)
            if number in self._slices:
                self._slices[number].add(part)
            else:
                self._slices[number] = part


def usable_numbers(values: Array) -> NDArray[np.bool_]:
    """Which values a sensor may have: finite, with finite sums; the same shape."""
    return np.asarray(np.abs(values) < _LARGEST)


@dataclass(frozen=True)
class DroppedReadings:
    """Readings that were left out, of all streams."""

    late: int = 0  # older than the stream's newest
    repeated: int = 0  # with the stamp of the one before
    unusable: int = 0  # NaN, infinite, or no unit vector
    restarts: int = 0  # how often time jumped back and the recorder restarted


class SensorStreams:
    """All streams in step: a slice is complete when every stream has passed it.

    The streams are joints, `feet` feet, and the direction against gravity where it is used.
    """

    def __init__(
        self,
        names: Sequence[str],
        channels: Sequence[Sequence[str]],
        needed: Sequence[int],
        feet: int,
        timeline: Timeline,
        detector: StationaryDetector,
        options: CaptureOptions,
    ) -> None:
        self._streams = [
            SensorStream(name, own, count, timeline)
            for name, own, count in zip(names, channels, needed, strict=True)
        ]
        self._feet, self._timeline, self._detector = feet, timeline, detector
        self._options = options
        self._lag_ns = int(options.lag * NS_PER_S)
        self._jump_ns = int(options.jump_back * NS_PER_S)
        self._restarts = self._unusable = 0
        self._next: int | None = None

    @property
    def newest_ns(self) -> int | None:
        """Stamp of the newest reading of all; None before the first."""
        stamps = [stream.last_ns for stream in self._streams if stream.last_ns is not None]
        return max(stamps, default=None)

    @property
    def dropped(self) -> DroppedReadings:
        """Readings that were left out so far."""
        streams = self._streams
        return DroppedReadings(
            late=sum(stream.late for stream in streams),
            repeated=sum(stream.repeated for stream in streams),
            unusable=sum(stream.unusable for stream in streams) + self._unusable,
            restarts=self._restarts,
        )

    def add(self, index: int, t_ns: ArrayLike, values: Array) -> None:
        """Adds readings (N, C) at (N,) stamps of a stream, -1 for the last one."""
        stream = self._streams[index]
        t = np.asarray(t_ns, dtype=np.int64).reshape(-1)
        if len(t) != len(values):
            raise IdentificationError(f"{stream.name}: {len(t)} stamps for {len(values)} readings")
        good = (t >= 0) & (t < _LAST_NS)
        if not good.all():
            self._unusable += int(np.sum(~good))
            t, values = t[good], values[good]
        while len(t):
            cut = stream.find_jump(t, self._jump_ns)
            stream.add(t[:cut], values[:cut], self._next or 0)
            if cut < len(t):
                self._restarts += 1
                self._detector.end()
                self._restart()
            t, values = t[cut:], values[cut:]
        self._advance()

    def flush(self) -> None:
        """Ends the streams: completes all slices, and drops the readings."""
        numbers = [stream.number for stream in self._streams if stream.last_ns is not None]
        if numbers:
            self._complete_until(max(numbers) + 1)
        self._detector.end_marks()
        self._restart()

    def timed_out(self, now_ns: int) -> tuple[str, ...]:
        """Which streams have no readings now, sentences that say how to fix it."""
        found = []
        for i, stream in enumerate(self._streams):
            if self._may_be_missing(i):
                continue
            if stream.last_ns is None:
                found.append(_no_reading(stream).text)
            elif (now_ns - stream.last_ns) / NS_PER_S > self._options.timeout:
                time = (now_ns - stream.last_ns) / NS_PER_S
                found.append(
                    f"{stream.name} has had no reading for {time:.2f} s: check its driver and "
                    "its topic."
                )
        return tuple(found)

    def _restart(self) -> None:
        for stream in self._streams:
            stream.restart()
        self._detector.restart()
        self._next = None

    def _advance(self) -> None:
        """Completes the slices that all streams have passed, or that are older than the lag."""
        done = min(stream.number for stream in self._streams)  # -1 where one has no reading
        stamps = [stream.last_ns or 0 for stream in self._streams]
        past = max(stamps) - self._lag_ns
        if past > min(stamps):
            done = max(done, self._timeline.slice_number(past))
        if self._next is None or self._next < done:
            self._complete_until(done)

    def _complete_until(self, end: int) -> None:
        """Completes the slices before one; of empty ones in a row the first only."""
        while True:
            stored = [
                k for k in (stream.first_number() for stream in self._streams) if k is not None
            ]
            number = min(stored, default=end) if self._next is None else self._next
            if number >= end:
                return
            parts = [stream.take(number) for stream in self._streams]
            self._detector.add(number, parts, self._missing(parts))
            self._next = max(number + 1, min(min(stored, default=end), end))

    def _missing(self, parts: TimeSlice) -> list[Issue]:
        """Which streams have no usable reading in a slice of time."""
        return [
            _no_reading(stream)
            for i, (stream, part) in enumerate(zip(self._streams, parts, strict=True))
            if part is None and not self._may_be_missing(i)
        ]

    def _may_be_missing(self, index: int) -> bool:
        return self._options.missing_feet and 1 <= index <= self._feet


def _no_reading(stream: SensorStream) -> Issue:
    """Reports that a stream has no usable reading."""
    if stream.bad:
        names = ", ".join(stream.bad[:5])
        return Issue(
            f"{stream.name} not finite",
            f"{stream.name} has no number for {names}: check its driver.",
        )
    return Issue(
        f"{stream.name} missing",
        f"{stream.name} has no readings: check its driver, its topic and the clocks.",
    )
