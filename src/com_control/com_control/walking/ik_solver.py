"""What solvers of com_control.walking.com_ik have in common: the upper body's first moment."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from com_control.walking.biped import Biped
from com_model.arrays import Array
from com_model.bodies import Indices
from com_model.compiled import compiled, entry_point
from com_model.dynamics.link_frames import LinkFrames
from com_model.sesc import kernels
from com_model.sesc.sesc import pack


class Found(NamedTuple):
    """What a solver finds from scratch."""

    legs: Array  # (12,) rad
    pelvis: Array  # (3,) m
    reason: str  # why this is no solution; "" when it is
    nearest: Array  # (3,) m, the nearest CoM that can be reached; NaN where none is found


class Solver(ABC):
    """One way of finding pelvis and legs, with what is above the legs in the nominal posture.

    Args:
        robot: (1,) what its kernels read and write, among it upper_moment (3,) m: of all but the
            legs in the pelvis' frame, over the robot's mass.

    Attributes:
        solve_one, solve_path: Kernels; see pelvis_search.
    """

    solve_one: Any
    solve_path: Any

    def __init__(self, biped: Biped, robot: Any) -> None:
        self._biped, self.robot = biped, robot
        model, self._moment = biped.model, robot["upper_moment"][0]
        joints = np.concatenate([leg.joints for leg in biped.legs])
        self._leg_moment = np.sum([leg.moments.sum(axis=0) for leg in biped.legs], 0) / model.mass
        self._arguments = pack(model.bodies), joints, self._leg_moment, self._moment
        self._find_moment = entry_point(find_moment, np.empty(0), *self._arguments)
        pelvis = [model.bodies.names[biped.pelvis]]
        self._pelvis = LinkFrames(model, pelvis) if biped.pelvis else None
        self.set_upper_body(biped.posture.copy())

    def set_upper_body(self, q: Array) -> None:
        """Moves the joints that are not of the legs to q (n,); microseconds, hence no checks."""
        self._find_moment(q, *self._arguments)
        if self._pelvis is not None:
            (R,), (p,) = self._pelvis.poses(q)
            com = self._moment + self._leg_moment
            self._moment[:] = R.T @ (com - p) - self._leg_moment

    @abstractmethod
    def restart(self, pelvis: Array | None) -> None:
        """Forgets the last point; the next search starts with the pelvis at (3,) m, if given."""

    @abstractmethod
    def search(self, com: Array, feet: Array, R: Array, tolerance: float) -> Found:
        """Solves a point from scratch; see com_ik.ComIk.solve."""


@compiled()
def find_moment(q: Array, robot: Array, legs: Indices, leg_moment: Array, moment: Array) -> None:
    """Sets moment (3,) of all but the legs about the root's origin, over the robot's mass, m.

    The CoM with the legs at their zero pose, by the statically equivalent serial chain, less what
    the legs bring to it there.

    Args:
        q: (n,) rad or m.
        robot: Packed by com_model.sesc.sesc; its last rows are overwritten.
        legs: (12,) places of the legs' joints in q.
        leg_moment: (3,) m.
    """
    zero = q.copy()
    for i in legs:
        zero[i] = 0.0
    kernels.keep_root(robot)
    kernels.find_com(zero, robot, moment)
    for i in range(3):
        moment[i] -= leg_moment[i]
