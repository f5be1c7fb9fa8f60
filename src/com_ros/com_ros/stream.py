"""One subscribed topic: what happens to its messages before a node's callback gets them.

1. A node that is too slow for a topic uses the newest messages. When each message of half a second
   has waited for 50 ms, all but the newest are skipped and counted, until the work on as many as
   arrived in 1 s would have taken less than half of that time. A pause that the node makes up for
   within half a second costs no message.
2. A stamp that jumps holds the message back (StampGate).
3. A message with an implausible value is dropped (com_ros.input_limits).

The times of a topic's messages, and the one policy for a clock that jumps.

A message's time is its stamp, or the node's clock at receipt where the stamp is zero: a driver
that does not stamp, or one whose clock has not started yet. As soon as one stamp is not zero, the
stamps count.

A stamp jumps when it is more than 0.5 s behind the newest one, or ahead of it by more than 0.5 s
and by more than 50 times the real time since then (a recording may be replayed fast, and messages
may be lost). A message whose stamp jumps is held back. A single such message has no effect; when
the stamps have stayed on the other time line for 0.25 s, without one that fits the old line, they
count from then on, as another recording. After 1 s without a message any stamp counts: earlier
messages are stale by then anyway. So a correct clock is followed again within half a second.
Meanwhile nodes hold their state: messages that are held back for up to 0.5 s count as received, so
that no timeout is reported for a driver that still works.
"""

import inspect
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.timer import Timer

from com_ros import qos
from com_ros.conversions import NS_PER_S, stamp_to_ns
from com_ros.diagnostics import ThrottledLog

JUMP_NS = 500_000_000  # by which a stamp may be behind or ahead of the newest one
CONFIRM_NS = 250_000_000  # for which stamps stay on another time line before they count


@dataclass
class _Line:
    """Consecutive messages on one time line.

    Attributes:
        first: ns, time of the first message.
        first_at: ns of real time, when that was received.
        last: ns, newest time of a message.
        last_at: ns of real time, when the last message was received.
    """

    first: int
    first_at: int
    last: int
    last_at: int

    def continued_by(self, time_ns: int, at_ns: int) -> bool:
        """Returns whether a message belongs to the time line.

        Args:
            time_ns: ns, the message's time.
            at_ns: ns of real time, when it was received.
        """
        step = time_ns - self.last
        return -JUMP_NS <= step <= JUMP_NS or 0 < step <= 50.0 * (at_ns - self.last_at)


class StampGate:
    """Determines the times of a topic's messages, and holds back those whose stamps jump.

    Attributes:
        jump_s: s, how far the last message jumped; 0 when it did not.
        restarted: the last message is the first that counts on another time line.
        held_s: s of real time since the first of the messages that are held back now.
    """

    def __init__(self) -> None:
        self._line: _Line | None = None
        self._other: _Line | None = None  # that the stamps may have jumped to
        self._stamped = False
        self._seen_at = 0  # ns of real time, last message
        self._held_at = 0  # real time of the first message that is held back
        self.jump_s = self.held_s = 0.0
        self.restarted = False

    def time_ns(self, stamp_ns: int, received_ns: int, at_ns: int) -> int | None:
        """Returns the time of a message, ns; None when it must be held back.

        Args:
            stamp_ns: ns, its stamp; 0: none.
            received_ns: ns of the ROS clock, when it was received.
            at_ns: ns of real time, when it was received.
        """
        line = self._line
        time_ns = stamp_ns or received_ns
        started = bool(stamp_ns) and not self._stamped
        self._stamped |= bool(stamp_ns)
        holds = self.jump_s != 0.0 and not self.restarted
        self.jump_s, self.restarted = 0.0, False
        paused, self._seen_at = at_ns - self._seen_at >= NS_PER_S, at_ns
        if line is None or started:
            self.restarted = line is not None
            self._begin(_Line(time_ns, at_ns, time_ns, at_ns))
        elif line.continued_by(time_ns, self._other.first_at if self._other else at_ns):
            # Parts of one robot may be a little apart: a line ends at its newest stamp.
            line.last, line.last_at, self._other = max(time_ns, line.last), at_ns, None
        else:
            self.jump_s = (time_ns - line.last) / NS_PER_S
            if not self._confirmed(time_ns, at_ns) and not paused:
                self._held_at = self._held_at if holds else at_ns
                self.held_s = (at_ns - self._held_at) / NS_PER_S
                return None
            self.restarted = True
            self._begin(self._other or _Line(time_ns, at_ns, time_ns, at_ns))
        return time_ns

    def _begin(self, line: _Line) -> None:
        self._line, self._other = line, None

    def _confirmed(self, time_ns: int, at_ns: int) -> bool:
        other = self._other
        if other is None or not other.continued_by(time_ns, at_ns):
            self._other = _Line(time_ns, at_ns, time_ns, at_ns)
            return False
        other.last, other.last_at = max(time_ns, other.last), at_ns
        return max(time_ns - other.first, at_ns - other.first_at) >= CONFIRM_NS


