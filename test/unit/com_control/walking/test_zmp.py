"""The ZMP by the feet's force and torque: forces on known points of the soles are the oracle."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_control.exceptions import BipedError
from com_control.walking.biped import Biped, sole_poses
from com_control.walking.walk_monitor import SoleZmp, set_zmp
from com_model import RobotModel, link_pose


def read(model, foot, q, points, forces):
    """What a foot's sensor reads when forces (k, 3) act on points (k, 3), root link's frame."""
    R, p = link_pose(model, q, foot.wrench_frame)
    force = forces.sum(axis=0)
    torque = np.cross(points - p, forces).sum(axis=0)
    return np.concatenate((R.T @ force, R.T @ torque))


def robot_zmp(meter, wrenches, soles):
    """The robot's ZMP (3,) m by readings of the feet's sensors and the soles' poses."""
    zmp = np.empty(3)
    at_soles = meter.wrenches_at_soles(wrenches)
    set_zmp(at_soles, np.ascontiguousarray(soles), meter.least, zmp)
    return zmp


SENSOR = """<link name="{0}_sensor"/><joint name="{0}_mount" type="fixed"><parent link="{0}_foot"/>
<child link="{0}_sensor"/><origin xyz="0.02 -0.01 0.03" rpy="0.4 -0.7 2.0"/></joint>"""


@pytest.fixture(params=["itu_biped", "itu_biped turned", "hoap2"])
def robot(request, robots):
    """Robots; one has sensors that are tilted and read what the foot does to the ground."""
    biped, oracle = robots(request.param.split()[0])
    if "turned" not in request.param:
        return biped
    sensors = SENSOR.format("l") + SENSOR.format("r")
    model = RobotModel.from_urdf(
        biped.model.xml.replace("</robot>", f"{sensors}</robot>")
    )
    feet = tuple(
        replace(foot, wrench_frame=f"{foot.side[0]}_sensor")
        for foot in oracle.config.feet
    )
    return Biped.from_config(model, replace(oracle.config, feet=feet))


def test_both_feet(robot):
    rng = np.random.default_rng(3)
    q, model = robot.posture, robot.model
    soles = sole_poses(robot, q)
    weight = 9.81 * model.mass
    wrenches, points, vertical = [], [], []
    for leg, sole in zip(robot.legs, soles, strict=True):
        corners = np.column_stack((leg.foot.corners, np.zeros(len(leg.foot.corners))))
        contacts = sole[:, 3] + corners @ sole[:, :3].T
        forces = rng.uniform(-0.05, 0.05, (len(contacts), 3)) * weight
        forces[:, 2] = rng.uniform(0.05, 0.2, len(contacts)) * weight
        wrenches.append(read(model, leg.foot, q, contacts, forces))
        points.append(contacts)
        vertical.append(forces[:, 2])
    load = np.concatenate(vertical)
    expected = load @ np.concatenate(points) / load.sum()
    zmp = robot_zmp(SoleZmp(robot), wrenches, soles)
    np.testing.assert_allclose(zmp, expected, atol=1e-9)
    np.testing.assert_allclose(
        SoleZmp(robot).vertical_forces(wrenches), [v.sum() for v in vertical]
    )


def test_one_foot_by_the_papers_equations(robots):
    biped, _ = robots("itu_biped")
    model, foot = biped.model, biped.legs[0].foot
    _, p = link_pose(model, biped.posture, foot.wrench_frame)
    # the sensor's height over the sole
    d = p[2] - sole_poses(biped, biped.posture)[0, 2, 3]
    force, torque = np.array([12.0, -7.0, 200.0]), np.array([3.0, -5.0, 0.4])
    meter = SoleZmp(biped)
    own = meter.wrenches_at_soles([np.concatenate((force, torque)), np.zeros(6)])
    expected = [
        (-torque[1] - force[0] * d) / force[2],
        (torque[0] - force[1] * d) / force[2],
    ]
    zmp = np.array([-own[0, 4], own[0, 3]]) / own[0, 2]
    np.testing.assert_allclose(zmp, expected, atol=1e-12)
    both = robot_zmp(
        meter,
        [np.concatenate((force, torque)), np.zeros(6)],
        np.tile(np.eye(3, 4), (2, 1, 1)),
    )
    np.testing.assert_allclose(both[:2], expected, atol=1e-12)


def test_no_load_is_no_zmp(robots):
    biped, _ = robots("itu_biped")
    soles = sole_poses(biped, biped.posture)
    assert np.isnan(robot_zmp(SoleZmp(biped), np.zeros((2, 6)), soles)).all()
    assert np.isnan(robot_zmp(SoleZmp(biped), np.full((2, 6), np.nan), soles)).all()


def test_it_does_not_depend_on_where_the_world_is(robots):
    biped, _ = robots("itu_biped")
    rng = np.random.default_rng(4)
    soles = sole_poses(biped, biped.posture)
    wrenches = rng.normal(size=(2, 6))
    wrenches[:, 2] = 150.0
    first = robot_zmp(SoleZmp(biped), wrenches, soles)
    R, p = Rotation.from_euler("z", 0.7).as_matrix(), np.array([3.0, -2.0, 0.5])
    moved = np.concatenate(
        (R @ soles[:, :, :3], (soles[:, :, 3] @ R.T + p)[:, :, None]), axis=2
    )
    np.testing.assert_allclose(
        robot_zmp(SoleZmp(biped), wrenches, moved), R @ first + p, atol=1e-9
    )


def test_a_sensor_that_is_not_on_its_foot_is_refused(robots):
    biped, oracle = robots("itu_biped")
    feet = tuple(replace(foot, wrench_frame="l_shank") for foot in oracle.config.feet)
    other = Biped.from_config(biped.model, replace(oracle.config, feet=feet))
    with pytest.raises(
        BipedError, match="the force sensor 'l_shank' is not fixed to the sole 'l_"
    ):
        SoleZmp(other)
