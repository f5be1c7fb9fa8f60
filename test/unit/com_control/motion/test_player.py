"""The player as a function of time: leads, plays, pauses, stops, and never jumps."""

import numpy as np
import pytest

from com_control.exceptions import MotionError
from com_control.motion.motion import Motion
from com_control.motion.player import MotionPhase, Player, PlayerOptions

pytestmark = pytest.mark.slow

DT = 0.01


class Bench:
    """A robot whose drives do what they are commanded, cubics between the points."""

    def __init__(self, layout, motion, offset=0.0, **options):
        self.layout = layout
        self.player = Player(layout, PlayerOptions(**options))
        self.player.load("swing.csv", motion)
        self.time, self.blocked = 5.0, False
        self.q = np.array(motion.positions[0]) + offset
        self.due = [(0.0, self.q, 0 * self.q)]
        self.states, self.targets, self.trace = [], [], []

    def run(self, seconds, step=True):
        for _ in range(round(seconds / DT)):
            self.time += DT
            self.move()
            if step:
                found = self.player.step(self.time, self.measured)
                self.states.append(self.player.state)
                self.targets.append(found)
                if found is not None:
                    self.take(found)
        return self.player.state

    @property
    def measured(self):
        return self.q

    def take(self, found):
        """As a driver: what is due later than the first new point is replaced."""
        assert np.diff(found.time).min(initial=1.0) > 1e-6  # ns in a message
        now = self.now(self.time)
        points = zip(found.time, found.q, found.qd, strict=True)
        self.due = [(self.time, *now), *((self.time + a, q, v) for a, q, v in points)]

    def now(self, time):
        times = [t for t, _, _ in self.due]
        k = int(np.searchsorted(times, time, side="right")) - 1
        if k + 1 >= len(times):
            return self.due[-1][1], 0 * self.due[-1][1]
        (t0, a, v), (t1, b, w) = self.due[k], self.due[k + 1]
        h, s = t1 - t0, (time - t0) / (t1 - t0)
        c2, c3 = 3 * (b - a) - h * (2 * v + w), 2 * (a - b) + h * (v + w)
        return a + s * (h * v + s * (c2 + s * c3)), v + s * (2 * c2 + s * 3 * c3) / h

    def move(self):
        if not self.blocked:
            self.q = self.now(self.time)[0]
        self.trace.append(self.q)

    def finishes_smoothly(self):
        self.run(4.0)
        assert self.player.state is MotionPhase.FINISHED
        assert self.smooth()[1] < 25.0

    def smooth(self):
        """Largest speed (rad/s) and change of speed over a step (rad/s^2)."""
        speed = np.diff(self.trace, axis=0) / DT
        return np.abs(speed).max(), np.abs(np.diff(speed, axis=0)).max() / DT


@pytest.fixture
def bench(layout, swing):
    return lambda offset=0.0, **options: Bench(layout, swing, offset, **options)


def order(states):
    return [s for i, s in enumerate(states) if i == 0 or states[i - 1] != s]


def test_it_leads_plays_and_holds_the_last_row(bench, swing, layout):
    robot = bench(offset=0.1)
    way = robot.player.play(robot.time, robot.measured)
    np.testing.assert_allclose(way.q[0], robot.q)
    robot.run(4.0)
    assert order(robot.states) == [
        MotionPhase.APPROACHING,
        MotionPhase.PLAYING,
        MotionPhase.FINISHED,
    ]
    np.testing.assert_allclose(robot.q, swing.positions[-1], atol=1e-12)
    assert (robot.player.row, robot.player.rows) == (500, 500)
    assert robot.targets[-1] is None
    speed, change = robot.smooth()
    assert speed < 2.2  # the swing's own
    assert change < 25.0
    knees = np.array(robot.trace)[:, layout.joints.index("LLEG_JOINT4")]
    assert knees.max() == pytest.approx(0.4, abs=1e-3)


def test_each_word_is_a_horizon_ahead_and_ends_at_rest(bench):
    robot = bench(horizon=0.08)
    robot.player.play(robot.time, robot.measured)
    robot.run(0.8)
    for found in robot.targets:
        assert found.time[0] == pytest.approx(0.08)
        assert (np.diff(found.time) > 0.0).all()
        np.testing.assert_allclose(found.qd[-1], 0.0, atol=1e-12)
        assert not found.q.flags.writeable


