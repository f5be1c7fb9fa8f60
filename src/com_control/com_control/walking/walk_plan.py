"""A walk from a stance and its footsteps: the feet, the ZMP and the CoM over time.

Feet in the air move along quintics, with continuous acceleration ([CCGD] 2.3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import PlanError
from com_control.walking.biped import Biped, sole_poses
from com_control.walking.footsteps import (
    SIDES,
    Footstep,
    check_footsteps,
    sort_feet,
    wrap_angle,
)
from com_model import Sesc
from com_model.arrays import Array, FrozenArrays, Indices, as_array
from com_model.dynamics import GRAVITY
from com_model.geometry.rotations import UP, rotations_about, upright_axes
from com_model.joint_path import quintic
from com_model.parameters import check_options, parameter
from com_model.text import Facts, Shown, signed_mm


@dataclass(frozen=True, eq=False)
class Stance(FrozenArrays):
    """A robot on both feet, in the walk's frame; arrays are read-only.

    Attributes:
        feet: left and right foot.
        R_walk_root: (3, 3) orientation of the root link.
        p_walk_root: (3,) m, its origin.
        com: (3,) m, centre of mass.
    """

    feet: tuple[Footstep, Footstep]
    R_walk_root: Array
    p_walk_root: Array
    com: Array


def find_stance(biped: Biped, q: ArrayLike) -> Stance:
    """Computes the stance of a robot on both feet.

    Args:
        biped: the robot.
        q: (n,) rad or m.

    Returns:
        The stance, in the frame of a walk that starts there.

    Raises:
        PlanError: its soles are not on one plane.
    """
    poses = sole_poses(biped, q)
    normal = poses[:, :, 2].sum(axis=0)
    normal /= np.linalg.norm(normal)
    away = float(normal @ (poses[0, :, 3] - poses[1, :, 3]))
    tilt = float(np.arccos(np.clip(poses[:, :, 2].mean(axis=0) @ normal, -1.0, 1.0)))
    # m, by which one sole may be higher than the other; rad, between a sole and the plane
    if abs(away) > 0.02 or tilt > 0.05:
        raise PlanError(
            f"the soles are not on one plane: the left one is {1e3 * away:.0f} mm above the right "
            f"one and they are tilted by {tilt:.3f} rad; bring both feet flat to the ground"
        )
    R = upright_axes(poses[:, :, 0].sum(axis=0), normal)  # walk from root
    middle = poses[:, :, 3].mean(axis=0)
    feet = []
    for leg, pose in zip(biped.legs, poses, strict=True):
        (x, y, _), ahead = (R @ (pose[:, 3] - middle)).tolist(), R @ pose[:, 0]
        feet.append(
            Footstep(leg.side, x, y, 0.0, float(np.arctan2(ahead[1], ahead[0])))
        )
    com = R @ (Sesc(biped.model).com(q) - middle)
    return Stance((feet[0], feet[1]), R, -R @ middle, com)


@dataclass(frozen=True)
class Timing:
    """Times and heights of a walk; the heights are those of [CCGD], which prints no times."""

    step_time: float = parameter(
        1.2, "s, of a step with one foot in the air", (1e-3, 60.0)
    )
    double_support: float = parameter(
        0.4,
        "s, between two steps, in which the ZMP goes from foot to foot",
        (1e-3, 60.0),
    )
    step_height: float = parameter(
        0.075, "m, of the swing foot ([CCGD] h_s)", (0.0, 2.0)
    )
    com_height: float = parameter(
        0.45, "m, of the CoM over the feet ([CCGD] z_c)", (1e-2, 10.0)
    )
    start_time: float = parameter(
        1.5, "s, of standing before the first double support", (1e-3, 60.0)
    )
    stop_time: float = parameter(1.5, "s, of standing after the last one", (1e-3, 60.0))
    zmp_x: float = parameter(
        0.0,
        "m, by which the ZMP is before the middle of the sole, in the foot's axes",
        (-1.0, 1.0),
    )
    zmp_y: float = parameter(
        0.0, "m, by which it is inwards of it, towards the other foot", (-1.0, 1.0)
    )
    min_width: float = parameter(0.1, "m, see check_footsteps", (0.0, 10.0))
    pelvis_roll: float = parameter(
        0.0,
        "rad, to which the pelvis would lean with the CoM over a foot; spares hips",
        (0.0, 0.5),
    )
    pelvis_pitch: float = parameter(
        0.0,
        "rad, by which the pelvis leans forwards all the time; spares ankles",
        (-0.5, 0.5),
    )
    sway: float = parameter(
        0.0,
        "s, on the foot that swings first, before it does, and on the last, after",
        (0.0, 60.0),
    )

    def __post_init__(self) -> None:
        check_options(self, PlanError)


@dataclass(frozen=True, eq=False)
class Samples:
    """A walk at N times; world axes.

    Attributes:
        time: (N,) s.
        com: (N, 3) m.
        com_velocity: (N, 3) m/s.
        com_acceleration: (N, 3) m/s^2.
        zmp: (N, 3) m, of the pendulum.
        feet: (N, 2, 3, 4) poses [R p] of the soles, left and right.
        R_pelvis: (N, 3, 3) orientation of the pelvis: in the middle of the feet's yaws, upright
            but for timing.pelvis_roll and pelvis_pitch.
        stance: (N, 2) whether each foot is on the ground.
    """

    time: Array
    com: Array
    com_velocity: Array
    com_acceleration: Array
    zmp: Array
    feet: Array
    R_pelvis: Array
    stance: Array


class WalkPlan(Shown):
    """A walk as a function of time.

    The ZMP stays in the middle between the feet, moves to the standing foot while both are on
    the ground, stays there while the other swings, and ends in the middle. The CoM follows by
    the pendulum; its height follows the standing feet's along quintics. With timing.sway the ZMP
    is first on the foot that swings first: the CoM then sways little.

    Args:
        start: positions of both feet.
        steps: the footsteps, sides in turn; none: the robot stands.
        timing: times and heights; the defaults by default.

    Attributes:
        timing: as given.
        start: left and right foot.
        steps: as given.
        pendulum: path of ZMP, DCM and CoM.
        lift_offs: (S,) s, when each step's foot leaves the ground.
        touch_downs: (S,) s, when it is back.
        duration: s.

    Raises:
        PlanError: a footstep or a time is not possible.
    """

    def __init__(
        self,
        start: Sequence[Footstep],
        steps: Sequence[Footstep],
        timing: Timing | None = None,
    ) -> None:
        self.timing = timing = Timing() if timing is None else timing
        self.start, self.steps = sort_feet(start), tuple(steps)
        check_footsteps(self.start, self.steps, timing.min_width)
        period = timing.step_time + timing.double_support
        count = len(self.steps)
        lead = (
            timing.double_support + timing.sway if timing.sway and self.steps else 0.0
        )
        first = timing.start_time + lead + timing.double_support
        self.lift_offs = first + period * np.arange(count)
        self.touch_downs = self.lift_offs + timing.step_time
        self.duration = first + period * count + lead + timing.stop_time
        moves = np.column_stack((self.lift_offs, self.touch_downs)).ravel()
        self._moves = np.array([0.0, *moves, self.duration])
        self._sides = np.array(
            [SIDES.index(step.side) for step in self.steps], dtype=int
        )
        self._places = self._foot_places()
        self._corner_times, corners = self._zmp_corners()
        self._heights = corners[:, 2]
        frequency = sqrt(GRAVITY / timing.com_height)
        self.pendulum = PendulumPath.from_zmp(
            self._corner_times, corners[:, :2], frequency
        )

    def sample(self, time: ArrayLike) -> Samples:
        """The walk at given times; it stands before 0 and after its duration.

        Args:
            time: (N,) s.
        """
        t, timing = (
            np.clip(as_array("time", time, (None,)), 0.0, self.duration),
            self.timing,
        )
        xy, velocity, acceleration, zmp = self.pendulum.sample(t)
        z, z_speed, z_acceleration = _interpolate(self._corner_times, self._heights, t)
        places, stance = self._feet(t)
        feet = np.empty((len(t), 2, 3, 4))
        feet[..., 3] = places[..., :3]
        feet[..., :3] = rotations_about(UP, places[..., 3:])[:, :, 0]
        left, right = (foot.yaw for foot in self.start)
        turns = places[..., 3] - [left, right]
        yaw = left + 0.5 * wrap_angle(right - left) + 0.5 * turns.sum(axis=1)
        heading = rotations_about(UP, yaw[:, None])[:, 0]
        between = places[:, 0, :2] - places[:, 1, :2]  # from the right foot to the left
        off = np.sum((xy - places[..., :2].mean(axis=1)) * between, axis=1)
        roll = -2.0 * timing.pelvis_roll * off / np.sum(between**2, axis=1)
        x, y, _ = np.eye(3)
        forwards = rotations_about(y[None], np.array([timing.pelvis_pitch]))[0]
        return Samples(
            time=t,
            com=np.column_stack((xy, z + timing.com_height)),
            com_velocity=np.column_stack((velocity, z_speed)),
            com_acceleration=np.column_stack((acceleration, z_acceleration)),
            zmp=np.column_stack((zmp, z)),
            feet=feet,
            R_pelvis=heading @ forwards @ rotations_about(x[None], roll[:, None])[:, 0],
            stance=stance,
        )

    def facts(self) -> Facts:
        """Duration; the footsteps."""
        rows = [
            (step.side, f"{at:.2f}", *signed_mm((step.x, step.y, step.z)))
            for step, at in zip(self.steps, self.touch_downs, strict=True)
        ]
        return Facts(
            f"of {len(self.steps)} steps in {self.duration:.4g} s",
            ("foot", "down at, s", *(axis + ", mm" for axis in "xyz")),
            rows,
        )

    def next_step(self, t: float) -> int:
        """Index of the step that is being made, or comes next.

        Args:
            t: s.

        Returns:
            From 0; the number of steps when all are made.
        """
        return int((self.touch_downs <= t).sum())

    def grid(self, dt: float) -> Array:
        """Equidistant times from 0 to the duration.

        Args:
            dt: s, largest distance.

        Returns:
            (N,) s.

        Raises:
            PlanError: dt is not above 0.
        """
        if not (isfinite(dt) and dt > 0.0):
            raise PlanError(f"dt is {dt}: give a time above 0 s")
        return np.linspace(0.0, self.duration, int(np.ceil(self.duration / dt)) + 1)

    def _foot_places(self) -> Array:
        """Positions (K, 2, 4) of both feet at each lift-off and touch-down: x, y, z, yaw."""
        places = [np.array([np.append(foot.position, foot.yaw) for foot in self.start])]
        for side, step in zip(self._sides, self.steps, strict=True):
            place = places[-1].copy()
            turn = wrap_angle(step.yaw - place[side, 3])
            place[side] = step.x, step.y, step.z, place[side, 3] + turn
            places.append(place)
        return np.repeat(places, 2, axis=0)

    def _feet(self, t: Array) -> tuple[Array, Array]:
        """Positions (N, 2, 4) of the feet, and whether they are on the ground (N, 2).

        Swing feet move along quintics in position and direction, plus a hill (4 s (1 - s))^3
        that is higher by half of what they climb or descend, to clear the edge of a step.
        """
        k, s = _stretches(self._moves, t)
        ways = self._places[k + 1] - self._places[k]
        places = self._places[k] + quintic(s)[0][:, None, None] * ways
        stance = np.ones((len(t), 2), dtype=bool)
        swings = np.append(-1, self._sides)[(k + 1) // 2]
        for side in range(2):
            air = (k % 2 == 1) & (swings == side)
            hill = self.timing.step_height + 0.5 * np.abs(ways[air, side, 2])
            places[air, side, 2] += hill * (4.0 * s[air] * (1.0 - s[air])) ** 3
            stance[air, side] = False
        return places, stance

    def _zmp_corners(self) -> tuple[Array, Array]:
        """Corners of the ZMP's path: times (K,) and places (K, 3)."""
        timing, (x, y, z, yaw) = self.timing, np.moveaxis(self._places[::2], -1, 0)
        ahead, aside, c, s = (
            timing.zmp_x,
            [-timing.zmp_y, timing.zmp_y],
            np.cos(yaw),
            np.sin(yaw),
        )
        on_feet = np.stack(
            (x + c * ahead - s * aside, y + s * ahead + c * aside, z), axis=-1
        )
        stances = on_feet[np.arange(len(self.steps)), 1 - self._sides]
        start, end = on_feet[[0, -1]].mean(axis=1)
        stays = [
            0.0,
            timing.start_time,
            self.duration - timing.stop_time,
            self.duration,
        ]
        times = [*stays[:2], *self._moves[1:-1], *stays[2:]]
        corners = [start, start, *np.repeat(stances, 2, axis=0), end, end]
        if timing.sway and self.steps:
            span, swings = (timing.double_support, timing.sway), self._sides[[0, -1]]
            first, last = on_feet[[0, -1], swings]
            times[2:2] = np.cumsum((times[1], *span))[1:].tolist()
            times[-2:-2] = np.cumsum((self._moves[-2], *span))[1:].tolist()
            corners = [start, start, first, first, *corners[2:-2], last, last, end, end]
        return np.array(times), np.array(corners)


