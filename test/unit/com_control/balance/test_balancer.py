"""The control against a robot that does what it is commanded, on ground that turns under it."""

from dataclasses import replace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from scipy.spatial.transform import Rotation

from com_control.balance.balancer import Balancer
from com_control.balance.demonstrations import reach, squat, sway
from com_control.balance.options import BalanceOptions
from com_control.balance.session import (
    BalancePhase,
    BalanceReading,
    BalanceSession,
    StandingLimits,
)
from com_control.exceptions import BalanceError
from com_control.nodes.com_balancer import make_state
from com_model import Sesc, link_pose
from com_model.dynamics import GRAVITY
from com_ros.conversions import point_to_numpy

pytestmark = pytest.mark.slow

DT = 0.005
POINTS = ("desired", "reference", "com")


class Perfect:
    """A robot whose left sole lies on ground of an orientation R_world_ground (3, 3)."""

    def __init__(self, model, config, posture):
        self.model, self.q = model, posture.copy()
        self.sesc, self.feet = Sesc(model), [foot.frame for foot in config.feet]
        R, _ = link_pose(model, posture, self.feet[0])
        self.R_ground_sole = Rotation.from_rotvec(
            [0, 0, np.arctan2(R[1, 0], R[0, 0])]
        ).as_matrix()

    def up(self, R_world_ground):
        R, _ = link_pose(self.model, self.q, self.feet[0])
        return R @ self.R_ground_sole.T @ R_world_ground[2]

    def com(self, R_world_ground):
        """The CoM in the world, from the middle of the soles."""
        R, _ = link_pose(self.model, self.q, self.feet[0])
        middle = np.mean(
            [link_pose(self.model, self.q, f)[1] for f in self.feet], axis=0
        )
        turn = R_world_ground @ self.R_ground_sole @ R.T
        return turn @ (self.sesc.com(self.q) - middle), turn


def between(model, q):
    (R0, p0), (R1, p1) = (link_pose(model, q, f) for f in ("l_sole", "r_sole"))
    return np.column_stack((R0.T @ R1, R0.T @ (p1 - p0)))


@pytest.fixture
def robot(model, config, posture):
    return Perfect(model, config, posture)


@pytest.fixture
def balancer(model, config, posture):
    R, _ = link_pose(model, posture, "l_sole")
    return Balancer(model, config.feet, R[:, 2])


def test_com_and_trunk_follow_while_the_soles_stay(robot, balancer, model, posture):
    level = np.eye(3)
    balancer.start(robot.q, robot.up(level))
    desired = balancer.reference.position + np.array([0.02, 0.025, -0.02])
    stood = between(model, posture)
    for _ in range(600):
        step = balancer.step(DT, robot.q, robot.up(level), desired)
        robot.q = step.position
        assert np.abs(between(model, robot.q) - stood).max() < 1e-5
    com, turn = robot.com(level)
    np.testing.assert_allclose(com[:2], desired[:2], atol=2e-5)
    assert com[2] == pytest.approx(desired[2], abs=1e-3)
    assert turn[2, 2] > 1.0 - 1e-6
    assert not step.problems


@pytest.mark.parametrize("axis", [(0.0, -1.0, 0.0), (1.0, 0.0, 0.0)])
def test_ground_that_turns(robot, balancer, axis):
    balancer.start(robot.q, robot.up(np.eye(3)))
    desired = balancer.reference.position.copy()
    worst = 0.0
    for k in range(800):
        angle = np.radians(min(max(5.0 * (k * DT - 0.5), 0.0), 10.0))
        ground = Rotation.from_rotvec(angle * np.array(axis)).as_matrix()
        step = balancer.step(DT, robot.q, robot.up(ground), desired)
        robot.q = step.position
        com, turn = robot.com(ground)
        worst = max(worst, np.linalg.norm((com - desired)[:2]))
    assert worst < 2e-3
    np.testing.assert_allclose(com[:2], desired[:2], atol=1e-5)
    assert np.degrees(step.frame.slope) == pytest.approx(10.0, abs=0.01)
    assert turn[2, 2] > 1.0 - 1e-6


