"""Choosing postures: each score and update against its definition."""

from itertools import combinations

import numpy as np
import pytest

from com_identification.planning.planner import (
    choose_greedily,
    covariance_without,
    information_gain,
    prediction_score,
    update_covariance,
)
from com_identification.regression.statics import Statics, prediction_rows


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(9, 2, 5))


def after(scatter, *rows):
    return np.linalg.inv(np.linalg.inv(scatter) + sum(A.T @ A for A in rows))


def test_nats_are_what_the_volume_loses(rows, scatter):
    for value, A in zip(information_gain(scatter, rows), rows, strict=True):
        lost = np.linalg.slogdet(scatter)[1] - np.linalg.slogdet(after(scatter, A))[1]
        assert value == pytest.approx(lost / 2.0, rel=1e-9)


def test_nats_of_the_bodies_leave_out_what_is_learnt_of_the_sensors(rows, scatter):
    """The first three parameters are the bodies': what their marginal covariance loses."""
    for value, A in zip(information_gain(scatter, rows, 3), rows, strict=True):
        lost = np.linalg.slogdet(scatter[:3, :3])[1]
        lost -= np.linalg.slogdet(after(scatter, A)[:3, :3])[1]
        assert value == pytest.approx(lost / 2.0, rel=1e-9)


def test_prediction_score_is_what_the_mean_variance_loses(rows, scatter):
    C = np.random.default_rng(2).normal(size=(7, 5))
    for value, A in zip(
        prediction_score(C.T @ C / 7)(scatter, rows), rows, strict=True
    ):
        lost = np.trace(C @ (scatter - after(scatter, A)) @ C.T) / 7
        assert value == pytest.approx(lost, rel=1e-9)


def test_learning_and_leaving_out_are_what_they_say(rows, scatter):
    np.testing.assert_allclose(
        update_covariance(scatter, rows[0]), after(scatter, rows[0]), atol=1e-12
    )
    np.testing.assert_allclose(
        covariance_without(scatter, rows[:4], 2),
        after(scatter, rows[0], rows[1], rows[3]),
        atol=1e-12,
    )


def test_the_first_choice_is_the_best_and_none_is_chosen_twice(rows, scatter):
    chosen = choose_greedily(rows, 9, scatter, information_gain)
    assert sorted(chosen) == list(range(9))
    assert chosen[0] == int(np.argmax(information_gain(scatter, rows)))
    values = {
        pair: np.linalg.slogdet(after(scatter, *rows[list(pair)]))[1]
        for pair in combinations(range(9), 2)
    }
    greedy = values[tuple(sorted(chosen[:2]))]
    assert greedy <= np.median(list(values.values()))


@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0])
def test_a_fraction_is_on_one_foot_as_far_as_there_are_enough(rows, scatter, fraction):
    alone = np.arange(9) % 3 > 0  # six of nine
    chosen = choose_greedily(rows, 4, scatter, information_gain, alone, fraction)
    # three others are all there are
    expected = min(round(4 * fraction), 6) if fraction else 1
    assert (len(chosen), len(set(chosen)), alone[chosen].sum()) == (4, 4, expected)


def test_prediction_rows_are_derivatives_of_the_com_across_gravity(hoap2, perturbed):
    """Pinocchio's CoM of robots with a little more here and there."""
    model, feet = hoap2
    rng = np.random.default_rng(0)
    truth, _, com = perturbed(rng, 1e-6)
    statics = Statics(model)
    q = rng.uniform(model.lower, model.upper)
    up = truth.frame(q, feet[0].frame)[0][:, 2]
    change = np.zeros((model.bodies.count, 4))
    change[:, 1:] = model.bodies.mass[:, None] * com - model.bodies.first_moment
    slope = prediction_rows(
        statics, statics.poses(q[None]), up[None], statics.parameters
    )[0]
    plain = perturbed(np.random.default_rng(0), 0.0)[0]
    moved = truth.com(q) - plain.com(q)
    np.testing.assert_allclose(
        slope @ change.ravel(), moved - up * (up @ moved), atol=1e-12
    )
    # A kilogram at the CoM changes nothing, wherever it is.
    heavier = np.zeros((model.bodies.count, 4))
    heavier[0] = [1.0, *plain.com(q)]
    np.testing.assert_allclose(slope @ heavier.ravel(), 0.0, atol=1e-12)
