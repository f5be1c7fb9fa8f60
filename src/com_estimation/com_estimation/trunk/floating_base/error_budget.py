"""Which of the errors that the filter knows makes the trunk's CoM uncertain, and what helps."""

import numpy as np

from com_estimation.trunk.floating_base.filter_types import STATE
from com_estimation.trunk.floating_base.options import Priors
from com_model.arrays import Array

LEAST = 0.3  # of the variance, below which no error is named

# What each group of states is, the factor and unit of its prior, and what makes it smaller.
GROUPS = {
    "link": ("leg links' masses", "link_mass", 100.0, "%", "weigh the links"),
    "zero": ("encoder zeros", "encoder_zero", 57.2958, "deg", "calibrate the encoders"),
    "gain": ("torque gains", "torque_gain", 100.0, "%", "calibrate the torques"),
    "torque_bias": ("torque biases", "torque_bias", 100.0, "% of weight x leg", "zero the torques"),
    "coulomb": ("Coulomb friction", "coulomb", 100.0, "% of weight x leg", "measure it"),
    "viscous": ("viscous friction", "viscous", 100.0, "% of weight x leg s", "measure it"),
    "rotor": ("rotor inertias", "rotor", 100.0, "% of mass x leg^2", "give servo.armature"),
    "tilt": ("IMU mounting", "imu_tilt", 57.2958, "deg", "measure it"),
    "delay": ("IMU delay", "imu_delay", 1000.0, "ms", "synchronise its stamps"),
    "arm": ("IMU position", "imu_arm", 1000.0, "mm", "measure it"),
    "bias": ("accelerometer bias", "accelerometer_bias", 1.0, "m/s^2", "calibrate it"),
}


def variance_fractions(P: Array, T: Array) -> dict[str, Array]:
    """Fractions (3,) of the CoM's variances that would vanish if a group were known exactly.

    P (STATES, STATES) is the covariance, T (3, 4) the derivative of the CoM by m, m c.
    """
    total = np.einsum("ij,jk,ik->i", T, P[:4, :4], T)
    result = {}
    for name in GROUPS:
        block = STATE._asdict()[name]
        own, cross = P[block, block], T @ P[:4, block]
        gain = np.linalg.solve(own + 1e-9 * np.diag(np.diag(own)), cross.T)
        result[name] = np.einsum("ij,ji->i", cross, gain) / total
    return result


def describe(fractions: dict[str, Array], std: Array, priors: Priors) -> str:
    """What limits the worse of x and y, in words; std (3,) m."""
    axis = int(std[1] > std[0])
    known = f"{'xy'[axis]} is known to {1e3 * std[axis]:.2g} mm: "
    name = max(fractions, key=lambda group: float(fractions[group][axis]))
    fraction = float(fractions[name][axis])
    if fraction < LEAST:
        return f"{known}no error dominates"
    what, prior, factor, unit, remedy = GROUPS[name]
    size = factor * getattr(priors, prior)
    return (
        f"{known}{what} +-{size:.2g} {unit} make {100.0 * fraction:.0f} % of the variance: "
        f"{remedy}, and lower priors.{prior}"
    )
