"""What numba compiles for com_control.walking.upper_body: root and CoM as the pelvis sees them."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_control.walking.leg_kernels import turn
from com_model.compiled import compiled
from com_model.sesc import kernels

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# Columns of a body between root and pelvis.
DRIVER, MULTIPLIER, OFFSET, SLIDES = 0, 1, 2, 3
AXIS = 4  # three: of its joint, own axes
SHIFT = 7  # three: its origin in its parent
TURN = 10  # nine: its axes in its parent's, by rows
COLUMNS = 19


@njit
def follow(path: Array, q: Array, pose: Array) -> None:
    """Sets pose (3, 4) to [R p] of the pelvis in the root, along path (k, COLUMNS)."""
    for i in range(3):
        for j in range(4):
            pose[i, j] = 1.0 if i == j else 0.0
    for b in range(len(path)):
        body = path[b]
        s = body[MULTIPLIER] * q[int(body[DRIVER])] + body[OFFSET]
        axis = (body[AXIS], body[AXIS + 1], body[AXIS + 2])
        for i in range(3):
            x, y, z = pose[i, 0], pose[i, 1], pose[i, 2]
            pose[i, 3] += x * body[SHIFT] + y * body[SHIFT + 1] + z * body[SHIFT + 2]
            row = (
                x * body[TURN] + y * body[TURN + 3] + z * body[TURN + 6],
                x * body[TURN + 1] + y * body[TURN + 4] + z * body[TURN + 7],
                x * body[TURN + 2] + y * body[TURN + 5] + z * body[TURN + 8],
            )
            if body[SLIDES] > 0.0:
                pose[i, 3] += s * (row[0] * axis[0] + row[1] * axis[1] + row[2] * axis[2])
            else:
                row = turn(axis, -s, row)  # a row of R Rot(axis, s)
            pose[i, 0], pose[i, 1], pose[i, 2] = row


@compiled()
def pose_of_root(path: Array, q: Array, root: Array) -> None:
    """Sets root (3, 4) to [R p] of the root in the pelvis' frame, at q (n,)."""
    pose = np.empty((3, 4))
    follow(path, q, pose)
    for i in range(3):
        root[i, 3] = 0.0
        for j in range(3):
            root[i, j] = pose[j, i]
            root[i, 3] -= pose[j, i] * pose[j, 3]


@compiled()
def moment_above(
    path: Array, robot: Array, legs: Indices, leg_moment: Array, q: Array, moment: Array
) -> None:
    """Sets moment (3,) of all but the legs about the pelvis' origin, over the robot's mass, m.

    Args:
        path: (k, COLUMNS) bodies from the root to the pelvis.
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
    follow(path, q, pose)
    for i in range(3):
        moment[i] = -leg_moment[i]
        for j in range(3):
            moment[i] += pose[j, i] * (com[j] - pose[j, 3])
