"""Compiled: the centres of mass and Jacobians of many configurations; see com_model.sesc.kernels.

BLOCK configurations stand side by side, so that every inner loop is the same arithmetic on
neighbouring numbers. A body has five such rows of numbers, its "lane"; in the end the first three
are its column of the Jacobian. Rows are reached by constant offsets: that shows the compiler that
they do not overlap.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_model.arrays import Array, Flags
from com_model.compiled import compiled
from com_model.sesc.kernels import (
    ALIGN,
    CHAINED,
    COS_TILT,
    DRIVER,
    FAR,
    FORKS,
    OFFSET,
    PARENT,
    REST,
    SIN_TILT,
    SLIDE,
    TURN,
    index,
    place,
    place_root,
    sincos,
    take,
)

Indices = NDArray[np.uint64]  # which spares numba the branch for negative ones

BLOCK = 32  # configurations that a kernel for many works on side by side
POSITION, SINE, COSINE, SUM_X, SUM_Y = 0, BLOCK, 2 * BLOCK, 3 * BLOCK, 4 * BLOCK
LANE = 5 * BLOCK
X, Y, Z = 0, BLOCK, 2 * BLOCK
VECTOR = 3 * BLOCK
MATRIX = 9 * BLOCK


class Tree(NamedTuple):
    """The rows of a packed robot that hold no quantities, each (B,)."""

    parent: Indices
    driver: Indices
    chained: Flags
    forks: Flags


@njit
def tree_of(robot: Array) -> Tree:
    """Reads the tree out of a packed robot."""
    count = int(robot[PARENT, 0])
    parent, driver = np.empty(count, np.uint64), np.empty(count, np.uint64)
    chained, forks = np.empty(count, np.bool_), np.empty(count, np.bool_)
    for k in range(count):
        parent[k], driver[k] = index(robot[PARENT, k]), index(robot[DRIVER, k])
        chained[k], forks[k] = robot[CHAINED, k] > 0.0, robot[FORKS, k] > 0.0
    return Tree(parent, driver, chained, forks)


@njit
def load(Q: Array, start: int, tree: Tree, lanes: Array) -> None:
    """Copies the positions of BLOCK configurations; past the last one, that one is repeated."""
    for b in range(BLOCK):
        q = Q[min(start + b, Q.shape[0] - 1)]
        for k in range(1, lanes.shape[0]):
            lanes[k, b] = q[tree.driver[k]]


@njit
def turn_lane(robot: Array, k: int, lane: Array) -> None:
    """Sets the sines and cosines of the joint angles of body k."""
    turn, offset = robot[TURN, k], robot[OFFSET, k]
    far = 0
    for b in range(BLOCK):
        lane[SINE + b], lane[COSINE + b] = sincos(turn * lane[b] + offset)
    for b in range(BLOCK):
        far += np.abs(turn * lane[b] + offset) > FAR
    if far > 0:
        for b in range(BLOCK):
            angle = turn * lane[b] + offset
            if np.abs(angle) > FAR:
                lane[SINE + b], lane[COSINE + b] = np.sin(angle), np.cos(angle)


@njit
def pull_chained(robot: Array, k: int, lane: Array, below: Array) -> None:
    """Takes below (3 rows) from the sum of the children of body k to what it adds to its parent."""
    rx, ry, rz = robot[REST, k], robot[REST + 1, k], robot[REST + 2, k]
    slide, tilt_c, tilt_s = robot[SLIDE, k], robot[COS_TILT, k], robot[SIN_TILT, k]
    for b in range(BLOCK):
        s, c = lane[SINE + b], lane[COSINE + b]
        x, y, z = (
            below[X + b] + rx,
            below[Y + b] + ry,
            below[Z + b] + rz + slide * lane[b],
        )
        x, y = c * x - s * y, s * x + c * y
        lane[SUM_X + b], lane[SUM_Y + b] = x, y
        below[X + b] = x
        below[Y + b] = tilt_c * y - tilt_s * z
        below[Z + b] = tilt_s * y + tilt_c * z


@njit
def pull_free(robot: Array, k: int, lane: Array, below: Array, sums: Array) -> None:
    """The same for a body that is not chained: adds to its parent's sums (3 rows), clears below."""
    rx, ry, rz, slide = (
        robot[REST, k],
        robot[REST + 1, k],
        robot[REST + 2, k],
        robot[SLIDE, k],
    )
    xx, xy, xz, yx, yy, yz, zx, zy, zz = take(robot[ALIGN:, k])
    for b in range(BLOCK):
        s, c = lane[SINE + b], lane[COSINE + b]
        x, y, z = (
            below[X + b] + rx,
            below[Y + b] + ry,
            below[Z + b] + rz + slide * lane[b],
        )
        x, y = c * x - s * y, s * x + c * y
        lane[SUM_X + b], lane[SUM_Y + b] = x, y
        below[X + b] = below[Y + b] = below[Z + b] = 0.0
        sums[X + b] += xx * x + xy * y + xz * z
        sums[Y + b] += yx * x + yy * y + yz * z
        sums[Z + b] += zx * x + zy * y + zz * z


