"""The session: when a walk begins, how it ends, and that no command jumps."""

import numpy as np
import pytest

from com_control.command_guard import GuardOptions
from com_control.walking.session import WalkPhase, WalkSession
from com_control.walking.walk import WalkRequest
from com_control.walking.walk_monitor import Reading, WalkChecks
from com_control.walking.walker import Walker

pytestmark = pytest.mark.slow
STEP = 0.02  # s, between readings
WALK = WalkRequest(steps=4, step_length=0.2, com_height=0.45)


class Bench:
    """A robot that follows its orders, and the session that gives them."""

    def __init__(self, biped, walker, **limits):
        self.biped, self.walker = biped, walker
        self.session = WalkSession(
            biped, WalkChecks(biped), approach_time=0.5, limits=GuardOptions(**limits)
        )
        self.time, self.tilt, self.missing = 100.0, 0.0, ""
        self.q = biped.posture.copy()
        self.reported = None  # by broken encoders
        self.wrenches = np.zeros((2, 6))
        self.wrenches[:, 2] = 0.5 * 9.81 * biped.model.mass
        self.orders = []
        self.path = None

    def reading(self):
        q = self.q if self.reported is None else self.reported
        return Reading(self.time, q, self.wrenches, self.tilt, self.missing)

    def obey(self, order):
        """Take an order: from where the last one has brought the joints."""
        if order is None:
            return
        order = self.session.limited(order)
        self.orders.append(order)
        assert order.time[0] > self.time
        before = (
            self.q if self.path is None else self.path.sample(float(order.time[0]))[0]
        )
        limits = self.biped.model.velocity_limits
        jump = np.abs(order.q[0] - before)
        assert (jump <= 0.02 * limits).all()
        assert np.isfinite(order.q).all()
        assert (order.q >= self.biped.model.lower).all()
        assert (order.q <= self.biped.model.upper).all()
        assert (np.abs(order.qd) <= limits).all()
        np.testing.assert_array_equal(order.qd[-1], 0.0)
        self.path = order if self.path is None else self.path.followed_by(order)

    def tick(self, jump=0.0):
        """A step of the robot; its clock jumps by so many s before it, its drives' does not."""
        self.time += STEP + jump
        if self.path is not None:
            self.path = self.path.shifted(jump)
            self.q = self.path.sample(self.time)[0]
        self.obey(self.session.update(self.reading(), jump))
        if self.session.stop_due:
            at = max(self.session.time_of(self.time), 0.0) + 0.3
            stopped = self.walker.plan_stop(self.session.walk, at)
            self.obey(self.session.replace(stopped, at, self.time))
        return self.session.state

    def until(self, state, seconds=30.0):
        for _ in range(round(seconds / STEP)):
            if self.tick() is state:
                return
        raise AssertionError(
            f"{self.session.state.name}: {self.session.reason}, not {state.name}"
        )

    def start(self, request=WALK):
        self.until(WalkPhase.READY, 1.0)
        assert self.session.refusal() == ""
        self.session.start_planning()
        walk = self.walker.plan(request, self.session.commanded_posture(self.q))
        self.obey(self.session.begin(walk, self.reading()))


@pytest.fixture(scope="module")
def parts(robots):
    biped, _ = robots("itu_biped")
    return biped, Walker(biped)


@pytest.fixture
def bench(parts):
    return Bench(*parts)


def test_it_leads_walks_and_stands_and_walks_again(bench):
    assert bench.session.refusal() == "no joint_states yet"
    bench.start()
    assert bench.session.state is WalkPhase.APPROACHING
    assert "under way" in bench.session.refusal()
    bench.until(WalkPhase.WALKING)
    middle = bench.session.planned_now()
    assert middle.step == 0
    bench.until(WalkPhase.READY)
    assert bench.session.outcome.completed
    assert bench.session.outcome.steps == 4
    assert len(bench.orders) == 1, "the whole walk at once"
    np.testing.assert_allclose(bench.q, bench.session.walk.path.q[-1])
    bench.start()
    bench.until(WalkPhase.WALKING)
    bench.until(WalkPhase.READY)
    assert bench.session.outcome.completed


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"tilt": 0.3},
            r"does not stand upright: its root is tilted by 0\.30 rad, at most 0\.20",
        ),
        (
            {"tilt": 1.2},
            r"tilted by 1\.20 rad, at most 0\.80: set it upright on both feet",
        ),
        ({"missing": "l_sole/wrench is stale, 1.00 s old"}, "l_sole/wrench is stale"),
        ({"wrenches": None}, "the feet's forces are not known: check their sensors"),
        ({"wrenches": np.full((2, 6), np.nan)}, "the feet's forces are not known"),
        (
            {"wrenches": np.zeros((2, 6))},
            r"does not stand: the left foot carries 0 N, at least",
        ),
        (
            {"q": "bent"},
            r"does not stand in its nominal posture: l_knee_joint is 0\.30 rad from",
        ),
    ],
)
def test_a_robot_that_does_not_stand_is_refused(bench, change, reason):
    for name, value in change.items():
        if isinstance(value, str) and value == "bent":
            value = bench.q.copy()
            value[3] += 0.3
        setattr(bench, name, value)
    bench.tick()
    assert bench.session.state is WalkPhase.REFUSED
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(bench.session.refusal())


