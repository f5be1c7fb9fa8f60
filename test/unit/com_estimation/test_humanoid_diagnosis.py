"""What com_estimation.humanoid makes of windows: names and events."""

from functools import cache

import numpy as np
import pytest
from shipped_robot import shipped_robot

from com_estimation.humanoid.diagnosis import Diagnosis, DiagnosisOptions, EventKind
from com_estimation.humanoid.layout import Kind, Layout, make_layout
from com_estimation.humanoid.windows import HOP, Window

pytestmark = pytest.mark.slow


@cache
def layout() -> Layout:
    config, model = shipped_robot("hoap2")[:2]
    return make_layout(model, config)


class Recording:
    """Windows whose columns are random, so that every culprit is observable."""

    def __init__(self, seed: int) -> None:
        self.rng, self.layout = np.random.default_rng(seed), layout()
        self.scale = np.repeat([0.1, 0.01], 3)
        wide = 4.0 * self.layout.tolerance
        for culprit in self.layout.culprits:
            # a few N, where a window has sigma 1 N
            wide[culprit.columns] = culprit.slab / 6.0
        self.per = 1.0 / wide
        within = 0.5 * self.layout.tolerance
        self.background = within * self.rng.standard_normal(self.layout.count)
        self.background[self.layout.plant.blocks.flexibility] = 1e-5  # within tolerance
        self.time = 0.0

    def window(
        self, theta: np.ndarray, external: np.ndarray | float = 0.0, vague: float = 1.0
    ) -> Window:
        n = self.layout.count
        A = 1.5 * self.scale[:, None] * self.rng.standard_normal((6, n)) * self.per
        y = A @ (self.background + theta) + 0.3 * self.scale * self.rng.standard_normal(
            6
        )
        self.time += HOP
        loads = np.array([[0.0, 1.0], [0.0, 1.0]])
        R = np.diag((vague * self.scale) ** 2)
        return Window(self.time, A, y - external, R, loads, 0.5)


def guilty(index: int, times: float = 1.5) -> np.ndarray:
    theta = np.zeros(layout().count)
    culprit = layout().culprits[index]
    theta[culprit.columns] = (
        times * culprit.slab * (-1.0) ** np.arange(len(culprit.columns))
    )
    return theta


def named(diagnosis: Diagnosis) -> set[int]:
    return {f.culprit for f in diagnosis.verdict.findings if f.named}


@pytest.mark.parametrize("index", [None, 0, 1, 5])
def test_constant_culprits_are_named_and_no_others(index: int | None) -> None:
    recording, diagnosis = Recording(1 if index is None else index), Diagnosis(layout())
    theta = np.zeros(layout().count) if index is None else guilty(index)
    for _ in range(70):
        diagnosis.add(recording.window(theta))
    assert named(diagnosis) == (set() if index is None else {index}), (
        diagnosis.verdict.text
    )
    if index is None:
        assert diagnosis.verdict.text == "nothing is wrong beyond tolerances"
        return
    finding = diagnosis.verdict.findings[0]
    truth = (theta + recording.background)[layout().culprits[index].columns]
    error = finding.parameters - truth
    std = np.sqrt(np.diag(finding.covariance))
    assert (np.abs(error) < 5.0 * std).all()
    assert layout().culprits[index].name in diagnosis.verdict.text


def test_flexible_legs_name_no_constant_culprit() -> None:
    recording, diagnosis = Recording(5), Diagnosis(layout())
    at = layout().plant.blocks.flexibility
    recording.background[at] = 1.2 * layout().tolerance[at]
    for _ in range(40):
        diagnosis.add(recording.window(guilty(5)))
    assert not named(diagnosis)
    assert "the legs are flexible" in diagnosis.verdict.text


@pytest.mark.parametrize("index", [6, 8, 9, 2])
def test_changes_are_seen_named_and_followed_by_another(index: int) -> None:
    recording, diagnosis = Recording(index), Diagnosis(layout())
    for _ in range(40):
        diagnosis.add(recording.window(np.zeros(layout().count)))
    begin = recording.time
    when = np.nan
    for _ in range(75):
        diagnosis.add(recording.window(guilty(index)))
        if np.isnan(when) and index in named(diagnosis):
            when = recording.time
    event = next(e for e in diagnosis.events if e.kind is EventKind.CHANGE)
    assert event.seen - begin < 0.25
    # what a payload that is not yet known looks like is named later
    assert when - begin < (3.0 if layout().culprits[index].constant else 1.0)
    assert named(diagnosis) == {index}
    assert next(f for f in diagnosis.verdict.findings if f.named).lasting
    other = 7
    for _ in range(30):
        diagnosis.add(recording.window(guilty(index) + guilty(other)))
    assert named(diagnosis) == {index, other}
    assert {f.culprit for f in diagnosis.verdict.findings if f.lasting} == {
        index
    }  # 2.4 s only


