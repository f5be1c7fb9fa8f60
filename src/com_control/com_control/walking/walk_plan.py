"""A walk from its footsteps: when each foot moves, where the ZMP goes, where CoM and feet are.

Feet in the air go along quintics, with continuous acceleration ([CCGD] 2.3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from com_control.exceptions import PlanError
from com_control.walking.footsteps import (
    SIDES,
    Footstep,
    WalkParameters,
    check_footsteps,
    plan_footsteps,
    sort_feet,
    standing,
    wrap_angle,
)
from com_model.arrays import Array, FrozenArrays, as_array
from com_model.dynamics import GRAVITY
from com_model.parameters import check_options, parameter


@dataclass(frozen=True)
class Timing:
    """When and how high; the heights are those of [CCGD], the times are ours: it prints none."""

    step_time: float = parameter(1.2, "s, of a step with one foot in the air", (1e-3, 60.0))
    double_support: float = parameter(
        0.4, "s, between two steps, in which the ZMP goes from foot to foot", (1e-3, 60.0)
    )
    step_height: float = parameter(0.075, "m, of the swing foot ([CCGD] h_s)", (0.0, 2.0))
    com_height: float = parameter(0.45, "m, of the CoM over the feet ([CCGD] z_c)", (1e-2, 10.0))
    start_time: float = parameter(
        1.5, "s, of standing before the first double support", (1e-3, 60.0)
    )
    stop_time: float = parameter(1.5, "s, of standing after the last one", (1e-3, 60.0))
    zmp_x: float = parameter(
        0.0, "m, by which the ZMP is before the middle of the sole, in the foot's axes", (-1.0, 1.0)
    )
    zmp_y: float = parameter(
        0.0, "m, by which it is inwards of it, towards the other foot", (-1.0, 1.0)
    )
    min_width: float = parameter(0.1, "m, see check_footsteps", (0.0, 10.0))
    max_length: float = parameter(inf, "m, see check_footsteps", (0.0, inf))
    max_height: float = parameter(inf, "m, see check_footsteps", (0.0, inf))
    max_turn: float = parameter(0.8, "rad, see check_footsteps", (0.0, 1.6))

    def __post_init__(self) -> None:
        check_options(self, PlanError)


@dataclass(frozen=True, eq=False)
class Samples:
    """A walk at N times; world axes."""

    time: Array  # (N,) s
    com: Array  # (N, 3) m
    com_velocity: Array  # (N, 3) m/s
    com_acceleration: Array  # (N, 3) m/s^2
    zmp: Array  # (N, 3) m, of the pendulum
    feet: Array  # (N, 2, 3, 4) poses [R p] of the soles, left and right
    foot_velocity: Array  # (N, 2, 4) of x, y, z (m/s) and yaw (rad/s)
    foot_acceleration: Array  # (N, 2, 4) likewise, per s
    # (N, 3, 3) orientation of the pelvis: upright, in the middle of the feet's yaws
    R_pelvis: Array
    stance: Array  # (N, 2) whether each foot is on the ground


class WalkPlan:
    """A walk as a function of time.

    The ZMP stays in the middle between the feet, goes to the standing foot while both are on the
    ground, stays there while the other swings, and ends in the middle. The CoM follows by the
    pendulum; its height follows the standing feet's along quintics.

    Args:
        steps: The footsteps, sides in turn; none: the robot stands.

    Attributes:
        lift_offs: (S,) s, when each step's foot leaves the ground.
        touch_downs: (S,) s, when it is back.
        duration: s.

    Raises:
        PlanError: A footstep or a time cannot be.
    """

    def __init__(
        self, start: Sequence[Footstep], steps: Sequence[Footstep], timing: Timing | None = None
    ) -> None:
        self.timing = timing = Timing() if timing is None else timing
        self.start, self.steps = sort_feet(start), tuple(steps)
        check_footsteps(
            self.start,
            self.steps,
            timing.min_width,
            timing.max_length,
            timing.max_height,
            timing.max_turn,
        )
        period = timing.step_time + timing.double_support
        count = len(self.steps)
        first = timing.start_time + timing.double_support
        self.lift_offs = first + period * np.arange(count)
        self.touch_downs = self.lift_offs + timing.step_time
        self.duration = first + period * count + timing.stop_time
        self._paths = self._foot_paths()
        self._corner_times, corners = self._zmp_corners()
        self._heights = corners[:, 2]
        self._yaw_times, self._yaws = self._pelvis_yaws()
        frequency = sqrt(GRAVITY / timing.com_height)
        self.pendulum = PendulumPath.from_zmp(self._corner_times, corners[:, :2], frequency)

    @classmethod
    def from_parameters(
        cls, walk: WalkParameters | None = None, timing: Timing | None = None
    ) -> "WalkPlan":
        """Plans a walk by parameters; the defaults are the six steps of [CCGD]."""
        walk = WalkParameters() if walk is None else walk
        feet = standing(walk.half_width)
        return cls(feet, plan_footsteps(walk, feet), timing)

    def sample(self, time: ArrayLike) -> Samples:
        """The walk at times (N,) s; it stands before 0 and after its duration."""
        t = np.clip(as_array("time", time, (None,)), 0.0, self.duration)
        xy, velocity, acceleration, zmp = self.pendulum.sample(t)
        z, z_speed, z_acceleration = _interpolate(self._corner_times, self._heights, t)
        states = [self._foot(side, t) for side in range(2)]
        places = np.stack([state[0] for state in states], axis=1)
        feet = np.empty((len(t), 2, 3, 4))
        feet[..., 3] = places[..., :3]
        yaws = places[..., 3].reshape(-1, 1)
        feet[..., :3] = Rotation.from_euler("z", yaws).as_matrix().reshape(len(t), 2, 3, 3)
        yaw = _interpolate(self._yaw_times, self._yaws, t)[0]
        return Samples(
            time=t,
            com=np.column_stack((xy, z + self.timing.com_height)),
            com_velocity=np.column_stack((velocity, z_speed)),
            com_acceleration=np.column_stack((acceleration, z_acceleration)),
            zmp=np.column_stack((zmp, z)),
            feet=feet,
            foot_velocity=np.stack([state[1] for state in states], axis=1),
            foot_acceleration=np.stack([state[2] for state in states], axis=1),
            R_pelvis=Rotation.from_euler("z", yaw[:, None]).as_matrix(),
            stance=np.stack([state[3] for state in states], axis=1),
        )

    def grid(self, dt: float) -> Array:
        """Times (N,) s from 0 to the duration, at most dt apart."""
        if not (isfinite(dt) and dt > 0.0):
            raise PlanError(f"dt is {dt}: give a time above 0 s")
        return np.linspace(0.0, self.duration, int(np.ceil(self.duration / dt)) + 1)

    def _foot_paths(self) -> list[list[tuple[float, Array, Array]]]:
        """Of each foot: time of lift-off, where it is lifted, where it is set down."""
        paths: list[list[tuple[float, Array, Array]]] = [[], []]
        place = [np.append(foot.position, foot.yaw) for foot in self.start]
        for step, lift in zip(self.steps, self.lift_offs, strict=True):
            side = SIDES.index(step.side)
            yaw = place[side][3] + wrap_angle(step.yaw - place[side][3])
            goal = np.append(step.position, yaw)
            paths[side].append((float(lift), place[side], goal))
            place[side] = goal
        return paths

    def _foot(self, side: int, t: Array) -> tuple[Array, Array, Array, Array]:
        """Place (N, 4), its derivatives, and whether the foot is on the ground (N,)."""
        first = self.start[side]
        place = np.tile(np.append(first.position, first.yaw), (len(t), 1))
        speed, acceleration = np.zeros_like(place), np.zeros_like(place)
        stance = np.ones(len(t), dtype=bool)
        for lift, start, end in self._paths[side]:
            after = t >= lift
            span = self.timing.step_time
            moved = swing_path(start, end, self.timing.step_height, span, t[after] - lift)
            place[after], speed[after], acceleration[after] = moved
            stance[after] = t[after] >= lift + span
        return place, speed, acceleration, stance

    def _support(self, foot: Footstep) -> Array:
        """Where the ZMP stays on a foot, (3,) m."""
        inwards = -self.timing.zmp_y if foot.side == "left" else self.timing.zmp_y
        c, s = np.cos(foot.yaw), np.sin(foot.yaw)
        x, y = self.timing.zmp_x, inwards
        return foot.position + np.array([c * x - s * y, s * x + c * y, 0.0])

    def _zmp_corners(self) -> tuple[Array, Array]:
        """Corners of the ZMP's path: times (K,) and places (K, 3)."""
        feet = {foot.side: foot for foot in self.start}

        def middle() -> Array:
            return 0.5 * (self._support(feet["left"]) + self._support(feet["right"]))

        times, places = [0.0, self.timing.start_time], [middle(), middle()]
        for step, lift, down in zip(self.steps, self.lift_offs, self.touch_downs, strict=True):
            stance = self._support(feet[SIDES[1 - SIDES.index(step.side)]])
            times += [float(lift), float(down)]
            places += [stance, stance]
            feet[step.side] = step
        times += [self.duration - self.timing.stop_time, self.duration]
        places += [middle(), middle()]
        return np.array(times), np.array(places)

    def _pelvis_yaws(self) -> tuple[Array, Array]:
        """Corners of the pelvis' yaw: in the middle between the feet at each touch-down."""
        yaw = {foot.side: foot.yaw for foot in self.start}
        middle = yaw["left"] + 0.5 * wrap_angle(yaw["right"] - yaw["left"])
        times, yaws = [0.0], [middle]
        for step, lift, down in zip(self.steps, self.lift_offs, self.touch_downs, strict=True):
            times.append(float(lift))
            yaws.append(middle)
            yaw[step.side] = step.yaw
            goal = yaw["left"] + 0.5 * wrap_angle(yaw["right"] - yaw["left"])
            middle += wrap_angle(goal - middle)
            times.append(float(down))
            yaws.append(middle)
        return np.array([*times, self.duration]), np.array([*yaws, middle])


