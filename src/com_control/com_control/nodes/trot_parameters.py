"""The parameters of trot_gait."""

from dataclasses import dataclass, field

from com_control.trot.gait_parameters import GaitParameters
from com_ros.parameters import parameter


@dataclass(frozen=True)
class GaitSettings:
    """The gait; see com_control.trot.gait_parameters."""

    frequency: float = parameter(1.0, "1/s, periods of the gait", (0.05, 10.0))
    duty_factor: float = parameter(0.5, "share of the period that a leg carries", (0.5, 0.95))
    step_height: float = parameter(0.0, "m; 0: a ninth of the height", (0.0, 1.0))
    height: float = parameter(
        0.0, "m, of the hips over the ground; 0: of the nominal posture", (0.0, 10.0)
    )
    velocity_x: float = parameter(0.0, "m/s, forwards; 0: in place", (-10.0, 10.0))
    velocity_y: float = parameter(0.0, "m/s, to the left", (-10.0, 10.0))
    yaw_rate: float = parameter(0.0, "rad/s, to the left", (-10.0, 10.0))
    start_delay: float = parameter(0.0, "s, of standing before the first step", (0.0, 1e4))
    first: str = parameter(
        "left_front", "front leg of the first step", choices=("left_front", "right_front")
    )
    swing_compensation: bool = parameter(
        False, "keep the height of swing feet when the trunk tilts, without feedback too"
    )
    max_com_shift: float = parameter(
        0.0, "m, bound of the shift of the feet; 0: a fifth of the height", (0.0, 10.0)
    )

    def gait(self) -> GaitParameters:
        """The gait's own parameters."""
        return GaitParameters(**vars(self))


@dataclass(frozen=True)
class Parameters:
    """What the node can be told."""

    robot_description: str = parameter("", "the robot's URDF; empty: wait for the topic")
    robot_config: str = parameter("", "path of the robot's configuration (YAML); needed")
    gait: GaitSettings = field(default_factory=GaitSettings)
    autostart: bool = parameter(True, "trot without waiting for ~/start")
    feedback: bool = parameter(False, "move the feet below the centre of mass that trunk_com tells")
    com_timeout: float = parameter(
        0.5, "s, age of trunk_com from which the feet are shifted no further", (0.001, 60.0)
    )
    joint_timeout: float = parameter(
        0.2, "s, silence of joint_states after which the trot stops", (0.001, 60.0)
    )
    imu_timeout: float = parameter(
        0.1, "s, largest time between imu and joint_states", (0.001, 60.0)
    )
    max_tilt: float = parameter(0.6, "rad, tilt of the trunk at which the trot stops", (0.01, 1.5))
    lead_time: float = parameter(1.5, "s, from one posture to the other", (0.05, 60.0))
    rate_hz: float = parameter(200.0, "1/s, of joint_trajectory at most", (1.0, 2000.0))
    horizon: float = parameter(0.02, "s, by which targets are ahead of joint_states", (0.001, 1.0))
