"""Contact of the feet with the ground, decided from the load that each foot carries.

The load fraction of a foot is the vertical force of the ground on it over the robot's weight.
Five thresholds answer the questions that estimation, identification and control ask:

    0 ... SWING_LOAD ... RELEASE_LOAD ... CONTACT_LOAD ... LIGHT_LOAD ... SUPPORT_LOAD ... 1
    in the air         | ends contact   | begins contact | firmly loaded | all feet: supported

A foot that touches the ground is in contact from CONTACT_LOAD on and stays so down to
RELEASE_LOAD (hysteresis). What else is asked of a force, such as whether a sensor's reading is
plausible or whether a plan lets a foot stand, has its own threshold beside the code that asks.
"""

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, Flags

# Fraction from which a foot is in contact. Between what friction and biases show on a foot in the
# air (SWING_LOAD) and the 0.25 of a quadruped that stands on four feet: half of it is close to
# the former, double close to the latter. Users may set it (floating_base.contact_load).
CONTACT_LOAD = 0.10
# Fraction below which a foot that was in contact is free, and no longer bounds where the robot
# can be supported. Half of CONTACT_LOAD, so that noise of 2.5 % of the weight around the middle
# of the two switches nothing.
RELEASE_LOAD = 0.05
# Fraction up to which a foot may be in swing: below RELEASE_LOAD, so that a foot that is still
# being lifted does not count. A leg whose friction and sensor errors exceed it never swings.
SWING_LOAD = 0.03
# Fraction up to which a foot is light: what it seems to carry may be errors of its sensor or of
# the joint torques alone, and its sole need not be flat on the ground. Just below the 0.25 of a
# standing quadruped, with which no foot that stands is light; half is CONTACT_LOAD.
LIGHT_LOAD = 0.2
# Fraction of the weight on all feet together, below which they do not support the robot: it
# hangs, is lifted, jumps or has fallen. A URDF whose masses are wrong by a third is still
# supported by this rule. Double would take a robot with half of its weight for a fallen one.
SUPPORT_LOAD = 0.3


class ContactState:
    """Contact of k feet from their forces, with hysteresis.

    A foot is in contact once its force has been above load * weight (N) for 10 ms, and is free
    once it has been below RELEASE_LOAD / CONTACT_LOAD of that for 10 ms; between the two it stays
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
        self._enter = load * weight
        self._leave = RELEASE_LOAD / CONTACT_LOAD * self._enter
        self._count = count
        # s, since when the force is above or below its threshold; NaN: it is not
        self._above = self._below = np.full(count, np.nan)
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

        When time goes back, everything is forgotten; after a gap of more than 0.1 s both times
        restart.

        Args:
            time: s.
            force: (k,) N of the ground on each foot, against gravity; NaN where unknown.

        Returns:
            (k,) feet in contact; `known` says for which feet that is known.
        """
        force = np.asarray(force, dtype=np.float64)
        if time < self._time:
            self.reset()
        if time - self._time > 0.100:
            self._restart()
        self._time = time
        self._contact &= ~np.isnan(force)
        self._known &= ~np.isnan(force)
        self._above = update_onsets(self._above, force > self._enter, time)
        self._below = update_onsets(self._below, force < self._leave, time)
        lasting = 0.010  # s above CONTACT_LOAD, or below RELEASE_LOAD, before the state changes
        stands = time - self._above >= lasting
        free = time - self._below >= lasting
        self._contact = (self._contact | stands) & ~free
        self._known |= stands | free
        return self.contact

    def _restart(self) -> None:
        self._above = self._below = np.full(self._count, np.nan)


def update_onsets(onset: Array, condition: Flags, now: float) -> Array:
    """Updates since when conditions have been true without interruption.

    Args:
        onset: (k,) s, of the sample before; NaN where the condition was false.
        condition: (k,) whether it is true now.
        now: s.

    Returns:
        (k,) s; NaN where the condition is false.
    """
    return np.where(condition, np.where(np.isnan(onset), now, onset), np.nan)
