"""IMUs that fail, and samples that are late, repeated or missing."""

import re
from dataclasses import replace

import numpy as np
import pytest
from trot_samples import (
    COUNT,
    LEGS,
    MODEL,
    assert_sound,
    between,
    nan3,
    run,
    spoiled,
    trot,
    worst_is,
)

from com_estimation.trunk.pipeline import InputChecks
from com_estimation.trunk.sensor_checks import Severity, reason

pytestmark = pytest.mark.slow


def test_no_imu_for_a_second():
    def change(time, sample):
        if not 1.0 <= time < 2.0:
            return sample
        R = np.full((3, 3), np.nan)
        return replace(
            sample, angular_velocity=nan3(), specific_force=nan3(), R_world_imu=R
        )

    verdicts = run(trot(3.0), change)
    (late,) = between(verdicts, 1.5, 1.501)
    assert [p.severity for p in late.problems] == [Severity.DEGRADE]
    assert "no imu for 0.50 s: check its driver and topic" in reason(late.problems)
    assert late.sample is not None
    assert_sound(between(verdicts, 2.0, 3.0))


def test_accelerometer_missing():
    verdicts = run(trot(0.2), lambda t, s: replace(s, specific_force=nan3()))
    (late,) = between(verdicts, 0.1, 0.101)
    assert "the accelerometer is not known" in reason(late.problems)
    assert np.isfinite(late.sample.angular_velocity).all()


def test_imu_stuck():
    last = {}

    def change(time, sample):
        if not 1.0 <= time < 2.0:
            last["imu"] = sample
            return sample
        old = last["imu"]
        return replace(
            sample,
            angular_velocity=old.angular_velocity,
            specific_force=old.specific_force,
        )

    verdicts = run(trot(2.5), change)
    late = between(verdicts, 1.2, 2.0)
    assert all(
        "the imu has said exactly the same for" in reason(v.problems) for v in late
    )
    assert all(np.isnan(v.sample.specific_force).all() for v in late)
    assert all(np.isnan(v.sample.angular_velocity).all() for v in late)
    assert_sound(between(verdicts, 2.0, 2.5))


def test_an_imu_of_100_hz_is_not_stuck():
    last = {}

    def change(time, sample):
        if round(time * 1000) % 10 == 0:
            last["imu"] = sample
        old = last["imu"]
        return replace(
            sample,
            angular_velocity=old.angular_velocity,
            specific_force=old.specific_force,
        )

    assert_sound(run(trot(1.0), change).values())


@pytest.mark.parametrize(("scale", "offset"), [(1 / 9.81, 0.0), (1.0, -9.81)])
def test_an_accelerometer_in_other_units(scale, offset):
    def change(time, sample):
        return replace(
            sample, specific_force=sample.specific_force * scale + [0, 0, offset]
        )

    verdicts = run(trot(2.0), change)
    assert all(np.isnan(v.sample.specific_force).all() for v in verdicts.values())
    (late,) = between(verdicts, 0.1, 0.101)
    assert (
        "m/s^2 on average, not 9.81: it must give m/s^2 (not g), with gravity"
        in reason(late.problems)
    )
    assert np.isnan(late.sample.specific_force).all()
    assert np.isfinite(late.sample.R_world_imu).all()


def test_a_recording_that_begins_with_an_impact():
    def change(time, sample):
        factor = 3.0 if time < 0.005 else 1.0
        return replace(sample, specific_force=sample.specific_force * factor)

    verdicts = run(trot(0.5), change)
    assert not any("accelerometer" in reason(v.problems) for v in verdicts.values())
    assert_sound(between(verdicts, 0.1, 0.5))


def test_an_accelerometer_whose_unit_changes():
    def change(time, sample):
        return (
            replace(sample, specific_force=sample.specific_force / 9.81)
            if time > 0.5
            else sample
        )

    verdicts = run(trot(2.0), change)
    late = between(verdicts, 0.65, 2.0)
    assert all(np.isnan(v.sample.specific_force).all() for v in late)
    assert re.search(
        "the accelerometer says 1.0. m/s.2, not 9.81", reason(late[0].problems)
    )


def test_flight_is_no_fault_of_the_accelerometer():
    def change(time, sample):
        return (
            replace(sample, specific_force=0.01 * sample.specific_force)
            if flies(time)
            else sample
        )

    def flies(time):
        return time % 0.5 > 0.42

    assert_sound(run(trot(3.0), change).values())


def test_a_gap_is_no_stuck_encoder():
    """Joints that hardly move say the same before and after."""
    hips = np.arange(0, COUNT, 3)
    samples = [s for s in trot(6.0) if not 102.6 < s.time < 104.6]
    coarse = [spoiled(s, hips, position=np.round(s.position[hips], 3)) for s in samples]
    assert_sound(run(coarse).values())


