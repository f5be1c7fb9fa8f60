"""What com_estimation.humanoid makes of samples: modes, wrong inputs, warnings of a fall."""

import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from shipped_robot import shipped_robot

from com_estimation.humanoid import fall
from com_estimation.humanoid.diagnosis import Finding
from com_estimation.humanoid.estimator import Estimate, HumanoidEstimator, Mode
from com_estimation.humanoid.layout import Kind
from com_model import RobotModel, Sesc
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import link_pose
from com_model.geometry.support import SupportPolygon

pytestmark = pytest.mark.slow

PERIOD = 0.005


class Standing:
    """HOAP-2 stands on both feet."""

    def __init__(self) -> None:
        robot = shipped_robot("hoap2")
        self.config, self.model, self.q, _ = robot
        self.estimator = HumanoidEstimator(self.model, self.config)
        self.soles = [
            link_pose(robot.model, self.q, foot.frame) for foot in self.config.feet
        ]
        self.R = self.soles[0][0].T
        self.w = np.zeros((2, 6))
        self.w[:, 2] = 0.5 * self.estimator.layout.weight
        self.k = 0

    def run(
        self, seconds: float, R: np.ndarray | None = None, w: object = 0
    ) -> Estimate:
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
    polygon = SupportPolygon.from_soles(
        R, p, [foot.corners for foot in stand.config.feet]
    )
    assert out.margin == pytest.approx(polygon.margin(stand.R @ out.com), abs=2e-4)
    verdict = stand.estimator.diagnosis.verdict
    kinds = {
        stand.estimator.layout.culprits[f.culprit].kind
        for f in verdict.findings
        if f.named
    }
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
    assert np.isnan(out.com).all() == (
        wrenches is None
    )  # else the posture is still followed
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
    assert (
        stand.run(1.0, w=swayed).mode is Mode.FROZEN
    )  # windows wait for two good seconds
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
def test_wrenches_in_a_wrong_frame_freeze_and_change_nothing(
    axes: list[list[int]],
) -> None:
    stand = Standing()
    before = stand.run(2.0)
    turned = np.hstack(
        (stand.w[:, :3] @ np.array(axes).T, stand.w[:, 3:] @ np.array(axes).T)
    )
    for wrong in (
        turned,
        np.array([stand.w[0], turned[1]]),
    ):  # of both feet, and of one
        q, rng = stand.q, np.random.default_rng(5)
        for _ in range(600):
            stand.q = q + 1e-5 * rng.standard_normal(len(q))
            out = stand.run(PERIOD, w=wrong)
        assert out.mode is Mode.FROZEN
        assert re.search("do not carry|signs, frames", out.reason)
        assert not any(f.named for f in stand.estimator.diagnosis.verdict.findings)
        np.testing.assert_allclose(out.correction, before.correction, atol=2e-4)  # m


def test_wrenches_of_the_wrong_foot_are_implausible_and_change_nothing() -> None:
    stand = Standing()
    before = stand.run(2.0)
    wrong = np.array(
        [2.0 * stand.w[0], np.zeros(6)]
    )  # all the weight, far from under the CoM
    q, rng = stand.q, np.random.default_rng(5)
    for _ in range(600):
        stand.q = q + 1e-5 * rng.standard_normal(len(q))
        out = stand.run(PERIOD, w=wrong)
    assert out.mode is Mode.FROZEN
    assert "order of the feet" in out.reason
    assert not stand.estimator.diagnosis.events
    assert not any(f.named for f in stand.estimator.diagnosis.verdict.findings)
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
    index = next(
        i for i, c in enumerate(layout.culprits) if c.name == "payload on the left hand"
    )
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
    assert (
        RobotModel.from_urdf(stand.estimator.corrected_urdf([])).mass
        == stand.model.mass
    )


