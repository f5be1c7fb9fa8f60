"""The reference that the centre of mass follows: it goes to what is desired without jumps."""

from __future__ import annotations

import numpy as np

from com_control.balance.options import BalanceOptions
from com_model.arrays import Array

LEAD = 0.02  # m, by which the reference may be ahead of a CoM that cannot follow
_APPROACH = 10.0  # 1/s, pace at which the last bit of the way is gone


class ComReference:
    """Follows a desired CoM with bounded speed and acceleration.

    Args:
        options: com_speed and com_acceleration.
    """

    def __init__(self, options: BalanceOptions) -> None:
        self._options = options
        self.reset(np.zeros(3))

    def reset(self, com: Array) -> None:
        """Begins at a CoM (3,) m, at rest."""
        self.position = com.copy()
        self.velocity = np.zeros(3)

    def move(self, target: Array, velocity: Array, com: Array, dt: float) -> None:
        """Goes on by dt (s) towards a target.

        Args:
            target: (3,) m; a height of NaN is not controlled, and then NaN in `position`.
            velocity: (3,) m/s, of the target.
            com: (3,) m, where the CoM is: the reference waits for it, and the height begins there
                when it is controlled again.
            dt: s.
        """
        if np.isnan(target[2]):
            self.position[2], self.velocity[2] = np.nan, 0.0
        elif np.isnan(self.position[2]):
            self.position[2], self.velocity[2] = com[2], 0.0
        used = slice(0, 2 if np.isnan(target[2]) else 3)
        way = target[used] - self.position[used]
        wish = velocity[used] + self._pace(way) * way
        self.velocity[used] = _toward(self.velocity[used], wish, self._options, dt)
        self.position[used] += self.velocity[used] * dt
        self._wait(com)

    def _wait(self, com: Array) -> None:
        """Stays within LEAD of the CoM (3,) m, along the ground and in height."""
        for part in (slice(0, 2), slice(2, 3)):
            ahead = self.position[part] - com[part]
            length = float(np.linalg.norm(ahead))
            if length > LEAD:
                self.position[part] = com[part] + ahead * (LEAD / length)

    def _pace(self, way: Array) -> float:
        """1/s, such that the way (m) is gone without overshoot: at v = sqrt(2 a s / 2)."""
        length = float(np.linalg.norm(way))
        if length == 0.0:
            return 0.0
        return min(_APPROACH, float(np.sqrt(self._options.com_acceleration / length)))


def _toward(velocity: Array, wish: Array, options: BalanceOptions, dt: float) -> Array:
    speed = float(np.linalg.norm(wish))
    if speed > options.com_speed:
        wish = wish * (options.com_speed / speed)
    change = wish - velocity
    size, most = float(np.linalg.norm(change)), options.com_acceleration * dt
    return velocity + (change if size <= most else change * (most / size))
