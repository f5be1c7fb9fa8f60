"""Compiled: the Kalman update by whitened rows, and which states the latest data may change."""

import math

import numpy as np
from numba import njit

from com_estimation.trunk.floating_base.filter_types import (
    MASS,
    MOMENT,
    STATES,
    TRUNK_STATES,
    Array,
    Flags,
    Rows,
)
from com_estimation.trunk.floating_base.rows import set_trunk_columns


@njit
def whiten(rows: Rows) -> None:
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
            H[i] -= noise[i, k] * H[k]
        residual[i] /= noise[i, i]
        H[i] /= noise[i, i]


@njit
def update_states(
    H: Array, residual: Array, noise: float, gate: float, held: Flags, x: Array, P: Array
) -> float:
    """Uses whitened rows whose noise has the variance `noise`; outliers get more, none is dropped.

    With d^2 = r^T (H P H^T + noise)^-1 r, which it gives, above the gate the noise is taken times
    d^2 / gate. States that are held have no gain, and their uncertainty counts (Schmidt).
    """
    count = len(residual)
    W, S = np.zeros((count, STATES)), np.empty((count, count))
    L, y = np.empty((count, count)), np.empty(count)
    for i in range(STATES):  # H P, by rows of P: that runs in vector registers
        for r in range(count):
            scale = H[r, i]
            if scale != 0.0:
                for c in range(STATES):
                    W[r, c] += scale * P[i, c]
    for r in range(count):
        for k in range(r + 1):
            S[r, k] = (W[k] * H[r]).sum()
    distance = _whitened(S, residual, noise, L, y)
    if distance > gate:
        _whitened(S, residual, noise * distance / gate, L, y)
    for r in range(count):  # L^-1 H P
        for k in range(r):
            W[r] -= L[r, k] * W[k]
        W[r] /= L[r, r]
    free = W * ~held
    for r in range(count):
        x += free[r] * y[r]
    for i in range(STATES):
        own = free if held[i] else W
        for r in range(count):
            scale = W[r, i]
            for c in range(STATES):
                P[i, c] -= scale * own[r, c]
    return distance


@njit
def _whitened(S: Array, residual: Array, noise: float, L: Array, y: Array) -> float:
    """Sets L L^T = S + noise, of which S has the lower half, and y = L^-1 r; returns |y|^2."""
    result = 0.0
    for i in range(len(y)):
        y[i] = residual[i]
        for j in range(i + 1):
            total = S[i, j] + (noise if i == j else 0.0)
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(max(total, 1e-300)) if i == j else total / L[j, j]
        for k in range(i):
            y[i] -= L[i, k] * y[k]
        y[i] /= L[i, i]
        result += y[i] ** 2
    return result


@njit
def add_to_window(H: Array, residual: Array, x: Array, information: Array, weighted: Array) -> None:
    """Adds whitened base rows to a half stride's information on m, m c_x, m c_y.

    Args:
        H: (6, STATES).
        residual: (6,) at x.
        x: (STATES,).
        information: (3, 3) sum of h^T h.
        weighted: (3,) sum of h^T (residual + h x): what the filter has taken in counts.
    """
    A = np.ascontiguousarray(H[:, MASS : MOMENT + 2])
    information += A.T @ A
    weighted += A.T @ (residual + A @ x[MASS : MOMENT + 2])


@njit
def hold_unexcited(
    rows: Rows, variances: Array, weight: float, level: float, excitation: Array, held: Flags
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
    whitener, trunk = np.linalg.inv(np.tril(rows.noise)), slice(MOMENT, TRUNK_STATES)
    N, zero = np.zeros((6, TRUNK_STATES)), np.zeros(3)
    square = (rows.H[:, trunk] ** 2).sum(axis=0)
    noise_square = np.zeros(TRUNK_STATES - MOMENT)
    for source in range(6):
        unit = np.zeros(3)
        unit[source % 3] = 1.0
        N[:] = 0.0
        if source < 3:
            set_trunk_columns(zero, zero, unit, N)
        else:
            set_trunk_columns(zero, unit, zero, N)
        noise_square += variances[source // 3] * ((whitener @ N)[:, trunk] ** 2).sum(axis=0)
    excitation[0, trunk] += weight * (square - excitation[0, trunk])
    excitation[1, trunk] += weight * (noise_square - excitation[1, trunk])
    held[trunk] |= excitation[0, trunk] < level * excitation[1, trunk]
