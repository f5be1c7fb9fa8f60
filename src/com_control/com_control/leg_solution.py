"""What inverse kinematics of a leg finds."""

from dataclasses import dataclass

from com_model.arrays import Array, FrozenArrays


@dataclass(frozen=True, eq=False)
class LegSolution(FrozenArrays):
    """Joint angles for a foot."""

    q: Array  # (n,) rad. Out of reach: those of the nearest point that was found, or NaN.
    reached: bool  # the foot is at its target
    within_limits: bool
    reason: str  # why it is not reached, or which limit forbids it; "" when all is well
