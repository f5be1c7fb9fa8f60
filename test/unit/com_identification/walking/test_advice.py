"""What to record next: predicted from what was recorded, and true once that is recorded."""

from dataclasses import replace

import numpy as np
import pytest
from walk_recording import Recorded, record

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.walking.advice import Advice, analyse
from com_identification.walking.identify import WalkResult

pytestmark = pytest.mark.slow

FORWARDS = "lean the trunk 10 degrees forwards"


def _part(recorded: Recorded, begin: float, end: float) -> WalkLog:
    kept = (recorded.log.time >= begin) & (recorded.log.time < end)
    return replace(
        recorded.log,
        **{name: values[kept] for name, values in vars(recorded.log).items()},
    )


def _length(advice: Advice) -> float:
    return float(np.linalg.norm(advice.com_std))


@pytest.fixture(scope="module")
def begun(recorded: Recorded) -> tuple[np.ndarray, Advice]:
    return analyse(_part(recorded, 0.0, 10.0), recorded.believed, recorded.config, None)


def test_more_of_the_same_is_worth_what_was_predicted(
    recorded: Recorded, begun: tuple[np.ndarray, Advice]
) -> None:
    information, advice = begun
    assert _length(advice) < 0.5 * np.linalg.norm(advice.prior_com_std)
    log = _part(recorded, 10.0, 20.0)
    _, then = analyse(log, recorded.believed, recorded.config, information)
    assert _length(then) == pytest.approx(advice.same, rel=0.1)
    assert then.improved >= advice.improved


def test_leaning_is_better_than_more_of_the_same_as_was_predicted(
    recorded: Recorded, begun: tuple[np.ndarray, Advice]
) -> None:
    information, advice = begun
    predicted = dict(advice.motions)
    assert predicted[FORWARDS] < 0.95 * advice.same
    leant = record(lean=np.deg2rad(10.0))
    log = _part(leant, 10.0, 20.0)
    _, then = analyse(log, recorded.believed, recorded.config, information)
    assert _length(then) < predicted[FORWARDS]  # the prediction is cautious
    assert _length(then) < 0.8 * advice.same


def test_the_rest_of_a_recording_that_is_no_use_is_named(recorded: Recorded) -> None:
    log = _part(recorded, 0.0, 10.0)
    with pytest.raises(WalkError, match="joints of the legs report no torque"):
        analyse(
            replace(log, effort=0.0 * log.effort),
            recorded.believed,
            recorded.config,
            None,
        )
    with pytest.raises(WalkError, match=r"5 s or more"):
        analyse(_part(recorded, 0.0, 3.0), recorded.believed, recorded.config, None)


def test_the_report_says_what_to_record_next(result: WalkResult) -> None:
    names = [name for name, _ in result.advice.motions]
    assert len(names) == 5
    assert "walk sideways" in names
    assert set(result.advice.unknown) <= set(result.model.bodies.names)
    assert result.advice.text.startswith("whole-body CoM known to ")