def test_sag_of_the_drives_leaves_no_error(robot, balancer, model):
    sag = np.random.default_rng(2).uniform(-0.005, 0.005, model.n_joints)
    up = robot.up(np.eye(3))
    balancer.start(robot.q, up)
    desired = balancer.reference.position + np.array([0.01, 0.0, 0.0])
    for _ in range(600):
        step = balancer.step(DT, robot.q, robot.up(np.eye(3)), desired)
        robot.q = step.position - sag
    assert step.error < 1e-5
    assert np.abs(step.position - robot.q).max() > 0.004


def test_limits_of_joints_are_kept_and_said(robot, balancer, model):
    up = robot.up(np.eye(3))
    balancer.start(robot.q, up)
    desired = np.array([0.0, 0.0, 0.05])  # far too low
    for _ in range(600):
        before = balancer.velocity.copy()
        step = balancer.step(DT, robot.q, robot.up(np.eye(3)), desired)
        robot.q = step.position
        assert (step.position >= model.lower - 1e-9).all()
        assert (step.position <= model.upper + 1e-9).all()
        assert np.abs(step.velocity).max() <= 2.0 + 1e-9
        assert np.abs(step.velocity - before).max() <= 20.0 * DT + 1e-9
    assert step.limits
    assert "at a limit, or not following: " in step.problems[-1]
    assert np.abs(step.velocity).max() < 0.2


def test_a_joint_beyond_its_limit_draws_no_command_beyond_it(robot, balancer, model):
    up = robot.up(np.eye(3))
    balancer.start(robot.q, up)
    q, arm = robot.q.copy(), model.joint_index("LARM_JOINT1")
    q[arm] = model.upper[arm] + 1.0
    for _ in range(300):
        step = balancer.step(DT, q, up, balancer.reference.position)
        assert (step.position <= model.upper + 1e-9).all()


def test_steep_ground_is_said(robot, model, config):
    R, _ = link_pose(model, robot.q, "l_sole")
    balancer = Balancer(model, config.feet, R[:, 2], BalanceOptions(friction=0.1))
    steep = Rotation.from_rotvec([0.0, -0.15, 0.0]).as_matrix()
    balancer.start(robot.q, robot.up(steep))
    step = balancer.step(DT, robot.q, robot.up(steep), balancer.reference.position)
    assert step.problems[0] == (
        "the ground's slope of 8.6 deg is beyond the friction cone of 5.7 deg: the soles may slide"
    )
    msg = make_state(BalancePhase.BALANCING, "held", Time(sec=3), "balance")
    unknown = [
        msg.com.x,
        msg.com_desired.z,
        msg.com_reference.y,
        msg.com_error,
        msg.slope,
    ]
    assert np.isnan([*unknown, msg.support_margin]).all()
    msg = make_state(
        BalancePhase.BALANCING, "held", Time(sec=3), "balance", step, 0.1, ["l_sole"]
    )
    assert msg.feet == ["l_sole"]
    assert (msg.state, msg.reason) == (BalancePhase.BALANCING, "held")
    assert (msg.header.stamp.sec, msg.header.frame_id) == (3, "balance")
    points = zip((msg.com_desired, msg.com_reference, msg.com), POINTS, strict=True)
    for point, name in points:
        np.testing.assert_array_equal(point_to_numpy(point), getattr(step, name))
    assert (msg.com_error, msg.support_margin) == (step.error, step.margin)
    assert np.degrees(msg.slope) == pytest.approx(8.6, abs=0.05)
    assert (msg.held_at_margin, msg.limited, msg.beyond_friction) == (
        step.held,
        False,
        True,
    )


def test_what_cannot_be_balanced(robot, balancer, model, config):
    point = replace(config.feet[0], corners=np.zeros((0, 2)))
    with pytest.raises(
        BalanceError, match="feet without a flat sole: l_sole; give three corners"
    ):
        Balancer(model, [point, config.feet[1]], np.array([0.0, 0.0, 1.0]))
    lying = np.array([1.0, 0.0, 0.0])
    with pytest.raises(
        BalanceError, match="the soles are tilted by 90 deg against gravity"
    ):
        balancer.start(robot.q, lying)
    crooked = robot.q.copy()
    crooked[model.joint_index("RLEG_JOINT6")] += 0.2
    with pytest.raises(
        BalanceError, match=r"not on one plane: l_sole is .* bring all feet flat"
    ):
        balancer.start(crooked, robot.up(np.eye(3)))


