"""Options of the balance: gains and bounds of the control, and when a robot stands."""

from dataclasses import dataclass

from com_control.exceptions import BalanceError
from com_model.parameters import live_parameter, parameter


@dataclass(frozen=True)
class BalanceOptions:
    """Options of a Balancer.

    A robot that rocks on its drives at w rad/s with a damping ratio d needs a com_gain below 2 d
    w; by default it is 3 d w / 4, at most 4 1/s. HOAP-2 sways with 10 and
    falls with 14. Weights are relative to 1 m/s of the horizontal CoM (what keeps the robot from
    falling has priority).

    Attributes:
        joint_margin: rad or m, distance of commands from the joints' limits.
        trunk_weight: m, of the trunk's rotation.
        feet_weight: of errors between the soles.
    """

    com_gain: float = live_parameter(
        0.0,
        "1/s, by which an error of the CoM decays; 0: by the resonance, at most 4",
        (0.0, 8.0),
    )
    resonance: float = live_parameter(
        0.0,
        "rad/s, at which it rocks on its drives when it stands; 0: by the configuration's servo; "
        "otherwise 2 or more",
        (0.0, 1000.0),
    )
    resonance_damping: float = live_parameter(
        0.25, "damping ratio of that, where resonance is given", (0.01, 1.0)
    )
    trunk_gain: float = live_parameter(
        4.0, "1/s, by which an error of the trunk's orientation decays", (0.0, 100.0)
    )
    upright: bool = live_parameter(
        True, "keep the trunk upright, whatever the slope of the ground"
    )
    margin: float = live_parameter(
        0.01, "m, that the CoM keeps from the edge of the support polygon", (0.0, 1.0)
    )
    com_speed: float = live_parameter(
        0.1, "m/s, largest of the reference", (0.001, 10.0)
    )
    com_acceleration: float = live_parameter(
        0.5, "m/s^2, largest of the reference", (0.1, 100.0)
    )
    speed_fraction: float = live_parameter(
        0.5, "largest fraction of the joints' velocity limits", (0.01, 1.0)
    )
    joint_speed: float = live_parameter(
        2.0, "rad/s or m/s, largest, also where the URDF has no limit", (0.01, 100.0)
    )
    joint_acceleration: float = live_parameter(
        20.0, "rad/s^2 or m/s^2, largest of the commands", (1.0, 1000.0)
    )
    joint_margin: float = 0.01
    max_following_error: float = live_parameter(
        0.2, "rad or m, largest distance of a command from its joint", (0.01, 3.0)
    )
    slope_time: float = parameter(
        0.05,
        "s, time constant of the low-pass filter of the ground's rotation",
        (0.001, 10.0),
    )
    ground_speed: float = live_parameter(
        0.18,
        "rad/s, fastest rotation of the ground; where soles turn faster against gravity, the "
        "robot rocks or imu is wrong: it holds",
        (0.01, 10.0),
    )
    friction: float = live_parameter(
        0.5, "of the ground; slopes beyond its arc tangent are reported", (0.01, 10.0)
    )
    trunk_weight: float = 0.05
    feet_weight: float = 100.0

    def __post_init__(self) -> None:
        # rad/s; by a slower resonance the reference lags so much that HOAP-2 and TALOS fall
        # as they sway
        slowest = 2.0
        if 0.0 < self.resonance < slowest:
            raise BalanceError(
                f"resonance {self.resonance:g} rad/s: give {slowest:g} to 1000, or 0 for that of "
                "the configuration's servo"
            )


@dataclass(frozen=True)
class StandingLimits:
    """Bounds of load and tilt within which a robot counts as standing."""

    min_load_fraction: float = live_parameter(
        0.05, "of the weight, on a foot that stands as balancing begins", (0.0, 0.5)
    )
    min_weight_fraction: float = live_parameter(
        0.3, "of the weight, on all feet together; below, the robot falls", (0.0, 0.8)
    )
    fallen_tilt: float = live_parameter(
        0.8, "rad, tilt of the trunk beyond which it has fallen", (0.1, 3.0)
    )
    settle_time: float = live_parameter(
        0.2,
        "s, for which it must stand on the same feet before balancing begins",
        (0.0, 60.0),
    )
