"""How the centre of mass is controlled: gains, bounds, margins; what counts as standing."""

from dataclasses import dataclass

from com_model.parameters import live_parameter, parameter


@dataclass(frozen=True)
class BalanceOptions:
    """Options of a Balancer.

    A robot that oscillates on its drives at w rad/s with a damping ratio d needs a com_gain below
    2 d w. posture_gain, feet_gain and strain_gain are those of the joints that the rest leaves
    free, of the measured place of the soles to each other, and of the commanded one, which strains
    the legs of feet that stand. Weights: of the CoM's height against its horizontal error (what
    keeps the robot from falling goes first), of 1 rad/s of the trunk, of the legs' joints (which
    also damps near singular postures) and of the other joints against 1 m/s of the CoM, and of the
    soles' error.
    """

    com_gain: float = live_parameter(4.0, "1/s, by which an error of the CoM decays", (0.01, 100.0))
    trunk_gain: float = live_parameter(
        4.0, "1/s, likewise of the trunk's orientation", (0.0, 100.0)
    )
    posture_gain: float = 1.0
    feet_gain: float = 4.0
    strain_gain: float = 0.4
    upright: bool = live_parameter(True, "keep the trunk upright, whatever the slope of the ground")
    margin: float = live_parameter(
        0.01, "m, that the CoM keeps from the edge of the support polygon", (0.0, 1.0)
    )
    com_speed: float = live_parameter(0.1, "m/s, largest of the reference", (0.001, 10.0))
    com_acceleration: float = live_parameter(0.5, "m/s^2, likewise", (0.001, 100.0))
    speed_fraction: float = live_parameter(
        0.5, "largest fraction of the joints' velocity limits", (0.01, 1.0)
    )
    joint_speed: float = live_parameter(
        2.0, "rad/s or m/s, largest, also where the URDF has no limit", (0.01, 100.0)
    )
    joint_acceleration: float = live_parameter(
        20.0, "rad/s^2 or m/s^2, largest of the commands", (0.1, 1000.0)
    )
    joint_margin: float = 0.01  # rad or m, that joints keep from their limits
    max_following_error: float = live_parameter(
        0.2, "rad or m, largest distance of a command from its joint", (0.01, 3.0)
    )
    slope_time: float = parameter(
        0.05, "s, time constant of the low-pass filter of the ground's rotation", (0.001, 10.0)
    )
    friction: float = live_parameter(
        0.5, "of the ground; slopes beyond its arc tangent are reported", (0.01, 10.0)
    )
    height_weight: float = 0.1
    trunk_weight: float = 0.05  # m
    posture_weight: float = 0.001  # m
    body_weight: float = 0.005  # m
    feet_weight: float = 100.0


@dataclass(frozen=True)
class StandingLimits:
    """Bounds of what counts as standing."""

    min_load_fraction: float = live_parameter(
        0.05, "of the weight, on a foot that stands as balancing begins", (0.0, 0.5)
    )
    min_weight_fraction: float = live_parameter(
        0.3, "of the weight, on all feet together; below, the robot falls", (0.0, 1.0)
    )
    fallen_tilt: float = live_parameter(
        0.8, "rad, tilt of the trunk beyond which it has fallen", (0.1, 3.0)
    )
    settle_time: float = live_parameter(
        0.2, "s, for which it must stand on the same feet before balancing begins", (0.0, 60.0)
    )
