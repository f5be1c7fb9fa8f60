"""The pace of a simulation against a clock that the test turns."""

import threading
import time

import pytest

from com_simulation.physics.pacing import MAX_BACKLOG, CommandWait, Pacer


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
    assert MAX_BACKLOG < 60.0


def test_as_fast_as_possible_never_waits(clock):
    pacer = Pacer(0.0, clock, clock.sleep)
    clock.now += 1.0
    pacer.wait(1000.0)
    assert not clock.slept
    assert pacer.report(1000.0).drift == 0.0


def test_a_sample_waits_for_its_command_once_there_are_some():
    wait = CommandWait(20.0)
    assert wait.wait(10)  # nobody answers yet
    wait.answered(10)
    assert wait.wait(20)  # one may be all that is to come
    wait.answered(20)
    begin = time.monotonic()
    late = threading.Timer(0.2, wait.answered, [30])
    late.start()
    assert wait.wait(30)
    assert 0.1 < time.monotonic() - begin < 10.0
    late.join()


def test_samples_that_are_not_answered_each_do_not_wait():
    wait = CommandWait(20.0)
    wait.answered(10)
    wait.answered(15)
    begin = time.monotonic()
    assert all(wait.wait(stamp) for stamp in range(10, 20))
    assert time.monotonic() - begin < 10.0
    late = threading.Timer(0.2, wait.answered, [20])
    late.start()
    assert wait.wait(20)
    assert time.monotonic() - begin > 0.1
    late.join()


def test_commands_that_stay_away_hold_up_one_sample_only():
    wait = CommandWait(0.1)
    wait.answered(10)
    wait.answered(20)
    assert not wait.wait(30)
    begin = time.monotonic()
    assert all(wait.wait(stamp) for stamp in range(40, 140))
    wait.answered(140)
    assert wait.wait(150)
    assert time.monotonic() - begin < 1.0
    wait.answered(150)
    assert not wait.wait(160)


def test_a_clock_of_commands_that_goes_back_starts_over():
    wait = CommandWait(0.1)
    for stamp in (100, 110, 5):
        wait.answered(stamp)
    assert wait.wait(200)


def test_without_a_longest_time_nothing_waits():
    wait = CommandWait(0.0)
    wait.answered(10)
    wait.answered(20)
    assert wait.wait(30)
