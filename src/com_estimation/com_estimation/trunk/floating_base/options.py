"""Priors, noise and thresholds of the floating-base filter, and its settings for a robot."""

from dataclasses import dataclass, field, fields

import numpy as np

from com_estimation.trunk.floating_base.filter_types import STATE, STATES, Settings
from com_model.actuators import COMMON_GAIN
from com_model.arrays import Array
from com_model.contact import CONTACT_LOAD, SWING_LOAD
from com_model.dynamics import GRAVITY
from com_model.parameters import NOT_NEGATIVE, parameter


@dataclass(frozen=True)
class Priors:
    """Prior standard deviations of the filter's states; they are part of the result.

    Relative values refer to the robot: W its weight, M its mass, L its leg length, D the
    distance of diagonal hips. So the same numbers serve a toy of 2 kg and a machine of 300 kg.
    """

    mass: float = parameter(0.2, "of the trunk's mass, relative", NOT_NEGATIVE)
    com: float = parameter(0.12, "of the trunk's CoM, over D", NOT_NEGATIVE)
    inertia: float = parameter(0.3, "of the trunk's inertia, relative", NOT_NEGATIVE)
    accelerometer_bias: float = parameter(
        0.03,
        "m/s^2; without accelerometer, of the attitude's bias times g",
        NOT_NEGATIVE,
    )
    accelerometer_scale: float = parameter(
        0.01, "of the accelerometer along each of its axes, relative", NOT_NEGATIVE
    )
    imu_tilt: float = parameter(
        0.0175, "rad, of the IMU's mounting about each axis", NOT_NEGATIVE
    )
    imu_delay: float = parameter(0.002, "s, of the IMU after the joints", NOT_NEGATIVE)
    imu_arm: float = parameter(
        0.03, "m, of the IMU's position along each axis", NOT_NEGATIVE
    )
    torque_gain: float = parameter(
        0.03, "of each torque's constant gain error", NOT_NEGATIVE
    )
    torque_bias: float = parameter(
        0.009, "of each torque's constant error, over W L", NOT_NEGATIVE
    )
    coulomb: float = parameter(
        0.009, "of each joint's Coulomb friction, over W L", NOT_NEGATIVE
    )
    viscous: float = parameter(
        0.0045, "s/rad, of each joint's viscous friction, over W L", NOT_NEGATIVE
    )
    rotor: float = parameter(
        0.003,
        "of each drive's reflected inertia, over M L^2, where the URDF errs",
        NOT_NEGATIVE,
    )
    encoder_zero: float = parameter(0.0087, "rad, of each encoder's zero", NOT_NEGATIVE)
    link_mass: float = parameter(
        0.1,
        "of each leg link's mass, relative; 0.03 if the links were weighed",
        NOT_NEGATIVE,
    )
    link_com: float = parameter(
        0.1,
        "of each leg link's CoM along each axis, over its size: the cube root of its volume if it "
        "had the density of water",
        NOT_NEGATIVE,
    )
    load_friction: float = parameter(
        0.15,
        "of the drives' friction over the torque that they report, besides the configuration's",
        NOT_NEGATIVE,
    )
    hip: float = parameter(
        0.004,
        "of each hip's position on the trunk along x and y, over D: 2 mm for hips 0.5 m apart; "
        "0.001 if they were measured; errors are also judged by how much the diagonals disagree",
        NOT_NEGATIVE,
    )
    torque_delay: float = parameter(
        0.004,
        "s, of all torques after the joints' positions: drivers' filters and buses",
        NOT_NEGATIVE,
    )
    common_gain: float = parameter(
        COMMON_GAIN,
        "of the gain error that all torques have in common, which no motion shows; 0.01 if the "
        "torques were calibrated with a weight",
        NOT_NEGATIVE,
    )

    def state_std(
        self, mass: float, inertia: float, torque: float, sizes: Array
    ) -> Array:
        """Standard deviations of the state at the start, in its units.

        Args:
            mass: kg, of the trunk.
            inertia: kg m^2, mean moment of inertia of the trunk.
            torque: N m, W L: the robot's weight times the length of its legs.
            sizes: (2,) m, D (distance of the hips) and L (length of the legs).

        Returns:
            (STATES,) standard deviations.
        """
        values = {
            "mass": self.mass * mass,
            "moment": self.com * mass * sizes[0],
            "inertia": self.inertia * inertia,
            "bias": self.accelerometer_bias,
            "tilt": self.imu_tilt,
            "delay": self.imu_delay,
            "arm": self.imu_arm,
            "scale": self.accelerometer_scale,
            "late": self.torque_delay,
            "load": self.load_friction,
            "gain": self.torque_gain,
            "torque_bias": self.torque_bias * torque,
            "coulomb": self.coulomb * torque,
            "viscous": self.viscous * torque,
            "rotor": self.rotor * torque * sizes[1] / GRAVITY,
            "zero": self.encoder_zero,
            "link": self.link_mass,
            "hip": self.hip * sizes[0] / np.sqrt(2.0),  # a mean of two
        }
        std = np.empty(STATES)
        for name, block in STATE._asdict().items():
            std[block] = values[name]
        return std


