"""The compiled poses of a few links against com_model's poses of all."""

import numpy as np
import pytest

from com_model import RobotModel, ShapeError, UnknownNameError, link_poses
from com_model.dynamics import link_frames
from com_model.dynamics.link_frames import LinkFrames

TREE = """<robot name="tree"><link name="root"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="a" type="continuous"><parent link="root"/><child link="A"/>
    <origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><axis xyz="1 2 3"/></joint><link name="A"/>
  <joint name="b" type="prismatic"><parent link="A"/><child link="B"/>
    <origin xyz="-0.1 0.2 0.3" rpy="0.4 -0.5 0.6"/><axis xyz="1 -1 0.5"/>
    <limit lower="-9" upper="9" effort="1" velocity="1"/></joint><link name="B"/>
  <joint name="f" type="fixed"><parent link="B"/><child link="F"/>
    <origin xyz="0 0.2 -0.3" rpy="1 2 3"/></joint><link name="F"/>
  <joint name="m" type="revolute"><parent link="F"/><child link="M"/><origin xyz="0.5 0 0"/>
    <axis xyz="0 0 1"/><limit lower="-9" upper="9" effort="1" velocity="1"/>
    <mimic joint="a" multiplier="-2" offset="0.3"/></joint><link name="M"/>
  <joint name="c" type="revolute"><parent link="root"/><child link="C"/><origin xyz="0.5 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-9" upper="9" effort="1" velocity="1"/></joint>
  <link name="C"/></robot>"""


@pytest.fixture(scope="module")
def tree():
    return RobotModel.from_urdf(TREE)


@pytest.mark.parametrize("links", [["F", "M", "root", "C", "M"], ["A"], ["root"], []])
def test_the_same_as_all_poses(tree, links):
    frames = LinkFrames(tree, links)
    index = [tree.link_index(link) for link in links]
    rng = np.random.default_rng(3)
    for q in rng.uniform(-3, 3, size=(20, tree.n_joints)):
        R, p = frames.poses(q)
        R_all, p_all = link_poses(tree, q)
        np.testing.assert_allclose(R, R_all[index], atol=1e-14)
        np.testing.assert_allclose(p, p_all[index], atol=1e-14)


def test_the_kernel_does_what_its_python_says(tree):
    frames, q = LinkFrames(tree, ["M", "C"]), np.array([0.3, -0.2, 0.7])
    R, p = frames.poses(q)
    frames._poses = link_frames.set_link_poses.py_func
    R_python, p_python = frames.poses(q)
    np.testing.assert_allclose(R, R_python, atol=1e-15)
    np.testing.assert_allclose(p, p_python, atol=1e-15)


def test_results_are_fresh(tree):
    frames, q = LinkFrames(tree, ["M"]), np.zeros(3)
    first = frames.poses(q)[1]
    first[:] = 9.0
    assert not (frames.poses(q)[1] == 9.0).any()


def test_wrong_shape_and_unknown_link(tree):
    with pytest.raises(ShapeError, match=r"expected shape \(3,\), got \(2,\)"):
        LinkFrames(tree, ["M"]).poses(np.zeros(2))
    with pytest.raises(
        UnknownNameError, match="no link 'X'; valid: root, A, B, F, M, C"
    ):
        LinkFrames(tree, ["X"])
