"""The trunk's attitude as a gait needs it: which way is up, filtered."""

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array

MAX_BIAS = 0.01  # rad: what is more is the ground's slope
LEARNING = 0.2  # s of standing from which the bias counts


class AttitudeFilter:
    """Low-pass of the direction against gravity, carried on by the gyroscope where there is one.

        up_dot = -omega x up + (up_measured - up) / T

    A trunk that stands on its home posture is parallel to the ground: what is measured then, up to
    MAX_BIAS, is taken for the sensor's bias, and left out from then on.

    Args:
        time_constant: T, s, with a gyroscope; 0: no filter.
        alone: s, T without a gyroscope.

    Attributes:
        up: (3,) unit vector against gravity, root's axes.
        bias: (2,) x and y of up that the sensor makes up.
    """

    def __init__(self, time_constant: float, alone: float = 0.0) -> None:
        self._with_gyro, self._alone = time_constant, alone
        self.reset()

    def reset(self) -> None:
        """Forgets what came before: level, without bias."""
        self.up = self._measured = np.array([0.0, 0.0, 1.0])
        self.bias = np.zeros(2)
        self._known, self._age = False, 0.0
        self._sum, self._time = np.zeros(2), 0.0

    def update(
        self,
        dt: float,
        R_world_root: ArrayLike | None,
        angular_velocity: ArrayLike | None,
        parallel: bool = False,
    ) -> None:
        """Goes on by dt, s; a measurement that is None or not finite counts for nothing.

        Args:
            dt: s.
            R_world_root: (3, 3), measured.
            angular_velocity: (3,) rad/s, root's axes.
            parallel: The trunk stands parallel to the ground.
        """
        omega = _finite(angular_velocity, (3,))
        R = _finite(R_world_root, (3, 3))
        up = self._measured
        if omega is not None:
            up = up - dt * np.cross(omega, up)
        if R is not None:
            time_constant = self._alone if omega is None else self._with_gyro
            self._age += dt
            gain = 1.0
            if self._known and time_constant > 0.0 and self._age > 0.0:  # a mean to begin with
                gain = max(1.0 - np.exp(-dt / time_constant), dt / self._age)
            up = up + gain * (R[2] - up)
            self._known = True
            if parallel:
                self._learn(dt, R[2, :2])
        self._measured = up / np.linalg.norm(up)
        level = self._measured - np.append(self.bias, 0.0)
        self.up = level / np.linalg.norm(level)

    def _learn(self, dt: float, tilt: Array) -> None:
        """Mean of what is measured while parallel; from LEARNING s on it counts."""
        self._sum, self._time = self._sum + dt * tilt, self._time + dt
        if self._time < LEARNING:
            return
        mean = self._sum / self._time
        self.bias = mean * min(1.0, MAX_BIAS / max(float(np.linalg.norm(mean)), MAX_BIAS))


def _finite(values: ArrayLike | None, shape: tuple[int, ...]) -> Array | None:
    if values is None:
        return None
    array = np.asarray(values, dtype=float)
    return array if array.shape == shape and np.isfinite(array).all() else None