def test_a_pause_slows_down_and_goes_on_without_a_jump(bench, swing):
    robot = bench()
    robot.player.play(robot.time, robot.measured)
    robot.run(0.8)
    assert robot.player.state is MotionPhase.PLAYING
    robot.player.pause()
    assert robot.run(0.2) is MotionPhase.PAUSING
    assert robot.run(0.5) is MotionPhase.PAUSED
    row, here = robot.player.row, robot.q
    robot.run(1.0)
    assert robot.player.row == row
    np.testing.assert_array_equal(robot.q, here)
    robot.player.resume()
    assert robot.run(0.3) is MotionPhase.PLAYING
    assert robot.run(3.0) is MotionPhase.FINISHED
    np.testing.assert_allclose(robot.q, swing.positions[-1], atol=1e-12)
    assert robot.smooth()[1] < 25.0


def test_a_pause_that_is_taken_back_at_once(bench):
    robot = bench(offset=0.2)
    robot.player.play(robot.time, robot.measured)
    robot.run(0.4)
    robot.player.pause()
    robot.run(0.1)
    robot.player.resume()
    assert robot.run(0.1) is MotionPhase.APPROACHING
    robot.player.pause()
    robot.run(1.0)
    assert robot.player.state is MotionPhase.PAUSED
    assert robot.player.row == 0
    robot.player.resume()
    robot.finishes_smoothly()


def test_a_stop_ends_it_and_play_begins_again(bench, swing):
    robot = bench()
    robot.player.play(robot.time, robot.measured)
    robot.run(0.9)
    robot.player.stop("stopped by ~/stop")
    robot.run(0.7)
    assert (robot.player.state, robot.player.reason) == (
        MotionPhase.READY,
        "stopped by ~/stop",
    )
    with pytest.raises(MotionError, match="not paused: the player is READY"):
        robot.player.resume()
    robot.player.play(robot.time, robot.measured)
    assert robot.player.reason == ""
    robot.finishes_smoothly()


def test_late_words_are_made_up_for_smoothly(bench, swing):
    """Half the silence that ends the motion: the robot follows the tail, then goes on from it."""
    robot = bench(joint_timeout=0.6)
    robot.player.play(robot.time, robot.measured)
    robot.run(0.8)
    robot.run(0.3, step=False)
    robot.run(4.0)
    assert robot.player.state is MotionPhase.FINISHED
    np.testing.assert_allclose(robot.q, swing.positions[-1], atol=1e-12)
    assert robot.smooth()[1] < 40.0


def test_silence_stops_it(bench):
    robot = bench()
    robot.player.play(robot.time, robot.measured)
    robot.run(0.8)
    robot.run(0.25, step=False)
    robot.player.input_lost(robot.time, "joint_states timed out 0.25 s")
    assert robot.player.state is MotionPhase.STOPPING
    robot.run(0.6, step=False)
    robot.player.input_lost(robot.time, "another reason")
    assert (robot.player.state, robot.player.reason) == (
        MotionPhase.READY,
        "joint_states timed out 0.25 s",
    )
    rest = robot.q
    robot.run(0.5)
    assert robot.player.state is MotionPhase.READY
    np.testing.assert_array_equal(robot.q, rest)
    assert robot.smooth()[1] < 25.0


def test_a_gap_that_is_too_long_stops_it(bench):
    robot = bench()
    robot.player.play(robot.time, robot.measured)
    robot.run(0.8)
    robot.run(0.5, step=False)
    robot.run(0.6)
    assert robot.player.state is MotionPhase.READY
    assert "joint_states timed out, none for 0.51 s" in robot.player.reason
    assert robot.smooth()[1] < 25.0


def test_a_joint_that_does_not_follow_stops_it(bench):
    robot = bench(following_error=0.1)
    robot.player.play(robot.time, robot.measured)
    robot.run(0.6)
    robot.blocked = True
    robot.run(1.2)
    assert robot.player.state is MotionPhase.READY
    assert "LEG_JOINT4 is 0.1" in robot.player.reason
    assert "following_error is 0.10: is it blocked" in robot.player.reason


@pytest.mark.parametrize("absurd", [1e300, 1e6, 2.0 * np.pi])
def test_an_absurd_position_stops_it_smoothly_and_play_is_refused_while_it_lasts(
    bench, absurd
):
    robot = bench()
    robot.player.play(robot.time, robot.measured)
    robot.run(0.8)
    slipped = robot.q + absurd * (np.arange(len(robot.q)) == 3)
    robot.time += DT
    robot.move()
    robot.take(robot.player.step(robot.time, slipped))
    assert robot.player.state is MotionPhase.STOPPING
    robot.run(0.8)
    assert robot.player.state is MotionPhase.READY
    assert f"{robot.layout.joints[3]} reports" in robot.player.reason
    assert robot.smooth()[1] < 25.0
    with pytest.raises(
        MotionError, match=f"{robot.layout.joints[3]} reports .* check its encoder"
    ):
        robot.player.play(robot.time, slipped)
    robot.player.play(robot.time, robot.measured)
    robot.run(4.0)
    assert robot.player.state is MotionPhase.FINISHED


