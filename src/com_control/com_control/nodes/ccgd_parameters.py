"""Parameters of ccgd_gait."""

from dataclasses import dataclass, field

from com_control.command_guard import GuardOptions
from com_control.walking.walk import WalkRequest
from com_control.walking.walk_monitor import CheckLimits
from com_ros.parameters import SensorParameters, WrenchSource, live_parameter, parameter

# of the values that a goal leaves open, those that are not derived
WALK = WalkRequest(steps=6, first="right", method="refined")


@dataclass(frozen=True)
class Parameters(SensorParameters, WrenchSource):
    """Parameters of ccgd_gait; robot_config must give a left and a right foot."""

    walk: WalkRequest = WALK
    check: CheckLimits = field(default_factory=CheckLimits)
    guard: GuardOptions = field(default_factory=GuardOptions)
    autostart: bool = parameter(
        False, "walk once, by walk.*, as soon as the robot stands"
    )
    streamed: bool = parameter(
        False,
        "send one point, `horizon` ahead, at each sample; false: send whole walks at once",
    )
    stabiliser: bool = parameter(
        False,
        "feed wrenches and imu back to walks: streams points two samples ahead, at rate_hz; needs "
        "servo.stiffness in robot_config, or ankle_stiffness",
    )
    step_adjustment: bool = parameter(
        False,
        "set feet further forwards or backwards where the DCM asks for it; with `stabiliser`",
    )
    heading_feedback: bool = parameter(
        False,
        "turn back where a sole has turned on the ground by the imu; with `stabiliser`",
    )
    balance: bool = live_parameter(
        True,
        "feed back also while the robot stands, and so command all joints; with `stabiliser`",
    )
    ankle_stiffness: tuple[float, ...] = live_parameter(
        (),
        "N m/rad, of an ankle's servos about the sole's x and y axes, which ~/calibrate_stiffness "
        "measures; none: servo.stiffness of robot_config",
        (0.0, 1e9),
    )
    cmd_vel_timeout: float = live_parameter(
        0.5, "s without cmd_vel, after which a walk by it ends", (0.01, 60.0)
    )
    use_wrench: bool = parameter(
        True, "feet must carry for a walk to begin; false: no sensors"
    )
    approach_time: float = parameter(
        1.0,
        "s, at least, for the way to the walk's first posture; at most, for a robot to stand still",
        (0.05, 60.0),
    )
    delay: float = parameter(
        0.1, "s, from a decision to the first point that it changes", (0.01, 5.0)
    )
    drive_delay: float = parameter(
        0.0, "s, delay of the drives; targets are sent as much earlier", (0.0, 0.5)
    )
    horizon: float = parameter(
        0.05, "s, by which streamed points are ahead", (0.001, 1.0)
    )
    point_period: float = parameter(
        0.01, "s, between points of a trajectory", (0.001, 0.1)
    )
    rate_hz: float = live_parameter(
        100.0, "1/s, of what is published, at most", (1.0, 1000.0)
    )
    display_rate_hz: float = live_parameter(
        20.0, "1/s, of gait/markers and tf, at most", (0.1, 200.0)
    )
    walk_frame: str = parameter("walk", "name of the frame in which walks are planned")

    @property
    def lead(self) -> float:
        """Time from a sample to the streamed point computed from it, s."""
        return 2.0 / self.rate_hz if self.stabiliser else self.horizon

    @property
    def streams(self) -> bool:
        """Whether one point is sent at each sample."""
        return self.streamed or self.stabiliser
