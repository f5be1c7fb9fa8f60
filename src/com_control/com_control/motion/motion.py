"""A motion as arrays and as a smooth curve, and smooth approaches to its first row."""

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import MotionError
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array, FrozenArrays, as_array, freeze
from com_model.bodies import Indices
from com_model.joint_path import quintic
from com_model.strict_yaml import Section, read_yaml

PERIOD, MODE = "period", "mode"


@dataclass(frozen=True, eq=False)
class MotionLayout(FrozenArrays):
    """Columns, units and limits of a robot's motion files.

    Attributes:
        columns: names in the order of the file: "period", "mode", joints; others are ignored.
        joints: the k joints among them.
        index: (k,) their columns.
        counts_per_rad: (k,) counts (pulses) per radian of the URDF's joint, with its sign.
        period: s per unit of the column "period".
        lower: (k,) rad, limits of the joints.
        upper: (k,) rad.
        velocity: (k,) rad/s.
        acceleration: (k,) rad/s^2.
    """

    columns: tuple[str, ...]
    joints: tuple[str, ...]
    index: Indices
    counts_per_rad: Array
    period: float
    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], config: RobotConfig, model: RobotModel
    ) -> "MotionLayout":
        """Reads a layout; encoders come from the robot's configuration, limits from its URDF.

        Args:
            path: of the YAML file.
            config: the robot's configuration.
            model: the robot.

        Returns:
            The layout; velocity limits are the smaller ones of max_speed and the URDF's.

        Raises:
            ConfigError: a key is wrong; the message names it.
            MotionError: there is no period, or a joint's encoder is unknown.
        """
        top = Section(read_yaml(path), str(path))
        top.text("robot", None)
        columns = top.names("columns")
        period = top.number("period", 0.001, least=1e-6)
        speed = top.number("max_speed", np.inf, least=0.0)
        acceleration = top.number("max_acceleration", np.inf, least=0.0)
        top.finish()
        joints = tuple(name for name in columns if name in model.joint_names)
        counts = _counts(joints, config)
        at = [model.joint_index(joint) for joint in joints]
        if PERIOD not in columns or not joints:
            raise MotionError(
                f"{path}: columns need {PERIOD!r} and joints of {model.name}"
            )
        return cls(
            columns=columns,
            joints=joints,
            index=np.array([columns.index(joint) for joint in joints]),
            counts_per_rad=counts,
            period=period,
            lower=model.lower[at],
            upper=model.upper[at],
            velocity=np.minimum(speed / np.abs(counts), model.velocity_limits[at]),
            acceleration=acceleration / np.abs(counts),
        )


def _counts(joints: tuple[str, ...], config: RobotConfig) -> Array:
    per_degree = config.encoder_counts_per_degree
    if per_degree is None:
        raise MotionError(
            f"{config.source}: encoder.counts_per_degree is missing: give it"
        )
    for joint in joints:
        if joint not in config.encoder_signs:
            raise MotionError(
                f"{config.source}: encoder.signs has no {joint}, a column of the motion files: "
                "give 1 or -1"
            )
    signs = np.array([config.encoder_signs[joint] for joint in joints], dtype=float)
    return np.asarray(np.degrees(signs * per_degree))


_PEAK_SPEED = 1.875  # of 10 s^3 - 15 s^4 + 6 s^5
_PEAK_ACCELERATION = 10.0 / np.sqrt(3.0)


@dataclass(frozen=True, eq=False)
class Motion:
    """Joint positions over time.

    Attributes:
        joints: k names.
        times: (N,) s from the start, rising.
        positions: (N, k) rad; NaN in all rows of a joint that is not driven.

    Raises:
        MotionError: times do not rise, or numbers are not finite.
    """

    joints: tuple[str, ...]
    times: Array
    positions: Array

    def __post_init__(self) -> None:
        times = as_array("times", self.times, (None,))
        positions = as_array(
            "positions", self.positions, (len(times), len(self.joints))
        )
        if not (np.isfinite(times).all() and (np.diff(times) > 0.0).all()):
            raise MotionError("times must be finite and rise from row to row")
        odd = np.isnan(positions).any(axis=0) & ~np.isnan(positions).all(axis=0)
        if np.isinf(positions).any() or odd.any():
            names = ", ".join(np.array(self.joints)[odd]) or "some"
            raise MotionError(f"positions that are not finite in some rows: {names}")
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "positions", positions)
        freeze(self)

    @property
    def driven(self) -> tuple[str, ...]:
        """Names of the joints that it moves."""
        if not len(self.times):
            return self.joints
        return tuple(
            joint
            for joint, x in zip(self.joints, self.positions[0], strict=True)
            if np.isfinite(x)
        )

    def rates(self) -> tuple[Array, Array]:
        """Velocities between the rows and accelerations at them.

        Accelerations are differences of velocities over the shorter of their periods. The robot
        stands before the first row and after the last one.

        Returns:
            (N - 1, k) rad/s and (N, k) rad/s^2; both empty for a single row.
        """
        step = np.diff(self.times)[:, None]
        speed = np.diff(self.positions, axis=0) / step
        if not len(step):
            return speed, speed
        change = np.diff(speed, axis=0, prepend=0.0, append=0.0)
        change /= np.minimum(np.vstack((step[:1], step)), np.vstack((step, step[-1:])))
        return speed, change


