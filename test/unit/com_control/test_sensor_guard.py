"""Sensors that fail are noticed, and those that only read what is there are not."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from shipped_robot import shipped_robot

from com_control.sensor_guard import Sensor, SensorGuard
from com_control.walking.biped import Biped
from com_model.dynamics import GRAVITY

DT = 0.005


class Walk:
    """Readings with noise of a robot that shifts its weight from foot to foot."""

    def __init__(self):
        config, model, posture, _ = shipped_robot("hoap2")
        self.biped = Biped.from_config(model, config)
        legs = [np.asarray(leg.joints) for leg in self.biped.legs]
        self.guard, self.posture = SensorGuard(model, legs), posture
        self.weight = model.mass * GRAVITY
        self.rng, self.time = np.random.default_rng(0), 0.0

    def read(self):
        """R (3, 3), q (n,), wrenches (2, 6) and the targets (n,)."""
        self.time += DT
        legs = np.concatenate([leg.joints for leg in self.biped.legs])
        target = self.posture.copy()
        target[legs] += 0.2 * np.sin(4.0 * self.time)
        left = 0.5 + 0.5 * np.sin(5.0 * self.time)
        wrenches = self.rng.normal(0.0, 1e-3, (2, 6)) * self.weight
        wrenches[:, 2] += np.array([left, 1.0 - left]) * self.weight
        R = Rotation.from_rotvec(self.rng.normal(0.0, 5e-4, 3)).as_matrix()
        return R, target + self.rng.normal(0.0, 2e-4, len(target)), wrenches, target

    def run(self, seconds, change=lambda *readings: readings, moves=True):
        """Feed the guard; return the sensors that failed at any time."""
        failed = Sensor.NONE
        for _ in range(round(seconds / DT)):
            R, q, wrenches, target = self.read()
            readings = change(R, q, wrenches)
            failed |= self.guard.update(*readings, target, moves, DT)
        return failed


@pytest.fixture
def walk():
    walk = Walk()
    assert walk.run(2.0) is Sensor.NONE
    return walk


def scaled(factor):
    return lambda R, q, w: (R, q, w * np.array([[factor], [1.0]]))


@pytest.mark.parametrize("factor", [-1.0, 0.0, 10.0])
def test_a_foot_that_does_not_carry_what_it_should(walk, factor):
    assert walk.run(1.0, scaled(factor)) is Sensor.WRENCHES


@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_a_wrong_mass_or_gain_is_no_failure(walk, factor):
    assert walk.run(2.0, lambda R, q, w: (R, q, factor * w)) is Sensor.NONE


@pytest.mark.parametrize(
    ("index", "sensor"), [(0, Sensor.IMU), (1, Sensor.ENCODERS), (2, Sensor.WRENCHES)]
)
def test_readings_that_stay_the_same_to_the_last_bit(walk, index, sensor):
    first = walk.read()

    def freeze(*readings):
        return tuple(first[i] if i == index else r for i, r in enumerate(readings))

    assert walk.run(0.02, freeze) is Sensor.NONE
    assert sensor in walk.run(0.1, freeze)


@pytest.mark.parametrize(
    ("rate", "omega", "failed"),
    [
        (0.3, 0.0, Sensor.IMU),
        (0.0, 0.3, Sensor.IMU),
        (0.3, 0.3, Sensor.NONE),
        (0.0, 0.05, Sensor.NONE),
    ],
)
def test_an_orientation_that_turns_unlike_the_gyroscope(walk, rate, omega, failed):
    found, begin = Sensor.NONE, walk.time
    gyro = np.array([0.0, omega, 0.0])
    for _ in range(round(0.15 / DT)):
        R, q, wrenches, target = walk.read()
        drift = Rotation.from_rotvec([0.0, rate * (walk.time - begin), 0.0])
        R = drift.as_matrix() @ R
        found |= walk.guard.update(R, q, wrenches, target, True, DT, gyro)
    assert found is failed


def test_a_standing_robot_may_read_the_same(walk):
    first = walk.read()
    target = first[3]
    for _ in range(200):
        assert walk.guard.update(*first[:3], target, False, DT) is Sensor.NONE


def test_an_encoder_that_jumps_is_not_believed_until_it_is_back(walk):
    knee = walk.biped.legs[0].joints[3]

    def jumped(R, q, w):
        return R, q + 0.15 * (np.arange(len(q)) == knee), w

    assert walk.run(0.5, jumped) is Sensor.ENCODERS
    walk.run(0.1)
    assert walk.run(0.5, moves=False) is Sensor.ENCODERS
    walk.run(0.6, moves=False)
    assert walk.guard.failed is Sensor.NONE


def test_of_a_walking_robot_nothing_is_believed_again(walk):
    """Between two steps a foot in the air reads what it should."""
    walk.run(1.5, scaled(0.0))
    assert walk.run(3.0) is Sensor.WRENCHES
