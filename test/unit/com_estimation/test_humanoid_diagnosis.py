"""What com_estimation.humanoid makes of windows and of samples: names, events, modes, warnings."""

import re
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from shipped_robot import shipped_robot

from com_estimation.humanoid import fall
from com_estimation.humanoid.diagnosis import LONGEST, Diagnosis, EventKind, Finding
from com_estimation.humanoid.estimator import Estimate, HumanoidEstimator, Mode
from com_estimation.humanoid.layout import Kind, Layout, make_layout
from com_estimation.humanoid.windows import HOP, Window
from com_model import RobotModel, Sesc
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import link_pose
from com_model.geometry.support import SupportPolygon

pytestmark = pytest.mark.slow

PERIOD = 0.005


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
            wide[culprit.columns] = culprit.slab / 6.0  # a few N, where a window has sigma 1 N
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
        y = A @ (self.background + theta) + 0.3 * self.scale * self.rng.standard_normal(6)
        self.time += HOP
        loads = np.array([[0.0, 1.0], [0.0, 1.0]])
        R = np.diag((vague * self.scale) ** 2)
        return Window(self.time, A, y - external, R, loads, 0.5)


def guilty(index: int, times: float = 1.5) -> np.ndarray:
    theta = np.zeros(layout().count)
    culprit = layout().culprits[index]
    theta[culprit.columns] = times * culprit.slab * (-1.0) ** np.arange(len(culprit.columns))
    return theta


def named(diagnosis: Diagnosis) -> set[int]:
    return {f.culprit for f in diagnosis.verdict.findings if f.named}


@pytest.mark.parametrize("index", [None, 0, 1, 5])
def test_constant_culprits_are_named_and_no_others(index: int | None) -> None:
    recording, diagnosis = Recording(1 if index is None else index), Diagnosis(layout())
    theta = np.zeros(layout().count) if index is None else guilty(index)
    for _ in range(70):
        diagnosis.add(recording.window(theta))
    assert named(diagnosis) == (set() if index is None else {index}), diagnosis.verdict.text
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
    recording.background[layout().plant.blocks.flexibility] = 6e-5
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
    assert {f.culprit for f in diagnosis.verdict.findings if f.lasting} == {index}  # 2.4 s only


def test_a_change_that_is_undone_is_withdrawn_and_another_may_follow() -> None:
    recording, diagnosis = Recording(6), Diagnosis(layout())
    nothing, other = np.zeros(layout().count), 7
    for theta, count in ((nothing, 30), (guilty(6), 42), (nothing, 42)):
        for _ in range(count):
            diagnosis.add(recording.window(theta))
        assert named(diagnosis) == ({6} if theta.any() else set()), diagnosis.verdict.text
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
    for k in range(LONGEST):  # no culprit explains it: only then it is decided
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
    assert when - begin < 1.3  # the push ends after up to 0.8 s, five windows later it is known


def test_a_push_puts_off_the_names_of_constant_culprits() -> None:
    recording, diagnosis = Recording(6), Diagnosis(layout())
    encoders = next(i for i, c in enumerate(layout().culprits) if c.kind is Kind.ENCODER_ZERO)
    force, when = np.array([3.0, -1.0, 0.5, 0.1, 0.4, 0.0]), np.nan
    for k in range(75):
        part = (0.5, 1.0, 0.5)[k - 18] if 18 <= k < 21 else 0.0
        diagnosis.add(recording.window(guilty(encoders), part * force))
        if np.isnan(when) and encoders in named(diagnosis):
            when = recording.time
    (push,) = diagnosis.events
    assert push.kind is EventKind.PUSH
    assert 2.5 < when - push.start < 3.4  # it may hide a payload that looks like these at first


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


# --- samples ---------------------------------------------------------------------------------
class Standing:
    """HOAP-2 stands on both feet."""

    def __init__(self) -> None:
        robot = shipped_robot("hoap2")
        self.config, self.model, self.q, _ = robot
        self.estimator = HumanoidEstimator(self.model, self.config)
        self.soles = [link_pose(robot.model, self.q, foot.frame) for foot in self.config.feet]
        self.R = self.soles[0][0].T
        self.w = np.zeros((2, 6))
        self.w[:, 2] = 0.5 * self.estimator.layout.weight
        self.k = 0

    def run(self, seconds: float, R: np.ndarray | None = None, w: object = 0) -> Estimate:
        for _ in range(round(seconds / PERIOD)):
            self.k += 1
            wrenches = self.w if isinstance(w, int) else w
            out = self.estimator.update(
                self.k * PERIOD, self.q, self.R if R is None else R, wrenches
            )
            self.estimator.process()
        assert out is not None
        return out


