"""The estimator of [Ding]: closed form, in a short window after two feet have left the ground.

Kept as the baseline: it assumes massless legs, stiff standing legs and a centre of mass at the
height of the hips, and is valid in the first half gait only. com_estimation.trunk.floating_base
needs none of these assumptions.

In the solution, [Ding] eqs 14 to 17, the trunk with its standing legs is one rigid body that
turns about the midpoint o_g of the two contacts. Axes g of [Ding]: z against gravity, x
horizontal and along the diagonal of the standing feet. See docs/derivations.md, "Trunk on two
feet".
"""

from dataclasses import dataclass, replace

import numpy as np

from com_estimation.trunk.ground_reaction import ForceMeter
from com_estimation.trunk.interface import Sample, TrunkEstimate, unknown_estimate
from com_estimation.trunk.motion import Motion, cross
from com_model import RobotConfig, RobotModel, quadruped_legs
from com_model.arrays import Array, Flags
from com_model.bodies import steiner
from com_model.contact import CONTACT_LOAD
from com_model.dynamics import GRAVITY
from com_model.legs import DIAGONALS as DIAGONALS_BY_NAME
from com_model.parameters import NOT_NEGATIVE, parameter
from com_model.status import Status


@dataclass(frozen=True, eq=False)
class Trunk:
    """Properties of the trunk that [Ding] assumes to be known.

    Attributes:
        mass: kg.
        inertia: I_b (3, 3) kg m^2 about its centre of mass, root axes.
        center: (3,) m, the geometric centre: the mean of the four hips, root frame.
    """

    mass: float
    inertia: Array
    center: Array


@dataclass(frozen=True, eq=False)
class Support:
    """A trunk on two feet at one instant.

    Attributes:
        up: (3,) unit vector against gravity, root axes.
        omega: (3,) rad/s, angular velocity of the trunk, root axes.
        omega_dot: (3,) rad/s^2, its derivative.
        contacts: (2, 3) m, contact points of the standing feet, root frame.
        forces: (2, 3) N of the ground on them, root axes.
    """

    up: Array
    omega: Array
    omega_dot: Array
    contacts: Array
    forces: Array


@dataclass(frozen=True, eq=False)
class Offset:
    """Position of the centre of mass relative to the geometric centre.

    Attributes:
        xy: (2,) m, x_c and y_c in root axes; NaN where the equations have no solution.
        by_force: (2, 2, 3) m/N, derivative of xy by the forces on the two feet, [foot, xy,
            force].
        height: m, of the geometric centre above the contacts: xy moves by so much per radian of
            error in the direction of gravity.
    """

    xy: Array
    by_force: Array
    height: float


def trunk_of(model: RobotModel, center: Array) -> Trunk:
    """The trunk of a model, with its inertia about its centre of mass (Steiner).

    Args:
        model: the robot; its root body is the trunk.
        center: (3,) m, the geometric centre: the mean of the four hips, root frame.
    """
    bodies = model.bodies
    mass = float(bodies.mass[0])
    com = bodies.first_moment[0] / mass
    return Trunk(mass, bodies.inertia[0] - mass * steiner(com), center)


def diagonal_axes(contacts: Array, up: Array) -> Array:
    """R_gb, from root axes to g: rows x (horizontal, from contact 1 to 0), y, z = up.

    Its elements are r_ij of [Ding] eq. 15.

    Args:
        contacts: (2, 3) m, contact points of the standing feet, root axes.
        up: (3,) unit vector against gravity, root axes.

    Returns:
        (3, 3); NaN when one contact is above the other.
    """
    along = contacts[0] - contacts[1]
    level = along - (along @ up) * up
    length = np.sqrt(level @ level)
    x = level / length if length > 1e-6 else np.full(3, np.nan)
    return np.stack((x, cross(up, x), up))


