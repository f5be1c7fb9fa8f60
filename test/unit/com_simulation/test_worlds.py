"""Worlds and pushes by name: what each is, and what is refused."""

import mujoco
import numpy as np
import pytest
from shipped_robot import shipped_robot

from com_simulation.exceptions import WorldError
from com_simulation.physics.sensors import Noise, NoiseLevels
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world
from com_simulation.physics.worlds import (
    AHEAD,
    Surroundings,
    find_world,
    lay_ground,
    walking_noise,
)

SOLE = 0.1
CONFIG, MODEL, POSTURE, _ = shipped_robot("hoap2")


def heights(around, points, seed=1, **options):
    """Of the ground, m, at points x, y."""
    world = build_world(MODEL, CONFIG, edit=lay_ground(around, SOLE, seed, **options))
    data = mujoco.MjData(world.mj)
    data.qpos[:] = world.qpos
    mujoco.mj_kinematics(world.mj, data)
    geom, result = np.zeros(1, np.int32), []
    for x, y in points:
        way = mujoco.mj_ray(
            world.mj,
            data,
            np.array([x, y, 3.0]),
            np.array([0, 0, -1.0]),
            None,
            1,
            1,
            geom,
            None,
        )
        result.append(3.0 - way)
    return np.array(result)


def test_names():
    assert find_world("") == find_world("stiff") == Surroundings()
    found = find_world("soft+tiles_5mm+zeros_0.5deg+delay_20ms+friction_.3+noise")
    assert (found.soft, found.noise, found.friction) == (1.0, 1.0, 0.3)
    assert (found.tiles, found.delay) == pytest.approx((0.005, 0.02))
    assert found.zeros == pytest.approx(np.radians(0.5))
    assert find_world("step_3cm").step == pytest.approx(0.03)
    assert find_world("backlash_0.3deg").backlash == pytest.approx(np.radians(0.3))
    assert find_world("flexible_0.05mrad").flexible == pytest.approx(5e-5)


@pytest.mark.parametrize(
    "name", ["tiles", "soft_3", "tiles_5deg", "slope_5", "mud", "step_-3cm"]
)
def test_a_name_that_is_no_world_is_refused_with_the_valid_ones(name):
    with pytest.raises(
        WorldError, match=r"give stiff, soft, noise, tiles_5mm, step_5mm"
    ):
        find_world(f"soft+{name}")


def test_tiles_are_level_where_the_robot_begins_and_the_same_again():
    around = find_world("tiles_5mm")
    points = [
        (0.16, 0.16),
        (0.16, -0.16),
        *np.random.default_rng(3).uniform(0.3, 0.9, (40, 2)),
    ]
    found = heights(around, points, reach=1.0)
    np.testing.assert_allclose(found[:2], 0.0, atol=1e-9)
    assert np.abs(found).max() <= 0.005 + 1e-9
    assert 0.0015 < found[2:].std() < 0.005
    np.testing.assert_array_equal(heights(around, points, reach=1.0), found)
    assert (heights(around, points, seed=2, reach=1.0)[2:] != found[2:]).any()


def test_a_step_and_a_ramp():
    x = np.array([0.0, AHEAD * SOLE - 0.01, AHEAD * SOLE + 0.01, 1.0])
    found = heights(find_world("step_3cm"), [(x, 0.2) for x in x])
    np.testing.assert_allclose(found, [0.0, 0.0, 0.03, 0.03], atol=1e-9)
    found = heights(find_world("ramp_5deg"), [(x, 0.2) for x in x])
    rise = np.tan(np.radians(5.0)) * np.maximum(x - AHEAD * SOLE, 0.0)
    np.testing.assert_allclose(found, rise, atol=1e-9)


def test_zeros_and_biases_stay_for_a_run():
    zeros = np.radians(0.5)
    noise = Noise(NoiseLevels(position_bias=zeros, force_bias=2.0), 1000, 100, 4)
    assert 0.95 * zeros < np.abs(noise.position_bias).max() <= zeros
    assert noise.wrench_bias[:, :3].std() == pytest.approx(2.0, rel=0.2)
    assert not noise.wrench_bias[:, 3:].any()
    assert walking_noise(100.0).force_bias == pytest.approx(0.3)


def test_a_servo_errs_with_its_encoder():
    """The measured positions go where they are commanded, the true ones do not."""
    noise = NoiseLevels(position_bias=0.02)
    simulation = Simulation(
        build_world(MODEL, CONFIG, base="fixed"), 0.005, noise, seed=2
    )
    for _ in range(100):
        reading = simulation.advance()
    true = reading.position - simulation._noise.position_bias
    assert np.abs(reading.position - POSTURE).max() < 0.003
    assert np.abs(true - POSTURE).max() > 0.01
