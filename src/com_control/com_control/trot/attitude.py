"""The trunk's filtered attitude for a gait, and the paths of its feet."""

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array

MAX_BIAS = 0.01  # rad; the rest is the ground's slope
MAX_SLOPE = 0.35  # rad: a trunk that leans more has fallen, whatever the ground


class AttitudeFilter:
    """Low-pass of the direction against gravity, complementary to the gyroscope if there is one.

        up_dot = -omega x up + (up_measured - up) / T

    A trunk that stands in its home posture is parallel to the ground: the tilt measured then, up
    to MAX_BIAS, is taken for the sensor's bias, and subtracted from then on. The rest is the
    ground's slope, which later follows the mean tilt of the trunk.

    Args:
        time_constant: T, s, with a gyroscope; 0: no filter.
        alone: s, T without a gyroscope.
        slope_time: s, time constant with which the slope follows the trunk's tilt.

    Attributes:
        up: (3,) unit vector against gravity, root axes.
        bias: (2,) x and y of up due to the sensor's bias.
        slope: (2,) x and y of up where the trunk is parallel to the ground, up to MAX_SLOPE.
    """

    def __init__(
        self, time_constant: float, alone: float = 0.0, slope_time: float = float("inf")
    ) -> None:
        self._with_gyro, self._alone, self._slope_time = (
            time_constant,
            alone,
            slope_time,
        )
        self.reset()

    def reset(self) -> None:
        """Resets to horizontal, without bias."""
        self.up = self._measured = np.array([0.0, 0.0, 1.0])
        self.bias, self.slope = np.zeros(2), np.zeros(2)
        self._known, self._age = False, 0.0
        self._sum, self._time = np.zeros(2), 0.0

    def update(
        self,
        dt: float,
        R_world_root: ArrayLike | None,
        angular_velocity: ArrayLike | None,
        parallel: bool = False,
    ) -> None:
        """Updates the filter; inputs that are None or not finite are ignored.

        Args:
            dt: s, since the last update.
            R_world_root: (3, 3) as measured.
            angular_velocity: (3,) rad/s as measured, root axes.
            parallel: the robot stands on all feet, so that its tilt is that of the ground.
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
            if (
                self._known and time_constant > 0.0 and self._age > 0.0
            ):  # a mean to begin with
                gain = max(1.0 - np.exp(-dt / time_constant), dt / self._age)
            up = up + gain * (R[2] - up)
            self._known = True
            if parallel:
                self._average(dt, R[2, :2])
        self._measured = up / np.linalg.norm(up)
        level = self._measured - np.append(self.bias, 0.0)
        self.up = level / np.linalg.norm(level)
        if not parallel:
            share = 1.0 - np.exp(-dt / self._slope_time)
            self.slope = _slope(self.slope + share * (self.up[:2] - self.slope))

    def normal(self, share: float) -> Array:
        """The ground's normal.

        Args:
            share: fraction of the slope to include, 0 (vertical) to 1.

        Returns:
            (3,) unit vector, root axes.
        """
        normal = self.up - np.append(share * self.slope, 0.0)
        return np.asarray(normal / np.linalg.norm(normal))

    def _average(self, dt: float, tilt: Array) -> None:
        """Averages the tilt measured while parallel; used from 0.2 s of standing on."""
        self._sum, self._time = self._sum + dt * tilt, self._time + dt
        if self._time < 0.2:
            return
        mean = self._sum / self._time
        self.bias = mean * min(
            1.0, MAX_BIAS / max(float(np.linalg.norm(mean)), MAX_BIAS)
        )
        self.slope = _slope(mean - self.bias)


def _slope(tilt: Array) -> Array:
    """Limits a slope (2,) to MAX_SLOPE."""
    return tilt * min(1.0, MAX_SLOPE / max(float(np.linalg.norm(tilt)), MAX_SLOPE))


def _finite(values: ArrayLike | None, shape: tuple[int, ...]) -> Array | None:
    if values is None:
        return None
    array = np.asarray(values, dtype=float)
    return array if array.shape == shape and np.isfinite(array).all() else None


def smooth_step(s: float) -> float:
    """0 to 1 with zero velocity and acceleration at both ends: s^3 (10 - 15 s + 6 s^2).

    Args:
        s: clipped to 0 to 1.
    """
    s = min(max(s, 0.0), 1.0)
    return s * s * s * (10.0 + s * (6.0 * s - 15.0))


def swing_profile(s: ArrayLike) -> Array:
    """0 up to 1 and back to 0, velocity and acceleration 0 at both ends: (4 s (1 - s))^3.

    Args:
        s: of any shape, clipped to 0 to 1.
    """
    s = np.clip(s, 0.0, 1.0)
    return np.asarray((4.0 * s * (1.0 - s)) ** 3)


def swing_height(
    up: Array, x: float, y: float, ground: float, clearance: float
) -> float:
    """Height z of a swing foot in the trunk's frame for a given height over the ground.

    With u = up, the height over the ground of a point p of the trunk's frame is u . p - ground:

        z = (ground + clearance - u_x x - u_y y) / u_z

    For R = Rz Ry(pitch) Rx(roll), u = (-sin pitch, cos pitch sin roll, cos pitch cos roll), and
    this is [Ding] eq. 19 (ground = -H_t), for all four legs: x and y are the foot's in the
    trunk's frame, so that the signs of 0.5 L and 0.5 W are those of the hips.

    Args:
        up: (3,) unit vector against gravity, trunk's axes.
        x: m, of the foot in the trunk's frame.
        y: m, of the foot in the trunk's frame.
        ground: m, u . p of the points on the ground.
        clearance: m, of the foot over the ground.

    Returns:
        m, in the trunk's frame.
    """
    return float((ground + clearance - up[0] * x - up[1] * y) / up[2])


def limit_tilt(up: Array, most: float) -> Array:
    """Limits the tilt of a direction.

    Args:
        up: (3,) unit vector against gravity.
        most: rad, its largest angle to z.

    Returns:
        (3,) unit vector.
    """
    aside = float(np.hypot(up[0], up[1]))
    if up[2] > 0.0 and aside <= np.sin(most):
        return up
    direction = up[:2] / aside if aside > 0.0 else np.zeros(2)
    return np.array([*(np.sin(most) * direction), np.cos(most)])