def solve_offset(
    trunk: Trunk, support: Support, gravity: float, steiner_at_com: bool = False
) -> Offset:
    """Solves for the offset of the centre of mass, [Ding] eqs 14 to 17.

      p_d = -R_gb (mean of contacts - center),  r_i = contact i from o_g, g axes
      I_g = R_gb I_b R_gb^T + m (|p_d|^2 1 - p_d p_d^T)
      K = I_g omega_dot + omega x (I_g omega) - sum r_i x f_i
      [-r21 -r22; r11 r12] (x_c, y_c) = K_12 / (m g) - (-p_dy, p_dx)

    The determinant is r33, the cosine of the tilt.

    Args:
        trunk: mass, inertia and geometric centre.
        support: motion of the trunk, contacts and forces at one instant.
        gravity: m/s^2.
        steiner_at_com: move the inertia by p_d + R_gb p_c, where the centre of mass is, by
            fixed-point iteration; False: by p_d, where [Ding] takes it.

    Returns:
        The offset from the geometric centre; NaN when the trunk lies on its side, r33 <
        0.25.
    """
    R = diagonal_axes(support.contacts, support.up)
    middle = support.contacts.mean(axis=0)
    p_d = -R @ (middle - trunk.center)
    arms = (support.contacts - middle) @ R.T
    A = np.array([[-R[1, 0], -R[1, 1]], [R[0, 0], R[0, 1]]])
    # beyond a tilt of 75 degrees the trunk counts as lying on its side
    if not R[2, 2] >= 0.25:
        return Offset(np.full(2, np.nan), np.full((2, 2, 3), np.nan), float(p_d[2]))
    inverse = np.linalg.inv(A)
    weight = trunk.mass * gravity
    moment = cross(arms, support.forces @ R.T).sum(axis=0)
    omega, omega_dot = R @ support.omega, R @ support.omega_dot
    level = np.array([-p_d[1], p_d[0]])

    def solve(r: Array) -> Array:
        inertia = R @ trunk.inertia @ R.T + trunk.mass * steiner(r)
        # Euler's equation
        K = inertia @ omega_dot + cross(omega, inertia @ omega) - moment
        return np.asarray(inverse @ (K[:2] / weight - level))

    xy = solve(p_d)
    for _ in range(50 if steiner_at_com else 0):
        before, xy = xy, solve(p_d + R[:, :2] @ xy)
        if not np.abs(xy - before).max() > 1e-12:
            break
    # derivative by each force: of -inverse (r_i x R f_i)_12 / (m g)
    turned = cross(
        arms[:, None, :], R.T[None, :, :]
    )  # [foot, component of f] -> r_i x R e_j
    by_force = -np.einsum("ab,ijb->iaj", inverse, turned[..., :2]) / weight
    return Offset(xy, by_force, float(p_d[2]))


DIAGONALS = tuple(DIAGONALS_BY_NAME.values())
"""Legs that stand together: left front and right hind, right front and left hind."""

ASSUMPTIONS = (
    "legs without mass, a stiff trunk of known mass that turns about two resting feet, its centre "
    "of mass level with the hips"
)


@dataclass(frozen=True)
class DingOptions:
    """Options of the estimator of [Ding].

    Attributes:
        contact_load: fraction of the weight from which a foot is in contact; used when samples
            have no stance.
    """

    forces: str = parameter(
        "torque",
        "Where the ground's forces come from: 'torque' ([Ding] eq. 21), "
        "'inverse_dynamics' or 'sensor' ([Ding] eq. 20)",
    )
    window_start: float = parameter(
        0.015,
        "s after the swinging feet have left the ground, from when samples count",
        NOT_NEGATIVE,
    )
    window_end: float = parameter(0.180, "s, until when", NOT_NEGATIVE)
    first_half_gait_only: bool = parameter(
        True,
        "Only the first half gait after standing on four feet counts, as in [Ding]; "
        "otherwise each has a window and its own average",
    )
    steiner_at_com: bool = parameter(False, "See solve_offset; [Ding] has False")
    gravity: float = parameter(GRAVITY, "m/s^2", NOT_NEGATIVE)
    bandwidth: float = parameter(
        250.0, "rad/s, of the filter that all signals go through", NOT_NEGATIVE
    )
    attitude_std: float = parameter(
        0.0035, "rad, of the direction of gravity", NOT_NEGATIVE
    )
    contact_load: float = CONTACT_LOAD
    standing_time: float = parameter(
        0.2, "s on four feet, after which a half gait is the first", NOT_NEGATIVE
    )
    least_load: float = parameter(
        0.5,
        "Fraction of the weight that the two feet must carry at least",
        NOT_NEGATIVE,
    )
    largest_load: float = parameter(
        1.5, "Fraction that they may carry at most", NOT_NEGATIVE
    )


