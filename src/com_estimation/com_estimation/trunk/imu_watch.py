"""An IMU that is silent, stuck, or speaks in other units."""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from com_estimation.trunk.problems import Problem, Severity
from com_estimation.trunk.repeats import Repeats
from com_model.dynamics import GRAVITY

Array = NDArray[np.float64]

STUCK_TIME = 0.1  # s of the same reading
PATIENCE = 0.005  # s of silence that nothing is said about
AVERAGE = 1.0  # s, memory of the accelerometer's mean
SMALL, FLIGHT = 0.25, 0.12  # of gravity, and s that readings may be smaller: all feet in the air
LARGE, IMPACT = 5.0, 0.01  # likewise larger
LONGEST_STEP = 0.02  # s between readings, for which one counts
PLAUSIBLE = (0.7, 1.4)  # of gravity, for that mean


class Trust(IntEnum):
    """How much of a reading may be used."""

    NOTHING = 0
    TURNING = 1  # angular velocity and orientation, not the specific force
    ALL = 2


class ImuWatch:
    """Watches angular velocity and specific force."""

    def __init__(self) -> None:
        self._repeats = Repeats(1)
        self._heard = -math.inf
        self._first = math.nan
        self._last = math.nan
        self._mean = math.nan  # m/s^2, of the accelerometer
        self._small = self._large = 0.0  # s, for which its readings have been so

    def update(
        self, time: float, gyro: Array, accelerometer: Array
    ) -> tuple[Trust, Problem | None]:
        """Look at one sample.

        Args:
            time: s.
            gyro: (3,) rad/s; NaN where not known.
            accelerometer: (3,) m/s^2; NaN where not known.

        Returns:
            How much of the reading may be used, and what is wrong. A silence of a sample or two is
            no problem.
        """
        self._first = time if math.isnan(self._first) else self._first
        total = math.fsum((*gyro.tolist(), *accelerometer.tolist()))
        if not math.isfinite(total):
            trust = Trust.TURNING if np.isfinite(gyro).all() else Trust.NOTHING
            return trust, self._silent(time, trust)
        self._repeats.update(time, np.array([total]))
        self._heard = time
        if self._repeats.duration[0] > STUCK_TIME:
            return Trust.NOTHING, _problem(
                f"the imu has said exactly the same for {self._repeats.duration[0]:.2f} s: "
                "check its driver"
            )
        size = math.sqrt(float(accelerometer @ accelerometer))
        return self._plausible(time, size)

    def _silent(self, time: float, trust: Trust) -> Problem | None:
        silence = time - max(self._heard, self._first)
        if silence < PATIENCE:
            return None
        if trust is Trust.TURNING:
            return _problem("the accelerometer is not known: check the imu's driver")
        return _problem(f"imu is silent for {silence:.2f} s: check its driver and topic")

    def _plausible(self, time: float, size: float) -> tuple[Trust, Problem | None]:
        dt = 0.0 if math.isnan(self._last) else min(time - self._last, LONGEST_STEP)
        self._last = time
        self._mean = size if math.isnan(self._mean) else self._mean
        self._small = self._small + dt if size < SMALL * GRAVITY else 0.0
        self._large = self._large + dt if size > LARGE * GRAVITY else 0.0
        if self._small > FLIGHT or self._large > IMPACT:
            return Trust.TURNING, _problem(_UNITS.format(f"{size:.2f} m/s^2"))
        self._mean += min(1.0, dt / AVERAGE) * (size - self._mean)
        if PLAUSIBLE[0] < self._mean / GRAVITY < PLAUSIBLE[1]:
            return Trust.ALL, None
        return Trust.TURNING, _problem(_UNITS.format(f"{self._mean:.2f} m/s^2 on average"))


_UNITS = f"the accelerometer says {{}}, not {GRAVITY}: it must give m/s^2 (not g), with gravity"


def _problem(text: str) -> Problem:
    return Problem(Severity.DEGRADE, text)
