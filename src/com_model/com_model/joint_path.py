"""Joint targets over time, for all packages.

Between two points that are h apart the targets go along the cubic that has the positions and the
velocities of both, as controllers of joint trajectories do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, FrozenArrays


def quintic(s: ArrayLike) -> tuple[Array, Array, Array]:
    """Quintic from 0 to 1, 10 s^3 - 15 s^4 + 6 s^5, at rest at both ends.

    Returns:
        Its value and its first and second derivative by s; s is clipped to 0 .. 1.
    """
    x = np.clip(np.asarray(s, dtype=float), 0.0, 1.0)
    u = x * (1.0 - x)
    return x**3 * (10.0 + x * (6.0 * x - 15.0)), 30.0 * u**2, 60.0 * u * (1.0 - 2.0 * x)


def critically_damped(
    value: Array, speed: Array, aim: Array, rate: float | Array, dt: float
) -> tuple[Array, Array]:
    """Integrates x'' = rate^2 (aim - x) - 2 rate x' exactly.

    Args:
        value: (n,) x at the start, rad or m.
        speed: (n,) x' at the start, rad/s or m/s.
        aim: (n,) where it comes to rest.
        rate: 1/s, one or (n,).
        dt: Time to pass, s.

    Returns:
        Value and speed after dt.
    """
    away, decay = value - aim, np.exp(-rate * dt)
    change = speed + rate * away
    return aim + (away + change * dt) * decay, (speed - rate * change * dt) * decay


@dataclass(frozen=True, eq=False)
class JointPath(FrozenArrays):
    """Targets of all joints; arrays are read-only.

    Attributes:
        time: (N,) s, rising, at least one.
        q: (N, n) rad or m.
        qd: (N, n) rad/s or m/s.
    """

    time: Array
    q: Array
    qd: Array

    @classmethod
    def through(cls, points: ArrayLike, span: float, dt: float = 0.01) -> JointPath:
        """Straight lines from point to point, quintics in time, stationary at each point.

        Args:
            points: (k, n) rad or m, at least two; the first at time 0.
            span: s, from one point to the next, above 0.
            dt: s, largest time between the points of the result.

        Returns:
            The path; its largest speed is 1.875 times the mean speed of a line.
        """
        corners = np.asarray(points, dtype=float)
        count, lines = max(int(np.ceil(span / dt)), 1), len(corners) - 1
        s = np.arange(count * lines + 1) / count
        k = np.minimum(s.astype(int), lines - 1)
        value, slope, _ = quintic(s - k)
        way = np.diff(corners, axis=0)[k]
        return cls(
            s * span, corners[k] + value[:, None] * way, slope[:, None] / span * way
        )

    @property
    def end(self) -> float:
        """Time of the last point, s."""
        return float(self.time[-1])

    def sample(self, t: float) -> tuple[Array, Array]:
        """Positions and velocities (n,) at a time; stationary before the path and after it."""
        if not self.time[0] < t < self.time[-1]:
            k = 0 if t <= self.time[0] else -1
            return self.q[k].copy(), np.zeros(self.q.shape[1])
        k = int(np.searchsorted(self.time, t, side="right")) - 1
        begin, end = self.time[k : k + 2].tolist()
        h, s = end - begin, (t - begin) / (end - begin)
        r = 1.0 - s
        (a, b), (v, w) = self.q[k : k + 2], self.qd[k : k + 2]
        way = b - a
        q = a + s * s * (3.0 - 2.0 * s) * way + h * s * r * (r * v - s * w)
        return q, (6.0 * s * r / h) * way + r * (1.0 - 3.0 * s) * v + s * (
            3.0 * s - 2.0
        ) * w

    def after(self, t: float) -> JointPath:
        """The points after a time; at least the last one, then stationary at that time."""
        if t >= self.time[-1]:
            return JointPath(np.array([t]), self.q[-1:], np.zeros_like(self.q[-1:]))
        ahead = self.time > t
        return JointPath(self.time[ahead], self.q[ahead], self.qd[ahead])

    def followed_by(self, later: JointPath) -> JointPath:
        """This path up to the first point of another one, and that one."""
        own = self.time < later.time[0] - 1e-9
        return JointPath(
            np.concatenate((self.time[own], later.time)),
            np.concatenate((self.q[own], later.q)),
            np.concatenate((self.qd[own], later.qd)),
        )

    def shifted(self, by: float) -> JointPath:
        """The same, later by a time, s."""
        return JointPath(self.time + by, self.q, self.qd)

    def halted(self, t: float, span: float, dt: float = 0.01) -> JointPath:
        """Comes to rest along this path: its own time slows down from a time on.

        After t it is at t + s - s^2 / (2 span) of its own time, so that neither a position nor a
        speed is met that it would not have met anyway.

        Args:
            t: Time from which it slows down, s.
            span: Time that it takes to come to rest, s.
            dt: Time between the points of the result, s.

        Returns:
            The path from t until it stands.
        """
        count = max(int(np.ceil(span / dt)), 1)
        s = np.linspace(0.0, span, count + 1)
        states = [self.sample(t + x - 0.5 * x * x / span) for x in s.tolist()]
        rate = 1.0 - s / span
        q = np.array([state[0] for state in states])
        return JointPath(
            t + s, q, np.array([state[1] for state in states]) * rate[:, None]
        )
