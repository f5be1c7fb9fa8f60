"""Joint commands that move the CoM to a desired position while the soles stay in place.

The CoM's velocity over the ground is J qd with the Jacobian of the SESC and the root moving as
the planted soles require (docs/derivations.md, "Balancing"). The commanded positions q* are
integrated,

  q* += qd dt,  J qd = v_reference + k (reference - com(q, gravity)) - (rotation of the ground) x
  com

with the CoM of the *measured* joints and gravity, so that sagging drives cause no permanent
error.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_control.balance import kernels
from com_control.balance.options import BalanceOptions
from com_control.balance.resonance import Resonance, ShapedReference, standing_resonance
from com_control.balance.soles import (
    BalanceFrame,
    GroundCheck,
    GroundRotation,
    Soles,
    balance_frame,
    bounded,
    check_plane,
    ground_motion,
    hold_inside,
    relative_poses,
    way_between,
)
from com_control.exceptions import BalanceError
from com_model import Foot, RobotModel, Sesc
from com_model.arrays import Array, FrozenArrays
from com_model.dynamics.link_frames import LinkMotions
from com_model.geometry.rotations import minimal_rotation, rotation_vector, skew
from com_model.robot_config import Servo
from com_model.text import listing

LEAD = 0.02  # m, by which the reference may be ahead of a CoM that cannot follow


class ComReference:
    """Moves a reference CoM to a target with bounded speed and acceleration.

    Args:
        options: com_speed and com_acceleration are its bounds.

    Attributes:
        options: as given; may be replaced.
        position: (3,) m, reference of the CoM; its height is NaN while it is not controlled.
        velocity: (3,) m/s.
    """

    def __init__(self, options: BalanceOptions) -> None:
        self.options = options
        self.reset(np.zeros(3))

    def reset(self, com: Array) -> None:
        """Starts at a CoM, at rest.

        Args:
            com: (3,) m.
        """
        self.position = com.copy()
        self.velocity = np.zeros(3)

    def move(self, target: Array, velocity: Array, com: Array, dt: float) -> None:
        """Advances the reference by dt towards a target.

        Args:
            target: (3,) m; a height of NaN is not controlled, and then NaN in `position`.
            velocity: (3,) m/s, of the target.
            com: (3,) m, the actual CoM: the reference stays within LEAD of it, and the height
                starts there when it is controlled again.
            dt: s.
        """
        if np.isnan(target[2]):
            self.position[2], self.velocity[2] = np.nan, 0.0
        elif np.isnan(self.position[2]):
            self.position[2], self.velocity[2] = com[2], 0.0
        used = slice(0, 2 if np.isnan(target[2]) else 3)
        way = target[used] - self.position[used]
        options, length = self.options, float(np.linalg.norm(way))
        # without overshoot: at v = sqrt(2 a s / 2), near the target at 10 1/s
        pace = min(10.0, float(np.sqrt(options.com_acceleration / max(length, 1e-12))))
        change = (
            bounded(velocity[used] + pace * way, options.com_speed)
            - self.velocity[used]
        )
        self.velocity[used] += bounded(change, options.com_acceleration * dt)
        self.position[used] += self.velocity[used] * dt
        for part in (
            slice(0, 2),
            slice(2, 3),
        ):  # within LEAD, along the ground and in height
            self.position[part] = com[part] + bounded(
                self.position[part] - com[part], LEAD
            )


STILL = np.zeros(3)
_GAIN = 4.0  # 1/s, of the CoM at most, and where nothing is known of the drives


@dataclass(frozen=True, eq=False)
class BalanceStep(FrozenArrays):
    """Result of one control step; arrays are read-only, points in the balance frame.

    Attributes:
        position: (n,) rad or m, commands.
        velocity: (n,) rad/s or m/s.
        desired: (3,) m, desired CoM as given; its height is NaN if it is not controlled.
        reference: (3,) m, that the CoM follows: shaped by the resonance.
        com: (3,) m, from the measured joints and gravity.
        held: the desired CoM is outside the margin.
        margin: m, of the CoM inside the support polygon seen from above.
        frame: the balance frame.
        limits: names of joints that are at a limit, or do not follow, while the CoM is away from
            the reference.
        problems: what keeps the CoM away or is dangerous, in words.
    """

    position: Array
    velocity: Array
    desired: Array
    reference: Array
    com: Array
    held: bool
    margin: float
    frame: BalanceFrame
    limits: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def error(self) -> float:
        """Horizontal distance of the CoM from the reference, m."""
        return float(np.linalg.norm((self.com - self.reference)[:2]))


class Balancer:
    """Controls the CoM of a robot that stands on flat soles.

    Args:
        model: the robot.
        feet: that stand, each with three corners or more.
        upright: (3,) unit vector of the root link's frame that should point against gravity.
        options: gains and bounds.
        servo: gains of the drives, for the resonance; None: unknown.

    Attributes:
        model: as given.
        options: as given; see set_options.
        soles: the soles of the feet.
        names: frames of the feet.
        reference: of the CoM.
        resonance: of the standing robot; None before start(), and where the gains are unknown.
        com_gain: 1/s, in use.

    Raises:
        BalanceError: no feet, or one without a flat sole.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        upright: Array,
        options: BalanceOptions | None = None,
        servo: Servo | None = None,
    ) -> None:
        self.model, self.options, self._servo = (
            model,
            options or BalanceOptions(),
            servo,
        )
        bare = [foot.frame for foot in feet if len(foot.corners) < 3]
        if bare:
            raise BalanceError(
                f"feet without a flat sole: {listing(bare)}; give three corners or more of each in "
                "the configuration, feet.<frame>.corners"
            )
        self.soles = Soles(model, feet)
        self.names = tuple(foot.frame for foot in feet)
        self._sesc, self._upright = Sesc(model), upright
        self._legs = np.zeros(model.n_joints, dtype=bool)
        self._legs[self.soles.joints] = True
        self.reference, self._shaped = ComReference(self.options), ShapedReference()
        self.resonance: Resonance | None = None
        self._of_drives: Resonance | None = None
        self.set_options(self.options)

    def set_options(self, options: BalanceOptions) -> None:
        """Uses other gains and bounds from the next step on.

        Args:
            options: the new ones.
        """
        model = self.model
        self.options, self.reference.options = options, options
        most = np.minimum(
            options.speed_fraction * model.velocity_limits, options.joint_speed
        )
        self._speed = np.minimum(most, 1e3)
        self._stiffness = (
            # m, of the legs' joints, which also damps near singular postures, and of the others
            np.where(self._legs, 0.001, 0.005) ** 2
        )
        self._lower = np.minimum(model.lower + options.joint_margin, model.neutral)
        self._upper = np.maximum(model.upper - options.joint_margin, model.neutral)
        self.resonance = self._of_drives
        if options.resonance > 0.0:
            given = options.resonance, options.resonance_damping
            self.resonance = Resonance(*(np.full(2, value) for value in given))
        chosen = _GAIN if self.resonance is None else min(_GAIN, self.resonance.gain)
        self.com_gain = options.com_gain or chosen  # 1/s

    def start(self, q: Array, up: Array, commanded: Array | None = None) -> None:
        """Starts at the present posture; the reference is the present CoM.

        Args:
            q: (n,) measured joint positions, rad or m.
            up: (3,) unit vector against gravity, root axes.
            commanded: (n,) last commands of the drives, rad or m; None: q.

        Raises:
            BalanceError: the soles are not on one plane, or gravity does not point into it.
        """
        poses = self.soles.poses(q)
        check_plane(poses, self.names)
        frame = self.resume(q, up)
        self._check = GroundCheck(frame.normal)
        self.position = np.array(q if commanded is None else commanded, dtype=float)
        self.velocity = np.zeros(self.model.n_joints)
        self.posture = np.array(q, dtype=float)
        self._between = relative_poses(poses)
        R = frame.R_balance_root  # the present orientation, made upright
        self._trunk = minimal_rotation(R @ self._upright, np.array([0.0, 0.0, 1.0])) @ R
        self._of_drives = self._find_resonance(q, poses, frame)
        self.set_options(self.options)

    def resume(self, q: Array, up: Array) -> BalanceFrame:
        """Continues after a pause; the reference is the present CoM.

        Args:
            q: (n,) joint positions, rad or m.
            up: (3,) unit vector against gravity, root axes.

        Returns:
            The balance frame at this posture.

        Raises:
            BalanceError: see balance_frame.
        """
        poses = self.soles.poses(q)
        frame = balance_frame(poses, self.soles.points(poses), up)
        self._ground = GroundRotation(frame.normal)
        place = frame.transform(self._sesc.com(q))
        self.reference.reset(place)
        self._shaped.reset(place[:2])
        return frame

    def step(
        self, dt: float, q: Array, up: Array, desired: Array, velocity: Array = STILL
    ) -> BalanceStep:
        """Computes the commands of one control step.

        Args:
            dt: s since the last step.
            q: (n,) measured joint positions, rad or m, finite.
            up: (3,) unit vector against gravity, root axes, finite.
            desired: (3,) m, CoM in the balance frame; a height of NaN is not controlled.
            velocity: (3,) m/s, of the desired CoM.

        Returns:
            The commands, and the state of the control.

        Raises:
            BalanceError: gravity does not point into the ground, or turns faster than ground.
        """
        poses = self.soles.poses(q)
        com, J = self._sesc.com_and_jacobian(q)
        weights = self.soles.weights(poses, com, up)
        frame = balance_frame(poses, self.soles.points(poses), up, weights)
        o = self.options
        # rad, beyond ground_speed, of the soles' normal against gravity; s, for which the normal
        # must be back until it is believed again
        tolerances = o.ground_speed, 0.015, 0.5
        if not self._check.agrees(frame.normal, dt, *tolerances):
            raise BalanceError(
                f"the soles turn against gravity by more than {o.ground_speed:g} rad/s, the "
                "ground's fastest (control.ground_speed): the robot rocks on its soles, or imu is "
                "wrong"
            )
        place = frame.transform(com)
        self._ground.update(frame.normal, dt, self.options.slope_time)
        target, held = desired.copy(), False
        target[:2], held = hold_inside(frame.corners, desired[:2], self.options.margin)
        self.reference.move(target, STILL if held else velocity, place, dt)
        follow = self._shape(STILL if held else velocity, dt)
        reference = follow[0]
        ground = ground_motion(poses, weights, frame.origin)
        H, g = self._tasks(frame, poses, (com, J), ground, place, follow)
        lower, upper = self._bounds(q, dt)
        qd = np.empty(self.model.n_joints)
        kernels.bounded_minimum(H, g, lower, upper, qd)
        self.position, self.velocity = self.position + qd * dt, qd
        away = np.nan_to_num(reference - place)
        # joints at their limits are reported from an error of 5 mm on
        limits = self._at_limits(q) if float(np.linalg.norm(away)) > 0.005 else ()
        return BalanceStep(
            position=self.position,
            velocity=qd,
            desired=desired,
            reference=reference,
            com=place,
            held=held,
            margin=frame.margin(place),
            frame=frame,
            limits=limits,
            problems=self._problems(frame, desired, held, limits),
        )

    def pause(self, dt: float) -> None:
        """Lets time pass without a step, in which the ground may turn.

        Args:
            dt: s.
        """
        self._check.pause(dt)

    def brake(self, dt: float) -> tuple[Array, Array]:
        """Commands that come to rest.

        Args:
            dt: s since the last commands.

        Returns:
            Positions (n,) rad or m and velocities (n,) rad/s or m/s.
        """
        self.pause(dt)
        most = self.options.joint_acceleration * dt
        self.velocity = self.velocity - np.clip(self.velocity, -most, most)
        self.position = self.position + self.velocity * dt
        return self.position, self.velocity

    def _shape(self, velocity: Array, dt: float) -> tuple[Array, Array]:
        """CoM reference (3,) m that does not excite the resonance, and its velocity (3,) m/s."""
        reference, lead = self.reference.position.copy(), self.reference.velocity.copy()
        if self.resonance is not None:
            change, at = self.options.com_acceleration * dt, slice(0, 2)
            v = self._shaped.move(
                reference[at], velocity[at], change, self.resonance, dt
            )
            reference[at], lead[at] = self._shaped.position, v
        return reference, lead

    def _find_resonance(
        self, q: Array, poses: LinkMotions, frame: BalanceFrame
    ) -> Resonance | None:
        if self._servo is None:
            return None
        com, J = self._sesc.com_and_jacobian(q)
        weights = self.soles.weights(poses, com, frame.R_balance_root[2])
        A = self._com_rows(frame, (com, J), ground_motion(poses, weights, frame.origin))
        height = float(frame.transform(com)[2])
        return standing_resonance(self.model, self._servo, q, poses, (height, A[:2]))

    # --- tasks ---------------------------------------------------------------------------------
    def _tasks(
        self,
        frame: BalanceFrame,
        poses: LinkMotions,
        mass: tuple[Array, Array],
        ground: tuple[Array, Array],
        place: Array,
        follow: tuple[Array, Array],
    ) -> tuple[Array, Array]:
        """H and g of the sum of weighted squares ||w (A qd - b)||^2 / 2 over all tasks."""
        reference, velocity = follow
        o, R = self.options, frame.R_balance_root
        angular = ground[1]
        rows = [self._feet_rows(poses)]
        A = self._com_rows(frame, mass, ground)
        error = reference - place
        # at most twice the reference's largest speed
        b = velocity + bounded(self.com_gain * error, 2.0 * o.com_speed)
        b -= skew(self._ground.velocity) @ place
        used = slice(0, 2 if np.isnan(error[2]) else 3)
        # of the CoM's height
        weights = np.array([1.0, 1.0, 0.1])[used]
        rows.append((weights[:, None] * A[used], weights * b[used]))
        if o.upright:
            turn = rotation_vector(self._trunk @ R.T)
            b = bounded(o.trunk_gain * turn, 0.5) - self._ground.velocity
            rows.append((-o.trunk_weight * (R @ angular), o.trunk_weight * b))
        H = np.diag(self._stiffness)
        # by 1 1/s: of the joints that the other tasks leave free, towards the posture at the start
        g = -self._stiffness * (self.posture - self.position)
        for A, b in rows:
            H += A.T @ A
            g -= A.T @ b
        return H, g

    def _com_rows(
        self,
        frame: BalanceFrame,
        mass: tuple[Array, Array],
        ground: tuple[Array, Array],
    ) -> Array:
        """Jacobian (3, n) of the CoM over the ground, balance frame."""
        (com, J), (linear, angular) = mass, ground
        return frame.R_balance_root @ (J - linear + skew(com - frame.origin) @ angular)

    def _feet_rows(self, poses: LinkMotions) -> tuple[Array, Array]:
        """Task of the other soles relative to the first one.

        The measured poses keep a lightly loaded sole flat, whose leg does not deflect like the
        loaded one; the commanded poses, with a lower gain, let strain between the feet decay.
        """
        o = self.options
        count = len(self._between) - 1
        if not count:
            return np.zeros((0, self.model.n_joints)), np.zeros(0)
        now, commanded = (
            relative_poses(poses),
            relative_poses(self.soles.poses(self.position)),
        )
        first, R0 = poses.jacobian[0], poses.R[0].T
        A, b = np.empty((count, 6, self.model.n_joints)), np.empty((count, 6))
        for i in range(count):
            own, arm = poses.jacobian[i + 1], poses.p[i + 1] - poses.p[0]
            A[i, :3] = R0 @ (own[:3] - first[:3] + skew(arm) @ first[3:])
            A[i, 3:] = R0 @ (own[3:] - first[3:])
            want = self._between[i + 1]
            # 1/s, of the measured poses of the soles relative to each other, and of their commanded
            # poses, whose errors strain the legs of feet that stand
            b[i] = 4.0 * way_between(want, now[i + 1])
            b[i] += 0.4 * way_between(want, commanded[i + 1])
        return o.feet_weight * A.reshape(6 * count, -1), o.feet_weight * b.ravel()

    def _bounds(self, q: Array, dt: float) -> tuple[Array, Array]:
        """Lower and upper bounds of the velocities (n,): limits, acceleration, following error."""
        o = self.options
        change = o.joint_acceleration * max(dt, 1e-6)
        q = np.clip(
            q, self._lower, self._upper
        )  # a joint beyond its limits must return
        floor = np.maximum(self._lower, q - o.max_following_error) - self.position
        ceiling = np.minimum(self._upper, q + o.max_following_error) - self.position
        limit_time = 0.1  # s, in which a joint may reach its limit
        least = np.clip(floor / limit_time, -self._speed, self._speed)
        most = np.maximum(
            np.clip(ceiling / limit_time, -self._speed, self._speed), least
        )
        return (
            np.clip(self.velocity - change, least, most),
            np.clip(self.velocity + change, least, most),
        )

    # --- reports -------------------------------------------------------------------------------
    def _at_limits(self, q: Array) -> tuple[str, ...]:
        o = self.options
        ends = (self.position <= self._lower + 1e-4) | (
            self.position >= self._upper - 1e-4
        )
        stuck = np.abs(self.position - q) >= o.max_following_error - 1e-3
        return tuple(self.model.joint_names[i] for i in np.flatnonzero(ends | stuck))

    def _problems(
        self, frame: BalanceFrame, desired: Array, held: bool, limits: tuple[str, ...]
    ) -> tuple[str, ...]:
        o, problems = self.options, []
        if np.tan(frame.slope) > o.friction:
            problems.append(
                f"the ground's slope of {np.degrees(frame.slope):.1f} deg is beyond the friction "
                f"cone of {np.degrees(np.arctan(o.friction)):.1f} deg: the soles may slide"
            )
        if held:
            away = -float(frame.margin(desired))
            where = (
                f"{1e3 * away:.0f} mm outside"
                if away > 0.0
                else f"{-1e3 * away:.0f} mm inside"
            )
            problems.append(
                f"the desired CoM is {where} the support polygon: held at the margin of "
                f"{1e3 * o.margin:.0f} mm"
            )
        if limits:
            problems.append(f"at a limit, or not following: {listing(limits)}")
        return tuple(problems)
