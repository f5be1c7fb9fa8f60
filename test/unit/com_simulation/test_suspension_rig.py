"""The crane: up, level or not, in the air with other joints, down onto flat soles."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_model import link_poses
from com_model.dynamics import GRAVITY
from com_simulation.exceptions import CommandError
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.suspension_rig import LIFT_TIME
from com_simulation.physics.world_builder import build_world

PERIOD = 0.01


def run(simulation, seconds):
    for _ in range(round(seconds / PERIOD)):
        reading = simulation.advance()
    return reading


@pytest.fixture
def lifted(hoap2):
    """HOAP-2 in the air."""
    simulation = Simulation(hoap2, PERIOD)
    run(simulation, 0.5)
    simulation.set_lifted(True)
    assert simulation.lifting
    run(simulation, LIFT_TIME + 0.3)
    assert not simulation.lifting
    return simulation


def test_in_the_air_the_feet_feel_nothing_and_gravity_is_felt(lifted):
    reading = run(lifted, 1.0)
    np.testing.assert_array_equal(reading.wrenches, 0.0)
    assert np.linalg.norm(reading.specific_force) == pytest.approx(GRAVITY, rel=1e-6)
    assert np.abs(reading.velocity).max() < 1e-5
    again = run(lifted, 1.0)
    np.testing.assert_allclose(again.root_position, reading.root_position, atol=1e-6)


def test_it_comes_down_on_level_soles(lifted):
    """With one leg bent more and turned: the feet stand elsewhere, and both carry."""
    world = lifted.world
    q = world.posture.copy()
    for name, change in (
        ("LLEG_JOINT1", 0.3),
        ("RARM_JOINT1", -0.8),
        ("BODY_JOINT1", 0.3),
    ):
        q[world.robot.joint_names.index(name)] += change
    lifted.command(q)
    run(lifted, 1.5)
    lifted.set_lifted(False)
    reading = run(lifted, LIFT_TIME + 1.5)
    assert np.abs(reading.velocity).max() < 1e-3
    weight = reading.mass * GRAVITY
    forces = np.linalg.norm(reading.wrenches[:, :3], axis=1)
    assert forces.min() > 0.2 * weight
    R_root = Rotation.from_quat(reading.root_orientation).as_matrix()
    R, p = link_poses(world.robot, reading.position, R_root, reading.root_position)
    soles = [world.robot.link_index(foot.frame) for foot in world.feet]
    up = np.einsum("fij,fj->i", R[soles], reading.wrenches[:, :3])
    np.testing.assert_allclose(up, [0.0, 0.0, weight], atol=0.01 * weight)
    assert R[soles][:, 2, 2].min() > np.cos(0.02)
    assert np.abs(p[soles][:, 2]).max() < 0.003


def test_up_and_down_again_is_where_it_stood(lifted, hoap2):
    lifted.set_lifted(False)
    down = run(lifted, LIFT_TIME + 2.0)
    stood = run(Simulation(hoap2, PERIOD), 3.0)
    np.testing.assert_allclose(down.root_position, stood.root_position, atol=2e-3)
    sagittal = [0, 2, 4]  # sideways the soles may squeeze the ground by another amount
    np.testing.assert_allclose(
        down.wrenches[:, sagittal], stood.wrenches[:, sagittal], atol=0.01
    )
    lifted.reset()
    assert not lifted.lifting
    fresh = run(Simulation(hoap2, PERIOD), 0.5)
    np.testing.assert_array_equal(run(lifted, 0.5).wrenches, fresh.wrenches)


def test_it_turns_round_half_way(hoap2):
    simulation = Simulation(hoap2, PERIOD)
    run(simulation, 0.3)
    simulation.set_lifted(True)
    run(simulation, LIFT_TIME / 2)
    simulation.set_lifted(False)
    reading = run(simulation, LIFT_TIME + 1.0)
    assert reading.wrenches[:, 2].sum() == pytest.approx(
        reading.mass * GRAVITY, rel=0.01
    )


def test_a_fixed_robot_is_not_lifted(arm):
    with pytest.raises(CommandError, match="root is fixed: it need not be lifted"):
        Simulation(build_world(arm)).set_lifted(True)