def test_margin_is_that_of_the_projected_com_at_rest_and_nothing_is_named() -> None:
    stand = Standing()
    out = stand.run(3.0)
    assert out.mode is Mode.STANDING
    assert not out.fall_warning
    R = np.array([stand.R @ sole[0] for sole in stand.soles])
    p = np.array([stand.R @ sole[1] for sole in stand.soles])
    polygon = SupportPolygon.from_soles(R, p, [foot.corners for foot in stand.config.feet])
    assert out.margin == pytest.approx(polygon.margin(stand.R @ out.com), abs=2e-4)
    verdict = stand.estimator.diagnosis.verdict
    kinds = {stand.estimator.layout.culprits[f.culprit].kind for f in verdict.findings if f.named}
    assert kinds <= {Kind.IMU_TILT}


@pytest.mark.parametrize(
    ("wrenches", "tilt", "reason"),
    [
        (None, 0.0, "missing or not finite"),
        (-1.0, 0.0, "check the signs"),
        (0.1, 0.0, "do not carry"),
        (4.0, 0.0, "sensors' units"),
        (1.0, np.pi, "imu's link or orientation"),
    ],
)
def test_wrong_inputs_freeze_with_the_reason(
    wrenches: float | None, tilt: float, reason: str
) -> None:
    stand = Standing()
    stand.run(1.0)
    count = stand.estimator.diagnosis.sums.count
    R = Rotation.from_rotvec([tilt, 0.0, 0.0]).as_matrix() @ stand.R
    out = stand.run(1.0, R, None if wrenches is None else wrenches * stand.w)
    assert out.mode is Mode.FROZEN
    assert reason in out.reason
    assert np.isnan(out.com).all() == (wrenches is None)  # else the posture is still followed
    assert stand.estimator.diagnosis.sums.count <= count + 1
    assert stand.run(3.0).mode is Mode.STANDING  # and goes on when they are right again


def test_positions_that_stay_the_same_while_the_wrenches_change_are_stale() -> None:
    stand = Standing()
    stand.run(1.5)
    count = stand.estimator.diagnosis.sums.count
    swayed = stand.w * np.array([[1.3], [0.7]])
    out = stand.run(0.5, w=swayed)
    assert out.mode is Mode.FROZEN
    assert "joint positions stay the same" in out.reason
    assert np.isnan(out.com).all()
    assert stand.estimator.diagnosis.sums.count <= count + 1
    stand.q = stand.q + 1e-4
    assert stand.run(1.0, w=swayed).mode is Mode.FROZEN  # windows wait for two good seconds
    stand.q = stand.q + 1e-4
    assert stand.run(2.0).mode is not Mode.FROZEN


def test_one_silent_sensor_freezes() -> None:
    stand = Standing()
    stand.run(1.0)
    silent = stand.w.copy()
    silent[1] = np.nan
    out = stand.run(0.5, w=silent)
    assert out.mode is Mode.FROZEN
    assert "a foot's wrench is missing" in out.reason


@pytest.mark.parametrize(
    "axes", [[[0, 0, 1], [0, 1, 0], [-1, 0, 0]], [[1, 0, 0], [0, 0, -1], [0, 1, 0]]]
)
def test_wrenches_in_a_wrong_frame_freeze_and_change_nothing(axes: list[list[int]]) -> None:
    stand = Standing()
    before = stand.run(2.0)
    turned = np.hstack((stand.w[:, :3] @ np.array(axes).T, stand.w[:, 3:] @ np.array(axes).T))
    for wrong in (turned, np.array([stand.w[0], turned[1]])):  # of both feet, and of one
        q, rng = stand.q, np.random.default_rng(5)
        for _ in range(600):
            stand.q = q + 1e-5 * rng.standard_normal(len(q))
            out = stand.run(PERIOD, w=wrong)
        assert out.mode is Mode.FROZEN
        assert re.search("do not carry|signs, frames", out.reason)
        assert not named(stand.estimator.diagnosis)
        np.testing.assert_allclose(out.correction, before.correction, atol=2e-4)  # m


