"""The parameters of trot_gait."""

from dataclasses import dataclass, field

from com_control.command_guard import GuardOptions
from com_control.trot.parameters import GaitParameters
from com_ros.parameters import ImuTimeout, JointTimeout, RobotParameters, live_parameter, parameter


@dataclass(frozen=True)
class Parameters(RobotParameters, JointTimeout, ImuTimeout):
    """Parameters of the node."""

    gait: GaitParameters = field(default_factory=GaitParameters)
    guard: GuardOptions = field(default_factory=GuardOptions)
    autostart: bool = parameter(True, "trot without waiting for ~/start")
    feedback: bool = parameter(False, "move the feet below the centre of mass of trunk_com")
    com_timeout: float = live_parameter(
        0.5, "s, age of trunk_com from which the feet are shifted no further", (0.001, 60.0)
    )
    max_tilt: float = live_parameter(
        0.6, "rad, tilt of the trunk at which the trot stops", (0.01, 1.5)
    )
    approach_time: float = parameter(1.5, "s, from one posture to the other", (0.05, 60.0))
    rate_hz: float = live_parameter(200.0, "1/s, of joint_trajectory at most", (1.0, 2000.0))
    horizon: float = parameter(0.02, "s, by which targets are ahead of joint_states", (0.001, 1.0))
