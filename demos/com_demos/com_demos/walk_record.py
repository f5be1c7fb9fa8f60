"""A walk that was simulated, as demos and benchmarks draw it."""

from dataclasses import dataclass

import numpy as np

from com_model.arrays import Array, FrozenArrays


@dataclass(frozen=True, eq=False)
class WalkRecord(FrozenArrays):
    """What became of a walk, at M times; it ends early when the robot falls. World axes."""

    time: Array  # (M,) s
    position: Array  # (M, n) joint positions, rad or m
    com: Array  # (M, 3) m, the true centre of mass
    root: Array  # (M, 3) m, origin of the root link
    R_root: Array  # (M, 3, 3) its orientation
    wrenches: Array  # (M, f, 6) what the feet's sensors read; see Reading
    fell_at: float  # s; NaN when it did not fall

    @property
    def fell(self) -> bool:
        """Whether the robot fell."""
        return bool(np.isfinite(self.fell_at))


TILTED = 0.8  # rad, of the root link against its start: the robot has fallen
SUNK = 0.7  # fraction of its first height, under which the root link has fallen


def has_fallen(R_start: Array, p_start: Array, R: Array, p: Array) -> bool:
    """Whether a root link has fallen since its start.

    Args:
        R_start: (3, 3) its orientation at the start, world axes, z upwards.
        p_start: (3,) m, its origin at the start; below the ground where the root link's frame is
            far from the robot.
        R: (3, 3) its orientation.
        p: (3,) m, its origin.
    """
    tilt = np.arccos(np.clip(R_start[2] @ R[2], -1.0, 1.0))
    return bool(tilt > TILTED or p_start[2] - p[2] > (1.0 - SUNK) * abs(p_start[2]))