def test_wrenches_of_the_wrong_foot_are_implausible_and_change_nothing() -> None:
    stand = Standing()
    before = stand.run(2.0)
    wrong = np.array([2.0 * stand.w[0], np.zeros(6)])  # all the weight, far from under the CoM
    q, rng = stand.q, np.random.default_rng(5)
    for _ in range(600):
        stand.q = q + 1e-5 * rng.standard_normal(len(q))
        out = stand.run(PERIOD, w=wrong)
    assert out.mode is Mode.FROZEN
    assert "order of the feet" in out.reason
    assert not stand.estimator.diagnosis.events
    assert not named(stand.estimator.diagnosis)
    np.testing.assert_allclose(out.correction, before.correction, atol=2e-4)  # m


def test_a_clock_that_jumps_ends_the_open_windows_and_invents_nothing() -> None:
    stand = Standing()
    stand.run(2.0)
    count = stand.estimator.diagnosis.sums.count
    stand.k += 20_000
    assert not stand.run(0.2).fall_warning  # less than a window
    assert stand.estimator.diagnosis.sums.count == count
    assert stand.run(2.0).mode is Mode.STANDING
    assert stand.estimator.diagnosis.sums.count > count
    assert not stand.estimator.diagnosis.events


def test_the_corrected_urdf_carries_the_payload() -> None:
    stand = Standing()
    layout, bodies = stand.estimator.layout, stand.model.bodies
    index = next(i for i, c in enumerate(layout.culprits) if c.name == "payload on the left hand")
    values = np.array([0.3, 0.004, -0.002, 0.006])  # kg, kg m
    finding = Finding(index, 1.0, True, True, 5.0, values, np.eye(4))
    new = RobotModel.from_urdf(stand.estimator.corrected_urdf([finding]))
    assert new.mass == pytest.approx(stand.model.mass + 0.3)
    b = bodies.names.index(layout.culprits[index].parts[0])
    R, p = link_pose(stand.model, stand.q, bodies.names[b])
    own = bodies.first_moment[b] / bodies.mass[b]
    at = p + R @ (own + layout.plant.triad[b] @ values[1:] / 0.3)
    old = Sesc(stand.model).com(stand.q)
    expected = (stand.model.mass * old + 0.3 * at) / new.mass
    np.testing.assert_allclose(Sesc(new).com(stand.q), expected, atol=1e-7)
    assert RobotModel.from_urdf(stand.estimator.corrected_urdf([])).mass == stand.model.mass


def test_dcm_leads_the_com_by_its_velocity() -> None:
    stand = Standing()
    stand.run(1.0)
    rate, feet = 0.05, np.mean([p for _, p in stand.soles], axis=0)  # rad/s
    for k in range(60):
        R = Rotation.from_rotvec([0.0, rate * (k + 1) * PERIOD, 0.0]).as_matrix() @ stand.R
        out = stand.run(PERIOD, R)
    com = R @ (out.com - feet)
    lead = rate * com[2] * np.sqrt(com[2] / GRAVITY)
    assert out.dcm - com[:2] == pytest.approx([lead, 0.0], abs=0.1 * lead)
    assert not out.fall_warning


def test_tipping_over_is_warned_of_before_the_soles_have_tilted_by_ten_degrees() -> None:
    stand = Standing()
    stand.run(1.0)
    warned = None
    for k in range(100):
        angle = 0.02 * np.cosh(6.0 * k * PERIOD) - 0.02  # rad
        R = Rotation.from_rotvec([0.0, angle, 0.0]).as_matrix() @ stand.R
        if stand.run(PERIOD, R).fall_warning:
            warned = angle
            break
    assert warned is not None
    assert warned < np.radians(4.0)
    assert stand.run(PERIOD).mode is Mode.FALLING


def test_a_sole_that_turns_back_to_flat_is_no_fall_unless_it_goes_on() -> None:
    stand = Standing()
    stand.run(1.0)
    leaning, back = np.linspace(0.0, 0.06, 400), 0.06 - 1.2 * PERIOD * np.arange(40)
    warned = []
    for angle in (*leaning, *back):
        R = Rotation.from_rotvec([0.0, angle, 0.0]).as_matrix() @ stand.R
        warned.append((angle, stand.run(PERIOD, R).fall_warning))
    assert not any(warning for angle, warning in warned if angle > 0.0)
    assert any(warning for _, warning in warned)


