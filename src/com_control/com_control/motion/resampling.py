"""Positions at any times, from messages, to rows at whole periods; every defect is counted.

A trajectory replaces what earlier ones say from the time of its first point on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import MotionError
from com_control.motion.csv_file import BLOCK, Rows
from com_model.arrays import Array

LONGEST_GAP = 600.0  # s; beyond, a clock has jumped
_SAME = 1e-9  # s

Sample = tuple[float, Array]
"""Time, s, and positions (k,), rad; NaN where not driven."""


def resampled(samples: Iterable[Sample], period: float, block: int = BLOCK) -> Iterator[Rows]:
    """Yields rows a period apart, on straight lines between the samples, block by block.

    The first row is the first sample; the last row is the last sample, up to a period later.

    Args:
        samples: Rising times.
        period: s.

    Raises:
        MotionError: Two samples are further apart than LONGEST_GAP.
    """
    first, rows = 1, []
    for row in _rows(samples, period):
        rows.append(row)
        if len(rows) == block:
            yield Rows(first, np.full(block, period), np.array(rows))
            first, rows = first + block, []
    if rows:
        yield Rows(first, np.full(len(rows), period), np.array(rows))


def _rows(samples: Iterable[Sample], period: float) -> Iterator[Array]:
    before: Sample | None = None
    start, count = 0.0, 0
    for time, positions in samples:
        if before is None:
            start, count = time, 1
            yield positions
        else:
            gap = time - before[0]
            if gap > LONGEST_GAP:
                raise MotionError(
                    f"nothing for {gap:.6g} s, {before[0]:.6g} s after the start: has a clock "
                    "jumped? Cut the recording there"
                )
            while (due := start + count * period) <= time + _SAME:
                fraction = min(max((due - before[0]) / gap, 0.0), 1.0)
                yield before[1] + fraction * (positions - before[1])
                count += 1
        before = time, positions
    if before is not None and start + (count - 1) * period < before[0] - _SAME:
        yield before[1]


NS_PER_S = 1_000_000_000
Point = tuple[int, ArrayLike]
"""Time from the start of its trajectory, ns; positions, rad."""
Trajectory = tuple[int, Sequence[str], Sequence[Point]]
"""Start, ns; names of joints; points."""
State = tuple[int, Sequence[str], ArrayLike]
"""Time, ns; names of joints; positions, rad."""

_REASONS = {
    "strangers": "of none of the motion's joints",
    "others": "of other joints than the first message",
    "broken": "with a position that is missing or not finite",
    "late": "not later than the one before",
}


class Messages:
    """Positions of messages in the order of a layout; counts what cannot be used.

    Args:
        joints: k names.

    Attributes:
        used: Number of samples that were used.
    """

    def __init__(self, joints: Sequence[str]) -> None:
        self._index = {name: i for i, name in enumerate(joints)}
        self._driven: frozenset[str] | None = None
        self._origin_ns, self._last_ns = 0, -1
        self._dropped: Counter[str] = Counter()
        self.used = 0

    @property
    def notes(self) -> list[str]:
        """What was left out, in words."""
        return [
            f"{count} left out: {_REASONS[kind]}" for kind, count in sorted(self._dropped.items())
        ]

    def take(self, time_ns: int, names: Sequence[str], positions: ArrayLike) -> Sample | None:
        """Makes a sample; None where it cannot be used."""
        values = np.asarray(positions, dtype=np.float64)
        mine = frozenset(name for name in names if name in self._index)
        problem = self._problem(time_ns, names, mine, values)
        if problem:
            self._dropped[problem] += 1
            return None
        if self._driven is None:
            self._driven, self._origin_ns = mine, time_ns
        self._last_ns = time_ns
        self.used += 1
        row: Array = np.full(len(self._index), np.nan)
        for name, value in zip(names, values.tolist(), strict=True):
            if name in self._index:
                row[self._index[name]] = value
        return (time_ns - self._origin_ns) / NS_PER_S, row

    def _problem(
        self, time_ns: int, names: Sequence[str], mine: frozenset[str], values: Array
    ) -> str:
        if not mine:
            return "strangers"
        if self._driven is not None and mine != self._driven:
            return "others"
        wanted = [name in mine for name in names]
        if values.shape != (len(names),) or not np.isfinite(values[wanted]).all():
            return "broken"
        return "late" if self.used and time_ns <= self._last_ns else ""


def samples_of_states(states: Iterable[State], messages: Messages) -> Iterator[Sample]:
    """Samples of joint states."""
    for state in states:
        sample = messages.take(*state)
        if sample is not None:
            yield sample


def samples_of_trajectories(
    trajectories: Iterable[Trajectory], messages: Messages
) -> Iterator[Sample]:
    """Samples of trajectories; holds no more than the points of one."""
    names: Sequence[str] = ()
    pending: list[tuple[int, ArrayLike]] = []
    for start_ns, joints, points in trajectories:
        if not points:
            continue
        first_ns = start_ns + points[0][0]
        yield from samples_of_states(((t, names, q) for t, q in pending if t < first_ns), messages)
        names, pending = joints, [(start_ns + after, q) for after, q in points]
    yield from samples_of_states(((t, names, q) for t, q in pending), messages)
