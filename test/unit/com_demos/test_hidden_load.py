"""Robots that differ from their URDF, and what is said of the difference."""

import numpy as np
import pytest

from com_demos.hidden_load import (
    SHIFT_FRACTION,
    displace_battery,
    find_load,
    flat_feet,
    hide_load,
)
from com_model import Sesc, load_robot


@pytest.fixture(params=["hoap2", "hoap3", "itu_biped"])
def robot(request):
    return load_robot(request.param)


def test_the_load_makes_the_true_com_leave_the_soles_where_the_believed_one_does_not(
    robot,
):
    model, config = robot
    true, load = hide_load(model, config)
    assert flat_feet(config)
    assert true.mass == pytest.approx(model.mass + load.mass)
    q = config.nominal_posture(model)
    np.testing.assert_allclose(
        Sesc(true).com(q) - Sesc(model).com(q), load.shift, atol=1e-12
    )
    behind = np.linalg.norm(load.shift[:2])
    assert behind == pytest.approx(SHIFT_FRACTION * load.reach, rel=0.02)
    # It leans until 0.9 of the way to the margin.
    believed = load.reach - 0.9 * (load.reach - load.margin)
    assert believed > 0.0
    assert believed - behind < 0.0


def test_what_was_found_is_the_load(robot):
    model, config = robot
    true, load = hide_load(model, config)
    found = find_load(model, true, config)
    assert found.mass == pytest.approx(load.mass)
    assert found.left == pytest.approx(0.0, abs=2e-3)
    shift = np.linalg.norm(load.shift[:2])
    assert found.behind == pytest.approx(shift * true.mass / load.mass, rel=0.02)
    assert f"{load.mass:.2f} kg" in found.text()


def test_without_a_difference_no_place_is_claimed(robot):
    model, config = robot
    found = find_load(model, model, config)
    assert found.mass == 0.0
    assert np.isnan(found.behind)


def test_a_displaced_battery_weighs_nothing_more(robot):
    model, config = robot
    true, text = displace_battery(model, config, 0.005, 1)
    assert true.mass == pytest.approx(model.mass)
    q = config.nominal_posture(model)
    assert np.linalg.norm((Sesc(true).com(q) - Sesc(model).com(q))[:2]) > 0.002
    assert "battery" in text
    again, _ = displace_battery(model, config, 0.005, 1)
    np.testing.assert_array_equal(true.link_coms, again.link_coms)