@njit
def fill(row: Array, start: int, end: int, value: float) -> None:
    """Sets some numbers of a row."""
    for b in range(start, end):
        row[b] = value


@njit
def copy(frame: Array, saved: Array) -> None:
    """Copies nine rows."""
    for b in range(MATRIX):
        saved[b] = frame[b]


@njit
def add(sums: Array, below: Array) -> None:
    """Adds the first three rows of sums to below."""
    for b in range(VECTOR):
        below[b] += sums[b]


@njit
def pull_block(
    robot: Array, tree: Tree, lanes: Array, saved: Array, below: Array
) -> None:
    """Pull for a block: sets below (VECTOR,) to the root's S; saved is work space, a row a body."""
    for k in range(lanes.shape[0]):
        if tree.forks[k]:
            fill(saved[k], 0, VECTOR, 0.0)
    fill(below, 0, VECTOR, 0.0)
    for k in range(lanes.shape[0] - 1, 0, -1):
        turn_lane(robot, k, lanes[k])
        if tree.forks[k]:
            add(saved[k], below)
        if tree.chained[k]:
            pull_chained(robot, k, lanes[k], below)
        else:
            pull_free(robot, k, lanes[k], below, saved[tree.parent[k]])
    if tree.forks[0]:
        add(saved[0], below)
    for b in range(BLOCK):
        below[X + b] += robot[REST, 0]
        below[Y + b] += robot[REST + 1, 0]
        below[Z + b] += robot[REST + 2, 0]


@njit
def push_chained(robot: Array, k: int, lane: Array, frame: Array) -> None:
    """Takes frame (9 rows) from the axes of the parent of body k to its own; sets its columns."""
    turn, slide = robot[TURN, k], robot[SLIDE, k]
    tilt_c, tilt_s = robot[COS_TILT, k], robot[SIN_TILT, k]
    for b in range(BLOCK):
        s, c = lane[SINE + b], lane[COSINE + b]
        u, v = -turn * lane[SUM_Y + b], turn * lane[SUM_X + b]
        for row in range(3):
            i = VECTOR * row + b
            x, y, z = frame[X + i], frame[Y + i], frame[Z + i]
            y, z = tilt_c * y + tilt_s * z, tilt_c * z - tilt_s * y
            frame[X + i], frame[Y + i], frame[Z + i] = c * x + s * y, c * y - s * x, z
            lane[BLOCK * row + b] = u * x + v * y + slide * z


