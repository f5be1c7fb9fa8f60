"""HOAP-2's motion files."""

from pathlib import Path

import numpy as np
import pytest

from com_control.motion.motion import Motion, MotionLayout
from com_model import RobotConfig, RobotModel

CONFIG = Path(__file__).resolve().parents[4] / "src/robot_descriptions/config"
# Knees bent, arms lowered, a row as the robot's own files have it.
ROW = (
    "1,2,0,-172,3696,9537,-5841,-172,18810,-2000,0,8800,0,37,-3730,-9537,5806,37,"
    "-18810,2000,0,-8800,0, R ,R ,R,R"
)


@pytest.fixture(scope="session")
def config():
    return RobotConfig.from_file(CONFIG / "hoap2.yaml")


@pytest.fixture(scope="session")
def layout(config):
    model = RobotModel.from_file(config.urdf)
    return MotionLayout.from_file(CONFIG / "motion/hoap2.yaml", config, model)


@pytest.fixture
def write(tmp_path):
    def write(lines):
        path = tmp_path / "motion.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


@pytest.fixture
def swing(layout):
    """One second of slow knees and hips, 2 ms a row."""
    times = 0.002 * np.arange(500)
    wave = 0.2 * np.sin(np.pi * times) ** 4
    positions = np.zeros((500, len(layout.joints)))
    for side in "LR":
        positions[:, layout.joints.index(f"{side}LEG_JOINT4")] = 2 * wave
        positions[:, layout.joints.index(f"{side}LEG_JOINT3")] = -wave
    return Motion(layout.joints, times, positions)