def test_what_changes_while_it_is_planned_is_obeyed(bench):
    bench.until(WalkPhase.READY)
    bench.session.start_planning()
    walk = bench.walker.plan(WALK, bench.q)
    bench.wrenches = np.zeros((2, 6))
    assert bench.session.begin(walk, bench.reading()) is None
    assert "the left foot carries 0 N" in bench.session.outcome.reason


def test_a_way_on_which_soles_slip_is_refused(bench):
    bench.until(WalkPhase.READY)
    bench.session.start_planning()
    walk = bench.walker.plan(WALK, bench.q)
    bench.q = bench.q.copy()
    for leg in bench.biped.legs:
        bench.q[leg.joints[1]] += 0.1
    assert bench.session.begin(walk, bench.reading()) is None
    assert "the soles would slip by" in bench.session.outcome.reason


def test_a_foot_that_is_light_as_the_walk_ends_is_no_reason_to_refuse_the_next(bench):
    bench.start(WalkRequest(steps=2, step_length=0.1, com_height=0.43))
    bench.until(WalkPhase.WALKING)
    bench.until(WalkPhase.READY)
    bench.wrenches[0, 2] *= 0.1
    for _ in range(10):
        assert bench.tick() is WalkPhase.READY
    for _ in range(10):
        bench.tick()
    assert "the left foot carries" in bench.session.refusal()


@pytest.mark.parametrize("after", [0.3, 1.0, 2.2, 3.0, 4.1, 6.5])
def test_a_stop_ends_with_both_feet_down(bench, after):
    walk_into(bench, after)
    bench.missing = "imu is stale, 0.30 s old"
    bench.tick()
    assert bench.session.state is WalkPhase.STOPPING
    assert bench.session.reason == "imu is stale, 0.30 s old"
    ended = bench.time
    while bench.session.state is WalkPhase.STOPPING:
        bench.tick()
        assert bench.time < ended + 10.0
    assert not bench.session.outcome.completed
    assert bench.session.outcome.steps <= 4
    assert bench.session.planned_now().stance.all()
    assert bench.tick() is WalkPhase.REFUSED
    bench.missing = ""
    assert bench.tick() is WalkPhase.READY


def test_a_stop_on_the_way_to_the_first_posture_is_a_halt(bench):
    bench.start(WalkRequest(com_height=0.43, step_length=0.1))
    for _ in range(10):
        bench.tick()
    bench.obey(bench.session.stop("stopped"))
    assert bench.session.outcome.reason == "stopped"
    for _ in range(40):
        bench.tick()
    assert bench.session.state is WalkPhase.READY
    first = bench.session.walk.path.q[0]
    assert np.abs(bench.q - first).max() > 0.01, "it stayed where it was"


def test_a_robot_that_falls_gets_no_more(bench):
    bench.start()
    bench.until(WalkPhase.WALKING)
    bench.tilt = 1.0
    assert bench.tick() is WalkPhase.FALLEN
    assert len(bench.orders) == 2
    assert bench.orders[-1].end < bench.time + 1.0
    assert "tilted by 1.00 rad" in bench.session.outcome.reason
    for _ in range(50):
        assert bench.tick() is WalkPhase.FALLEN
    assert len(bench.orders) == 2
    assert bench.session.refusal().startswith("the robot has fallen")
    bench.tilt, bench.path, bench.q = 0.0, None, bench.biped.posture.copy()
    assert bench.tick() is WalkPhase.READY


