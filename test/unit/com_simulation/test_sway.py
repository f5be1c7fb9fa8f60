"""The swaying motion: feet in place, CoM inside the support polygon, limits kept."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_model import RobotConfig, RobotModel, SupportPolygon, link_poses
from com_model.geometry.support import sole_points
from com_simulation.exceptions import SwayError
from com_simulation.physics.motion import Trajectory
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.sway import plan_sway
from com_simulation.physics.world_builder import build_world

pytestmark = pytest.mark.slow

STANDING = [
    ("hoap2", None),
    ("talos", "talos_data/robots/talos_reduced.urdf"),
    ("anymal", "anymal_b_simple_description/robots/anymal.urdf"),
    ("solo8", "solo_description/robots/solo.urdf"),
]


@pytest.fixture(scope="module", params=STANDING, ids=[name for name, _ in STANDING])
def planned(request, robot_files):
    robot, config, path = robot_files(*request.param)
    return robot, config, path, plan_sway(robot, config, True, 0.1, 6.0)


def feet_at(robot, config, q):
    """Orientations and positions of the soles, or of the balls' centers, in the root's frame."""
    R, p = link_poses(robot, q)
    links = [robot.link_index(foot.frame) for foot in config.feet]
    centers = np.array([foot.center for foot in config.feet])
    return R[links], p[links] + np.einsum("fij,fj->fi", R[links], centers)


def times(sway):
    return np.linspace(0.0, 3.0 * sway.period, 150)


def test_it_starts_at_rest_in_the_nominal_posture_and_repeats(planned):
    robot, config, _, sway = planned
    q, qd = sway.sample(0.0)
    np.testing.assert_allclose(q, config.nominal_posture(robot), atol=1e-9)
    np.testing.assert_allclose(qd, 0.0, atol=1e-9)
    for t in (6.1, 8.0, 11.9):
        np.testing.assert_allclose(
            sway.sample(t)[0], sway.sample(t + 6.0)[0], atol=1e-12
        )
        np.testing.assert_allclose(
            sway.sample(t)[1], sway.sample(t + 6.0)[1], atol=1e-12
        )


def test_velocities_are_derivatives_and_nothing_jumps(planned):
    *_, sway = planned
    h = 1e-5
    for t in [*times(sway)[1:], 6.0, 12.0]:
        slope = (sway.sample(t + h)[0] - sway.sample(t - h)[0]) / (2 * h)
        np.testing.assert_allclose(sway.sample(t)[1], slope, atol=1e-3)


def test_limits_are_kept(planned):
    robot, *_, sway = planned
    q, qd = map(np.array, zip(*(sway.sample(t) for t in times(sway)), strict=True))
    assert (q >= robot.lower - 1e-6).all()
    assert (q <= robot.upper + 1e-6).all()
    assert (np.abs(qd) <= 0.5 * robot.velocity_limits + 1e-6).all()
    assert np.ptp(q, axis=0).max() > 0.05


def test_feet_stay_where_they_are_to_each_other(planned):
    robot, config, _, sway = planned
    p0 = feet_at(robot, config, sway.posture)[1]
    expected = np.linalg.norm(p0[:, None] - p0, axis=2)
    for t in times(sway):
        p = feet_at(robot, config, sway.sample(t)[0])[1]
        np.testing.assert_allclose(
            np.linalg.norm(p[:, None] - p, axis=2), expected, atol=3e-4
        )


def test_com_stays_inside_with_half_of_the_margin(planned):
    """By the soles in the root's frame of each instant: no use is made of how the root moves."""
    robot, config, _, sway = planned

    def margin(q):
        poses = zip(*feet_at(robot, config, q), config.feet, strict=True)
        contacts = np.concatenate(
            [sole_points(*pose, foot.corners) for *pose, foot in poses]
        )
        normal = np.linalg.svd(contacts - contacts.mean(axis=0))[2][2]
        R, p = link_poses(robot, q)
        com = (
            robot.link_masses
            @ (p + np.einsum("lij,lj->li", R, robot.link_coms))
            / robot.mass
        )
        return SupportPolygon.from_points(contacts, normal * np.sign(normal[2])).margin(
            com
        )

    at_rest = margin(sway.posture)
    margins = [margin(sway.sample(t)[0]) for t in times(sway)]
    assert min(margins) >= 0.5 * at_rest - 1e-4
    assert min(margins) == pytest.approx(sway.margin, abs=2e-3)


def test_it_stands_in_the_simulation(planned):
    robot, config, path, sway = planned
    simulation = Simulation(build_world(robot, config, urdf_path=path), 0.05)
    grid = np.arange(0.1, 18.0, 0.1)
    q, qd = map(np.array, zip(*(sway.sample(t) for t in grid), strict=True))
    simulation.follow(Trajectory(np.arange(robot.n_joints), grid, q, qd))
    for _ in range(360):
        reading = simulation.advance()
        assert -reading.gravity[2] > 0.99
        if reading.time > 0.5:
            assert (np.linalg.norm(reading.wrenches[:, :3], axis=1) > 0.5).all()
    tilt = Rotation.from_quat(reading.root_orientation).magnitude()
    assert tilt < 0.15


def test_a_hanging_robot_moves_every_joint_within_its_limits(arm):
    sway = plan_sway(arm, None, False, 0.2, 4.0)
    q = np.array([sway.sample(t)[0] for t in np.linspace(0.0, 12.0, 200)])
    assert (q >= arm.lower - 1e-9).all()
    assert (q <= arm.upper + 1e-9).all()
    np.testing.assert_allclose(np.ptp(q[70:], axis=0), [0.4, 0.08], rtol=0.05)
    assert np.isnan(sway.margin)


def test_too_much_shrinks(robot_files):
    robot, config, _ = robot_files("hoap2")
    sway = plan_sway(robot, config, True, 0.8, 8.0)
    assert 0.08 <= sway.amplitude < 0.8
    assert sway.margin > 0.02


def test_refused_when_the_com_is_outside(robot_files):
    robot, config, _ = robot_files("hoap2")
    ahead = np.array([0.2, 0.0])
    feet = tuple(replace(foot, corners=foot.corners + ahead) for foot in config.feet)
    with pytest.raises(
        SwayError, match=r"CoM is \d+ mm outside the support polygon: correct"
    ):
        plan_sway(robot, replace(config, feet=feet), True, 0.1, 8.0)


def test_refused_when_a_joint_would_be_too_fast(robot_files):
    robot, config, _ = robot_files("hoap2")
    slow = replace(robot, velocity_limits=np.full(robot.n_joints, 1e-4))
    with pytest.raises(
        SwayError, match=r"cannot sway by 0.1 rad in 8 s .* velocity limit"
    ):
        plan_sway(slow, config, True, 0.1, 8.0)


def test_feet_without_a_polygon_cannot_sway():
    robot = RobotModel.from_urdf(
        '<robot name="stilt"><link name="base"><inertial><mass value="1"/></inertial></link>'
        '<joint name="j" type="revolute"><parent link="base"/><child link="foot"/>'
        '<origin xyz="0.1 0 -0.5"/><axis xyz="0 1 0"/>'
        '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint><link name="foot"/></robot>'
    )
    config = RobotConfig.from_dict({"name": "stilt", "feet": {"foot": {}}})
    with pytest.raises(SwayError, match="100 mm outside the support polygon"):
        plan_sway(robot, config, True, 0.1, 8.0)
