"""The parameters of com_balancer."""

from dataclasses import dataclass, field

from com_control.balance.demonstrations import DEMONSTRATIONS
from com_control.balance.options import BalanceOptions, StandingLimits
from com_control.command_guard import GuardOptions
from com_ros.parameters import SensorParameters, live_parameter, parameter


@dataclass(frozen=True)
class Parameters(SensorParameters):
    """Parameters of the node."""

    control: BalanceOptions = field(default_factory=BalanceOptions)
    check: StandingLimits = field(default_factory=StandingLimits)
    guard: GuardOptions = field(default_factory=lambda: GuardOptions(0.15, 0.5))
    autostart: bool = parameter(
        False, "balance as soon as the robot stands, without ~/start; after a fall call it"
    )
    demonstration: str = parameter(
        "none",
        "motion of the CoM while it balances; ends with the first balance/com_desired",
        choices=DEMONSTRATIONS,
    )
    use_imu: bool = parameter(True, "gravity from imu; false: the ground counts as horizontal")
    use_wrench: bool = parameter(True, "feet must carry; false: no sensors")
    horizon: float = parameter(0.01, "s, by which targets are ahead of joint_states", (0.001, 1.0))
    rate_hz: float = live_parameter(500.0, "1/s, of joint_trajectory at most", (1.0, 2000.0))
    display_rate_hz: float = live_parameter(
        20.0, "1/s, of balance/markers and tf, at most", (0.1, 200.0)
    )
    balance_frame: str = parameter("balance", "name of the frame in the middle of the soles")
