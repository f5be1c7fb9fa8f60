"""One subscribed topic: what happens to its messages before a node's callback gets them.

1. A node that is too slow for a topic uses the newest messages. When each message of BEHIND_S has
   waited for MAX_WAIT_S, all but the newest are skipped and counted, until the work on as many as
   came in CALM_S would have taken less than CALM_LOAD of that time. A pause that the node makes up
   for within BEHIND_S costs no message.
2. A stamp that jumps holds the message back (com_ros.stamps).
3. What is beyond what can be is dropped (com_ros.input_limits).
"""

import inspect
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from com_ros.conversions import NS_PER_S, stamp_to_ns
from com_ros.stamps import CONFIRM_S, HELD_S, StampGate
from com_ros.throttle import ThrottledLog

MAX_WAIT_S = 0.05
BEHIND_S = 0.5
CALM_S, CALM_LOAD = 1.0, 0.5
PERIOD_S = 0.0005  # of the timer that hands on the newest

_MAX_WAIT_NS, _BEHIND_NS = int(MAX_WAIT_S * NS_PER_S), int(BEHIND_S * NS_PER_S)
_CALM_NS = int(CALM_S * NS_PER_S)


class Faults:
    """What was dropped of a node's inputs: logged, counted by kind, and the last reason.

    Attributes:
        counts: by kind.
    """

    def __init__(self, log: ThrottledLog) -> None:
        self._log = log
        self.counts: Counter[str] = Counter()
        self._recent: dict[str, str] = {}

    def add(self, kind: str, topic: str, text: str) -> None:
        """One message of a topic was dropped for a reason of some kind."""
        self.counts[kind] += 1
        self._recent[kind] = text
        self._log.warn(f"{kind} {topic}", text)

    def take_recent(self) -> str:
        """The reasons since the last call."""
        text = "; ".join(self._recent.values())
        self._recent.clear()
        return text


class Backlog:
    """Hands on the messages of a subscription; the newest only, while the node is too slow for all.

    Then rclpy gives the messages as bytes, which costs little, and a timer hands on the newest. The
    timer's turn comes after the messages that rclpy has queued, so that their number stays small.

    Args:
        deliver: called with each message that is to be used.

    Attributes:
        subscription: set once it is made, with `receive` as its callback.
        skipped: messages so far.
    """

    def __init__(self, node: Node, kind: type, deliver: Callable[[Any], None]) -> None:
        self.subscription: Subscription | None = None
        self.skipped = 0
        self._node, self._kind, self._deliver = node, kind, deliver
        self._timer: Timer | None = None
        self._newest: Any = None
        self._behind_ns = 0  # since when each message has waited, on the system's clock as in DDS
        self._since_ns = self._busy_ns = 0  # of CALM_S: its begin, and the work on those used
        self._used = self._seen = 0  # messages since then

    @property
    def behind(self) -> bool:
        """Whether messages are skipped."""
        return self._timer is not None

    @property
    def problem(self) -> str:
        """Why messages are skipped and how to fix it; empty when none are."""
        if self._timer is None or self.subscription is None:
            return ""
        return (
            f"the node cannot keep up with {self.subscription.topic_name} and uses only its newest "
            "messages: lower the rate of the topic, or the load of the computer"
        )

    def receive(self, msg: Any, info: dict[str, Any]) -> None:
        """The subscription's callback."""
        now_ns = time.time_ns()
        if self._timer is None:
            if now_ns - info["received_timestamp"] <= _MAX_WAIT_NS:
                self._behind_ns = 0
            elif not self._behind_ns:
                self._behind_ns = now_ns
            if not self._behind_ns or now_ns - self._behind_ns <= _BEHIND_NS:
                self._deliver(msg)
                return
            self._start(now_ns)
        self._skip_to(msg)

    def _skip_to(self, msg: Any) -> None:
        """Store the newest of a message, what waits for the timer and what waits in DDS."""
        count = int(self._newest is not None)
        if self.subscription is not None:
            handle = self.subscription.handle
            with handle:
                while (taken := handle.take_message(self._kind, True)) is not None:
                    msg, count = taken[0], count + 1
        self._newest, self.skipped = msg, self.skipped + count
        self._seen += count

    def _begin(self, now_ns: int) -> None:
        self._since_ns, self._busy_ns, self._used, self._seen = now_ns, 0, 0, 0

    def _start(self, now_ns: int) -> None:
        self._begin(now_ns)
        if self.subscription is not None:
            self.subscription.raw = True
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self._node.create_timer(PERIOD_S, self._on_timer, clock=clock)

    def _on_timer(self) -> None:
        begin_ns = now_ns = time.time_ns()
        msg, self._newest = self._newest, None
        if msg is not None:
            self._deliver(deserialize_message(msg, self._kind) if type(msg) is bytes else msg)
            now_ns = time.time_ns()
            self._busy_ns += now_ns - begin_ns
            self._used, self._seen = self._used + 1, self._seen + 1
        if now_ns - self._since_ns > _CALM_NS:
            all_ns = self._busy_ns * self._seen / max(self._used, 1)
            if all_ns < CALM_LOAD * (now_ns - self._since_ns):
                self._stop()
            self._begin(now_ns)

    def _stop(self) -> None:
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
        self._timer, self._behind_ns = None, 0
        if self.subscription is not None:
            self.subscription.raw = False


class Stream:
    """Takes in the messages of a topic, and hands on those that are good.

    Args:
        node: whose clock counts for messages without stamp.
        deliver: called with each good message and its time, ns.
        check: why a message must not be used and how to fix it, else ""; None: all may.
        faults: where to count what is dropped.
        on_restart: called with the jump, s, before the first message on another time line.
        on_held: called for a message that is held back, for up to stamps.HELD_S.

    Attributes:
        gate: of the stamps.
        topic: the name.
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
        """Take in a message."""
        gate, stamp_ns = self.gate, stamp_to_ns(msg.header.stamp)
        time_ns = gate.time_ns(
            stamp_ns, stamp_ns or self._clock.now().nanoseconds, time.monotonic_ns()
        )
        if gate.jump_s:
            self._report_jump(time_ns is None)
        if time_ns is None:
            if gate.held_s < HELD_S:
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
            f"stamps stay there for {CONFIRM_S:g} s"
            if held
            else f"the stamps of {self.topic} have jumped {way} and count from now on"
        )
        fix = "check the clocks of the driver and of this computer (NTP, PTP, use_sim_time)"
        self._faults.add("clock_jumps", self.topic, f"{text}: {fix}")


def with_info(callback: Callable[[Any, dict[str, Any]], None]) -> Callable[..., None]:
    """A subscription's callback that gets each message with rclpy's information about it.

    rclpy's executors call one of two arguments with both, its EventsExecutor with one tuple.
    """

    def call(*given: Any) -> None:
        msg, info = given if len(given) == 2 else given[0]
        callback(msg, info)

    call.__signature__ = inspect.signature(lambda msg, info: None)  # type: ignore[attr-defined]
    return call
