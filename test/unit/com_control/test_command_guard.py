"""What is sent keeps all limits, and a robot that does not follow stops it, with the reason."""

import numpy as np
import pytest

from com_control.command_guard import CommandGuard, GuardOptions

NAMES = ("hip", "knee", "wheel")
TYPES = ("revolute", "revolute", "continuous")
LOWER = np.array([-1.0, 0.0, -np.inf])
UPPER = np.array([1.0, 2.0, np.inf])
SPEED = np.array([2.0, 4.0, np.inf])
HOME = np.array([0.0, 0.5, 0.0])
DT = 0.01


def away(hip, knee, wheel):
    return HOME + np.array([hip, knee, wheel])


def make(types=TYPES, **options):
    return CommandGuard(NAMES, LOWER, UPPER, SPEED, GuardOptions(**options), types)


def send(guard, due, q, qd=0.0):
    """One point (n,); what was sent of it."""
    q = np.array(q, dtype=float)
    sent, speeds = guard.limit(np.array([due]), q[None], np.full((1, 3), qd))
    assert np.isfinite(sent).all()
    assert np.isfinite(speeds).all()
    return sent[0], speeds[0]


def started(**options):
    guard = make(**options)
    assert guard.measure(0.0, HOME) == ""
    np.testing.assert_array_equal(send(guard, DT, HOME)[0], HOME)
    return guard


def follow(guard, path, lag=0.02, begin=DT, hold=None):
    """Send path(t) for 2 s to joints that are `lag` s late (hold: of index that does not move)."""
    for t in np.arange(begin, begin + 2.0, DT):
        measured = np.array(path(t - lag))
        if hold is not None:
            measured[hold] = HOME[hold]
        if guard.measure(t, measured):
            return t
        send(guard, t + DT, path(t + DT))
        assert not guard.reason
    return None


def swing(amplitude, frequency):
    def path(t):
        return HOME + np.array(amplitude) * np.sin(2 * np.pi * frequency * max(t, 0.0))

    return path


def test_what_keeps_the_limits_passes_unchanged():
    guard = started()
    sent, speeds = send(guard, 2 * DT, away(0.02, -0.04, 0.3), 1.5)
    np.testing.assert_array_equal(sent, away(0.02, -0.04, 0.3))
    np.testing.assert_array_equal(speeds, 1.5)
    assert guard.limited == ()
    assert guard.reason == ""


def test_positions_and_rates_are_limited():
    guard = started()
    sent, speeds = send(guard, 2 * DT, away(0.1, 0.03, 0.0), 9.0)
    np.testing.assert_allclose(sent, away(0.02, 0.03, 0.0), atol=1e-8)
    np.testing.assert_allclose(speeds, [2.0, 4.0, 9.0], atol=1e-5)
    assert guard.limited == ("hip",)
    for k in range(3, 100):
        sent, _ = send(guard, k * DT, [min(0.02 * k, 1.2), 0.5, 0.0])
    assert sent[0] == 1.0
    assert guard.reason == ""


@pytest.mark.parametrize("pause", [0.02, 0.09, 0.4])
def test_a_pause_between_commands_allows_no_jump(pause):
    guard = started()
    guard.measure(pause, HOME)
    sent, _ = send(guard, pause + DT, away(0.0, 0.3, 0.0))
    assert 0.0 < sent[1] - HOME[1] <= 0.015 * SPEED[1] + 1e-6
    assert guard.limited == ("knee",)
    assert not guard.reason


def test_a_trajectory_is_limited_from_point_to_point():
    guard = started()
    due = 2 * DT + np.array([0.0, 0.1, 0.2])
    path = HOME + np.array([[0.01, 0.0, 0.0], [0.3, 0.0, 0.0], [0.35, 0.0, 0.0]])
    sent, speeds = guard.limit(due, path, np.zeros((3, 3)))
    np.testing.assert_allclose(sent[:, 0], [0.01, 0.21, 0.35], atol=1e-7)
    np.testing.assert_allclose(speeds[:, 0], [0.0, 2.0, 0.0], atol=1e-6)


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_a_random_stream_never_breaks_a_limit(factor):
    rng = np.random.default_rng(4)
    guard, last, due = started(speed_factor=factor, following_error=5.0), HOME, DT
    for _ in range(2000):
        step = rng.uniform(0.0, 0.05)
        due += step
        sent, speeds = send(
            guard, due, last + rng.normal(scale=0.2, size=3), rng.normal() * 9
        )
        assert (np.abs(sent - last) <= factor * SPEED * step + 1e-7).all()
        assert (sent >= LOWER).all()
        assert (sent <= UPPER).all()
        assert (np.abs(speeds) <= factor * SPEED).all()
        last = sent
    assert guard.reason == ""


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (
            [0.0, np.nan, 0.0],
            "the command of knee is nan, its limits of position and velocity",
        ),
        ([0.0, 0.5, np.inf], "the command of wheel is inf"),
        (
            [2.9, 0.5, 0.0],
            "the command of hip is 2.9, its limits of position and velocity allow",
        ),
        ([-1e300, 0.5, 0.0], "the command of hip is -1e+300"),
    ],
)
def test_an_absurd_command_is_not_sent_and_stops_until_restart(command, reason):
    guard = started()
    sent, speeds = send(guard, 2 * DT, command)
    np.testing.assert_array_equal(sent, HOME)
    np.testing.assert_array_equal(speeds, 0.0)
    assert reason in guard.reason
    np.testing.assert_array_equal(send(guard, 3 * DT, HOME + 0.01)[0], HOME)
    assert guard.measure(3 * DT, HOME) == guard.reason
    guard.restart()
    assert guard.measure(4 * DT, HOME) == ""
    np.testing.assert_allclose(send(guard, 5 * DT, HOME + 0.01)[0], HOME + 0.01)
    assert guard.reason == ""


