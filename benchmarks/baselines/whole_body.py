"""Masses and CoMs of all links by the wrench of the ground on a robot that moves or stands.

Least squares with Pinocchio's regressor of the root's six rows of the equations of motion, and the
same rows of MuJoCo's inverse dynamics with mujoco.minimize, the optimiser of mujoco.sysid (whose
own residuals are of rollouts, which need contact and the root's velocity). Only the sum of the
feet's wrenches counts, however it is distributed. No errors of sensors, no prior but the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import mujoco
import numpy as np
import pinocchio
from identification_scenario import Array, PinocchioRobot
from mujoco import minimize
from scipy.signal import butter, filtfilt
from scipy.spatial.transform import Rotation

from com_simulation.physics.spec import body_inertias, robot_spec

CUTOFF = 8.0  # Hz, of velocities and wrenches
RCOND = 1e-2  # of the regressor's largest singular value: smaller ones are noise of its derivatives
MASS, COM = 0.5, 0.05  # relative and m, bounds of mujoco.minimize
ITERATIONS = 20


@dataclass(frozen=True, eq=False)
class Motion:
    """N samples: joints (N, n) rad, the root's pose, and the measured wrench, in root axes.

    Attributes:
        q: (N, n) rad.
        R: (N, 3, 3) R_world_root.
        v: (N, nv) velocities as Pinocchio has them.
        a: (N, nv) accelerations.
        wrench: (N, 6) N and N m of the ground on all feet, about the root's origin.
    """

    q: Array
    R: Array
    v: Array
    a: Array
    wrench: Array

    def every(self, step: int, start: int = 0) -> Motion:
        """Some of the samples."""
        parts = (self.q, self.R, self.v, self.a, self.wrench)
        return Motion(*(part[start::step] for part in parts))


def total_wrench(
    robot: PinocchioRobot, q: Array, wrenches: Array, signs: Sequence[float]
) -> Array:
    """(6,) about the root's origin of wrenches (f, 6) in the axes of their sensors."""
    total = np.zeros(6)
    for foot, sign, wrench in zip(robot.feet, signs, wrenches, strict=True):
        R, p = robot.frame(q, foot.wrench_frame)
        force = sign * (R @ wrench[:3])
        total += np.concatenate((force, sign * (R @ wrench[3:]) + np.cross(p, force)))
    return total


def moving(
    robot: PinocchioRobot,
    q: Array,
    R: Array,
    root: Array,
    wrenches: Array,
    period: float,
) -> Motion:
    """A motion of samples every `period` s; wrenches (N, f, 6) of the ground on the feet."""
    signs = [1.0] * len(robot.feet)
    wrench = np.array(
        [total_wrench(robot, *row, signs) for row in zip(q, wrenches, strict=True)]
    )
    full = np.array(
        [full_position(robot, *row) for row in zip(q, R, root, strict=True)]
    )
    steps = [pinocchio.difference(robot.pin, a, b) for a, b in pairwise(full)]
    low = butter(2, 2.0 * CUTOFF * period)
    v = filtfilt(*low, np.array([*steps, steps[-1]]) / period, axis=0)
    a = np.gradient(v, period, axis=0)
    v[1:] = 0.5 * (v[1:] + v[:-1])  # from between two samples to the samples
    a[1:] = 0.5 * (a[1:] + a[:-1])
    return Motion(q, R, v, a, filtfilt(*low, wrench, axis=0))


def full_position(robot: PinocchioRobot, q: Array, R: Array, root: Array) -> Array:
    """Pinocchio's configuration."""
    full = robot.full(q)
    full[:3], full[3:7] = root, Rotation.from_matrix(R).as_quat()
    return full


def regressor_identification(robot: PinocchioRobot, motion: Motion) -> PinocchioRobot:
    """Finds masses and first moments by the least step from the robot's that fits."""
    inertias = list(robot.pin.inertias)[1:]
    start = np.array([inertia.toDynamicParameters() for inertia in inertias])
    scale = np.repeat([force_scale(robot, motion), 1.0], 3)
    rows, right = [], []
    for q, R, v, a, wrench in zip(
        motion.q, motion.R, motion.v, motion.a, motion.wrench, strict=True
    ):
        full = full_position(robot, q, R, np.zeros(3))
        Y = pinocchio.computeJointTorqueRegressor(robot.pin, robot.data, full, v, a)[:6]
        residual = wrench - Y @ start.ravel()
        rows.append(scale[:, None] * Y.reshape(6, -1, 10)[:, :, :4].reshape(6, -1))
        right.append(scale * residual)
    step = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=RCOND)[
        0
    ].reshape(-1, 4)
    mass = start[:, 0] + step[:, 0]
    return with_coms(robot, mass, (start[:, 1:4] + step[:, 1:]) / mass[:, None])


