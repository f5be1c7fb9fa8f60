"""The ball of each leg is the shape on which the simulated robot stands."""

import mujoco
import numpy as np
import pytest

from com_model import ConfigError, quadruped_legs
from com_model.dynamics.kinematics import body_poses
from com_simulation.physics.contacts import lowest_height
from com_simulation.physics.spec import GROUND_BIT
from com_simulation.physics.world_builder import build_world

pytestmark = pytest.mark.slow

QUADRUPEDS = {
    "scalf2": None,
    "anymal": "anymal_b_simple_description/robots/anymal.urdf",
    "anymal_c": "anymal_c_simple_description/urdf/anymal.urdf",
    "a1": "a1_description/urdf/a1.urdf",
    "go1": "go1_description/urdf/go1.urdf",
    "go2": "go2_description/urdf/go2.urdf",
    "b1": "b1_description/urdf/b1.urdf",
    "laikago": "laikago_description/urdf/laikago.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
}
SUNK = 0.001  # m
TOLERANCE = 0.0005  # m


@pytest.fixture(params=QUADRUPEDS, scope="module")
def stand(request, robot_files):
    """A world and its robot's legs."""
    robot, config, path = robot_files(request.param, QUADRUPEDS[request.param])
    return build_world(robot, config, urdf_path=path), quadruped_legs(robot, config)


def data_of(world, q, sunk=0.0):
    data = mujoco.MjData(world.mj)
    data.qpos[:] = world.qpos
    data.qpos[world.joint_qpos] = q
    data.qpos[2] -= sunk
    mujoco.mj_forward(world.mj, data)
    return data


def bottom(world, data, leg):
    """The contact point by com_model: ball center minus radius upwards, in the world."""
    q = data.qpos[world.joint_qpos]
    R, p = body_poses(world.robot.bodies, q, data.xmat[1].reshape(3, 3), data.xpos[1])
    return p[leg.body] + R[leg.body] @ leg.ball - leg.radius * world.normal


def test_it_touches_where_the_ball_is_lowest(stand):
    world, legs = stand
    data = data_of(world, world.posture, SUNK)
    assert (data.contact.geom[:, 0] == 0).all()  # only with the ground
    bodies = world.mj.geom_bodyid[data.contact.geom[:, 1]]
    assert sorted(bodies) == sorted(leg.body + 1 for leg in legs)
    for leg in legs:
        (contact,) = np.flatnonzero(bodies == leg.body + 1)
        point, depth = data.contact.pos[contact], -data.contact.dist[contact]
        assert depth == pytest.approx(SUNK, abs=TOLERANCE)
        # MuJoCo's point is halfway into the ground
        surface = point - 0.5 * depth * world.normal
        np.testing.assert_allclose(bottom(world, data, leg), surface, atol=TOLERANCE)


def test_the_shape_is_the_ball(stand):
    world, legs = stand
    data = data_of(world, world.posture, SUNK)
    for geom in data.contact.geom[:, 1]:
        (leg,) = (leg for leg in legs if leg.body + 1 == world.mj.geom_bodyid[geom])
        assert world.mj.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE
        assert world.mj.geom_size[geom, 0] == pytest.approx(leg.radius, abs=1e-9)
        np.testing.assert_allclose(world.mj.geom_pos[geom], leg.ball, atol=1e-6)


def test_no_other_shape_of_the_leg_is_lower_when_it_moves(stand):
    world, legs = stand
    rng = np.random.default_rng(3)
    solid = np.flatnonzero(world.mj.geom_conaffinity & GROUND_BIT)
    for _ in range(50):
        q = world.posture + rng.uniform(-0.2, 0.2, world.robot.n_joints)
        data = data_of(world, q)
        for leg in legs:
            shapes = solid[world.mj.geom_bodyid[solid] == leg.body + 1]
            lowest = min(
                lowest_height(world.mj, data, world.normal, int(g)) for g in shapes
            )
            assert world.normal @ bottom(world, data, leg) == pytest.approx(
                lowest, abs=TOLERANCE
            )


def test_two_joints_a_leg_are_too_few(robot_files):
    robot, config, _ = robot_files("solo8", "solo_description/robots/solo.urdf")
    expected = (
        r"solo8.yaml: feet.FL_FOOT: its leg has 2 moving joints \(FL_HFE, FL_KFE\); only legs with "
        "3 are supported: hip abduction, hip flexion, knee"
    )
    with pytest.raises(ConfigError, match=expected):
        quadruped_legs(robot, config)
