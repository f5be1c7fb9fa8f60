"""Least squares with Pinocchio's regressors, and the rule of public virtual-chain estimators.

All read the CoM's projection off the feet's wrenches with the URDF's kinematics, in x and y of the
first sole, as the identification does; none has weights, prior or bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio
from identification_scenario import GRAVITY, Array, PinocchioRobot

from com_identification.regression.postures import Posture

POSTURES_PER_LINK = 1.5  # of the virtual chain's rule


class UrdfRobot:
    """The robot as its URDF has it, and what postures say by it.

    Args:
        robot: Of the URDF.
    """

    def __init__(self, robot: PinocchioRobot) -> None:
        self.robot = robot
        inertias = list(robot.pin.inertias)[1:]
        self.mass = np.array([inertia.mass for inertia in inertias])
        self.moment = np.array(
            [inertia.mass * inertia.lever for inertia in inertias]
        ).ravel()

    def projection(self, posture: Posture) -> tuple[Array, Array, Array]:
        """Level axes of the first sole (2, 3), the point (3,) under the CoM, up (3,); root axes."""
        robot = self.robot
        R, p = robot.frame(posture.q, robot.feet[0].frame)
        force, moment = np.zeros(3), np.zeros(3)
        for foot, wrench in zip(robot.feet, posture.wrenches, strict=True):
            R_s, p_s = robot.frame(posture.q, foot.wrench_frame)
            push = foot.wrench_sign * (R_s @ wrench[:3])
            force += push
            moment += foot.wrench_sign * (R_s @ wrench[3:]) + np.cross(p_s - p, push)
        up = R[:, 2]
        return R[:, :2].T, p + np.cross(up, moment) / (force @ up), up

    def regressor(self, q: Array) -> tuple[Array, Array]:
        """Pinocchio's static regressor: CoM (3,) of the masses alone, and (3, 3 B) of m c."""
        robot = self.robot
        columns = pinocchio.computeStaticRegressor(robot.pin, robot.data, robot.full(q))
        columns = np.array(columns).reshape(3, -1, 4)
        return columns[:, :, 0] @ self.mass, columns[:, :, 1:].reshape(3, -1)

    def torque_regressor(self, posture: Posture, up: Array) -> tuple[Array, Array]:
        """Torques (n,) without m c and (n, 3 B) of m c, the feet's fraction taken off."""
        robot, zero = self.robot, np.zeros(self.robot.pin.nv)
        robot.pin.gravity.linear = -GRAVITY * up
        full = robot.full(posture.q)
        Y = pinocchio.computeJointTorqueRegressor(
            robot.pin, robot.data, full, zero, zero
        )
        Y = np.array(Y).reshape(robot.pin.nv, -1, 10)
        known = Y[:, :, 0] @ self.mass
        for foot, wrench in zip(robot.feet, posture.wrenches, strict=True):
            frame = robot.pin.getFrameId(foot.wrench_frame)
            J = pinocchio.computeFrameJacobian(robot.pin, robot.data, full, frame)
            known = known - J.T @ (foot.wrench_sign * wrench)
        rows = Y[:, :, 1:4].reshape(robot.pin.nv, -1)
        return known[robot.v_index], rows[robot.v_index]

    def turns(self, q: Array) -> Array:
        """Orientations of the bodies side by side, (3, 3 K): the chain of [Cotton] eq. 13."""
        robot = self.robot
        pinocchio.forwardKinematics(robot.pin, robot.data, robot.full(q))
        return np.hstack([np.array(pose.rotation) for pose in list(robot.data.oMi)[1:]])


def least_squares(urdf: UrdfRobot, postures: Sequence[Posture], torques: bool) -> Array:
    """Finds m c (3 B,) with masses known, nearest to the URDF's; equations in N m."""
    start = urdf.moment
    weight = urdf.robot.mass * GRAVITY
    rows, right = [], []
    for posture in postures:
        axes, point, up = urdf.projection(posture)
        offset, columns = urdf.regressor(posture.q)
        rows.append(weight * axes @ columns)
        right.append(weight * axes @ (point - offset - columns @ start))
        if torques:
            known, columns = urdf.torque_regressor(posture, up)
            rows.append(columns)
            right.append(posture.effort - known - columns @ start)
    solution = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=None)[0]
    return np.asarray(start + solution)


def predict(urdf: UrdfRobot, moment: Array, q: Array) -> Array:
    """The CoM (3,) in root axes."""
    offset, columns = urdf.regressor(q)
    return np.asarray(offset + columns @ moment)


def virtual_chain(urdf: UrdfRobot, postures: Sequence[Posture]) -> tuple[Array, int]:
    """Finds the chain's vectors (3 K,) by the pseudo-inverse ([Cotton] eq. 15), and the rank."""
    rows, right = [], []
    for posture in postures:
        axes, point, _ = urdf.projection(posture)
        rows.append(axes @ urdf.turns(posture.q))
        right.append(axes @ point)
    A = np.vstack(rows)
    return np.asarray(np.linalg.pinv(A) @ np.concatenate(right)), int(
        np.linalg.matrix_rank(A)
    )
