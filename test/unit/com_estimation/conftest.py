"""A small walking robot whose numbers can be done in the head."""

import pytest
from walker_urdf import walker_urdf

from com_model import RobotModel


@pytest.fixture(scope="session")
def walker():
    """walker_urdf with ankles; its root is base."""
    return RobotModel.from_urdf(walker_urdf(root="base", ankles=True))
