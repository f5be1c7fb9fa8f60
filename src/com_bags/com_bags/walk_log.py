"""A recording of a robot that moves, as arrays."""

from dataclasses import dataclass

import numpy as np

from com_bags.exceptions import BagError
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

    def between(self, since: float | None, until: float | None) -> "WalkLog":
        """Returns the part between two times.

        Args:
            since: s from the first sample; None: from there on.
            until: s from the first sample; None: up to the last.

        Raises:
            BagError: nothing is between them.
        """
        time = self.time - self.time[0]
        first, last = since or 0.0, np.inf if until is None else until
        part = (time >= first) & (time <= last)
        if not part.any():
            problem = (
                f"no joint state between {first:g} and {last:g} s: expected times up to"
            )
            raise BagError(f"{problem} {time[-1]:.1f} s", "--from, --to")
        columns = (None if v is None else v[part] for v in vars(self).values())
        return WalkLog(*columns)  # type: ignore[arg-type]