def test_a_joint_that_does_not_move_at_all_stops_it(bench):
    robot = bench()
    robot.player.play(robot.time, robot.measured)
    robot.run(0.5)
    robot.blocked = True
    robot.run(1.6)
    assert robot.player.state is MotionPhase.READY
    assert (
        "do not follow" in robot.player.reason
        or "from its target" in robot.player.reason
    )


def test_stamps_that_go_back_a_little_make_no_jump(bench):
    robot = bench()
    robot.player.play(robot.time, robot.measured)
    robot.run(0.8)
    last = robot.targets[-1]
    found = robot.player.step(robot.time - 0.3, robot.measured)
    np.testing.assert_allclose(found.q, last.q)
    robot.finishes_smoothly()


def test_a_clock_that_jumps_stops_it_smoothly_until_play(bench):
    """The node gives it times without the jump."""
    robot = bench()
    robot.player.play(robot.time, robot.measured)
    robot.run(0.8)
    robot.player.guard.stop_by_clock(-20.0)
    robot.run(2.0)
    assert robot.player.state is MotionPhase.READY
    assert "the clock of joint_states jumped by -20 s" in robot.player.reason
    assert robot.smooth()[1] < 25.0
    robot.player.play(robot.time, robot.measured)
    robot.run(5.0)
    assert robot.player.state is MotionPhase.FINISHED


def test_it_begins_where_the_joints_are_held_rather_than_where_they_sag(bench, swing):
    robot = bench()
    robot.player.play(robot.time, robot.measured)
    robot.run(4.0)
    sagged = robot.q + 0.02
    way = robot.player.play(robot.time, sagged)
    np.testing.assert_allclose(way.q[0], swing.positions[-1], atol=1e-12)
    robot.player.stop("")
    robot.run(1.0)
    way = robot.player.play(robot.time, sagged + 0.3)
    np.testing.assert_allclose(way.q[0], sagged + 0.3)


def test_joints_that_are_not_driven_are_left_alone(layout, swing):
    positions = np.array(swing.positions)
    positions[:, 4] = np.nan
    robot = Bench(layout, swing)
    robot.player.load("part.csv", Motion(swing.joints, swing.times, positions))
    robot.player.play(robot.time, robot.measured)
    robot.time += DT
    found = robot.player.step(robot.time, robot.measured)
    assert robot.player.driven == swing.joints[:4] + swing.joints[5:]
    assert np.isfinite(found.q).all()
    assert found.q.shape[1] == len(swing.joints) - 1


def test_a_single_row_is_a_posture_to_go_to(layout, swing):
    row = np.clip(np.array(swing.positions[:1]) + 0.05, layout.lower, layout.upper)
    robot = Bench(layout, swing)
    robot.player.load("posture.csv", Motion(swing.joints, np.zeros(1), row))
    robot.player.play(robot.time, robot.measured)
    assert robot.run(3.0) is MotionPhase.FINISHED
    np.testing.assert_allclose(robot.q, row[0])


def test_what_cannot_be_done_is_said(layout, swing, bench):
    empty = Player(layout)
    assert (empty.state, empty.row, empty.rows) == (MotionPhase.EMPTY, 0, 0)
    assert np.isnan([empty.motion_time, empty.duration]).all()
    with pytest.raises(MotionError, match="no motion is loaded: load one"):
        empty.play(0.0, swing.positions[0])
    with pytest.raises(
        MotionError, match="nothing is being played: the player is EMPTY"
    ):
        empty.pause()
    empty.stop("nothing happens")
    assert (empty.state, empty.reason) == (MotionPhase.EMPTY, "")
    empty.refuse("bad.csv", "bad.csv breaks limits")
    assert (empty.state, empty.name) == (MotionPhase.REFUSED, "bad.csv")
    with pytest.raises(MotionError, match=r"bad.csv breaks limits"):
        empty.play(0.0, swing.positions[0])
    with pytest.raises(MotionError, match="joints are not those of the layout"):
        empty.load("x", Motion(swing.joints[::-1], swing.times, swing.positions))

    robot = bench()
    with pytest.raises(MotionError, match="where the robot stands is not known"):
        robot.player.play(robot.time, robot.q * np.nan)
    robot.player.play(robot.time, robot.q)
    for attempt in (
        lambda: robot.player.play(robot.time, robot.q),
        lambda: robot.player.load("other", swing),
        lambda: robot.player.refuse("other", "bad"),
    ):
        with pytest.raises(MotionError, match="being played: stop it first"):
            attempt()
