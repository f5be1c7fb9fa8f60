"""What tests of several robots share."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from com_model import RobotConfig, RobotModel

CONFIGS = Path(__file__).resolve().parents[3] / "src" / "robot_descriptions" / "config"


@pytest.fixture(scope="module")
def robot(request):
    """Model and configuration of the robot that the test's module names."""
    config = RobotConfig.from_file(CONFIGS / f"{request.module.NAME}.yaml")
    return RobotModel.from_file(config.urdf), config


@pytest.fixture
def comments():
    """comments(urdf): those in each link, by the link's name."""

    def read(urdf):
        parser = ElementTree.XMLParser(
            target=ElementTree.TreeBuilder(insert_comments=True)
        )
        return {
            link.get("name"): [
                child.text for child in link if child.tag is ElementTree.Comment
            ]
            for link in ElementTree.parse(urdf, parser).getroot().iter("link")
        }

    return read
