"""A motion as rows and as a smooth curve, ways to its first row, and timing along a path."""

import os
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import MotionError
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array, FrozenArrays, Indices, as_array, freeze
from com_model.joint_path import JointPath
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

    def row_at(self, t: float) -> int:
        """Number of the last row at or before a time.

        Args:
            t: s.

        Returns:
            From 1; 1 before the first row.
        """
        return max(int(np.searchsorted(self.times, t + 1e-9, side="right")), 1)

    @cached_property
    def path(self) -> JointPath:
        """The motion as a smooth curve in time that keeps every limit that its rows keep.

        Between two rows the joints move along a line. Around row i, where the velocity changes
        from v_{i-1} to v_i, a parabola of the length w_i = min(h_{i-1}, h_i) of its shorter
        neighbour joins them:

          q(t) = x_i + v_{i-1} (t - t_i) + (v_i - v_{i-1}) (t - t_i + w_i / 2)^2 / (2 w_i),
          |t - t_i| <= w_i / 2

        so that positions and velocities are convex combinations of those of the rows, and
        accelerations are (v_i - v_{i-1}) / w_i: exactly what motion.limits checks. The curve
        passes row i at a distance of |v_i - v_{i-1}| w_i / 8. It begins at rest w_0 / 2 before
        the first row and ends at rest as long after the last one. Cubics through the ends of
        lines and parabolas are those lines and parabolas. NaN for joints that are not driven.

        Raises:
            MotionError: the motion has no rows.
        """
        times, x = self.times, self.positions
        if not len(times):
            raise MotionError("a motion without rows cannot be played")
        if len(times) == 1:
            return JointPath(times, x, 0.0 * x)
        steps = np.pad(np.diff(times), 1, mode="edge")  # before and after each row
        half = 0.5 * np.minimum(steps[:-1], steps[1:])
        still = 0.0 * x[:1]
        speed = np.vstack((still, np.diff(x, axis=0) / steps[1:-1, None], still))
        time = np.column_stack((times - half, times + half)).ravel()
        ends = np.flatnonzero(
            np.append(np.diff(time) > 1e-9, True)
        )  # meeting ones: once
        row, side = np.divmod(ends, 2)  # 0: half before the row, 1: after it
        slope, away = speed[row + side], (2 * side - 1) * half[row]
        return JointPath(time[ends], x[row] + away[:, None] * slope, slope)

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


def plan_approach(
    layout: MotionLayout, start: ArrayLike, end: ArrayLike, fraction: float = 0.5
) -> JointPath:
    """Plans a straight way from the present positions to the first row of a motion.

    It takes the shortest time, at least 10 ms, that keeps a fraction of the limits of
    velocity and acceleration; see JointPath.through.

    Args:
        layout: of the k joints, with their limits.
        start: (k,) rad or m.
        end: (k,) rad or m; NaN for joints that stay.
        fraction: of the limits.

    Returns:
        The path of the k joints, from time 0.

    Raises:
        MotionError: start is not finite, or fraction is not positive.
    """
    count = len(layout.joints)
    start, end = as_array("start", start, (count,)), as_array("end", end, (count,))
    if not np.isfinite(start).all():
        unknown = [
            n for n, x in zip(layout.joints, start, strict=True) if not np.isfinite(x)
        ]
        raise MotionError(f"where the robot stands is not known: {', '.join(unknown)}")
    if not fraction > 0.0:
        raise MotionError(f"fraction must be positive, got {fraction:g}")
    way = np.where(np.isnan(end), 0.0, end - start)
    # the largest slope of 10 s^3 - 15 s^4 + 6 s^5
    shortest = np.maximum(
        1.875 * np.abs(way) / (fraction * layout.velocity),
        np.sqrt(10.0 / np.sqrt(3.0) * np.abs(way) / (fraction * layout.acceleration)),
    )
    step = 0.01  # s, between the points of an approach
    span = float(shortest.max(initial=step))
    return JointPath.through([start, start + way], span, step)


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
        place, now = self.progress(time), self.rate(time)
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

    def progress(self, time: float) -> float:
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
