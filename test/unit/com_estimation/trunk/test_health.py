"""Sound input that must not be taken for bad, and input without effort."""

import math
from dataclasses import replace

import numpy as np
import pytest
from trot_samples import COUNT, assert_sound, between, run, stand, trot

from com_estimation.trunk.sensor_checks import reason

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("rate", [200.0, 500.0, 1000.0])
def test_a_trot_is_sound(rate):
    assert_sound(run(trot(4.0, rate)).values())


@pytest.mark.parametrize("hertz", [0.5, 2.0])
def test_other_gaits_are_sound(hertz):
    assert_sound(run(trot(6.0, hertz=hertz)).values())


def test_standing_is_sound():
    assert_sound(run(stand(3.0)).values())


def test_standing_and_then_trotting_is_sound():
    def change(time, sample):
        return next(still) if time < 2.0 else sample

    still = stand(2.5)
    verdicts = run(trot(6.0), change)
    assert_sound(verdicts.values())


def test_coarse_torques_are_learned():
    """Sensors of half a N m per step repeat themselves for many samples; that is soon usual."""

    def change(time, sample):
        return replace(sample, effort=np.round(sample.effort / 0.5) * 0.5)

    verdicts = run(trot(4.0), change)
    assert all(not v.problems for v in verdicts.values())
    late = between(verdicts, 2.0, 4.0)
    masked = np.mean(
        [v.sample is None or np.isnan(v.sample.effort).any() for v in late]
    )
    assert masked < 0.1


@pytest.mark.parametrize("slow", [2, 5])
def test_a_driver_that_repeats_each_sample(slow):
    """Sensors at a fraction of the rate: the copies are left out, without a word."""
    kept = {}

    def change(time, sample):
        if round(time * 1000) % slow == 0:
            kept["sample"] = sample
        return replace(kept["sample"], time=sample.time)

    verdicts = list(run(trot(1.0), change).values())
    assert all(not v.problems for v in verdicts)
    assert sum(v.sample is not None for v in verdicts) == pytest.approx(
        1000 / slow, abs=2
    )


@pytest.mark.parametrize("spell", [np.nan, 0.0])
def test_no_effort(spell):
    def change(time, sample):
        return (
            replace(sample, effort=np.full(COUNT, spell))
            if 1.0 <= time < 1.5
            else sample
        )

    verdicts = run(trot(2.5), change)
    during = between(verdicts, 1.0, 1.5)
    assert all(v.sample is None for v in during)
    expected = {True: "carries no effort", False: "the effort of every joint is zero"}
    text = reason(
        during[-1].problems
    )  # coarse torques of a robot that flies are 0, too
    assert expected[math.isnan(spell)] in text
    assert "measure" in text
    assert_sound(between(verdicts, 1.5, 2.5))
