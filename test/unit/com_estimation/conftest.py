"""A small walking robot whose numbers can be done in the head."""

import pytest

from com_model import RobotModel

FOOT = """
  <joint name="{side}_hip" type="revolute"><parent link="base"/><child link="{side}_leg"/>
    <origin xyz="0 {y} 0"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="9" velocity="9"/>
  </joint>
  <link name="{side}_leg"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{side}_knee" type="prismatic"><parent link="{side}_leg"/><child link="{side}_shin"/>
    <origin xyz="0 0 -1"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="9" velocity="9"/>
  </joint>
  <link name="{side}_shin"/>
  <joint name="{side}_ankle" type="revolute"><parent link="{side}_shin"/><child link="{side}_sole"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="9" velocity="9"/></joint>
  <link name="{side}_sole"/>
"""

WALKER = (
    """<robot name="walker"><link name="base"><inertial><origin xyz="0.1 0 0.5"/>
    <mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
    + FOOT.format(side="l", y=0.1)
    + FOOT.format(side="r", y=-0.1)
    + """<joint name="imu_mount" type="fixed"><parent link="base"/><child link="imu_link"/>
      <origin rpy="3.141592653589793 0 0"/></joint><link name="imu_link"/></robot>"""
)


@pytest.fixture(scope="session")
def walker():
    """2 kg trunk with its CoM at (0.1, 0, 0.5); two 1 kg legs, 1 m, with CoMs at half length.

    Joints: l_hip, l_knee (slides up), l_ankle, r_hip, r_knee, r_ankle; soles at y = +-0.1 m,
    z = -1 m; the IMU is mounted upside down (turned by 180 degrees about x).
    """
    return RobotModel.from_urdf(WALKER)
