"""How good a plan is against the best one possible: the relaxed optimum over the candidates.

A plan of N postures whose rows are A_i leaves the information M = P^-1 + sum_i w_i A_i^T A_i with
whole numbers w_i that add up to N. With any w_i >= 0 of that sum the best M is found by convex
optimisation, and no plan can be better [Pukelsheim, Optimal Design of Experiments, ch. 9]. What is
made large, f(M), is the logarithm of 1 over a standard deviation, concave for both criteria; so
with the slopes s_i = tr(A_i G A_i^T), G = df/dM,

  f(M*) <= f(M) + N max_i s_i - sum_i w_i s_i   for any w,

which is a bound even before the weights have converged. Where a number of postures is to be on one
foot, these and the others are groups, each with its own sum and its own maximum.
"""

from collections.abc import Callable

import numpy as np

from com_model.arrays import Array, Flags

Objective = Callable[[Array], tuple[float, Array]]
"""Takes information M (U, U); returns f(M) and its slope (U, U)."""
_PASSES = 100
_CLOSE = 0.005  # of a standard deviation: how exactly the best plan's is found


def parameters_objective(bodies: int) -> Objective:
    """Of the geometric mean of the bodies' standard deviations; they are the first b parameters.

    f = 1/2b log det (M_bb - M_be M_ee^-1 M_eb) = 1/2b (log det M - log det M_ee), e the errors of
    the sensors.
    """

    def objective(M: Array) -> tuple[float, Array]:
        slope, errors = np.linalg.inv(M), M[bodies:, bodies:]
        slope[bodies:, bodies:] -= np.linalg.inv(errors)
        value = np.linalg.slogdet(M)[1] - np.linalg.slogdet(errors)[1]
        return float(value) / (2.0 * bodies), np.asarray(slope / (2.0 * bodies))

    return objective


def prediction_objective(target: Array) -> Objective:
    """Of the predicted CoM: f = -1/2 log tr(M^-1 T), target is T (U, U)."""

    def objective(M: Array) -> tuple[float, Array]:
        P = np.linalg.inv(M)
        variance = float(np.sum(P * target))
        return -0.5 * float(np.log(variance)), P @ target @ P / (2.0 * variance)

    return objective


def plan_efficiency(
    chosen: Array, others: Array, scatter: Array, objective: Objective, alone: Flags | None = None
) -> float:
    """The standard deviation that the relaxed optimum leaves, over that of a plan; at most 1.

    chosen (N, R, U) are the rows of the plan, others (m, R, U) those of the other candidates,
    scatter is P. alone (N + m,) marks postures of which any plan has as many as this one. Weights
    are multiplied by their slopes, from even ones and the plan's on, until the bound is close.
    """
    rows = np.concatenate((chosen, others))
    groups = np.zeros(len(rows), dtype=int) if alone is None else np.asarray(alone, dtype=int)
    weights = (np.arange(len(rows)) < len(chosen)).astype(float)
    sums = np.bincount(groups, weights)
    A, prior = rows.reshape(-1, rows.shape[2]), np.linalg.inv(scatter)
    reached = bound = np.inf
    for done in range(_PASSES):
        M = prior + (A * np.repeat(weights, rows.shape[1])[:, None]).T @ A
        value, G = objective((M + M.T) / 2.0)
        slopes = np.maximum(np.sum((A @ G) * A, axis=1).reshape(rows.shape[:2]).sum(axis=1), 0.0)
        highest = np.zeros(len(sums))
        np.maximum.at(highest, groups, slopes)
        bound = min(bound, value + float(sums @ highest - weights @ slopes))
        if done == 0:
            reached = value
            weights = (weights + (sums / np.maximum(np.bincount(groups), 1))[groups]) / 2.0
            continue
        if bound - value <= _CLOSE:
            break
        weights = weights * slopes
        scale = np.bincount(groups, weights)
        weights *= np.divide(sums, scale, out=np.zeros(len(sums)), where=scale > 0.0)[groups]
    return float(np.exp(min(0.0, reached - bound)))
