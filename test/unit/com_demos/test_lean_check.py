"""Which robots can lean to the edge of their soles is known before anything starts."""

from com_demos.hidden_load import hide_load
from com_demos.lean_check import lean_problem
from com_model import load_robot


def problem(model, config, seconds):
    attached = config.attach(model)
    _, load = hide_load(attached, config)
    return lean_problem(attached, config, load.margin, seconds)


def test_a_robot_that_can():
    assert problem(*load_robot("hoap2"), 4.5) == ""


def test_straight_legs_cannot_bow_forwards():
    model, config = load_robot("biped3")
    assert problem(model, config, 4.5) == ""  # to the heels
    assert "l_ankle, r_ankle" in problem(model, config, 8.5)
