"""A clock that jumps: one message costs itself, a jump for good half a second at most."""

import pytest

from com_ros.stream import RateLimit, StampGate

MS = 1_000_000
S = 1000 * MS
HOUR = 3600 * S


class Feed:
    """Messages at 1 kHz of real time; `used` are the times that the gate gave."""

    def __init__(self):
        self.gate, self.at = StampGate(), 0
        self.used, self.restarts = [], 0

    def send(self, stamp_ns, received_ns=0, pause_ns=MS):
        self.at += pause_ns
        time_ns = self.gate.time_ns(stamp_ns, received_ns or stamp_ns, self.at)
        self.used.append(time_ns)
        self.restarts += self.gate.restarted
        return time_ns

    def run(self, begin_ns, count):
        return [self.send(begin_ns + i * MS) for i in range(count)]


@pytest.fixture
def feed():
    feed = Feed()
    feed.run(10 * S, 50)
    assert None not in feed.used
    return feed


@pytest.mark.parametrize("jump", [HOUR, 9 * S, -HOUR, -20 * S, -0.6 * S])
def test_one_stamp_that_jumps_costs_one_message(feed, jump):
    assert feed.send(int(10 * S + jump)) is None
    assert feed.gate.jump_s == pytest.approx(jump / S, abs=0.06)
    assert None not in feed.run(10 * S + 52 * MS, 100)
    assert feed.restarts == 0


@pytest.mark.parametrize("jump", [HOUR, 9 * S, -HOUR, -20 * S, -0.9 * S])
def test_stamps_that_jump_for_good_count_within_a_second(feed, jump):
    times = feed.run(int(10 * S + jump), 1000)
    held = times.index(next(t for t in times if t is not None))
    assert 200 <= held <= 260
    assert None not in times[held:]
    assert feed.restarts == 1


def test_how_long_messages_are_held_back(feed):
    feed.send(HOUR)
    assert feed.gate.held_s == 0.0
    feed.send(3 * HOUR)
    feed.send(5 * HOUR)
    assert feed.gate.held_s == pytest.approx(0.002)
    feed.run(10 * S + 54 * MS, 10)
    feed.send(HOUR)
    assert feed.gate.held_s == 0.0


def test_every_other_stamp_that_jumps_never_counts(feed):
    """Two publishers on different clocks: the one that was first counts."""
    for i in range(1000):
        assert feed.send(10 * S + (51 + i) * MS) is not None
        assert feed.send(HOUR + i * MS) is None
    assert feed.restarts == 0


def test_random_stamps_never_count(feed):
    for i in range(1000):
        assert feed.send(HOUR * (2 + (7919 * i) % 101)) is None


def test_the_first_stamp_may_be_the_wrong_one():
    feed = Feed()
    assert feed.send(HOUR) is not None
    times = feed.run(S, 1000)
    assert None not in times[260:]


def test_lost_messages_and_fast_replays_are_no_jumps(feed):
    assert feed.send(10 * S + 400 * MS) is not None
    assert feed.send(15 * S, pause_ns=4600 * MS) is not None  # the driver paused
    assert feed.send(35 * S, pause_ns=1000 * MS) is not None  # at 20 times real time
    assert feed.restarts == 0


def test_parts_of_a_robot_may_be_a_little_apart(feed):
    for i in range(500):
        assert feed.send(10 * S + (51 + i) * MS) is not None
        assert feed.send(10 * S + (51 + i - 150) * MS) is not None


def test_a_recording_that_starts_again_after_a_pause_counts_at_once(feed):
    assert feed.send(S, pause_ns=2 * S) == S
    assert feed.restarts == 1


def test_a_stopped_clock_repeats_its_stamp(feed):
    assert [feed.send(10 * S + 49 * MS) for _ in range(50)] == [10 * S + 49 * MS] * 50


def test_without_stamps_the_time_of_receipt_counts():
    feed = Feed()
    assert [feed.send(0, 7 * S + i * MS) for i in range(3)] == [
        7 * S,
        7 * S + MS,
        7 * S + 2 * MS,
    ]


def test_a_clock_that_has_not_started_yields_to_the_first_stamp():
    feed = Feed()
    assert feed.send(0, HOUR) == HOUR
    assert feed.run(MS, 3) == [MS, 2 * MS, 3 * MS]


def test_a_rate_limit_leaves_out_and_begins_again():
    limit = RateLimit(10.0)
    assert limit.due(10**12)
    assert not limit.due(10**12 + 50 * MS)
    assert limit.due(10**12 - S)  # by more than a late message
    limit.restart()
    assert limit.due(10**12 - S + MS)


def test_a_rate_is_kept_where_samples_are_irregular_or_no_multiple_of_it():
    late, seldom = RateLimit(50.0), RateLimit(300.0)
    used = [late.due(10**12 + i * 5 * MS + i % 3 * MS) for i in range(4000)]
    assert sum(used) == 1000
    assert sum(seldom.due(10**12 + i * MS) for i in range(1000)) == 300