@dataclass(frozen=True)
class FloatingBaseOptions:
    """Noise, thresholds and priors of the filter.

    Masses, lengths and torques are relative to the robot's own, as in Priors.
    """

    bandwidth_hz: float = parameter(
        25.0, "of the filter through which all signals go", NOT_NEGATIVE
    )
    rate_hz: float = parameter(200.0, "of the updates, 1/s", NOT_NEGATIVE)
    torque_noise: float = parameter(
        0.02,
        "of a torque sample, over the torque; ripple and what is not white count",
        NOT_NEGATIVE,
    )
    torque_floor: float = parameter(
        2e-4, "of a torque sample besides, over W L", NOT_NEGATIVE
    )
    gyro_noise: float = parameter(0.005, "of a sample, rad/s", NOT_NEGATIVE)
    accelerometer_noise: float = parameter(0.03, "of a sample, m/s^2", NOT_NEGATIVE)
    model_noise: float = parameter(
        1e-3, "of the base rows besides, over W (and times L)", NOT_NEGATIVE
    )
    noise_correlation: float = parameter(
        4.0,
        "factor on all these: filters and gait correlate the noise, and what repeats every stride "
        "is no information",
        NOT_NEGATIVE,
    )
    swing_noise: float = parameter(
        0.05, "of the torque that moves a swinging leg, relative", NOT_NEGATIVE
    )
    feet_noise: float = parameter(
        0.1,
        "m/s^2, of the acceleration by the feet, where there is no accelerometer",
        NOT_NEGATIVE,
    )
    drift: float = parameter(
        4e-4,
        "of the random walk in 1 s, of the mass, and of the CoM over D",
        NOT_NEGATIVE,
    )
    height: float = parameter(
        0.0075,
        "of z, over L, however long the data: the low-passed signals' products are not the "
        "low-passed products, feet give way, and an IMU that is late shows here",
        NOT_NEGATIVE,
    )
    converged: float = parameter(
        0.003,
        "standard deviation of x and y, over D, below which the estimate is CONVERGED",
        NOT_NEGATIVE,
    )
    gate: float = parameter(
        6.0,
        "of the normalised innovation of six rows by their noise without noise_correlation, above "
        "which it is taken as larger: where feet land, signals change within a sample",
        NOT_NEGATIVE,
    )
    shock: float = parameter(
        30.0,
        "m/s^2, of the accelerometer less its low pass, above which the frame rings: a trot's "
        "touch-downs make 5 to 15, stiff feet on a stiff frame 50 to 100",
        NOT_NEGATIVE,
    )
    quiet: float = parameter(
        8.0,
        "m/s^2, what is left of such a shock by the filters' memory of it, above which no base "
        "rows are used: of 100 m/s^2 this is so for 65 ms",
        NOT_NEGATIVE,
    )
    false_alarms_per_hour: float = parameter(
        0.1, "of a payload, before they are confirmed or withdrawn", (1e-6, 1e3)
    )
    lighter: float = parameter(
        3.0,
        "standard deviations of a stride's mass, beyond which a lighter trunk may hang on "
        "a rope, and the reason says so",
        NOT_NEGATIVE,
    )
    contact_load: float = parameter(
        CONTACT_LOAD,
        "fraction of the robot's weight above which a foot is in contact",
        (0.0, 1.0),
    )
    priors: Priors = field(default_factory=Priors)

    def __post_init__(self) -> None:
        for group in (self, self.priors):
            for each in fields(group):
                value = getattr(group, each.name)
                if not (value is self.priors or (np.isfinite(value) and value > 0.0)):
                    raise ValueError(f"{each.name} is {value}: give a positive number")

    def settings(self, mass: float, leg_length: float) -> Settings:
        """The filter's settings for a robot.

        Args:
            mass: kg, of the robot.
            leg_length: m, mean height of the hips above the feet.

        Returns:
            The settings in SI units, with the correlation factor included in the noise.
        """
        weight, noise = mass * GRAVITY, self.noise_correlation
        torque, bandwidth = weight * leg_length, 2.0 * np.pi * self.bandwidth_hz
        force = noise * (self.model_noise * weight + mass * self.accelerometer_noise)
        # innovations are normalised by noise that has the factor
        gate = self.gate / noise**2
        # After 8 time constants what came before is forgotten; 2700 times the gate is more than a
        # payload of a quarter of the trunk, or an impact; a diagonal is up when its feet are higher
        # than the other's by 2 % of the leg length.
        return Settings(
            bandwidth=bandwidth,
            period=1.0 / self.rate_hz,
            settling=8.0 / bandwidth,
            correlation=noise,
            torque_relative=noise * self.torque_noise,
            torque_floor=noise * self.torque_floor * torque,
            torque_unknown=10.0 * torque,
            swing_relative=self.swing_noise,
            force_noise=force,
            moment_noise=force * leg_length,
            gyro_noise=self.gyro_noise,
            accelerometer_noise=self.accelerometer_noise,
            feet_noise=self.feet_noise,
            swing_force=SWING_LOAD / CONTACT_LOAD * self.contact_load * weight,
            stand_force=self.contact_load * weight,
            gate=gate,
            shock=self.shock,
            quiet=self.quiet,
            outlier=2700.0 * gate,
            lifted=0.02 * leg_length,
        )


