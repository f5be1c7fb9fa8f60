"""The parameters of ccgd_gait."""

from dataclasses import dataclass, field

from com_control.command_guard import GuardOptions
from com_control.walking.walk_monitor import CheckLimits
from com_control.walking.walker import METHODS, WalkRequest
from com_ros.parameters import SensorParameters, live_parameter, parameter


@dataclass(frozen=True)
class WalkDefaults:
    """A walk, where a goal leaves it open, walk.<name>; 0: robot_config's, else as said."""

    steps: int = live_parameter(6, "of which the last sets both feet side by side", (0, 10000))
    step_length: float = live_parameter(
        0.0, "m, by which each foot passes the other; 0: a fifth of the CoM's height", (-2.0, 2.0)
    )
    side_step: float = live_parameter(0.0, "m to the left, of each pair of steps", (-2.0, 2.0))
    turn: float = live_parameter(0.0, "rad to the left, of each step", (-1.6, 1.6))
    climb: float = live_parameter(0.0, "m, of each step", (-1.0, 1.0))
    half_width: float = live_parameter(
        0.0, "m, of each foot from the middle line; 0: as it stands", (0.0, 2.0)
    )
    first: str = live_parameter("right", "side that steps first", choices=("left", "right"))
    step_time: float = live_parameter(
        0.0, "s, of a step with one foot in the air; 0: 1.2 s", (0.0, 60.0)
    )
    double_support: float = live_parameter(
        0.0, "s, between two steps; 0: 0.4 s, less where legs have five joints", (0.0, 60.0)
    )
    step_height: float = live_parameter(
        0.0, "m, of the swing foot; 0: a tenth of the CoM's height", (0.0, 2.0)
    )
    com_height: float = live_parameter(
        0.0, "m, of the CoM over the soles; 0: 98 % of that at which it stands", (0.0, 10.0)
    )
    method: str = live_parameter("refined", "of the joints' angles", choices=METHODS)

    def request(self) -> WalkRequest:
        """The same for the planner, which chooses what is 0.0."""
        given = {k: v for k, v in vars(self).items() if type(v) is not float or v != 0.0}
        return WalkRequest(**given)


@dataclass(frozen=True)
class Parameters(SensorParameters):
    """Parameters of the node."""

    walk: WalkDefaults = field(default_factory=WalkDefaults)
    check: CheckLimits = field(default_factory=CheckLimits)
    guard: GuardOptions = field(default_factory=GuardOptions)
    autostart: bool = parameter(False, "walk once, by walk.*, as soon as the robot stands")
    streamed: bool = parameter(
        False, "send one point, `horizon` ahead, at each sample; false: send whole walks at once"
    )
    stabiliser: bool = parameter(
        False,
        "feed wrenches and imu back to walks: streams points two samples ahead, at rate_hz; needs "
        "servo.stiffness in robot_config",
    )
    cmd_vel_timeout: float = live_parameter(
        0.5, "s without cmd_vel, after which a walk by it ends", (0.01, 60.0)
    )
    use_wrench: bool = parameter(True, "feet must carry for a walk to begin; false: no sensors")
    approach_time: float = parameter(
        1.0,
        "s, at least, for the way to the walk's first posture; at most, for a robot to stand still",
        (0.05, 60.0),
    )
    delay: float = parameter(
        0.1, "s, from a decision to the first point that it changes", (0.01, 5.0)
    )
    drive_delay: float = live_parameter(
        0.0, "s, delay of the drives; targets are sent as much earlier", (0.0, 0.5)
    )
    horizon: float = parameter(0.05, "s, by which streamed points are ahead", (0.001, 1.0))
    point_period: float = parameter(0.01, "s, between points of a trajectory", (0.001, 0.1))
    rate_hz: float = live_parameter(100.0, "1/s, of what is published, at most", (1.0, 1000.0))
    display_rate_hz: float = live_parameter(
        20.0, "1/s, of gait/markers and tf, at most", (0.1, 200.0)
    )
    walk_frame: str = parameter("walk", "name of the frame in which walks are planned")

    @property
    def lead(self) -> float:
        """By how much streamed points are ahead, s."""
        return 2.0 / self.rate_hz if self.stabiliser else self.horizon

    @property
    def streams(self) -> bool:
        """Whether one point is sent at each sample."""
        return self.streamed or self.stabiliser
