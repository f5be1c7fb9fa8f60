"""Robots of robot_descriptions as nodes get them."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from com_model import RobotConfig, RobotModel

SHARE = Path(__file__).resolve().parents[2] / "src" / "robot_descriptions"


class ShippedRobot(NamedTuple):
    """A robot, where it stands (n,), and the parameters by which a node knows it."""

    config: RobotConfig
    model: RobotModel
    posture: np.ndarray
    parameters: dict[str, Any]


def shipped_robot(name: str) -> ShippedRobot:
    """The robot of a configuration."""
    path = str(SHARE / "config" / f"{name}.yaml")
    config = RobotConfig.from_file(path)
    model = RobotModel.from_file(config.urdf)
    parameters = {"robot_description": model.xml, "robot_config": path}
    return ShippedRobot(config, model, config.nominal_posture(model), parameters)
