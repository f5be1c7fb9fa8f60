"""The floating-base filter's update, payload test and error budget, against textbook and chance."""

from itertools import cycle

import numpy as np
import pytest

from com_estimation.trunk.floating_base import FloatingBaseOptions
from com_estimation.trunk.floating_base.filter_types import STATE, STATES
from com_estimation.trunk.floating_base.options import (
    GROUPS,
    UNSEEN,
    Priors,
    describe,
    unseen_covariances,
    variance_fractions,
)
from com_estimation.trunk.floating_base.payload import PayloadTest, is_withdrawn
from com_estimation.trunk.floating_base.update import update_states, widened

pytestmark = pytest.mark.slow

MASS, DISTANCE = 300.0, 1.2


# --- update -----------------------------------------------------------------------------------
def textbook(H, residual, noise, held, x, P):
    """Kalman's update with a gain of zero for the states that are held, Joseph's form."""
    S = H @ P @ H.T + noise * np.eye(len(H))
    K = P @ H.T @ np.linalg.inv(S)
    K[held] = 0.0
    left = np.eye(len(x)) - K @ H
    return x + K @ residual, left @ P @ left.T + noise * K @ K.T


@pytest.mark.parametrize("gate", [1e9, 0.5], ids=["inlier", "outlier"])
@pytest.mark.parametrize("hold", [0, 70])
def test_the_update_is_that_of_the_textbook(gate, hold):
    rng = np.random.default_rng(1)
    H, residual, x = (
        rng.normal(size=(6, STATES)),
        rng.normal(size=6),
        rng.normal(size=STATES),
    )
    root = rng.normal(size=(STATES, STATES))
    P = root @ root.T
    held = np.arange(STATES) >= STATES - hold
    noise = 30.0
    d2 = residual @ np.linalg.solve(H @ P @ H.T + noise * np.eye(6), residual)
    inflated = noise * max(d2 / gate, 1.0)
    expected_x, expected_P = textbook(H, residual, inflated, held, x, P)

    got = update_states(H, residual, noise, gate, held, x, P)

    assert got == pytest.approx(d2)
    np.testing.assert_allclose(x, expected_x, atol=1e-9)
    np.testing.assert_allclose(P, expected_P, atol=1e-8)
    np.testing.assert_array_equal(P, P.T)


# --- payload ----------------------------------------------------------------------------------
class Strides:
    """Quarter strides that say (m, m c_x, m c_y) with a scatter, in a payload test."""

    def __init__(self, scatter=1.0, seed=1, per_hour=0.1):
        self.test = PayloadTest(MASS, DISTANCE, per_hour)
        self.rng = np.random.default_rng(seed)
        self.value = np.array([MASS, -10.0, 20.0])
        # Four quarter strides averaged have a quarter of the variance of one.
        self.std = scatter * 2.0 * np.sqrt(np.diag(self.test.scatter))
        self.P = np.diag(np.square([3.0, 1.5, 0.9]))  # of h in the filter

    def quarter(self, duration=0.25):
        information = np.diag(1.0 / self.std**2)
        value = self.value + self.std * self.rng.standard_normal(3)
        return self.test.add(information, information @ value, duration, self.P)


@pytest.mark.exhaustive
@pytest.mark.parametrize("scatter", [0.3, 1.0, 3.0], ids=["smooth", "usual", "rough"])
def test_false_alarms_are_not_more_than_asked_for(scatter):
    """Four hours at 1 Hz, one false alarm an hour allowed; the ground may be rough."""
    strides = Strides(scatter, per_hour=1.0)
    alarms = sum(strides.quarter() > 0 for _ in range(4 * 3600 * 4))
    assert alarms <= 4


