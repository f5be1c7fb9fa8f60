"""Torque sensors and encoders that fail, and drives that only seem to."""

from dataclasses import replace

import numpy as np
import pytest
from trot_samples import (
    MODEL,
    assert_sound,
    between,
    run,
    spoiled,
    stuck,
    trot,
    worst_is,
)

from com_estimation.trunk.sensor_checks import Severity, reason

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("value", [0.0, 40.0, None])
@pytest.mark.parametrize("joint", [0, 4, 11])
def test_one_dead_torque_sensor(value, joint):
    last = {}

    def change(time, sample):
        if not 1.0 <= time < 2.0:
            last["effort"] = sample.effort[joint]
            return sample
        return spoiled(sample, joint, effort=last["effort"] if value is None else value)

    verdicts = run(trot(3.0), change)
    # Hardly a wrong torque gets through: one or two repeated samples, then NaN, then nothing.
    leaked = [
        v
        for v in between(verdicts, 1.0, 2.0)
        if v.sample and np.isfinite(v.sample.effort[joint])
    ]
    assert len(leaked) <= (0 if value == 0.0 else 2)
    late = between(verdicts, 1.2, 2.0)
    assert all(np.isnan(v.sample.effort[joint]) for v in late)
    assert all(np.isfinite(np.delete(v.sample.effort, joint)).all() for v in late)
    assert all(worst_is(v, Severity.DEGRADE) for v in late)
    text = reason(late[-1].problems)
    assert f"the effort of {MODEL.joint_names[joint]} (" in text
    assert "check the torque sensor" in text
    assert_sound(between(verdicts, 2.15, 3.0))


def test_a_drive_at_its_limit_is_no_dead_sensor():
    def change(time, sample):
        return spoiled(sample, 4, effort=90.0) if 1.0 <= time < 1.5 else sample

    assert_sound(run(trot(2.0), change).values())


@pytest.mark.parametrize("joint", [1, 5, 10])
def test_a_stuck_encoder_whose_velocity_goes_on(joint):
    verdicts = run(trot(5.0), stuck(joint, 2.0, 4.0))
    wrong = [
        t
        for t, (v, true) in zip(
            verdicts, zip(verdicts.values(), trot(5.0), strict=True), strict=True
        )
        if v.sample and abs(v.sample.position[joint] - true.position[joint]) > 0.01
    ]
    assert not wrong  # held back before the position is wrong by more than that
    during = between(verdicts, 2.0, 4.0)
    held = next(v for v in during if v.sample is None)
    assert f"the position of {MODEL.joint_names[joint]} (" in reason(held.problems)
    assert "check the encoder" in reason(held.problems)
    assert_sound(between(verdicts, 4.2, 5.0))


@pytest.mark.parametrize("joint", [1, 5, 10])
def test_a_stuck_encoder_without_velocity(joint):
    verdicts = run(trot(8.0), stuck(joint, 4.0, 6.5, velocity=0.0))
    late = between(verdicts, 5.6, 6.5)
    assert all(v.sample is None for v in late)
    assert f"the position of {MODEL.joint_names[joint]} (" in reason(late[0].problems)
    assert_sound(between(verdicts, 7.3, 8.0))  # after its next swing


def test_a_position_that_is_not_finite():
    verdicts = run(
        trot(1.0), lambda t, s: spoiled(s, 3, position=np.nan) if t < 0.5 else s
    )
    first = between(verdicts, 0.0, 0.5)
    assert all(v.sample is None for v in first)
    assert "the position of rf_haa is not finite: check its encoder" in reason(
        first[0].problems
    )
    assert_sound(between(verdicts, 0.7, 1.0))


def test_a_driver_that_hangs():
    last = {}

    def change(time, sample):
        if not 1.0 <= time < 1.5:
            last["sample"] = sample
            return sample
        return replace(last["sample"], time=sample.time)

    verdicts = run(trot(2.0), change)
    assert all(v.sample is None for v in between(verdicts, 1.0, 1.5))
    (late,) = between(verdicts, 1.2, 1.201)
    assert "joint_states repeats itself for 0.20 s under new stamps" in reason(
        late.problems
    )
    assert_sound(between(verdicts, 1.5, 2.0))