LEAST = 0.3  # of the variance, below which no error is named

# What each group of states is, the factor and unit of its prior, and what makes it smaller.
GROUPS = {
    "link": ("leg links' masses", "link_mass", 100.0, "%", "weigh the links"),
    "zero": ("encoder zeros", "encoder_zero", 57.2958, "deg", "calibrate the encoders"),
    "gain": ("torque gains", "torque_gain", 100.0, "%", "calibrate the torques"),
    "torque_bias": (
        "torque biases",
        "torque_bias",
        100.0,
        "% of weight x leg",
        "zero the torques",
    ),
    "coulomb": (
        "Coulomb friction",
        "coulomb",
        100.0,
        "% of weight x leg",
        "measure it",
    ),
    "viscous": (
        "viscous friction",
        "viscous",
        100.0,
        "% of weight x leg s",
        "measure it",
    ),
    "rotor": (
        "rotor inertias",
        "rotor",
        100.0,
        "% of mass x leg^2",
        "give servo.armature",
    ),
    "tilt": ("IMU mounting", "imu_tilt", 57.2958, "deg", "measure it"),
    "delay": ("IMU delay", "imu_delay", 1000.0, "ms", "synchronise its stamps"),
    "arm": ("IMU position", "imu_arm", 1000.0, "mm", "measure it"),
    "scale": ("accelerometer scale", "accelerometer_scale", 100.0, "%", "calibrate it"),
    "bias": ("accelerometer bias", "accelerometer_bias", 1.0, "m/s^2", "calibrate it"),
    "late": ("torques' delay", "torque_delay", 1000.0, "ms", "stamp joint_states well"),
    "load": (
        "load friction of the drives",
        "load_friction",
        100.0,
        "% of the torque",
        "give actuators.load_friction",
    ),
    "hip": (
        "positions of the hips",
        "hip",
        100.0,
        "% of their distance",
        "measure them",
    ),
}
# those of errors that are no states
UNSEEN = {
    "link_com": ("leg links' CoMs", "link_com", 100.0, "% of size", "measure them"),
    "common_gain": (
        "gain common to all torques",
        "common_gain",
        100.0,
        "%",
        "calibrate the torques with a weight",
    ),
}


