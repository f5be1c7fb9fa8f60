"""How far joints are from where they were told to be by now."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from com_model.arrays import Array

_REMEMBERED = 2000  # targets


class Tracking:
    """Remembers targets until they are due.

    Args:
        joints: k names.

    Attributes:
        error: rad or m, of the joint farthest from its target; NaN where not known.
        joint: Its name, or "".
    """

    def __init__(self, joints: Sequence[str]) -> None:
        self._joints = joints
        self._told: deque[tuple[float, Array]] = deque(maxlen=_REMEMBERED)
        self.error, self.joint = float("nan"), ""

    def clear(self) -> None:
        """Forgets all targets."""
        self._told.clear()
        self.error, self.joint = float("nan"), ""

    def tell(self, due: float, target: Array) -> None:
        """A target (k,) that is due at a time, s; NaN for joints without one."""
        self._told.append((due, target))

    def measure(self, time: float, measured: Array) -> None:
        """Where the joints (k,) are at a time, s; targets are on lines in between."""
        self.error, self.joint = float("nan"), ""
        while len(self._told) > 1 and self._told[1][0] <= time:
            self._told.popleft()
        if not self._told or self._told[0][0] > time or not np.isfinite(measured).all():
            return
        before, after = self._told[0], self._told[min(1, len(self._told) - 1)]
        share = (time - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
        error = np.abs(measured - before[1] - share * (after[1] - before[1]))
        if np.isfinite(error).any():
            farthest = int(np.nanargmax(error))
            self.error, self.joint = float(error[farthest]), self._joints[farthest]
