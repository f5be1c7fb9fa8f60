"""What sensors get wrong: noise, and errors that stay the same for a whole run.

The same seed gives the same errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from com_model.arrays import Array
from com_model.parameters import parameter
from com_simulation.physics.sensors import Reading

_CONSTANT = 1  # second word of the seed of the errors that stay the same


@dataclass(frozen=True)
class NoiseLevels:
    """Errors of the sensors.

    Standard deviations per component; those of noise are drawn for each sample, those of biases and
    gain errors once in a run. Noise comes before rounding, gain before noise.
    """

    position: float = parameter(0.0, "of joint positions, rad or m", (0.0, 10.0))
    velocity: float = parameter(0.0, "of joint velocities, rad/s or m/s", (0.0, 100.0))
    effort: float = parameter(0.0, "of joint efforts, N m or N", (0.0, 1e4))
    force: float = parameter(0.0, "of foot forces, N", (0.0, 1e4))
    torque: float = parameter(0.0, "of foot torques, N m", (0.0, 1e4))
    gyro: float = parameter(0.0, "of angular velocities, rad/s", (0.0, 100.0))
    accelerometer: float = parameter(0.0, "of the specific force, m/s^2", (0.0, 1e3))
    orientation: float = parameter(
        0.0, "of the IMU's orientation about each of its axes, rad", (0.0, 3.0)
    )
    position_step: float = parameter(
        0.0, "of encoders: positions are rounded to multiples of it, rad or m; 0: none", (0.0, 10.0)
    )
    effort_relative: float = parameter(0.0, "of joint efforts, over the effort", (0.0, 1.0))
    effort_gain_error: float = parameter(
        0.0, "relative error of each joint's efforts, drawn once", (0.0, 1.0)
    )
    force_relative: float = parameter(
        0.0, "of the components of foot forces and torques, over the size of either", (0.0, 1.0)
    )
    gyro_bias: float = parameter(0.0, "drawn once, of angular velocities, rad/s", (0.0, 100.0))
    accelerometer_bias: float = parameter(0.0, "drawn once, along each axis, m/s^2", (0.0, 1e3))
    orientation_bias: float = parameter(
        0.0, "drawn once, of the IMU's orientation about each of its axes, rad", (0.0, 3.0)
    )

    def imu_covariances(self) -> dict[str, Array]:
        """Row-major (9,) covariances of an Imu message; not 0, which would mean "not known"."""
        return {
            f"{name}_covariance": (max(std**2 + bias**2, 1e-12) * np.eye(3)).ravel()
            for name, std, bias in (
                ("orientation", self.orientation, self.orientation_bias),
                ("angular_velocity", self.gyro, self.gyro_bias),
                ("linear_acceleration", self.accelerometer, self.accelerometer_bias),
            )
        }


ENCODER_STEP = 2.0 * np.pi / 65536  # rad, of 16 bits

# Sensors of a trotting quadruped, samples at 1 kHz. The velocities are what is left when positions
# of such encoders are differenced at that rate: step / (sqrt(6) 1 ms).
TROT_NOISE = NoiseLevels(
    velocity=ENCODER_STEP / np.sqrt(6.0) / 0.001,
    gyro=0.005,
    accelerometer=0.03,
    orientation=np.deg2rad(0.2),
    position_step=ENCODER_STEP,
    effort_relative=0.01,
    effort_gain_error=0.01,
    force_relative=0.01,
    accelerometer_bias=0.02,
    orientation_bias=np.deg2rad(0.1),
)
# Sensors of a humanoid on which the CoM is identified: force/torque sensors in its feet, encoders,
# joint torques, an IMU with a filter.
IDENTIFICATION_NOISE = NoiseLevels(
    position=np.deg2rad(0.05),
    velocity=0.01,
    effort=0.1,
    force=0.5,
    torque=0.025,
    gyro=0.005,
    accelerometer=0.03,
    orientation=np.deg2rad(0.05),
)
PRESETS = {"none": NoiseLevels(), "trot": TROT_NOISE, "identification": IDENTIFICATION_NOISE}


class Noise:
    """Makes readings wrong, with random generators of its own."""

    def __init__(self, levels: NoiseLevels, n_joints: int, n_feet: int, seed: int) -> None:
        self.seed = seed
        self.levels = levels
        self._generator = np.random.default_rng(seed)
        self._noiseless = levels == NoiseLevels()
        blocks = (n_joints, n_joints, n_joints, 6 * n_feet, 3, 3, 3)
        self._count = sum(blocks)
        self._ends = np.cumsum(blocks)[:-1]
        constant = np.random.default_rng([seed, _CONSTANT])
        self.effort_gain = 1.0 + levels.effort_gain_error * constant.standard_normal(n_joints)
        self.gyro_bias = levels.gyro_bias * constant.standard_normal(3)
        self.accelerometer_bias = levels.accelerometer_bias * constant.standard_normal(3)
        self.orientation_bias = levels.orientation_bias * constant.standard_normal(3)

    def add(self, reading: Reading) -> Reading:
        """Returns the reading with errors of its sensors; the truth in it stays as it is."""
        if self._noiseless:
            return reading
        levels = self.levels
        position, velocity, effort, wrenches, gyro, accelerometer, turn = np.split(
            self._generator.standard_normal(self._count), self._ends
        )
        tau = reading.effort
        effort_std = np.hypot(levels.effort, levels.effort_relative * tau)
        orientation = _turned(reading.imu_orientation, self.orientation_bias)
        return replace(
            reading,
            position=_rounded(reading.position + levels.position * position, levels.position_step),
            velocity=reading.velocity + levels.velocity * velocity,
            effort=self.effort_gain * tau + effort_std * effort,
            wrenches=self._wrenches(reading.wrenches, wrenches.reshape(-1, 6)),
            angular_velocity=reading.angular_velocity + self.gyro_bias + levels.gyro * gyro,
            specific_force=reading.specific_force
            + self.accelerometer_bias
            + levels.accelerometer * accelerometer,
            imu_orientation=_turned(orientation, levels.orientation * turn),
        )

    def _wrenches(self, true: Array, drawn: Array) -> Array:
        """Wrenches (f, 6) with noise."""
        levels = self.levels
        sizes = np.sqrt((true.reshape(-1, 2, 3) ** 2).sum(axis=2))
        stds = np.hypot([levels.force, levels.torque], levels.force_relative * sizes)
        return np.asarray(true + np.repeat(stds, 3, axis=1) * drawn)


def _rounded(values: Array, step: float) -> Array:
    return np.round(values / step) * step if step else values


def _turned(quaternion: Array, turn: Array) -> Array:
    """The orientation x, y, z, w (4,) after a turn (3,) rad about its own axes."""
    angle = float(np.linalg.norm(turn))
    dx, dy, dz = turn * (0.5 if angle < 1e-9 else np.sin(angle / 2.0) / angle)
    dw = np.cos(angle / 2.0)
    x, y, z, w = quaternion
    return np.array(
        [
            w * dx + x * dw + y * dz - z * dy,
            w * dy - x * dz + y * dw + z * dx,
            w * dz + x * dy - y * dx + z * dw,
            w * dw - x * dx - y * dy - z * dz,
        ]
    )