# --- demonstrations ------------------------------------------------------------------------------
CORNERS = np.array([[-0.03, -0.07], [0.05, -0.07], [0.05, 0.07], [-0.03, 0.07]])
COM = np.array([0.01, 0.0, 0.25])


@pytest.mark.parametrize(
    "demonstration",
    [
        squat(COM, 0.03),
        sway(COM, 0.03, CORNERS, 0.01),
        sway(COM, 0.1, CORNERS, 0.01),
        reach(COM, CORNERS, 0.01),
    ],
)
def test_demonstrations_are_smooth_and_come_back(demonstration):
    step = 1e-5
    for time in np.linspace(0.0, demonstration.end - 2 * step, 97):
        before, after = (
            demonstration.sample(time)[0],
            demonstration.sample(time + 2 * step)[0],
        )
        _, velocity = demonstration.sample(time + step)
        np.testing.assert_allclose((after - before) / (2 * step), velocity, atol=1e-5)
    for time in (0.0, demonstration.end, 1e3):
        com, velocity = demonstration.sample(time)
        np.testing.assert_allclose(com, COM, atol=1e-9)
        np.testing.assert_allclose(velocity, 0.0, atol=1e-9)


def test_how_far_they_go():
    times = np.linspace(0.0, 16.0, 401)
    assert min(squat(COM, 0.03).sample(t)[0][2] for t in times) == pytest.approx(
        0.22, abs=1e-4
    )
    # from the side, too, a sway is about the middle, and no wider than there is room
    for side, width, swayed in (
        (0.0, 0.03, 0.03),
        (0.05, 0.03, 0.03),
        (0.0, 0.1, 0.054),
    ):
        begin = COM + np.array([0.0, side, 0.0])
        path = sway(begin, width, CORNERS, 0.01)
        sides = [path.sample(t)[0][1] for t in times if 2.0 <= t <= 8.0]
        assert min(sides) == pytest.approx(0.1 * side - swayed, abs=2e-3)
        assert max(sides) == pytest.approx(0.1 * side + swayed, abs=2e-3)
    reaching = reach(COM, CORNERS, 0.01)
    places = np.array([reaching.sample(t)[0] for t in times])
    assert places[:, 0].max() == pytest.approx(0.01 + 0.9 * 0.03, abs=1e-3)
    assert places[:, 1].min() == pytest.approx(-0.9 * 0.06, abs=1e-3)


# --- session -------------------------------------------------------------------------------------
AIRBORNE = {"loads": np.zeros(2)}
LYING = {"up": np.array([1.0, 0.0, 0.0])}


def reading(time, q, **changes):
    return replace(
        BalanceReading(time, q, np.array([0.0, 0.0, 1.0]), np.full(2, 35.0)), **changes
    )


def started(model, config, settle_time=0.0):
    session = BalanceSession(
        model, config, limits=StandingLimits(settle_time=settle_time)
    )
    session.start()
    return session


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (
            AIRBORNE,
            "waits until the robot stands: the feet carry 0 N, at least 21 N are needed",
        ),
        (
            LYING,
            "waits until the robot stands: the trunk is tilted by 1.57 rad, more than 0.80",
        ),
    ],
)
def test_a_robot_that_does_not_stand_yet_is_waited_for(
    model, config, posture, before, said
):
    session = started(model, config, settle_time=0.2)
    for time in np.arange(0.0, 30.0, 0.5):
        assert session.step(reading(time, posture, **before)) is None
        assert session.state == BalancePhase.WAITING
        assert session.reason.startswith(said)
        assert "~/start" not in session.reason
    for time in (30.0, 30.1, 30.19):
        assert session.step(reading(time, posture)) is None
        assert session.state == BalancePhase.STANDING
        assert session.reason == "begins when it has stood on the same feet for 0.2 s"
    command = session.step(reading(30.2, posture))
    assert session.state == BalancePhase.BALANCING
    assert session.feet == ("l_sole", "r_sole")
    np.testing.assert_allclose(command.position, posture, atol=1e-12)