def test_a_velocity_that_is_not_finite_stops():
    guard = started()
    np.testing.assert_array_equal(send(guard, 2 * DT, HOME, np.nan)[1], 0.0)
    assert guard.reason.startswith("a commanded velocity is not finite")


def test_the_first_command_must_be_near_the_robot():
    guard = make()
    guard.measure(0.0, HOME)
    sent, _ = send(guard, DT, away(0.0, 0.7, 0.0))
    np.testing.assert_array_equal(sent, HOME)
    assert guard.reason == (
        "the command of knee is 1.2, the joint is at 0.5, more than 0.50 away: begin nearer to "
        "where the robot is"
    )


ABSURD = [
    (
        [1e300, 0.5, 0.0],
        "hip reports 1e+300, its limits are -1 to 1: check its encoder",
    ),
    (
        [0.0, 0.5, 1e6],
        "wheel reports 1e+06, its limits are -inf to inf: check its encoder",
    ),
    ([0.0, np.nan, 0.0], "knee reports nan, its limits are 0 to 2"),
    ([0.0, 0.5 + 2 * np.pi, 0.0], "knee reports 6.783, its limits are 0 to 2"),
    (
        [0.0, 0.5, 2 * np.pi],
        "wheel jumped by 6.28 within 0.010 s, at most 1.4 is possible",
    ),
]


@pytest.mark.parametrize(("measured", "reason"), ABSURD)
def test_an_absurd_position_stops_what_is_commanded(measured, reason):
    guard = started()
    assert reason in guard.measure(DT, np.array(measured))
    assert guard.measure(2 * DT, HOME) == guard.reason != ""
    guard.restart()
    assert guard.measure(3 * DT, HOME) == ""


@pytest.mark.parametrize(("measured", "reason"), ABSURD)
def test_an_absurd_position_is_only_reported_while_nothing_is_commanded(
    measured, reason
):
    guard = make()
    guard.measure(0.0, HOME)
    assert reason in guard.measure(DT, np.array(measured))
    assert guard.reason == ""
    assert guard.measure(2 * DT, HOME) == ""


