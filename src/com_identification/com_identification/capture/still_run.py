"""A time in which a robot is at rest: the slices that count, and what was wrong with others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.capture.capture_options import NS_PER_S
from com_identification.capture.slices import Slice
from com_identification.capture.stillness import Limits, Problem, Slices
from com_model.arrays import Array

_MOST_SLICES = 10_000
_MOST_PROBLEMS = 8


@dataclass
class _Band:
    """Range of the means of one stream's slices."""

    low: Array
    high: Array
    least: int


@dataclass(frozen=True, eq=False)
class Means:
    """Means over a window of slices.

    Attributes:
        values: Of each stream (C,); None of one that was silent.
        samples: Readings of the stream with the fewest.
        t0_ns: Stamp of the first reading.
        t1_ns: Of the last.
        constant: Whether each stream said the same all the time.
    """

    values: tuple[Array | None, ...]
    samples: int
    t0_ns: int
    t1_ns: int
    constant: tuple[bool, ...]


class StillRun:
    """Slices of time in a row in which nothing moved.

    Args:
        limits: Of each stream.
        settle_ns: How long it lasts before a slice counts.
        most_samples: Older slices beyond so many readings are forgotten.

    Attributes:
        problems: What was wrong, by cause, the first of each.
        taken: Whether a posture was made of it, or cannot be.
        captured_ns: Stamp up to which readings were captured.
    """

    def __init__(self, limits: Sequence[Limits], settle_ns: int, most_samples: int) -> None:
        self._limits, self._settle_ns, self._most = limits, settle_ns, most_samples
        self._bands: list[_Band | None] = [None] * len(limits)
        self._window: deque[Slices] = deque(maxlen=_MOST_SLICES)
        self._newest: Slices | None = None
        self._begun_ns: int | None = None
        self._clean_ns: int | None = None
        self._end_ns = 0
        self.problems: dict[str, Problem] = {}
        self.taken = False
        self.captured_ns = -1

    @property
    def t0_ns(self) -> int:
        """Stamp of the first reading at rest."""
        return self._begun_ns or 0

    @property
    def t1_ns(self) -> int:
        """Stamp of the last one."""
        return self._end_ns

    @property
    def time(self) -> float:
        """How long it has lasted, s."""
        return 0.0 if self._begun_ns is None else (self._end_ns - self._begun_ns) / NS_PER_S

    @property
    def settled(self) -> bool:
        """Whether readings count by now."""
        clean = self._clean_ns
        return clean is not None and self._end_ns - clean >= self._settle_ns

    def moved(self, parts: Slices) -> Problem | None:
        """What moved in the next slice, or since the first one."""
        for limits, band, part in zip(self._limits, self._bands, parts, strict=True):
            if part is None:
                continue
            problem = limits.spread(part)
            if problem is None and band is not None:
                mean = part.mean
                low, high = np.minimum(band.low, mean), np.maximum(band.high, mean)
                problem = limits.change(low, high, min(band.least, part.count))
            if problem is not None:
                return problem
        return None

    def add(self, parts: Slices, problems: Sequence[Problem]) -> None:
        """Takes the next slice, in which nothing moved."""
        known = [part for part in parts if part is not None]
        if not known:
            self.note(problems)
            return
        first = min(part.first_ns for part in known)
        self._end_ns = max(part.last_ns for part in known)
        self._begun_ns = first if self._begun_ns is None else self._begun_ns
        self._widen(parts)
        if problems:
            self.note(problems)
            return
        self._clean_ns = first if self._clean_ns is None else self._clean_ns
        self.commit()
        if first - self._clean_ns >= self._settle_ns:
            self._newest = parts

    def note(self, problems: Sequence[Problem]) -> None:
        """Remembers what is wrong; what counted so far does no more."""
        for problem in problems:
            if len(self.problems) < _MOST_PROBLEMS:
                self.problems.setdefault(problem.cause, problem)
        self._clean_ns = self._newest = None
        self._window.clear()

    def commit(self) -> None:
        """Lets the newest slice count: what followed it was at rest too."""
        if self._newest is not None:
            self._window.append(self._newest)
            self._newest = None
            self._shorten()

    def samples(self, after_ns: int = -1) -> int:
        """Readings that count, of the stream with the fewest, newer than a stamp."""
        counts = self._counts(after_ns)
        return int(counts.min()) if len(counts) else 0

    def means(self, after_ns: int = -1) -> Means:
        """Means of the readings that count, newer than a stamp."""
        window = list(self._after(after_ns))
        streams = [[parts[i] for parts in window] for i in range(len(self._limits))]
        values, constant = [], []
        for stream in streams:
            parts = [part for part in stream if part is not None]
            values.append(_mean(parts) if len(parts) == len(window) else None)
            constant.append(_constant(parts))
        known = [part for parts in window for part in parts if part is not None]
        return Means(
            tuple(values),
            self.samples(after_ns),
            min(part.first_ns for part in known),
            max(part.last_ns for part in known),
            tuple(constant),
        )

    def _widen(self, parts: Slices) -> None:
        for i, part in enumerate(parts):
            if part is None:
                continue
            mean, band = part.mean, self._bands[i]
            if band is None:
                self._bands[i] = _Band(mean, mean, part.count)
            else:
                low, high = np.minimum(band.low, mean), np.maximum(band.high, mean)
                self._bands[i] = _Band(low, high, min(band.least, part.count))

    def _after(self, after_ns: int) -> Iterator[Slices]:
        for parts in self._window:
            if all(part is None or part.first_ns > after_ns for part in parts):
                yield parts

    def _counts(self, after_ns: int = -1) -> Array:
        """Readings of each stream that is not silent."""
        counts = np.zeros(len(self._limits))
        silent = np.zeros(len(self._limits), dtype=np.bool_)
        for parts in self._after(after_ns):
            counts += [0 if part is None else part.count for part in parts]
            silent |= [part is None for part in parts]
        return np.asarray(counts[~silent])

    def _shorten(self) -> None:
        while len(self._window) > 1:
            oldest = [0 if part is None else part.count for part in self._window[0]]
            if self.samples() - max(oldest) < self._most:
                return
            self._window.popleft()


def _mean(parts: Sequence[Slice]) -> Array:
    total = np.sum([part.total for part in parts], axis=0)
    return np.asarray(total / sum(part.count for part in parts))


def _constant(parts: Sequence[Slice]) -> bool:
    if not parts:
        return False
    low = np.min([part.low for part in parts], axis=0)
    return bool((low == np.max([part.high for part in parts], axis=0)).all())
