"""A quadruped whose numbers can be done in the head; and logs of robots that trot."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

from com_control.trot.parameters import GaitParameters
from com_control.trot.trot import TrotGait
from com_model import RobotConfig, RobotModel

INERTIAL = """<inertial><origin xyz="{com}"/><mass value="{mass}"/>
    <inertia ixx="{i[0]}" iyy="{i[1]}" izz="{i[2]}" ixy="0" ixz="0" iyz="0"/></inertial>"""

LEG = """
  <joint name="{leg}_haa" type="revolute"><parent link="trunk"/><child link="{leg}_hip"/>
    <origin xyz="{x} {y} 0"/><axis xyz="1 0 0"/>
    <limit lower="-3" upper="3" effort="999" velocity="99"/></joint>
  <link name="{leg}_hip">{hip}</link>
  <joint name="{leg}_hfe" type="revolute"><parent link="{leg}_hip"/><child link="{leg}_thigh"/>
    <origin xyz="0 {side} -0.05"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="999" velocity="99"/></joint>
  <link name="{leg}_thigh">{thigh}</link>
  <joint name="{leg}_kfe" type="revolute"><parent link="{leg}_thigh"/><child link="{leg}_shank"/>
    <origin xyz="0 0 -0.4"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="999" velocity="99"/></joint>
  <link name="{leg}_shank">{shank}</link>
  <joint name="{leg}_end" type="fixed"><parent link="{leg}_shank"/><child link="{leg}_foot"/>
    <origin xyz="0 0 -0.4"/></joint>
  <link name="{leg}_foot"/>
"""

LEGS = {
    "right_hind": (-0.5, -0.3),
    "left_front": (0.5, 0.3),
    "left_hind": (-0.5, 0.3),
    "right_front": (0.5, -0.3),
}


def _inertial(mass, com, inertia):
    return INERTIAL.format(mass=mass, com=com, i=inertia) if mass else ""


def quadruped_urdf(leg_mass=0.0, trunk_com="0 0 0"):
    """100 kg trunk, 1 m x 0.6 m between the hips; legs with thigh and shank of 0.4 m.

    The legs' order in the file is not that of the results. The IMU sits at (0.1, 0.05, 0.02) m,
    turned by 90 degrees about z.
    """
    legs = "".join(
        LEG.format(
            leg=leg,
            x=x,
            y=y,
            side=0.05 * np.sign(y),
            hip=_inertial(0.2 * leg_mass, "0 0 0", [0.01 * leg_mass] * 3),
            thigh=_inertial(0.5 * leg_mass, "0.01 0 -0.15", [0.02 * leg_mass] * 3),
            shank=_inertial(0.3 * leg_mass, "0 0.01 -0.18", [0.01 * leg_mass] * 3),
        )
        for leg, (x, y) in LEGS.items()
    )
    return (
        '<robot name="quadruped"><link name="trunk">'
        + _inertial(100.0, trunk_com, [4.0, 9.0, 11.0])
        + "</link>"
        + legs
        + """<joint name="imu_mount" type="fixed"><parent link="trunk"/><child link="imu_link"/>
          <origin xyz="0.1 0.05 0.02" rpy="0 0 1.5707963267948966"/></joint>
          <link name="imu_link"/></robot>"""
    )


def quadruped_config(radius=0.03):
    """Point feet of 3 cm, knees bent."""
    feet = {
        f"{leg}_foot": {
            "side": leg.split("_")[0],
            "end": leg.split("_")[1],
            "radius": radius,
        }
        for leg in LEGS
    }
    posture = {f"{leg}_hfe": 0.6 for leg in LEGS} | {f"{leg}_kfe": -1.2 for leg in LEGS}
    return RobotConfig.from_dict(
        {
            "name": "quadruped",
            "feet": feet,
            "imu": {"link": "imu_link"},
            "posture": posture,
        }
    )


@pytest.fixture(scope="session")
def light_quadruped():
    """Model and configuration; legs without mass."""
    return RobotModel.from_urdf(quadruped_urdf()), quadruped_config()


@pytest.fixture(scope="session")
def pointed_quadruped():
    """Model and configuration; legs without mass, feet without radius."""
    return RobotModel.from_urdf(quadruped_urdf()), quadruped_config(radius=0.0)


@pytest.fixture(scope="session")
def heavy_quadruped():
    """Model and configuration; legs of 8 kg."""
    return RobotModel.from_urdf(quadruped_urdf(leg_mass=8.0)), quadruped_config()


@pytest.fixture(scope="session")
def lab():
    """The laboratory of trotting robots."""
    return importlib.import_module("trot_lab")


@pytest.fixture(scope="session")
def trot_log(lab):
    """SCALF-II with its trunk's CoM 10 cm to the left, 4.5 s of trot with noise."""
    return lab.run_trot(
        lab.TrotRun("scalf2", offset=(-0.03, 0.10, 0.0), seconds=4.5, seed=11)
    )


