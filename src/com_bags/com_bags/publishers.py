"""Signs that several nodes wrote to one topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from com_model.arrays import Array
from com_model.text import listing, quote

INTERLEAVED = 20  # changes to and fro that are no accident
_LATE_SHARE = 0.02
_LEAST_PAIRS = 20


@dataclass
class StreamWatch:
    """Watches one topic.

    Attributes:
        topic: Its name.
        least: How far values must jump to and fro to be two nodes' (rad, N).
        count: Messages.
        late: Stamps that are older than the one before.
        frames: Messages by frame_id.
        frame_switches: How often the frame changed.
        alternating: Blocks in which the values jump to and fro.
        blocks: Blocks that were looked at.
    """

    topic: str
    least: float
    count: int = 0
    late: int = 0
    frames: Counter[str] = field(default_factory=Counter)
    frame_switches: int = 0
    alternating: int = 0
    blocks: int = 0
    _last: int | None = None
    _frame: str | None = None

    def see_times(self, times: NDArray[np.int64]) -> None:
        """Looks at the stamps of a block in the order of the bag."""
        if not len(times):
            return
        before = times[:1] if self._last is None else np.array([self._last])
        self.late += int(np.count_nonzero(np.diff(np.concatenate((before, times))) < 0))
        self.count += len(times)
        self._last = int(times[-1])

    def see_frames(self, frames: Sequence[str]) -> None:
        """Looks at the frames of a block's messages, one for each run of equal ones."""
        for frame in frames:
            self.frame_switches += self._frame is not None and frame != self._frame
            self._frame = frame

    def see_values(self, values: Array) -> None:
        """Looks whether values (N, k) jump to and fro between every two messages."""
        if len(values) < _LEAST_PAIRS:
            return
        values = np.nan_to_num(values)
        one = np.abs(values[1:-1] - values[:-2]).max(axis=1)
        two = np.abs(values[2:] - values[:-2]).max(axis=1)
        step = float(np.median(one))
        self.blocks += 1
        self.alternating += step > self.least and float(np.median(two)) < 0.1 * step

    def signs(self) -> list[str]:
        """What speaks for several writers, in sentences."""
        words = []
        if len(self.frames) > 1 and self.frame_switches >= INTERLEAVED:
            words.append(f"frame_id changes between {listing(map(quote, sorted(self.frames)))}")
        if self.count and self.late > max(INTERLEAVED, _LATE_SHARE * self.count):
            words.append(f"{self.late} of {self.count} stamps are older than the one before")
        if self.blocks and 2 * self.alternating > self.blocks:
            words.append("its values jump to and fro from one message to the next")
        return words
