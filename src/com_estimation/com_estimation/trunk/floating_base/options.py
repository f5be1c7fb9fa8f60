"""What is known beforehand of sensors and model, and the filter's settings that follow."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from com_estimation.trunk.contact_detection import CONTACT_LOAD
from com_estimation.trunk.floating_base.filter_types import STATE, STATES, Settings
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.parameters import NOT_NEGATIVE, parameter

SWING_LOAD = 0.3  # of contact_load: a leg that carries less may swing
SWING_TIME, STAND_TIME = 0.04, 0.08  # s, for which it must
FRICTION_SPEED = 0.02  # rad/s, below which Coulomb friction fades out
LONGEST_GAP = 0.1  # s between samples; after a longer one the filters start again
SETTLING = 8.0  # time constants of the filters until what came before is forgotten
STICKING = 6.0  # standard deviation of a stationary joint's torque over its Coulomb friction
CHANGE_START = 2.0  # s of updates, before which nothing counts as a change of payload
FREEZE_TIME = 1.0  # s, for which the torques' gains stay after one
STATIONARY_TIME = 2.0  # s without rotation, after which only the trunk is estimated
SINGULAR = 0.02  # of a leg's Jacobian: its determinant over the lengths of its columns
EXCITED = 30.0  # by how much a regressor must exceed its noise, squared
EXCITED_TIME = 0.3  # s, over which that is averaged
OUTLIER = 60.0  # times the gate: more than a payload of a quarter of the trunk makes, or an impact
LOST_TIME = 1.0  # s of updates left out for that, more than made, until all starts again
INFORMATION_TIME = 1.0  # s, over which the information of the data is averaged


@dataclass(frozen=True)
class FloatingBaseOptions:
    """What is known beforehand of sensors and model, as standard deviations.

    Masses, lengths and torques are relative to the robot's own, so that the same numbers serve a
    toy of 2 kg and a machine of 300 kg.
    """

    bandwidth_hz: float = parameter(
        25.0, "of the filter through which all signals go", NOT_NEGATIVE
    )
    rate_hz: float = parameter(200.0, "of the updates, 1/s", NOT_NEGATIVE)
    torque_noise: float = parameter(0.01, "of a torque sample, over the torque", NOT_NEGATIVE)
    torque_floor: float = parameter(
        2e-4, "of a torque sample besides, over weight times leg length", NOT_NEGATIVE
    )
    gyro_noise: float = parameter(0.005, "of a sample, rad/s", NOT_NEGATIVE)
    accelerometer_noise: float = parameter(0.03, "of a sample, m/s^2", NOT_NEGATIVE)
    model_noise: float = parameter(
        1e-3, "of the base rows besides, over the weight (and times the leg length)", NOT_NEGATIVE
    )
    noise_correlation: float = parameter(
        1.5, "factor on all these, for what does not average out as white noise does", NOT_NEGATIVE
    )
    torque_gain: float = parameter(0.01, "of each torque's constant gain error", NOT_NEGATIVE)
    friction: float = parameter(
        5e-4, "Coulomb friction of each joint, over weight times leg length", NOT_NEGATIVE
    )
    leg_mass: float = parameter(0.03, "of each leg's mass, relative", NOT_NEGATIVE)
    swing_noise: float = parameter(
        0.05, "of the torque that moves a swinging leg, relative", NOT_NEGATIVE
    )
    accelerometer_bias: float = parameter(
        0.02, "m/s^2; without accelerometer, of the attitude's bias times g", NOT_NEGATIVE
    )
    feet_noise: float = parameter(
        0.1, "m/s^2, of the acceleration by the feet, where there is no accelerometer", NOT_NEGATIVE
    )
    mass: float = parameter(0.2, "of the trunk's mass, relative", NOT_NEGATIVE)
    com: float = parameter(
        0.12, "of the trunk's CoM, over the distance of diagonal hips", NOT_NEGATIVE
    )
    inertia: float = parameter(0.3, "of the trunk's inertia, relative", NOT_NEGATIVE)
    drift: float = parameter(
        5e-5, "of the CoM's random walk in 1 s, over the distance of diagonal hips", NOT_NEGATIVE
    )
    height: float = parameter(
        4e-4,
        "of z, over the leg length, however long the data: the low-passed signals' "
        "products are not the low-passed products, and feet give way",
        NOT_NEGATIVE,
    )
    converged: float = parameter(
        0.003,
        "standard deviation of x and y, over that distance, below which the estimate is CONVERGED",
        NOT_NEGATIVE,
    )
    gate: float = parameter(
        16.8,
        "of the normalised innovation of six rows, above which its noise is taken as larger",
        NOT_NEGATIVE,
    )
    change_level: float = parameter(
        1.8,
        "mean of the normalised innovations, 0 and below 1 as a rule, that shows a "
        "change of payload",
        NOT_NEGATIVE,
    )
    contact_load: float = parameter(
        CONTACT_LOAD, "fraction of the robot's weight above which a foot is in contact", (0.0, 1.0)
    )
    change_time: float = parameter(0.1, "s, over which they are averaged", NOT_NEGATIVE)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (np.isfinite(value) and value > 0.0):
                raise ValueError(f"{field.name} is {value}: give a positive number")

    def settings(self, mass: float, leg_length: float) -> Settings:
        """The filter's settings.

        Args:
            mass: kg, of the robot.
            leg_length: m, of the hips over the ground.
        """
        weight, noise = mass * GRAVITY, self.noise_correlation
        torque, bandwidth = weight * leg_length, 2.0 * np.pi * self.bandwidth_hz
        force = noise * (self.model_noise * weight + mass * self.accelerometer_noise)
        return Settings(
            bandwidth=bandwidth,
            period=1.0 / self.rate_hz,
            settling=SETTLING / bandwidth,
            longest_gap=LONGEST_GAP,
            gravity=GRAVITY,
            torque_relative=noise * self.torque_noise,
            torque_floor=noise * self.torque_floor * torque,
            torque_unknown=10.0 * torque,
            sticking=STICKING,
            friction_speed=FRICTION_SPEED,
            swing_relative=self.swing_noise,
            force_noise=force,
            moment_noise=force * leg_length,
            gyro_noise=self.gyro_noise,
            accelerometer_noise=self.accelerometer_noise,
            feet_noise=self.feet_noise,
            singular=SINGULAR,
            swing_force=SWING_LOAD * self.contact_load * weight,
            swing_time=SWING_TIME,
            stand_force=self.contact_load * weight,
            stand_time=STAND_TIME,
            gate=self.gate,
            outlier=OUTLIER * self.gate,
            lost_time=LOST_TIME,
            change_time=self.change_time,
            change_level=self.change_level,
            change_start=CHANGE_START,
            freeze_time=FREEZE_TIME,
            information_time=INFORMATION_TIME,
            excited=EXCITED,
            excited_time=EXCITED_TIME,
            stationary_time=STATIONARY_TIME,
        )

    def state_std(
        self, mass: float, inertia: float, torque: float, hip_distance: float
    ) -> tuple[Array, Array]:
        """Standard deviations of the state at the start, and of its random walk in 1 s.

        Args:
            mass: kg, of the trunk.
            inertia: kg m^2, its mean moment of inertia.
            torque: N m, weight times leg length.
            hip_distance: m, between diagonal hips.

        Returns:
            Both (STATES,), in the units of the state.
        """
        start, walk = np.empty(STATES), np.zeros(STATES)
        start[STATE.mass] = self.mass * mass
        start[STATE.moment] = self.com * mass * hip_distance
        start[STATE.inertia] = self.inertia * inertia
        start[STATE.bias] = self.accelerometer_bias
        start[STATE.gain] = self.torque_gain
        start[STATE.friction] = self.friction * torque
        start[STATE.leg_mass] = self.leg_mass
        walk[STATE.mass] = self.drift * mass
        walk[STATE.moment] = self.drift * mass * hip_distance
        for errors in (STATE.bias, STATE.gain, STATE.friction):
            walk[errors] = 0.002 * start[errors]
        return start, walk
