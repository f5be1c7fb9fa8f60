"""The trunk's attitude as a gait needs it: which way is up, filtered."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array


class AttitudeFilter:
    """Low-pass of the direction against gravity, carried on by the gyroscope where there is one.

        up_dot = -omega x up + (up_measured - up) / T

    Args:
        time_constant: T, s; 0: no filter.

    Attributes:
        up: (3,) unit vector against gravity, root's axes.
        rate: (3,) rad/s, the trunk's angular velocity, root's axes; without a gyroscope that of up.
    """

    def __init__(self, time_constant: float) -> None:
        self._time_constant = time_constant
        self.reset()

    def reset(self) -> None:
        """Forgets what came before: level and at rest."""
        self.up = np.array([0.0, 0.0, 1.0])
        self.rate = np.zeros(3)
        self._known = False

    def update(
        self, dt: float, R_world_root: ArrayLike | None, angular_velocity: ArrayLike | None
    ) -> None:
        """Goes on by dt, s; a measurement that is None or not finite counts for nothing."""
        before = self.up
        omega = _finite(angular_velocity, (3,))
        R = _finite(R_world_root, (3, 3))
        up = before if omega is None else before - dt * np.cross(omega, before)
        if R is not None:
            known = self._known and self._time_constant > 0.0
            share = 1.0 - np.exp(-dt / self._time_constant) if known else 1.0
            up = up + share * (R[2] - up)
            self._known = True
        self.up = up / np.linalg.norm(up)
        if omega is not None:
            self.rate = omega
        elif dt > 0.0:
            self.rate = np.cross(self.up, before) / dt


def _finite(values: ArrayLike | None, shape: tuple[int, ...]) -> Array | None:
    if values is None:
        return None
    array = np.asarray(values, dtype=float)
    return array if array.shape == shape and np.isfinite(array).all() else None
