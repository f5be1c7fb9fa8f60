"""Slices of time: their numbers, statistics of the readings in them, what is wrong with them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from com_identification.exceptions import IdentificationError
from com_model.arrays import Array

NS_PER_S = 1_000_000_000
Times = NDArray[np.int64]


@dataclass
class SliceStats:
    """The readings of one stream in one slice of time, as statistics."""

    count: int  # number of readings
    total: Array  # (C,) sum
    low: Array  # (C,) smallest values
    high: Array  # (C,) largest values
    first_ns: int  # stamp of the first
    last_ns: int  # of the last

    @property
    def mean(self) -> Array:
        """(C,)."""
        return np.asarray(self.total / self.count)

    def add(self, other: "SliceStats") -> None:
        """Adds later readings of the same slice."""
        self.count += other.count
        self.total += other.total
        np.minimum(self.low, other.low, out=self.low)
        np.maximum(self.high, other.high, out=self.high)
        self.last_ns = other.last_ns


TimeSlice = Sequence[SliceStats | None]
"""Of each stream in one slice of time: joints, feet, direction against gravity."""


@dataclass(frozen=True)
class Issue:
    """Why a slice of time cannot be used."""

    cause: str  # a few words, to group by
    text: str  # what is wrong and how to fix it


@dataclass(frozen=True)
class Mark:
    """A part of a recording that somebody marked as a posture."""

    t0_ns: int  # first stamp, ns
    t1_ns: int  # last stamp, ns
    label: str = ""  # a name

    def __post_init__(self) -> None:
        if not self.t0_ns < self.t1_ns:
            raise IdentificationError(
                f"mark {self.label!r}: it ends ({self.t1_ns} ns) before it begins ({self.t0_ns} ns)"
            )


class Timeline:
    """Numbers the slices of time; with marks, those of the marks, with a gap before and after each.

    Marks are in order and do not overlap, else IdentificationError; without any all time counts.
    """

    def __init__(self, slice_ns: int, marks: Sequence[Mark] = ()) -> None:
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
        self._slices = np.maximum(1, (self._end - self._begin + slice_ns // 2) // slice_ns)
        self._first = 1 + np.cumsum(self._slices + 1) - (self._slices + 1)

    def slice_numbers(self, t_ns: Times) -> Times:
        """Numbers of the slices of stamps, (N,)."""
        if not self.marks:
            return np.asarray(t_ns // self.slice_ns)
        mark = np.searchsorted(self._begin, t_ns, side="right") - 1
        at = np.maximum(mark, 0)
        after = self._first[at] + self._slices[at]
        inside = self._first[at] + (t_ns - self._begin[at]) // self.slice_ns
        inside = np.minimum(inside, after - 1)
        return np.where(mark < 0, 0, np.where(t_ns > self._end[at], after, inside))

    def slice_number(self, t_ns: int) -> int:
        """Number of the slice of one stamp."""
        return int(self.slice_numbers(np.array([t_ns], dtype=np.int64))[0])

    def in_marks(self, numbers: Times) -> NDArray[np.bool_]:
        """Which slices are in a mark, (N,); all without marks."""
        if not self.marks:
            return np.ones(len(numbers), dtype=np.bool_)
        mark = np.searchsorted(self._first, numbers, side="right") - 1
        at = np.maximum(mark, 0)
        return np.asarray((mark >= 0) & (numbers < self._first[at] + self._slices[at]))

    def mark_index(self, number: int) -> int | None:
        """The index of the mark that a slice is in; None in a gap, or without marks."""
        if not self.marks or not self.in_marks(np.array([number]))[0]:
            return None
        return int(np.searchsorted(self._first, number, side="right")) - 1
