"""What inverse kinematics of a leg finds."""

from dataclasses import dataclass

from com_model.arrays import Array, FrozenArrays


@dataclass(frozen=True, eq=False)
class LegSolution(FrozenArrays):
    """Joint angles for a foot.

    Attributes:
        q: (n,) rad. Out of reach: those of the nearest point that was found, or NaN.
        reached: The foot is at its target.
        reason: Why it is not reached, or which limit forbids it; "" when all is well.
    """

    q: Array
    reached: bool
    within_limits: bool
    reason: str