class RateLimit:
    """Leaves out samples that arrive more often than a rate, by their times.

    The rate is kept on average too where samples come a little early or late.

    Args:
        rate_hz: 1/s; inf: no limit.
    """

    def __init__(self, rate_hz: float) -> None:
        self._next_ns = 0
        self.set(rate_hz)

    def set(self, rate_hz: float) -> None:
        """Changes the rate.

        Args:
            rate_hz: 1/s; inf: no limit.
        """
        self._period_ns = int(NS_PER_S / rate_hz)  # 0 for inf

    def restart(self) -> None:
        """Forgets the last sample, as the times that follow are on another time line."""
        self._next_ns = 0

    def due(self, time_ns: int) -> bool:
        """Returns whether a sample should be used; if so, the next is due a period later.

        Args:
            time_ns: ns, of the sample.
        """
        early_ns, period_ns = self._next_ns - time_ns, self._period_ns
        # a sample may be early by 0.5 ms and still be due
        if period_ns and 500_000 < early_ns < period_ns + JUMP_NS:
            return False
        steady = abs(early_ns) < period_ns  # else samples begin, or have paused
        self._next_ns = period_ns + (self._next_ns if steady else time_ns)
        return True


class Faults:
    """Dropped messages of a node's inputs: logged, counted by kind, with the last reason.

    Args:
        log: for the warnings.

    Attributes:
        counts: number of dropped messages by kind of reason.
    """

    def __init__(self, log: ThrottledLog) -> None:
        self._log = log
        self.counts: Counter[str] = Counter()
        self._recent: dict[str, str] = {}

    def add(self, kind: str, topic: str, text: str) -> None:
        """Counts and logs one dropped message.

        Args:
            kind: of the reason, such as clock_jumps.
            topic: of the message.
            text: the reason and how to fix it.
        """
        self.counts[kind] += 1
        self._recent[kind] = text
        self._log.warn(f"{kind} {topic}", text)

    def pop_recent(self) -> str:
        """Returns the last reason of each kind since the last call, joined by "; "."""
        text = "; ".join(self._recent.values())
        self._recent.clear()
        return text


class Backlog:
    """Delivers a topic's messages as bytes; only the newest while the node is too slow for all.

    In that case a timer delivers the newest message. The timer is served after the messages that
    rclpy has queued, so that their number stays small.

    Args:
        node: that subscribes.
        kind: type of the messages.
        topic: its name.
        depth: number of messages that may wait while the node is busy.
        deliver: called with the bytes of each message.

    Attributes:
        skipped: number of messages that were not delivered.
        problem: why messages are skipped and how to fix it; empty when none are.
        subscription: of the topic.
    """

    def __init__(
        self,
        node: Node,
        kind: type,
        topic: str,
        depth: int,
        deliver: Callable[[bytes], None],
    ) -> None:
        self.skipped, self.problem = 0, ""
        self._node, self._kind, self._deliver = node, kind, deliver
        self._timer: Timer | None = (
            None  # created once: rclpy leaks a little memory for each
        )
        self._newest: Any = None
        self._newest_only = False
        # since when each message has waited, on the system's clock as in DDS
        self._behind_ns = 0
        # of the last second: its begin, and the work on those used
        self._since_ns = self._busy_ns = 0
        self._used = self._seen = 0  # messages since then
        callback, profile = with_info(self.receive), qos.stream(depth)
        self.subscription = node.create_subscription(
            kind, topic, callback, profile, raw=True
        )

    def receive(self, msg: Any, info: dict[str, Any]) -> None:
        """The subscription's callback.

        Args:
            msg: bytes of the message.
            info: rclpy's, with `received_timestamp`, ns of the system's clock.
        """
        now_ns = time.time_ns()
        if not self._newest_only:
            if now_ns - info["received_timestamp"] <= 50_000_000:
                self._behind_ns = 0
            elif not self._behind_ns:
                self._behind_ns = now_ns
            if not self._behind_ns or now_ns - self._behind_ns <= 500_000_000:
                self._deliver(msg)
                return
            self._start(now_ns)
        self._skip_to(msg)

    def _skip_to(self, msg: Any) -> None:
        """Store the newest of a message, what waits for the timer and what waits in DDS."""
        count = int(self._newest is not None)
        with (handle := self.subscription.handle):
            while (taken := handle.take_message(self._kind, True)) is not None:
                msg, count = taken[0], count + 1
        self._newest, self.skipped = msg, self.skipped + count
        self._seen += count

    def _begin(self, now_ns: int) -> None:
        self._since_ns, self._busy_ns, self._used, self._seen = now_ns, 0, 0, 0

    def _start(self, now_ns: int) -> None:
        self._begin(now_ns)
        if self._timer is None:
            clock = Clock(clock_type=ClockType.STEADY_TIME)
            self._timer = self._node.create_timer(0.0005, self._on_timer, clock=clock)
        self._timer.reset()
        self._newest_only = True
        self.problem = (
            f"the node cannot keep up with {self.subscription.topic_name} and uses only its newest "
            "messages: lower the rate of the topic, or the load of the computer"
        )

    def _on_timer(self) -> None:
        begin_ns = now_ns = time.time_ns()
        msg, self._newest = self._newest, None
        if msg is not None:
            self._deliver(msg)
            now_ns = time.time_ns()
            self._busy_ns += now_ns - begin_ns
            self._used, self._seen = self._used + 1, self._seen + 1
        if now_ns - self._since_ns > NS_PER_S:
            all_ns = self._busy_ns * self._seen / max(self._used, 1)
            if all_ns < 0.5 * (now_ns - self._since_ns):
                if self._timer is not None:
                    self._timer.cancel()
                self._newest_only, self._behind_ns, self.problem = False, 0, ""
            self._begin(now_ns)


