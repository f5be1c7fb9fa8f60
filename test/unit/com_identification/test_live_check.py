"""What a standing robot's sensors read against its configuration: wrong signs, frames, units."""

from dataclasses import replace

import numpy as np
import pytest

from com_identification.feet.wrench_check import check_readings
from com_identification.regression.postures import SensorPrediction
from com_identification.regression.statics import Statics
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import link_pose
from com_model.robots import load_robot


@pytest.fixture(scope="module", params=["hoap2", "scalf2"])
def robot(request):
    """Model, configuration, posture, wrenches and acceleration of a robot at rest."""
    model, config = load_robot(request.param)
    statics, q = Statics(model), config.nominal_posture(model)
    up = np.array([0.0, 0.0, 1.0])
    prediction = SensorPrediction(statics, config.feet, statics.parameters, GRAVITY)
    stand = tuple(range(len(config.feet)))
    posture = prediction.posture(q, up, stand, False, 100)
    R = link_pose(model, q, config.imu_link or model.root_link)[0]
    return model, config, q, posture.wrenches, R.T @ up * GRAVITY


def test_what_fits_is_said_with_the_weight(robot):
    model, *_ = robot
    good, bad = check_readings(*robot)
    assert bad == []
    assert len(good) == 2
    assert f"of the robot's {GRAVITY * model.mass:.4g} N" in good[1]


def test_a_wrong_sign_and_a_wrong_unit_of_wrenches_are_found(robot):
    model, config, q, wrenches, acceleration = robot
    _, bad = check_readings(model, config, q, -wrenches, acceleration)
    assert any("sign" in text for text in bad)
    _, bad = check_readings(model, config, q, wrenches / GRAVITY, acceleration)
    assert any("kg" in text or "unit" in text for text in bad)


def test_silent_sensors_are_named(robot):
    model, config, q, wrenches, acceleration = robot
    first = np.array(wrenches)
    first[0] = np.nan
    _, bad = check_readings(model, config, q, first, acceleration)
    assert bad == [
        f"feet.{config.feet[0].frame}.wrench: no readings: correct its topic"
    ]
    _, bad = check_readings(
        model,
        replace(config, imu_link=model.root_link),
        q,
        wrenches,
        np.full(3, np.nan),
    )
    assert bad == ["imu: no readings: correct the remapping of its topic"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda a: -a, "reads gravity downwards, expected upwards .REP 145.: negate"),
        (lambda a: a / GRAVITY, "reads 1 m/s.2 at rest, expected 9.81: its unit"),
        (lambda a: a[[2, 0, 1]], "imu: gravity is 90 degrees off the soles' normal"),
    ],
)
def test_a_wrong_imu_is_found(robot, change, text):
    model, config, q, wrenches, acceleration = robot
    _, bad = check_readings(model, config, q, wrenches, change(acceleration))
    assert len(bad) == 1
    with pytest.raises(AssertionError, match=text):
        raise AssertionError(bad[0])
