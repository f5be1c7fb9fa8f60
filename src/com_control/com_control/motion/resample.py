"""Samples at any times -> rows at whole periods, as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from com_control.motion.csv_file import BLOCK, Rows
from com_control.motion.exceptions import MotionError
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
        block: Rows at a time.

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
                share = min(max((due - before[0]) / gap, 0.0), 1.0)
                yield before[1] + share * (positions - before[1])
                count += 1
        before = time, positions
    if before is not None and start + (count - 1) * period < before[0] - _SAME:
        yield before[1]
