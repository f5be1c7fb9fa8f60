"""Contact by hysteresis: force and time must both be past their thresholds."""

import numpy as np
import pytest

from com_model.contact import ContactState

WEIGHT = 1000.0  # N: enters above 100, leaves below 50


def run(state, force, start, end, step=0.001):
    for time in np.arange(start, end, step):
        state.update(time, np.full(4, force))
    return state.contact


@pytest.fixture
def state():
    return ContactState(WEIGHT, 0.10)


def test_nothing_is_known_before_the_first_force_has_lasted(state):
    state.update(0.0, np.full(4, 500.0))
    assert not state.known.any()
    assert not state.contact.any()


def test_a_foot_stands_once_it_has_pressed_long_enough(state):
    assert not run(state, 500.0, 0.0, 0.0095).any()
    assert state.update(0.0101, np.full(4, 500.0)).all()
    assert state.known.all()


def test_a_short_push_is_no_contact(state):
    run(state, 0.0, 0.0, 0.05)
    run(state, 500.0, 0.05, 0.057)
    run(state, 0.0, 0.057, 0.07)
    assert not state.contact.any()
    assert state.known.all()


def test_a_foot_stays_down_between_the_thresholds_and_leaves_below(state):
    run(state, 500.0, 0.0, 0.1)
    assert run(state, 70.0, 0.1, 0.5).all()
    assert run(state, 40.0, 0.5, 0.5095).all()
    assert not run(state, 40.0, 0.5095, 0.515).any()


def test_a_foot_stays_up_between_the_thresholds(state):
    run(state, 0.0, 0.0, 0.1)
    assert not run(state, 70.0, 0.1, 0.5).any()


def test_feet_are_told_apart(state):
    force = np.array([500.0, 0.0, 0.0, 500.0])
    for time in np.arange(0.0, 0.05, 0.001):
        contact = state.update(time, force)
    np.testing.assert_array_equal(contact, [True, False, False, True])


def test_a_force_that_is_not_known_makes_only_its_foot_unknown(state):
    run(state, 500.0, 0.0, 0.1)
    contact = state.update(0.1, np.array([np.nan, 500.0, 500.0, 500.0]))
    np.testing.assert_array_equal(contact, [False, True, True, True])
    np.testing.assert_array_equal(state.known, [False, True, True, True])
    run(state, 500.0, 0.101, 0.108)
    assert not state.known[0]  # it must press for enter_time again
    assert run(state, 500.0, 0.108, 0.12).all()


def test_samples_far_apart_do_not_add_up_to_a_time(state):
    run(state, 0.0, 0.0, 0.05)
    state.update(0.05, np.full(4, 500.0))
    assert not state.update(1.0, np.full(4, 500.0)).any()


def test_time_that_goes_back_forgets_all(state):
    run(state, 500.0, 5.0, 5.1)
    state.update(1.0, np.full(4, 500.0))
    assert not state.known.any()


def test_the_answer_is_a_copy(state):
    contact = run(state, 500.0, 0.0, 0.1)
    contact[:] = False
    assert state.contact.all()


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan])
def test_a_robot_without_weight_is_refused(weight):
    with pytest.raises(ValueError, match="expected a positive number"):
        ContactState(weight)
