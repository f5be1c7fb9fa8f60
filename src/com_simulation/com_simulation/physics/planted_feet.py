"""Feet that stay where they are: legs below a root that moves."""

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from com_model import Foot, RobotModel
from com_model.arrays import Array
from com_model.dynamics.link_frames import LinkFrames
from com_model.geometry.support import sole_points
from com_simulation.exceptions import SwayError

TOLERANCE = 1e-6  # m and rad, of the feet's places
ITERATIONS = 15
TINY = 1e-6  # rad or m, of finite differences
SINGULAR = 1e-6  # singular values over the largest one, below which nothing is moved
LIMIT_MARGIN = 0.02  # fraction of a joint's range that stays free at either end below a root


class PlantedFeet:
    """The places that a robot's feet have in a posture (n,), to be kept.

    Attributes:
        contacts: (k, 3) m, corners of the soles and centers of balls, root link's frame.
        joints: Numbers of the joints above the feet.
    """

    def __init__(self, robot: RobotModel, feet: Sequence[Foot], posture: Array) -> None:
        self.robot, self.posture = robot, posture
        links = [robot.link_index(foot.frame) for foot in feet]
        self._frames = LinkFrames(robot, [foot.frame for foot in feet])
        self._centers = np.array([foot.center for foot in feet])
        self._flat = np.array([len(foot.corners) > 0 for foot in feet])
        self._R, self._p = self._poses(posture)
        poses = zip(self._R, self._p, feet, strict=True)
        self.contacts = np.concatenate([sole_points(R, p, foot.corners) for R, p, foot in poses])
        bodies = robot.bodies
        paths = [bodies.path_to(int(bodies.body_of_link[link])) for link in links]
        joints = {int(bodies.q_index[body]) for path in paths for body in path}
        self.joints = np.array(sorted(joints), dtype=np.int64)

    def below(self, start: Array, R_root: Array, p_root: Array) -> Array:
        """Finds joint positions (n,) that keep the feet in place with the root moved.

        A sole with corners keeps position and orientation, a ball its center. The search begins at
        `start` (n,), where the joints that no foot hangs on stay. The root has orientation R_root
        (3, 3) and position p_root (3,) m to that in the posture. SwayError: the legs do not reach.

        Newton's method with the shortest step; the derivatives are finite differences. Joints that
        would leave their limits stay, where the others can do it without them.
        """

        def errors(q: Array) -> Array:
            R, p = self._poses(q)
            turns = Rotation.from_matrix(R_root @ R @ self._R.transpose(0, 2, 1)).as_rotvec()
            shifts = p_root + p @ R_root.T - self._p
            return np.concatenate((shifts.ravel(), turns[self._flat].ravel()))

        robot, joints = self.robot, self.joints
        reach = LIMIT_MARGIN * np.nan_to_num(robot.upper - robot.lower, posinf=0.0)
        lower = np.minimum(robot.lower + reach, self.posture)
        upper = np.maximum(robot.upper - reach, self.posture)
        q, units = start.copy(), TINY * np.eye(len(start))[joints]
        for _ in range(ITERATIONS):
            error = errors(q)
            if np.abs(error).max() < TOLERANCE:
                return q
            J = (np.array([errors(q + unit) for unit in units]) - error).T / TINY
            at_lower, at_upper = q[joints] <= lower[joints], q[joints] >= upper[joints]
            free = np.ones(len(joints))
            held = np.ones(len(joints), dtype=bool)
            while held.any():
                step = np.linalg.lstsq(J * free, -error, rcond=SINGULAR)[0] * free
                held = (at_lower & (step < 0.0)) | (at_upper & (step > 0.0))
                free[held] = 0.0
            q[joints] += step
            np.clip(q, lower, upper, out=q)
        raise SwayError("the legs do not reach, or a joint is at its limit")

    def _poses(self, q: Array) -> tuple[Array, Array]:
        """Orientations (f, 3, 3) and positions (f, 3) of the feet in the root link's frame."""
        R, p = self._frames.poses(q)
        return R, p + np.einsum("fij,fj->fi", R, self._centers)
