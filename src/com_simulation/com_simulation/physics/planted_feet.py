"""Feet that stay where they are: legs below a root that moves, ways between postures."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
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
SAME_PLACE, SAME_TURN = 1e-3, 5e-3  # m, rad; within the accuracy of servos
STEP = 0.1  # rad or m, of the fastest joint between two points of a way


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
        """

        def errors(q: Array) -> Array:
            R, p = self._poses(q)
            turns = Rotation.from_matrix(R_root @ R @ self._R.transpose(0, 2, 1)).as_rotvec()
            shifts = p_root + p @ R_root.T - self._p
            return np.concatenate((shifts.ravel(), turns[self._flat].ravel()))

        robot = self.robot
        reach = LIMIT_MARGIN * np.nan_to_num(robot.upper - robot.lower, posinf=0.0)
        lower = np.minimum(robot.lower + reach, self.posture)
        upper = np.maximum(robot.upper - reach, self.posture)
        return _solve(errors, start, self.joints, lower, upper)

    def errors(self, q: Array) -> Array:
        """How far the feet are from their places to the first one, (6 f,): m, then rad."""
        R, p = self._poses(q)
        R0, R, p = self._R[0], R[0].T @ R, (p - p[0]) @ R[0]
        kept = R0.T @ self._R
        turns = Rotation.from_matrix(R @ kept.transpose(0, 2, 1)).as_rotvec()
        return np.concatenate(((p - (self._p - self._p[0]) @ R0).ravel(), turns.ravel()))

    def kept(self, q: Array) -> bool:
        """Whether the feet are in their places to each other."""
        shifts, turns = np.split(np.abs(self.errors(q)), 2)
        return bool(shifts.max() < SAME_PLACE and turns.max() < SAME_TURN)

    def project(self, q: Array) -> Array:
        """Changes a posture (n,) as little as it takes to bring the feet to their places.

        Raises SwayError where no posture within the limits does.
        """
        joints = np.arange(self.robot.n_joints)
        return _solve(self.errors, q, joints, self.robot.lower, self.robot.upper)

    def way(self, start: Array, end: Array) -> Array:
        """Finds points (k, n) from one posture to another, both with the feet in their places.

        The joints go as straight as they can. Raises SwayError where there is no such way.
        """
        count = max(int(np.ceil(np.abs(end - start).max() / STEP)), 2)
        fractions = np.linspace(0.0, 1.0, count + 1)[1:-1]
        between = [self.project(start + fraction * (end - start)) for fraction in fractions]
        way = np.array([start, *between, end])
        if np.abs(np.diff(way, axis=0)).max() > 3.0 * STEP:
            raise SwayError("the legs would jump on the way")
        return way

    def _poses(self, q: Array) -> tuple[Array, Array]:
        """Orientations (f, 3, 3) and positions (f, 3) of the feet in the root link's frame."""
        R, p = self._frames.poses(q)
        return R, p + np.einsum("fij,fj->fi", R, self._centers)


def _solve(
    errors: Callable[[Array], Array],
    start: Array,
    joints: NDArray[np.int64],
    lower: Array,
    upper: Array,
) -> Array:
    """Newton's method with the shortest step; the derivatives are finite differences.

    Joints that would leave their limits stay, where the others can do it without them. Raises
    SwayError where it does not converge.
    """
    q = start.copy()
    units = TINY * np.eye(len(q))[joints]
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
