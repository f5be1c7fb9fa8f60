"""A trot: joint targets of a quadruped over time, from the trunk's attitude and centre of mass.

Legs in diagonal pairs swing in turn. In the trunk's frame (root link's axes, origin in the mean
of the four hips) a foot on the ground stands at

    p_i = home_i + shift + placement_i,   z = -height

and reaches that position, from where it touched down, within a fraction of the half period; a
swing foot moves to the same position on a smooth path whose height over the ground is kept when
the trunk tilts.

`shift` puts the crossing of the diagonals below the robot's centre of mass, also on a slope,
whose tilt against gravity is the trunk's mean one; `placement` puts a foot that lands below the
capture point, where a trunk that tilts against the ground comes to rest:

    placement = height ((pitch, -roll) + t_c (w_y, -w_x))

A foot keeps the placement with which it landed until it is lifted again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import GaitError
from com_control.trot.attitude import (
    AttitudeFilter,
    limit_tilt,
    smooth_step,
    swing_height,
    swing_profile,
)
from com_control.trot.leg_kinematics import LegKinematics
from com_control.trot.parameters import GaitParameters
from com_model import RobotConfig, RobotModel, Sesc
from com_model.arrays import Array, Flags, FrozenArrays
from com_model.joint_path import critically_damped
from com_model.legs import DIAGONALS, Leg, quadruped_legs


def shift_law(
    model: RobotModel,
    legs: Sequence[Leg],
    kinematics: Sequence[LegKinematics],
    home: Array,
) -> tuple[Array, Array]:
    """Shift s = G c + k of the feet that puts their mean below the robot's CoM.

    With the trunk's CoM c, its mass m and the legs' m_l, whose CoM is c_l + K s:

        s = (m c + m_l (c_l + K s)) / (m + m_l)

    All from the mean of the hips, x and y.

    Args:
        model: the robot.
        legs: its four legs.
        kinematics: of the legs.
        home: (4, 3) m, balls of the unshifted feet in the root's frame.

    Returns:
        G (2, 2) and k (2,) m.
    """
    center = np.mean([leg.hip for leg in legs], axis=0)[:2]
    trunk, robot = float(model.bodies.mass[0]), Sesc(model)

    def moment_of_legs(shift: Array) -> Array:
        q = np.zeros(model.n_joints)
        for leg, solver, foot in zip(legs, kinematics, home, strict=True):
            q[leg.joints] = solver.solve(foot + np.append(shift, 0.0)).q
        moment = model.mass * robot.com(q) - model.bodies.first_moment[0]
        return np.asarray(moment[:2] - (model.mass - trunk) * center)

    still = moment_of_legs(np.zeros(2))
    K = np.column_stack([(moment_of_legs(0.01 * e) - still) / 0.01 for e in np.eye(2)])
    inverse = np.linalg.inv(model.mass * np.eye(2) - K)
    return np.asarray(trunk * inverse), np.asarray(inverse @ still)


STRIDE = 0.3  # of the height, by which a foot may be before or behind the middle of its stance


class TrotFeedback(NamedTuple):
    """Measurements of the trunk; None: unknown.

    Attributes:
        R_world_root: (3, 3), attitude; None or not finite: the last one is used.
        com_offset: (2,) or (3,) m, its CoM from the mean of the hips, root axes; None or not
            finite: the shift of the feet keeps its target.
        angular_velocity: (3,) rad/s, root axes.
    """

    R_world_root: ArrayLike | None = None
    com_offset: ArrayLike | None = None
    angular_velocity: ArrayLike | None = None

    def ahead(self, time: float) -> "TrotFeedback":
        """The feedback with the attitude a time later.

        Args:
            time: s.
        """
        if self.R_world_root is None or self.angular_velocity is None:
            return self
        R = np.asarray(self.R_world_root, dtype=float)
        turn = np.asarray(self.angular_velocity, dtype=float) * time
        return self._replace(R_world_root=R + np.cross(R, turn))


NO_FEEDBACK = TrotFeedback()


@dataclass(frozen=True, eq=False)
class GaitTarget(FrozenArrays):
    """Joint targets at a time; legs in the order of com_model.legs.

    Attributes:
        position: (n,) rad, always finite; joints of no leg stay at the nominal posture.
        velocity: (n,) rad/s.
        stance: (4,) legs in stance.
        phase: 0 to 1 from the first lift-off on; NaN while standing.
        clearance: (4,) m, planned height of the feet over the ground.
        com_shift: (2,) m, shift of the feet for the centre of mass.
        saturated: the shift or the placement is at its bound.
        problems: what could not be done, one sentence each.
    """

    position: Array
    velocity: Array
    stance: Flags
    phase: float
    clearance: Array
    com_shift: Array
    saturated: bool
    problems: tuple[str, ...]


class TrotGait:
    """Generator of the trot; call step() with ascending times.

    Legs without abduction step forwards and backwards only.

    Args:
        model: the robot.
        config: its configuration, with four feet that have side and end.
        parameters: of the gait; the defaults by default.
        feedback: an estimate of the CoM will be given to step().

    Attributes:
        model: as given.
        legs: the four legs.
        kinematics: of the legs.
        parameters: without values of 0.
        center: (3,) m, mean of the hips, root frame.
        hip_distance: m, between diagonal hips.
        home: (4, 3) m, balls of the unshifted feet, from `center`.
        posture: (n,) rad, standing posture of the gait.

    Raises:
        ConfigError: the robot is no quadruped with legs of two or three joints.
        GeometryError: a leg's joint is not revolute.
        GaitError: it cannot stand at the required height.
    """

    def __init__(
        self,
        model: RobotModel,
        config: RobotConfig,
        parameters: GaitParameters | None = None,
        feedback: bool = False,
    ) -> None:
        self.model, self.legs = model, quadruped_legs(model, config, fewest=2)
        self.posture = config.nominal_posture(model)
        self.kinematics = [
            LegKinematics(model, x, self.posture[x.joints]) for x in self.legs
        ]
        # (2,) 1 where feet may be shifted and placed: forwards; to the side by abduction
        self._free = (
            1.0 - np.any([k.normal != 0.0 for k in self.kinematics]) * np.eye(2)[1]
        )
        hips = np.array([leg.hip for leg in self.legs])
        self.center = hips.mean(axis=0)
        self.hip_distance = float(np.linalg.norm(hips[0] - hips[3]))
        feet = np.array([k.position(k.nominal) for k in self.kinematics]) - self.center
        radii = np.array([leg.radius for leg in self.legs])
        self._radii = radii
        given = parameters or GaitParameters()
        self.parameters = p = given.derived(
            float(np.mean(radii - feet[:, 2])), config.trot, feedback
        )
        self.home = feet.copy()
        self.home[:, :2] -= feet[:, :2].mean(axis=0)
        self.home[:, 2] = radii - p.height
        home = self.home + self.center
        self._shift_law = shift_law(model, self.legs, self.kinematics, home)
        self._period = 1.0 / p.frequency
        self._swing_time = (1.0 - p.duty_factor) * self._period
        self._attitude = AttitudeFilter(
            p.attitude_filter, p.attitude_filter_alone, p.slope_time
        )
        self.set_velocity([p.velocity_x, p.velocity_y, p.yaw_rate])
        self.reset()
        problems = self._solve(np.zeros((4, 3)))
        self.posture = self._q.copy()
        if problems:
            raise GaitError(
                f"the robot cannot stand {p.height:.3f} m high: {'; '.join(problems)}"
            )

    def reset(self) -> None:
        """Forgets everything: the next step may be at any time."""
        self._time = -np.inf
        self._lift_off_at = np.inf  # time of the first one, once it has come
        self._waited = False
        self._attitude.reset()
        self._feet = self.home.copy()  # targets, from the centre
        self._last_dt, self._last_slope = np.inf, np.zeros((4, 3))
        self._lift_off = self.home.copy()
        self._landing = np.zeros(
            (4, 3)
        )  # where a foot touched down, relative to where it should stand
        self._swinging = np.zeros(4, dtype=bool)
        self._shift, self._wanted, self._shift_speed = (
            np.zeros(2),
            np.zeros(2),
            np.zeros(2),
        )
        self._placed = 0.0  # of the placement
        self._velocity, self._acceleration = np.zeros(3), np.zeros(3)
        self._rate = np.zeros(2)  # rad/s, low-passed, of pitch and -roll
        self._places = np.zeros((4, 2))  # of each foot, beside the shift
        self._q = self.posture.copy()
        self._qd = np.zeros(len(self._q))

    def set_velocity(self, velocity: ArrayLike) -> None:
        """Sets the velocity of the trot, which is reached within ramp_time.

        Args:
            velocity: (3,) m/s forwards, m/s and rad/s to the left; reduced to what the legs can
                reach.

        Raises:
            GaitError: it is not finite.
        """
        wanted = np.asarray(velocity, dtype=float)
        if wanted.shape != (3,) or not np.isfinite(wanted).all():
            raise GaitError(
                f"velocity is {velocity!r}: give m/s, m/s and rad/s, three numbers"
            )
        way = 0.5 * (self._period - self._swing_time) * self._foot_velocities(wanted)
        stride, most = (
            float(np.linalg.norm(way, axis=1).max()),
            STRIDE * self.parameters.height,
        )
        self._wanted_velocity = wanted * (most / max(stride, most))

    def step(self, time: float, feedback: TrotFeedback = NO_FEEDBACK) -> GaitTarget:
        """Advances to a time; up to start_delay the robot stands.

        Args:
            time: s, ascending.
            feedback: attitude and CoM.

        Returns:
            The joint targets.

        Raises:
            GaitError: the time is before that of the last step.
        """
        R_world_root, com_offset, angular_velocity = feedback
        if not time >= self._time:
            raise GaitError(
                f"the gait is at {self._time:g} s: {time:g} s is over, or reset it"
            )
        # after a longer gap filters continue as if it had been 0.05 s
        dt = min(time - self._time, 0.05) if np.isfinite(self._time) else 0.0
        self._time = time
        standing = not np.isfinite(self._lift_off_at)
        self._attitude.update(dt, R_world_root, angular_velocity, parallel=standing)
        saturated = self._move_shift(dt, com_offset)
        if standing and self._may_start(time, com_offset is not None):
            self._lift_off_at = time if self._waited else self.parameters.start_delay
        place, bounded = self._placement(dt, com_offset is not None, angular_velocity)
        before = self._feet
        self._feet, stance, clearance = self._plan(time, dt, place)
        problems = self._solve(self._speed(dt, self._feet - before))
        elapsed = time - self._lift_off_at
        phase = elapsed / self._period % 1.0 if elapsed >= 0.0 else float("nan")
        return GaitTarget(
            self._q,
            self._qd,
            stance,
            phase,
            clearance,
            self._shift,
            saturated or bounded,
            tuple(problems),
        )

    # --- feedback ----------------------------------------------------------------------------
    def _move_shift(self, dt: float, com_offset: ArrayLike | None) -> bool:
        """Moves the feet's shift towards its target, within rate and bound; True: at the bound."""
        p = self.parameters
        saturated = False
        if com_offset is not None:
            offset = np.asarray(com_offset, dtype=float)[:2]
            if np.isfinite(offset).all():
                G, k = self._shift_law
                downhill = -p.height * self._attitude.slope
                wanted = self._free * (G @ offset + k + downhill)
                self._wanted, saturated = _bounded(wanted, p.max_com_shift)
        rate = 1.0 / p.com_shift_time
        # A jerk would throw the trunk.
        shift, speed = critically_damped(
            self._shift, self._shift_speed, self._wanted, rate, dt
        )
        self._shift_speed, _ = _bounded(speed, p.com_shift_rate)
        self._shift = (
            self._shift + _bounded(shift - self._shift, p.com_shift_rate * dt)[0]
        )
        return saturated

    def _placement(
        self, dt: float, feedback: bool, angular_velocity: ArrayLike | None
    ) -> tuple[Array, bool]:
        """Placement (2,), m, of a foot that lands now; and True when it is at its bound.

        0 where half a period is longer than the capture time: it would come too late.
        """
        p = self.parameters
        step = dt / p.ramp_time if p.ramp_time else 1.0
        self._placed = min(max(self._placed + (step if feedback else -step), 0.0), 1.0)
        omega = (
            np.zeros(3) if angular_velocity is None else np.asarray(angular_velocity)
        )
        if np.isfinite(omega).all():
            turn = np.array([omega[1], -omega[0]])
            # low-pass of 20 ms
            self._rate += (1.0 - np.exp(-dt / 0.02)) * (turn - self._rate)
        if 0.5 * self._period > p.capture_time:
            return np.zeros(2), False
        # swing feet and placement make up for 0.5 rad at most
        up = limit_tilt(self._attitude.normal(1.0), 0.5)
        tilt = -up[:2] / up[2]  # (pitch, -roll) at small angles, from the ground
        place = self._free * p.height * (tilt + p.capture_time * self._rate)
        place, bounded = _bounded(place, p.max_placement)
        return smooth_step(self._placed) * place, bounded and self._placed > 0.0

    # --- feet --------------------------------------------------------------------------------
    def _may_start(self, time: float, feedback: bool) -> bool:
        """Whether the first feet may be lifted: the feet are shifted, or max_wait is over."""
        p = self.parameters
        if time < p.start_delay:
            return False
        away = float(np.linalg.norm(self._shift - self._wanted))
        # nearer to its aim than a thousandth of the height the shift has arrived
        waits = (
            feedback and away > 0.001 * p.height and time < p.start_delay + p.max_wait
        )
        self._waited |= waits
        return not waits

    def _plan(self, time: float, dt: float, place: Array) -> tuple[Array, Flags, Array]:
        """Targets of the feet (4, 3) from the centre, stance (4,) and clearance (4,).

        Feet in swing move to the placement (2,) m.
        """
        p = self.parameters
        inside, moving = self._step_times(time)
        swing = inside < self._swing_time
        velocity = self._velocities(time, dt)
        stand_time = self._period - self._swing_time
        feet = np.empty((4, 3))
        for i in range(4):
            middle = self.home[i].copy()
            # a foothold may change for nine tenths of its swing
            if swing[i] and inside[i] < 0.9 * self._swing_time:
                self._places[i] = place
            middle[:2] += self._shift + self._places[i]
            if swing[i] and not self._swinging[i]:
                self._lift_off[i] = self._feet[i] - velocity[i] * (dt - inside[i])
            if swing[i]:
                down = middle + 0.5 * stand_time * velocity[i]
                s = inside[i] / self._swing_time
                start, way = self._lift_off[i], -velocity[i]
                end = down - way * self._swing_time
                feet[i] = start + smooth_step(s) * (end - start) + way * inside[i]
                continue
            after = inside[i] - self._swing_time
            ahead = (
                0.5 * stand_time - after
                if moving[i]
                else min(self._lift_off_at - time, 0.0)
            )
            stand = middle + ahead * velocity[i]
            if self._swinging[i]:
                self._landing[i] = self._feet[i] - stand - velocity[i] * dt
            blend = (
                smooth_step(after / (p.blend * 0.5 * self._period))
                if moving[i]
                else 1.0
            )
            feet[i] = stand + (1.0 - blend) * self._landing[i]
        self._swinging = swing
        clearance = p.step_height * swing_profile(inside / self._swing_time)
        self._raise(feet, swing, clearance)
        return feet, ~swing, clearance

    def _step_times(self, time: float) -> tuple[Array, Flags]:
        """Time (4,) s since the last lift-off of each leg, and which have been lifted before.

        Counted in half periods: however times are rounded, one diagonal swings and one stands.
        """
        since, half = time - self._lift_off_at, 0.5 * self._period
        inside, moving = np.full(4, self._period), np.zeros(4, dtype=bool)
        if since >= 0.0:
            steps, passed = divmod(since, half)
            first = np.isin(np.arange(4), DIAGONALS[self.parameters.first])
            moving = first | (steps >= 1.0)
            inside[moving] = (passed + half * (first ^ (steps % 2.0 == 0.0)))[moving]
        return inside, moving

    def support_time(self) -> float:
        """Time, s, from the last step on, at which all feet are on the ground."""
        since = self._time - self._lift_off_at
        if since < 0.0:
            return self._time
        return self._time + max(self._swing_time - since % (0.5 * self._period), 0.0)

    def _velocities(self, time: float, dt: float) -> Array:
        """Velocity (4, 3), m/s, of the trunk over the ground at each foot, changed gradually."""
        p = self.parameters
        if time >= self._lift_off_at:
            # the velocity is then 4 % from its aim
            rate = 5.0 / max(p.ramp_time, 1e-6)
            self._velocity, self._acceleration = critically_damped(
                self._velocity, self._acceleration, self._wanted_velocity, rate, dt
            )
        return self._foot_velocities(self._velocity)

    def _foot_velocities(self, velocity: Array) -> Array:
        """Velocities (4, 3) m/s at the feet for a velocity (3,) of the trunk."""
        x, y, turn = velocity
        forwards, left = x - turn * self.home[:, 1], y + turn * self.home[:, 0]
        return np.column_stack((forwards, left, np.zeros(4)))

    def _raise(self, feet: Array, swing: Flags, clearance: Array) -> None:
        """Sets z of the swing feet for their height over the ground."""
        if not swing.any():
            return
        up = np.array([0.0, 0.0, 1.0])
        p = self.parameters
        fraction = 1.0 if p.swing_compensation else smooth_step(self._placed)
        if fraction > 0.0:
            normal = self._attitude.normal(smooth_step(self._placed))
            up = limit_tilt(normal, fraction * p.max_compensation)
        ground = float(np.mean(feet[~swing] @ up - self._radii[~swing]))
        for i in np.flatnonzero(swing):
            target = ground + self._radii[i]
            feet[i, 2] = swing_height(up, feet[i, 0], feet[i, 1], target, clearance[i])

    def _speed(self, dt: float, moved: Array) -> Array:
        """Velocities (4, 3), m/s, at the end of a step: of the parabola through the last three."""
        if dt <= 0.0:
            return self._last_slope
        slope = moved / dt
        speed = slope + (slope - self._last_slope) * (dt / (dt + self._last_dt))
        self._last_dt, self._last_slope = dt, slope
        return np.asarray(speed)

    # --- joints ------------------------------------------------------------------------------
    def _solve(self, speed: Array) -> list[str]:
        """Solves the joint targets of the feet; out of reach, those of the nearest point.

        A leg that would leave its joints' limits keeps its last targets.

        Returns:
            Problems in words.
        """
        problems = []
        q, qd = self._q.copy(), np.zeros(len(self._q))
        for kinematics, leg, foot, v in zip(
            self.kinematics, self.legs, self._feet + self.center, speed, strict=True
        ):
            last = self._q[leg.joints]
            solution = kinematics.solve(foot, last)
            if solution.reason:
                problems.append(solution.reason)
            if not solution.within_limits:
                continue
            q[leg.joints] = solution.q
            if not solution.reached:
                continue
            speeds = kinematics.velocity(solution.q, v)
            if np.isfinite(speeds).all():
                qd[leg.joints] = speeds
        self._q, self._qd = q, qd
        return problems


def _bounded(vector: Array, most: float) -> tuple[Array, bool]:
    """Shortens a vector to a length; True when it was longer."""
    length = float(np.linalg.norm(vector))
    return (vector, False) if length <= most else (vector * (most / length), True)
