"""The leg of [Ding]: forward kinematics, Jacobian and their inverse as formulas.

Foot in the hip's frame (x forward, y left, z up), L0, L1, L2 the links, d2 the lateral offset,
side (lambda in the paper) 1 for left legs and -1 for right ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import acos, atan2, cos, hypot, sin, sqrt

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, as_array
from com_model.exceptions import GeometryError


@dataclass(frozen=True)
class DingLeg:
    """Lengths of a leg.

    Attributes:
        L0: m, from the abduction axis down to the flexion axis.
        L1: m, thigh.
        L2: m, shank.
        d2: m, lateral offset of the foot.
        side: 1 left, -1 right.
    """

    L0: float
    L1: float
    L2: float
    d2: float
    side: int

    def position(self, q: ArrayLike) -> Array:
        """Foot (3,), m, at the joint angles (3,), rad ([Ding] eq. 1)."""
        s0, c0, s1, c1, s12, c12 = _sines(q)
        down = self.L0 + self.L1 * c1 + self.L2 * c12
        aside = self.side * self.d2
        return np.array(
            [
                -self.L1 * s1 - self.L2 * s12,
                s0 * down + aside * c0,
                -c0 * down + aside * s0,
            ]
        )

    def jacobian(self, q: ArrayLike) -> Array:
        """Derivative of position by the joint angles, (3, 3), m/rad.

        [Ding] eq. 2 without its trailing transpose: the matrix before it is the derivative already.
        """
        s0, c0, s1, c1, s12, c12 = _sines(q)
        down = self.L0 + self.L1 * c1 + self.L2 * c12
        aside = self.side * self.d2
        knee = self.L1 * s1 + self.L2 * s12
        return np.array(
            [
                [0.0, -self.L1 * c1 - self.L2 * c12, -self.L2 * c12],
                [c0 * down - aside * s0, -s0 * knee, -self.L2 * s0 * s12],
                [s0 * down + aside * c0, c0 * knee, self.L2 * c0 * s12],
            ]
        )

    def solve(self, p: ArrayLike, knee: int) -> Array:
        """Joint angles (3,), rad, that bring the foot to p, below the hip.

        Args:
            p: (3,) m, in the hip's frame.
            knee: Sign of the knee's angle, 1 or -1.

        Raises:
            GeometryError: p is out of reach.
        """
        x, y, z = as_array("p", p, (3,)).tolist()
        aside = self.side * self.d2
        square = y * y + z * z - aside * aside
        if square < 0.0:
            raise GeometryError(
                f"the foot is nearer than {self.d2:g} m to the abduction axis"
            )
        depth = sqrt(square)  # L0 + L1 c1 + L2 c12
        q0 = atan2(y, -z) - atan2(aside, depth)
        below = depth - self.L0
        reach = hypot(x, below)
        cosine = (reach**2 - self.L1**2 - self.L2**2) / (2.0 * self.L1 * self.L2)
        if abs(cosine) > 1.0:
            raise GeometryError(
                f"the foot is {reach:.3f} m from the flexion axis, the leg reaches "
                f"{abs(self.L1 - self.L2):.3f} to {self.L1 + self.L2:.3f} m"
            )
        q2 = knee * acos(cosine)
        q1 = atan2(-x, below) - atan2(self.L2 * sin(q2), self.L1 + self.L2 * cos(q2))
        return np.array([q0, q1, q2])


def _sines(q: ArrayLike) -> tuple[float, float, float, float, float, float]:
    q0, q1, q2 = as_array("q", q, (3,)).tolist()
    return sin(q0), cos(q0), sin(q1), cos(q1), sin(q1 + q2), cos(q1 + q2)
