"""What tests of several robots share."""

from xml.etree import ElementTree

import pytest


@pytest.fixture
def comments():
    """comments(urdf): those in each link, by the link's name."""

    def read(urdf):
        parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
        return {
            link.get("name"): [child.text for child in link if child.tag is ElementTree.Comment]
            for link in ElementTree.parse(urdf, parser).getroot().iter("link")
        }

    return read
