"""Inverse kinematics of a standing robot: the base moves, the feet stay where they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from com_model import Foot, RobotModel, link_poses
from com_model.bodies import PRISMATIC
from com_model.dynamics.kinematics import body_poses
from com_model.geometry.support import sole_points
from com_simulation.exceptions import SwayError

Array = NDArray[np.float64]

TOLERANCE = 1e-5  # m and rad, of the feet's places
ITERATIONS = 15
DAMPING = 1e-9
LIMIT_MARGIN = 0.02  # fraction of a joint's range that stays free at either end


class Stance:
    """The feet of a robot in its nominal posture, held in place by the joints above them.

    A sole with corners keeps position and orientation, a ball its center. All is expressed
    in the root link's frame of the nominal posture, which the moving root starts from.

    Args:
        robot: The model.
        feet: At least one.
        posture: (n,) nominal joint positions, rad or m.
    """

    def __init__(self, robot: RobotModel, feet: Sequence[Foot], posture: Array) -> None:
        self.robot, self.posture = robot, posture
        R, p = link_poses(robot, posture)
        self._links = [robot.link_index(foot.frame) for foot in feet]
        self._flat = [len(foot.corners) > 0 for foot in feet]
        centers = np.array([foot.center for foot in feet])
        self._R = R[self._links]
        self._p = p[self._links] + np.einsum("fij,fj->fi", self._R, centers)
        poses = zip(self._R, self._p, feet, strict=True)
        self.contacts = np.concatenate([sole_points(R, p, foot.corners) for R, p, foot in poses])
        to_body, at = robot.bodies.R_body_link[self._links], robot.bodies.p_body_link[self._links]
        self._offset = at + np.einsum("fij,fj->fi", to_body, centers)
        self._paths = [
            self.robot.bodies.path_to(int(robot.bodies.body_of_link[i])) for i in self._links
        ]
        joints = {int(robot.bodies.q_index[b]) for path in self._paths for b in path}
        self.joints = np.array(sorted(joints), dtype=np.int64)
        reach = LIMIT_MARGIN * np.nan_to_num(robot.upper - robot.lower, posinf=0.0)
        self._lower = np.minimum(robot.lower + reach, posture)
        self._upper = np.maximum(robot.upper - reach, posture)

    def solve(self, start: Array, R_root: Array, p_root: Array) -> Array:
        """Finds joint positions that keep the feet in place with the root moved.

        Damped Gauss-Newton: dq = J^T (J J^T + lambda 1)^-1 e, over the joints that a limit does not
        hold back.

        Args:
            start: (n,) to begin with; the joints that no foot hangs on stay as they are.
            R_root: (3, 3) orientation of the root.
            p_root: (3,) m, its position.

        Raises:
            SwayError: The legs do not reach.
        """
        q = start.copy()
        for _ in range(ITERATIONS):
            error, J = self._linearise(q, R_root, p_root)
            if np.abs(error).max() < TOLERANCE:
                return q
            q[self.joints] += self._step(q, error, J)
            np.clip(q, self._lower, self._upper, out=q)
        raise SwayError("the legs do not reach, or a joint is at its limit")

    def _step(self, q: Array, error: Array, J: Array) -> Array:
        """Change (k,) of the joints; those that would leave their limits stay."""
        at_lower = q[self.joints] <= self._lower[self.joints]
        at_upper = q[self.joints] >= self._upper[self.joints]
        free = np.ones(len(self.joints), dtype=bool)
        while True:
            J_free = J * free
            damped = J_free @ J_free.T + DAMPING * np.eye(len(error))
            step = np.asarray(J_free.T @ np.linalg.solve(damped, error))
            held = (at_lower & (step < 0.0)) | (at_upper & (step > 0.0))
            if not held.any():
                return step
            free &= ~held

    def _linearise(self, q: Array, R_root: Array, p_root: Array) -> tuple[Array, Array]:
        """What the feet lack (m,), and how that changes with the joints (m, k)."""
        bodies = self.robot.bodies
        R, p = body_poses(bodies, q, R_root, p_root)
        errors, rows = [], []
        for i, link in enumerate(self._links):
            body = bodies.body_of_link[link]
            R_foot = R[body] @ bodies.R_body_link[link]
            p_foot = p[body] + R[body] @ self._offset[i]
            linear = np.zeros((3, self.robot.n_joints))
            angular = np.zeros((3, self.robot.n_joints))
            for b in self._paths[i]:
                axis = bodies.multiplier[b] * (R[b] @ bodies.axis[b])
                if bodies.joint_type[b] == PRISMATIC:
                    linear[:, bodies.q_index[b]] += axis
                else:
                    linear[:, bodies.q_index[b]] += np.cross(axis, p_foot - p[b])
                    angular[:, bodies.q_index[b]] += axis
            errors.append(self._p[i] - p_foot)
            rows.append(linear)
            if self._flat[i]:
                errors.append(Rotation.from_matrix(self._R[i] @ R_foot.T).as_rotvec())
                rows.append(angular)
        return np.concatenate(errors), np.concatenate(rows)[:, self.joints]
