"""The parameters of motion_player."""

from dataclasses import dataclass

from com_control.motion.csv_file import UNITS
from com_control.motion.player import PlayerOptions
from com_ros.parameters import JointTimeout, RobotParameters, live_parameter, parameter


@dataclass(frozen=True)
class DriveParameters(RobotParameters, JointTimeout):
    """Parameters of both; without robot_description the URDF is the one of robot_config."""

    motion_layout: str = parameter(
        "", "path of what the columns of the robot's motion files mean (YAML)"
    )
    unit: str = parameter("counts", "of the positions in motion files", choices=UNITS)
    rate_hz: float = live_parameter(100.0, "1/s, of commands, at most", (1.0, 1000.0))
    horizon: float = parameter(0.05, "s, by which targets are ahead", (0.001, 1.0))
    stop_time: float = parameter(0.5, "s, from full speed to rest and back", (0.01, 10.0))
    following_error: float = parameter(
        0.35, "rad, of a joint from its target; beyond, the motion stops", (0.001, 10.0)
    )

    def options(self, approach_fraction: float) -> PlayerOptions:
        """The same for a player."""
        return PlayerOptions(
            self.horizon,
            self.stop_time,
            approach_fraction,
            self.following_error,
            self.joint_timeout,
        )


@dataclass(frozen=True)
class PlayerParameters(DriveParameters):
    """Parameters of motion_player."""

    motion_directory: str = parameter(
        "", "folder of the motion files that may be loaded; empty: the working directory"
    )
    motion: str = parameter("", "file inside it that is loaded at the start; empty: none")
    play: bool = parameter(False, "play it as soon as the position of the robot is known")
    clamp: bool = parameter(
        False, "clip and slow down what breaks limits; false: refuse it, unless ~/load says so"
    )
    approach_fraction: float = parameter(
        0.1, "of the limits of velocity and acceleration, on the way to the first row", (0.001, 1.0)
    )
    most_rows: int = parameter(1_000_000, "of a motion file", (1, 10_000_000))
