"""A quadruped's trunk by recursive least squares on the base rows, and by the URDF alone.

The former is what public controllers of quadrupeds do to estimate a payload. It has none of the
refinements of com_estimation.trunk.floating_base: no errors of the sensors among its unknowns, no
weights by the legs' posture, no gates.

With the legs known and the trunk unknown, about the root's origin and in root axes,

  sum_i [f_i; p_i x f_i] - ID_legs = Y theta,   theta = [m, m c (3), I_O (6)],
  Y = [ a, [omega_dot]x + [omega]x^2, 0 ;  0, -[a]x, L(omega_dot) + [omega]x L(omega) ],

where a is the specific force at the root's origin, L(w) I_O = I w with I_O = (xx, yy, zz, xy, xz,
yz), and ID_legs the base wrench of the robot with a trunk without mass. See docs/derivations.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from com_estimation.trunk.ground_reaction import ReactionSource
from com_estimation.trunk.interface import Sample, TrunkEstimate, unknown_estimate
from com_estimation.trunk.motion import Motion, MotionFilter
from com_model import RobotConfig, RobotModel, quadruped_legs
from com_model.contact import ContactState
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.geometry.rotations import skew
from com_model.status import Status

Array = NDArray[np.float64]

INERTIA_ORDER = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Places in the matrix of the six numbers of I_O."""


def inertia_columns(w: Array) -> Array:
    """L(w), (3, 6): I w = L(w) (xx, yy, zz, xy, xz, yz)."""
    x, y, z = w.tolist()
    return np.array(
        [[x, 0, 0, y, z, 0], [0, y, 0, x, 0, z], [0, 0, z, 0, x, y]], dtype=np.float64
    )


def trunk_rows(specific_force: Array, omega: Array, omega_dot: Array) -> Array:
    """Y (6, 10): the wrench that moves the trunk, by theta.

    Args:
        specific_force: (3,) m/s^2 at the root's origin, root axes, gravity included.
        omega: (3,) rad/s.
        omega_dot: (3,) rad/s^2.
    """
    Y = np.zeros((6, 10))
    spin = skew(omega)
    Y[:3, 0] = specific_force
    Y[:3, 1:4] = skew(omega_dot) + spin @ spin
    Y[3:, 1:4] = -skew(specific_force)
    Y[3:, 4:] = inertia_columns(omega_dot) + spin @ inertia_columns(omega)
    return Y


def foot_wrench(points: Array, forces: Array) -> Array:
    """sum_i [f_i; p_i x f_i], (6,) N and N m.

    Args:
        points: (k, 3) m, contact points.
        forces: (k, 3) N.
    """
    wrench = np.zeros(6)
    for point, force in zip(points, forces, strict=True):
        wrench[:3] += force
        wrench[3:] += skew(point) @ force
    return wrench


PERIOD = 0.005  # s between updates
FORCE_STD, MOMENT_STD = 30.0, 30.0  # N, N m, of the rows
MASS_STD = 0.3  # fraction of the URDF's trunk mass, before the first sample
# m, standard deviation of x and y below which the estimate counts as settled
SETTLED = 0.005
BANDWIDTH = 150.0  # rad/s, of the filter that all signals go through


@dataclass(frozen=True)
class LeastSquaresOptions:
    """How the recursive least squares works.

    Attributes:
        forces: "torque", "inverse_dynamics" or "sensor".
        memory: s, after which a sample counts by 1/e.
        com_std: m, of the URDF's centre of mass, before the first sample.
    """

    forces: str = "inverse_dynamics"
    memory: float = 2.0
    com_std: float = 0.2


