"""Compiled: least squares within bounds."""

import numpy as np
from numba import njit

from com_model.arrays import Array, Flags
from com_model.compiled import compiled

FREE, AT_LOWER, AT_UPPER, FIXED = 0, -1, 1, 2


@njit
def _set_free(H: Array, g: Array, free: Flags, x: Array) -> None:
    """Sets the free variables of x to where the gradient is 0; the others stay fixed."""
    where = np.flatnonzero(free)
    if len(where):
        b = g + H @ np.where(free, 0.0, x)
        x[where] = np.linalg.solve(H[where][:, where], -b[where])


@compiled()
def bounded_minimum(H: Array, g: Array, lower: Array, upper: Array, x: Array) -> int:
    """Minimum of x H x / 2 + g x between bounds, by principal pivoting.

    Whole blocks of the variables are exchanged between free and at a bound as long as that
    helps, otherwise single ones, which terminates for any symmetric H > 0 [Judice and Pires
    1994].

    Args:
        H: (n, n) symmetric and positive definite.
        g: (n,).
        lower: (n,) lower bounds.
        upper: (n,) upper bounds, not below the lower ones.
        x: (n,) set to the solution.

    Returns:
        The number of rounds; -1 if rounding prevented convergence, x then being within bounds.
    """
    # width of bounds that leave nothing
    # block exchanges without progress before single ones, which always end
    most_tries = 3
    state, best, tries = (
        np.where(upper - lower < 1e-12, FIXED, FREE),
        len(g) + 1,
        most_tries,
    )
    for rounds in range(1, 20 * len(g) + 20):
        free = state == FREE
        x[:] = np.where(state == AT_UPPER, upper, lower)
        _set_free(H, g, free, x)
        slack, gradient = 1e-10 * (1.0 + np.abs(x)), g + H @ x
        beyond = (x < lower - slack) | (x > upper + slack)
        pulled = (state * gradient > 1e-9 * (1e-9 + np.abs(g).max())) & (state != FIXED)
        flips = np.flatnonzero(np.where(free, beyond, pulled))
        x_inside = np.minimum(np.maximum(x, lower), upper)
        if len(flips) == 0:
            x[:] = x_inside
            return rounds
        if len(flips) < best:
            best, tries = len(flips), most_tries
        elif tries > 0:
            tries -= 1
        else:
            flips = flips[-1:]
        state[flips] = np.where(free, np.where(x < lower, AT_LOWER, AT_UPPER), FREE)[
            flips
        ]
    x[:] = x_inside
    return -1
