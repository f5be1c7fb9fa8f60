"""Models that tests share: tiny ones of test/data, and the real ones of example-robot-data."""

from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pinocchio
import pytest
from hypothesis import settings

from com_model import RobotModel, UrdfError

# How long one example takes says how busy the machine is.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")


@pytest.fixture(scope="session")
def data() -> Path:
    return Path(__file__).resolve().parents[2] / "data"


@pytest.fixture
def load(data):
    """load("arm"): the model of test/data/arm.urdf."""
    return lambda name: RobotModel.from_file(data / f"{name}.urdf")


@pytest.fixture(scope="session")
def example_urdfs() -> dict[str, Path]:
    """The URDFs of example-robot-data by their path below its robots/."""
    files = distribution("example-robot-data").files or []
    paths = sorted(
        Path(file.locate()).resolve() for file in files if file.suffix == ".urdf"
    )
    return {str(path).split("/robots/", 1)[1]: path for path in paths}


@pytest.fixture(scope="session")
def example_models(example_urdfs) -> dict[str, RobotModel]:
    """Those that load."""
    models = {}
    for name, path in example_urdfs.items():
        try:
            models[name] = RobotModel.from_file(path)
        except UrdfError:
            continue
    return models


@pytest.fixture(scope="session")
def pinocchio_q():
    """pinocchio_q(model, oracle, q): our joint positions in the order of a Pinocchio model.

    Mimic joints, which are free ones to Pinocchio, are set to what they must be.
    """

    def convert(
        model: RobotModel, oracle: pinocchio.Model, q: np.ndarray
    ) -> np.ndarray:
        bodies, result = model.bodies, pinocchio.neutral(oracle)
        for b in range(1, bodies.count):
            position = bodies.multiplier[b] * q[bodies.q_index[b]] + bodies.offset[b]
            joint = oracle.joints[oracle.getJointId(bodies.joint_names[b])]
            if joint.nq == 2:
                result[joint.idx_q : joint.idx_q + 2] = (
                    np.cos(position),
                    np.sin(position),
                )
            else:
                result[joint.idx_q] = position
        return result

    return convert