class RecursiveLeastSquares:
    """m and m c of the trunk from the six base rows, with forgetting.

      b = sum_i [f_i; p_i x f_i] - ID_legs - Y_I I_O = Y_m [m, m c]
      P^-1 = lambda P^-1 + (1 - lambda) P_0^-1 + Y_m^T W Y_m,
      theta += P Y_m^T W (b - Y_m theta)

    with lambda = exp(-dt / memory), W the inverse variances of the rows, I_O the URDF's inertia
    of the trunk. What is known at the start, P_0^-1, is not forgotten, or directions that the
    motion does not excite would wind up. P says how noise of the variance 1/W, new at each
    update, would scatter.

    Status: UNKNOWN until the motion and the forces are known, then ESTIMATING and CONVERGED;
    DEGRADED, without change, while an input is missing.

    Args:
        model: The robot.
        config: Its configuration: feet with side and end, the IMU's link.
        options: See LeastSquaresOptions.

    Attributes:
        latest: The last estimate.
        latest_forces: Forces of the ground on the feet at the last update.

    Raises:
        ConfigError: The robot is no quadruped, or its IMU is not on the trunk.
    """

    def __init__(
        self,
        model: RobotModel,
        config: RobotConfig,
        options: LeastSquaresOptions | None = None,
    ) -> None:
        self._options = o = options or LeastSquaresOptions()
        legs = quadruped_legs(model, config)
        bodies, armature = model.bodies, config.servo.armature(model.joint_names)
        self._start = np.array([bodies.mass[0], *bodies.first_moment[0]])
        self._inertia = np.array([bodies.inertia[0][place] for place in INERTIA_ORDER])
        self._center = np.mean([leg.hip for leg in legs], axis=0)
        self._sources = ReactionSource(model, legs, o.forces, armature)
        self._dynamics = Dynamics(model, armature, trunk=False)
        self._filter = MotionFilter(model, config, BANDWIDTH)
        self._contact = ContactState(model.mass * GRAVITY, count=len(legs))
        self._weights = 1.0 / np.repeat([FORCE_STD, MOMENT_STD], 3) ** 2
        self.reset()

    def reset(self) -> None:
        """Start from the URDF again."""
        self._filter.reset()
        self._contact.reset()
        mass = self._start[0]
        prior = [MASS_STD * mass, *[self._options.com_std * mass] * 3]
        self._theta = self._start.copy()
        self._prior = np.diag(1.0 / np.square(prior))
        self._information = self._prior.copy()
        self._updated = np.nan  # s
        self.latest = unknown_estimate(np.nan, "no sample has come")
        self.latest_forces = self._sources.unknown()

    def update(self, sample: Sample) -> TrunkEstimate | None:
        """Take in a sample; None between updates. When time goes back, it starts again."""
        if sample.time < self.latest.time:
            self.reset()
        motion = self._filter.update(sample)
        if motion is None or sample.time - self._updated < PERIOD - 1e-9:
            return None
        elapsed = sample.time - self._updated
        self._updated = sample.time
        reaction, points = self._sources.at(motion)
        contact = self._contact.update(motion.time, reaction.forces @ motion.up)
        self.latest_forces = replace(reaction, contact=contact)
        problem = self._add(motion, points, elapsed)
        self.latest = self._estimate(sample.time, problem)
        return self.latest

    def _add(self, motion: Motion, points: Array, elapsed: float) -> str:
        """Take in the rows of an instant; why not, where that cannot be."""
        root = motion.omega, motion.omega_dot, motion.specific_force
        legs = self._dynamics.inverse_dynamics((motion.q, motion.qd, motion.qdd), root)[
            0
        ]
        Y = trunk_rows(motion.specific_force, motion.omega, motion.omega_dot)
        b = (
            foot_wrench(points, self.latest_forces.forces)
            - legs
            - Y[:, 4:] @ self._inertia
        )
        if not (np.isfinite(b).all() and np.isfinite(Y).all()):
            return self._missing(motion)
        Y = Y[:, :4]
        if np.isfinite(elapsed):
            kept = np.exp(-elapsed / self._options.memory)
            self._information = kept * self._information + (1.0 - kept) * self._prior
        weighted = Y.T * self._weights
        self._information += weighted @ Y
        change = np.linalg.solve(self._information, weighted @ (b - Y @ self._theta))
        self._theta = self._theta + change
        return ""

    def _missing(self, motion: Motion) -> str:
        if not np.isfinite(motion.omega_dot).all():
            return "the angular velocity is not known: check imu"
        if not np.isfinite(motion.specific_force).all():
            return "the accelerometer is not known: check linear_acceleration in imu"
        return (
            "; ".join(self.latest_forces.problems)
            or "the forces on the feet are not known"
        )

    def _estimate(self, time: float, problem: str) -> TrunkEstimate:
        if problem and not np.isfinite(self.latest.mass):
            return unknown_estimate(time, problem)
        if problem:
            return replace(
                self.latest, time=time, status=Status.DEGRADED, reason=problem
            )
        mass = float(self._theta[0])
        if not mass > 0.0:
            reason = (
                f"the trunk's mass comes out as {mass:.1f} kg: check efforts and imu"
            )
            return unknown_estimate(time, reason)
        com = self._theta[1:] / mass
        scatter = np.linalg.inv(self._information)
        by_theta = np.hstack((-com[:, None], np.eye(3))) / mass
        covariance = by_theta @ scatter @ by_theta.T
        wide = float(np.sqrt(covariance[[0, 1], [0, 1]].max()))
        settled = wide < SETTLED
        return TrunkEstimate(
            time=time,
            status=Status.CONVERGED if settled else Status.ESTIMATING,
            reason=""
            if settled
            else f"x and y are known to {1e3 * wide:.0f} mm so far",
            mass=mass,
            mass_std=float(np.sqrt(scatter[0, 0])),
            com=com,
            covariance=(covariance + covariance.T) / 2.0,
            offset_from_urdf=com - self._start[1:] / self._start[0],
            offset_from_center=com - self._center,
            observable=np.sqrt(np.diag(covariance)) < self._options.com_std / 4.0,
            payload_changed_at=np.nan,
        )


class BelievedUrdf:
    """The centre of mass that the URDF says, whatever the sensors say.

    Args:
        model: The robot.
        config: Its configuration: feet with side and end.

    Attributes:
        latest: The last estimate.
        latest_forces: No forces are known.

    Raises:
        ConfigError: The robot is no quadruped.
    """

    def __init__(self, model: RobotModel, config: RobotConfig) -> None:
        legs = quadruped_legs(model, config)
        self._mass = float(model.bodies.mass[0])
        self._com = model.bodies.first_moment[0] / self._mass
        self._center = np.mean([leg.hip for leg in legs], axis=0)
        self.latest_forces = ReactionSource(model, legs, "torque").unknown()
        self.reset()

    def reset(self) -> None:
        """Forget the time of the last sample: there is nothing else."""
        self.latest = unknown_estimate(np.nan, "no sample has come")

    def update(self, sample: Sample) -> TrunkEstimate | None:
        """The URDF's centre of mass at the time of the sample."""
        self.latest = TrunkEstimate(
            time=sample.time,
            status=Status.DEGRADED,
            reason="the URDF is believed as it is: no sensor is used",
            mass=self._mass,
            mass_std=np.nan,
            com=self._com,
            covariance=np.full((3, 3), np.nan),
            offset_from_urdf=np.zeros(3),
            offset_from_center=self._com - self._center,
            observable=np.zeros(3, dtype=np.bool_),
            payload_changed_at=np.nan,
        )
        return self.latest
