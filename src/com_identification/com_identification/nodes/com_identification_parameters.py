"""The parameters of com_identification."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.node import Node

from com_identification.settings import IdentificationSettings
from com_ros.exceptions import ParameterError
from com_ros.flat_parameters import declare_flat, descriptions_of
from com_ros.parameters import parameter


@dataclass(frozen=True)
class Parameters:
    """What the node can be told; with those of IdentificationSettings, see declare_settings."""

    robot_description: str = parameter("", "the robot's URDF; empty: wait for the topic")
    robot_config: str = parameter(
        "", "path of the robot's configuration (YAML), with its feet and their force sensors"
    )
    settings: str = parameter(
        "", "path of settings (YAML) of the identification; empty: only the parameters count"
    )
    storage_directory: str = parameter(
        "", "where postures are kept; it is made if missing. Empty: no posture can be captured"
    )
    storage_name: str = parameter("postures", "of the file of postures, without .jsonl")
    export_directory: str = parameter(
        "", "where corrected URDFs may be written; it must exist. Empty: nowhere"
    )
    auto_capture: bool = parameter(
        False, "capture each new posture in which the robot stands still by itself"
    )
    end_of_stream: float = parameter(
        2.0,
        "s of real time without any reading, after which a recording is over: with auto_capture "
        "what was gathered of the last posture is taken",
        (0.1, 3600.0),
    )
    capture_timeout: float = parameter(
        30.0, "s of real time to wait for a robot to stand still", (0.1, 3600.0)
    )
    joint_timeout: float = parameter(
        0.5, "s, largest time between parts of the joints in joint_states", (0.001, 60.0)
    )
    assumed_joints: tuple[str, ...] = parameter((), "joints that joint_states does not carry ...")
    assumed_positions: tuple[float, ...] = parameter((), "... and their positions, rad or m")
    imu_link: str = parameter(
        "", "link that carries the IMU; empty: robot_config's, else the root link"
    )
    state_rate_hz: float = parameter(5.0, "1/s, rate of identification/state", (0.1, 100.0))
    check_rate_hz: float = parameter(
        2.0, "1/s, rate of identification/model_check and of the markers; 0: none", (0.0, 100.0)
    )
    com_tolerance: float = parameter(
        0.003, "m, beyond which the model's centre of mass is called off", (0.0, 10.0)
    )
    mass_tolerance: float = parameter(
        0.02, "share of the model's mass beyond which it is called off", (0.0, 10.0)
    )
    frame_prefix: str = parameter("", 'stands in front of every frame name, e.g. "robot1/"')

    def assumed(self) -> dict[str, float]:
        """Assumed positions by joint, rad or m.

        Raises:
            ParameterError: the two lists differ in length.
        """
        if len(self.assumed_joints) != len(self.assumed_positions):
            raise ParameterError(
                "assumed_positions",
                list(self.assumed_positions),
                f"give {len(self.assumed_joints)}, one for each of assumed_joints",
            )
        return dict(zip(self.assumed_joints, self.assumed_positions, strict=True))


def declare_settings(node: Node, path: str) -> IdentificationSettings:
    """Declares all that the identification can be told; what is given wins over the file.

    Args:
        node: that is given parameters noise.force, capture.samples, prior.com_std, ...
        path: of a settings file that gives the defaults; empty: none.

    Raises:
        ConfigError: the file is wrong.
        ParameterError: a parameter is wrong.
    """
    base = IdentificationSettings.from_file(path) if path else IdentificationSettings()
    said = {
        f"{section}.{name}": text
        for section in ("noise", "sensors", "prior", "fit", "capture", "plan")
        for name, text in descriptions_of(type(getattr(base, section))).items()
    }
    return IdentificationSettings.from_flat(declare_flat(node, base.flat(), said), base)
