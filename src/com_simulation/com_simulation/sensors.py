"""What the robot's sensors read, and the truth that no robot has: its CoM and its pose."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from com_simulation.contacts import body_of_foot
from com_simulation.world import World

Array = NDArray[np.float64]


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


class Sensors:
    """Reads MuJoCo's data.

    MuJoCo computes forces, accelerations and the CoM at the start of a step, then moves on. So the
    caller keeps time, qpos and qvel from before a step and asks after it: everything is of the
    same instant, and nothing is computed twice.
    """

    def __init__(self, world: World, data: mujoco.MjData) -> None:
        self._world, self._data = world, data
        robot, mj = world.robot, world.mj
        self._root = 1
        self._floating = world.floating
        self._imu_site = mj.site("imu").id
        self._feet = [body_of_foot(robot, foot) for foot in world.feet]
        links = [robot.link_index(foot.wrench_frame) for foot in world.feet]
        self._frame_bodies = [int(robot.bodies.body_of_link[link]) + 1 for link in links]
        self._R_body_frame = robot.bodies.R_body_link[links]
        self._p_body_frame = robot.bodies.p_body_link[links]
        self._signs = np.array([foot.wrench_sign for foot in world.feet], dtype=float)

    def read(self, time: float, qpos: Array, qvel: Array) -> Reading:
        """Reads all sensors after a step that began at `time` with qpos and qvel."""
        world, data = self._world, self._data
        R = data.xmat[self._root].reshape(3, 3)
        accelerometer, gyro, com_velocity = data.sensordata.reshape(3, 3)
        com = (data.subtree_com[self._root] - data.xpos[self._root]) @ R
        relative = com_velocity @ R
        if self._floating:  # qvel: linear velocity in world axes, angular velocity in the root's
            relative = relative - qvel[:3] @ R - _cross(qvel[3:6], com)
        imu = np.empty(4)
        mujoco.mju_mat2Quat(imu, data.site_xmat[self._imu_site])
        return Reading(
            time=time,
            position=qpos[world.joint_qpos],
            velocity=qvel[world.joint_dof],
            effort=data.qfrc_actuator[world.joint_dof],
            wrenches=self._wrenches(),
            imu_orientation=imu[[1, 2, 3, 0]],
            angular_velocity=gyro.copy(),
            specific_force=accelerometer.copy(),
            com=com,
            com_velocity=relative,
            gravity=-R[2],
            root_position=data.xpos[self._root].copy(),
            root_orientation=data.xquat[self._root][[1, 2, 3, 0]],
        )

    def _wrenches(self) -> Array:
        """Sums of all contact forces on the feet, (f, 6).

        MuJoCo's cfrc_ext holds, per body, torque and force of its contacts about the CoM of the
        robot in world axes: tau_sole = tau + (c - p_sole) x f.
        """
        data = self._data
        result = np.empty((len(self._feet), 6))
        center = data.subtree_com[self._root]
        for i, (foot, body) in enumerate(zip(self._feet, self._frame_bodies, strict=True)):
            R_world_body = data.xmat[body].reshape(3, 3)
            R = R_world_body @ self._R_body_frame[i]
            origin = data.xpos[body] + R_world_body @ self._p_body_frame[i]
            torque, force = data.cfrc_ext[foot].reshape(2, 3)
            result[i, :3] = force @ R
            result[i, 3:] = (torque + _cross(center - origin, force)) @ R
        return result * self._signs[:, None]


def _cross(a: Array, b: Array) -> Array:
    """The cross product of two vectors (3,); numpy's takes ten times as long."""
    a0, a1, a2 = a.tolist()
    b0, b1, b2 = b.tolist()
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])