def approach(
    layout: MotionLayout,
    start: ArrayLike,
    end: ArrayLike,
    period: float,
    fraction: float = 0.5,
) -> Motion:
    """Smooth motion from the present positions to the first row of a motion.

      q(t) = start + (end - start) (10 s^3 - 15 s^4 + 6 s^5),  s = t / T

    at rest at both ends, T the shortest time that keeps a fraction of the limits of velocity and
    acceleration.

    Args:
        layout: of the k joints, with their limits.
        start: (k,) rad or m.
        end: (k,) rad or m; NaN for joints that stay.
        period: s, between rows.
        fraction: of the limits.

    Returns:
        The motion, both ends included; one row where they are the same.

    Raises:
        MotionError: start is not finite, or period or fraction is not positive.
    """
    count = len(layout.joints)
    start, end = as_array("start", start, (count,)), as_array("end", end, (count,))
    if not np.isfinite(start).all():
        unknown = [
            n for n, x in zip(layout.joints, start, strict=True) if not np.isfinite(x)
        ]
        raise MotionError(f"where the robot stands is not known: {', '.join(unknown)}")
    if not (period > 0.0 and fraction > 0.0):
        raise MotionError(
            f"period and fraction must be positive, got {period:g} and {fraction:g}"
        )
    way = np.where(np.isnan(end), 0.0, end - start)
    shortest = np.maximum(
        _PEAK_SPEED * np.abs(way) / (fraction * layout.velocity),
        np.sqrt(_PEAK_ACCELERATION * np.abs(way) / (fraction * layout.acceleration)),
    )
    rows = int(np.ceil(shortest.max(initial=0.0) / period))
    s = np.arange(rows + 1) / max(rows, 1)
    times = np.arange(rows + 1, dtype=np.float64) * period
    return Motion(
        layout.joints, times, np.asarray(start + quintic(s)[0][:, None] * way)
    )


def clamped(layout: MotionLayout, motion: Motion) -> Motion:
    """Brings a motion within the limits: clips positions, then stretches time as a whole.

    Args:
        layout: the limits.
        motion: of the layout's joints.

    Returns:
        A motion within all limits.
    """
    positions = np.clip(motion.positions, layout.lower, layout.upper)
    speed, change = Motion(motion.joints, motion.times, positions).rates()
    faster = np.nanmax(np.abs(speed) / layout.velocity, initial=0.0)
    harder = np.nanmax(np.abs(change) / layout.acceleration, initial=0.0)
    stretch = max(1.0, float(faster), float(np.sqrt(harder))) * (1.0 + 1e-9)
    return Motion(motion.joints, motion.times * stretch, positions)


class RowPath:
    """A motion as a smooth curve in time that keeps every limit that its rows keep.

    Between two rows the joints move along a line. Around row i, where the velocity changes from
    v_{i-1} to v_i, a parabola of the length w_i = min(h_{i-1}, h_i) of its shorter neighbour
    joins them:

      q(t) = x_i + v_{i-1} (t - t_i) + (v_i - v_{i-1}) (t - t_i + w_i / 2)^2 / (2 w_i),
      |t - t_i| <= w_i / 2

    so that positions and velocities are convex combinations of those of the rows, and
    accelerations are (v_i - v_{i-1}) / w_i: exactly what motion.limits checks. The curve passes
    row i at a distance of |v_i - v_{i-1}| w_i / 8. It is at rest before the first parabola and
    after the last one.

    Args:
        motion: with at least one row.

    Attributes:
        motion: as given.
        start: s, when it leaves the first row; half a row before that row's time.
        end: s, when it has come to rest on the last row.

    Raises:
        MotionError: the motion has no rows.
    """

    def __init__(self, motion: Motion) -> None:
        if not len(motion.times):
            raise MotionError("a motion without rows cannot be played")
        self.motion = motion
        times = motion.times
        steps = np.diff(times) if len(times) > 1 else np.zeros(1)
        self._steps = np.pad(
            steps, 1, mode="edge"
        )  # s, from the row before each to it, and on
        self.start = float(times[0] - steps[0] / 2.0)
        self.end = float(times[-1] + steps[-1] / 2.0)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.motion.times)

    def row(self, t: float) -> int:
        """Number of the last row at or before a time.

        Args:
            t: s.

        Returns:
            From 1; 1 before the first row.
        """
        return max(int(np.searchsorted(self.motion.times, t + 1e-9, side="right")), 1)

    def sample(self, t: float) -> tuple[Array, Array]:
        """Evaluates the curve.

        Args:
            t: s.

        Returns:
            Positions (k,) rad and velocities (k,) rad/s; NaN where not driven.
        """
        times, x = self.motion.times, self.motion.positions
        if t <= self.start or t >= self.end or len(times) == 1:
            row = x[0] if t <= self.start else x[-1]
            return row.copy(), 0.0 * row
        near = self._nearest(t)
        before, after = self._speed(near - 1), self._speed(near)
        s = t - times[near]
        width = min(self._steps[near : near + 2])
        if s <= -width / 2.0:
            return x[near] + before * s, before
        if s >= width / 2.0:
            return x[near] + after * s, after
        u, change = s + width / 2.0, after - before
        return x[near] + before * s + change * u * u / (
            2.0 * width
        ), before + change * u / width

    def _nearest(self, t: float) -> int:
        """Index of the row that is nearest in time."""
        times = self.motion.times
        k = int(np.clip(np.searchsorted(times, t), 1, len(times) - 1))
        return k - 1 if t - times[k - 1] < times[k] - t else k

    def _speed(self, k: int) -> Array:
        """Velocities (k,) from row k to the next; 0 before the first and after the last."""
        x = self.motion.positions
        if k < 0 or k >= len(x) - 1:
            return np.asarray(0.0 * x[0])
        return np.asarray((x[k + 1] - x[k]) / self._steps[k + 1])


