"""The CoM over the feet: a rod on its sole, and HOAP-2 posture by posture."""

from pathlib import Path

import numpy as np
import pytest

from com_demos.com_workspace import (
    joints_off_the_feet,
    reach_on_feet,
    reach_on_foot,
    sample_postures,
)
from com_model import GeometryError, RobotConfig, RobotModel, Sesc, link_pose
from com_model.dynamics.kinematics import link_pose_batch

CONFIG = (
    Path(__file__).resolve().parents[3] / "src/robot_descriptions/config/hoap2.yaml"
)
ROD = """<robot name="rod"><link name="sole"/>
<joint name="ankle" type="revolute"><parent link="sole"/><child link="rod"/>
  <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="9" velocity="9"/></joint>
<link name="rod"><inertial><origin xyz="0 0 0.5"/><mass value="2"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="reach" type="prismatic"><parent link="rod"/><child link="tip"/>
  <origin xyz="0 0 1"/><axis xyz="0 0 1"/><limit lower="0" upper="0.1" effort="9" velocity="9"/>
</joint><link name="tip"/></robot>"""
CORNERS = [[0.1, 0.05], [0.1, -0.05], [-0.05, -0.05], [-0.05, 0.05]]


@pytest.fixture(scope="module")
def hoap2():
    config = RobotConfig.from_file(CONFIG)
    return RobotModel.from_file(config.urdf), config


@pytest.fixture(scope="module")
def rod():
    config = RobotConfig.from_dict(
        {"name": "rod", "feet": {"sole": {"corners": CORNERS}}}
    )
    return RobotModel.from_urdf(ROD), config.feet[0]


def test_a_rod_over_its_sole(rod):
    """Its tip is above the ground while the ankle is within 90 degrees."""
    reach = reach_on_foot(*rod, 20_000)
    np.testing.assert_allclose(np.linalg.norm(reach.points, axis=1), 0.5, atol=1e-12)
    assert reach.points[:, 2].min() > -0.001
    upright = np.abs(sample_postures(rod[0], 20_000)[:, 0]) < np.pi / 2
    assert len(reach.points) == pytest.approx(upright.sum(), abs=20)
    fraction = (np.arcsin(0.2) + np.arcsin(0.1)) / np.pi
    assert reach.fraction == pytest.approx(fraction, rel=0.05)
    low, high = reach.heights
    assert low == pytest.approx(0.5 * np.sqrt(1 - 0.2**2), abs=1e-3)
    assert high == pytest.approx(0.5, abs=1e-4)
    assert reach.best_margin == pytest.approx(0.05, abs=1e-3)
    beyond = reach.over_edges()
    assert beyond["front"] == pytest.approx(0.4, abs=1e-3)
    assert beyond["back"] == pytest.approx(0.45, abs=1e-3)
    assert beyond["left"] == beyond["right"] == pytest.approx(-0.05)


def test_hoap2_on_one_foot_against_single_poses(hoap2):
    model, config = hoap2
    Q = sample_postures(model, 500, seed=4)
    R, p = link_pose_batch(model, Q, "l_sole")
    expected = []
    for i, q in enumerate(Q):
        R_sole, p_sole = link_pose(model, q, "l_sole")
        np.testing.assert_allclose(R[i], R_sole, atol=1e-12)
        np.testing.assert_allclose(p[i], p_sole, atol=1e-12)
        r_corners = [
            R_sole.T @ (_corner(model, q, c) - p_sole) for c in config.feet[1].corners
        ]
        if min(corner[2] for corner in r_corners) > -0.001:
            expected.append(R_sole.T @ (Sesc(model).com(q) - p_sole))
    reach = reach_on_foot(model, config.feet[0], 500, 4, [config.feet[1]])
    assert 50 < len(reach.points) <= len(expected)
    distance = (
        np.abs(reach.points[:, None] - np.array(expected)).max(axis=2).min(axis=1)
    )
    assert distance.max() < 1e-12


def _corner(model, q, corner):
    R, p = link_pose(model, q, "r_sole")
    return p + R @ [*corner, 0.0]


def test_hoap2_on_both_feet(hoap2):
    model, config = hoap2
    joints = joints_off_the_feet(model, config.feet)
    assert not any("LEG" in joint for joint in joints)
    assert len(joints) == 12
    rest = config.nominal_posture(model)
    reach = reach_on_feet(model, config.feet, rest, 2000)
    assert reach.feet == ("l_sole", "r_sole")
    assert reach.fraction == 1.0
    assert reach.support[:, 1].min() == pytest.approx(-0.109, abs=0.002)
    R, p = link_pose(model, rest, "l_sole")
    nominal = R.T @ (Sesc(model).com(rest) - p)
    assert (
        reach.points.min(axis=0) - 0.003 < nominal
    ).all()  # arms down is a corner of the box
    assert (reach.points.max(axis=0) > nominal).all()


def test_a_sliding_joint_in_a_batch(rod):
    model, _ = rod
    Q = sample_postures(model, 20)
    R, p = link_pose_batch(model, Q, "tip")
    for i, q in enumerate(Q):
        R_one, p_one = link_pose(model, q, "tip")
        np.testing.assert_allclose(R[i], R_one, atol=1e-14)
        np.testing.assert_allclose(p[i], p_one, atol=1e-14)


def test_a_robot_that_never_stands_and_feet_that_are_none(rod):
    model, foot = rod
    far = reach_on_foot(
        RobotModel.from_urdf(ROD.replace('"-3" upper="3"', '"1" upper="1.5"')), foot, 99
    )
    assert far.fraction == 0.0
    assert np.isnan(far.heights).all()
    assert far.best_margin < 0.0
    down = RobotModel.from_urdf(ROD.replace('"-3" upper="3"', '"2" upper="3"'))
    with pytest.raises(
        GeometryError, match="on 'sole' none of 50 postures keeps above the ground"
    ):
        reach_on_foot(down, foot, 50)
    with pytest.raises(GeometryError, match="no feet to stand on: give feet"):
        reach_on_feet(model, [], [0.0, 0.0], 10)
    point = RobotConfig.from_dict(
        {"name": "rod", "feet": {"sole": {"radius": 0.01}}}
    ).feet[0]
    with pytest.raises(GeometryError, match="foot 'sole' has no sole to stand on"):
        reach_on_foot(model, point, 10)