def test_a_rarer_false_alarm_takes_a_larger_step():
    levels = [Strides(per_hour=rate).test.level for rate in (10.0, 1.0, 0.1, 0.01)]
    assert np.diff(levels) == pytest.approx(9.5)
    assert levels[2] == pytest.approx(40.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_payload_of_one_percent_at_a_corner_is_noticed(seed):
    strides = Strides(seed=seed)
    assert not any(strides.quarter() for _ in range(40))
    strides.value = strides.value + 3.0 * np.array([1.0, 0.55, 0.2])
    found = [strides.quarter() for _ in range(6)]
    assert any(found)
    first = next(i for i, alarm in enumerate(found) if alarm)
    assert (
        first + 1 <= found[first] <= first + 4
    )  # back to before the step, not much farther


def test_a_payload_is_noticed_by_strides_whose_quarters_differ():
    """Joints that rub lift one diagonal's feet later than the other's, in each stride alike."""
    strides, quarters = Strides(), cycle((0.27, 0.20, 0.24, 0.30))
    assert not any(strides.quarter(next(quarters)) for _ in range(40))
    assert strides.test.learned
    strides.value = strides.value + 3.0 * np.array([1.0, 0.55, 0.2])
    assert any(strides.quarter(next(quarters)) for _ in range(8))


def test_what_the_filter_learns_of_other_errors_is_no_payload():
    """The estimate moves as far as its covariance shrinks; without that, the step is an alarm."""
    move = np.array([1.4, -1.5, 0.3])
    for shrinks in (True, False):
        strides = Strides()
        assert not any(strides.quarter() for _ in range(16))
        strides.value = strides.value + move
        if shrinks:
            strides.P = strides.P - np.outer(move, move)
        found = [strides.quarter() for _ in range(8)]
        assert any(found) is not shrinks
        assert strides.test.statistic > 0.5 * strides.test.level or not shrinks, (
            "suspected"
        )


def test_a_payload_is_noticed_while_the_filter_learns():
    """A step well beyond what is learned; five times that is no chance."""
    move = np.array([1.4, -1.5, 0.3])
    strides = Strides()
    assert not any(strides.quarter() for _ in range(16))
    strides.value = strides.value + 5.7 * move
    strides.P = strides.P - np.outer(move, move)
    assert any(strides.quarter() for _ in range(8))


def test_another_gait_is_no_payload():
    strides = Strides()
    for _ in range(40):
        assert strides.quarter() == 0
    strides.value += np.array(
        [3.0, 2.0, 1.0]
    )  # what errors do differs from gait to gait
    assert not any(strides.quarter(0.125) for _ in range(60))
    assert strides.test.learned


def test_a_change_that_stays_without_an_alarm_becomes_usual():
    strides = Strides(scatter=0.01)
    for _ in range(60):
        strides.quarter()
    strides.value += np.array([0.9, 0.0, 0.0])
    statistics, surplus = [], []
    for _ in range(24):
        assert strides.quarter() == 0
        statistics.append(strides.test.statistic)
        surplus.append(strides.test.surplus[0])
    assert max(statistics) > 0.5 * strides.test.level
    assert not strides.test.suspicious
    assert max(surplus) == pytest.approx(0.9, abs=0.1)


def test_a_step_that_is_gone_or_another_one_is_withdrawn():
    alarm, payload = PayloadTest(300.0, 1.0, 0.1), np.array([3.0, 1.6, 0.6])
    for part in (0.45, 0.7, 1.0):  # of its stride was after the step
        alarm.step = part * payload
        assert not is_withdrawn(alarm, payload)
    assert is_withdrawn(alarm, np.array([0.3, 0.1, -0.1]))
    assert not is_withdrawn(alarm, payload)
    alarm.step = np.array([0.3, 0.1, -0.1])  # raised without a step: it is the ground
    assert is_withdrawn(alarm, payload)


# --- error budget -----------------------------------------------------------------------------
def test_what_no_motion_shows_moves_the_com_by_its_share_of_the_moment():
    """Legs of one link of 8 kg (a cube of water of 0.2 m) each, on a trunk of 40 kg."""
    mass, legs, com = 40.0, np.full(4, 8.0), np.array([0.02, -0.01, 0.05])
    x, T = np.zeros(STATES), np.hstack((-com[:, None], np.eye(3))) / mass
    x[:4] = mass, *(mass * com)
    own, gain = (
        np.array([32.0, 2.0, 1.0, -6.0]),
        1e-6,
    )  # kg, kg m: mass, moment of the legs
    priors = Priors(link_com=0.1, common_gain=gain)
    found = unseen_covariances(priors, T, x, legs, own)
    each = 0.1 * 0.2 * 8.0 / mass  # m, by the CoM of one link
    np.testing.assert_allclose(found["link_com"], 4.0 * each**2 * np.eye(3))
    # torques that are larger by the gain carry so much more of the legs and the trunk
    believed = x[:4] + gain * (x[:4] + own)
    moved = believed[1:] / believed[0] - com
    std = np.sqrt(np.diag(found["common_gain"]))
    np.testing.assert_allclose(std, np.abs(moved), rtol=1e-5)


def test_the_budget_is_what_knowing_a_group_would_spare():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(STATES, STATES))
    P, T = root @ root.T + np.eye(STATES), rng.normal(size=(3, 4))
    unseen = {name: np.diag(rng.uniform(1.0, 9.0, 3)) for name in UNSEEN}
    fractions = variance_fractions(P, T, unseen)
    assert set(fractions) == set(GROUPS) | set(UNSEEN)
    block = STATE.zero
    known = P - P[:, block] @ np.linalg.solve(
        P[block, block], P[block]
    )  # given the zeros
    total = np.diag(T @ P[:4, :4] @ T.T + sum(unseen.values()))
    spared = (total - sum(map(np.diag, unseen.values()))) / total
    spared -= np.diag(T @ known[:4, :4] @ T.T) / total
    np.testing.assert_allclose(
        fractions["link_com"], np.diag(unseen["link_com"]) / total, atol=1e-12
    )
    np.testing.assert_allclose(fractions["zero"], spared, atol=1e-6)


