"""The stabiliser's faults, on a robot that follows its commands exactly."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from shipped_robot import shipped_robot

from com_control.exceptions import BipedError
from com_control.walking.biped import Biped
from com_control.walking.law_table import (
    LAW,
    Body,
    adjust_step,
    find_pace,
    make_controller_state,
    settle_sole,
)
from com_control.walking.stabiliser import Fault, Stabiliser, ankle_stiffness
from com_control.walking.stabiliser_law import move_ankles
from com_control.walking.walk import WalkRequest
from com_control.walking.walker import Walker
from com_model.dynamics import GRAVITY
from com_model.geometry.rotations import UP, rotations_about

PERIOD = 0.005


@pytest.fixture(scope="module")
def hoap2():
    config, model, posture, _ = shipped_robot("hoap2")
    biped = Biped.from_config(model, config)
    return (
        biped,
        config,
        Walker(biped).plan(WalkRequest(steps=2, step_time=0.6), posture),
    )


class Follower:
    """Measures what was commanded: the soles where they are to be, the ZMP where it is planned."""

    def __init__(self, robot, **options):
        self.biped, config, self.walk = robot
        stiffness = ankle_stiffness(self.biped, config)
        self.stabiliser = Stabiliser(self.biped, stiffness, PERIOD, **options)
        self.stabiliser.start(self.walk.plan, self.walk.samples, self.walk.path.q[0])
        self.q, self.rng = self.walk.path.q[0], np.random.default_rng(0)

    def wrenches(self, i):
        """Static, at the soles (the sensors are there)."""
        s = self.walk.samples
        a, b = s.feet[i, :, :2, 3]
        left = np.clip((s.zmp[i, :2] - b) @ (a - b) / ((a - b) @ (a - b)), 0.0, 1.0)
        loads = np.array([left, 1.0 - left]) * (
            s.stance[i] if s.stance[i].sum() == 1 else 1.0
        )
        loads /= loads.sum()
        rest = s.zmp[i, :2] - loads @ s.feet[i, :, :2, 3]
        weight, result = self.biped.model.mass * GRAVITY, np.zeros((2, 6))
        for foot in range(2):
            force = loads[foot] * weight
            result[foot, 2:5] = force, rest[1] * force, -rest[0] * force
        return result

    def run(self, seconds, wrenches=True, R=None, change=None):
        out = None
        for _ in range(round(seconds / PERIOD)):
            i = int(self.stabiliser.phase / self.stabiliser.table.dt)
            measured = self.wrenches(i) if wrenches else None
            if change is not None:
                change(measured)
            # else they are frozen
            turn = Rotation.from_rotvec(self.rng.normal(0.0, 1e-9, 3))
            if measured is not None:
                measured = measured + self.rng.normal(0.0, 1e-9, (2, 6))
            upright = turn.as_matrix() @ (np.eye(3) if R is None else R)
            out = self.stabiliser.update(upright, self.q, measured, PERIOD, PERIOD)
            self.q = self.q + np.clip(out.q - self.q, -8.0 * PERIOD, 8.0 * PERIOD)
        return out


def test_without_errors_it_follows_the_plan(hoap2):
    robot = Follower(hoap2)
    out = robot.run(hoap2[2].duration + 0.1)
    assert out.fault is Fault.NONE
    assert not out.must_stop
    assert out.rate == 1.0
    assert np.abs(out.q - hoap2[2].path.q[-1]).max() < 0.02
    assert robot.stabiliser.phase == pytest.approx(hoap2[2].duration)
    assert robot.stabiliser.margin > 0.5


def test_the_plans_time_follows_a_dcm_that_is_beyond_the_ankles():
    """Ahead of the plan's sideways motion it hurries, behind it waits, else neither."""
    w, h, half_width = 4.67, 0.45, 0.03
    for speed in (0.1, -0.1):
        ahead = np.copysign(0.02, speed)
        assert 1.0 < find_pace(w, h, half_width, ahead, speed) <= LAW.fastest
        assert LAW.slowest <= find_pace(w, h, half_width, -ahead, speed) < 1.0
        assert find_pace(w, h, half_width, 3.0 * ahead, speed) == LAW.fastest
        assert find_pace(w, h, half_width, -3.0 * ahead, speed) == LAW.slowest
        for small in (0.01, -0.01):
            assert find_pace(w, h, half_width, small, speed) == 1.0
    assert find_pace(w, h, half_width, 0.1, 0.0) == 1.0  # no time would put it right