@dataclass(frozen=True)
class HalfGait:
    """State of the gait.

    Attributes:
        diagonal: index into DIAGONALS of the legs in stance; None when that is not exactly one
            diagonal.
        start: s, when the swinging feet left the ground; NaN without diagonal.
        count: 1 for the first half gait after standing on four feet; 0 while that is unknown.
        standing: the robot stands on four feet.
    """

    diagonal: int | None
    start: float
    count: int
    standing: bool


class HalfGaits:
    """Counts half gaits, from when the robot lifts two feet after standing on four.

    Args:
        standing_time: s on four feet, after which the next half gait is the first.
    """

    def __init__(self, standing_time: float = 0.2) -> None:
        self._standing_time = standing_time
        self.reset()

    def reset(self) -> None:
        """Forgets all: half gaits are not counted until the robot has stood on four feet."""
        self._four_since = np.nan
        self._has_stood = False
        self._last = HalfGait(None, np.nan, 0, False)

    def update(self, time: float, stance: Flags) -> HalfGait:
        """Updates the gait's state.

        Args:
            time: s.
            stance: (4,) feet in contact, in the order of legs.LEGS.

        Returns:
            The state, with the number of the half gait.
        """
        four = bool(stance.all())
        self._four_since = np.fmin(self._four_since, time) if four else np.nan
        self._has_stood |= bool(time - self._four_since >= self._standing_time)
        pairs = [i for i, pair in enumerate(DIAGONALS) if stance[list(pair)].all()]
        # the other feet are free
        diagonal = pairs[0] if stance.sum() == 2 and pairs else None
        if diagonal is None:
            count, start = self._last.count, np.nan
        elif diagonal == self._last.diagonal:
            count, start = self._last.count, self._last.start
        else:
            following = self._last.count + 1 if self._last.count else 0
            count, start = 1 if self._has_stood else following, time
            self._has_stood = False
        self._last = HalfGait(diagonal, start, count, four)
        return self._last


