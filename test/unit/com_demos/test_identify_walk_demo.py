"""The demo of the identification from walking: its robot, its recordings, its judgement."""

from pathlib import Path

import numpy as np
import pytest
from identify_walk_demo import BOX, BOX_AT, TRUNK_OFF, compare, loaded, trot
from trot_lab import OPEN_LOOP, trot_gait

from com_identification.commands import identify
from com_identification.commands.bag_inputs import is_walk
from com_identification.commands.robot_inputs import load_robot
from com_model import RobotConfig, RobotModel, Sesc, find_robot


@pytest.fixture(scope="module")
def believed() -> RobotModel:
    return RobotModel.from_file(find_robot("a1").urdf)


def test_the_robot_has_a_box_on_a_trunk_that_is_off(believed: RobotModel) -> None:
    true, q = loaded(believed), believed.neutral
    i = int(np.argmax(believed.link_masses))
    moved = believed.link_masses[i] * np.array(TRUNK_OFF)
    assert (
        believed.link_names[i] == believed.link_names[int(np.argmax(true.link_masses))]
    )
    assert true.mass == pytest.approx(believed.mass + BOX)
    expected = believed.mass * Sesc(believed).com(q) + moved + BOX * np.array(BOX_AT)
    np.testing.assert_allclose(true.mass * Sesc(true).com(q), expected, atol=1e-9)


def test_the_comparison_is_with_the_robot_as_it_is(believed: RobotModel) -> None:
    true = loaded(believed)
    comparison = compare(true, believed, true, believed.neutral)
    assert (comparison.before > 0.01).all()
    assert comparison.after.max() == 0.0
    assert np.abs(comparison.bodies_before).max(axis=1).nonzero()[0].tolist() == [0]


def test_a_recording_is_taken_for_walking(believed: RobotModel, tmp_path: Path) -> None:
    files = find_robot("a1")
    assert files.config is not None
    config, path = RobotConfig.from_file(files.config), tmp_path / "in_place"
    walker = trot_gait(believed, config, OPEN_LOOP)
    trot(loaded(believed), walker, config, files.urdf, 50, path)
    words = [str(path), "--robot", str(files.urdf), "--output", str(tmp_path / "out")]
    arguments = identify.parser().parse_args(words)
    assert is_walk(arguments, load_robot(arguments))  # an IMU, and no force sensor
