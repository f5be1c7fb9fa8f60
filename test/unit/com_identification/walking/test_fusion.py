"""Walking and resting postures as one regression: better than each alone, and honest."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2
from walk_recording import Recorded, standing_wrenches

from com_bags import WalkLog
from com_identification.commands.walk_identification import report_text
from com_identification.exceptions import WalkError
from com_identification.regression.postures import Posture, make_posture
from com_identification.settings import (
    FitSettings,
    IdentificationSettings,
    SensorNoise,
    SensorPriors,
)
from com_identification.walking.combination import fuse
from com_identification.walking.identify import WalkResult, identify_walking
from com_identification.walking.log import walking_parts
from com_identification.walking.unknowns import to_eta
from com_model.geometry.rotations import rotations_about

pytestmark = pytest.mark.slow

NOISE = SensorNoise(
    force=0.5, moment=0.025, position=np.radians(0.05), tilt=np.radians(0.05)
)
SETTINGS = IdentificationSettings(
    noise=NOISE,
    sensors=SensorPriors.calibrated(),
    fit=FitSettings(use_imu=True, folds=0),
)
SAMPLES = 100


def _postures(
    recorded: Recorded,
    walk: WalkResult,
    z: np.ndarray,
    rng: np.random.Generator,
    count: int,
) -> list[Posture]:
    """What force sensors in the feet and the IMU of a robot with unknowns z (Z,) read."""
    found, average, sensors = [], 1.0 / np.sqrt(SAMPLES), SETTINGS.sensors
    weight = 9.81 * recorded.believed.mass
    stds = np.repeat([weight * sensors.force_bias, weight * sensors.moment_bias], 3)
    bias, mounting = rng.normal(0.0, stds, (4, 6)), rng.normal(0.0, sensors.tilt, 3)
    for _ in range(count):
        q = walk.posture + rng.uniform(-0.25, 0.25, len(walk.posture))
        tilt = rotations_about(np.eye(3)[:2], rng.uniform(-0.3, 0.3, 2))
        up = tilt[0] @ tilt[1][:, 2]
        wrenches = standing_wrenches(recorded, walk.unknowns.theta(z), q, up)
        wrenches += bias + average * rng.normal(
            0.0, np.repeat([NOISE.force, NOISE.moment], 3), (4, 6)
        )
        read = up + np.cross(mounting + rng.normal(0.0, NOISE.tilt, 3), up)
        q = q + average * rng.normal(0.0, NOISE.position, len(q))
        up = read / np.linalg.norm(read)
        found.append(make_posture(walk.model, q, wrenches, up=up, samples=SAMPLES))
    return found


def _draw(walk: WalkResult, rng: np.random.Generator) -> np.ndarray:
    """Unknowns (Z,) as the walk leaves them possible, with a total mass by the linear part."""
    z, mass = rng.multivariate_normal(walk.z, walk.covariance), walk.total_mass[0]
    linear = 1.0 + walk.unknowns.mass_direction(walk.z) @ (z - walk.z)
    return walk.unknowns.scaled(z, linear * mass / walk.unknowns.total_mass(z))


def _stds(result: WalkResult, q: np.ndarray) -> np.ndarray:
    return np.sqrt(np.diag(result.com(q)[1]))


@pytest.mark.exhaustive
def test_both_together_are_better_than_each_alone_and_honest(
    recorded: Recorded, result: WalkResult
) -> None:
    nothing = replace(
        result, z=result.unknowns.mean, covariance=np.diag(result.unknowns.std**2)
    )
    squares, seeds = 0.0, 8
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        z = _draw(result, rng)
        postures = _postures(recorded, result, z, rng, 8)
        fused = fuse(result, recorded.config.feet, postures, SETTINGS)
        assert fused.accepted, fused.gates[-1]
        q = result.posture + rng.uniform(-0.3, 0.3, len(result.posture))
        com, C = fused.com(q)
        error = com - result.unknowns.com(z, q)[0]
        squares += float(error @ np.linalg.solve(C, error))
        if seed == 0:
            resting = fuse(nothing, recorded.config.feet, postures, SETTINGS)
            assert (_stds(fused, q) < _stds(resting, q)).all()
            assert (_stds(fused, q) < _stds(result, q)).all()
            assert np.linalg.norm(_stds(fused, q)) < 0.9 * np.linalg.norm(
                _stds(result, q)
            )
            assert (
                np.linalg.eigvalsh(fused.covariance / result.covariance.max()).min()
                > -1e-9
            )
            assert "8 resting postures" in report_text(fused)
    print(f"NEES {squares / (3 * seeds):.2f} per dimension over {seeds} seeds")
    low, high = chi2.ppf([0.005, 0.995], 3 * seeds)
    assert low < squares < high


def test_postures_set_the_scale_of_a_robot_that_nobody_has_weighed(
    recorded: Recorded,
) -> None:
    log = replace(
        recorded.log, effort=1.02 * recorded.log.effort
    )  # all drives read too much
    walk = identify_walking([log], recorded.believed, recorded.config)
    inertial, z = to_eta(recorded.true.bodies).ravel(), walk.unknowns.mean.copy()
    z[: len(inertial)] = inertial
    postures = _postures(recorded, walk, z, np.random.default_rng(0), 8)
    fused = fuse(walk, recorded.config.feet, postures, SETTINGS)
    assert fused.accepted, fused.gates[-1]
    mass, (before, before_std), (after, std) = (
        recorded.true.mass,
        walk.total_mass,
        fused.total_mass,
    )
    assert before / mass - 1.0 > 0.015
    assert abs(after - mass) < 0.1 * abs(before - mass)
    assert abs(after - mass) < 3.0 * std
    assert std < 0.2 * before_std
    q = walk.posture
    truth = walk.unknowns.com(z, q)[0]
    off = [np.linalg.norm(each.com(q)[0] - truth) for each in (walk, fused)]
    assert off[1] < max(off[0], 1e-3)


def test_a_load_that_only_the_postures_have_is_refused(
    recorded: Recorded, result: WalkResult
) -> None:
    z = result.unknowns.scaled(result.z, 1.1)
    postures = _postures(recorded, result, z, np.random.default_rng(0), 8)
    fused = fuse(result, recorded.config.feet, postures, SETTINGS)
    assert not fused.accepted
    assert not fused.gates[-1].passed


def test_the_parts_of_a_recording_that_walk_are_found(recorded: Recorded) -> None:
    log = recorded.log
    rests = (log.time > 8.0) & (log.time < 15.0)
    held = np.where(rests[:, None], log.position[np.argmax(rests)], log.position)
    held += 2e-4 * np.random.default_rng(0).standard_normal(
        held.shape
    )  # of the encoders
    parts = walking_parts(replace(log, position=held))
    assert [(p.time[0], p.time[-1]) for p in parts] == [
        (0.0, pytest.approx(8.0, abs=0.6)),
        (pytest.approx(15.0, abs=0.6), pytest.approx(log.time[-1], abs=0.6)),
    ]
    assert len(parts[0].effort) == len(parts[0].time)
    still = replace(log, position=held)
    still = WalkLog(*(v if v is None else v[rests] for v in vars(still).values()))
    assert walking_parts(still) == []
    with pytest.raises(WalkError, match="never walks for 3 s"):
        identify_walking([], recorded.believed, recorded.config)