def test_bent_soles_are_waited_for(model, config, posture):
    session = started(model, config)
    crooked = posture.copy()
    crooked[model.joint_index("RLEG_JOINT6")] += 0.2
    assert session.step(reading(0.0, crooked)) is None
    assert session.state == BalancePhase.WAITING
    assert session.reason.startswith(
        "waits until the robot stands: the soles are not on one plane"
    )
    session.step(reading(0.1, posture))
    assert session.state == BalancePhase.BALANCING


def test_feet_that_touch_down_one_after_the_other(model, config, posture):
    session = started(model, config, settle_time=0.2)
    both, left = np.full(2, 35.0), np.array([70.0, 0.0])
    for time, loads in [
        (0.0, 0 * both),
        (0.1, left),
        (0.2, left),
        (0.25, both),
        (0.4, both),
    ]:
        assert session.step(reading(time, posture, loads=loads)) is None
    assert session.step(reading(0.42, posture, missing="imu")) is None
    assert (session.state, session.reason) == (BalancePhase.UNKNOWN, "imu")
    for time in (0.45, 0.6):
        assert session.step(reading(time, posture)) is None
    assert session.step(reading(0.65, posture)) is not None
    assert session.feet == ("l_sole", "r_sole")


@pytest.mark.parametrize("fall", [AIRBORNE, LYING])
def test_a_robot_that_fell_waits_for_start(model, config, posture, fall):
    session = started(model, config, settle_time=0.2)
    for time in (0.0, 0.2):
        session.step(reading(time, posture))
    assert session.state == BalancePhase.BALANCING
    assert session.active
    assert session.step(reading(0.3, posture, **fall)) is None
    assert session.state == BalancePhase.FALLEN
    assert session.reason.endswith("; then call ~/start")
    for time in np.arange(0.4, 60.0, 0.4):
        assert session.step(reading(time, posture)) is None
        session.set_desired_com(np.array([0.01, 0.0, np.nan]))
        assert session.state == BalancePhase.FALLEN
        assert not session.active
    session.start()
    for time in (60.1, 60.31):
        session.step(reading(time, posture))
    assert session.state == BalancePhase.BALANCING


def test_time_that_goes_back_or_leaps(model, config, posture):
    session = started(model, config)
    session.step(reading(10.0, posture))
    assert session.state == BalancePhase.BALANCING
    session.set_desired_com(np.array([0.03, 0.0, np.nan]))
    last = session.step(reading(10.01, posture)).position
    held = session.step(reading(9.0, posture))
    assert session.state == BalancePhase.HOLDING
    assert "the time of joint_states went back by 1.010 s" in session.reason
    np.testing.assert_array_equal(held.position, last)
    leapt = session.step(reading(500.0, posture))
    assert np.abs(leapt.position - last).max() <= 2.0 * 0.1 + 1e-12
    assert session.state == BalancePhase.BALANCING


def test_only_feet_that_carry_stand(model, config, posture):
    session = started(model, config)
    loads = np.array([70.0, 0.5])
    session.step(replace(reading(0.0, posture), loads=loads))
    assert session.feet == ("l_sole",)


def test_without_imu_the_ground_is_level(model, config, posture):
    session = started(model, config)
    command = session.step(replace(reading(0.0, posture), up=None))
    assert command.step.frame.slope == pytest.approx(0.0, abs=1e-7)


def test_numbers_that_are_none_never_come_out(model, config, posture):
    rng = np.random.default_rng(3)
    session = started(model, config)
    session.step(reading(0.0, posture))
    for k in range(1, 300):
        q, up = (
            posture + rng.normal(scale=0.003, size=model.n_joints),
            np.array([0.0, 0.0, 1.0]),
        )
        if rng.random() < 0.2:
            q[rng.integers(model.n_joints)] = rng.choice([np.nan, np.inf])
        if rng.random() < 0.2:
            up[rng.integers(3)] = np.nan
        session.set_desired_com(rng.choice([0.0, 0.01, 5.0, np.nan, np.inf], size=3))
        command = session.step(replace(reading(0.01 * k, q), up=up))
        assert np.isfinite(command.position).all()
        assert np.isfinite(command.velocity).all()
        assert (session.reason == "") == (session.state == BalancePhase.BALANCING) or (
            "margin" in session.reason or "limit" in session.reason
        )


