"""A small walking robot whose numbers can be done in the head."""

LEG = """
  <joint name="{s}_hip" type="revolute"><parent link="base_link"/><child link="{s}_leg"/>
    <origin xyz="0 {y} 0"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="9" velocity="9"/>
  </joint>
  <link name="{s}_leg"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{s}_knee" type="prismatic"><parent link="{s}_leg"/><child link="{s}_{shin}"/>
    <origin xyz="0 0 -1"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="9" velocity="9"/>
  </joint>
  <link name="{s}_{shin}"/>
"""
ANKLE = """
  <joint name="{s}_ankle" type="revolute"><parent link="{s}_shin"/><child link="{s}_sole"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="9" velocity="9"/></joint>
  <link name="{s}_sole"/>
"""


def walker_urdf(
    name: str = "walker",
    trunk_mass: float = 2.0,
    root: str = "base_link",
    ankles: bool = False,
) -> str:
    """A trunk with its CoM at (0.1, 0, 0.5) and two legs of 1 kg, 1 m, at y = +-0.1 m.

    Joints: l_hip, l_knee (slides up), with ankles l_ankle, and those of r. At zero and 2 kg of
    trunk the CoM is at (0.05, 0, 0), the soles at z = -1 m. imu_link is turned by 180 degrees
    about x.
    """
    leg = LEG + ANKLE if ankles else LEG
    shin = "shin" if ankles else "sole"
    legs = leg.format(s="l", y=0.1, shin=shin) + leg.format(s="r", y=-0.1, shin=shin)
    return f"""<robot name="{name}"><link name="base_link"><inertial><origin xyz="0.1 0 0.5"/>
      <mass value="{trunk_mass}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
      </inertial></link>{legs}
      <joint name="mount" type="fixed"><parent link="base_link"/><child link="imu_link"/>
      <origin rpy="3.141592653589793 0 0"/></joint><link name="imu_link"/></robot>""".replace(
        "base_link", root
    )
