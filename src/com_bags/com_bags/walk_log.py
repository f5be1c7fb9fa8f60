"""A recording of a robot that moves, as arrays."""

from dataclasses import dataclass

import numpy as np

from com_model.arrays import Array


@dataclass(frozen=True, eq=False)
class WalkLog:
    """A recording, N samples of n joints; the readings are of the same instants.

    Attributes:
        time: (N,) s.
        position: (N, n) rad or m.
        velocity: (N, n); None: differences of the positions.
        effort: (N, n) N m or N; NaN where a joint reports none.
        angular_velocity: (N, 3) rad/s, IMU axes; NaN without an IMU.
        specific_force: (N, 3) m/s^2, IMU axes; NaN without an IMU.
        up: (N, 3) against gravity, root axes, by the IMU's filter; None: unknown.
    """

    time: Array
    position: Array
    velocity: Array | None
    effort: Array
    angular_velocity: Array
    specific_force: Array
    up: Array | None = None

    @property
    def has_imu(self) -> bool:
        """Whether there are readings of an IMU."""
        return not bool(np.isnan(self.angular_velocity).all())