class DingEstimator:
    """Estimates x and y of the trunk's centre of mass as [Ding] does, for any quadruped.

    In the window each sample has a solution; the estimate is their mean. Its covariance is their
    scatter plus the noise of torques and attitude in each: errors of the model last through the
    whole window, so it does not shrink with the number of samples. z is unknown.

    Status: UNKNOWN before the first window, ESTIMATING in a window, DEGRADED after it (the
    estimate stays, but is not updated). It never converges.

    Args:
        model: the robot; mass and inertia of its trunk are taken as known.
        config: its feet, legs, IMU and servos.
        options: [Ding]'s own by default.

    Attributes:
        latest: the last estimate.
        latest_forces: forces of the ground on the feet at the last sample that was used.

    Raises:
        ConfigError: the robot is no quadruped, or its IMU is not on the trunk.
    """

    def __init__(
        self, model: RobotModel, config: RobotConfig, options: DingOptions | None = None
    ) -> None:
        self._options = options or DingOptions()
        legs, o = quadruped_legs(model, config), self._options
        self._center = np.mean([leg.hip for leg in legs], axis=0)
        self._urdf_com = model.bodies.first_moment[0] / model.bodies.mass[0]
        self._trunk = trunk_of(model, self._center)
        self._meter = ForceMeter(
            model, config, legs, o.forces, np.inf, o.contact_load, o.bandwidth
        )
        self._gaits = HalfGaits(o.standing_time)
        self.reset()

    def step_back(self) -> None:
        """Forgets nothing: the first half gait is over."""

    def reset(self) -> None:
        """Forgets everything but the model and the options."""
        self._meter.reset()
        self._gaits.reset()
        self._window: list[tuple[Array, Array]] = []
        self._start = np.nan  # s, of the half gait that the window belongs to
        self._problem = ""
        self.latest = unknown_estimate(np.nan, "no sample has come")
        self.latest_forces = self._meter.latest

    def update(self, sample: Sample) -> TrunkEstimate | None:
        """Processes a sample; when time goes back, the estimator restarts.

        Args:
            sample: sensor readings of one instant.

        Returns:
            The estimate; None when the sample has the time of the one before.
        """
        if sample.time < self.latest.time:
            self.reset()
        reaction, motion = self._meter.update(sample), self._meter.motion
        if reaction is None or motion is None:
            return None
        stance = reaction.contact
        if sample.stance is not None:
            stance = np.asarray(sample.stance, dtype=np.bool_)
        self.latest_forces = replace(reaction, contact=stance)
        half = self._gaits.update(
            sample.time if sample.stance is not None else motion.time, stance
        )
        if self._in_window(half, motion.time):
            if half.start != self._start:
                self._start, self._window = half.start, []
            self._solve(motion, half)
        self.latest = self._estimate(sample.time, half, motion)
        return self.latest

    def _in_window(self, half: HalfGait, time: float) -> bool:
        options = self._options
        since = time - half.start  # NaN without diagonal
        counts = half.count == 1 or not options.first_half_gait_only
        return counts and options.window_start <= since <= options.window_end

    def _solve(self, motion: Motion, half: HalfGait) -> None:
        """Adds the solution at this sample to the window, or stores why there is none."""
        legs = list(DIAGONALS[half.diagonal or 0])
        forces = self.latest_forces.forces[legs]
        self._problem = self._refusal(motion, forces)
        if self._problem:
            return
        support = Support(
            motion.up, motion.omega, motion.omega_dot, self._meter.points[legs], forces
        )
        options = self._options
        found = solve_offset(
            self._trunk, support, options.gravity, options.steiner_at_com
        )
        if not np.isfinite(found.xy).all():
            self._problem = (
                "the trunk lies on its side or its feet stand one above the other"
            )
            return
        covariance = (options.attitude_std * found.height) ** 2 * np.eye(2)
        if self.latest_forces.covariance is not None:
            own, by = self.latest_forces.covariance[legs], found.by_force
            covariance += np.einsum("iaj,ijk,ibk->ab", by, own, by)
        self._window.append((found.xy, covariance))

    def _refusal(self, motion: Motion, forces: Array) -> str:
        """Why a sample cannot be solved; empty when it can."""
        if not np.isfinite(motion.up).all():
            return "the attitude is not known: check the orientation in imu"
        if not np.isfinite(motion.omega_dot).all():
            return "the angular velocity is not known: check imu"
        if not np.isfinite(forces).all():
            return (
                "; ".join(self.latest_forces.problems)
                or "the forces on the feet are not known"
            )
        load = float(np.sum(forces @ motion.up))
        weight = self._trunk.mass * self._options.gravity
        if not self._options.least_load <= load / weight <= self._options.largest_load:
            return (
                f"the two feet carry {load:.0f} N of the trunk's {weight:.0f} N: check efforts, "
                "stance and the trunk's mass in the URDF"
            )
        return ""

    def _estimate(self, time: float, half: HalfGait, motion: Motion) -> TrunkEstimate:
        inside = self._in_window(half, motion.time)
        if not self._window:
            why = self._problem if self._problem else self._waiting(half)
            return unknown_estimate(time, why)
        if not inside:
            return self._outside(time)
        xy = np.array([solution for solution, _ in self._window])
        mean = xy.mean(axis=0)
        spread = (xy - mean).T @ (xy - mean) / len(xy)
        com, covariance = np.full(3, np.nan), np.full((3, 3), np.nan)
        com[:2] = self._center[:2] + mean
        covariance[:2, :2] = spread + np.mean(
            [noise for _, noise in self._window], axis=0
        )
        return TrunkEstimate(
            time=time,
            status=Status.ESTIMATING,
            reason=self._problem
            or f"mean of {len(xy)} samples so far; takes for true: " + ASSUMPTIONS,
            mass=self._trunk.mass,
            com=com,
            covariance=covariance,
            offset_from_urdf=com - self._urdf_com,
            offset_from_center=com - self._center,
            observable=np.array([True, True, False]),
        )

    def _waiting(self, half: HalfGait) -> str:
        if half.standing:
            return "the robot stands on four feet: the method needs two that are in the air"
        if half.count == 1 and half.diagonal is not None:
            start = self._options.window_start
            return f"the window opens {start:g} s after two feet left the ground"
        return (
            "no first half gait was seen: let the robot stand on four feet for "
            f"{self._options.standing_time:g} s, then trot"
        )

    def _outside(self, time: float) -> TrunkEstimate:
        """The estimate of the last window, as it was."""
        when = (
            "first half gait"
            if self._options.first_half_gait_only
            else "last half gait"
        )
        reason = (
            f"estimate of the {when}, from {self._options.window_start:g} to "
            f"{self._options.window_end:g} s after two feet left the ground: outside this window "
            f"the method does not hold. It takes for true: {ASSUMPTIONS}"
        )
        old = replace(self.latest, time=time, observable=np.zeros(3, dtype=np.bool_))
        return replace(old, status=Status.DEGRADED, reason=reason)