class PlayedPath:
    """An approach followed by a motion; both begin and end at rest.

    Args:
        lead: the approach.
        file: the motion.

    Attributes:
        approach_length: s, duration of the approach at full rate.
        length: s, duration of both.
    """

    def __init__(self, lead: RowPath, file: RowPath) -> None:
        self._lead, self._file = lead, file
        self.approach_length = lead.end - lead.start
        self.length = self.approach_length + file.end - file.start

    def sample(self, place: float, rate: float) -> tuple[Array, Array]:
        """Evaluates the path.

        Args:
            place: s of the path from its start at full rate.
            rate: path seconds per second, 0 to 1.

        Returns:
            Positions (k,) rad and velocities (k,) rad/s.
        """
        beyond = place - self.approach_length
        if beyond < 0.0:
            position, velocity = self._lead.sample(self._lead.start + place)
        else:
            position, velocity = self._file.sample(self._file.start + beyond)
        return position, velocity * rate

    def file_time(self, place: float) -> float | None:
        """Time in the motion.

        Args:
            place: s of the path.

        Returns:
            s; None during the approach.
        """
        beyond = place - self.approach_length
        return None if beyond < 0.0 else self._file.start + beyond


class PathTiming:
    """Progress along a path over time.

    The rate r = ds/dt changes from one value to another within a part of a span T, s, from rest
    to full rate, as r(u) = r0 + (r1 - r0) (3 u^2 - 2 u^3), u = (t - t0) / T, so that its
    derivative is at most 1.5 |r1 - r0| / T. Velocities along the path are r q'(s), accelerations
    r^2 q''(s) + r' q'(s).

    Args:
        time: s, at which it is at rest at the start of the path.
        span: T, s, for a change of the rate by 1.

    Attributes:
        goal: the rate that it changes to, or has.
    """

    def __init__(self, time: float, span: float) -> None:
        self._span = span
        self._t0, self._s0 = time, 0.0
        self._from = self.goal = 0.0  # rates, from one to the other

    @property
    def settled(self) -> float:
        """Time at which it reaches its rate, s."""
        return self._t0 + self._length

    def change(self, time: float, rate: float) -> None:
        """Changes the rate smoothly from a time on; later changes that were planned are dropped.

        Args:
            time: s.
            rate: new rate, 0 to 1.
        """
        place, now = self.place(time), self.rate(time)
        self._t0, self._s0, self._from, self.goal = time, place, now, rate

    def rate(self, time: float) -> float:
        """Rate at a time.

        Args:
            time: s.

        Returns:
            Path seconds per second.
        """
        u = self._fraction(time)
        return self._from + (self.goal - self._from) * u * u * (3.0 - 2.0 * u)

    def place(self, time: float) -> float:
        """Progress at a time.

        Args:
            time: s.

        Returns:
            s of the path.
        """
        u = self._fraction(time)
        ramp = self._from * u + (self.goal - self._from) * u**3 * (1.0 - u / 2.0)
        beyond = max(time - self._t0 - self._length, 0.0)
        return self._s0 + self._length * ramp + self.goal * beyond

    @property
    def _length(self) -> float:
        """Duration of the change of the rate, s."""
        return self._span * abs(self.goal - self._from)

    def _fraction(self, time: float) -> float:
        if self._length <= 0.0:
            return 1.0
        return min(max((time - self._t0) / self._length, 0.0), 1.0)
