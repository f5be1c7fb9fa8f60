"""A motion as a smooth curve in time that keeps every limit that its rows keep.

Between two rows the joints go along a line. Around row i, where the speed changes from v_{i-1} to
v_i, a parabola of the length w_i = min(h_{i-1}, h_i) of its shorter neighbour joins the two lines:

  q(t) = x_i + v_{i-1} (t - t_i) + (v_i - v_{i-1}) (t - t_i + w_i / 2)^2 / (2 w_i),
  |t - t_i| <= w_i / 2

so that positions and speeds are mixtures of those of the rows, and accelerations are
(v_i - v_{i-1}) / w_i: exactly what motion.limits checks. The curve passes row i at a distance of
|v_i - v_{i-1}| w_i / 8. It is at rest before the first parabola and behind the last one.
"""

import numpy as np

from com_control.exceptions import MotionError
from com_control.motion.motion import Motion
from com_model.arrays import Array


class RowPath:
    """The curve of one motion.

    Args:
        motion: At least one row.

    Attributes:
        start: s, when it leaves the first row; half a row before that row's time.
        end: s, when it has come to rest on the last row.

    Raises:
        MotionError: The motion has no rows.
    """

    def __init__(self, motion: Motion) -> None:
        if not len(motion.times):
            raise MotionError("a motion without rows cannot be played")
        self.motion = motion
        times = motion.times
        first = times[1] - times[0] if len(times) > 1 else 0.0
        last = times[-1] - times[-2] if len(times) > 1 else 0.0
        self.start = float(times[0] - first / 2.0)
        self.end = float(times[-1] + last / 2.0)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.motion.times)

    def row(self, t: float) -> int:
        """Number of the row, from 1, that is nearest before a time; at least 1."""
        return max(int(np.searchsorted(self.motion.times, t + 1e-9, side="right")), 1)

    def at(self, t: float) -> tuple[Array, Array]:
        """Positions and velocities (k,) at a time, rad and rad/s; NaN where not driven."""
        times, x = self.motion.times, self.motion.positions
        if t <= self.start or t >= self.end or len(times) == 1:
            row = x[0] if t <= self.start else x[-1]
            return row.copy(), 0.0 * row
        near = self._nearest(t)
        before, after = self._speed(near - 1), self._speed(near)
        s = t - times[near]
        width = min(self._step(near - 1), self._step(near))
        if s <= -width / 2.0:
            return x[near] + before * s, before
        if s >= width / 2.0:
            return x[near] + after * s, after
        u, change = s + width / 2.0, after - before
        return x[near] + before * s + change * u * u / (2.0 * width), before + change * u / width

    def _nearest(self, t: float) -> int:
        """The row that is nearest in time."""
        times = self.motion.times
        k = int(np.clip(np.searchsorted(times, t), 1, len(times) - 1))
        return k - 1 if t - times[k - 1] < times[k] - t else k

    def _step(self, k: int) -> float:
        """Time from row k to the next, s; that of its neighbour at both ends."""
        times = self.motion.times
        k = min(max(k, 0), len(times) - 2)
        return float(times[k + 1] - times[k])

    def _speed(self, k: int) -> Array:
        """Speeds (k,) from row k to the next; 0 before the first and behind the last."""
        x = self.motion.positions
        if k < 0 or k >= len(x) - 1:
            return np.asarray(0.0 * x[0])
        return np.asarray((x[k + 1] - x[k]) / self._step(k))


class PlayedPath:
    """Two curves, one after the other; both begin and end at rest.

    Args:
        lead: From where the robot stands to the first row.

    Attributes:
        approach_length: s at full pace, of the first.
        length: s at full pace, of both.
    """

    def __init__(self, lead: RowPath, file: RowPath) -> None:
        self._lead, self._file = lead, file
        self.approach_length = lead.end - lead.start
        self.length = self.approach_length + file.end - file.start

    def at(self, place: float, rate: float) -> tuple[Array, Array]:
        """Positions and velocities (k,) at a place (s from its start), passed at a rate."""
        beyond = place - self.approach_length
        if beyond < 0.0:
            position, velocity = self._lead.at(self._lead.start + place)
        else:
            position, velocity = self._file.at(self._file.start + beyond)
        return position, velocity * rate

    def file_time(self, place: float) -> float | None:
        """Time of the motion at a place, s; None before it."""
        beyond = place - self.approach_length
        return None if beyond < 0.0 else self._file.start + beyond


class PathTiming:
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

    def change(self, time: float, rate: float) -> None:
        """Goes smoothly to a rate from a time on, s; what was to come then is dropped."""
        place, now = self.place(time), self.rate(time)
        self._t0, self._s0, self._from, self._to = time, place, now, rate

    def rate(self, time: float) -> float:
        """Rate at a time."""
        u = self._fraction(time)
        return self._from + (self._to - self._from) * u * u * (3.0 - 2.0 * u)

    def place(self, time: float) -> float:
        """Place at a time, s of the path."""
        u = self._fraction(time)
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

    def _fraction(self, time: float) -> float:
        if self._length <= 0.0:
            return 1.0
        return min(max((time - self._t0) / self._length, 0.0), 1.0)