def test_dcm_leads_the_com_by_its_velocity() -> None:
    stand = Standing()
    stand.run(1.0)
    rate, feet = 0.05, np.mean([p for _, p in stand.soles], axis=0)  # rad/s
    for k in range(60):
        R = (
            Rotation.from_rotvec([0.0, rate * (k + 1) * PERIOD, 0.0]).as_matrix()
            @ stand.R
        )
        out = stand.run(PERIOD, R)
    com = R @ (out.com - feet)
    lead = rate * com[2] * np.sqrt(com[2] / GRAVITY)
    assert out.dcm - com[:2] == pytest.approx([lead, 0.0], abs=0.1 * lead)
    assert not out.fall_warning


def test_tipping_over_is_warned_of_before_the_soles_have_tilted_by_ten_degrees() -> (
    None
):
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


@pytest.mark.parametrize("flexibility", [0.0, 1e-3])
def test_while_soft_legs_give_only_a_dcm_outside_the_soles_warns(
    flexibility: float,
) -> None:
    stand = Standing()
    stand.run(1.0)
    stand.estimator._given[0] = stand.estimator._found_give[0] = flexibility
    stand.estimator._give_std = 0.0
    felt, margins = stand.w.copy(), []
    felt[:, 4] = 10.0  # N m, as a touch-down moves the ankles
    for k in range(1, 6):
        out = stand.estimator.update(
            (stand.k + k) * PERIOD, stand.q, stand.R, felt if k > 1 else stand.w
        )
        margins.append(out.margin)
    assert min(margins) > 0.0
    assert out.fall_warning is (flexibility == 0.0)


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
        R = [
            link_pose(stand.model, stand.q, foot.frame)[0].T
            for foot in stand.config.feet
        ]
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
    com = stand.R @ (
        Sesc(stand.model).com(q) - np.mean([p for _, p in stand.soles], axis=0)
    )
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


def test_positions_of_two_drivers_in_turn_are_named_and_noise_is_not() -> None:
    stand, rng = Standing(), np.random.default_rng(5)
    q, joint = stand.q, stand.model.joint_names.index("LLEG_JOINT4")

    def read(seconds: float, off: float) -> Estimate:
        for k in range(round(seconds / PERIOD)):
            stand.q = q + 2e-4 * rng.standard_normal(len(q))
            stand.q[joint] += off * (k % 2)
            out = stand.run(PERIOD)
        return out

    assert "two drivers" not in read(1.0, 0.0).reason
    out = read(0.2, 0.01)
    assert out.mode is Mode.FROZEN
    assert "LLEG_JOINT4 jumps back and forth" in out.reason
    assert "two drivers publish joint_states" in out.reason


@pytest.mark.parametrize(
    ("repeats", "in_air"), [(1, True), (4, True), (20, False)], ids=str
)
def test_a_wrench_is_frozen_under_load_and_where_it_changed_in_the_air(
    repeats: int, in_air: bool
) -> None:
    stand, rng = Standing(), np.random.default_rng(6)
    noise = rng.standard_normal((2, 6))

    def read(seconds: float, frozen: bool, load: float) -> Estimate:
        nonlocal noise
        for k in range(round(seconds / PERIOD)):
            own = noise[0]
            noise = rng.standard_normal((2, 6))
            if frozen or (load == 0.0 and k % repeats):
                noise[0] = own
            wrenches = stand.w + 0.01 * noise
            wrenches[0, 2] *= load
            wrenches[1, 2] *= 2.0 - load
            out = stand.run(PERIOD, w=wrenches)
        return out

    named = f"the wrench of {stand.config.feet[0].frame} stays the same to the last bit"
    assert named not in read(0.5, False, 1.0).reason
    assert named not in read(0.3, True, 0.0).reason  # it may have a threshold
    assert named in read(0.1, True, 1.0).reason
    assert named not in read(3.0, False, 1.0).reason
    stand.estimator.restart()
    assert named not in read(1.0, False, 0.0).reason
    assert (named in read(0.3, True, 0.0).reason) is in_air