def walk_into(bench, seconds):
    bench.start()
    bench.until(WalkPhase.WALKING)
    begun = bench.time
    while bench.time < begun + seconds:
        bench.tick()


def stops_and_walks_again(bench, reason):
    """The walk ends with both feet down; only one that is asked for begins."""
    assert bench.session.state is WalkPhase.STOPPING
    assert reason in bench.session.reason
    while bench.session.state is WalkPhase.STOPPING:
        bench.tick()
    assert bench.session.planned_now().stance.all()
    assert bench.session.outcome.steps < 4
    assert reason in str(bench.session.outcome)
    bench.reported, count = None, len(bench.orders)
    for _ in range(20):
        assert bench.tick() in (WalkPhase.READY, WalkPhase.REFUSED)
    assert bench.session.state is WalkPhase.READY
    assert len(bench.orders) == count
    bench.start()
    bench.until(WalkPhase.WALKING)


def test_joints_that_do_not_follow_stop_the_walk(parts):
    bench = Bench(*parts, following_error=0.2)
    walk_into(bench, 2.0)
    bench.reported = bench.q.copy()
    while bench.session.state is WalkPhase.WALKING:
        bench.tick()
    stops_and_walks_again(bench, "its target, following_error is 0.20")


def test_frozen_joints_stop_the_walk(parts):
    bench = Bench(*parts, following_error=10.0)
    walk_into(bench, 2.0)
    bench.reported, begun = bench.q.copy(), bench.time
    while bench.session.state is WalkPhase.WALKING:
        bench.tick()
    assert bench.time < begun + 2.5
    stops_and_walks_again(bench, "do not follow")


@pytest.mark.parametrize("absurd", [1e6, -1e6, 2 * np.pi, 1e300])
def test_absurd_positions_stop_the_walk(bench, absurd):
    walk_into(bench, 1.0)
    bench.reported = bench.q.copy()
    bench.reported[3] += absurd
    bench.tick()
    stops_and_walks_again(bench, "l_knee_joint reports")


def test_a_robot_that_somebody_brings_to_its_nominal_posture_may_walk(bench):
    bench.start(WalkRequest(steps=2, step_length=0.1, com_height=0.40))
    bench.until(WalkPhase.WALKING)
    bench.until(WalkPhase.READY)
    bench.path, bench.q = None, bench.biped.posture.copy()
    bench.q[3] += 0.25
    assert bench.tick() is WalkPhase.REFUSED
    assert "does not stand in its commanded posture" in bench.session.reason
    bench.q = bench.biped.posture.copy()
    assert bench.tick() is WalkPhase.READY
    bench.start()
    bench.until(WalkPhase.WALKING)


def test_time_goes_on_without_readings(bench):
    bench.start()
    bench.until(WalkPhase.WALKING)
    bench.session.stop("joint_states timed out")
    at = 0.5
    stopped = bench.walker.plan_stop(bench.session.walk, at)
    bench.obey(bench.session.replace(stopped, at, bench.time))
    bench.session.advance(bench.time + 60.0)
    assert bench.session.state is WalkPhase.READY
    assert bench.session.outcome.reason == "joint_states timed out"


def test_a_stop_that_was_planned_too_late_is_planned_again(bench):
    bench.start()
    bench.until(WalkPhase.WALKING)
    bench.session.stop("stop")
    stopped = bench.walker.plan_stop(bench.session.walk, 0.1)
    late = bench.time + 5.0
    assert bench.session.replace(stopped, 0.1, late) is None
    assert bench.session.stop_due


@pytest.mark.parametrize("jump", [-50.0, -1.0, 1.0, 3600.0])
def test_a_clock_that_jumps_stops_the_walk(bench, jump):
    walk_into(bench, 1.5)
    bench.tick(jump)
    stops_and_walks_again(bench, f"the clock of joint_states jumped by {jump:.3g} s")


@pytest.mark.parametrize("jump", [-50.0, 50.0])
def test_a_clock_that_jumps_while_it_stands_changes_nothing(bench, jump):
    bench.start(WalkRequest(steps=2, step_length=0.1, com_height=0.43))
    bench.until(WalkPhase.WALKING)
    bench.until(WalkPhase.READY)
    assert bench.tick(jump) is WalkPhase.READY
    bench.start()
    bench.until(WalkPhase.WALKING)
