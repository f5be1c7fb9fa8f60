"""HOAP-2 in the simulator: walks that fall open loop, and stands with the stabiliser."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from shipped_robot import shipped_robot

from com_control.walking.biped import Biped
from com_control.walking.stabiliser import Fault, Stabiliser, ankle_stiffness
from com_control.walking.walk import WalkRequest
from com_control.walking.walker import Walker
from com_demos.walk_record import has_fallen
from com_model.dynamics import GRAVITY
from com_simulation.physics.sensors import NoiseLevels
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

PERIOD = 0.005
REQUEST = WalkRequest(
    steps=3, step_length=0.05, step_time=0.6, double_support=0.2, method="refined"
)
BIAS = 0.003  # rad, of the IMU


@pytest.fixture(scope="module")
def hoap2():
    config, model, posture, _ = shipped_robot("hoap2")
    biped = Biped.from_config(model, config)
    return biped, config, Walker(biped).plan(REQUEST, posture)


def walk(hoap2, contact, fed_back, seconds, zeros=0.0, **world):
    """Plays the walk; returns when it fell (s) or None, and the stabiliser."""
    biped, config, plan = hoap2
    model = biped.model
    start = dict(zip(model.joint_names, plan.path.q[0].tolist(), strict=True))
    world = build_world(model, replace(config, posture=start), contact=contact, **world)
    weight = model.mass * GRAVITY
    noise = NoiseLevels(
        position=2e-4, orientation=5e-4, orientation_bias=BIAS, force=2e-3 * weight
    )
    simulation = Simulation(world, PERIOD, noise, seed=11)
    off = zeros * np.random.default_rng(11).uniform(-1.0, 1.0, model.n_joints)
    stabiliser = Stabiliser(biped, ankle_stiffness(biped, config), PERIOD)
    stabiliser.start(plan.plan, plan.samples, plan.path.q[0])
    lag = world.servos.damping / world.servos.stiffness
    first = last = None
    for k in range(round(seconds / PERIOD)):
        now = simulation.advance()
        first, last = first or now, last or now
        poses = [(turned(x.root_orientation), x.root_position) for x in (first, now)]
        if has_fallen(*poses[0], *poses[1]):
            return k * PERIOD, stabiliser
        t, rate = k * PERIOD, 1.0
        q = plan.path.sample(t + PERIOD)[0]
        if fed_back:  # by what is one period old
            t = stabiliser.phase
            out = stabiliser.update(
                turned(last.imu_orientation),
                last.position + off,
                last.wrenches,
                PERIOD,
                2 * PERIOD,
            )
            q, rate = out.q, out.rate
        simulation.lead(q - off + lag * rate * plan.path.sample(t + PERIOD)[1])
        last = now
    return None, stabiliser


def turned(quaternion):
    return Rotation.from_quat(quaternion).as_matrix()


def test_soft_ground(hoap2):
    fell, _ = walk(hoap2, "soft", False, 6.0)
    assert fell is not None
    fell, stabiliser = walk(hoap2, "soft", True, hoap2[2].duration + 0.5)
    assert fell is None
    assert stabiliser.phase == pytest.approx(hoap2[2].duration)


def test_stiff_ground_with_wrong_joint_zeros(hoap2):
    fell, stabiliser = walk(
        hoap2, "stiff", True, hoap2[2].duration + 0.5, zeros=np.radians(0.5)
    )
    assert fell is None
    assert stabiliser.phase == pytest.approx(hoap2[2].duration)


@pytest.mark.exhaustive
def test_a_trunk_that_is_off_is_found(hoap2):
    """By its wrenches, though the IMU is off by 3 mrad per axis: the offset is of the whole."""
    shift = np.array([0.02, 0.0, 0.0])
    biped = hoap2[0]
    _, plain = walk(hoap2, "stiff", True, 8.0)
    fell, stabiliser = walk(hoap2, "stiff", True, 8.0, trunk_com_offset=shift)
    assert fell is None
    expected = shift[0] * biped.model.bodies.mass[0] / biped.model.mass
    found, sigma = stabiliser.offset
    assert expected > 0.004  # it is worth finding
    assert found[0] - plain.offset[0][0] == pytest.approx(expected, abs=0.0015)
    error = abs(found - [expected, 0.0])
    assert (error < 3.0 * sigma + 2.0 * BIAS * stabiliser.body.height).all()
    assert np.isfinite(sigma).all()
    assert stabiliser.target.estimate[2] > 0.0


@pytest.mark.exhaustive
def test_a_turn_does_not_smear_the_offset(hoap2):
    """It is the trunk's: kept in the axes of the walk it would be 2.5 mm off in this turn."""
    biped, config, _ = hoap2
    request = replace(REQUEST, steps=10, step_length=0.02, turn=0.25)
    turning = biped, config, Walker(biped).plan(request, biped.posture)
    fell, stabiliser = walk(
        turning, "stiff", True, 10.0, trunk_com_offset=np.array([0.02, 0, 0])
    )
    assert fell is None
    heading = stabiliser.target.R_pelvis[:, 0]
    assert np.degrees(np.arctan2(heading[1], heading[0])) > 90.0
    expected = [0.02 * biped.model.bodies.mass[0] / biped.model.mass, 0.0]
    np.testing.assert_allclose(
        stabiliser.offset[0], expected, atol=BIAS * stabiliser.body.height
    )


def test_a_robot_that_lies_is_fallen(hoap2):
    """After an open loop fall on soft ground its measurements say so."""
    biped, config, plan = hoap2
    stabiliser = Stabiliser(biped, ankle_stiffness(biped, config), PERIOD)
    stabiliser.start(plan.plan, plan.samples, plan.path.q[0])
    lying = Rotation.from_rotvec([0.0, 0.6, 0.0]).as_matrix()
    out = stabiliser.update(lying, plan.path.q[0], np.zeros((2, 6)), PERIOD, PERIOD)
    assert out.fault is Fault.FALLEN
    assert out.must_stop
