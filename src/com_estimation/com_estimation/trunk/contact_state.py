"""Which feet stand on the ground, from how hard they press: hysteresis in force and in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class ContactOptions:
    """When a foot counts as standing.

    Attributes:
        enter_share: of the robot's weight; a foot that presses more is about to stand.
        leave_share: of the robot's weight; a foot that presses less is about to be free.
        enter_time: s that it must press more before it stands.
        leave_time: s that it must press less before it is free.
        longest_gap: s between samples, beyond which both times start anew.

    Raises:
        ValueError: The shares are not 0 <= leave <= enter, or a time is negative.
    """

    enter_share: float = 0.10
    leave_share: float = 0.05
    enter_time: float = 0.010
    leave_time: float = 0.010
    longest_gap: float = 0.100

    def __post_init__(self) -> None:
        if not 0.0 <= self.leave_share <= self.enter_share:
            shares = f"leave_share {self.leave_share:g}, enter_share {self.enter_share:g}"
            raise ValueError(f"{shares}: expected 0 <= leave_share <= enter_share")
        if not min(self.enter_time, self.leave_time, self.longest_gap) >= 0.0:
            times = f"{self.enter_time:g}, {self.leave_time:g}, {self.longest_gap:g}"
            raise ValueError(f"enter_time, leave_time, longest_gap are {times}: expected >= 0 s")


class ContactState:
    """Contact of k feet, by hysteresis.

    A foot stands once its force has been above enter_share * weight for enter_time, and is free
    once it has been below leave_share * weight for leave_time; between the two it stays as it
    was. At first, and after a force that is not known, its contact is not known either until one
    of the two has happened.

    Args:
        weight: N, mass of the robot times gravity.
        options: Thresholds and times.
        count: Number of feet, k.

    Raises:
        ValueError: The weight is not positive.
    """

    def __init__(
        self, weight: float, options: ContactOptions | None = None, count: int = 4
    ) -> None:
        if not (np.isfinite(weight) and weight > 0.0):
            raise ValueError(f"weight is {weight:g} N: expected a positive number")
        self._options = options or ContactOptions()
        self._enter = self._options.enter_share * weight
        self._leave = self._options.leave_share * weight
        self._count = count
        self._above = self._below = np.full(count, np.nan)  # s, since when; NaN: it is not
        self.reset()

    def reset(self) -> None:
        """Forget all forces: no foot's contact is known."""
        self._time = np.nan
        self._contact = np.zeros(self._count, dtype=np.bool_)
        self._known = np.zeros(self._count, dtype=np.bool_)
        self._restart()

    @property
    def contact(self) -> Flags:
        """(k,) the feet that stand; False as well where it is not known."""
        return self._contact.copy()

    @property
    def known(self) -> Flags:
        """(k,) the feet of which it is known whether they stand."""
        return self._known.copy()

    def update(self, time: float, force: ArrayLike) -> Flags:
        """Take in the forces of one sample.

        Args:
            time: s; when it goes back, everything is forgotten.
            force: (k,) N of the ground on each foot, against gravity; NaN where not known.

        Returns:
            (k,) the feet that stand; `known` says of which feet that can be told.
        """
        force = np.asarray(force, dtype=np.float64)
        if time < self._time:
            self.reset()
        if time - self._time > self._options.longest_gap:
            self._restart()
        self._time = time
        self._forget(np.isnan(force))
        self._above = _since(self._above, force > self._enter, time)
        self._below = _since(self._below, force < self._leave, time)
        self._decide(time - self._above >= self._options.enter_time, True)
        self._decide(time - self._below >= self._options.leave_time, False)
        return self.contact

    def _restart(self) -> None:
        self._above = self._below = np.full(self._count, np.nan)

    def _forget(self, feet: Flags) -> None:
        self._contact[feet] = False
        self._known[feet] = False

    def _decide(self, feet: Flags, contact: bool) -> None:
        self._contact[feet] = contact
        self._known[feet] = True


def _since(start: Array, holds: Flags, now: float) -> Array:
    """Times since when a condition holds, s; NaN where it does not."""
    return np.where(holds, np.where(np.isnan(start), now, start), np.nan)
