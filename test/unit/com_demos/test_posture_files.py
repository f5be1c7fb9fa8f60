"""Files of postures: what is written is read, what is wrong is named."""

import numpy as np
import pytest

from com_demos.posture_files import read_postures
from com_model import RobotModel
from com_model.exceptions import ConfigError, ShapeError
from com_model.postures import write_postures

ARM = """<robot name="arm's"><link name="base"/>
<joint name="a" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<link name="upper"><inertial><mass value="1"/></inertial></link>
<joint name="b: c" type="continuous"><parent link="upper"/><child link="lower"/></joint>
<link name="lower"/></robot>"""


@pytest.fixture
def arm():
    return RobotModel.from_urdf(ARM)


def test_what_is_written_is_read(arm, tmp_path):
    postures = np.array([[0.1, -2.0], [-1.0, 1e-9], [0.123456, 4.0]])
    file = tmp_path / "new" / "postures.yaml"
    write_postures(file, arm, postures, "two joints")
    head = "# two joints\n# postures: rad or m, one row each\nrobot: arm's\njoints: [a, 'b: c']\n"
    assert file.read_text().startswith(head)
    np.testing.assert_allclose(read_postures(file, arm), postures, atol=5e-7)
    assert [path.name for path in file.parent.iterdir()] == ["postures.yaml"]
    with pytest.raises(ShapeError, match="postures"):
        write_postures(file, arm, np.zeros((1, 3)))


def test_the_order_of_joints_is_the_files(arm, tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("joints: ['b: c', a]\npostures:\n- [3.0, 0.5]\n")
    np.testing.assert_array_equal(read_postures(file, arm), [[0.5, 3.0]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "joints: [a]\npostures: [[0.0]]",
            r"joints: expected the joints .*; missing: b: c",
        ),
        ("joints: [a, 'b: c', d]\npostures: [[0, 0, 0]]", "unknown: d"),
        ("joints: [a, 'b: c']\npostures: []", "postures: expected one row"),
        ("joints: [a, 'b: c']\npostures: [[0.0]]", "expected rows of 2 numbers"),
        ("joints: [a, 'b: c']\npostures: [[0.0, .nan]]", "expected a finite number"),
        (
            "joints: [a, 'b: c']\npostures: [[0, 0], [1.5, 0]]",
            r"posture 2: a is 1\.5, .* -1 to 1",
        ),
        ("joints: [a, 'b: c']\npostures: [[0, 0]]\nspeed: 1", "unknown key 'speed'"),
        ("[1, 2]", "expected keys with values"),
    ],
)
def test_what_is_wrong_is_named(arm, tmp_path, text, message):
    file = tmp_path / "p.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_postures(file, arm)