def test_a_foothold_follows_what_the_ankles_leave_of_the_dcm_error():
    h, half, w = 0.25, 0.05, (GRAVITY / 0.25) ** 0.5
    soles = np.array([[-half, half, -0.02, 0.02]] * 2)
    body = Body(7.0, h, np.array([8.0, 8.0]), 0.0175, soles, True, False)
    for left in (0.05, 0.2, 0.4):
        fade = np.exp(-w * left)
        own = 0.84 * half * (1.0 - fade)
        assert adjust_step(body, 0, left, 0.99 * own) == 0.0
        grown = (0.01 - 0.0) / max(0.6 * fade, LAW.least_growth)
        assert adjust_step(body, 0, left, own + 0.01) == pytest.approx(
            min(grown, LAW.farthest * h)
        )
        assert adjust_step(body, 1, left, -own - 0.01) == -adjust_step(
            body, 0, left, own + 0.01
        )
        assert adjust_step(body, 0, left, 1.0) == LAW.farthest * h


@pytest.mark.parametrize(
    ("adjusts", "speed"), [(False, 0.4), (True, 0.4), (True, -0.4), (True, 0)]
)
def test_a_foot_lands_where_the_dcm_asks_for_it(hoap2, adjusts, speed):
    """Forwards and backwards only, and only if asked for."""
    robot = Follower(hoap2, step_adjustment=adjusts)
    plan, stabiliser = robot.walk.plan, robot.stabiliser
    robot.run(plan.lift_offs[0] + 0.3 * plan.timing.step_time)
    swinging = int(
        np.argmax(stabiliser.table.swing[int(stabiliser.phase / stabiliser.table.dt)])
    )
    while stabiliser.phase < plan.touch_downs[0]:
        if speed:  # m/s, what a push leaves
            stabiliser.state.motion[1, 0] = speed
        robot.run(PERIOD)
    away = stabiliser.state.feet[swinging]
    assert np.sign(round(away[0], 4)) == np.sign(speed) * adjusts
    assert abs(away[0]) <= LAW.farthest * stabiliser.body.height + 1e-9
    assert abs(away[1]) < 1e-6
    if adjusts and speed:
        assert abs(away[0]) > 0.005


def test_a_sole_that_turns_on_the_ground_is_followed_by_the_imu(hoap2):
    """The body turns back on it, and the other foot lands with the plan's heading."""
    robot, slip = Follower(hoap2, heading_feedback=True), 0.05
    plan, stabiliser = robot.walk.plan, robot.stabiliser

    def run(seconds, turned):
        for _ in range(
            round(seconds / PERIOD)
        ):  # the joints turn the body back on the sole
            yaw = turned - stabiliser.state.turns[0]
            robot.run(PERIOD, R=rotations_about(UP, np.array([yaw]))[0])

    run(plan.lift_offs[0] - 0.05, 1.0)  # any heading is right while it stands
    np.testing.assert_array_equal(stabiliser.state.turns, 0.0)
    run(0.1, 1.0)
    run(0.3, 1.0 + slip)  # the right foot is in the air
    followed = slip * (1.0 - np.exp(-0.3 / LAW.turn_time))
    assert stabiliser.state.turns[0] == pytest.approx(followed, rel=0.05)
    left = stabiliser.target.feet[0]
    assert np.arctan2(left[1, 0], left[0, 0]) == pytest.approx(followed, rel=0.1)
    run(plan.touch_downs[0] - stabiliser.phase - 2 * PERIOD, 1.0 + slip)
    assert abs(stabiliser.state.turns[1]) < 0.05 * slip
    before = stabiliser.state.turns.copy()
    run(0.05, 2.0)  # the imu's heading jumps: that is no sole
    assert np.abs(stabiliser.state.turns - before).max() < 0.1 * slip


