"""The parameters of com_balancer."""

from dataclasses import dataclass, field

from com_control.balance.demonstrations import DEMONSTRATIONS
from com_control.balance.options import BalanceOptions
from com_control.balance.session import StandingLimits
from com_ros.parameters import parameter


@dataclass(frozen=True)
class ControlSettings:
    """Gains and bounds, control.<name>; see com_control.balance.options."""

    com_gain: float = parameter(4.0, "1/s, by which an error of the CoM decays", (0.01, 100.0))
    trunk_gain: float = parameter(4.0, "1/s, likewise of the trunk's orientation", (0.0, 100.0))
    upright: bool = parameter(True, "keep the trunk upright, whatever the slope of the ground")
    margin: float = parameter(
        0.01, "m, that the CoM keeps from the edge of the support polygon", (0.0, 1.0)
    )
    com_speed: float = parameter(0.1, "m/s, of the CoM at most", (0.001, 10.0))
    com_acceleration: float = parameter(0.5, "m/s^2, likewise", (0.001, 100.0))
    speed_share: float = parameter(0.5, "of the joints' velocity limits, at most", (0.01, 1.0))
    joint_speed: float = parameter(2.0, "rad/s or m/s, of joints at most", (0.01, 100.0))
    joint_acceleration: float = parameter(20.0, "rad/s^2 or m/s^2, likewise", (0.1, 1000.0))
    give: float = parameter(
        0.2, "rad or m, of a command from where its joint is, at most", (0.01, 3.0)
    )
    slope_time: float = parameter(
        0.05, "s, over which the turning of the ground is smoothed", (0.001, 10.0)
    )
    friction: float = parameter(
        0.5, "of the ground; steeper slopes than its arc tangent are spoken of", (0.01, 10.0)
    )

    def options(self) -> BalanceOptions:
        """The same for the controller."""
        return BalanceOptions(**vars(self))


@dataclass(frozen=True)
class CheckSettings:
    """What counts as standing, check.<name>."""

    load_share: float = parameter(
        0.05, "share of the weight, at least, on a foot that stands at the start", (0.0, 0.5)
    )
    weight_share: float = parameter(
        0.3, "share of the weight, at least, on all feet; less: it falls", (0.0, 1.0)
    )
    fallen_tilt: float = parameter(0.8, "rad, of the trunk, from which on it has fallen", (0.1, 3))
    settle_time: float = parameter(
        0.2, "s, that it must have stood on the same feet before balancing begins", (0.0, 60.0)
    )

    def limits(self) -> StandingLimits:
        """The same for the session."""
        return StandingLimits(**vars(self))


@dataclass(frozen=True)
class Parameters:
    """What the node can be told."""

    robot_description: str = parameter("", "the robot's URDF; empty: wait for the topic")
    robot_config: str = parameter("", "path of the robot's configuration (YAML); needed")
    control: ControlSettings = field(default_factory=ControlSettings)
    check: CheckSettings = field(default_factory=CheckSettings)
    autostart: bool = parameter(
        False, "balance as soon as the robot stands, without ~/start; after a fall call it"
    )
    demonstration: str = parameter(
        "none",
        "that the CoM is led through while it balances; ends with the first balance/com_desired",
        choices=DEMONSTRATIONS,
    )
    use_imu: bool = parameter(True, "gravity from imu; false: the ground counts as level")
    use_wrench: bool = parameter(True, "feet must carry; false: no sensors")
    joint_timeout: float = parameter(
        0.2, "s, silence of joint_states after which it is said", (0.001, 60.0)
    )
    imu_timeout: float = parameter(
        0.1, "s, age of imu from which the joints are held", (0.001, 60.0)
    )
    wrench_timeout: float = parameter(0.2, "s, of the feet's wrenches, likewise", (0.001, 60.0))
    horizon: float = parameter(0.01, "s, by which targets are ahead of joint_states", (0.001, 1.0))
    rate_hz: float = parameter(500.0, "1/s, of joint_trajectory at most", (1.0, 2000.0))
    display_rate_hz: float = parameter(20.0, "1/s, of balance/markers and tf, at most", (0.1, 200))
    balance_frame: str = parameter("balance", "name of the frame in the middle of the soles")
    frame_prefix: str = parameter("", "stands in front of the names of frames")
