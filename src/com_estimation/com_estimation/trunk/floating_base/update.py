"""Compiled: the Kalman update with whitened rows; which states the latest data may change."""

import math

import numpy as np
from numba import njit

from com_estimation.trunk.floating_base.filter_types import (
    HIP,
    MASS,
    MOMENT,
    STATES,
    TRUNK_STATES,
    Array,
    Flags,
    Rows,
)
from com_estimation.trunk.floating_base.rows import set_trunk_columns
from com_model.compiled import compiled
from com_model.geometry.vector_kernels import dot


@njit
def solve_lower(L: Array, X: Array) -> None:
    """Sets X to L^-1 X.

    Args:
        L: (n, n) lower triangular; the upper half is not read.
        X: (n, m) changed.
    """
    for i in range(len(L)):
        for k in range(i):
            for c in range(X.shape[1]):
                X[i, c] -= L[i, k] * X[k, c]
        scale = 1.0 / L[i, i]
        for c in range(X.shape[1]):
            X[i, c] *= scale


@njit
def factor(A: Array, least: float) -> None:
    """Sets the lower half of A to its Cholesky factor.

    Args:
        A: (n, n) symmetric; the upper half is neither read nor set.
        least: lower bound of the squares on the diagonal.
    """
    for i in range(len(A)):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = math.sqrt(max(total, least)) if i == j else total / A[j, j]


@njit
def whiten(rows: Rows) -> None:
    """Whitens the base rows in place: L of noise = L L^T, then L^-1 H and L^-1 residual.

    Args:
        rows: noise, residual and H are changed.
    """
    factor(rows.noise, 1e-12)
    solve_lower(rows.noise, rows.residual.reshape(-1, 1))
    solve_lower(rows.noise, rows.H)


@compiled()
def widened(P: Array, x: Array, prior: float) -> Array:
    """The covariance for hips whose tolerance is itself uncertain.

    A trot shows by how much the diagonals' hips disagree, d, and nothing of what all four have in
    common, which moves the CoM as far. With a prior of Student's t with two degrees of freedom
    for both, the variance of what they have in common is larger by

      1 + d' d / (2 std_d^2)

    A URDF with the right hips stays as good as its prior; one that is 10 mm off shows it.

    Args:
        P: (STATES, STATES) covariance of the state.
        x: (STATES,) state.
        prior: m, standard deviation of a diagonal's hips along x and y; std_d is sqrt(2) times it.

    Returns:
        (STATES, STATES) covariance, not smaller than P.
    """
    hips, wide = slice(HIP, HIP + 4), P.copy()
    known, L = P[hips].copy(), P[hips, hips].copy()
    first, second = x[HIP : HIP + 2], x[HIP + 2 : HIP + 4]
    surplus = np.sum((first - second) ** 2) / (4.0 * prior**2)
    factor(L, 1e-300)
    solve_lower(L, known)
    for i in range(STATES):
        for r in range(4):
            scale = surplus * known[r, i]
            for c in range(STATES):
                wide[i, c] += scale * known[r, c]
    return wide


@njit
def update_states(
    H: Array,
    residual: Array,
    noise: float,
    gate: float,
    held: Flags,
    x: Array,
    P: Array,
) -> float:
    """Kalman update with whitened rows; outliers get more noise, none is dropped.

      d^2 = r^T (H P H^T + noise)^-1 r

    Above the gate the noise is multiplied by d^2 / gate. States that are held have no gain, but
    their uncertainty counts (Schmidt).

    Args:
        H: (k, STATES) whitened rows.
        residual: (k,) whitened.
        noise: variance of the whitened noise.
        gate: of d^2.
        held: (STATES,) states without gain.
        x: (STATES,) estimate, changed.
        P: (STATES, STATES) covariance, changed.

    Returns:
        d^2, with the noise as given.
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
            S[r, k] = 0.0
            for c in range(STATES):
                S[r, k] += W[k, c] * H[r, c]
    distance = _whitened(S, residual, noise, L, y)
    if distance > gate:
        _whitened(S, residual, noise * distance / gate, L, y)
    solve_lower(L, W)  # L^-1 H P
    free = W.copy()
    for r in range(count):
        for c in range(STATES):
            if held[c]:
                free[r, c] = 0.0
            x[c] += free[r, c] * y[r]
    for i in range(STATES):
        own = free if held[i] else W
        for r in range(count):
            scale = W[r, i]
            for c in range(STATES):
                P[i, c] -= scale * own[r, c]
    return distance


@njit
def _whitened(S: Array, residual: Array, noise: float, L: Array, y: Array) -> float:
    """Sets L L^T = S + noise, from the lower half of S, and y = L^-1 r; returns |y|^2."""
    L[:], y[:] = S, residual
    for i in range(len(y)):
        L[i, i] += noise
    factor(L, 1e-300)
    solve_lower(L, y.reshape(-1, 1))
    return np.sum(y**2)


@njit
def add_to_window(
    H: Array, residual: Array, x: Array, information: Array, weighted: Array
) -> None:
    """Adds whitened base rows to a quarter stride's information on m, m c_x, m c_y.

    Args:
        H: (6, STATES).
        residual: (6,) at x.
        x: (STATES,) estimate.
        information: (3, 3) sum of h^T h, changed.
        weighted: (3,) sum of h^T (residual + h x), changed: independent of the present estimate.
    """
    for row in range(len(residual)):
        h = H[row, MASS:]
        value = residual[row] + dot(h, x[MASS:])
        for i in range(3):
            weighted[i] += h[i] * value
            for k in range(3):
                information[i, k] += h[i] * h[k]


@njit
def hold_unexcited(
    rows: Rows,
    variances: Array,
    weight: float,
    level: float,
    excitation: Array,
    held: Flags,
) -> None:
    """Holds those of m c and I whose regressors are not well above their noise.

    A regressor that is only noise has no information, yet least squares interprets it as a
    signal and biases what it multiplies towards zero (errors in variables): m c_z multiplies the
    specific force along x and y, which is noise while the trunk does not tilt.

    Args:
        rows: whitened; `noise` is the factor L that whitened them.
        variances: (2,) of specific force, (m/s^2)^2, and angular acceleration, (rad/s^2)^2,
            after the filter.
        weight: of this update in the averages, 0 to 1.
        level: factor by which a regressor's square must exceed that of its noise.
        excitation: (2, TRUNK_STATES) averages, changed: the columns' squares, and those of their
            noise.
        held: (STATES,) set where a state is held.
    """
    N, zero, squares = (
        np.empty((6, TRUNK_STATES)),
        np.zeros(3),
        np.zeros((2, TRUNK_STATES)),
    )
    for source in range(6):
        unit = np.zeros(3)
        unit[source % 3] = 1.0
        N[:] = 0.0
        if source < 3:
            set_trunk_columns(zero, zero, unit, N)
        else:
            set_trunk_columns(zero, unit, zero, N)
        solve_lower(rows.noise, N)
        for c in range(MOMENT, TRUNK_STATES):
            squares[0, c] += rows.H[source, c] ** 2
            for i in range(6):
                squares[1, c] += variances[source // 3] * N[i, c] ** 2
    for c in range(MOMENT, TRUNK_STATES):
        for i in range(2):
            excitation[i, c] += weight * (squares[i, c] - excitation[i, c])
        held[c] |= excitation[0, c] < level * excitation[1, c]