def test_a_sole_that_rocks_turns_until_its_moment_changes():
    """Not while the moment follows; what was sent within the dead time is taken back."""
    dead_time, error, rocks = 0.0175, -0.6, np.zeros(3)
    for at in np.linspace(0.2, 1.0, 20):  # the force moves on in the sole: it lies flat
        assert settle_sole(LAW.settle_speed, error, at, PERIOD, dead_time, rocks) == 0.0
    tilt = [
        settle_sole(LAW.settle_speed, error, 1.0, PERIOD, dead_time, rocks)
        for _ in range(40)
    ]
    still = int(LAW.stays_times * dead_time / PERIOD) - 1
    assert tilt[:still] == [0.0] * still
    assert tilt[-1] == pytest.approx(-LAW.settle_speed * error * PERIOD, rel=0.01)
    back = settle_sole(LAW.settle_speed, error, 0.3, PERIOD, dead_time, rocks)
    assert back == pytest.approx(LAW.settle_speed * error * dead_time, rel=0.01)
    assert settle_sole(LAW.settle_speed, error, 0.3, PERIOD, dead_time, rocks) == 0.0


@pytest.mark.parametrize("foot", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_sole_yields_to_a_moment_about_its_own_axis(hoap2, foot, axis, sign):
    body, state = Follower(hoap2).stabiliser.body, make_controller_state()
    wrenches, tilts = np.zeros((2, 6)), np.zeros((2, 2))
    wrenches[:, 2] = 0.5 * body.mass * GRAVITY
    wrenches[foot, 3 + axis] = sign * 0.02 * wrenches[foot, 2]  # 20 mm from the origin
    move_ankles(body, PERIOD, state, wrenches, np.zeros((2, 2)))
    tilts[foot, axis] = sign
    np.testing.assert_array_equal(np.sign(state.tilts), tilts)
    # as asked for: no tilt
    state, asked = make_controller_state(), np.zeros((2, 2))
    asked[foot, 1 - axis] = sign * 0.02 * (1 - 2 * axis)
    move_ankles(body, PERIOD, state, wrenches, asked)
    np.testing.assert_array_equal(state.tilts, 0.0)


@pytest.mark.parametrize("stiffness", [5e-324, 0.0, 8.0, np.nan])
def test_ankles_that_do_not_hold_it_up_are_refused(hoap2, stiffness):
    """HOAP-2 needs 17 N m/rad of both together."""
    biped, _, _ = hoap2
    with pytest.raises(BipedError, match=r"give two numbers of 8\.\d+ N m/rad or more"):
        Stabiliser(biped, [150.0, stiffness])


def test_one_wrench_that_is_not_finite(hoap2):
    robot = Follower(hoap2)
    robot.run(1.0)
    before = robot.stabiliser.state.tilts.copy(), robot.stabiliser.offset[0]

    def lose(wrenches):
        wrenches[1] = np.nan

    out = robot.run(0.5, change=lose)
    assert out.fault is Fault.NO_WRENCH
    assert out.must_stop
    assert np.isfinite(out.q).all()
    assert (robot.stabiliser.state.tilts == before[0]).all()
    assert (robot.stabiliser.offset[0] == before[1]).all()


def test_no_wrenches_at_all(hoap2):
    robot = Follower(hoap2)
    out = robot.run(1.0, wrenches=False)
    assert out.fault is Fault.NO_WRENCH
    assert np.isfinite(out.q).all()
    assert np.isinf(robot.stabiliser.offset[1]).all()  # nothing is known of it


@pytest.mark.parametrize("factor", [0.3, 1.8])
def test_wrenches_that_do_not_carry_the_robot(hoap2, factor):
    robot = Follower(hoap2)

    def scale(wrenches):
        wrenches *= factor

    assert robot.run(0.05, change=scale).fault is Fault.NONE
    assert robot.run(0.1, change=scale).fault is Fault.NO_WRENCH


def test_no_imu(hoap2):
    robot = Follower(hoap2)
    robot.run(0.2)
    out = robot.run(1.0, R=np.full((3, 3), np.nan))
    assert out.fault is Fault.NO_IMU
    assert out.must_stop
    assert np.abs(out.q - hoap2[2].path.sample(1.2)[0]).max() < 0.03


def test_fallen(hoap2):
    c, s = np.cos(0.7), np.sin(0.7)
    out = Follower(hoap2).run(
        PERIOD, R=np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    )
    assert out.fault is Fault.FALLEN


def test_inverse_kinematics_that_fail(hoap2):
    robot = Follower(hoap2)
    robot.run(0.1)
    robot.stabiliser.state.feet[0, 2] = -0.5  # out of reach
    last = robot.q
    out = robot.run(8 * PERIOD)
    assert out.fault in (Fault.UNREACHABLE, Fault.FALLEN)
    assert (out.q == last).all()


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_out_of_reach_the_nearest_height_is_used_and_left_again(hoap2, direction):
    robot = Follower(hoap2)
    robot.run(0.1)
    stabiliser, limited, heights = robot.stabiliser, True, []
    step, h = stabiliser._ik.step, stabiliser.body.height
    bound = direction * (stabiliser.target.com[2] + direction * 0.012 * h)

    def step_within(com, *rest):
        point = step(com, *rest)
        if limited and direction * com[2] < bound:
            return point._replace(outcome=1)
        heights.append((com[2] - stabiliser.target.com[2]) / h)
        return point

    stabiliser._ik.step = step_within
    out = robot.run(0.1)
    assert out.fault is Fault.NONE
    assert 0.01 < direction * heights[-1] < 0.02
    limited = False
    robot.run(1.0)
    assert abs(heights[-1]) < 1e-3
    assert np.abs(np.diff(heights)).max() < 0.02


def test_an_offset_at_its_bound(hoap2):
    robot = Follower(hoap2)

    def push(wrenches):  # the ZMP of a CoM far ahead
        wrenches[:, 4] -= wrenches[:, 2] * 0.035

    robot.run(0.2, change=push)
    assert robot.stabiliser.offset[0][0] > 0.0005
    robot.stabiliser.state.offset[0, 0] = 1.0  # where it gets to after a minute
    out = robot.run(PERIOD, change=push)
    assert out.fault is Fault.OFFSET_BOUND
    assert out.must_stop
    assert robot.stabiliser.offset[0][0] == pytest.approx(
        0.075 * robot.stabiliser.body.height
    )


def test_a_dcm_beyond_the_soles_is_reported_and_does_not_stop(hoap2):
    """More than 1.2 half lengths of the sole ahead of the plan."""
    robot = Follower(hoap2)
    robot.run(0.2)
    low, high = robot.stabiliser.body.soles[0, :2]
    w = np.sqrt(GRAVITY / robot.stabiliser.body.height)
    robot.stabiliser.state.motion[1, 0] += (
        0.9 * w * (high - low)
    )  # the velocity that does it
    out = robot.run(PERIOD)
    assert out.fault is Fault.BEYOND_REACH
    assert not out.must_stop
    assert robot.stabiliser.margin < 0.0


def test_what_it_needs_of_a_robot(hoap2):
    biped, _, _ = hoap2
    with pytest.raises(BipedError, match="stiffness is"):
        Stabiliser(biped, [0.0, 100.0])