def _stretches(times: Array, t: Array) -> tuple[Indices, Array]:
    """Index k (N,) of the segment k to k + 1 that each time is in, and its progress 0 to 1."""
    k = np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 2)
    return k, (t - times[k]) / (times[k + 1] - times[k])


def _interpolate(times: Array, values: Array, t: Array) -> tuple[Array, Array, Array]:
    """Quintics from corner to corner, stationary at each; values and two derivatives."""
    k, s = _stretches(times, t)
    span, change = (times[k + 1] - times[k]), values[k + 1] - values[k]
    value, slope, bend = quintic(s)
    return values[k] + change * value, change * slope / span, change * bend / span**2


@dataclass(frozen=True, eq=False)
class PendulumPath(FrozenArrays):
    """Exact path of a linear inverted pendulum over a ZMP that moves along lines.

    At constant height over its feet the CoM obeys, with w^2 = g / z_c ([CCGD] eqs 12, 13),

      x'' = w^2 (x - zmp)

    Its unstable part, the divergent component of motion xi = x + x' / w, obeys xi' = w (xi -
    zmp), the stable one x' = -w (x - xi). Over a stretch of time in which the ZMP is a line a +
    b t,

      xi(t) = a + b t + b / w + (xi_0 - a - b / w) e^(w t)
      x(t)  = a + b t + A e^(w t) + B e^(-w t),  A = (xi_0 - a - b / w) / 2,  B = x_0 - a - A

    so that nothing is integrated. xi is computed backwards from the end, where it is the last
    ZMP; that way its errors shrink. The CoM starts at rest: x_0 = xi_0.

    Attributes:
        times: (K,) s, corners of the ZMP's path, rising.
        zmp: (K, 2) m, the ZMP there.
        frequency: 1/s, w = sqrt(g / z_c).
        dcm: (K, 2) m, the DCM there.
        com: (K, 2) m, the CoM there.
    """

    times: Array
    zmp: Array
    frequency: float
    dcm: Array
    com: Array

    @classmethod
    def from_zmp(
        cls, times: ArrayLike, zmp: ArrayLike, frequency: float
    ) -> "PendulumPath":
        """Computes the path that starts at rest and ends over the last ZMP.

        When the ZMP rests for T before it first moves, the CoM starts beside it by e^(-w T) of
        the distance to come, 0.1 mm after a second and a half. The same holds at the end.

        Args:
            times: (k,) s, of the ZMP's corners, rising.
            zmp: (k, 2) m, the corners.
            frequency: w, rad/s, of the pendulum.

        Returns:
            The path.

        Raises:
            PlanError: times do not rise, or a number is not finite.
        """
        t = as_array("times", times, (None,))
        p = as_array("zmp", zmp, (len(t), 2))
        if not (len(t) >= 2 and np.isfinite(t).all() and (np.diff(t) > 0.0).all()):
            raise PlanError(f"the times of the ZMP's corners must rise, got {t}")
        if not (np.isfinite(p).all() and np.isfinite(frequency) and frequency > 0.0):
            raise PlanError(
                "the ZMP's path or the pendulum's frequency is not a finite number"
            )
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
        """The path at given times; before the first corner and after the last one it rests.

        Args:
            t: (N,) s.

        Returns:
            CoM m, its velocity m/s and acceleration m/s^2, and the ZMP m; each (N, 2).
        """
        now = np.clip(as_array("t", t, (None,)), self.times[0], self.times[-1])
        k, _ = _stretches(self.times, now)
        w, since = self.frequency, (now - self.times[k])[:, None]
        left = (self.times[k + 1] - now)[:, None]
        slopes = (np.diff(self.zmp, axis=0) / np.diff(self.times)[:, None])[k]
        zmp = self.zmp[k] + slopes * since
        before, after = (
            _growing(self.zmp[i], slopes, self.dcm[i], w) for i in (k, k + 1)
        )
        fading = (self.com[k] - self.zmp[k] - before) * np.exp(-w * since)
        growing = after * np.exp(
            -w * left
        )  # seen from the stretch's end its error shrinks
        com = zmp + growing + fading
        velocity = slopes + w * (growing - fading)
        return com, velocity, w * w * (com - zmp), zmp


def _growing(zmp: Array, slope: Array, dcm: Array, w: float) -> Array:
    """The part of the CoM's path that grows, m: A e^(w t)."""
    return 0.5 * (dcm - zmp - slope / w)


@dataclass(frozen=True, eq=False)
class WalkInstant:
    """A planned walk at a time, in the walk's frame.

    Attributes:
        com: (3,) m, planned CoM.
        zmp: (3,) m, planned ZMP.
        soles: (2, 3, 4) poses of the soles.
        stance: (2,) which feet stand.
        step: number of the step that is being made, or that comes next; -1: none.
        swing: side of the foot in the air; "": none.
    """

    com: Array
    zmp: Array
    soles: Array
    stance: Array
    step: int
    swing: str
