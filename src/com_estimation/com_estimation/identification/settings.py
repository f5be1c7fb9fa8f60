"""Settings of an identification, from a YAML file, a mapping or flat parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from com_estimation.identification.capture import PostureRecorder
from com_estimation.identification.capture_options import CaptureOptions, Mark
from com_estimation.identification.identify import Options
from com_estimation.identification.planner import PlanOptions
from com_estimation.identification.postures import SensorNoise
from com_estimation.identification.priors import BodyPriors
from com_estimation.identification.sensors import SensorPriors
from com_model import Foot, RobotModel


@dataclass(frozen=True)
class LinkPrior:
    """What is known of one link that differs from the others; None: as for all.

    Attributes:
        com_deviation: m, of its centre of mass; 0: known.
        mass_share: Standard deviation of its mass over the mass; 0: known.
        mass: kg, where it was weighed; it takes the place of the URDF's.
    """

    com_deviation: float | None = None
    mass_share: float | None = None
    mass: float | None = None


@dataclass(frozen=True)
class IdentificationSettings:
    """All that an identification can be told.

    Attributes:
        noise: Of one reading of each sensor.
        sensors: Which constant errors of the sensors are unknown.
        com_deviation: m, how far the URDF's centres of mass may be off (standard deviation).
        mass_share: Standard deviation of a link's mass over the mass; 0: masses are known.
        shape_margin: m, how far outside its primitive shapes a link's centre of mass may be;
            negative: no bounds.
        links: What differs for some links, by the link's name.
        loss: "none", "huber" or "tukey".
        folds: Of the held-out error; 0: none.
        gravity: m/s^2.
        use_effort: Whether joint efforts are used.
        use_imu: Whether the direction of gravity comes from an IMU; else the ground is level.
        capture: When a robot is still.
        plan: What postures may be proposed.
    """

    noise: SensorNoise = field(default_factory=SensorNoise)
    sensors: SensorPriors = field(default_factory=SensorPriors)
    com_deviation: float = 0.02
    mass_share: float = 0.0
    shape_margin: float = 0.02
    links: Mapping[str, LinkPrior] = field(default_factory=dict)
    loss: str = "tukey"
    folds: int = 5
    gravity: float = 9.81
    use_effort: bool = False
    use_imu: bool = False
    capture: CaptureOptions = field(default_factory=CaptureOptions)
    plan: PlanOptions = field(default_factory=PlanOptions)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> IdentificationSettings:
        """Reads a YAML file.

        Raises:
            ConfigError: The file or a key in it is wrong; names the key and what it expects.
        """
        raise NotImplementedError

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], source: str = "identification settings"
    ) -> IdentificationSettings:
        """Reads a mapping with sections noise, sensors, prior, fit, capture, plan.

        Raises:
            ConfigError: As from_file.
        """
        raise NotImplementedError

    @classmethod
    def from_flat(cls, data: Mapping[str, Any]) -> IdentificationSettings:
        """Reads parameters as of flat(); missing ones are as by default.

        Raises:
            ConfigError: As from_file.
        """
        raise NotImplementedError

    def flat(self) -> dict[str, float | int | str | bool]:
        """Gives all but the links' as parameters: {"noise.force": 0.5, ...}, for ROS."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Gives what from_dict reads."""
        raise NotImplementedError

    def check(self, model: RobotModel) -> None:
        """Checks that the links that it names are the model's and have mass.

        Raises:
            ConfigError: One is not.
        """
        raise NotImplementedError

    def priors(self, model: RobotModel) -> BodyPriors:
        """What is known of the bodies."""
        raise NotImplementedError

    def options(self, refuse_alike: bool = True) -> Options:
        """How identify() works."""
        raise NotImplementedError

    def recorder(
        self, model: RobotModel, feet: Sequence[Foot], marks: Sequence[Mark] = ()
    ) -> PostureRecorder:
        """A recorder with these settings."""
        return PostureRecorder(
            model,
            feet,
            self.capture,
            noise=self.noise,
            use_effort=self.use_effort,
            use_up=self.use_imu,
            marks=marks,
            gravity=self.gravity,
        )
