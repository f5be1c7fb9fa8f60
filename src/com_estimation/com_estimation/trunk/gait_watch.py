"""Does the robot trot? Which feet stand, for how long, and what that means for an estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from com_estimation.trunk.problems import Problem, Severity

Flags = NDArray[np.bool_]

MOST_TILT = math.radians(50.0)
PULL = -0.2  # of the weight: what the feet carry together never is less for long
PULL_TIME = 0.03  # s


@dataclass(frozen=True)
class GaitTimes:
    """How long the phases of a gait may last, s.

    Attributes:
        stand: With all feet on the ground, before the robot counts as standing.
        swing: With a foot in the air, before it counts as lifted by hand.
        flight: With all feet in the air, before the robot counts as hanging.
        mismatch: With a foot that does not do what the gait's phase says.
    """

    stand: float = 1.0
    swing: float = 1.0
    flight: float = 0.3
    mismatch: float = 0.2


class GaitWatch:
    """Watches the contacts of four feet.

    Args:
        legs: Names of the legs.
        times: How long the phases of the gait may last.
    """

    def __init__(self, legs: Sequence[str], times: GaitTimes | None = None) -> None:
        self._legs = list(legs)
        self._times = times or GaitTimes()
        count = len(self._legs)
        self._landed = np.full(count, np.nan)  # s, since when each foot stands
        self._lifted = np.full(count, np.nan)
        self._differs = np.full(count, np.nan)  # since when not as the gait's phase says
        self._pulled = np.full(1, np.nan)  # since when the ground seems to pull at the feet

    def update(
        self,
        time: float,
        contact: Flags,
        known: Flags,
        stance: Flags | None = None,
        tilt: float = 0.0,
        load: float = 1.0,
    ) -> Problem | None:
        """Look at one sample.

        Args:
            time: s.
            contact: (4,) the feet that stand, by their forces.
            known: (4,) the feet whose forces are known.
            stance: (4,) the legs that should stand by the gait's phase; None when not known.
            tilt: rad, of the root link against gravity; NaN when not known.
            load: Of the weight that the feet carry together; NaN when not known.
        """
        self._landed = _since(self._landed, contact & known, time)
        self._lifted = _since(self._lifted, ~contact & known, time)
        differs = known & (contact != stance) if stance is not None else np.zeros_like(known)
        self._differs = _since(self._differs, differs, time)
        if tilt > MOST_TILT:
            text = f"the robot lies ({math.degrees(tilt):.0f} degrees of tilt): put it on its feet"
            return Problem(Severity.HOLD, text)
        if not math.isnan(load):
            self._pulled = _since(self._pulled, np.array([load < PULL]), time)
        if time - self._pulled[0] > PULL_TIME:
            return Problem(Severity.HOLD, _PULLED)
        return self._hanging(time) or self._lifted_leg(time, stance) or self._standing(time)

    def _hanging(self, time: float) -> Problem | None:
        air = time - self._lifted
        if not (air > self._times.flight).all():
            return None
        return Problem(
            Severity.HOLD,
            f"no foot carries the robot for {air.min():.1f} s: put it on its feet",
        )

    def _lifted_leg(self, time: float, stance: Flags | None) -> Problem | None:
        air = time - self._lifted
        mismatch = time - self._differs > self._times.mismatch
        long = air > self._times.swing
        if stance is not None:
            long |= mismatch & stance & (air > 0.0)
            pressed = mismatch & ~stance & ~np.isnan(self._landed)
            if pressed.any() and not long.any():
                text = "carries load though the gait swings it: free it, or check gait/stance"
                return Problem(Severity.NOTE, f"{self._named(pressed)} {text}")
        if not long.any():
            return None
        text = f"is in the air for {air[long].max():.1f} s: let go of it, let it trot"
        return Problem(Severity.HOLD, f"{self._named(long)} {text}")

    def _named(self, legs: Flags) -> str:
        return ", ".join(self._legs[i] for i in np.flatnonzero(legs))

    def _standing(self, time: float) -> Problem | None:
        if not (time - self._landed > self._times.stand).all():
            return None
        return Problem(
            Severity.NOTE,
            "the robot stands still: z of the CoM cannot be seen, and x, y only as far as the "
            "joints are free of friction: let it trot",
        )


_PULLED = (
    "by the efforts the ground pulls at the feet: effort has the wrong sign, let the driver give "
    "the torques that the actuators apply"
)


def _since(start: NDArray[np.float64], holds: Flags, now: float) -> NDArray[np.float64]:
    """Times since when a condition holds, s; NaN where it does not."""
    return np.where(holds, np.where(np.isnan(start), now, start), np.nan)
