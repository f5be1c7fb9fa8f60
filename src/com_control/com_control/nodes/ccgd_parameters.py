"""The parameters of ccgd_gait."""

from dataclasses import dataclass, field

from com_control.walking.walk_monitor import CheckLimits
from com_control.walking.walker import METHODS, WalkRequest
from com_ros.parameters import parameter


@dataclass(frozen=True)
class WalkDefaults:
    """A walk, where a goal does not say otherwise, walk.<name>; 0: what fits the robot."""

    steps: int = parameter(6, "of which the last sets both feet side by side", (0, 10000))
    step_length: float = parameter(
        0.0, "m, by which each foot passes the other; 0: a fifth of the CoM's height", (-2.0, 2.0)
    )
    side_step: float = parameter(0.0, "m to the left, of each pair of steps", (-2.0, 2.0))
    turn: float = parameter(0.0, "rad to the left, of each step", (-1.6, 1.6))
    climb: float = parameter(0.0, "m, of each step", (-1.0, 1.0))
    half_width: float = parameter(
        0.0, "m, of each foot from the middle line; 0: as it stands", (0.0, 2.0)
    )
    first: str = parameter("right", "side that steps first", choices=("left", "right"))
    step_time: float = parameter(1.2, "s, of a step with one foot in the air", (0.001, 60.0))
    double_support: float = parameter(0.4, "s, between two steps", (0.001, 60.0))
    step_height: float = parameter(
        0.0, "m, of the swing foot; 0: a tenth of the CoM's height", (0.0, 2.0)
    )
    com_height: float = parameter(
        0.0, "m, of the CoM over the soles; 0: 98 % of that at which it stands", (0.0, 10.0)
    )
    method: str = parameter("refined", "of the joints' angles", choices=METHODS)

    def request(self) -> WalkRequest:
        """The same for the planner."""
        sized = ("step_length", "half_width", "step_height", "com_height")
        values = {
            name: value
            for name, value in vars(self).items()
            if not (name in sized and value == 0.0)
        }
        return WalkRequest(**values)


@dataclass(frozen=True)
class CheckSettings:
    """What must hold for a robot to walk, check.<name>."""

    load_fraction: float = parameter(
        0.15, "share of the weight, at least, on each foot of a robot that stands", (0.0, 0.5)
    )
    max_tilt: float = parameter(0.2, "rad, of the root of a robot that stands", (0.01, 1.5))
    fallen_tilt: float = parameter(0.8, "rad, from which on it has fallen", (0.05, 3.2))
    posture_error: float = parameter(
        0.2, "rad, of a joint from where it is told to be, for a walk to begin", (0.001, 10.0)
    )
    following_error: float = parameter(
        0.5, "rad, of a joint from its target in a walk; beyond, the walk stops", (0.001, 10.0)
    )

    def limits(self) -> CheckLimits:
        """The same for the session."""
        return CheckLimits(**vars(self))


@dataclass(frozen=True)
class Parameters:
    """What the node can be told."""

    robot_description: str = parameter("", "the robot's URDF; empty: wait for the topic")
    robot_config: str = parameter("", "path of the robot's configuration (YAML); needed")
    walk: WalkDefaults = field(default_factory=WalkDefaults)
    check: CheckSettings = field(default_factory=CheckSettings)
    autostart: bool = parameter(False, "walk once, as walk.* says, as soon as the robot stands")
    streamed: bool = parameter(
        False, "send one point, `horizon` ahead, at each sample; false: send whole walks at once"
    )
    use_wrench: bool = parameter(True, "feet must carry for a walk to begin; false: no sensors")
    joint_timeout: float = parameter(
        0.2, "s, silence of joint_states after which the walk stops", (0.001, 60.0)
    )
    wrench_timeout: float = parameter(0.2, "s, of the feet's wrenches, likewise", (0.001, 60.0))
    imu_timeout: float = parameter(0.2, "s, of imu, likewise, if it was ever heard", (0.001, 60.0))
    approach_time: float = parameter(
        1.0, "s, at least, of the way to the walk's first posture", (0.05, 60.0)
    )
    delay: float = parameter(
        0.1, "s, from a decision to the first point that it changes", (0.01, 5.0)
    )
    drive_delay: float = parameter(
        0.0, "s, by which the drives come late; targets are sent as much earlier", (0.0, 0.5)
    )
    horizon: float = parameter(0.05, "s, by which streamed points are ahead", (0.001, 1.0))
    point_period: float = parameter(0.01, "s, between points of a trajectory", (0.001, 0.1))
    rate_hz: float = parameter(100.0, "1/s, of what is published, at most", (1.0, 1000.0))
    display_rate_hz: float = parameter(20.0, "1/s, of gait/markers and tf, at most", (0.1, 200.0))
    walk_frame: str = parameter("walk", "name of the frame in which walks are planned")
    frame_prefix: str = parameter("", "stands in front of the names of frames")
