"""Streams of readings in short slices of time: count, sum and extremes of each channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from com_identification.capture.capture_options import Mark
from com_identification.exceptions import IdentificationError
from com_model.arrays import Array

Times = NDArray[np.int64]

_LAST_NS = 2**62  # stamps beyond are none
_LARGEST = 1e12  # of what a sensor reads, whatever its unit
_NEAR = 100_000_000  # ns between readings of one slice: far below any jump of time


@dataclass
class Slice:
    """The readings of one stream in one slice of time.

    Attributes:
        count: Number of readings.
        total: (C,) sum.
        low: (C,) smallest.
        high: (C,) largest.
        first_ns: Stamp of the first.
        last_ns: Of the last.
    """

    count: int
    total: Array
    low: Array
    high: Array
    first_ns: int
    last_ns: int

    @property
    def mean(self) -> Array:
        """(C,)."""
        return np.asarray(self.total / self.count)

    def join(self, other: Slice) -> None:
        """Takes in later readings of the same slice."""
        self.count += other.count
        self.total += other.total
        np.minimum(self.low, other.low, out=self.low)
        np.maximum(self.high, other.high, out=self.high)
        self.last_ns = other.last_ns


class Timeline:
    """Numbers the slices of time; with marks, those of the marks, with a gap before and after each.

    Args:
        slice_ns: Length of a slice.
        marks: In order and apart; empty: all time counts.

    Raises:
        IdentificationError: Marks overlap or are out of order.
    """

    def __init__(self, slice_ns: int, marks: Sequence[Mark] = ()) -> None:
        self.slice_ns = slice_ns
        self.marks = tuple(marks)
        for before, after in zip(self.marks, self.marks[1:], strict=False):
            if before.t1_ns >= after.t0_ns:
                raise IdentificationError(
                    f"mark {after.label!r} begins before mark {before.label!r} is over: give marks "
                    "in order, apart from each other"
                )
        self._begin = np.array([mark.t0_ns for mark in self.marks], dtype=np.int64)
        self._end = np.array([mark.t1_ns for mark in self.marks], dtype=np.int64)
        self._slices = np.maximum(1, (self._end - self._begin + slice_ns // 2) // slice_ns)
        self._first = 1 + np.cumsum(self._slices + 1) - (self._slices + 1)

    def number(self, t_ns: Times) -> Times:
        """The slices of stamps (N,)."""
        if not self.marks:
            return np.asarray(t_ns // self.slice_ns)
        mark = np.searchsorted(self._begin, t_ns, side="right") - 1
        at = np.maximum(mark, 0)
        after = self._first[at] + self._slices[at]
        inside = self._first[at] + (t_ns - self._begin[at]) // self.slice_ns
        inside = np.minimum(inside, after - 1)
        return np.where(mark < 0, 0, np.where(t_ns > self._end[at], after, inside))

    def number_one(self, t_ns: int) -> int:
        """The slice of one stamp."""
        if not self.marks:
            return t_ns // self.slice_ns
        return int(self.number(np.array([t_ns], dtype=np.int64))[0])

    def counts(self, numbers: Times) -> NDArray[np.bool_]:
        """Which slices are in a mark, (N,); all without marks."""
        if not self.marks:
            return np.ones(len(numbers), dtype=np.bool_)
        mark = np.searchsorted(self._first, numbers, side="right") - 1
        at = np.maximum(mark, 0)
        return np.asarray((mark >= 0) & (numbers < self._first[at] + self._slices[at]))

    def mark_of(self, number: int) -> int | None:
        """The index of the mark that a slice is in; None in a gap, or without marks."""
        if not self.marks:
            return None
        if not self.counts(np.array([number]))[0]:
            return None
        return int(np.searchsorted(self._first, number, side="right")) - 1


class Stream:
    """One stream of readings, kept as slices until they are taken.

    Args:
        name: For messages.
        channels: Names of the C channels.
        needed: How many of them, the first ones, must be finite.
        timeline: Numbers the slices.

    Attributes:
        last_ns: Stamp of the newest reading; None before the first.
        number: Slice of that.
        bad: Names of the channels that were not finite in the newest reading.
    """

    def __init__(self, name: str, channels: Sequence[str], needed: int, timeline: Timeline) -> None:
        self.name, self.channels = name, tuple(channels)
        self._needed, self._timeline = needed, timeline
        self.late = self.repeated = self.unusable = 0
        self.restart()

    def restart(self) -> None:
        """Forgets all readings."""
        self.last_ns: int | None = None
        self.number = -1
        self.bad: tuple[str, ...] = ()
        self._slices: dict[int, Slice] = {}

    def jump(self, t_ns: Times, longest_ns: int) -> int:
        """The index of the first stamp that is older than the newest by more; N for none."""
        back = self._newest_before(t_ns) - t_ns > longest_ns
        return int(np.argmax(back)) if back.any() else len(t_ns)

    def add(self, t_ns: Times, values: Array, first_number: int) -> None:
        """Takes readings, and leaves out those late, repeated or not finite.

        Args:
            t_ns: (N,) stamps.
            values: (N, C).
            first_number: Slices before this one are over.
        """
        newest = self._newest_before(t_ns)
        fresh = t_ns > newest
        if not fresh.all():
            self.repeated += int(np.sum(t_ns == newest))
            self.late += int(np.sum(t_ns < newest))
            t_ns, values = t_ns[fresh], values[fresh]
        if not len(t_ns):
            return
        self.last_ns = int(t_ns[-1])
        numbers = self._timeline.number(t_ns)
        self.number = int(numbers[-1])
        finite = usable_numbers(values[:, : self._needed])
        usable = np.asarray(finite.all(axis=1))
        self._note_bad(finite, usable)
        usable &= self._timeline.counts(numbers)
        usable &= numbers >= first_number
        self.late += int(np.sum(numbers < first_number))
        self._gather(numbers[usable], t_ns[usable], values[usable])

    def add_next(self, t_ns: int, values: Array) -> bool:
        """Takes one reading of the slice that the newest is in; False: it is for add().

        Args:
            t_ns: Its stamp.
            values: (C,).
        """
        part = self._slices.get(self.number)
        if part is None or self.last_ns is None or not self.last_ns < t_ns <= part.last_ns + _NEAR:
            return False
        if self._timeline.number_one(t_ns) != self.number:
            return False
        if not usable_numbers(values[: self._needed]).all():
            return False
        self.last_ns = t_ns
        part.join(Slice(1, values, values, values, t_ns, t_ns))
        return True

    def take(self, number: int) -> Slice | None:
        """Gives a slice away; None where nothing was read."""
        return self._slices.pop(number, None)

    def first_number(self) -> int | None:
        """The oldest slice that is kept."""
        return min(self._slices, default=None)

    def _newest_before(self, t_ns: Times) -> Times:
        start = t_ns[:1] - 1 if self.last_ns is None else np.array([self.last_ns])
        return np.maximum.accumulate(np.concatenate((start, t_ns[:-1])))

    def _note_bad(self, finite: NDArray[np.bool_], usable: NDArray[np.bool_]) -> None:
        self.unusable += int(np.sum(~usable))
        self.bad = tuple(self.channels[i] for i in np.flatnonzero(~finite[-1]))

    def _gather(self, numbers: Times, t_ns: Times, values: Array) -> None:
        if not len(numbers):
            return
        starts = np.flatnonzero(np.concatenate(([True], numbers[1:] != numbers[:-1])))
        ends = np.append(starts[1:], len(numbers))
        total = np.add.reduceat(values, starts, axis=0)
        low = np.minimum.reduceat(values, starts, axis=0)
        high = np.maximum.reduceat(values, starts, axis=0)
        for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            first, last = int(t_ns[start]), int(t_ns[end - 1])
            part = Slice(end - start, total[i], low[i], high[i], first, last)
            number = int(numbers[start])
            if number in self._slices:
                self._slices[number].join(part)
            else:
                self._slices[number] = part


def usable_numbers(values: Array) -> NDArray[np.bool_]:
    """Which numbers a sensor may read: finite, and sums of them too; the same shape."""
    return np.asarray(np.abs(values) < _LARGEST)


def valid_stamps(t_ns: Times) -> NDArray[np.bool_]:
    """Which stamps can be some, (N,)."""
    return np.asarray((t_ns >= 0) & (t_ns < _LAST_NS))
