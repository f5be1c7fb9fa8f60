"""Compiled: the Kalman update by whitened rows, and which states the latest data may change."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from com_estimation.trunk.floating_base.filter_types import (
    MOMENT,
    TRUNK_STATES,
    Array,
    BaseRows,
    Flags,
)
from com_estimation.trunk.floating_base.rows import set_trunk_columns


@njit
def whiten(rows: BaseRows) -> None:
    """Cholesky factor L of the noise, then L^-1 H and L^-1 residual, in place."""
    H, residual, noise = rows.H, rows.residual, rows.noise
    size = len(noise)
    for i in range(size):
        for j in range(i + 1):
            total = noise[i, j]
            for k in range(j):
                total -= noise[i, k] * noise[j, k]
            noise[i, j] = math.sqrt(max(total, 1e-12)) if i == j else total / noise[j, j]
    for i in range(size):
        for k in range(i):
            residual[i] -= noise[i, k] * residual[k]
            for c in range(H.shape[1]):
                H[i, c] -= noise[i, k] * H[k, c]
        residual[i] /= noise[i, i]
        for c in range(H.shape[1]):
            H[i, c] /= noise[i, i]


@njit
def distance(H: Array, residual: Array, P: Array) -> float:
    """r^T (H P H^T + 1)^-1 r of whitened rows: |L^-1 r|^2 with L L^T = H P H^T + 1."""
    size, states = H.shape
    L, y, Ph = np.empty((size, size)), np.empty(size), np.empty(states)
    result = 0.0
    for i in range(size):
        multiply_symmetric(P, H[i], Ph)
        for j in range(i, size):  # column i of the product
            total = 1.0 if i == j else 0.0
            for c in range(states):
                total += H[j, c] * Ph[c]
            L[j, i] = total
    for i in range(size):
        y[i] = residual[i]
        for j in range(i + 1):
            for k in range(j):
                L[i, j] -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(L[i, i]) if i == j else L[i, j] / L[j, j]
        for k in range(i):
            y[i] -= L[i, k] * y[k]
        y[i] /= L[i, i]
        result += y[i] ** 2
    return result


@njit
def multiply_symmetric(P: Array, h: Array, out: Array) -> None:
    """Sets out to P h by the rows of a symmetric P, which runs in vector registers."""
    for c in range(len(h)):
        out[c] = 0.0
    for i in range(len(h)):
        scale = h[i]
        for c in range(len(h)):
            out[c] += P[i, c] * scale


@njit
def update_states(
    H: Array, residual: Array, inflation: float, held: Flags, x: Array, P: Array
) -> None:
    """Uses whitened rows one by one; their noise has the variance `inflation`.

    Schmidt's rule for states that are held: their gain is zero, their uncertainty counts.
    """
    size = len(x)
    start, Ph = x.copy(), np.empty(size)
    for row in range(len(residual)):
        h, r, S = H[row], residual[row], inflation
        multiply_symmetric(P, h, Ph)
        for i in range(size):
            r -= h[i] * (x[i] - start[i])
            S += h[i] * Ph[i]
        for i in range(size):
            if not held[i]:
                x[i] += Ph[i] * r / S
            for c in range(i + 1):
                if held[i] and held[c]:
                    continue
                P[i, c] -= Ph[i] * Ph[c] / S
                P[c, i] = P[i, c]


@njit
def hold(first: int, end: int, held: Flags) -> None:
    """Marks the states from first to end as held."""
    for i in range(first, end):
        held[i] = True


@njit
def hold_unexcited(
    rows: BaseRows,
    variances: Array,
    weight: float,
    level: float,
    excitation: Array,
    held: Flags,
) -> None:
    """Holds those of m c and I whose regressors are not well above their noise.

    A regressor that is nothing but noise has no information, yet least squares takes it for a
    signal and pulls what it multiplies towards zero (errors in variables): m c_z multiplies the
    specific force along x and y, which is noise while the trunk does not tilt.

    Args:
        rows: Whitened; `noise` is the factor L that whitened them.
        variances: (2,) of specific force and angular acceleration after the filter.
        weight: Of this update in the averages.
        level: By how much a regressor's square must exceed that of its noise.
        excitation: (2, TRUNK_STATES) averages: the columns' squares, and those of their noise.
        held: (STATES,) set where a state is held.
    """
    H, noise = rows.H, rows.noise
    N, unit, zero = np.empty((6, TRUNK_STATES)), np.zeros(3), np.zeros(3)
    square, noise_square = np.zeros(TRUNK_STATES), np.zeros(TRUNK_STATES)
    for c in range(TRUNK_STATES):
        for i in range(6):
            square[c] += H[i, c] ** 2
    for source in range(6):
        for i in range(3):
            unit[i] = 1.0 if i == source % 3 else 0.0
        for i in range(6):
            for c in range(TRUNK_STATES):
                N[i, c] = 0.0
        if source < 3:
            set_trunk_columns(zero, zero, unit, N)
        else:
            set_trunk_columns(zero, unit, zero, N)
        for c in range(MOMENT, TRUNK_STATES):
            for i in range(6):
                for k in range(i):
                    N[i, c] -= noise[i, k] * N[k, c]
                N[i, c] /= noise[i, i]
                noise_square[c] += variances[source // 3] * N[i, c] ** 2
    for c in range(MOMENT, TRUNK_STATES):
        excitation[0, c] += weight * (square[c] - excitation[0, c])
        excitation[1, c] += weight * (noise_square[c] - excitation[1, c])
        held[c] |= excitation[0, c] < level * excitation[1, c]


@njit
def average_information(H: Array, weight: float, variance: float, information: Array) -> None:
    """Averages the information of whitened rows on m, m c, per second."""
    for i in range(4):
        for c in range(4):
            total = 0.0
            for row in range(6):
                total += H[row, i] * H[row, c]
            information[i, c] += weight * (total / variance - information[i, c])
