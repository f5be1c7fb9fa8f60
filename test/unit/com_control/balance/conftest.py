"""HOAP-2 and the balance of it."""

from pathlib import Path

import pytest

from com_model import RobotConfig, RobotModel

CONFIGS = Path(__file__).resolve().parents[4] / "src" / "robot_descriptions" / "config"


@pytest.fixture(scope="session")
def config():
    return RobotConfig.from_file(CONFIGS / "hoap2.yaml")


@pytest.fixture(scope="session")
def model(config):
    return RobotModel.from_file(config.urdf)


@pytest.fixture
def posture(model, config):
    return config.nominal_posture(model)
