"""What identify_bag knows of the robot: URDF, configuration, settings."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotConfig, RobotModel
from com_model.exceptions import ConfigError


@dataclass(frozen=True, eq=False)
class BagRobot:
    """The robot of a recording.

    Attributes:
        model: As its URDF has it.
        config: Its configuration, or None.
        feet: Its feet.
        settings: Of the identification.
        inputs: Paths as the user wrote them, by name.
    """

    model: RobotModel
    config: RobotConfig | None
    feet: tuple[Foot, ...]
    settings: IdentificationSettings
    inputs: dict[str, str]

    @property
    def imu_link(self) -> str | None:
        """The link that carries the IMU, where one is used.

        Raises:
            ConfigError: One is to be used, and the configuration does not say where it is.
        """
        if not self.settings.fit.use_imu:
            return None
        if self.config is not None and self.config.imu_link is not None:
            return self.config.imu_link
        source = self.config.source if self.config is not None else "--config is missing"
        problem = "the IMU is to be used: say which link carries it, as imu: {link: NAME}"
        raise ConfigError(problem, source, "imu.link")

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.model.name if self.config is None else self.config.name


def load_robot(arguments: argparse.Namespace) -> BagRobot:
    """Reads URDF, configuration and settings.

    Raises:
        ComModelError: One of them cannot be read, or does not fit the others; says how to fix it.
    """
    model = RobotModel.from_file(arguments.robot)
    config = None if arguments.config is None else RobotConfig.from_file(arguments.config)
    if config is not None:
        config.check(model)
    settings = IdentificationSettings()
    if arguments.settings is not None:
        settings = IdentificationSettings.from_file(arguments.settings)
        settings.check(model)
    fit = settings.fit
    fit = replace(fit, use_imu=fit.use_imu or bool(arguments.imu))
    fit = replace(fit, use_effort=fit.use_effort or arguments.effort)
    settings = replace(settings, fit=fit)
    feet = _bare_feet(arguments.wrench, model) if config is None else config.feet
    if not feet:
        source = "--config is missing" if config is None else config.source
        problem = "no feet with force sensors: say where they are, as feet: {l_sole: {...}}"
        raise ConfigError(problem, source, "feet")
    given = ("bag", "robot", "config", "settings", "marks")
    values = {name: getattr(arguments, name) for name in given}
    inputs = {name: str(Path(value)) for name, value in values.items() if value}
    return BagRobot(model, config, feet, settings, inputs)


def _bare_feet(wishes: list[str], model: RobotModel) -> tuple[Foot, ...]:
    """Feet without configuration: links of the URDF that --wrench names."""
    feet = []
    for wish in wishes:
        link, _, topic = wish.partition("=")
        model.link_index(link)  # raises, and lists the links
        feet.append(Foot(link, "", np.zeros((0, 2)), 0.0, topic, link, 1))
    return tuple(feet)
