"""Detection of what is not a trot: lying, hanging, lifted, standing."""

import math
from collections.abc import Sequence

import numpy as np

from com_estimation.trunk.sensor_checks import Problem, Severity
from com_model.arrays import Flags
from com_model.contact import SUPPORT_LOAD, update_onsets
from com_model.legs import DIAGONALS

_PARTNERS = {a: b for pair in DIAGONALS.values() for a, b in (pair, pair[::-1])}


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
        # since when all feet are in the air though the robot does not fly
        self._held_up = np.full(1, np.nan)
        self._raised = np.full(count, np.nan)  # since when it is above the ground
        self._differs = np.full(
            count, np.nan
        )  # since when its contact contradicts the gait's phase
        self._pulled = np.full(
            1, np.nan
        )  # since when the ground seems to pull at the feet
        # since when they carry nothing though the robot does not fall
        self._unloaded = np.full(1, np.nan)
        self._grounded = False  # they have carried it since the start, or since it hung

    def update(
        self,
        time: float,
        contact: Flags,
        known: Flags,
        stance: Flags | None = None,
        tilt: float = 0.0,
        load: float = 1.0,
        clear: Flags | None = None,
        lift: float = np.nan,
    ) -> Problem | None:
        """Checks one sample.

        Args:
            time: s, of the sample.
            contact: (4,) feet in contact, from their forces.
            known: (4,) feet whose contact is known.
            stance: (4,) legs that should stand by the gait's phase; None when unknown.
            tilt: rad, of the root link against gravity; NaN when unknown.
            load: fraction of the weight that the feet carry together; NaN when unknown.
            clear: (4,) feet that are above the ground by the posture: one that is not may rock
                without load; None when unknown.
            lift: over g, of the specific force against gravity; NaN when unknown.

        Returns:
            A HOLD when the robot lies, hangs, has a leg held up, or its feet seem to be pulled
            down; a NOTE when it stands or a swing leg is loaded; None otherwise.
        """
        self._landed = update_onsets(self._landed, contact & known, time)
        differs = (
            known & (contact != stance) if stance is not None else np.zeros_like(known)
        )
        self._differs = update_onsets(self._differs, differs, time)
        above = ~contact & known if clear is None else ~contact & known & clear
        self._raised = update_onsets(self._raised, above, time)
        least = 0.5  # of g, specific force, above which a robot does not fly
        held_up = (~contact & known).all() and not lift < least
        self._held_up = update_onsets(self._held_up, np.array([held_up]), time)
        unloaded = lift > least and load < SUPPORT_LOAD * lift
        self._unloaded = update_onsets(self._unloaded, np.array([unloaded]), time)
        self._grounded |= load >= SUPPORT_LOAD
        # rad of the trunk, above which the robot lies
        upright = not tilt > math.radians(50.0)
        # of the weight: the feet's total load is not below this for long
        pulled = upright and load < -0.2
        self._pulled = update_onsets(self._pulled, np.array([pulled]), time)
        if not upright:
            text = f"the robot lies ({math.degrees(tilt):.0f} degrees of tilt): put it on its feet"
            self.problem = Problem(Severity.HOLD, text)
        # s, for which they seem to be pulled
        elif time - self._pulled[0] > 0.03:
            self.problem = Problem(
                Severity.HOLD,
                "by the efforts the ground pulls at the feet: effort has the wrong sign, let the "
                "driver give the torques that the actuators apply",
            )
        else:
            lifted = self._hanging(time) or self._lifted_leg(time, stance)
            self.problem = lifted or self._standing(time)
        return self.problem

    def _hanging(self, time: float) -> Problem | None:
        air, bare = time - self._held_up[0], time - self._unloaded[0]
        # s without load on the feet, while something holds the robot up, before it counts as
        # hanging: a trot lifts and lands in less
        self._grounded &= not bare > 0.1
        # s with all feet in the air, before the robot counts as hanging
        if not (air > 0.3 or (bare >= 0.0 and not self._grounded)):
            return None
        seconds = np.fmax(air, bare)
        text = f"no foot carries the robot for {seconds:.1f} s: put it on its feet"
        return Problem(Severity.HOLD, text)

    def _lifted_leg(self, time: float, stance: Flags | None) -> Problem | None:
        air = time - self._raised
        most = 0.2  # s with a foot whose contact contradicts the gait's phase
        mismatch = time - self._differs > most
        # s with a foot in the air, before it counts as lifted by hand
        long = air > 1.0
        if stance is not None:
            # A hand lifts one leg; a whole diagonal is up where the robot rocks or hops.
            partner = (air > 0.0)[[leg for _, leg in sorted(_PARTNERS.items())]]
            long |= mismatch & stance & (air > most) & ~partner
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
        # s with all feet on the ground, before the robot counts as standing
        if not (time - self._landed > 1.0).all():
            return None
        return Problem(
            Severity.NOTE,
            "the robot stands still: z of the CoM is not observable, x, y only as far as the "
            "joints are free of friction: let it trot",
        )