class Follower:
    """A session that balances, and a robot whose joints follow but for those in `frozen`."""

    def __init__(self, model, config, posture):
        self.model, self.q, self.time = model, posture.copy(), 0.0
        self.session = started(model, config)
        self.frozen = np.zeros(model.n_joints, dtype=bool)
        self.sent = [posture]
        self.step()
        assert self.session.state == BalancePhase.BALANCING
        self.session.set_desired_com(np.array([0.03, 0.0, np.nan]))

    def step(self, q=None):
        self.time += DT
        command = self.session.step(reading(self.time, self.q if q is None else q))
        if command is not None:
            step = np.abs(command.position - self.sent[-1])
            assert (step <= self.model.velocity_limits * DT + 1e-7).all()
            assert (command.position >= self.model.lower - 1e-9).all()
            assert (command.position <= self.model.upper + 1e-9).all()
            self.sent.append(command.position)
            self.q = np.where(self.frozen, self.q, command.position)
        return command

    def begins_again(self):
        assert self.session.problem(reading(self.time, self.q)) == ""
        self.session.start()
        self.step()
        assert self.session.state == BalancePhase.BALANCING


@pytest.mark.parametrize("absurd", [1e300, -1e6, 2.0 * np.pi, -2.0 * np.pi])
@pytest.mark.parametrize("lasting", [False, True])
def test_an_absurd_position_makes_it_hold_until_start(
    model, config, posture, absurd, lasting
):
    robot, joint = Follower(model, config, posture), model.joint_index("LLEG_JOINT4")
    for _ in range(60):
        robot.step()
    for k in range(60):
        robot.step(
            robot.q
            + absurd * (np.arange(model.n_joints) == joint) * (lasting or k == 0)
        )
        assert robot.session.state == BalancePhase.HOLDING
        assert robot.session.reason.startswith("holds: LLEG_JOINT4 reports ")
        assert robot.session.reason.endswith("; then call ~/start")
    np.testing.assert_array_equal(robot.sent[-1], robot.sent[-30])
    if lasting:
        slipped = reading(
            robot.time, robot.q + absurd * (np.arange(model.n_joints) == joint)
        )
        assert "LLEG_JOINT4 reports" in robot.session.problem(slipped)
        robot.session.start()
        assert robot.step(slipped.position) is None
        assert "LLEG_JOINT4 reports" in robot.session.reason
    robot.session.start()
    robot.step()
    robot.begins_again()


@pytest.mark.parametrize("jump", [-0.5, 20.0])
def test_a_clock_that_jumps_makes_it_hold_until_start(model, config, posture, jump):
    robot = Follower(model, config, posture)
    for _ in range(60):
        robot.step()
    robot.time += jump
    robot.session.restart_clock(jump)
    for _ in range(60):
        robot.step()
        assert robot.session.state == BalancePhase.HOLDING
    assert robot.session.reason == (
        f"holds: the clock of joint_states jumped by {jump:.3g} s: check its driver; "
        "then call ~/start"
    )
    np.testing.assert_array_equal(robot.sent[-1], robot.sent[-20])
    robot.begins_again()


def test_joints_that_do_not_follow_make_it_hold(model, config, posture):
    robot = Follower(model, config, posture)
    robot.frozen[:] = True
    for _ in range(400):
        robot.step()
    assert robot.session.state == BalancePhase.HOLDING
    assert "is the drive off" in robot.session.reason
    np.testing.assert_array_equal(robot.sent[-1], robot.sent[-20])
    robot.frozen[:] = False
    robot.begins_again()


class Sensing(Follower):
    """A Follower that sways, with noise of its sensors and a change of what they read."""

    def __init__(self, model, config, posture):
        self.rng, self.change = np.random.default_rng(3), lambda now: now
        self.weight = model.mass * GRAVITY
        self.body = Perfect(model, config, posture)
        super().__init__(model, config, posture)

    def step(self, q=None):
        left = 0.5 + 0.4 * np.sin(3.0 * self.time)
        loads = np.array([left, 1.0 - left]) + self.rng.normal(0.0, 1e-3, 2)
        turn = Rotation.from_rotvec(self.rng.normal(0.0, 5e-4, 3)).as_matrix()
        self.body.q = self.q
        now = BalanceReading(
            self.time + DT,
            self.q + self.rng.normal(0.0, 1e-4, len(self.q)),
            turn @ self.body.up(np.eye(3)),
            loads * self.weight,
        )
        if self.time > 1.0:
            self.session.set_desired_com(
                np.array([0.0, 0.01 * np.sin(3.0 * self.time), np.nan])
            )
        self.time += DT
        command = self.session.step(self.change(now))
        if command is not None:
            self.q = command.position
        return command

    def run(self, seconds, change=lambda now: now):
        self.change = change
        for _ in range(round(seconds / DT)):
            self.step()
        return self.session.state, self.session.reason


