"""A floor that tilts: when and where to, and that it carries what stands on it."""

from pathlib import Path

import numpy as np
import pytest

from com_model import RobotConfig, RobotModel
from com_simulation.exceptions import WorldError
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.suspension_rig import ONSET, STAYS, Tilt
from com_simulation.physics.world_builder import build_world

CONFIGS = Path(__file__).resolve().parents[3] / "src" / "robot_descriptions" / "config"


def test_angle_over_time():
    tilt = Tilt(10.0, 5.0, start=1.0, hold=2.0)
    assert tilt.angle(1.0) == 0.0
    assert tilt.angle(1.0 + tilt.duration) == pytest.approx(np.radians(10.0))
    middle = 1.0 + 0.5 * tilt.duration
    speed = (tilt.angle(middle + 0.1) - tilt.angle(middle - 0.1)) / 0.2
    assert speed == pytest.approx(np.radians(5.0))
    assert tilt.duration == pytest.approx(2.0 + ONSET)
    assert tilt.angle(100.0) == pytest.approx(0.0, abs=1e-15)
    assert Tilt(6.0, 6.0, hold=STAYS).angle(1e7) == pytest.approx(np.radians(6.0))
    small = Tilt(0.06, 60.0, start=0.0)
    assert small.angle(small.duration) == pytest.approx(np.radians(0.06))


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"angle_deg": -6.0}, "tilt.angle_deg is -6.0: give a number from 0 to 60"),
        ({"rate_deg_s": 0.0}, "tilt.rate_deg_s is 0.0: give a number from 0.01 to 180"),
        ({"direction_deg": np.nan}, "tilt.direction_deg is nan: give a number from"),
        ({"hold": -1.0}, "tilt.hold is -1.0: give a number from 0"),
    ],
)
def test_tilts_that_cannot_be(numbers, said):
    with pytest.raises(WorldError, match=said):
        Tilt(**({"angle_deg": 6.0, "rate_deg_s": 6.0} | numbers))


@pytest.mark.parametrize(
    ("direction", "rises"),
    [(0.0, (1.0, 0.0)), (0.5 * np.pi, (0.0, 1.0)), (2.5, (-0.8, 0.6))],
)
def test_a_standing_robot_turns_with_it(direction, rises):
    config = RobotConfig.from_file(CONFIGS / "hoap2.yaml")
    robot = RobotModel.from_file(config.urdf)
    world = build_world(robot, config)
    simulation = Simulation(
        world,
        0.01,
        tilt=Tilt(np.degrees(0.05), np.degrees(0.1), np.degrees(direction), 0.3, STAYS),
    )
    for _ in range(150):
        reading = simulation.advance()
    angle = 0.05
    up = -reading.gravity  # root axes; the root was upright but for 0.01 rad
    np.testing.assert_allclose(up[:2], np.sin(angle) * np.array(rises), atol=0.02)
    assert world.mj.geom_quat[0].tolist() == [1.0, 0.0, 0.0, 0.0]
    simulation.reset()
    for _ in range(20):
        reading = simulation.advance()
    assert np.linalg.norm(reading.gravity[:2]) < 0.02


def test_soles_stay_on_a_floor_that_rises():
    config = RobotConfig.from_file(CONFIGS / "itu_biped.yaml")
    robot = RobotModel.from_file(config.urdf)
    simulation = Simulation(
        build_world(robot, config), 0.01, tilt=Tilt(5.0, 5.0, 0.0, 0.3, STAYS)
    )
    loads = []
    for _ in range(200):
        reading = simulation.advance()
        loads.append(reading.wrenches[:, 2].sum())
    weight = robot.mass * 9.81
    assert np.degrees(np.arccos(-reading.gravity[2])) == pytest.approx(5.0, abs=0.5)
    # MuJoCo lost contacts above the level plane: the load was 0 to 4.6 times the weight
    assert 0.4 * weight < min(loads[30:])
    assert max(loads[30:]) < 1.6 * weight