def unseen_covariances(
    priors: Priors, T: Array, x: Array, masses: Array, legs: Array
) -> dict[str, Array]:
    """Covariances of the CoM by errors that no motion separates from it.

    CoMs of the legs' links that are off move the trunk's by their share of the moment; a gain g
    that all torques have in common adds g times mass and moment of the whole robot.

    Args:
        priors: with link_com and common_gain.
        T: (3, 4) derivative of the CoM by m, m c.
        x: (STATES,) estimate.
        masses: (links,) kg, of the legs' links.
        legs: (4,) mass, kg, and first moment, kg m, of all legs, root axes.

    Returns:
        (3, 3) m^2 by each of UNSEEN.
    """
    water = 1000.0  # kg/m^3
    offsets = priors.link_com * masses ** (4.0 / 3.0) * water ** (-1.0 / 3.0)  # kg m
    common = priors.common_gain * (T @ (x[:4] + legs))
    return {
        "link_com": np.eye(3) * (offsets @ offsets / x[0] ** 2),
        "common_gain": common[:, None] * common,
    }


def variance_fractions(
    P: Array, T: Array, unseen: dict[str, Array]
) -> dict[str, Array]:
    """Fractions of the CoM's variances that would vanish if a group of errors were known.

    Args:
        P: (STATES, STATES) covariance of the state.
        T: (3, 4) derivative of the CoM by m, m c.
        unseen: (3, 3) m^2 by errors that are no states.

    Returns:
        For each group of GROUPS and of `unseen` (3,) fractions, 0 to 1, of the variances of x, y
        and z.
    """
    result = {name: np.diag(part) for name, part in unseen.items()}
    total = np.einsum("ij,jk,ik->i", T, P[:4, :4], T) + sum(result.values())
    result = {name: part / total for name, part in result.items()}
    for name in GROUPS:
        block = STATE._asdict()[name]
        own, cross = P[block, block], T @ P[:4, block]
        gain = np.linalg.solve(own + 1e-9 * np.diag(np.diag(own)), cross.T)
        result[name] = np.einsum("ij,ji->i", cross, gain) / total
    return result


_OWN = np.r_[STATE.mass, STATE.moment, STATE.link]  # what it depends on


def robot_com_std(x: Array, P: Array, masses: Array, moments: Array) -> float:
    """Standard deviation of the robot's CoM C, from the estimated trunk and the URDF's legs.

      dC = (d(m c) - C dm + sum_i (m_i r_i - C m_i) dk_i) / M

    An error k_i of the mass of a leg's link that is compensated by the trunk's CoM c cancels in
    it.

    Args:
        x: (STATES,) state.
        P: (STATES, STATES) its covariance.
        masses: m_i (links,) kg, of the legs' links.
        moments: m_i r_i (links, 3) kg m, of the legs' links, root axes.

    Returns:
        The larger one of x and y, m.
    """
    mass = x[0] + masses.sum()
    com = (x[STATE.moment] + moments.sum(axis=0))[:2] / mass
    T = np.eye(2, 4 + len(masses), 1)
    T[:, 0] = -com
    np.subtract(moments[:, :2].T, com[:, None] * masses, out=T[:, 4:])
    T /= mass
    variance = ((T @ P[_OWN[:, None], _OWN]) * T).sum(axis=1)
    return float(np.sqrt((variance.clip(0.0) + (T[:, 4:] @ x[STATE.link]) ** 2).max()))


def describe(fractions: dict[str, Array], std: Array, priors: Priors) -> str:
    """Describes in words what limits the less accurate one of x and y.

    Args:
        fractions: of the variance of (x, y, z), each (3,), by group of states.
        std: (3,) m, standard deviations of the trunk's CoM.
        priors: of the groups.

    Returns:
        For example "x is known to 2.1 mm: leg links' masses +-10 % make 60 % of the variance:
        ...".
    """
    axis = int(std[1] > std[0])
    known = f"{'xy'[axis]} is known to {1e3 * std[axis]:.2g} mm: "
    name = max(fractions, key=lambda group: float(fractions[group][axis]))
    fraction = float(fractions[name][axis])
    if fraction < LEAST:
        return f"{known}no error dominates"
    what, prior, factor, unit, remedy = (GROUPS | UNSEEN)[name]
    size = factor * getattr(priors, prior)
    return (
        f"{known}{what} +-{size:.2g} {unit} make {100.0 * fraction:.0f} % of the variance: "
        f"{remedy}, and lower priors.{prior}"
    )
