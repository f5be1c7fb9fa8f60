"""What is read of a URDF, and all that is left aside on the way."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from urdf_parser_py.urdf import URDF

from com_model.geometry.rotations import rotation_from_rpy
from com_model.urdf.parsing import parse_urdf

MESSY = """<?xml version="1.0"?>
<!DOCTYPE robot>
<robot name="messy" version="1.2" xmlns:xacro="http://www.ros.org/wiki/xacro" made_by="cad">
  <!-- everything here is met in real files -->
  <material name="nothing"/>
  <xacro:property name="x" value="1"/>
  <link name="base" type="strange">
    <visual name="v"><geometry><box/><teapot size="not a number"/></geometry></visual>
    <collision><origin xyz="nan nan"/></collision>
    <contact><friction value="high"/></contact>
    <inertial>
      <origin rpy="0 0 0" xyz="  1e-1   -.5	+2. "/>
      <mass value=" 2.5 "/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1" unit="kg"/>
      <note>weighed</note>
    </inertial>
    <joint name="not_here" type="warp"/>
  </link>
  <joint type="revolute" name="j">
    <dynamics damping="a lot"/>
    <safety_controller/>
    <child link="arm"/>
    <parent link="base"/>
    <limit velocity="7" current="8"/>
    <calibration rising="x"/>
    <hardware><link name="inner"/></hardware>
  </joint>
  <link name="arm"/>
  <transmission name="t"><type>no actuator</type><joint name="j"/></transmission>
  <ros2_control><joint name="j" type="x"/></ros2_control>
  <gazebo><plugin><robot><link name="a"/></robot></plugin></gazebo>
</robot>
"""

ROBOTS = Path(__file__).parents[3] / "src" / "robot_descriptions"
DEFEATING = [  # whole, these are too much for urdf_parser_py: what breaks it is left out
    "icub_description/robots/icub.urdf",
    "icub_description/robots/icub_reduced.urdf",
    "pr2_description/urdf/pr2.urdf",
    "romeo_description/urdf/romeo_laas_small.urdf",
]


def test_odd_visuals_transmissions_and_vendor_tags_are_left_aside(capfd):
    urdf = parse_urdf(MESSY)
    assert urdf.name == "messy"
    assert [link.name for link in urdf.links] == ["base", "arm"]
    base, arm = urdf.links
    assert (base.mass, base.com.tolist()) == (2.5, [0.1, -0.5, 2.0])
    assert base.has_inertial
    assert base.inertia.tolist() == np.eye(3).tolist()
    assert (arm.mass, arm.has_inertial, arm.inertia.tolist()) == (
        0.0,
        False,
        [[0] * 3] * 3,
    )
    (joint,) = urdf.joints
    assert (joint.name, joint.kind, joint.parent, joint.child) == (
        "j",
        "revolute",
        "base",
        "arm",
    )
    assert (joint.lower, joint.upper) == (-math.inf, math.inf)
    assert (joint.velocity, joint.effort) == (7.0, math.inf)
    assert joint.axis.tolist() == [1, 0, 0]
    assert joint.element == "joint 'j' (line 19)"
    assert urdf.text == MESSY
    assert capfd.readouterr() == ("", "")


def test_a_whole_urdf_is_read_as_urdf_parser_py_reads_it(capfd):
    data = (ROBOTS / "urdf" / "hoap2.urdf").read_bytes()
    ours, theirs = parse_urdf(data), URDF.from_xml_string(data)
    capfd.readouterr()
    assert ours.name == theirs.name
    assert {link.name: link.mass for link in ours.links} == {
        link.name: link.inertial.mass if link.inertial else 0.0 for link in theirs.links
    }
    for joint, other in zip(ours.joints, theirs.joints, strict=True):
        assert (joint.name, joint.kind) == (other.name, other.type)
        assert (joint.parent, joint.child) == (other.parent, other.child)
        assert joint.d.tolist() == other.origin.xyz
        if other.limit is not None and joint.kind == "revolute":
            limit = other.limit
            assert (joint.lower, joint.upper) == (limit.lower, limit.upper)
            assert (joint.velocity, joint.effort) == (limit.velocity, limit.effort)


QUATERNION = """<robot name="q"><link name="a"/><link name="b"/><joint name="j" type="fixed">
<origin quat_xyzw="{}"/><parent link="a"/><child link="b"/></joint></robot>"""


@pytest.mark.parametrize("pitch", [0.3, np.pi / 2, np.pi / 2 - 1e-9, -np.pi / 2 + 1e-7])
def test_a_quaternion_is_read_to_rounding_at_any_pitch(pitch):
    rotation = Rotation.from_euler("ZYX", [0.7, pitch, -2.1])
    words = " ".join(map(repr, rotation.as_quat().tolist()))
    (joint,) = parse_urdf(QUATERNION.format(words)).joints
    np.testing.assert_allclose(joint.R, rotation.as_matrix(), rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", DEFEATING)
def test_real_files_that_defeat_parsers_of_whole_urdfs(name, example_urdfs, capfd):
    assert len(parse_urdf(example_urdfs[name].read_bytes()).links) > 30
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "rpy", [(0.3, -0.8, 2.0), (1.5707963267948966, 0, -3), (1e-9, 4, 5)]
)
def test_roll_pitch_and_yaw_turn_about_fixed_axes(rpy):
    roll, pitch, yaw = (
        Rotation.from_euler(a, v) for a, v in zip("xyz", rpy, strict=True)
    )
    np.testing.assert_allclose(
        rotation_from_rpy(rpy), (yaw * pitch * roll).as_matrix(), atol=1e-15
    )


def test_no_rotation_is_exactly_none():
    np.testing.assert_array_equal(rotation_from_rpy((0, 0, 0)), np.eye(3))
