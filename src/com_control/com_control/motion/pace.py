"""How far along a path a robot is, when its pace changes smoothly between rest and full pace."""

from __future__ import annotations

from copy import copy


class Pace:
    """Place on a path as a function of time.

    The rate r = ds/dt goes from one value to another within a span T of time as
    r(u) = r0 + (r1 - r0) (3 u^2 - 2 u^3), u = (t - t0) / T, so that its own rate is at most
    1.5 |r1 - r0| / T. Velocities along the path are r q'(s), accelerations r^2 q''(s) + r' q'(s).

    Args:
        time: s, when it stands at place 0.
        span: T, s, of a change from rest to full pace.
    """

    def __init__(self, time: float, span: float) -> None:
        self._span = span
        self._t0, self._s0 = time, 0.0
        self._from = self._to = 0.0

    @property
    def goal(self) -> float:
        """The rate that it goes to."""
        return self._to

    @property
    def settled(self) -> float:
        """When it has reached its rate, s."""
        return self._t0 + self._length

    def copy(self) -> Pace:
        """The same, to be changed by itself."""
        return copy(self)

    def change(self, time: float, rate: float) -> None:
        """Goes smoothly to a rate from a time on, s; what was to come then is dropped."""
        place, now = self.place(time), self.rate(time)
        self._t0, self._s0, self._from, self._to = time, place, now, rate

    def rate(self, time: float) -> float:
        """Rate at a time."""
        u = self._share(time)
        return self._from + (self._to - self._from) * u * u * (3.0 - 2.0 * u)

    def place(self, time: float) -> float:
        """Place at a time, s of the path."""
        u = self._share(time)
        ramp = self._from * u + (self._to - self._from) * u**3 * (1.0 - u / 2.0)
        beyond = max(time - self._t0 - self._length, 0.0)
        return self._s0 + self._length * ramp + self._to * beyond

    def steady(self, time: float) -> bool:
        """Whether it has reached its rate."""
        return time >= self._t0 + self._length

    @property
    def _length(self) -> float:
        """Of the change under way, s."""
        return self._span * abs(self._to - self._from)

    def _share(self, time: float) -> float:
        if self._length <= 0.0:
            return 1.0
        return min(max((time - self._t0) / self._length, 0.0), 1.0)
