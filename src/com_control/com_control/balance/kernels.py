"""Compiled: soles with their Jacobians in the root's frame, and least squares within bounds."""

from typing import NamedTuple

import numpy as np
from numba import njit

from com_model.arrays import Array, Indices
from com_model.bodies import PRISMATIC
from com_model.compiled import compiled
from com_model.dynamics.tree_kernels import Tree, set_poses
from com_model.geometry.vector_kernels import set_cross, set_point, set_product

FREE, AT_LOWER, AT_UPPER, FIXED = 0, -1, 1, 2
_TRIES = 3  # block exchanges without progress before single ones, which always end
_STILL = 1e-12  # width of bounds that leave nothing


class SoleFrames(NamedTuple):
    """f soles: their bodies, their poses in those, and the joints on the way to them."""

    body: Indices  # (f,) indices of the bodies
    R: Array  # (f, 3, 3) sole frames in their bodies
    p: Array  # (f, 3) m, their origins
    paths: Indices  # (f, m) bodies from the root's child to the sole's, -1 behind the last
    bodies: Indices  # those of all paths, ascending


class SolePoses(NamedTuple):
    """Soles of f feet, in the root link's frame."""

    R: Array  # (f, 3, 3) orientations
    p: Array  # (f, 3) m, origins; of a point foot the centre of its ball
    jacobian: Array  # (f, 6, n) velocity of the origin over angular velocity, the root at rest


@compiled()
def soles(q: Array, tree: Tree, frames: SoleFrames, poses: SolePoses) -> None:
    """Sets poses and Jacobians of soles in the root link's frame at q (n,), the root at rest."""
    jacobian = poses.jacobian
    jacobian[:] = 0.0
    R, p = np.empty((tree.parent.size, 3, 3)), np.zeros((tree.parent.size, 3))
    R[0] = np.eye(3)
    set_poses(q, tree, frames.bodies, R, p)
    axis, arm, column = np.empty(3), np.empty(3), np.empty(3)
    for i in range(frames.body.size):
        last = frames.body[i]
        set_product(R[last], frames.R[i], poses.R[i])
        set_point(R[last], p[last], frames.p[i], poses.p[i])
        for b in frames.paths[i]:
            if b < 0:
                break
            j, scale = tree.q_index[b], tree.multiplier[b]
            for r in range(3):  # the joint turns about it, or slides along it
                axis[r] = R[b, r, 0] * tree.axis[b, 0]
                axis[r] += R[b, r, 1] * tree.axis[b, 1] + R[b, r, 2] * tree.axis[b, 2]
                arm[r] = poses.p[i, r] - p[b, r]
            if tree.joint_type[b] == PRISMATIC:
                for r in range(3):
                    jacobian[i, r, j] += scale * axis[r]
                continue
            set_cross(axis, arm, column)
            for r in range(3):
                jacobian[i, r, j] += scale * column[r]
                jacobian[i, 3 + r, j] += scale * axis[r]


@njit
def _stationary(H: Array, g: Array, state: Indices, x: Array) -> None:
    """Sets the free ones of x to where the gradient is 0, the others staying where they are."""
    n = len(g)
    count = 0
    where = np.empty(n, dtype=np.int64)
    for i in range(n):
        if state[i] == FREE:
            where[count] = i
            count += 1
    if count == 0:
        return
    A, b = np.empty((count, count)), np.empty(count)
    for r in range(count):
        i = where[r]
        total = -g[i]
        for j in range(n):
            if state[j] != FREE:
                total -= H[i, j] * x[j]
        b[r] = total
        for c in range(count):
            A[r, c] = H[i, where[c]]
    solution = np.linalg.solve(A, b)
    for r in range(count):
        x[where[r]] = solution[r]


@njit
def _exchange(
    H: Array, g: Array, lower: Array, upper: Array, state: Indices, x: Array, flips: Indices
) -> int:
    """Lists which ones stand on the wrong side in flips; returns how many do."""
    n = len(g)
    scale = 0.0
    for i in range(n):
        scale = max(scale, abs(g[i]))
    count = 0
    for i in range(n):
        if state[i] == FREE:
            slack = 1e-10 * (1.0 + abs(x[i]))
            wrong = x[i] < lower[i] - slack or x[i] > upper[i] + slack
        elif state[i] == FIXED:
            wrong = False
        else:
            gradient = g[i]
            for j in range(n):
                gradient += H[i, j] * x[j]
            wrong = state[i] * gradient > 1e-9 * (1e-9 + scale)
        if wrong:
            flips[count] = i
            count += 1
    return count


@compiled()
def bounded_minimum(H: Array, g: Array, lower: Array, upper: Array, x: Array) -> int:
    """Sets x (n,) to the least value of x H x / 2 + g x between bounds, by principal pivoting.

    Whole blocks of the variables are exchanged between free and at a bound as long as that helps,
    else one by one, which comes to an end for any symmetric H > 0 [Judice and Pires 1994]. Gives
    the number of rounds; -1 where rounding kept it from an end, x then being within bounds.
    """
    n = len(g)
    state, flips = np.zeros(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for i in range(n):
        if upper[i] - lower[i] < _STILL:
            state[i] = FIXED
    best, tries = n + 1, _TRIES
    for rounds in range(1, 20 * n + 20):
        for i in range(n):
            if state[i] == AT_UPPER:
                x[i] = upper[i]
            elif state[i] != FREE:
                x[i] = lower[i]
        _stationary(H, g, state, x)
        count = _exchange(H, g, lower, upper, state, x, flips)
        if count == 0:
            for i in range(n):
                x[i] = min(max(x[i], lower[i]), upper[i])
            return rounds
        first = 0
        if count < best:
            best, tries = count, _TRIES
        elif tries > 0:
            tries -= 1
        else:
            first = count - 1
        for k in range(first, count):
            i = flips[k]
            if state[i] != FREE:
                state[i] = FREE
            else:
                state[i] = AT_LOWER if x[i] < lower[i] else AT_UPPER
    for i in range(n):
        x[i] = min(max(x[i], lower[i]), upper[i])
    return -1