class Stream:
    """Checks the messages of a topic and delivers the good ones with their times.

    Args:
        node: whose clock gives the time of messages without a stamp.
        topic: its resolved name, for the texts.
        deliver: called with each good message and its time, ns.
        check: called with a message and the topic; returns why it must not be used, else "".
            None: no check.
        faults: counts and logs what is dropped.
        on_restart: called with the jump, s, before the first message on another time line.
        on_held: called for each message that is held back, for up to 0.5 s.
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        deliver: Callable[[Any, int], None],
        check: Callable[[Any, str], str] | None,
        faults: Faults,
        on_restart: Callable[[float], None] = lambda _: None,
        on_held: Callable[[], None] = lambda: None,
    ) -> None:
        self.gate = StampGate()
        self.topic, self._deliver, self._clock = topic, deliver, node.get_clock()
        self._check, self._faults = check, faults
        self._on_restart, self._on_held = on_restart, on_held

    def update(self, msg: Any) -> None:
        """Checks a message, and delivers it if it is good.

        Args:
            msg: with a header.
        """
        gate, stamp_ns = self.gate, stamp_to_ns(msg.header.stamp)
        time_ns = gate.time_ns(
            stamp_ns, stamp_ns or self._clock.now().nanoseconds, time.monotonic_ns()
        )
        if gate.jump_s:
            self._report_jump(time_ns is None)
        if time_ns is None:
            if gate.held_s < 0.5:
                self._on_held()
            return
        if self._check is not None and (problem := self._check(msg, self.topic)):
            self._faults.add("implausible", self.topic, problem)
            return
        if gate.restarted:
            self._on_restart(gate.jump_s)
        self._deliver(msg, time_ns)

    def _report_jump(self, held: bool) -> None:
        """Count and log a jump of the stamps."""
        jump_s = self.gate.jump_s
        way = f"{abs(jump_s):.6g} s {'ahead' if jump_s > 0 else 'back'}"
        text = (
            f"a stamp of {self.topic} jumped {way}: such messages are held back, and used when the "
            f"stamps stay there for {CONFIRM_NS / NS_PER_S:g} s"
            if held
            else f"the stamps of {self.topic} have jumped {way} and count from now on"
        )
        fix = "check the clocks of the driver and of this computer (NTP, PTP, use_sim_time)"
        self._faults.add("clock_jumps", self.topic, f"{text}: {fix}")


def with_info(callback: Callable[[Any, dict[str, Any]], None]) -> Callable[..., None]:
    """Wraps a subscription's callback so that it gets rclpy's information about each message.

    rclpy's executors call one of two arguments with both, its EventsExecutor with one tuple.

    Args:
        callback: called with a message and the information about it.
    """

    def call(*given: Any) -> None:
        msg, info = given if len(given) == 2 else given[0]
        callback(msg, info)

    call.__signature__ = inspect.signature(lambda msg, info: None)  # type: ignore[attr-defined]
    return call
