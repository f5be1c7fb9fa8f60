"""Contact of the feet from their forces, and detection of what is not a trot."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from com_estimation.trunk.sensor_checks import Problem, Severity
from com_model.arrays import Array, Flags

CONTACT_LOAD = 0.10  # fraction of the robot's weight above which a foot is in contact
RELEASE = 0.5  # fraction of that, below which it is free again
# s above, or below, the threshold before a foot is in contact, or free
ENTER_TIME, LEAVE_TIME = 0.010, 0.010
LONGEST_GAP = 0.100  # s between samples, beyond which both times restart


# --- contact ----------------------------------------------------------------------------------
class ContactState:
    """Contact of k feet from their forces, with hysteresis.

    A foot is in contact once its force has been above load * weight (N) for ENTER_TIME, and is
    free once it has been below RELEASE * load * weight for LEAVE_TIME; between the two it stays
    as it was. At first, and after an unknown force, its contact is unknown until one of the two
    has happened.

    Args:
        weight: N, of the robot.
        load: fraction of the weight from which a foot is in contact.
        count: k, the number of feet.

    Raises:
        ValueError: the weight is not a positive number.
    """

    def __init__(
        self, weight: float, load: float = CONTACT_LOAD, count: int = 4
    ) -> None:
        if not (np.isfinite(weight) and weight > 0.0):
            raise ValueError(f"weight is {weight:g} N: expected a positive number")
        self._enter, self._leave = load * weight, RELEASE * load * weight
        self._count = count
        self._above = self._below = np.full(
            count, np.nan
        )  # s, since when; NaN: it is not
        self.reset()

    def reset(self) -> None:
        """Forgets all forces: no foot's contact is known."""
        self._time = np.nan
        self._contact = np.zeros(self._count, dtype=np.bool_)
        self._known = np.zeros(self._count, dtype=np.bool_)
        self._restart()

    @property
    def contact(self) -> Flags:
        """(k,) feet in contact; False as well where that is unknown."""
        return self._contact.copy()

    @property
    def known(self) -> Flags:
        """(k,) feet whose contact is known."""
        return self._known.copy()

    def update(self, time: float, force: ArrayLike) -> Flags:
        """Updates the contacts with the forces of one sample.

        When time goes back, everything is forgotten; after a gap of more than LONGEST_GAP both
        times restart.

        Args:
            time: s.
            force: (k,) N of the ground on each foot, against gravity; NaN where unknown.

        Returns:
            (k,) feet in contact; `known` says for which feet that is known.
        """
        force = np.asarray(force, dtype=np.float64)
        if time < self._time:
            self.reset()
        if time - self._time > LONGEST_GAP:
            self._restart()
        self._time = time
        self._contact &= ~np.isnan(force)
        self._known &= ~np.isnan(force)
        self._above = _since(self._above, force > self._enter, time)
        self._below = _since(self._below, force < self._leave, time)
        stands, free = (
            time - self._above >= ENTER_TIME,
            time - self._below >= LEAVE_TIME,
        )
        self._contact = (self._contact | stands) & ~free
        self._known |= stands | free
        return self.contact

    def _restart(self) -> None:
        self._above = self._below = np.full(self._count, np.nan)


def _since(start: Array, holds: Flags, now: float) -> Array:
    """Times s since when a condition is true; NaN where it is not."""
    return np.where(holds, np.where(np.isnan(start), now, start), np.nan)


# --- gait -------------------------------------------------------------------------------------
MOST_TILT = math.radians(50.0)
PULL = -0.2  # of the weight: the feet's total load is not below this for long
PULL_TIME = 0.03  # s


# s of a gait: with all feet on the ground, before the robot counts as standing; with a foot in the
# air, before it counts as lifted by hand; with all feet in the air, before the robot counts as
# hanging; with a foot whose contact contradicts the gait's phase
STAND, SWING, FLIGHT, MISMATCH = 1.0, 1.0, 0.3, 0.2


class GaitCheck:
    """Detects when four legs do not trot on the ground: lying, hanging, lifted, standing.

    Args:
        legs: names of the legs, for the texts.

    Attributes:
        problem: problem at the last sample, or None.
    """

    def __init__(self, legs: Sequence[str]) -> None:
        self._legs = list(legs)
        self.problem: Problem | None = None
        count = len(self._legs)
        self._landed = np.full(count, np.nan)  # s, since when each foot stands
        self._lifted = np.full(count, np.nan)
        self._differs = np.full(
            count, np.nan
        )  # since when its contact contradicts the gait's phase
        self._pulled = np.full(
            1, np.nan
        )  # since when the ground seems to pull at the feet

    def update(
        self,
        time: float,
        contact: Flags,
        known: Flags,
        stance: Flags | None = None,
        tilt: float = 0.0,
        load: float = 1.0,
    ) -> Problem | None:
        """Checks one sample.

        Args:
            time: s, of the sample.
            contact: (4,) feet in contact, from their forces.
            known: (4,) feet whose contact is known.
            stance: (4,) legs that should stand by the gait's phase; None when unknown.
            tilt: rad, of the root link against gravity; NaN when unknown.
            load: fraction of the weight that the feet carry together; NaN when unknown.

        Returns:
            A HOLD when the robot lies, hangs, has a leg held up, or its feet seem to be pulled
            down; a NOTE when it stands or a swing leg is loaded; None otherwise.
        """
        self._landed = _since(self._landed, contact & known, time)
        self._lifted = _since(self._lifted, ~contact & known, time)
        differs = (
            known & (contact != stance) if stance is not None else np.zeros_like(known)
        )
        self._differs = _since(self._differs, differs, time)
        upright = not tilt > MOST_TILT
        pulled = upright and load < PULL
        self._pulled = _since(self._pulled, np.array([pulled]), time)
        if not upright:
            text = f"the robot lies ({math.degrees(tilt):.0f} degrees of tilt): put it on its feet"
            self.problem = Problem(Severity.HOLD, text)
        elif time - self._pulled[0] > PULL_TIME:
            self.problem = Problem(Severity.HOLD, _PULLED)
        else:
            lifted = self._hanging(time) or self._lifted_leg(time, stance)
            self.problem = lifted or self._standing(time)
        return self.problem

    def _hanging(self, time: float) -> Problem | None:
        air = time - self._lifted
        if not (air > FLIGHT).all():
            return None
        text = f"no foot carries the robot for {air.min():.1f} s: put it on its feet"
        return Problem(Severity.HOLD, text)

    def _lifted_leg(self, time: float, stance: Flags | None) -> Problem | None:
        air = time - self._lifted
        mismatch = time - self._differs > MISMATCH
        long = air > SWING
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
        if not (time - self._landed > STAND).all():
            return None
        return Problem(
            Severity.NOTE,
            "the robot stands still: z of the CoM is not observable, x, y only as far as the "
            "joints are free of friction: let it trot",
        )


_PULLED = (
    "by the efforts the ground pulls at the feet: effort has the wrong sign, let the driver give "
    "the torques that the actuators apply"
)