def test_a_change_that_is_undone_is_withdrawn_and_another_may_follow() -> None:
    recording, diagnosis = Recording(6), Diagnosis(layout())
    nothing, other = np.zeros(layout().count), 7
    for theta, count in ((nothing, 30), (guilty(6), 42), (nothing, 42)):
        for _ in range(count):
            diagnosis.add(recording.window(theta))
        assert named(diagnosis) == ({6} if theta.any() else set()), (
            diagnosis.verdict.text
        )
    for _ in range(15):
        diagnosis.add(recording.window(guilty(other)))
    assert named(diagnosis) == {other}


def test_a_culprit_beyond_what_is_possible_is_not_named_but_unexplained() -> None:
    recording, diagnosis = Recording(6), Diagnosis(layout())
    for theta, count in ((np.zeros(layout().count), 40), (guilty(6, 5.0), 30)):
        for _ in range(count):
            diagnosis.add(recording.window(theta))
    assert diagnosis.unexplained
    assert not named(diagnosis)
    assert diagnosis.verdict.text.startswith("unexplained: payload on the left hand")
    assert np.isnan(diagnosis.correction(np.zeros((3, layout().count)))[1]).all()


def test_a_push_is_an_event_with_its_impulse_and_no_culprit() -> None:
    recording, diagnosis = Recording(3), Diagnosis(layout())
    for _ in range(40):
        diagnosis.add(recording.window(np.zeros(layout().count)))
    force = np.array([3.0, -1.0, 0.5, 0.1, 0.4, 0.0])
    for part in (0.5, 1.0, 0.5, 0.0, 0.0, 0.0):
        diagnosis.add(recording.window(np.zeros(layout().count), part * force))
    (event,) = diagnosis.events
    assert event.kind is EventKind.PUSH
    np.testing.assert_allclose(event.impulse, 2.0 * HOP * force[:3], atol=0.05)
    assert not named(diagnosis)


def test_windows_that_tell_little_do_not_end_a_change() -> None:
    recording, diagnosis = Recording(3), Diagnosis(layout())
    nothing, force = np.zeros(layout().count), np.array([3.0, -1.0, 0.5, 0.1, 0.4, 0.0])
    for _ in range(40):
        diagnosis.add(recording.window(nothing))
    begin = recording.time
    for k in range(
        2 * DiagnosisOptions.lasting
    ):  # no culprit explains it: only then it is decided
        assert not diagnosis.events
        vague = 10.0 if 3 <= k < 6 else 1.0  # as in a touch-down
        diagnosis.add(recording.window(nothing, force, vague))
    (event,) = diagnosis.events
    assert event.kind is EventKind.CHANGE
    assert event.seen - begin < 0.25


@pytest.mark.parametrize("after", [2, 3, 4, 5, 6])
def test_a_push_soon_after_a_payload_does_not_change_its_name(after: int) -> None:
    recording, diagnosis = Recording(6), Diagnosis(layout())
    for _ in range(40):
        diagnosis.add(recording.window(np.zeros(layout().count)))
    begin, force = recording.time, np.array([3.0, -1.0, 0.5, 0.1, 0.4, 0.0])
    when = np.nan
    for k in range(60):
        part = (0.5, 1.0, 1.0, 0.5)[k - after] if 0 <= k - after < 4 else 0.0
        diagnosis.add(recording.window(guilty(6), part * force))
        assert named(diagnosis) <= {6}
        if np.isnan(when) and named(diagnosis):
            when = recording.time
    assert named(diagnosis) == {6}
    assert (
        when - begin < 1.3
    )  # the push ends after up to 0.8 s, five windows later it is known


def test_a_push_puts_off_the_names_of_constant_culprits() -> None:
    recording, diagnosis = Recording(6), Diagnosis(layout())
    encoders = next(
        i for i, c in enumerate(layout().culprits) if c.kind is Kind.ENCODER_ZERO
    )
    force, when = np.array([3.0, -1.0, 0.5, 0.1, 0.4, 0.0]), np.nan
    for k in range(75):
        part = (0.5, 1.0, 0.5)[k - 18] if 18 <= k < 21 else 0.0
        diagnosis.add(recording.window(guilty(encoders), part * force))
        if np.isnan(when) and encoders in named(diagnosis):
            when = recording.time
    (push,) = diagnosis.events
    assert push.kind is EventKind.PUSH
    assert (
        2.5 < when - push.start < 3.4
    )  # it may hide a payload that looks like these at first


def test_wrenches_that_cannot_balance_the_weight_change_nothing() -> None:
    recording, diagnosis = Recording(3), Diagnosis(layout())
    for _ in range(40):
        diagnosis.add(recording.window(np.zeros(layout().count)))
    before = diagnosis.sums.total.e.copy()
    for k in range(40):
        swapped = np.zeros(6)
        swapped[3] = (-1.0) ** (k // 4) * 0.3 * layout().weight * layout().height
        diagnosis.add(recording.window(np.zeros(layout().count), swapped))
    assert diagnosis.implausible
    assert not named(diagnosis)
    assert not diagnosis.events
    np.testing.assert_array_equal(diagnosis.sums.total.e, before)