def jumped(now):
    return replace(now, position=now.position + 0.15 * (np.arange(25) == 3))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("loads", "the feet's wrenches are missing, frozen"),
        ("up", "the imu gives no orientation, a frozen one"),
        ("position", "the legs' joint positions are frozen"),
    ],
)
def test_a_frozen_sensor_is_noticed_and_believed_again(
    model, config, posture, name, text
):
    robot = Sensing(model, config, posture)
    assert robot.run(2.0) == (BalancePhase.BALANCING, "")
    first = []

    def freeze(now):
        first.append(getattr(now, name))
        return replace(now, **{name: first[0]})

    state, reason = robot.run(0.15, freeze)
    assert state is BalancePhase.HOLDING
    assert reason.startswith(f"holds: {text}")
    assert robot.run(0.9)[0] is BalancePhase.HOLDING
    assert robot.run(0.2) == (BalancePhase.BALANCING, "")


@pytest.mark.parametrize("factor", [-1.0, 10.0])
def test_a_foot_whose_wrench_cannot_be_is_no_fall(model, config, posture, factor):
    robot = Sensing(model, config, posture)
    robot.run(2.0)
    scale = np.array([factor, 1.0])
    state, reason = robot.run(0.05, lambda now: replace(now, loads=scale * now.loads))
    assert state is BalancePhase.HOLDING
    assert "wrenches" in reason


def test_an_encoder_that_jumps_makes_it_hold_until_it_is_back(model, config, posture):
    robot = Sensing(model, config, posture)
    robot.run(2.0)
    state, reason = robot.run(2.0, jumped)
    assert state is BalancePhase.HOLDING
    assert "joint positions are frozen or jump" in reason
    assert robot.run(1.2) == (BalancePhase.BALANCING, "")


@pytest.mark.parametrize(
    ("rate", "state"), [(0.3, BalancePhase.HOLDING), (0.15, BalancePhase.BALANCING)]
)
def test_soles_turn_against_gravity_no_faster_than_ground(
    model, config, posture, rate, state
):
    robot = Sensing(model, config, posture)
    robot.run(2.0)
    since = robot.time

    def drift(now):
        turn = Rotation.from_rotvec([0.0, rate * (now.time - since), 0.0])
        return replace(now, up=turn.apply(now.up))

    assert robot.run(0.16, drift)[0] is state
    assert robot.run(1.0, drift)[0] is state
    if state is BalancePhase.HOLDING:
        assert "turn against gravity" in robot.session.reason
        assert robot.run(0.4)[0] is BalancePhase.HOLDING
        assert robot.run(0.2) == (BalancePhase.BALANCING, "")


@pytest.mark.parametrize("step", [0.06, 0.3])
def test_a_clock_that_is_set_ahead_makes_no_leap(model, config, posture, step):
    robot = Sensing(model, config, posture)
    robot.run(2.0)
    sent = [robot.q]
    robot.time += step
    for _ in range(40):
        robot.step()
        assert robot.session.state is BalancePhase.BALANCING
        sent.append(robot.q)
    moves = np.abs(np.diff(sent, axis=0))
    assert (moves <= 2.0 * DT * 1.02).all()
    assert moves[:3].max() <= 2.0 * moves[3:].max()


def test_an_absurd_position_before_it_begins_is_waited_for(model, config, posture):
    session = started(model, config)
    for time in np.arange(0.0, 0.5, 0.1):
        assert session.step(reading(time, posture + 1e6)) is None
        assert session.state == BalancePhase.UNKNOWN
        assert "reports 1e+06" in session.reason
    session.step(reading(2.0, posture))
    assert session.state == BalancePhase.BALANCING
