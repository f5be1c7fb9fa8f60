"""Errors of sensors: what stays the same in a run, what is drawn again, what is rounded."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_simulation.physics.sensors import (
    ENCODER_STEP,
    PRESETS,
    TROT_NOISE,
    Noise,
    NoiseLevels,
)
from com_simulation.physics.simulation import Simulation

JOINTS, FEET, COUNT = 25, 2, 4000


@pytest.fixture(scope="module")
def reading(hoap2):
    return Simulation(hoap2).advance()


@pytest.fixture(scope="module")
def changed(reading):
    """changed(seed, count, **levels): count readings of the same truth."""

    def make(seed, count, truth=reading, **levels):
        noise = Noise(NoiseLevels(**levels), JOINTS, FEET, seed)
        return [noise.add(truth) for _ in range(count)]

    return make


def stacked(readings, name):
    return np.array([getattr(reading, name) for reading in readings])


def test_positions_are_multiples_of_the_encoders_step(reading, changed):
    position = changed(1, 1, position_step=0.01)[0].position
    np.testing.assert_allclose(position / 0.01, np.round(position / 0.01), atol=1e-9)
    assert 0.0 < np.abs(position - reading.position).max() <= 0.005 + 1e-12
    assert 2 * np.pi / ENCODER_STEP == pytest.approx(2**16)


def test_noise_of_efforts_grows_with_them(reading, changed):
    truth = replace(reading, effort=np.linspace(-50.0, 200.0, JOINTS))
    efforts = stacked(changed(2, COUNT, truth, effort_relative=0.01), "effort")
    np.testing.assert_allclose(
        efforts.std(axis=0), 0.01 * np.abs(truth.effort), rtol=0.1
    )
    np.testing.assert_allclose(efforts.mean(axis=0), truth.effort, atol=0.1)
    both = stacked(changed(2, COUNT, truth, effort_relative=0.01, effort=0.5), "effort")
    np.testing.assert_allclose(
        both.std(axis=0), np.hypot(0.5, 0.01 * truth.effort), rtol=0.1
    )


def test_gain_errors_last_for_a_run(reading, changed):
    truth = replace(reading, effort=np.full(JOINTS, 100.0))
    gains = [
        changed(seed, 3, truth, effort_gain_error=0.01)[k]
        for seed in range(40)
        for k in (0, 2)
    ]
    efforts = stacked(gains, "effort").reshape(40, 2, JOINTS)
    np.testing.assert_array_equal(efforts[:, 0], efforts[:, 1])
    assert efforts.std() == pytest.approx(1.0, rel=0.1)
    assert len(np.unique(efforts[:, 0])) == 40 * JOINTS


def test_biases_last_for_a_run(reading, changed):
    levels = {"gyro_bias": 0.003, "accelerometer_bias": 0.02, "orientation_bias": 0.002}
    runs = [changed(seed, 2, **levels) for seed in range(200)]
    for name, std in (("angular_velocity", 0.003), ("specific_force", 0.02)):
        errors = np.array([stacked(run, name) for run in runs]) - getattr(reading, name)
        np.testing.assert_array_equal(errors[:, 0], errors[:, 1])
        assert errors.std() == pytest.approx(std, rel=0.15), name
    true = Rotation.from_quat(reading.imu_orientation)
    turns = [
        (true.inv() * Rotation.from_quat(run[1].imu_orientation)).as_rotvec()
        for run in runs
    ]
    assert np.std(turns) == pytest.approx(0.002, rel=0.15)
    np.testing.assert_array_equal(
        runs[0][0].imu_orientation, runs[0][1].imu_orientation
    )


def test_noise_of_forces_grows_with_them(reading, changed):
    wrenches = np.array([[30.0, 0.0, 400.0, 0.0, 3.0, 4.0], [0.0] * 6])
    truth = replace(reading, wrenches=wrenches)
    given = stacked(changed(3, COUNT, truth, force_relative=0.02), "wrenches")
    std = given.std(axis=0)
    np.testing.assert_allclose(std[0, :3], 0.02 * np.hypot(30.0, 400.0), rtol=0.1)
    np.testing.assert_allclose(std[0, 3:], 0.02 * 5.0, rtol=0.1)
    np.testing.assert_array_equal(given[:, 1], 0.0)
    np.testing.assert_array_equal(
        changed(3, 1, truth, force_relative=0.02)[0].foot_forces, reading.foot_forces
    )


def test_one_seed_one_run(reading):
    reading = replace(reading, effort=np.full(JOINTS, 100.0))
    first, again = (Noise(TROT_NOISE, JOINTS, FEET, 4) for _ in range(2))
    other = Noise(TROT_NOISE, JOINTS, FEET, 5)
    for _ in range(3):
        a, b, c = first.add(reading), again.add(reading), other.add(reading)
        for name in (
            "position",
            "effort",
            "wrenches",
            "imu_orientation",
            "specific_force",
        ):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        assert not np.array_equal(a.effort, c.effort)


def test_the_preset_of_a_trotting_robot():
    assert PRESETS["trot"] is TROT_NOISE
    assert PRESETS["none"] == NoiseLevels()
    assert TROT_NOISE.orientation == pytest.approx(np.deg2rad(0.2))
    assert TROT_NOISE.orientation_bias == pytest.approx(np.deg2rad(0.1))
    # two roundings, each uniform over a step, a millisecond apart
    roundings = np.random.default_rng(0).uniform(-0.5, 0.5, (100_000, 2)) * ENCODER_STEP
    speeds = (roundings[:, 1] - roundings[:, 0]) / 0.001
    assert TROT_NOISE.velocity == pytest.approx(speeds.std(), rel=0.02)


def test_the_preset_of_an_identification():
    levels = PRESETS["identification"]
    assert (levels.force, levels.torque) == (0.5, 0.025)
    assert levels.position == pytest.approx(np.deg2rad(0.05))
    assert levels.effort > 0.0
