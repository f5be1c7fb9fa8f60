"""The trot: timing, smoothness, swing height, feedback and bad input."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_control.exceptions import GaitError
from com_control.trot.attitude import MAX_BIAS, smooth_step, swing_height, swing_profile
from com_control.trot.parameters import GaitParameters
from com_control.trot.session import GaitSession, TrotPhase
from com_control.trot.trot import TrotFeedback, TrotGait
from com_model import RobotConfig, RobotModel
from com_model.dynamics import GRAVITY
from com_model.robot_config import TrotSizes
from com_model.robots import find_robot

pytestmark = pytest.mark.slow


@cache
def load(robot):
    files = find_robot(robot)
    return RobotModel.from_file(files.urdf), RobotConfig.from_file(files.config)


def make(robot="scalf2", **parameters):
    return TrotGait(*load(robot), GaitParameters(**parameters))


def feet(gait, target):
    pairs = zip(gait.kinematics, gait.legs, strict=True)
    return (
        np.array([k.position(target.position[leg.joints]) for k, leg in pairs])
        - gait.center
    )


@pytest.mark.parametrize(
    "robot", ["scalf2", "anymal", "anymal_c", "a1", "go2", "solo12", "hyq"]
)
def test_robots_trot_with_default_parameters(robot):
    gait = make(robot)
    for time in np.arange(0.0, 2.0, 0.01):
        target = gait.step(time)
        assert target.problems == ()
        assert np.isfinite(target.position).all()
        assert target.stance.sum() == 2


def test_what_is_not_given_is_as_the_configuration_says():
    model, config = load("scalf2")
    sizes = TrotSizes(frequency=1.5, step_height=0.04, body_height=0.5)
    configured = replace(config, trot=sizes)
    found = TrotGait(model, configured).parameters
    assert (found.frequency, found.step_height, found.height) == (1.5, 0.04, 0.5)
    given = TrotGait(
        model, configured, GaitParameters(frequency=2.0, height=0.52)
    ).parameters
    assert (given.frequency, given.step_height, given.height) == (2.0, 0.04, 0.52)
    assert TrotGait(model, config).parameters.frequency == 1.0
    assert TrotGait(model, config).parameters.blend == 0.2


@pytest.mark.parametrize("robot", ["scalf2", "anymal", "solo12"])
def test_with_feedback_it_steps_as_fast_as_the_robot_falls(robot):
    """All times scale with sqrt(height / g)."""
    p = TrotGait(*load(robot), feedback=True).parameters
    falls = np.sqrt(p.height / GRAVITY)
    assert p.capture_time == pytest.approx(falls)
    assert 0.5 / p.frequency == pytest.approx(0.775 * falls)
    assert p.blend == 0.6


def swung(frequency, rate):
    """Feet in the middle of a step, of a trunk that is level and turns about y."""
    gait = make(frequency=frequency, ramp_time=0.0, attitude_filter=0.0)
    omega = np.array([0.0, rate, 0.0])
    for time in np.arange(0.0, 1.75 / frequency, 0.001):
        target = gait.step(time, TrotFeedback(np.eye(3), np.zeros(2), omega))
    return feet(gait, target), target, gait.parameters


def test_feet_land_at_the_capture_point_of_a_trunk_that_turns():
    turning, target, p = swung(2.0, 0.1)
    level, _, _ = swung(2.0, 0.0)
    moved = (turning - level)[target.stance]
    np.testing.assert_allclose(moved[:, 0], p.height * p.capture_time * 0.1, rtol=1e-3)
    np.testing.assert_allclose(moved[:, 1], 0.0, atol=1e-4)
    late, _, _ = swung(1.0, 0.1)  # half a period is longer than the capture time
    none, target, _ = swung(1.0, 0.0)
    np.testing.assert_allclose((late - none)[target.stance, :2], 0.0, atol=1e-3)


def test_diagonals_swing_in_turn():
    gait = make()
    assert gait.step(0.25).stance.tolist() == [False, True, True, False]
    assert gait.step(0.75).stance.tolist() == [True, False, False, True]


def test_all_feet_stand_between_swings_with_a_longer_duty_factor():
    gait = make(duty_factor=0.7)
    assert gait.step(0.1).stance.sum() == 2
    assert gait.step(0.4).stance.all()


def test_swing_feet_rise_by_the_step_height_and_return():
    gait = make(step_height=0.08)
    start = feet(gait, gait.step(-0.1))
    top = feet(gait, gait.step(0.25))
    np.testing.assert_allclose(
        top[:, 2] - start[:, 2], [0.08, 0.0, 0.0, 0.08], atol=1e-9
    )
    for time in np.arange(0.26, 1.0, 0.01):
        gait.step(time)
    np.testing.assert_allclose(feet(gait, gait.step(1.0)), start, atol=1e-3)


@pytest.mark.parametrize("periods", [[0.001], [0.002, 0.005, 0.003]])
def test_velocities_are_the_derivative_at_their_own_time(periods):
    gait = make(velocity_x=0.2, velocity_y=0.05, yaw_rate=0.1)
    dt = np.resize(periods, round(3.0 / np.mean(periods)))
    times = np.cumsum(dt)
    targets = [gait.step(time) for time in times]
    position = np.array([target.position for target in targets])
    velocity = np.array([target.velocity for target in targets])
    central = np.gradient(position, times, axis=0)  # of second order, uneven steps too
    error = np.abs(velocity - central)[2:-1]
    assert np.abs(central).max() > 1.0
    # a backward difference would be off by half a step of the acceleration
    backward = np.abs(np.diff(position, axis=0) / dt[1:, None] - central[1:])[1:-1]
    steady = times[2:-1] > 2.1  # when the velocity has reached its value
    assert error[steady].max() < 0.15 * backward[steady].max()
    assert np.sqrt(np.mean(error[steady] ** 2)) < 0.1 * np.sqrt(
        np.mean(backward[steady] ** 2)
    )


def test_feet_on_the_ground_move_backwards_with_the_velocity():
    gait = make(velocity_x=0.2, ramp_time=0.0)
    for time in np.arange(-0.01, 2.25, 0.01):
        one = gait.step(time)
    two = gait.step(time + 0.01)
    assert one.stance.tolist() == two.stance.tolist()
    moved = (feet(gait, two) - feet(gait, one))[one.stance] / 0.01
    np.testing.assert_allclose(moved, np.tile([-0.2, 0.0, 0.0], (2, 1)), atol=1e-6)


def test_another_velocity_is_taken_up_smoothly_and_bounded():
    gait = make(frequency=2.0)
    q, previous = gait.step(-0.002).position, np.zeros(len(gait.posture))
    jumps = []
    for k in range(2550):
        if k == 1000:
            gait.set_velocity([0.3, 0.1, 0.2])
        target = gait.step(0.002 * k)
        speed, q = (target.position - q) / 0.002, target.position
        jumps.append(np.abs(speed - previous).max())
        previous = speed
    assert max(jumps[1000:]) < 1.5 * max(jumps[500:1000]) + 0.02
    later = gait.step(0.002 * 2550)
    assert later.stance.tolist() == target.stance.tolist()
    moved = (feet(gait, later) - feet(gait, target))[target.stance, :2] / 0.002
    place = feet(gait, target)[target.stance]
    expected = -np.array([0.3, 0.1]) - 0.2 * np.column_stack(
        (-place[:, 1], place[:, 0])
    )
    np.testing.assert_allclose(moved, expected, atol=0.03)
    gait.set_velocity([100.0, 0.0, 0.0])  # the legs do not reach that far
    assert 0.5 < gait._wanted_velocity[0] < 10.0
    for bad in ([np.nan, 0.0, 0.0], [1.0]):
        with pytest.raises(GaitError, match="give m/s, m/s and rad/s"):
            gait.set_velocity(bad)


@pytest.mark.parametrize("leg", range(4))
def test_swing_height_holds_for_every_leg_and_rotation(leg):
    gait = make(swing_compensation=True)
    R = Rotation.from_euler("ZYX", [0.7, 0.03, -0.04]).as_matrix()
    for time in np.arange(0.0, 1.0, 0.01):
        target = gait.step(time, TrotFeedback(R))
        if not target.stance[leg]:
            heights = feet(gait, target) @ R[2]
            ground = heights[target.stance].mean()
            assert heights[leg] - ground == pytest.approx(
                target.clearance[leg], abs=1e-9
            )


def test_swing_height_is_equation_19_of_the_paper_for_the_right_front_leg():
    L, W, H, h = 1.26, 0.62, 0.75, 0.05
    x, y, roll, pitch = 0.03, -0.04, 0.02, -0.03
    up = Rotation.from_euler("ZYX", [0.0, pitch, roll]).as_matrix()[2]
    top = (
        -H
        + h
        + (x + 0.5 * L) * np.sin(pitch)
        - (y - 0.5 * W) * np.cos(pitch) * np.sin(roll)
    )
    printed = top / (np.cos(roll) * np.cos(pitch))
    assert swing_height(up, x + 0.5 * L, y - 0.5 * W, -H, h) == pytest.approx(
        printed, abs=1e-12
    )


def test_shapes_begin_and_end_at_rest():
    d = 1e-4
    for shape, end in ((smooth_step, 1.0), (swing_profile, 0.0)):
        assert shape(0.0) == 0.0
        assert shape(1.0) == pytest.approx(end)
        assert abs(shape(d)) < 1e-10
        assert abs(shape(1.0 - d) - end) < 1e-10
    assert swing_profile(0.5) == 1.0


def test_feet_are_shifted_below_the_center_of_mass():
    gait = make(start_delay=10.0)
    com = np.array([-0.03, 0.05, 0.0])
    start = feet(gait, gait.step(0.0))
    for time in np.arange(0.01, 3.0, 0.01):
        target = gait.step(time, TrotFeedback(np.eye(3), com))
    moved = feet(gait, target) - start
    np.testing.assert_allclose(
        moved, np.tile([*target.com_shift, 0.0], (4, 1)), atol=1e-6
    )
    np.testing.assert_allclose(target.com_shift, com[:2], rtol=0.1, atol=2e-3)
    assert not target.saturated


def test_the_first_step_waits_until_the_feet_are_shifted():
    gait, com = make(start_delay=0.1, max_wait=5.0), [-0.03, 0.05, 0.0]
    time = 0.0
    while np.isnan((target := gait.step(time, TrotFeedback(np.eye(3), com))).phase):
        assert target.stance.all()
        time += 0.01
    assert 0.3 < time < 5.0
    assert target.phase == 0.0
    np.testing.assert_allclose(target.com_shift, com[:2], rtol=0.1, atol=3e-3)


def test_the_first_step_does_not_wait_for_ever():
    gait = make(start_delay=0.1, max_wait=0.2)
    targets = [
        gait.step(t, TrotFeedback(np.eye(3), [-0.03, 0.05, 0.0]))
        for t in (0.0, 0.1, 0.29, 0.31)
    ]
    assert [np.isnan(target.phase) for target in targets] == [True, True, True, False]
    assert make(start_delay=0.1).step(0.1).phase == 0.0  # without feedback not at all


def test_swing_feet_are_levelled_with_feedback_alone():
    R, com = Rotation.from_euler("x", 0.03).as_matrix(), [0.0, 0.0, 0.0]
    for offset, swing_compensation, levelled in (
        (None, False, False),
        (None, True, True),
        (com, False, True),
    ):
        gait = make(swing_compensation=swing_compensation, slope_time=1e9)
        for time in np.arange(0.0, 2.26, 0.01):
            target = gait.step(time, TrotFeedback(R, offset))
        heights = feet(gait, target) @ R[2]
        error = np.abs(
            heights[[0, 3]] - heights[[1, 2]].mean() - target.clearance[[0, 3]]
        ).max()
        assert (error < 1e-6) == levelled


def test_on_a_slope_feet_stand_below_the_com_and_swing_over_the_slope():
    tilt = 0.1  # of the bias and the slope
    R, level = Rotation.from_euler("y", -tilt).as_matrix(), np.eye(3)
    shifts = []
    for attitude in (level, R):
        gait = make(start_delay=1.0)
        for time in np.arange(0.0, 3.26, 0.01):
            target = gait.step(time, TrotFeedback(attitude, [0.0, 0.0, 0.0]))
        shifts.append(target.com_shift)
    heights = feet(gait, target)[:, 2]
    swung = heights[~target.stance] - heights[target.stance].mean()
    np.testing.assert_allclose(swung, target.clearance[~target.stance], atol=1e-4)
    downhill = -(np.sin(tilt) - MAX_BIAS) * gait.parameters.height
    np.testing.assert_allclose(shifts[1] - shifts[0], [downhill, 0.0], atol=2e-3)


def test_a_shift_too_far_is_bounded_and_reported():
    gait = make(start_delay=10.0, max_com_shift=0.05)
    for time in np.arange(0.0, 3.0, 0.01):
        target = gait.step(time, TrotFeedback(np.eye(3), [0.4, 0.0, 0.0]))
    assert target.saturated
    assert np.linalg.norm(target.com_shift) == pytest.approx(0.05, abs=1e-6)


def test_not_finite_input_changes_nothing():
    one, two = make(), make()
    for time in np.arange(0.0, 0.3, 0.01):
        a = one.step(
            time, TrotFeedback(np.full((3, 3), np.nan), *np.full((2, 3), np.nan))
        )
        b = two.step(time)
        np.testing.assert_array_equal(a.position, b.position)


def test_out_of_reach_is_reported_and_finite():
    gait = make(height=0.78, max_compensation=0.5, swing_compensation=True)
    R = Rotation.from_euler("x", 0.45).as_matrix()
    targets = [gait.step(time, TrotFeedback(R)) for time in np.arange(0.0, 1.0, 0.01)]
    assert any("foot is" in text for target in targets for text in target.problems)
    assert all(np.isfinite(target.position).all() for target in targets)


def test_bad_parameters_are_refused():
    with pytest.raises(
        GaitError, match=r"duty_factor is 0\.3: give a number from 0\.5 to 0\.95"
    ):
        GaitParameters(duty_factor=0.3)
    with pytest.raises(GaitError, match="give left_front or right_front"):
        GaitParameters(first="left_hind")
    with pytest.raises(GaitError, match="frequency is nan"):
        GaitParameters(frequency=float("nan"))
    with pytest.raises(GaitError, match=r"cannot stand 2\.000 m high"):
        make(height=2.0)


def test_time_that_goes_back_is_refused():
    gait = make()
    gait.step(1.0)
    with pytest.raises(GaitError, match="the gait is at 1 s"):
        gait.step(0.5)
    gait.reset()
    gait.step(0.5)


@pytest.mark.parametrize("duty_factor", [0.5, 0.500001, 0.55, 2 / 3, 0.75, 0.95])
def test_one_diagonal_stands_at_any_frequency_and_rate(duty_factor):
    rng = np.random.default_rng(1)
    for frequency in (*np.arange(0.5, 3.01, 0.1), *rng.uniform(0.05, 10.0, 10)):
        begin = rng.uniform(0.0, 1e4)
        gait = make(frequency=frequency, duty_factor=duty_factor, start_delay=begin)
        lift_offs = begin + 0.5 / frequency * np.array([0, 1, 2, 5, 20])
        changes = np.concatenate(
            (lift_offs, lift_offs + (1.0 - duty_factor) / frequency)
        )
        times = [np.nextafter(changes, 0.0), changes, np.nextafter(changes, np.inf)]
        for time in np.sort(np.concatenate(times)):
            stance = gait.step(time).stance
            assert stance[[0, 3]].all() or stance[[1, 2]].all()


# --- session -------------------------------------------------------------------------------------
DT = 0.005


class Quadruped:
    """A session and a robot whose joints follow, one sample late, but for those in `frozen`."""

    def __init__(self, **parameters):
        self.gait = make(**parameters)
        self.session = GaitSession(self.gait, 0.2, horizon=0.01)
        self.time, self.q = 5.0, self.gait.posture.copy()
        self.frozen = []  # indices

    def step(self, q=None):
        self.time += DT
        self.session.check("")
        command = self.session.step(self.time, self.q if q is None else q)
        if command is not None:
            kept, self.q = self.q[self.frozen], command.position.copy()
            self.q[self.frozen] = kept
        return command

    def trot(self, until):
        """Trots to a phase."""
        for _ in range(2000):
            command = self.step()
            if (
                command.state is TrotPhase.TROTTING
                and abs(command.gait.phase - until) < DT
            ):
                return command
        raise AssertionError(f"it does not trot: {self.session.reason}")

    def heights(self, command):
        return feet(self.gait, command)[:, 2]


def test_session_leads_trots_and_stops_on_all_feet():
    robot = Quadruped()
    robot.q = start = robot.gait.posture + 0.1
    np.testing.assert_allclose(robot.step().position, start, atol=1e-4)
    assert robot.step().state is TrotPhase.APPROACHING
    robot.trot(0.3)
    robot.session.stop("enough")
    for _ in range(100):
        command = robot.step()
    assert command.state is TrotPhase.STANDING
    assert command.stance.all()
    assert robot.session.reason == "enough"
    np.testing.assert_allclose(command.position, robot.gait.posture)


@pytest.mark.parametrize(
    ("duty_factor", "phase", "absurd"),
    [
        (0.5, 0.1, 1e300),
        (0.5, 0.45, 1e6),
        (0.5, 0.8, 2 * np.pi),
        (0.7, 0.1, 1e6),
        (0.7, 0.9, 1e6),
    ],
)
def test_an_absurd_position_ends_the_swing_and_then_it_holds(
    duty_factor, phase, absurd
):
    robot = Quadruped(duty_factor=duty_factor)
    before = robot.trot(phase)
    slipped = robot.q.copy()
    slipped[4] += absurd
    commands = [robot.step(slipped), *(robot.step() for _ in range(150))]
    assert robot.session.reason.startswith(robot.gait.model.joint_names[4])
    assert not robot.session.trot
    assert commands[-1].state is TrotPhase.STANDING
    ground = robot.gait.home[:, 2]
    assert np.ptp(robot.heights(before) - ground) > 1e-3 or before.stance.all()
    np.testing.assert_allclose(robot.heights(commands[-1]), ground, atol=2e-3)
    standing = [c.state is TrotPhase.STANDING for c in commands]
    assert standing.index(True) <= (0.5 - phase % 0.5) / DT + 1
    assert all(standing[standing.index(True) :])
    held = commands[standing.index(True)]
    for command in commands[standing.index(True) :]:
        np.testing.assert_array_equal(command.position, held.position)
        np.testing.assert_array_equal(command.velocity, 0.0)
    moves = np.diff([c.position for c in (before, *commands)], axis=0)
    assert (np.abs(moves) <= robot.gait.model.velocity_limits * DT + 1e-6).all()
    robot.session.start()
    robot.trot(0.2)
    assert robot.session.reason == ""


def test_a_robot_whose_joints_do_not_follow_stops():
    robot = Quadruped()
    robot.frozen = [2]
    robot.trot(0.1)
    for _ in range(400):
        command = robot.step()
    name = robot.gait.model.joint_names[2]
    assert command.state is TrotPhase.STANDING
    assert name in robot.session.reason
    assert "is the drive off" in robot.session.reason
    robot.session.start()
    robot.frozen = []
    robot.trot(0.4)


def test_an_absurd_position_before_the_first_command_is_waited_for():
    robot = Quadruped()
    for _ in range(10):
        assert robot.step(robot.q + 1e6) is None
    assert robot.session.reason.startswith("waits: ")
    assert "reports 1e+06, its limits are" in robot.session.reason
    robot.trot(0.2)
    assert robot.session.reason == ""


@pytest.mark.parametrize("jump", [-20.0, -1e9, 9.0, 3600.0])
def test_a_clock_that_jumps_stops_the_trot_until_it_is_asked_for(jump):
    robot = Quadruped()
    before = robot.trot(0.3)
    robot.time += jump
    robot.session.restart_clock(jump)
    commands = [robot.step() for _ in range(1500)]
    moves = np.diff([c.position for c in (before, *commands)], axis=0)
    assert np.abs(moves).max() <= 0.05
    assert commands[-1].state is not TrotPhase.TROTTING
    assert (
        robot.session.reason
        == f"the clock of joint_states jumped by {jump:.3g} s: check its driver"
    )
    robot.session.start()
    robot.trot(0.2)
    assert robot.session.reason == ""


@pytest.mark.parametrize("by", [-1e9, 9.0])
def test_a_clock_that_starts_while_it_trots_changes_nothing(by):
    """Stamps of zero came before: their time was that of their receipt."""
    robot = Quadruped()
    before = robot.trot(0.3)
    robot.time += by
    robot.session.restart_clock(0.0)
    commands = [robot.step() for _ in range(300)]
    moves = np.diff([c.position for c in (before, *commands)], axis=0)
    assert np.abs(moves).max() <= 0.05
    assert all(c.state is TrotPhase.TROTTING for c in commands)
    assert abs(commands[0].gait.phase - before.gait.phase) < 2 * DT


@pytest.mark.parametrize("step", [0.06, 0.3, 0.45, -0.3])
def test_a_clock_that_is_set_a_little_makes_no_leap(step):
    robot = Quadruped()
    before = robot.trot(0.3)
    robot.time += step
    commands = [before, *(robot.step() for _ in range(250))]
    assert all(c.state is TrotPhase.TROTTING for c in commands)
    moves = np.abs(np.diff([c.position for c in commands], axis=0))
    usual = moves[20:].max(axis=0)
    assert (moves <= 1.1 * usual + 1e-6).all()
    assert (moves <= robot.gait.model.velocity_limits * DT + 1e-6).all()
    assert abs(commands[1].gait.phase - before.gait.phase) < 2 * DT


def test_a_slower_rate_of_readings_is_no_gap():
    robot = Quadruped()
    robot.trot(0.3)
    for _ in range(5):
        robot.time += 0.1
        command = robot.step()
    phase = command.gait.phase
    robot.time += 0.1
    assert robot.step().gait.phase != phase


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("", ""),
        ("frozen", "the imu gives no orientation, a frozen one"),
        ("drift", "turns unlike its angular velocity"),
        ("gyro", "turns unlike its angular velocity"),
        ("encoder", "the legs' joint positions are frozen or jump"),
    ],
)
def test_a_sensor_that_fails_stops_the_trot_until_it_is_asked_for(fault, text):
    robot, rng = Quadruped(), np.random.default_rng(0)

    def step(fault, k):
        up = Rotation.from_rotvec(rng.normal(0.0, 1e-3, 3)).as_matrix()
        if fault == "drift":
            up = Rotation.from_rotvec([0.0, 0.3 * DT * k, 0.0]).as_matrix() @ up
        up = np.eye(3) if fault == "frozen" else up
        q = (
            robot.q
            + rng.normal(0.0, 1e-4, 12)
            + 0.15 * (fault == "encoder") * np.eye(12)[2]
        )
        robot.time += DT
        robot.session.check("")
        gyro = np.zeros(3) if fault == "gyro" else rng.normal(0.0, 1e-3, 3)
        command = robot.session.step(robot.time, q, TrotFeedback(up, None, gyro))
        robot.q = command.position.copy()
        return command

    for k in range(300):
        assert not robot.session.reason, k
        step("", k)
    for k in range(30):
        command = step(fault, k)
    assert text in robot.session.reason
    assert robot.session.trot is not bool(fault)
    for k in range(100):
        command = step("", k)
    assert command.stance.all() or not fault
    robot.session.start()
    for k in range(100):
        command = step("", k)
    assert command.state is TrotPhase.TROTTING
    assert robot.session.reason == ""


def test_a_trunk_that_turns_in_a_gap_of_joint_states_is_no_fault_of_the_imu():
    robot, rng = Quadruped(), np.random.default_rng(0)

    def step(pitch):
        noise = rng.normal(0.0, 1e-4, 3)
        up = Rotation.from_rotvec(np.array([0.0, pitch, 0.0]) + noise).as_matrix()
        robot.time += DT
        q = robot.q + rng.normal(0.0, 1e-4, 12)
        feedback = TrotFeedback(up, None, rng.normal(0.0, 1e-3, 3))
        command = robot.session.step(robot.time, q, feedback)
        robot.q = command.position.copy()
        return command

    for _ in range(300):
        command = step(0.0)
    assert command.state is TrotPhase.TROTTING
    robot.time += 0.3
    for _ in range(100):
        command = step(0.06)
    assert robot.session.reason == ""
    assert command.state is TrotPhase.TROTTING


def test_a_stamp_that_goes_back_a_little_is_survived():
    robot = Quadruped()
    robot.trot(0.3)
    robot.time -= 0.4
    for _ in range(200):
        command = robot.step()
    assert command.state is TrotPhase.TROTTING
