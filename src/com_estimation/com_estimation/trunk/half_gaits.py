"""Half gaits of a trot: since when does the robot stand on which diagonal."""

from dataclasses import dataclass

import numpy as np

from com_model import legs
from com_model.arrays import Flags

DIAGONALS = tuple(legs.DIAGONALS.values())
"""Legs that stand together: left front and right hind, right front and left hind."""


@dataclass(frozen=True)
class HalfGait:
    """What the robot stands on."""

    diagonal: int | None  # index into DIAGONALS; None when it does not stand on just one
    start: float  # s, when the swinging feet left the ground; NaN without diagonal
    count: int  # 1 for the first half gait after standing on four feet; 0 while that is not known
    standing: bool  # it stands on four feet


class HalfGaits:
    """Counts half gaits from the moment that the robot, having stood, lifts two feet.

    Args:
        standing_time: s on four feet, after which the next half gait is the first.
    """

    def __init__(self, standing_time: float = 0.2) -> None:
        self._standing_time = standing_time
        self.reset()

    def reset(self) -> None:
        """Forget all: half gaits are not counted until the robot has stood on four feet."""
        self._four_since = np.nan
        self._has_stood = False
        self._last = HalfGait(None, np.nan, 0, False)

    def update(self, time: float, stance: Flags) -> HalfGait:
        """Take in which feet stand, (4,) in the order of legs.LEGS."""
        self._time_standing(time, bool(stance.all()))
        diagonal = _diagonal(stance)
        if diagonal is None:
            count, start = self._last.count, np.nan
        elif diagonal == self._last.diagonal:
            count, start = self._last.count, self._last.start
        else:
            count, start = self._next_count(), time
        self._last = HalfGait(diagonal, start, count, bool(stance.all()))
        return self._last

    def _time_standing(self, time: float, four: bool) -> None:
        if not four:
            self._four_since = np.nan
            return
        if np.isnan(self._four_since):
            self._four_since = time
        if time - self._four_since >= self._standing_time:
            self._has_stood = True

    def _next_count(self) -> int:
        if self._has_stood:
            self._has_stood = False
            return 1
        return self._last.count + 1 if self._last.count else 0


def _diagonal(stance: Flags) -> int | None:
    """The only diagonal that stands, the other feet being free."""
    for index, pair in enumerate(DIAGONALS):
        if stance.sum() == len(pair) and stance[list(pair)].all():
            return index
    return None
