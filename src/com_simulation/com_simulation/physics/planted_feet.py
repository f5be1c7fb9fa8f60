"""Ways from posture to posture on which no sole leaves its place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from com_model import Foot, RobotModel, link_poses
from com_simulation.exceptions import SwayError

Array = NDArray[np.float64]

SAME_PLACE, SAME_TURN = 1e-3, 5e-3  # m, rad
STEP = 0.1  # rad or m, of the fastest joint between two points of a way
CLOSE = 1e-6  # m and rad
ROUNDS = 8
TINY = 1e-6  # rad or m, of finite differences


class PlantedFeet:
    """The places of a robot's feet to the first of them, to be kept.

    Args:
        robot: The model.
        feet: At least one.
        posture: (n,) in which they have these places, rad or m.
    """

    def __init__(self, robot: RobotModel, feet: Sequence[Foot], posture: Array) -> None:
        self._robot = robot
        self._links = [robot.link_index(foot.frame) for foot in feet]
        self._R, self._p = self._places(posture)

    def errors(self, q: Array) -> Array:
        """How far the feet are from their places, (6 f,): m of shifts, then rad of turns."""
        R, p = self._places(q)
        turns = Rotation.from_matrix(R @ self._R.transpose(0, 2, 1)).as_rotvec()
        return np.concatenate(((p - self._p).ravel(), turns.ravel()))

    def kept(self, q: Array) -> bool:
        """Whether the feet are in their places, within the accuracy of servos."""
        shifts, turns = np.split(np.abs(self.errors(q)), 2)
        return bool(shifts.max() < SAME_PLACE and turns.max() < SAME_TURN)

    def project(self, q: Array) -> Array:
        """Changes a posture (n,) as little as it takes to bring the feet to their places.

        Newton's method with the shortest step; the derivatives are finite differences.

        Raises:
            SwayError: No posture within the limits does.
        """
        robot = self._robot
        for _ in range(ROUNDS):
            error = self.errors(q)
            if np.abs(error).max() < CLOSE:
                return q
            moved = [self.errors(q + TINY * unit) for unit in np.eye(robot.n_joints)]
            slope = (np.array(moved) - error).T / TINY
            step = np.linalg.lstsq(slope, -error, rcond=1e-6)[0]
            q = np.clip(q + step, robot.lower, robot.upper)
        raise SwayError("the legs do not reach, or a joint is at its limit")

    def way(self, start: Array, end: Array) -> Array:
        """Finds points (k, n) from one posture to another; the joints go as straight as they can.

        Args:
            start: (n,) with the feet in their places.
            end: (n,) likewise.

        Raises:
            SwayError: There is no such way.
        """
        count = max(int(np.ceil(np.abs(end - start).max() / STEP)), 2)
        fractions = np.linspace(0.0, 1.0, count + 1)[1:-1]
        between = [self.project(start + fraction * (end - start)) for fraction in fractions]
        way = np.array([start, *between, end])
        if np.abs(np.diff(way, axis=0)).max() > 3.0 * STEP:
            raise SwayError("the legs would jump on the way")
        return way

    def _places(self, q: Array) -> tuple[Array, Array]:
        """Turns (f, 3, 3) and places (f, 3) of the feet in the first one's frame."""
        R, p = link_poses(self._robot, q)
        R, p = R[self._links], p[self._links]
        return R[0].T @ R, (p - p[0]) @ R[0]
