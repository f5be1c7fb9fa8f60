"""Gains that hold a robot, and those of its configuration."""

import numpy as np
import pytest

from com_model import RobotConfig, RobotModel
from com_model.dynamics import GRAVITY
from com_simulation.physics.servo import NATURAL_FREQUENCY, SAG
from com_simulation.physics.world_builder import build_world


def pendulum(effort=100.0, mass=2.0, length=0.5, inertia=0.1):
    return RobotModel.from_urdf(
        f'<robot name="p"><link name="base"/><joint name="j" type="revolute"><parent link="base"/>'
        f'<child link="rod"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="{effort}" '
        f'velocity="1"/></joint><link name="rod"><inertial><origin xyz="{length} 0 0"/>'
        f'<mass value="{mass}"/><inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" '
        f'ixz="0" iyz="0"/></inertial></link></robot>'
    )


def test_default_gains_follow_from_inertia_and_weight():
    servos = build_world(pendulum()).servos
    inertia, moment = 0.1 + 2.0 * 0.5**2, 2.0 * GRAVITY * 0.5
    assert servos.stiffness[0] == pytest.approx(
        max(NATURAL_FREQUENCY**2 * inertia, moment / SAG)
    )
    assert servos.damping[0] == pytest.approx(
        2.0 * np.sqrt(servos.stiffness[0] * inertia)
    )
    assert servos.effort[0] == 100.0
    heavy = build_world(pendulum(inertia=10.0)).servos
    assert heavy.stiffness[0] == pytest.approx(NATURAL_FREQUENCY**2 * 10.5)


@pytest.mark.parametrize("effort", [0.0, 9.0])
def test_an_effort_limit_that_cannot_carry_the_posture_does_not_count(effort):
    world = build_world(pendulum(effort=effort))  # 9.81 N m hang on the joint
    assert np.isinf(world.servos.effort[0])
    assert world.notes == ("effort limits that cannot carry the posture, ignored: j",)


def test_the_configuration_has_the_last_word():
    config = RobotConfig.from_dict(
        {
            "name": "p",
            "servo": {
                "default": {"stiffness": 50.0, "effort": 5.0},
                "joints": {"j": {"armature": 0.3}},
            },
        }
    )
    default = build_world(pendulum()).servos
    world = build_world(pendulum(effort=0.0), config)
    assert world.servos.stiffness[0] == 50.0
    assert world.servos.effort[0] == 5.0
    assert world.servos.armature[0] == 0.3
    assert world.servos.damping[0] == default.damping[0]
    assert world.notes == ()
    mj = world.mj
    assert mj.dof_armature[0] == 0.3
    np.testing.assert_allclose(
        mj.actuator_biasprm[0, :3], [0.0, -50.0, -default.damping[0]]
    )
    np.testing.assert_allclose(mj.actuator_forcerange[0], [-5.0, 5.0])


def test_legs_carry_the_robot_not_only_themselves(robot_files):
    robot, config, path = robot_files(
        "anymal", "anymal_b_simple_description/robots/anymal.urdf"
    )
    bare = RobotConfig.from_dict(
        {
            "name": "anymal",
            "feet": {f.frame: {} for f in config.feet},
            "posture": dict(config.posture),
        }
    )
    hanging = build_world(robot, bare, base="fixed", urdf_path=path).servos
    standing = build_world(robot, bare, urdf_path=path)
    knee = robot.joint_index("LF_KFE")
    assert standing.servos.stiffness[knee] > 10.0 * hanging.stiffness[knee]
    assert (
        not standing.notes
    )  # a foot carries a quarter: the limits of the URDF are enough
