"""Motion of a robot from its sensors' samples: smoothed, differentiated, equally delayed.

In plain numpy, for estimators that are not compiled; com_estimation.trunk.floating_base has the
same filter compiled.
"""

from dataclasses import dataclass

import numpy as np

from com_estimation.trunk.interface import Sample
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.exceptions import ConfigError


def cross(a: Array, b: Array) -> Array:
    """Cross products along the last axis; numpy's own takes ten times as long for a few rows.

    Args:
        a: (..., 3) first factors.
        b: (..., 3) second factors, of a shape that broadcasts with a.

    Returns:
        (..., 3) a x b.
    """
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack((y * w - z * v, z * u - x * w, x * v - y * u), axis=-1)


# time constants after which what came before is forgotten: 5e-4 are left
_SETTLED = 12.0


class StateVariableFilter:
    """Low pass (a / (s + a))^3 of k signals with its first two derivatives.

    Exact for signals that are straight lines between their samples: the response to a ramp is
    known, and the difference to it decays as the homogeneous solution does. The output is
    delayed by 3 / a.

    Args:
        bandwidth: a, rad/s.
        count: k, the number of signals.
    """

    def __init__(self, bandwidth: float, count: int) -> None:
        self._a = bandwidth
        self._stages = np.zeros((3, count))
        self._input = np.zeros(count)
        self._unsettled = np.full(count, np.inf)  # s until a signal is settled

    @property
    def delay(self) -> float:
        """Delay of the output, s."""
        return 3.0 / self._a

    def start(self, signals: Array) -> None:
        """Sets the filter to rest at given values, as if they had always been so.

        Args:
            signals: (k,) values; NaN is unknown, and starts at 0.
        """
        self._input = np.where(np.isfinite(signals), signals, 0.0)
        self._stages[:] = self._input
        self._unsettled = np.full(signals.size, _SETTLED / self._a)

    def update(self, dt: float, signals: Array) -> None:
        """Filters one sample of each signal.

        Args:
            dt: s since the last sample, positive.
            signals: (k,) values; NaN where unknown: the last known value is held, and `read`
                returns NaN for the signal until it has been known for long enough.
        """
        known = np.isfinite(signals)
        u = np.where(known, signals, self._input)
        left = np.maximum(self._unsettled - dt, 0.0)
        self._unsettled = np.where(known, left, _SETTLED / self._a)
        t = self._a * dt
        decay, lag = np.exp(-t), (u - self._input) / t
        d1, d2, d3 = self._stages - self._input + np.outer((1.0, 2.0, 3.0), lag)
        self._stages[0] = u - lag + decay * d1
        self._stages[1] = u - 2.0 * lag + decay * (d2 + t * d1)
        self._stages[2] = u - 3.0 * lag + decay * (d3 + t * d2 + 0.5 * t * t * d1)
        self._input = u

    def read(self) -> tuple[Array, Array, Array]:
        """The filtered signals.

        Returns:
            Values, first and second derivatives, (k,) each; NaN until a signal has been known
            for 12 / a.
        """
        first, second, third = self._stages
        known = np.where(self._unsettled > 0.0, np.nan, 1.0)
        rate, rise = (
            self._a * (second - third),
            self._a**2 * (first - 2.0 * second + third),
        )
        return known * third, known * rate, known * rise


@dataclass(frozen=True, eq=False)
class Motion:
    """Filtered motion of a robot; NaN where unknown. Vectors are in root axes.

    Attributes:
        time: s, of the motion: earlier than the last sample by the filter's delay.
        q: (n,) rad or m.
        qd: (n,) rad/s or m/s.
        qdd: (n,) rad/s^2 or m/s^2.
        efforts: (n,) N m or N.
        omega: (3,) rad/s of the root link.
        omega_dot: (3,) rad/s^2.
        specific_force: (3,) m/s^2, acceleration of the root link's origin minus gravity.
        up: (3,) unit vector against gravity.
        foot_forces: (4, 3) N of the ground on each foot, from sensors.
    """

    time: float
    q: Array
    qd: Array
    qdd: Array
    efforts: Array
    omega: Array
    omega_dot: Array
    specific_force: Array
    up: Array
    foot_forces: Array


def imu_link(model: RobotModel, config: RobotConfig) -> int:
    """The link that carries the IMU: the configuration's, or the root link.

    Args:
        model: the robot.
        config: its configuration; `imu_link` may name the link.

    Returns:
        Index of the link in the model.

    Raises:
        ConfigError: the link is not fixed to the trunk.
    """
    link = model.link_index(config.imu_link or model.root_link)
    if model.bodies.body_of_link[link] != 0:
        problem = f"{config.imu_link!r} moves against the trunk: name a link that is fixed to it"
        raise ConfigError(problem, config.source, "imu.link")
    return link


class MotionFilter:
    """Motion of the robot from samples, by one filter for all signals.

    Args:
        model: the robot.
        config: its configuration, which names the IMU's link.
        bandwidth: rad/s, of the filter; see StateVariableFilter.

    Raises:
        ConfigError: the IMU is not on the trunk.
    """

    def __init__(
        self, model: RobotModel, config: RobotConfig, bandwidth: float
    ) -> None:
        link, bodies = imu_link(model, config), model.bodies
        self._R_root_imu = bodies.R_body_link[link]
        self._p_root_imu = bodies.p_body_link[link]
        self._n = model.n_joints
        self._filter = StateVariableFilter(bandwidth, 2 * self._n + 21)
        self.reset()

    @property
    def delay(self) -> float:
        """Time from the motion to the last sample, s."""
        return self._filter.delay

    def reset(self) -> None:
        """Forgets all samples."""
        self._time = np.nan

    def update(self, sample: Sample) -> Motion | None:
        """Filters a sample; after a gap of more than 0.1 s the filter restarts.

        Args:
            sample: sensor readings of one instant.

        Returns:
            The motion at `delay` before the sample; None when it has the time of the one before.
        """
        forces = sample.foot_forces
        readings = sample.angular_velocity, sample.specific_force, sample.R_world_imu[2]
        imu = [self._R_root_imu @ reading for reading in readings]
        feet = np.full(12, np.nan) if forces is None else forces.ravel()
        signals = np.concatenate((sample.position, sample.effort, *imu, feet))
        dt = sample.time - self._time
        if dt == 0.0:
            return None
        # s; after a longer gap the filter restarts
        if 0.0 < dt <= 0.1:
            self._filter.update(dt, signals)
        else:
            self._filter.start(signals)
        self._time = sample.time
        value, rate, rise = self._filter.read()
        n, arm = self._n, self._p_root_imu
        omega, felt, up = value[2 * n : 2 * n + 9].reshape(3, 3)
        omega_dot = rate[2 * n : 2 * n + 3]
        return Motion(
            time=self._time - self.delay,
            q=value[:n],
            qd=rate[:n],
            qdd=rise[:n],
            efforts=value[n : 2 * n],
            omega=omega,
            omega_dot=omega_dot,
            specific_force=felt
            - cross(omega_dot, arm)
            - cross(omega, cross(omega, arm)),
            up=up / np.sqrt(up @ up),
            foot_forces=value[2 * n + 9 :].reshape(4, 3),
        )
