"""Sensor noise: white, Gaussian, the same for the same seed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from com_simulation.sensors import Reading

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NoiseLevels:
    """Standard deviations, per component and sample.

    Attributes:
        position: rad or m, of joint positions.
        velocity: rad/s or m/s, of joint velocities.
        effort: N m or N, of joint efforts.
        force: N, of foot forces.
        torque: N m, of foot torques.
        gyro: rad/s.
        accelerometer: m/s^2.
        orientation: rad, about each axis of the IMU.
    """

    position: float = 0.0
    velocity: float = 0.0
    effort: float = 0.0
    force: float = 0.0
    torque: float = 0.0
    gyro: float = 0.0
    accelerometer: float = 0.0
    orientation: float = 0.0


class Noise:
    """Adds noise to readings, from a random generator of its own."""

    def __init__(self, levels: NoiseLevels, n_joints: int, n_feet: int, seed: int) -> None:
        self.seed = seed
        self._generator = np.random.default_rng(seed)
        wrench = [levels.force] * 3 + [levels.torque] * 3
        blocks = (
            [levels.position] * n_joints,
            [levels.velocity] * n_joints,
            [levels.effort] * n_joints,
            wrench * n_feet,
            [levels.gyro] * 3,
            [levels.accelerometer] * 3,
            [levels.orientation] * 3,
        )
        self._deviation = np.array([value for block in blocks for value in block])
        self._ends = np.cumsum([len(block) for block in blocks])[:-1]
        self._silent = not self._deviation.any()

    def add(self, reading: Reading) -> Reading:
        """Returns the reading with noise on its sensors; the truth in it stays as it is."""
        if self._silent:
            return reading
        drawn = self._generator.standard_normal(len(self._deviation)) * self._deviation
        position, velocity, effort, wrenches, gyro, accelerometer, turn = np.split(
            drawn, self._ends
        )
        return replace(
            reading,
            position=reading.position + position,
            velocity=reading.velocity + velocity,
            effort=reading.effort + effort,
            wrenches=reading.wrenches + wrenches.reshape(-1, 6),
            angular_velocity=reading.angular_velocity + gyro,
            specific_force=reading.specific_force + accelerometer,
            imu_orientation=_turned(reading.imu_orientation, turn),
        )


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