def _interpolate(times: Array, values: Array, t: Array) -> tuple[Array, Array, Array]:
    """Quintics from corner to corner, stationary at each; values and two derivatives."""
    k = np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 2)
    span, change = (times[k + 1] - times[k]), values[k + 1] - values[k]
    value, slope, bend = quintic((t - times[k]) / span)
    return values[k] + change * value, change * slope / span, change * bend / span**2


def quintic(s: ArrayLike) -> tuple[Array, Array, Array]:
    """Quintic from 0 to 1, 10 s^3 - 15 s^4 + 6 s^5, at rest at both ends.

    Returns:
        Its value and its first and second derivative by s; s is clipped to 0 .. 1.
    """
    x = np.clip(np.asarray(s, dtype=float), 0.0, 1.0)
    u = x * (1.0 - x)
    return x**3 * (10.0 + x * (6.0 * x - 15.0)), 30.0 * u**2, 60.0 * u * (1.0 - 2.0 * x)


def hill(s: ArrayLike) -> tuple[Array, Array, Array]:
    """Hill of height 1, 64 s^3 (1 - s)^3, at rest at both ends; as quintic."""
    x = np.clip(np.asarray(s, dtype=float), 0.0, 1.0)
    u, v = x * (1.0 - x), 1.0 - 2.0 * x
    return 64.0 * u**3, 192.0 * u**2 * v, 384.0 * u * (v * v - u)


