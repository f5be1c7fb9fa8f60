"""The pace of a simulation against a clock that the test turns."""

import threading
import time

import pytest

from com_simulation.physics.pacing import MAX_BACKLOG, Lockstep, Pacer


class Clock:
    def __init__(self):
        self.now = 100.0
        self.slept = []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.mark.parametrize("factor", [0.5, 1.0, 4.0])
def test_waits_until_a_sample_is_due(clock, factor):
    pacer = Pacer(factor, clock, clock.sleep)
    for k in range(1, 11):
        clock.now += 0.0002  # work
        pacer.wait(k * 0.01)
        assert clock.now == pytest.approx(100.0 + k * 0.01 / factor)
    report = pacer.report(0.1)
    assert report.drift == pytest.approx(0.0, abs=1e-9)
    assert report.real_time_factor == pytest.approx(factor)
    assert report.load == pytest.approx(0.02 * factor)


def test_a_hiccup_is_caught_up(clock):
    pacer = Pacer(1.0, clock, clock.sleep)
    clock.now += 0.5
    for k in range(1, 61):
        pacer.wait(k * 0.01)
    assert clock.now == pytest.approx(100.6)
    assert pacer.report(0.6).drift == pytest.approx(0.0, abs=1e-9)


def test_a_slow_machine_shows_as_drift(clock):
    pacer = Pacer(1.0, clock, clock.sleep)
    for k in range(1, 101):
        clock.now += 0.02
        pacer.wait(k * 0.01)
    report = pacer.report(1.0)
    assert not clock.slept
    assert report.drift == pytest.approx(1.0)
    assert report.real_time_factor == pytest.approx(0.5)
    assert report.load == 1.0


def test_a_long_stop_is_not_caught_up_in_a_burst(clock):
    pacer = Pacer(1.0, clock, clock.sleep)
    clock.now += 60.0
    pacer.wait(0.01)
    pacer.wait(0.02)
    assert clock.slept == [pytest.approx(0.01)]
    assert pacer.report(0.02).drift == pytest.approx(60.0 - 0.01)
    assert pacer.report(0.02).drift == pytest.approx(0.0, abs=0.02), (
        "what is over is over"
    )
    assert MAX_BACKLOG < 60.0


def test_as_fast_as_possible_never_waits(clock):
    pacer = Pacer(0.0, clock, clock.sleep)
    clock.now += 1.0
    pacer.wait(1000.0)
    assert not clock.slept
    assert pacer.report(1000.0).drift == 0.0


def test_a_sample_waits_for_all_nodes():
    lockstep = Lockstep(["gait", "estimator"])
    assert lockstep.wait(0, 0.0) == ("gait", "estimator")
    lockstep.answer("gait", 0)
    lockstep.answer("gait", 10)
    lockstep.answer("somebody", 10)
    assert lockstep.wait(10, 0.0) == ("estimator",)
    begin = time.monotonic()
    late = threading.Timer(0.2, lockstep.answer, ["estimator", 10])
    late.start()
    assert lockstep.wait(10, 20.0) == ()
    assert 0.1 < time.monotonic() - begin < 10.0
    late.join()
    assert lockstep.wait(20, 0.0) == ("gait", "estimator")


def test_a_node_that_is_late_is_waited_for_when_it_has_caught_up():
    lockstep = Lockstep(["gait", "estimator"])
    lockstep.answer("gait", 10)
    lockstep.continue_without(lockstep.wait(10, 0.0))
    assert lockstep.late == ("estimator",)
    lockstep.answer("gait", 20)
    assert lockstep.wait(20, 0.0) == ()
    lockstep.answer("estimator", 10)  # an old one
    lockstep.answer("gait", 30)
    assert lockstep.wait(30, 0.0) == ()
    assert lockstep.late == ("estimator",)
    lockstep.answer("estimator", 30)
    assert lockstep.wait(30, 0.0) == ()
    assert lockstep.late == ()
    lockstep.answer("gait", 40)
    assert lockstep.wait(40, 0.0) == ("estimator",)


def test_without_nodes_nothing_waits():
    assert Lockstep([]).wait(10, 20.0) == ()
