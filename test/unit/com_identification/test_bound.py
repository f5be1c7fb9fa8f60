"""The efficiency of a plan: its bound against all plans of a small case, and the exact optimum."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.optimize import minimize

from com_identification.planning.planner import (
    parameters_objective,
    plan_efficiency,
    prediction_objective,
)

COUNT, BODIES = 3, 3


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(7, 2, 5))


def of_parameters(P):
    """The geometric mean of the bodies' standard deviations."""
    return float(np.exp(np.linalg.slogdet(P[:BODIES, :BODIES])[1] / (2 * BODIES)))


C = np.random.default_rng(2).normal(size=(4, 5))


def of_prediction(P):
    return float(np.sqrt(np.trace(C @ P @ C.T)))


CASES = [
    (parameters_objective(BODIES), of_parameters),
    (prediction_objective(C.T @ C), of_prediction),
]


def after(rows, scatter, weights):
    information = sum(w * A.T @ A for w, A in zip(weights, rows, strict=True))
    return np.linalg.inv(np.linalg.inv(scatter) + information)


def relaxed(rows, scatter, measure, alone=None):
    """The least standard deviation with fractions of postures, by a general optimiser."""
    groups = [np.ones(len(rows), dtype=bool)] if alone is None else [alone, ~alone]
    numbers = [COUNT] if alone is None else [1, COUNT - 1]
    sums = [
        {"type": "eq", "fun": lambda w, g=group, n=number: w[g].sum() - n}
        for group, number in zip(groups, numbers, strict=True)
    ]
    start = sum(n * g / g.sum() for g, n in zip(groups, numbers, strict=True))
    found = minimize(
        lambda w: np.log(measure(after(rows, scatter, w))),
        start,
        bounds=[(0.0, COUNT)] * len(rows),
        constraints=sums,
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return float(np.exp(found.fun))


@pytest.mark.parametrize(("objective", "measure"), CASES)
def test_slopes_are_the_derivatives(rows, scatter, objective, measure):
    M = np.linalg.inv(scatter) + rows[0].T @ rows[0]
    value, slope = objective(M)
    assert value == pytest.approx(-np.log(measure(np.linalg.inv(M))), rel=1e-12)
    step = 1e-6 * rows[1].T @ rows[1]
    change = (objective(M + step)[0] - objective(M - step)[0]) / 2.0
    assert change == pytest.approx(np.sum(slope * step), rel=1e-5)


@pytest.mark.parametrize(("objective", "measure"), CASES)
def test_no_plan_is_better_than_the_bound(rows, scatter, objective, measure):
    """All 84 plans of three of seven postures, which may repeat; the bound is nearly exact."""
    stds, efficiencies = [], []
    for plan in combinations_with_replacement(range(len(rows)), COUNT):
        stds.append(
            measure(after(rows, scatter, np.bincount(plan, minlength=len(rows))))
        )
        efficiencies.append(plan_efficiency(rows[list(plan)], rows, scatter, objective))
    bounds = np.multiply(stds, efficiencies)
    best = relaxed(rows, scatter, measure)
    assert bounds.max() <= best * (1.0 + 1e-9)
    assert bounds.min() >= best * 0.99
    assert best <= min(stds)
    assert max(efficiencies) <= 1.0
    assert np.argmax(efficiencies) == np.argmin(stds)


@pytest.mark.parametrize(("objective", "measure"), CASES)
def test_groups_keep_their_numbers(rows, scatter, objective, measure):
    """One of two marked postures, and two of the others: the optimum with that is less good."""
    alone = np.array([True, True, False, False, False, False, False])
    both = np.concatenate((alone[[0, 4, 5]], alone))
    std = measure(after(rows, scatter, [1, 0, 0, 0, 1, 1, 0]))
    found = std * plan_efficiency(rows[[0, 4, 5]], rows, scatter, objective, both)
    best = relaxed(rows, scatter, measure, alone)
    assert 0.99 * best <= found <= best * (1.0 + 1e-9)
    assert best > 1.001 * relaxed(rows, scatter, measure)
