"""Robots that the tests of the simulation share."""

from importlib.metadata import distribution
from pathlib import Path

import pytest

from com_model import RobotConfig, RobotModel
from com_simulation.physics.world_builder import World, build_world

CONFIGS = Path(__file__).resolve().parents[3] / "src" / "robot_descriptions" / "config"
EXAMPLES = "cmeel.prefix/share/example-robot-data/robots"

ARM = """<robot name="arm">
  <link name="base"><inertial><mass value="2"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.1"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="50" velocity="2"/></joint>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
    <inertia ixx="0.001" iyy="0.003" izz="0.003" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0.2 0 0" rpy="0 1.5707963 0"/>
      <geometry><cylinder radius="0.03" length="0.4"/></geometry></collision></link>
  <joint name="slide" type="prismatic"><parent link="upper"/><child link="hand"/>
    <origin xyz="0.4 0 0"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="0.2" effort="20" velocity="1"/></joint>
  <link name="hand"><inertial><mass value="0.5"/>
    <inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="finger" type="prismatic"><parent link="hand"/><child link="tip"/>
    <origin xyz="0.1 0 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>
    <mimic joint="slide" multiplier="-0.5" offset="0.02"/></joint>
  <link name="tip"/>
</robot>"""


def example_path(urdf: str) -> Path:
    """A URDF of example-robot-data, by its path below robots/."""
    return Path(
        str(distribution("example-robot-data").locate_file(f"{EXAMPLES}/{urdf}"))
    )


@pytest.fixture(scope="session")
def arm() -> RobotModel:
    """Two joints, a mimic joint with a massless link at its end."""
    return RobotModel.from_urdf(ARM)


@pytest.fixture(scope="session")
def robot_files():
    """robot_files(config, urdf): (model, configuration, path); without urdf the config's own."""

    def load(
        name: str, urdf: str | None = None
    ) -> tuple[RobotModel, RobotConfig, Path]:
        config = RobotConfig.from_file(CONFIGS / f"{name}.yaml")
        path = example_path(urdf) if urdf else config.urdf
        return RobotModel.from_file(path), config, path

    return load


@pytest.fixture(scope="session")
def hoap2(robot_files) -> World:
    """HOAP-2 standing; tests do not change it."""
    model, config, path = robot_files("hoap2")
    return build_world(model, config, urdf_path=path)


@pytest.fixture(scope="session")
def examples() -> dict[str, Path]:
    """All URDFs of example-robot-data."""
    root = example_path("")
    return {str(path.relative_to(root)): path for path in sorted(root.rglob("*.urdf"))}
