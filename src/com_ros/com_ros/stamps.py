"""The times of a topic's messages, and the one policy for a clock that jumps.

A message's time is its stamp, or the node's clock at receipt where the stamp is zero: a driver
that does not stamp, or one whose clock has not started yet. As soon as one stamp is not zero, the
stamps count.

A stamp jumps when it is more than JUMP_S behind the newest one, or ahead of it by more than JUMP_S
and by more than PACE times the real time since then (a recording may be replayed fast, and
messages may be lost). A message whose stamp jumps is held back. One message stays without effect;
when the stamps have stayed on the other time line for CONFIRM_S, without one that fits the old
line, they count from then on, as another recording. After PAUSE_S without a message any stamp
counts: what came before is stale by then anyway. So a sane clock is followed again within half a
second. Meanwhile nodes hold: messages that are held back for up to HELD_S count as received, so
that no timeout is reported for a driver that goes on.
"""

from dataclasses import dataclass

from com_ros.conversions import NS_PER_S

JUMP_S = 0.5
CONFIRM_S = 0.25
HELD_S = 0.5
PAUSE_S = 1.0
PACE = 50.0  # times real time

_JUMP_NS, _CONFIRM_NS = int(JUMP_S * NS_PER_S), int(CONFIRM_S * NS_PER_S)
_PAUSE_NS = int(PAUSE_S * NS_PER_S)
SLACK_NS = 500_000  # that a sample may be early and still count as due


@dataclass
class _Line:
    """Consecutive messages on one time line: times and real times (ns) of the first and last."""

    first: int
    first_at: int
    last: int
    last_at: int

    def continued_by(self, time_ns: int, at_ns: int, jump_ns: int) -> bool:
        """Whether a message belongs to it."""
        step = time_ns - self.last
        return -jump_ns <= step <= jump_ns or 0 < step <= PACE * (at_ns - self.last_at)


class StampGate:
    """Gives the times of the messages of one topic, and holds back those that jump.

    Args:
        jump_s: see JUMP_S; more where the topic's messages may be further apart.

    Attributes:
        jump_s: how far the last message jumped, s; 0 when it did not.
        restarted: the last message is the first that counts on another time line.
        held_s: real time since the first of the messages that are held back, s.
    """

    def __init__(self, jump_s: float = JUMP_S) -> None:
        self._jump_ns = max(_JUMP_NS, int(jump_s * NS_PER_S))
        self._line: _Line | None = None
        self._other: _Line | None = None  # that the stamps may have jumped to
        self._stamped = False
        self._seen_at = 0  # real time of the last message
        self._held_at = 0  # real time of the first message that is held back
        self.jump_s = self.held_s = 0.0
        self.restarted = False

    def time_ns(self, stamp_ns: int, received_ns: int, at_ns: int) -> int | None:
        """Time of a message; None: hold it back.

        Args:
            stamp_ns: its stamp, 0 for none.
            received_ns: the node's clock.
            at_ns: real time, monotonic.
        """
        line = self._line
        if (  # the usual: a stamp that continues the line
            line is not None
            and self._stamped
            and stamp_ns
            and self._other is None
            and -self._jump_ns <= stamp_ns - line.last <= self._jump_ns
        ):
            line.last = stamp_ns if stamp_ns > line.last else line.last
            line.last_at = self._seen_at = at_ns
            self.jump_s, self.restarted = 0.0, False
            return stamp_ns
        time_ns = stamp_ns or received_ns
        started = bool(stamp_ns) and not self._stamped
        self._stamped |= bool(stamp_ns)
        holds = self.jump_s != 0.0 and not self.restarted
        self.jump_s, self.restarted = 0.0, False
        paused, self._seen_at = at_ns - self._seen_at >= _PAUSE_NS, at_ns
        if line is None or started:
            self.restarted = line is not None
            self._begin(_Line(time_ns, at_ns, time_ns, at_ns))
        elif line.continued_by(time_ns, self._held_since(at_ns), self._jump_ns):
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

    def _held_since(self, at_ns: int) -> int:
        """Real time of the first of the messages that are held back, else of this one."""
        return at_ns if self._other is None else self._other.first_at

    def _begin(self, line: _Line) -> None:
        self._line, self._other = line, None

    def _confirmed(self, time_ns: int, at_ns: int) -> bool:
        other = self._other
        if other is None or not other.continued_by(time_ns, at_ns, self._jump_ns):
            self._other = _Line(time_ns, at_ns, time_ns, at_ns)
            return False
        other.last, other.last_at = max(time_ns, other.last), at_ns
        return max(time_ns - other.first, at_ns - other.first_at) >= _CONFIRM_NS


class RateLimit:
    """Leaves out samples that come more often than a rate, by their times.

    Args:
        rate_hz: 1/s; inf: none is left out.
    """

    def __init__(self, rate_hz: float) -> None:
        self._next_ns = 0
        self.set(rate_hz)

    def set(self, rate_hz: float) -> None:
        """Change the rate."""
        self._period_ns = int(NS_PER_S / rate_hz)  # 0 for inf

    def restart(self) -> None:
        """The times that follow are of another time line."""
        self._next_ns = 0

    def due(self, time_ns: int) -> bool:
        """Whether a sample of this time is to be used."""
        if self._period_ns and self._next_ns - self._period_ns - _JUMP_NS < time_ns < self._next_ns:
            return False
        self._next_ns = time_ns + self._period_ns - SLACK_NS
        return True
