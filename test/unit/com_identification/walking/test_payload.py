"""A known payload sets the scale of masses and torques, as weighing does."""

from dataclasses import replace

import numpy as np
import pytest
from walk_recording import Recorded, record

from com_identification.commands.walk_identification import report_text
from com_identification.walking.combination import with_payload
from com_identification.walking.identify import WalkResult, identify_walking

pytestmark = pytest.mark.slow

PAYLOAD, GAIN = 8.0, 1.02  # kg; reading over torque


def _identify(recorded: Recorded) -> WalkResult:
    log = replace(recorded.log, effort=GAIN * recorded.log.effort)
    return identify_walking([log], recorded.believed, recorded.config)


@pytest.fixture(scope="module")
def empty(recorded: Recorded) -> WalkResult:
    return _identify(recorded)


@pytest.fixture(scope="module")
def loaded() -> WalkResult:
    return _identify(record(PAYLOAD, (0.1, 0.02, 0.1), since=0.0))


def test_a_payload_shows_that_all_torques_read_too_much(
    recorded: Recorded, empty: WalkResult, loaded: WalkResult
) -> None:
    result = with_payload(empty, loaded, PAYLOAD, 0.01)
    assert result.accepted, [gate for gate in result.gates if not gate.passed]
    (mass, std), before = result.total_mass, empty.total_mass
    assert before[0] / recorded.true.mass == pytest.approx(GAIN, abs=5e-3)
    assert abs(mass - recorded.true.mass) < 0.75 * abs(before[0] - recorded.true.mass)
    assert abs(mass - recorded.true.mass) < 3.0 * std
    assert std < before[1]
    assert np.linalg.eigvalsh(result.covariance / result.covariance.max()).min() > -1e-9
    off = result.com(result.posture)[0] - empty.com(result.posture)[0]
    assert np.linalg.norm(off) < 1e-4  # the scale moves no CoM
    stds = [np.sqrt(np.diag(each.com(result.posture)[1])) for each in (result, empty)]
    assert (stds[0] < stds[1]).all()  # of twice as many recordings
    assert "by a payload of 8 kg" in report_text(result)


def test_a_payload_known_badly_leaves_the_scale_as_it_is(
    empty: WalkResult, loaded: WalkResult
) -> None:
    result = with_payload(empty, loaded, PAYLOAD, 5.0)
    assert result.rho == pytest.approx(1.0, abs=2e-3)
    assert result.total_mass[1] == pytest.approx(empty.total_mass[1], rel=0.1)


def test_another_payload_and_none_are_refused(
    empty: WalkResult, loaded: WalkResult
) -> None:
    for with_it, payload in ((loaded, 1.3 * PAYLOAD), (empty, PAYLOAD)):
        result = with_payload(empty, with_it, payload, 0.01)
        assert not result.accepted
        assert {gate.name for gate in result.gates if not gate.passed} >= {
            "known payload"
        }
        assert np.isfinite(result.covariance).all()