@njit
def push_free(robot: Array, k: int, lane: Array, parent: Array, frame: Array) -> None:
    """The same for a body that is not chained; parent (9 rows) holds the axes of its parent."""
    turn, slide = robot[TURN, k], robot[SLIDE, k]
    xx, xy, xz, yx, yy, yz, zx, zy, zz = take(robot[ALIGN:, k])
    for b in range(BLOCK):
        s, c = lane[SINE + b], lane[COSINE + b]
        u, v = -turn * lane[SUM_Y + b], turn * lane[SUM_X + b]
        for row in range(3):
            i = VECTOR * row + b
            p, q, r = parent[X + i], parent[Y + i], parent[Z + i]
            x, y, z = (
                p * xx + q * yx + r * zx,
                p * xy + q * yy + r * zy,
                p * xz + q * yz + r * zz,
            )
            frame[X + i], frame[Y + i], frame[Z + i] = c * x + s * y, c * y - s * x, z
            lane[BLOCK * row + b] = u * x + v * y + slide * z


@njit
def push_block(
    robot: Array, tree: Tree, root: Array, lanes: Array, saved: Array, frame: Array
) -> None:
    """Push for a block, root as of place_root; saved and frame (MATRIX,) are work space."""
    for i in range(9):
        fill(frame, BLOCK * i, BLOCK * (i + 1), root[i])
    copy(frame, saved[0])
    for k in range(1, lanes.shape[0]):
        if tree.chained[k]:
            push_chained(robot, k, lanes[k], frame)
        else:
            push_free(robot, k, lanes[k], saved[tree.parent[k]], frame)
        if tree.forks[k]:
            copy(frame, saved[k])


@njit
def store_com(root: Array, below: Array, com: Array) -> None:
    """Writes the centres of mass of the first configurations of a block, com (up to BLOCK, 3)."""
    for b in range(com.shape[0]):
        place(root, below[X + b], below[Y + b], below[Z + b], com[b])


@njit
def find_owners(tree: Tree, owners: Indices) -> None:
    """Sets owners (n,) to the first body that each joint moves; mimic joints move others."""
    for k in range(len(tree.driver) - 1, 0, -1):
        owners[tree.driver[k]] = k


@njit
def store_jacobian(tree: Tree, owners: Indices, lanes: Array, jacobian: Array) -> None:
    """Writes the Jacobians of the first configurations of a block, (up to BLOCK, 3, n)."""
    for k in range(1, lanes.shape[0]):
        owner = owners[tree.driver[k]]
        if owner != k:
            add(lanes[k], lanes[owner])
    for b in range(jacobian.shape[0]):
        for i in range(3):
            for j in range(owners.size):
                jacobian[b, i, j] = lanes[owners[j], BLOCK * i + b]


@compiled(nogil=True)
def com_and_jacobian_of_many(
    Q: Array, robot: Array, R: Array, p: Array, com: Array, jacobian: Array
) -> bool:
    """Computes CoM and Jacobian of N configurations.

    Args:
        Q: (N, n) joint positions, rad or m.
        robot: packed by com_model.sesc.sesc.
        R: (3, 3) orientation of the root.
        p: (3,) m, its origin.
        com: (N, 3) m, set.
        jacobian: (N, 3, n) m or 1, set; empty: not wanted.

    Returns:
        Whether R is a rotation.
    """
    tree = tree_of(robot)
    count = len(tree.parent)
    lanes, saved = np.empty((count, LANE)), np.empty((count, MATRIX))
    below, frame, root = np.empty(VECTOR), np.empty(MATRIX), np.empty(12)
    owners = np.empty(Q.shape[1], np.uint64)
    find_owners(tree, owners)
    fine = place_root(robot, R, p, root)
    for start in range(0, Q.shape[0], BLOCK):
        load(Q, start, tree, lanes)
        pull_block(robot, tree, lanes, saved, below)
        store_com(root, below, com[start : start + BLOCK])
        if jacobian.size > 0:
            push_block(robot, tree, root, lanes, saved, frame)
            store_jacobian(tree, owners, lanes, jacobian[start : start + BLOCK])
    return fine