def with_coms(robot: PinocchioRobot, mass: Array, com: Array) -> PinocchioRobot:
    """The robot with other masses (B,) and CoMs (B, 3) m, in Pinocchio's order."""
    changed = PinocchioRobot(robot.xml, robot.model, robot.feet)
    for i, (m, c) in enumerate(zip(mass, com, strict=True), start=1):
        inertia = changed.pin.inertias[i]
        changed.pin.inertias[i] = pinocchio.Inertia(float(m), c, inertia.inertia)
    return changed


def mujoco_identification(robot: PinocchioRobot, motion: Motion) -> PinocchioRobot:
    """Finds masses and CoMs with MuJoCo's inverse dynamics and the optimiser of mujoco.sysid."""
    model = robot.model
    mj = robot_spec(model, body_inertias(model), True, np.eye(3), step=1e-3).compile()
    data, bodies = mujoco.MjData(mj), model.bodies
    joints = [mj.joint(f"joint{b}").id for b in range(1, bodies.count)]
    dofs, places = mj.jnt_dofadr[joints], mj.jnt_qposadr[joints]
    columns = np.array([joint.idx_v for joint in robot.joints])
    states = []
    for q, R, v, a in zip(motion.q, motion.R, motion.v, motion.a, strict=True):
        qpos, qvel, qacc = np.zeros(mj.nq), np.zeros(mj.nv), np.zeros(mj.nv)
        mujoco.mju_mat2Quat(qpos[3:7], R.ravel())
        qpos[places] = bodies.multiplier[1:] * q[bodies.q_index[1:]] + bodies.offset[1:]
        qvel[:3], qvel[3:6], qvel[dofs] = R @ v[:3], v[3:6], v[columns]
        qacc[:3], qacc[3:6] = R @ (a[:3] + np.cross(v[3:6], v[:3])), a[3:6]
        qacc[dofs] = a[columns]
        states.append((qpos, qvel, qacc))
    turned = np.einsum("nij,nj->ni", motion.R, motion.wrench[:, :3])
    measured = np.column_stack((turned, motion.wrench[:, 3:]))
    heavy = np.flatnonzero(bodies.mass > 0.0)
    scale = np.repeat([force_scale(robot, motion), 1.0], 3)

    def residual(points: Array) -> Array:
        """A column for each point."""
        found = []
        for x in points.T:
            mass, com = np.split(x.reshape(-1, 4), [1], axis=1)
            mj.body_mass[heavy + 1], mj.body_ipos[heavy + 1] = mass[:, 0], com
            rows = np.empty((len(states), 6))
            for row, (qpos, qvel, qacc) in zip(rows, states, strict=True):
                data.qpos[:], data.qvel[:], data.qacc[:] = qpos, qvel, qacc
                mujoco.mj_inverse(mj, data)
                row[:] = data.qfrc_inverse[:6]
            found.append((scale * (rows - measured)).ravel())
        return np.column_stack(found)

    mass = bodies.mass[heavy, None]
    start = np.column_stack((mass, bodies.first_moment[heavy] / mass))
    room = np.column_stack((MASS * mass, np.full((len(heavy), 3), COM)))
    x, _ = minimize.least_squares(
        start.ravel(), residual, [(start - room).ravel(), (start + room).ravel()],
        x_scale=0.1 * room.ravel(), max_iter=ITERATIONS, verbose=minimize.Verbosity.SILENT,
    )  # fmt: skip
    changed = np.array([[i.mass, *i.lever] for i in list(robot.pin.inertias)[1:]])
    order = [0, *(robot.pin.getJointId(name) - 1 for name in bodies.joint_names[1:])]
    changed[np.array(order)[heavy]] = x.reshape(-1, 4)
    return with_coms(robot, changed[:, 0], changed[:, 1:])


def force_scale(robot: PinocchioRobot, motion: Motion) -> float:
    """Height, m, of the CoM over the first foot: forces times it count as moments do."""
    q = motion.q[0]
    return float(np.linalg.norm(robot.com(q) - robot.frame(q, robot.feet[0].frame)[1]))
