"""Robots that are not as their URDF says: the same text with other inertials, and the truth."""

import re

import numpy as np
import pytest

from com_model import RobotModel
from com_simulation.exceptions import WorldError
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.true_errors import (
    TrueErrors,
    true_robot,
    with_true_errors,
    write_urdf,
)
from com_simulation.physics.world_builder import build_world


def test_every_link_with_a_mass_is_off_by_the_given_std(robot_files):
    robot = robot_files("hoap2")[0]
    shifts, ratios = [], []
    massive = robot.link_masses > 0.0
    for seed in range(40):
        true = with_true_errors(robot, TrueErrors(0.005, 0.03, seed))
        shifts.append((true.link_coms - robot.link_coms)[massive])
        ratios.append(
            (true.link_masses / np.where(massive, robot.link_masses, 1.0))[massive] - 1
        )
        np.testing.assert_array_equal(true.link_masses[~massive], 0.0)
    assert np.std(shifts) == pytest.approx(0.005, rel=0.05)
    assert np.abs(np.std(shifts, axis=(0, 1)) - 0.005).max() < 0.0005
    assert np.std(ratios) == pytest.approx(0.03, rel=0.1)
    assert np.abs(np.mean(shifts)) < 0.0003
    assert np.abs(np.mean(ratios)) < 0.005


def test_the_text_changes_nowhere_else(robot_files):
    robot = robot_files("hoap2")[0]
    true = with_true_errors(robot, TrueErrors(com=0.005))
    numbers = re.compile(r'(<inertial>\s*<origin[^>]*xyz=")[^"]*(")')
    assert true.xml != robot.xml
    assert numbers.sub(r"\1\2", true.xml) == numbers.sub(r"\1\2", robot.xml)
    np.testing.assert_array_equal(true.link_masses, robot.link_masses)
    np.testing.assert_array_equal(true.link_inertias, robot.link_inertias)
    scaled = with_true_errors(robot, TrueErrors(mass=0.1))
    ratios = scaled.link_masses / np.where(
        robot.link_masses > 0.0, robot.link_masses, 1.0
    )
    np.testing.assert_allclose(
        scaled.link_inertias, robot.link_inertias * ratios[:, None, None], atol=1e-15
    )


def test_the_seed_decides(arm):
    one, same, other = (
        with_true_errors(arm, TrueErrors(0.01, seed=s)).xml for s in (3, 3, 4)
    )
    assert one == same != other
    assert with_true_errors(arm, TrueErrors()) is arm


def test_a_file_is_the_truth(arm, tmp_path, robot_files):
    true = with_true_errors(arm, TrueErrors(com=0.01))
    file = tmp_path / "deep" / "true.urdf"
    write_urdf(true, file)
    assert file.read_text() == true.xml
    assert [path.name for path in file.parent.iterdir()] == ["true.urdf"]
    read = true_robot(arm, TrueErrors(), file)
    np.testing.assert_array_equal(read.link_coms, true.link_coms)
    with pytest.raises(WorldError, match="give one of them"):
        true_robot(arm, TrueErrors(com=0.01), file)
    with pytest.raises(
        WorldError, match=r"true\.urdf differs from 'hoap2': give a URDF"
    ):
        true_robot(robot_files("hoap2")[0], TrueErrors(), file)


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
def test_bad_deviations_are_refused(value):
    with pytest.raises(
        WorldError, match=r"true_errors\.com is .*: give a number from 0 to 1"
    ):
        TrueErrors(com=value)


def test_the_simulated_robot_is_the_true_one(robot_files):
    """The CoM that stands on the soles is that of the true model, not of the believed one."""
    robot, config, path = robot_files("hoap2")
    true = with_true_errors(robot, TrueErrors(com=0.005, mass=0.05, seed=2))
    world = build_world(true, config, urdf_path=path)
    reading = Simulation(world).advance()
    expected, believed = (
        RobotModel.from_urdf(xml).bodies.mass.sum() for xml in (true.xml, robot.xml)
    )
    assert reading.mass == pytest.approx(expected, rel=1e-9)
    assert abs(expected - believed) > 0.01
