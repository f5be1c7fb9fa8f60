"""What is above the legs: its mass and first moment about the pelvis, wherever its joints are."""

from __future__ import annotations

from math import cos, sin

import numpy as np

from com_control.walking.biped import Biped
from com_model.arrays import Array
from com_model.bodies import PRISMATIC
from com_model.sesc import Sesc


class UpperBody:
    """The upper body of a biped by its statically equivalent serial chain.

    The robot's CoM with the legs at their zero pose, less what the legs bring to it there.

    Args:
        biped: The robot.
    """

    def __init__(self, biped: Biped) -> None:
        bodies = biped.model.bodies
        self._sesc = Sesc(biped.model)
        self._legs = np.concatenate([leg.joints for leg in biped.legs])
        self._leg_share = sum(leg.masses.sum() for leg in biped.legs) / biped.model.mass
        moments = [leg.moments.sum(axis=0) for leg in biped.legs]
        self._leg_moment = np.sum(moments, axis=0) / biped.model.mass
        self._bodies = bodies
        self._path: list[int] = []
        body = biped.pelvis
        while body > 0:
            self._path.insert(0, body)
            body = int(bodies.parent[body])
        self._drives = np.array(bodies.q_index[self._path], dtype=np.int64)
        self._key, self._root = self._drives.tobytes() + b"none", (np.eye(3), np.zeros(3))

    def root_in_pelvis(self, q: Array) -> tuple[Array, Array]:
        """Pose of the root link in the pelvis' frame, (3, 3) and (3,) m, at q (n,)."""
        key = q[self._drives].tobytes()
        if key != self._key:
            self._key, self._root = key, self._find_root(q)
        return self._root

    def _find_root(self, q: Array) -> tuple[Array, Array]:
        bodies, R, p = self._bodies, np.eye(3), np.zeros(3)
        for body in self._path:
            axis, drive = bodies.axis[body], q[bodies.q_index[body]]
            s = float(bodies.multiplier[body] * drive + bodies.offset[body])
            p = p + R @ bodies.d[body]
            R = R @ bodies.R[body]
            if bodies.joint_type[body] == PRISMATIC:
                p = p + R @ axis * s
            else:
                R = R @ _turn(axis.tolist(), s)
        return R.T, -R.T @ p

    def packed(self, q: Array) -> Array:
        """Moment (m) about the pelvis' origin, in its axes, and mass, over the robot's; (2, 3)."""
        zero = q.copy()
        zero[self._legs] = 0.0
        com = self._sesc.com(zero)
        if self._path:
            R, p = self.root_in_pelvis(q)
            com = p + R @ com
        result = np.zeros((2, 3))
        result[0] = com - self._leg_moment
        result[1, 0] = 1.0 - self._leg_share
        return result


def _turn(axis: list[float], angle: float) -> Array:
    """Rotation about a unit axis, (3, 3) (Rodrigues)."""
    x, y, z = axis
    c, s = cos(angle), sin(angle)
    v = 1.0 - c
    return np.array(
        [
            [c + v * x * x, v * x * y - s * z, v * x * z + s * y],
            [v * x * y + s * z, c + v * y * y, v * y * z - s * x],
            [v * x * z - s * y, v * y * z + s * x, c + v * z * z],
        ]
    )
