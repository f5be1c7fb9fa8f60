"""Times of recordings: stamps since 1970, rates at the limit, sensors that pause."""

from dataclasses import replace

import numpy as np
import pytest

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.walking.log import condition
from com_model import load_robot


@pytest.fixture(scope="module")
def model():
    return load_robot("scalf2")[0]


def recording(model, rate, begin):
    """Noise, 20 s long."""
    n, rng = round(20.0 * rate), np.random.default_rng(0)
    joints = (rng.standard_normal((n, model.n_joints)) for _ in range(3))
    imu = (rng.standard_normal((n, 3)) for _ in range(2))
    return WalkLog(begin + np.arange(n) / rate, *joints, *imu, None)


def conditioned(model, rate, begin=0.0):
    measured = np.ones(model.n_joints, dtype=np.bool_)
    log = recording(model, rate, begin)
    return condition(log, model, model.root_link, measured)


@pytest.mark.parametrize("rate", [500.0, 333.0, 100.0])
def test_stamps_since_1970_change_nothing(model, rate):
    """In floating point they are rounded to 0.2 us, by which the median of their steps is off."""
    near, far = (conditioned(model, rate, begin) for begin in (0.0, 1.7e9))
    assert far.period == pytest.approx(near.period, rel=1e-6)
    count = len(near.motion.q) - 30  # where filters end
    np.testing.assert_allclose(far.motion.q[:count], near.motion.q[:count], atol=1e-3)


def test_fifty_hertz_are_fifty_hertz(model):
    assert conditioned(model, 49.99).period == pytest.approx(0.020004, rel=1e-3)
    with pytest.raises(WalkError, match="40 times a second"):
        conditioned(model, 40.0)


@pytest.mark.parametrize(
    "sensor", [("position", "effort"), ("angular_velocity", "specific_force")]
)
@pytest.mark.parametrize("reads", ["the same", "nothing"])
def test_what_a_sensor_did_not_read_is_not_used(model, sensor, reads):
    log = recording(model, 500.0, 0.0)
    pause = (log.time > 6.0) & (log.time < 8.0)
    changes = {}
    for name in sensor:
        values = getattr(log, name).copy()
        values[pause] = values[pause][0] if reads == "the same" else np.nan
        changes[name] = values
    measured = np.ones(model.n_joints, dtype=np.bool_)
    found = condition(replace(log, **changes), model, model.root_link, measured)
    time = found.period * np.arange(len(found.usable))
    assert not found.usable[(time > 6.05) & (time < 7.95)].any()
    assert found.usable[(time < 5.95) | (time > 8.05)].all()
    assert all(np.isfinite(values).all() for values in found.motion)