@pytest.fixture(scope="session")
def rubbing_log(lab):
    """SCALF-II whose joints rub with 20 N m each, 5 s of trot with noise."""
    run = lab.TrotRun(
        "scalf2", offset=(-0.03, 0.10, 0.0), seconds=5.0, seed=16, friction=20.0
    )
    return lab.run_trot(run)


@pytest.fixture(scope="session")
def small_log(lab):
    """ANYmal, 2 s of trot with noise."""
    return lab.run_trot(
        lab.TrotRun("anymal", offset=(-0.02, 0.015, 0.0), seconds=2.0, seed=13)
    )


@pytest.fixture(scope="session")
def payload_log(lab):
    """SCALF-II with 20 kg that fall on a corner at 4.5 s."""
    payload = (20.0, (0.4, 0.25, 0.1), 4.5)
    run = lab.TrotRun(
        "scalf2", offset=(-0.03, 0.03, 0.0), payload=payload, seconds=7.5, seed=12
    )
    return lab.run_trot(run)


@pytest.fixture(scope="session")
def small_payload_log(lab):
    """Likewise with 3 kg, 1 % of the trunk."""
    payload = (3.0, (0.55, 0.2, 0.1), 4.5)
    run = lab.TrotRun(
        "scalf2", offset=(-0.03, 0.03, 0.0), payload=payload, seconds=7.5, seed=15
    )
    return lab.run_trot(run)


class LiftedLeg:
    """Stands; from 1.3 s to 2.7 s the right front leg is bent, as by a hand."""

    def __init__(self, model, config, parameters):
        self.gait = TrotGait(model, config, GaitParameters(start_delay=100.0))
        self.joints = [model.joint_names.index(f"rf_{j}_joint") for j in ("hfe", "kfe")]

    def step(self, time, *rest):
        target = self.gait.step(time, *rest)
        position, velocity = target.position.copy(), target.velocity.copy()
        bend, rate = self.bend(time)
        position[self.joints] += bend * np.array([-0.3, 0.6])
        velocity[self.joints] += rate * np.array([-0.3, 0.6])
        return replace(target, position=position, velocity=velocity)

    def bend(self, time):
        """Fraction of the bend, from 0 to 1 and back, and its rate, 1/s."""
        down = 2.7 - time < time - 1.3
        s = np.clip((2.7 - time if down else time - 1.3) / 0.2, 0.0, 1.0)
        rate = 6.0 * s * (1.0 - s) / 0.2
        return s**2 * (3.0 - 2.0 * s), -rate if down else rate


@pytest.fixture(scope="session")
def standing_log(lab):
    """SCALF-II that stands for 3.4 s, with a foot in the air from 1.4 s to 2.6 s."""
    run = lab.TrotRun("scalf2", offset=(-0.03, 0.10, 0.0), seconds=3.4, seed=14)
    return lab.run_trot(run, make_gait=LiftedLeg)
