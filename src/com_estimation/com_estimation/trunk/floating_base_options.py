"""What the floating-base estimator is told beforehand, and the numbers that its kernel reads."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from com_estimation.trunk import floating_base_kernels as kernels
from com_model.dynamics import GRAVITY
from com_model.parameters import parameter

Array = NDArray[np.float64]

SWING_FORCE, STAND_FORCE = 0.03, 0.1  # of the weight: less swings, more stands
SWING_TIME, STAND_TIME = 0.04, 0.08  # s, for which it must
SLOW = 0.02  # rad/s, below which Coulomb friction counts as a share of itself
LONGEST_GAP = 0.1  # s between samples; after a longer one the filters start anew
SETTLE = 8.0  # time constants of the filters until what came before is forgotten
STICKING = 6.0  # deviation of the torque of a joint that stands, over its Coulomb friction
CHANGE_START = 2.0  # s of updates, before which nothing counts as a change of payload
QUIET_TIME = 2.0  # s without turning, after which nothing but the trunk is learnt
SINGULAR = 0.02  # of a leg's Jacobian: its determinant over the lengths of its columns
EXCITED = 30.0  # by how much a regressor must exceed its noise, squared
EXCITED_TIME = 0.3  # s, over which that is averaged
GROSS = 60.0  # times the gate: more than a payload of a quarter of the trunk makes, or an impact
LOST_TIME = 1.0  # s of updates left out for that, more than made, until all starts anew
INFORMATION_TIME = 1.0  # s, over which is averaged what the data tell of


@dataclass(frozen=True)
class FloatingBaseOptions:
    """What is known beforehand of sensors and model, as standard deviations.

    Masses, lengths and torques are shares of the robot's own, so that the same numbers serve a toy
    of 2 kg and a machine of 300 kg.
    """

    bandwidth_hz: float = parameter(25.0, "of the filter through which all signals go", (0.0, 1e9))
    rate_hz: float = parameter(200.0, "of the updates, 1/s", (0.0, 1e9))
    torque_noise: float = parameter(0.01, "of a torque sample, over the torque", (0.0, 1e9))
    torque_floor: float = parameter(
        2e-4, "of a torque sample besides, over weight times leg length", (0.0, 1e9)
    )
    gyro_noise: float = parameter(0.005, "of a sample, rad/s", (0.0, 1e9))
    accelerometer_noise: float = parameter(0.03, "of a sample, m/s^2", (0.0, 1e9))
    model_noise: float = parameter(
        1e-3, "of the base rows besides, over the weight (and times the leg length)", (0.0, 1e9)
    )
    noise_correlation: float = parameter(
        1.5, "factor on all these, for what does not average out as white noise does", (0.0, 1e9)
    )
    torque_gain: float = parameter(0.01, "of each torque's constant gain error", (0.0, 1e9))
    friction: float = parameter(
        5e-4, "Coulomb friction of each joint, over weight times leg length", (0.0, 1e9)
    )
    leg_mass: float = parameter(0.03, "of each leg's mass, relative", (0.0, 1e9))
    swing_noise: float = parameter(
        0.05, "of the torque that moves a swinging leg, relative", (0.0, 1e9)
    )
    accelerometer_bias: float = parameter(
        0.02, "m/s^2; without accelerometer, of the attitude's bias times g", (0.0, 1e9)
    )
    feet_noise: float = parameter(
        0.1,
        "m/s^2, of the acceleration that the feet tell where there is no accelerometer",
        (0.0, 1e9),
    )
    mass: float = parameter(0.2, "of the trunk's mass, relative", (0.0, 1e9))
    com: float = parameter(
        0.12, "of the trunk's CoM, over the distance of diagonal hips", (0.0, 1e9)
    )
    inertia: float = parameter(0.3, "of the trunk's inertia, relative", (0.0, 1e9))
    drift: float = parameter(
        5e-5, "of the CoM's random walk in 1 s, over the distance of diagonal hips", (0.0, 1e9)
    )
    height: float = parameter(
        4e-4,
        "of z, over the leg length, however long it learns: the low-passed signals' "
        "products are not the low-passed products, and feet give way",
        (0.0, 1e9),
    )
    converged: float = parameter(
        0.003,
        "deviation of x and y, over that distance, from which on the estimate counts",
        (0.0, 1e9),
    )
    gate: float = parameter(
        16.8,
        "of the normalised innovation of six rows, above which its noise is taken as larger",
        (0.0, 1e9),
    )
    change_level: float = parameter(
        1.8,
        "mean of the normalised innovations, 0 and below 1 as a rule, that tells of a "
        "change of payload",
        (0.0, 1e9),
    )
    change_time: float = parameter(0.1, "s, over which they are averaged", (0.0, 1e9))

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (np.isfinite(value) and value > 0.0):
                raise ValueError(f"{field.name} is {value}: give a positive number")

    def settings(self, mass: float, leg_length: float) -> Array:
        """Lists the kernel's settings.

        Args:
            mass: kg, of the robot.
            leg_length: m, of the hips over the ground.
        """
        k, weight = kernels, mass * GRAVITY
        torque, noise = weight * leg_length, self.noise_correlation
        force = noise * (self.model_noise * weight + mass * self.accelerometer_noise)
        values = {
            k.BANDWIDTH: 2.0 * np.pi * self.bandwidth_hz,
            k.PERIOD: 1.0 / self.rate_hz,
            k.TORQUE_SHARE: noise * self.torque_noise,
            k.TORQUE_FLOOR: noise * self.torque_floor * torque,
            k.FORCE_NOISE: force,
            k.MOMENT_NOISE: force * leg_length,
            k.GATE: self.gate,
            k.SWING_FORCE: SWING_FORCE * weight,
            k.SWING_TIME: SWING_TIME,
            k.STAND_FORCE: STAND_FORCE * weight,
            k.STAND_TIME: STAND_TIME,
            k.SLOW: SLOW,
            k.CHANGE_TIME: self.change_time,
            k.CHANGE_LEVEL: self.change_level,
            k.FREEZE_TIME: 1.0,
            k.LONGEST_GAP: LONGEST_GAP,
            k.SETTLE: SETTLE,
            k.GRAVITY: GRAVITY,
            k.SINGULAR: SINGULAR,
            k.WORTHLESS: 10.0 * torque,
            k.INFORMATION_TIME: INFORMATION_TIME,
            k.ACCELEROMETER_NOISE: self.accelerometer_noise,
            k.GYRO_NOISE: self.gyro_noise,
            k.EXCITED: EXCITED,
            k.EXCITED_TIME: EXCITED_TIME,
            k.SWING_SHARE: self.swing_noise,
            k.FEET_NOISE: self.feet_noise,
            k.GROSS: GROSS * self.gate,
            k.LOST_TIME: LOST_TIME,
            k.STICKING: STICKING,
            k.CHANGE_START: CHANGE_START,
            k.QUIET_TIME: QUIET_TIME,
        }
        return np.array([values[i] for i in range(k.SETTINGS)])

    def deviations(
        self, mass: float, inertia: float, torque: float, hip_distance: float
    ) -> tuple[Array, Array]:
        """Lists the standard deviations of the state at the start, and of its walk in 1 s.

        Args:
            mass: kg, of the trunk.
            inertia: kg m^2, its mean moment of inertia.
            torque: N m, weight times leg length.
            hip_distance: m, between diagonal hips.

        Returns:
            Both (kernels.STATES,), in the units of the state.
        """
        k = kernels
        start, walk = np.empty(k.STATES), np.zeros(k.STATES)
        start[k.MASS] = self.mass * mass
        start[k.MOMENT : k.INERTIA] = self.com * mass * hip_distance
        start[k.INERTIA : k.BIAS] = self.inertia * inertia
        start[k.BIAS : k.GAIN] = self.accelerometer_bias
        start[k.GAIN : k.FRICTION] = self.torque_gain
        start[k.FRICTION : k.SCALE] = self.friction * torque
        start[k.SCALE :] = self.leg_mass
        walk[k.MASS] = self.drift * mass
        walk[k.MOMENT : k.INERTIA] = self.drift * mass * hip_distance
        walk[k.BIAS : k.SCALE] = 0.002 * start[k.BIAS : k.SCALE]
        return start, walk
