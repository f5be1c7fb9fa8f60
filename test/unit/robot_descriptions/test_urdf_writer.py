"""What the scripts that write URDFs share."""

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

import pytest

FILE = Path(__file__).resolve().parents[3] / "tools/robots/urdf_writer.py"


@pytest.fixture(scope="module")
def writer():
    spec = importlib.util.spec_from_file_location("urdf_writer", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(**changes):
    sizes = {f"size_{axis}_mm": "60" for axis in "xyz"}
    places = {"x_mm": "10", "y_mm": "-20", "z_mm": "0"}
    names = {"link": "hip", "use": "visual", "part": "axle", "colour": "grey"}
    return names | sizes | places | {"shape": "sphere", "axis": ""} | changes


def test_shapes_are_mirrored(writer):
    link = ElementTree.Element("link")
    writer.add_shapes(
        link, [row(), row(use="collision", shape="cylinder", axis="x")], (-1, -1, 1)
    )
    ball, axle = link
    assert ball.find("origin").attrib == {"xyz": "-0.01 0.02 0"}
    assert ball.find("geometry/sphere").get("radius") == "0.03"
    assert ball.find("material").get("name") == "grey"
    assert axle.tag == "collision"
    assert axle.find("origin").get("rpy") == "0 1.570796327 0"
    assert axle.find("geometry/cylinder").attrib == {"radius": "0.03", "length": "0.06"}
    assert axle.find("material") is None


@pytest.mark.parametrize("shape", ["sphere", "cylinder"])
def test_a_round_shape_in_a_box_that_is_not_square(writer, shape):
    with pytest.raises(writer.TableError) as error:
        writer.add_shapes(
            ElementTree.Element("link"), [row(shape=shape, axis="x", size_y_mm="50")]
        )
    assert str(error.value) == f"hip axle: a {shape} is as wide as it is deep"