def test_the_reason_of_a_warning_is_kept_until_the_robot_stands_again() -> None:
    stand = Standing()
    stand.run(1.0)
    assert stand.estimator.warned_of == ""
    for k in range(100):
        angle = min(0.02 * np.cosh(6.0 * k * PERIOD) - 0.02, 0.5)
        stand.run(PERIOD, Rotation.from_rotvec([0.0, angle, 0.0]).as_matrix() @ stand.R)
    reason = stand.estimator.warned_of
    assert reason.startswith("fall warning: DCM margin ")
    assert 0.0 < float(reason.split()[-2]) < 4.0  # degrees
    lying = Rotation.from_rotvec([0.0, 1.5, 0.0]).as_matrix() @ stand.R
    for _ in range(5):  # its time is over, but the robot does not stand
        out = stand.run(1.0, lying)
        assert stand.estimator.warned_of == reason
    assert not out.fall_warning
    stand.run(1.5)
    assert stand.estimator.warned_of == reason
    stand.run(4.0)
    assert stand.estimator.warned_of == ""


@pytest.mark.parametrize(
    ("below", "rate", "bend", "expected"),
    [
        (-1.0, 0.5, 0.0, 2.0),
        (-1.0, 0.0, 2.0, 1.0),
        (-1.5, -0.5, 4.0, 1.0),  # it comes back
        (-1.0, 2.0, -2.0, 1.0),  # at its highest point
        (-1.0, 1.0, -2.0, np.inf),
        (-1.0, -1.0, 0.0, np.inf),
        (0.5, 1.0, 1.0, 0.0),  # it is there
    ],
)
def test_time_until_a_sole_has_tilted_or_landed(
    below: float, rate: float, bend: float, expected: float
) -> None:
    assert fall._time_until.py_func(below, rate, bend) == pytest.approx(expected)


def test_a_warning_while_the_soles_stay_flat_freezes_nothing() -> None:
    stand = Standing()
    stand.run(1.0)
    ankles = [stand.model.joint_index(f"{side}LEG_JOINT5") for side in "RL"]
    q = stand.q.copy()
    for k in range(80):  # the body tips about its ankles
        stand.q = q.copy()
        stand.q[ankles] += 0.02 * np.cosh(6.0 * k * PERIOD) - 0.02
        R = [link_pose(stand.model, stand.q, foot.frame)[0].T for foot in stand.config.feet]
        np.testing.assert_allclose(R[0], R[1], atol=1e-9)
        out = stand.run(PERIOD, R[0])
        if out.fall_warning:
            break
    assert out.fall_warning
    assert out.mode not in (Mode.FALLING, Mode.FROZEN)


def test_one_position_that_repeats_its_last_bits_is_stuck_and_one_that_comes_to_rest_is_not() -> (
    None
):
    stand = Standing()
    rng, names = np.random.default_rng(4), stand.model.joint_names
    arm, q = names.index("LARM_JOINT1"), stand.q
    coarse = names.index("RARM_JOINT1")
    com = stand.R @ (Sesc(stand.model).com(q) - np.mean([p for _, p in stand.soles], axis=0))
    stand.w[:, 3:5] = stand.w[0, 2] * np.array([com[1], -com[0]])

    def move(seconds: float, stuck: bool) -> Estimate:
        for k in range(round(seconds / PERIOD)):
            noisy = q + 1e-5 * rng.standard_normal(len(q))
            noisy[coarse] = 1e-3 * round(50.0 * np.exp(-5.0 * k * PERIOD))
            noisy[arm] = stand.q[arm] if stuck else noisy[arm]
            stand.q = noisy
            out = stand.run(PERIOD)
        return out

    assert move(1.5, False).mode is not Mode.FROZEN
    out = move(0.1, True)
    assert out.mode is Mode.FROZEN
    assert "the position of LARM_JOINT1 stays the same" in out.reason
    assert np.isnan(out.com).all()
    assert move(2.5, False).mode is not Mode.FROZEN
