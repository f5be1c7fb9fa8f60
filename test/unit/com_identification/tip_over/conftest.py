"""HOAP-2 with its sixteen tests."""

from pathlib import Path

import pytest

from com_identification.tip_over.protocol import TipProtocol, read_angles
from com_identification.tip_over.quasi_static import QuasiStatic
from com_model import RobotConfig, RobotModel

DESCRIPTIONS = Path(__file__).resolve().parents[4] / "src/robot_descriptions"


@pytest.fixture(scope="session")
def hoap2_config():
    return RobotConfig.from_file(DESCRIPTIONS / "config/hoap2.yaml")


@pytest.fixture(scope="session")
def model(hoap2_config):
    return RobotModel.from_file(hoap2_config.urdf)


@pytest.fixture(scope="session")
def protocol():
    return TipProtocol.from_file(DESCRIPTIONS / "config/posture_protocol/hoap2.yaml")


@pytest.fixture(scope="session")
def simulation(model, hoap2_config, protocol):
    return QuasiStatic.from_protocol(model, hoap2_config, protocol)


@pytest.fixture(scope="session")
def table(protocol):
    return read_angles(DESCRIPTIONS / "data/hoap2_posture_protocol.csv", protocol)


@pytest.fixture(scope="session")
def worlds_csv():
    return DESCRIPTIONS / "data/hoap2_worlds.csv"