# --- times -----------------------------------------------------------------------------------
def test_the_rate_halves_and_comes_back():
    samples = [s for k, s in enumerate(trot(4.0)) if not 1000 <= k < 2000 or k % 2 == 0]
    verdicts = run(samples)
    (late,) = between(verdicts, 1.9, 1.901)
    assert re.search(
        r"joint_states comes at 5\d\d Hz and came at 9\d\d", reason(late.problems)
    )
    assert late.sample is not None
    assert late.problems[0].severity is Severity.DEGRADE
    assert_sound(between(verdicts, 2.5, 4.0))


def test_a_pause_after_the_first_sample_is_no_rate():
    """As of a node that compiles its kernels while samples wait."""
    samples = trot(3.0)
    verdicts = run([samples[0], *samples[1000:]])
    assert_sound(between(verdicts, 1.1, 3.0))


def test_a_rate_that_is_too_low():
    (late,) = between(run(trot(1.0, rate=100.0)), 0.9, 0.901)
    assert "joint_states comes at 100 Hz: raise it to 150 Hz" in reason(late.problems)


def test_a_low_rate_that_the_user_asked_for_is_sound():
    verdicts = run(
        trot(2.0, rate=100.0), health=InputChecks(MODEL, LEGS, rate_hz=100.0)
    )
    assert_sound(verdicts.values())
    (late,) = between(
        run(trot(1.0, rate=100.0), health=InputChecks(MODEL, LEGS, rate_hz=140.0)),
        0.9,
        0.901,
    )
    assert "joint_states comes at 100 Hz: raise it to 112 Hz" in reason(late.problems)


def test_a_first_stamp_of_another_clock_is_no_fault():
    """A stamp of zero counts as the time of receipt, until the clock of the stamps has started."""
    samples = trot(2.0)
    first = replace(samples[0], time=1.7e9)
    health = InputChecks(MODEL, LEGS)
    assert_sound([health.check(first)])
    verdict = health.check(samples[1])
    assert verdict.restart
    assert_sound([verdict, *run(samples[2:], health=health).values()])


@pytest.mark.parametrize("lost", [{"angular_velocity"}, {"R_world_imu"}])
def test_one_reading_of_the_imu_that_is_missing_is_no_fault(lost):
    """At a low rate either, where it is many milliseconds."""
    unknown = {
        "angular_velocity": np.full(3, np.nan),
        "R_world_imu": np.full((3, 3), np.nan),
    }

    def change(time, sample):
        lose = round(time / 0.005) % 10 == 0
        return (
            replace(sample, **{name: unknown[name] for name in lost})
            if lose
            else sample
        )

    for verdict in run(trot(2.0, rate=200.0), change).values():
        assert reason(verdict.problems) == ""


def test_many_gaps():
    rng = np.random.default_rng(2)
    samples, hole = [], 0
    for sample in trot(3.0):
        hole = hole - 1 if hole else (4 if rng.uniform() < 0.2 else 0)
        if not hole:
            samples.append(sample)
    health = InputChecks(MODEL, LEGS)
    texts = {reason(health.check(sample).problems) for sample in samples}
    assert any(
        "% of the joint_states come after a gap: check the network" in t for t in texts
    )


def test_samples_that_come_twice_or_late_are_left_out():
    samples = list(trot(0.1))
    health = InputChecks(MODEL, LEGS)
    for sample in samples:
        health.check(sample)
    twice, late = health.check(samples[-1]), health.check(samples[-5])
    assert twice.sample is None
    assert late.sample is None
    assert "comes twice: is there a second driver? Such samples are left out" in reason(
        twice.problems
    )
    assert "went back by 0.0040 s" in reason(late.problems)
    assert worst_is(twice, Severity.DEGRADE)
    following = run([replace(s, time=s.time + 0.1) for s in trot(2.0)], health=health)
    assert worst_is(following[0.1], Severity.DEGRADE)
    assert_sound(between(following, 1.3, 2.0))


def test_a_recording_that_starts_again():
    health = InputChecks(MODEL, LEGS)
    run(trot(1.0), health=health)
    again = run(trot(2.5), health=health)
    assert [t for t, v in again.items() if v.restart] == [0.0]
    assert "the stamps went back: everything starts again" in reason(
        again[0.0].problems
    )
    assert again[0.0].sample is not None
    assert_sound(between(again, 1.1, 2.5))


def test_a_stamp_that_is_not_finite():
    health = InputChecks(MODEL, LEGS)
    sample = trot(1.0)[0]
    assert health.check(replace(sample, time=np.nan)).sample is None
