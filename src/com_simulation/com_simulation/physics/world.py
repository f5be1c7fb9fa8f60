"""A robot on the ground as a MuJoCo model, with all that the sensors and servos need to know."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from com_model import Foot, RobotModel
from com_model.arrays import Array
from com_simulation.physics.servo import Servos

BASES = ("auto", "floating", "fixed")
DEFAULT_STEP = 0.001  # s
# "auto" is stable with stiff servos on light joints at the default step. "euler" needs a step of
# about 0.0001 s for that, but its forces, accelerations and velocity changes are consistent: Newton
# holds between the readings to rounding.
INTEGRATORS = ("auto", "euler")


@dataclass(frozen=True, eq=False)
class World:
    """A robot on the ground, ready to be simulated.

    Attributes:
        robot: The model that it was made from.
        mj: The MuJoCo model; body b of the robot is number b + 1.
        floating: The root is free; else it is fixed to the world.
        posture: (n,) nominal joint positions, rad or m.
        qpos: (nq,) MuJoCo's positions at the start.
        joint_qpos: (n,) where the positions of the n independent joints stand in qpos.
        joint_dof: (n,) where their velocities stand in qvel.
        servos: The servos, in the order of the joints.
        feet: The feet, with their sensors.
        imu_link: The link whose frame the IMU measures in.
        normal: (3,) of the ground, world axes.
        notes: One line each on what was left out of the URDF or added to it.
    """

    robot: RobotModel
    mj: mujoco.MjModel
    floating: bool
    posture: Array
    qpos: Array
    joint_qpos: NDArray[np.int64]
    joint_dof: NDArray[np.int64]
    servos: Servos
    feet: tuple[Foot, ...]
    imu_link: str
    normal: Array
    notes: tuple[str, ...]