def test_the_budget_in_words():
    fractions = {name: np.full(3, 0.05) for name in GROUPS} | {
        "link": np.array([0.9, 0.4, 0.1])
    }
    text = describe(fractions, [3e-3, 1e-3, 5e-3], Priors())
    assert text == (
        "x is known to 3 mm: leg links' masses +-10 % make 90 % of the variance: weigh the links, "
        "and lower priors.link_mass"
    )
    assert describe(fractions | {"link": np.zeros(3)}, [1e-3, 2e-3, 0.0], Priors()) == (
        "y is known to 2 mm: no error dominates"
    )


def test_hips_that_disagree_widen_what_they_have_in_common():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((STATES, STATES))
    P, x, prior = A @ A.T / STATES, np.zeros(STATES), 0.003
    np.testing.assert_array_equal(widened(P, x, prior), P)
    x[STATE.hip] = [
        0.003,
        0.0,
        -0.003,
        0.0,
    ]  # sqrt(2) standard deviations of the difference
    wide = widened(P, x, prior)
    own = np.zeros((STATES, 4))
    own[STATE.hip] = np.eye(4)
    # the hips' own variance doubles, and that of others by what they share with them
    np.testing.assert_allclose(
        own.T @ (wide - P) @ own, own.T @ P @ own, rtol=1e-9, atol=1e-12
    )
    assert (np.linalg.eigvalsh(wide - P) > -1e-12).all()
    others = np.delete(np.arange(STATES), np.r_[STATE.hip])
    known = P[np.ix_(others, others)] - P[others, STATE.hip] @ np.linalg.solve(
        P[STATE.hip, STATE.hip], P[STATE.hip, others]
    )
    rest = wide[np.ix_(others, others)] - wide[others, STATE.hip] @ np.linalg.solve(
        wide[STATE.hip, STATE.hip], wide[STATE.hip, others]
    )
    np.testing.assert_allclose(rest, known, atol=1e-9)


def test_every_state_has_a_prior_of_its_size():
    std = FloatingBaseOptions().priors.state_std(
        300.0, 20.0, 2000.0, np.array([1.2, 0.7])
    )
    assert std.shape == (STATES,)
    assert std[STATE.mass] == 60.0
    assert std[STATE.torque_bias] == pytest.approx(18.0)
    assert np.rad2deg(std[STATE.zero]) == pytest.approx(0.5, abs=0.01)
    assert std[STATE.rotor] == pytest.approx(0.003 * 2000.0 * 0.7 / 9.81, rel=1e-3)
