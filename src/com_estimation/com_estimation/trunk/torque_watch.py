"""Torque sensors that are absent, dead or stuck."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from com_estimation.trunk.problems import Problem, Severity
from com_estimation.trunk.repeats import Recovery, Repeats
from com_model.text import listing

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

DEAD_TIME = 0.1  # s of an unusual run after which a sensor counts as dead; a shorter one that
# ended by itself is put down to the sensor's coarse steps
RECOVERY_TIME = 0.1  # s
SATURATED = 0.98  # of the effort limit: a drive at its limit says the same all the time
ALIVE_SHARE = 0.25  # of the sensors must change for the others to be suspicious


class TorqueWatch:
    """Watches the efforts of k joints.

    Args:
        names: k joint names.
        limits: (k,) N m or N, effort limits; inf where there is none.
    """

    def __init__(self, names: Sequence[str], limits: Array) -> None:
        self._names = list(names)
        self._saturated = SATURATED * np.asarray(limits)
        self._repeats = Repeats(len(names))
        self._unusual = np.full(len(names), np.inf)  # s, since when a run is suspicious
        self._recovery = Recovery(len(names), RECOVERY_TIME)

    def update(self, time: float, effort: Array) -> tuple[Flags, Problem | None]:
        """Look at one sample.

        Args:
            time: s.
            effort: (k,) N m or N.

        Returns:
            (k,) the efforts that must not be used, and what is wrong: a HOLD when no effort is
            known, else a DEGRADE. A value that repeats for some samples only is left out without a
            word.
        """
        known = np.isfinite(effort)
        if not known.all():
            gravity = Severity.DEGRADE if known.any() else Severity.HOLD
            return ~known, Problem(gravity, self._not_known(known))
        if not effort.any():
            return known, Problem(Severity.HOLD, _ALL_ZERO)
        suspicious = self._suspicious(time, effort)
        self._unusual = np.where(suspicious, np.minimum(self._unusual, time), np.inf)
        lasting = time - self._unusual >= DEAD_TIME
        dead = self._recovery.update(time, lasting)
        if not dead.any():
            return suspicious, None
        return suspicious | dead, Problem(Severity.DEGRADE, self._dead(dead, effort))

    def _suspicious(self, time: float, effort: Array) -> Flags:
        repeats = self._repeats
        repeats.update(time, effort)
        repeats.learn(repeats.lasted < DEAD_TIME)
        alive = np.count_nonzero(repeats.run == 0) >= ALIVE_SHARE * len(self._names)
        run = repeats.run + 2 * (effort == 0.0)  # exactly nothing is suspicious at once
        unusual = (run > 1) & (repeats.duration >= 1.5 * repeats.longest)
        # What is under suspicion stays so until it changes, also while the others happen to rest.
        return unusual & (np.abs(effort) < self._saturated) & (alive | (self._unusual < np.inf))

    def _not_known(self, known: Flags) -> str:
        if not known.any():
            return (
                "joint_states carries no effort: the joint torques are needed; let the driver "
                "measure them"
            )
        bad = listing(name for name, good in zip(self._names, known, strict=True) if not good)
        return f"joint_states has no finite effort for {bad}: check the driver"

    def _dead(self, dead: Flags, effort: Array) -> str:
        parts = [
            f"{self._names[i]} ({effort[i]:g} for {self._repeats.duration[i]:.2f} s)"
            for i in np.flatnonzero(dead)
        ]
        return (
            f"the effort of {', '.join(parts)} does not change while those of other joints do: "
            "check the torque sensor"
        )


_ALL_ZERO = "the effort of every joint is zero: let the driver measure the joint torques"