@pytest.mark.parametrize("amplitude", [0.02, 0.3])
@pytest.mark.parametrize("frequency", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("lag", [0.0, 0.05])
def test_joints_that_follow_are_no_problem(amplitude, frequency, lag):
    guard = started(speed_factor=3.0)
    assert follow(guard, swing([amplitude, 0.0, amplitude], frequency), lag) is None
    assert guard.limited == ()


def test_a_joint_that_lags_far_behind_stops_it():
    guard = started(following_error=0.2)
    stopped = follow(guard, swing([0.3, 0.0, 0.0], 0.8), lag=0.3)
    assert stopped < 0.6
    assert guard.reason.startswith("hip is 0.")
    assert guard.reason.endswith(
        "rad from its target, following_error is 0.20: is it blocked, or is the drive off?"
    )


@pytest.mark.parametrize(
    ("types", "unit"),
    [(("prismatic", "revolute", "revolute"), "m"), (None, "rad or m")],
)
def test_errors_have_the_unit_of_the_joint(types, unit):
    guard = started(types=types, following_error=0.2)
    assert follow(guard, swing([0.3, 0.0, 0.0], 0.8), lag=0.3) < 0.6
    assert f" {unit} from its target" in guard.reason


def test_a_short_error_is_allowed():
    guard = started(following_error=0.2, following_time=0.1)
    for t, measured in ((0.02, 0.3), (0.1, 0.3), (0.11, 0.0), (0.12, 0.3), (0.21, 0.3)):
        assert guard.measure(t, away(measured, 0.0, 0.0)) == ""
    assert "hip is 0.30 rad from its target" in guard.measure(0.22, away(0.3, 0.0, 0.0))


def test_a_joint_that_does_not_move_stops_it_long_before_it_is_far_off():
    guard = started()
    stopped = follow(guard, swing([0.0, 0.2, 0.0], 0.5), hold=1)
    assert stopped < 1.5
    assert guard.reason.startswith(
        "knee do not follow: knee moved by 0.000 where its commands"
    )
    assert (
        follow(started(), swing([0.0, 0.2, 0.0], 0.5), hold=0) is None
    )  # it is not to move


@pytest.mark.parametrize(("pause", "leads"), [(0.1, True), (5.0, False)])
def test_a_restart_leads_from_the_last_command(pause, leads):
    guard = started()
    guard.restart()
    joints = away(0.3, -0.3, 0.0)
    guard.measure(pause, joints)
    sent, _ = send(guard, DT + pause, joints)
    np.testing.assert_allclose(
        sent, away(0.2, -0.3, 0.0) if leads else joints, atol=1e-8
    )
    for k in range(20):
        assert guard.measure(pause + k * DT, joints) == ""
        sent, _ = send(guard, DT + pause + k * DT, joints)
    np.testing.assert_allclose(sent, joints)


def test_another_clock_leads_from_the_last_command():
    guard = started()
    joints = away(0.3, -0.3, 0.0)
    guard.measure(-20.0, joints)
    np.testing.assert_allclose(send(guard, DT - 20.0, joints)[0], HOME, atol=1e-8)
    sent, _ = send(guard, 2 * DT - 20.0, joints)
    np.testing.assert_allclose(sent, away(0.02, -0.04, 0.0), atol=1e-7)
    assert guard.reason == ""


@pytest.mark.parametrize("jump", [-20.0, 20.0])
def test_a_clock_that_jumps_stops_what_was_commanded_until_restart(jump):
    guard = started()
    guard.change_clock(0.0)  # it has started: stamps of zero came before
    assert guard.measure(DT, HOME) == ""
    guard = started()
    guard.change_clock(jump)
    reason = f"the clock of joint_states jumped by {jump:.3g} s: check its driver"
    assert guard.measure(jump + DT, HOME) == reason
    guard.restart()
    guard.change_clock(jump)  # nothing has been commanded
    assert guard.measure(2 * jump, HOME) == ""


def test_repeated_positions_are_noticed_on_a_busy_machine_that_misses_samples():
    guard = started()
    for t in np.arange(DT, 3.0, DT):
        if t % 0.4 > 0.2:  # every other 0.2 s
            guard.measure(t, HOME)
        send(guard, t + DT, away(min(0.3 * t, 0.4), 0.0, 0.0))
    assert guard.reason.startswith("hip do not follow")


def test_positions_that_are_repeated_are_noticed_within_half_a_second():
    guard = started()
    for t in np.arange(DT, 0.6, DT):
        guard.measure(t, HOME)
        send(guard, t + DT, away(min(0.3 * t, 0.4), 0.0, 0.0))
    assert guard.reason.startswith("hip do not follow")


def test_a_clock_that_goes_back_is_no_error_of_the_joints():
    guard = started()
    assert follow(guard, swing([0.2, 0.0, 0.0], 0.5), begin=100.0) is None
    assert guard.measure(3.0, HOME) == ""
    assert follow(guard, swing([0.2, 0.0, 0.0], 0.5), begin=3.0 + DT) is None


def test_a_due_time_that_goes_back_leaves_the_joints_where_they_are_sent():
    guard = started()
    for k in range(2, 20):
        last, _ = send(guard, k * DT, away(0.01 * k, 0.0, 0.0))
    sent, _ = send(guard, -50.0, away(0.4, 0.0, 0.0))
    np.testing.assert_allclose(sent, last, atol=1e-8)
    assert guard.reason == ""


def test_joints_that_are_not_driven_may_have_no_command():
    guard = make()
    guard.measure(0.0, HOME)
    driven = np.array([True, True, False])
    for k in range(1, 5):
        path = np.array([[0.01 * k, 0.5, np.nan]])
        sent, speeds = guard.limit(np.array([k * DT]), path, path * 0.0, driven)
        np.testing.assert_array_equal(sent[:, :2], path[:, :2])
        assert np.isfinite(speeds[:, :2]).all()
        assert guard.measure(k * DT, away(0.01 * k, 0.0, 0.3 * k)) == ""
    assert guard.reason == ""


def test_memory_does_not_grow():
    guard = started()
    assert follow(guard, swing([0.2, 0.0, 0.0], 1.0)) is None
    assert len(guard._dues) == len(guard._targets) < 10