def swing_path(
    start: ArrayLike, end: ArrayLike, height: float, duration: float, t: ArrayLike
) -> tuple[Array, Array, Array]:
    """Path of a swing foot: quintics in place and direction, and a hill above them.

    The hill grows by half of what the foot climbs or descends, to clear the edge of a step.

    Args:
        start: (4,) x, y, z (m) and yaw (rad) where it is lifted.
        height: m, of the hill.
        duration: s.
        t: (N,) s, since it was lifted.

    Returns:
        x, y, z, yaw (N, 4) and their first and second derivatives by time.
    """
    first, last = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    s = np.asarray(t, dtype=float) / duration
    height_of_hill = np.zeros(4)
    height_of_hill[2] = height + 0.5 * abs(last[2] - first[2])
    along, over = quintic(s), hill(s)
    value, speed, acceleration = (
        np.multiply.outer(a, last - first) + np.multiply.outer(b, height_of_hill)
        for a, b in zip(along, over, strict=True)
    )
    return first + value, speed / duration, acceleration / duration**2


@dataclass(frozen=True, eq=False)
class PendulumPath(FrozenArrays):
    """Path of a linear inverted pendulum over a ZMP that goes along lines, exactly.

    At constant height over its feet the CoM obeys, with w^2 = g / z_c ([CCGD] eqs 12, 13),

      x'' = w^2 (x - zmp)

    Its unstable part, the divergent component of motion xi = x + x' / w, obeys xi' = w (xi - zmp),
    the stable one x' = -w (x - xi). Over a stretch of time in which the ZMP is a line a + b t,

      xi(t) = a + b t + b / w + (xi_0 - a - b / w) e^(w t)
      x(t)  = a + b t + A e^(w t) + B e^(-w t),  A = (xi_0 - a - b / w) / 2,  B = x_0 - a - A

    so that nothing is integrated. xi is found backwards from the end, where it is the last ZMP;
    that way its errors shrink. The CoM starts at rest: x_0 = xi_0.
    """

    times: Array  # (K,) s, corners of the ZMP's path, rising
    zmp: Array  # (K, 2) m, the ZMP there
    frequency: float  # 1/s, w = sqrt(g / z_c)
    dcm: Array  # (K, 2) m, the DCM there
    com: Array  # (K, 2) m, the CoM there

    @classmethod
    def from_zmp(cls, times: ArrayLike, zmp: ArrayLike, frequency: float) -> "PendulumPath":
        """Finds the path that starts at rest and ends over the last ZMP.

        When the ZMP rests for T before it first moves, the CoM starts beside it by e^(-w T) of the
        way that lies ahead, 0.1 mm after a second and a half. So it ends, too.

        Args:
            times: (K,) s, rising; K >= 2.
            zmp: (K, 2) m.
            frequency: 1/s.

        Raises:
            PlanError: Times do not rise, or a number is not finite.
        """
        t = as_array("times", times, (None,))
        p = as_array("zmp", zmp, (len(t), 2))
        if not (len(t) >= 2 and np.isfinite(t).all() and (np.diff(t) > 0.0).all()):
            raise PlanError(f"the times of the ZMP's corners must rise, got {t}")
        if not (np.isfinite(p).all() and np.isfinite(frequency) and frequency > 0.0):
            raise PlanError("the ZMP's path or the pendulum's frequency is not a finite number")
        w, spans = float(frequency), np.diff(t)
        slopes = np.diff(p, axis=0) / spans[:, None]
        dcm, com = np.empty_like(p), np.empty_like(p)
        dcm[-1] = p[-1]
        for k in range(len(spans) - 1, -1, -1):
            rest = dcm[k + 1] - p[k + 1] - slopes[k] / w
            dcm[k] = p[k] + slopes[k] / w + rest * np.exp(-w * spans[k])
        com[0] = dcm[0]
        for k, span in enumerate(spans):
            fading = com[k] - p[k] - _growing(p[k], slopes[k], dcm[k], w)
            grown = _growing(p[k + 1], slopes[k], dcm[k + 1], w)
            com[k + 1] = p[k + 1] + grown + fading * np.exp(-w * span)
        return cls(t, p, w, dcm, com)

    def sample(self, t: ArrayLike) -> tuple[Array, Array, Array, Array]:
        """CoM, its velocity and acceleration, and the ZMP at times (N,) s; each (N, 2).

        Before the first corner and after the last one it rests.
        """
        now = np.clip(as_array("t", t, (None,)), self.times[0], self.times[-1])
        k = np.clip(np.searchsorted(self.times, now, side="right") - 1, 0, len(self.times) - 2)
        w, since = self.frequency, (now - self.times[k])[:, None]
        left = (self.times[k + 1] - now)[:, None]
        slopes = (np.diff(self.zmp, axis=0) / np.diff(self.times)[:, None])[k]
        zmp = self.zmp[k] + slopes * since
        before, after = (_growing(self.zmp[i], slopes, self.dcm[i], w) for i in (k, k + 1))
        fading = (self.com[k] - self.zmp[k] - before) * np.exp(-w * since)
        growing = after * np.exp(-w * left)  # seen from the stretch's end its error shrinks
        com = zmp + growing + fading
        velocity = slopes + w * (growing - fading)
        return com, velocity, w * w * (com - zmp), zmp


def _growing(zmp: Array, slope: Array, dcm: Array, w: float) -> Array:
    """The part of the CoM's path that grows, m: A e^(w t)."""
    return 0.5 * (dcm - zmp - slope / w)
