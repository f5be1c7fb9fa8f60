"""Compiled: soles with their Jacobians in the root's frame, and least squares within bounds."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_model.bodies import PRISMATIC
from com_model.compiled import compiled
from com_model.geometry.vector_kernels import set_cross, set_rotation

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

FREE, AT_LOWER, AT_UPPER, FIXED = 0, -1, 1, 2
_TRIES = 3  # block exchanges without progress before single ones, which always end
_STILL = 1e-12  # width of bounds that leave nothing


@compiled()
def soles(
    q: Array,
    kind: Indices,
    driver: Indices,
    scale: Array,
    offset: Array,
    R_rest: Array,
    shift: Array,
    axis: Array,
    paths: Indices,
    R_link: Array,
    p_link: Array,
    R: Array,
    p: Array,
    jacobian: Array,
) -> None:
    """Places soles and finds their Jacobians, all in the root link's frame, root at rest.

    Args:
        q: (n,) joint positions, rad or m.
        kind: (B,) joint_type of com_model.bodies; this and the next six are of all bodies.
        driver: (B,) q_index.
        scale: (B,) multiplier.
        offset: (B,) rad or m.
        R_rest: (B, 3, 3) R.
        shift: (B, 3) d, m.
        axis: (B, 3).
        paths: (f, m) bodies from the root's child to the sole's, -1 behind the last.
        R_link: (f, 3, 3) sole frames in their bodies.
        p_link: (f, 3) m, their origins.
        R: (f, 3, 3), set to the orientations of the soles.
        p: (f, 3) m, set to their origins.
        jacobian: (f, 6, n), set to linear velocity of the sole's origin over angular velocity.
    """
    feet, longest = paths.shape
    jacobian[:] = 0.0
    turn, arm, column = np.empty((3, 3)), np.empty(3), np.empty(3)
    axes, points = np.empty((longest, 3)), np.empty((longest, 3))
    for i in range(feet):
        R_body, p_body = np.eye(3), np.zeros(3)
        count = 0
        for k in range(longest):
            b = paths[i, k]
            if b < 0:
                break
            count += 1
            s = scale[b] * q[driver[b]] + offset[b]
            p_body = p_body + R_body @ shift[b]
            R_body = R_body @ R_rest[b]
            axes[k] = R_body @ axis[b]
            if kind[b] == PRISMATIC:
                p_body = p_body + s * axes[k]
            else:
                set_rotation(axis[b], s, turn)
                R_body = R_body @ turn
            points[k] = p_body
        p[i] = p_body + R_body @ p_link[i]
        R[i] = R_body @ R_link[i]
        for k in range(count):
            b = paths[i, k]
            j = driver[b]
            if kind[b] == PRISMATIC:
                for r in range(3):
                    jacobian[i, r, j] += scale[b] * axes[k, r]
                continue
            for r in range(3):
                arm[r] = p[i, r] - points[k, r]
            set_cross(axes[k], arm, column)
            for r in range(3):
                jacobian[i, r, j] += scale[b] * column[r]
                jacobian[i, 3 + r, j] += scale[b] * axes[k, r]


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
    """Finds the least value of x H x / 2 + g x between bounds, by principal pivoting.

    Whole blocks of the variables are exchanged between free and at a bound as long as that helps,
    else one by one, which comes to an end for any H > 0 [Judice and Pires 1994].

    Args:
        H: (n, n) symmetric, positive definite.
        g: (n,).
        lower: (n,).
        upper: (n,), not less than lower.
        x: (n,), set to the solution.

    Returns:
        How many rounds it took; -1 where rounding kept it from an end, x then being within bounds.
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
