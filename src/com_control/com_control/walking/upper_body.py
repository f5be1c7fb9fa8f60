"""What is above the legs: its mass and first moment about the pelvis, wherever its joints are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_control.walking.biped import Biped
from com_control.walking.kernel_basics import (
    ARRAYS,
    INDICES,
    column,
    combine,
    entry_point,
    records,
    row,
    turn,
    vector,
)
from com_model.arrays import Array
from com_model.bodies import PRISMATIC, Bodies
from com_model.compiled import compiled
from com_model.geometry.vector_kernels import dot
from com_model.sesc import kernels
from com_model.sesc.packing import pack

Indices = NDArray[np.int64]

BODY = np.dtype(
    [  # between root and pelvis
        ("driver", "i8"),  # index into q
        ("multiplier", "f8"),
        ("offset", "f8"),  # rad or m
        ("prismatic", "i8"),
        ("axis", "f8", 3),  # of its joint, own axes
        ("p", "f8", 3),  # its origin in its parent, m
        ("R", "f8", (3, 3)),  # its axes in its parent's
    ]
)


class UpperBody:
    """The upper body of a biped by its statically equivalent serial chain.

    The robot's CoM with the legs at their zero pose, less what the legs bring to it there. Calls
    work in memory of their own object: use one object per thread.

    Args:
        biped: The robot.

    Attributes:
        fraction: Its mass over the robot's.
    """

    def __init__(self, biped: Biped) -> None:
        bodies = biped.model.bodies
        self._robot = pack(bodies)
        self._legs = np.concatenate([leg.joints for leg in biped.legs])
        self.fraction = float(1.0 - sum(leg.masses.sum() for leg in biped.legs) / biped.model.mass)
        moments = [leg.moments.sum(axis=0) for leg in biped.legs]
        self._leg_moment = np.sum(moments, axis=0) / biped.model.mass
        self._path = _path(bodies, biped.pelvis)
        path = records(BODY)
        one, two = ARRAYS[1:3]
        self._moment = entry_point(moment_above, path, two, INDICES, one, one, one)
        self._root = entry_point(pose_of_root, path, one, two)

    def root_in_pelvis(self, q: Array) -> tuple[Array, Array]:
        """Pose of the root link in the pelvis' frame, (3, 3) and (3,) m, at q (n,)."""
        root = np.empty((3, 4))
        self._root(self._path, q, root)
        return root[:, :3].copy(), root[:, 3].copy()

    def update_moment(self, q: Array, moment: Array) -> None:
        """Sets moment (3,) m about the pelvis' origin, in its axes, over the robot's mass.

        Microseconds, hence no checks: q (n,) float64.
        """
        self._moment(self._path, self._robot, self._legs, self._leg_moment, q, moment)


def _path(bodies: Bodies, pelvis: int) -> Any:
    """The bodies from the root (without it) to the pelvis, (k,) of BODY."""
    path = bodies.path_to(pelvis)
    packed = np.zeros(len(path), BODY)
    packed["driver"], packed["multiplier"] = bodies.q_index[path], bodies.multiplier[path]
    packed["offset"] = bodies.offset[path]
    packed["prismatic"] = bodies.joint_type[path] == PRISMATIC
    packed["axis"], packed["p"], packed["R"] = bodies.axis[path], bodies.d[path], bodies.R[path]
    return packed


@njit
def find_pelvis_in_root(path: Any, q: Array, pose: Array) -> None:
    """Sets pose (3, 4) to [R p] of the pelvis in the root."""
    for i in range(3):
        for j in range(4):
            pose[i, j] = 1.0 if i == j else 0.0
    for b in range(len(path)):
        body = path[b]
        s = body.multiplier * q[body.driver] + body.offset
        axis, p, C = vector(body.axis), vector(body.p), body.R
        for i in range(3):
            before = row(pose, i)
            pose[i, 3] += dot(before, p)
            after = combine(before[0], row(C, 0), before[1], row(C, 1), before[2], row(C, 2))
            if body.prismatic:
                pose[i, 3] += s * dot(after, axis)
            else:
                after = turn(axis, -s, after)  # a row of R Rot(axis, s)
            pose[i, 0], pose[i, 1], pose[i, 2] = after


@compiled()
def pose_of_root(path: Any, q: Array, root: Array) -> None:
    """Sets root (3, 4) to [R p] of the root in the pelvis' frame, at q (n,)."""
    pose = np.empty((3, 4))
    find_pelvis_in_root(path, q, pose)
    for i in range(3):
        root[i, 0], root[i, 1], root[i, 2] = axis = column(pose, i)
        root[i, 3] = -dot(axis, column(pose, 3))


@compiled()
def moment_above(
    path: Any, robot: Array, legs: Indices, leg_moment: Array, q: Array, moment: Array
) -> None:
    """Sets moment (3,) of all but the legs about the pelvis' origin, over the robot's mass, m.

    Args:
        path: (k,) of BODY, from the root to the pelvis.
        robot: Packed by com_model.sesc.packing; its last rows are overwritten.
        legs: (12,) places of the legs' joints in q.
        leg_moment: (3,) m, what the legs bring to the moment at their zero pose.
        q: (n,) rad or m.
        moment: Result.
    """
    zero, com, pose = q.copy(), np.empty(3), np.empty((3, 4))
    for i in legs:
        zero[i] = 0.0
    kernels.keep_root(robot)
    kernels.find_com(zero, robot, com)
    find_pelvis_in_root(path, q, pose)
    for i in range(3):
        moment[i] = -leg_moment[i]
        for j in range(3):
            moment[i] += pose[j, i] * (com[j] - pose[j, 3])
