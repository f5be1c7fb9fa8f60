"""What the robot's sensors read, and the truth that no robot has: its CoM and its pose."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from com_model.arrays import Array
from com_model.wrenches import wrench_signs
from com_simulation.physics.contacts import body_of_foot
from com_simulation.physics.trunk import ROOT, Trunk, read_trunk
from com_simulation.physics.world import World

_XYZW = [1, 2, 3, 0]  # MuJoCo's quaternions are w, x, y, z


@dataclass(frozen=True, eq=False)
class Reading:
    """Everything at one instant. Quaternions are x, y, z, w.

    Attributes:
        time: s, of the simulation.
        position: (n,) rad or m.
        velocity: (n,) rad/s or m/s.
        effort: (n,) N m or N, that the servos give.
        wrenches: (f, 6) N and N m, force and torque of the ground on each foot, or the opposite
            where its sign is -1; axes and origin of the foot's wrench frame.
        imu_orientation: (4,) of the IMU's link in the world.
        angular_velocity: (3,) rad/s, of the IMU's link, in its axes.
        specific_force: (3,) m/s^2, acceleration of the IMU's link minus gravity, in its axes.
        com: (3,) m, the true centre of mass in the root link's frame.
        com_velocity: (3,) m/s, relative to the root link, in its axes.
        gravity: (3,) unit vector downwards, in the root link's axes.
        root_position: (3,) m, of the root link in the world.
        root_orientation: (4,) of the root link in the world.
        foot_forces: (f, 3) N, the true force of the ground on each foot, root link's axes.
        mass: kg, of the robot with its payload.
        trunk_mass: kg, of the root body with its payload.
        trunk_com: (3,) m, its centre of mass in the root link's frame.
        trunk_inertia: (3, 3) kg m^2, about that, root link's axes.
    """

    time: float
    position: Array
    velocity: Array
    effort: Array
    wrenches: Array
    imu_orientation: Array
    angular_velocity: Array
    specific_force: Array
    com: Array
    com_velocity: Array
    gravity: Array
    root_position: Array
    root_orientation: Array
    foot_forces: Array
    mass: float
    trunk_mass: float
    trunk_com: Array
    trunk_inertia: Array


class Sensors:
    """Reads MuJoCo's data.

    MuJoCo computes forces, accelerations and the CoM at the start of a step, then moves on. So the
    caller keeps time, qpos and qvel from before a step and asks after it: everything is of the
    same instant, and nothing is computed twice.
    """

    def __init__(self, world: World, mj: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._world, self._data = world, data
        self._imu = world.mj.site("imu").id
        self._feet = [
            (body_of_foot(world.robot, foot), world.mj.site(f"wrench{i}").id)
            for i, foot in enumerate(world.feet)
        ]
        self._signs = wrench_signs(world.feet)
        self._foot_bodies = [body for body, _ in self._feet]
        self.weigh(mj)

    def weigh(self, mj: mujoco.MjModel) -> None:
        """Looks up masses, which a payload changes."""
        self._mass = float(mj.body_subtreemass[ROOT])
        self._trunk: Trunk = read_trunk(mj)

    def read(self, time: float, qpos: Array, qvel: Array) -> Reading:
        """Reads all sensors after a step that began at `time` with qpos and qvel."""
        world, data = self._world, self._data
        R_world_root, root = data.xmat[ROOT].reshape(3, 3), data.xpos[ROOT].copy()
        accelerometer, gyro, com_velocity = data.sensordata.copy().reshape(3, 3)
        com = (data.subtree_com[ROOT] - root) @ R_world_root
        relative = com_velocity @ R_world_root
        if world.floating:  # qvel: linear velocity in world axes, angular velocity in the root's
            relative = relative - qvel[:3] @ R_world_root - _cross(qvel[3:6], com)
        imu = np.empty(4)
        mujoco.mju_mat2Quat(imu, data.site_xmat[self._imu])
        return Reading(
            time=time,
            position=qpos[world.joint_qpos],
            velocity=qvel[world.joint_dof],
            effort=data.qfrc_actuator[world.joint_dof],
            wrenches=self._wrenches(),
            imu_orientation=imu[_XYZW],
            angular_velocity=gyro,
            specific_force=accelerometer,
            com=com,
            com_velocity=relative,
            gravity=-R_world_root[2],
            root_position=root,
            root_orientation=data.xquat[ROOT][_XYZW],
            foot_forces=data.cfrc_ext[self._foot_bodies, 3:] @ R_world_root,
            mass=self._mass,
            trunk_mass=self._trunk.mass,
            trunk_com=self._trunk.com,
            trunk_inertia=self._trunk.inertia,
        )

    def _wrenches(self) -> Array:
        """Sums of all contact forces on the feet, (f, 6).

        MuJoCo's cfrc_ext holds, per body, torque and force of its contacts about the CoM of the
        robot in world axes; they are moved to the wrench frame:
        tau_frame = R^T (tau + (c - p_frame) x f), f_frame = R^T f.
        """
        data = self._data
        center = data.subtree_com[ROOT]
        result = np.empty((len(self._feet), 6))
        moved = np.empty(6)
        for row, (body, site) in zip(result, self._feet, strict=True):
            origin, R = data.site_xpos[site], data.site_xmat[site]
            mujoco.mju_transformSpatial(moved, data.cfrc_ext[body], 1, origin, center, R)
            row[:3], row[3:] = moved[3:], moved[:3]
        return self._signs * result


def _cross(a: Array, b: Array) -> Array:
    """The cross product of two vectors (3,); numpy's takes ten times as long."""
    a0, a1, a2 = a.tolist()
    b0, b1, b2 = b.tolist()
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])
