"""The trunk's CoM of a quadruped from the base rows of its dynamics, in every phase of its gait.

Where [Ding] takes the legs for weightless and the first half gait only, this takes the whole robot
as a floating base: the legs are known, the trunk is not, and a Kalman filter learns the trunk
beside what falsifies the sensors. floating_base_kernels has the equations, docs/derivations.md
their derivation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from com_estimation.trunk import floating_base_kernels as kernels
from com_estimation.trunk.floating_base_options import EXCITED, FloatingBaseOptions
from com_estimation.trunk.ground_reaction import INVERSE_DYNAMICS, GroundReaction
from com_estimation.trunk.interface import Sample, Status, TrunkEstimate, unknown_estimate
from com_model import RobotConfig, RobotModel
from com_model.dynamics.inverse_dynamics import pack
from com_model.dynamics.kinematics import body_poses
from com_model.exceptions import ConfigError
from com_model.legs import Leg, quadruped_legs

__all__ = ["FloatingBaseEstimator", "FloatingBaseOptions"]

Array = NDArray[np.float64]

VAGUE = 0.05  # deviation of x or y over the distance of the hips, above which nothing is known
TOLD = 0.03  # likewise, of what a second of data alone must reach for a component to be observable
LEAST, MOST = 0.1, 10.0  # of the trunk's mass in the URDF: another mass cannot be
MISTRUST = 1.0  # s, for which is said that an estimate was impossible
ALMOST = 1.0 - 1e-6  # keeps a covariance positive definite
MISFIT = 4.0  # mean normalised innovation per row, above which the model does not fit

_IMPOSSIBLE = (
    "forces and motion make no possible trunk, started anew: check signs and units of effort, "
    "angular velocity and acceleration, and the masses in the URDF"
)
_INERTIA_ROWS, _INERTIA_COLUMNS = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
_STOPPED = {
    kernels.NO_MOTION: "joint positions or angular velocity are not known: check joint_states and "
    "the IMU's gyroscope",
    kernels.NO_ATTITUDE: "neither acceleration nor attitude is known: check the IMU",
}


class FloatingBaseEstimator:
    """Estimates mass and CoM of the trunk by a Kalman filter; a TrunkEstimator.

    Its state: the trunk's mass, first moment and inertia; bias of the accelerometer; gain error of
    each leg torque; Coulomb friction of each leg joint; error of each leg's mass. Samples are
    low-passed and differentiated alike, updates come at options.rate_hz; each is one compiled
    call. Torques that are NaN take their leg out: the moments about its foot still tell. Without
    specific force the feet that stand tell the acceleration, where the attitude is known.

    Args:
        model: The robot as its URDF has it.
        config: Its configuration, with four legs; armatures of its servos count as reflected
            inertias of the drives.
        options: What is known beforehand.

    Raises:
        ConfigError: It is no quadruped with three joints a leg, the IMU is not on the trunk, or the
            trunk has no mass.
    """

    def __init__(
        self, model: RobotModel, config: RobotConfig, options: FloatingBaseOptions | None = None
    ) -> None:
        self.model, self.options = model, options or FloatingBaseOptions()
        self.legs = quadruped_legs(model, config)
        bodies = model.bodies
        if bodies.mass[0] <= 0.0:
            problem = "the trunk (root body) has no mass in the URDF: give it its <inertial>"
            raise ConfigError(problem, config.source, "root_link")
        imu = _imu_link(model, config)
        self._R_root_imu = bodies.R_body_link[imu]
        self._p_imu = bodies.p_body_link[imu].copy()
        hips = np.array([leg.hip for leg in self.legs])
        self.center = hips.mean(axis=0)
        self.hip_distance = float(np.linalg.norm(hips[0] - hips[3]))
        self.leg_length = leg_length(model, config, self.legs)
        self._urdf_com = bodies.first_moment[0] / bodies.mass[0]
        self._robot = pack(bodies, root=False)
        self._index = np.array([[*bodies.path_to(leg.body), *leg.joints] for leg in self.legs])
        self._balls = np.array([[*leg.ball, leg.radius] for leg in self.legs])
        gains = [config.servo.gains(name) for name in model.joint_names]
        self._armature = np.array([(g.armature or 0.0) if g else 0.0 for g in gains])
        self._settings = self.options.settings(model.mass, self.leg_length)
        self._start, walk = self.options.deviations(
            mass=float(bodies.mass[0]),
            inertia=float(np.trace(bodies.inertia[0])) / 3.0,
            torque=model.mass * self._settings[kernels.GRAVITY] * self.leg_length,
            hip_distance=self.hip_distance,
        )
        self._common_gain = self.options.torque_gain / np.sqrt(kernels.FRICTION - kernels.GAIN)
        self._drift = walk**2
        self._opening = self._start[: kernels.GAIN] ** 2
        self._opening[kernels.BIAS :] = 0.0
        self.reset()
        self._step(0.0)  # compiles, which must not wait for the first sample
        self.reset()

    def reset(self) -> None:
        """Forgets everything but the model and the options."""
        k = kernels
        self._inputs = np.full(2 * self.model.n_joints + k.TAIL, np.nan)
        self._channels = np.zeros((len(self._inputs), k.CHANNEL))
        self._monitors = np.zeros(k.MONITORS)
        self._monitors[k.LAST_SAMPLE] = np.nan
        self._result = np.full((len(self.legs), k.LEG_COLUMNS), np.nan)
        self._latest = unknown_estimate(0.0, "no sample yet: start the robot's drivers")
        self._impossible = -np.inf  # s, when the estimate was so
        self._begin()

    def _begin(self) -> None:
        """Knows of the trunk what the URDF says; keeps what the filters know of the motion."""
        k, bodies = kernels, self.model.bodies
        monitors = self._monitors
        monitors[k.FROZEN_UNTIL], monitors[k.CHANGED_AT] = -np.inf, np.nan
        monitors[[k.UPDATES, k.INNOVATION, k.LEFT_OUT]] = 0.0
        monitors[k.CHANGE : k.CHANGE + 3] = 0.0
        self._x = np.zeros(k.STATES)
        self._x[k.MASS] = bodies.mass[0]
        self._x[k.MOMENT : k.INERTIA] = bodies.first_moment[0]
        self._x[k.INERTIA : k.BIAS] = bodies.inertia[0][_INERTIA_ROWS, _INERTIA_COLUMNS]
        self._P = np.diag(self._start**2)
        # Torques that are all too large by the same share look like a heavier robot: nothing tells
        # the two apart, so that share is not estimated but counted in the mass's deviation.
        self._P[k.GAIN : k.FRICTION, k.GAIN : k.FRICTION] -= ALMOST * self._common_gain**2
        self._information = np.zeros((4, 4))
        self._excitation = np.zeros((2, k.BIAS))

    def update(self, sample: Sample) -> TrunkEstimate | None:
        """Takes in a sample; gives an estimate whenever the filter made one, else None.

        A sample that is not later than the last one, or later by more than 0.1 s, starts the
        filters of the signals anew; what is known of the trunk stays.
        """
        inputs, n, R = self._inputs, self.model.n_joints, self._R_root_imu
        inputs[:n], inputs[n : 2 * n] = sample.position, sample.effort
        inputs[2 * n : 2 * n + 3] = R @ sample.angular_velocity
        inputs[2 * n + 3 : 2 * n + 6] = R @ sample.specific_force
        inputs[2 * n + 6 :] = R @ sample.R_world_imu[2]
        code = self._step(sample.time)
        if code == kernels.LOST:
            self._begin()
            self._monitors[kernels.CHANGED_AT] = sample.time
        if code in (kernels.UPDATED, kernels.MISFIT, kernels.LOST):
            if not self._possible():
                self._impossible = sample.time
                self._begin()
            self._latest = self._estimate(sample.time)
        elif code in _STOPPED:
            known = self._latest.status is not Status.UNKNOWN
            status = Status.DEGRADED if known else Status.UNKNOWN
            self._latest = replace(
                self._latest, time=sample.time, status=status, reason=_STOPPED[code]
            )
        else:
            return None
        return self._latest

    @property
    def latest(self) -> TrunkEstimate:
        """The last estimate; UNKNOWN before the first."""
        return self._latest

    @property
    def latest_forces(self) -> GroundReaction:
        """Forces of the ground on the feet at the last update, by whole-leg inverse dynamics."""
        r, k = self._result, kernels
        return GroundReaction(
            forces=r[:, k.LEG_FORCE : k.LEG_DEVIATION].copy(),
            deviations=r[:, k.LEG_DEVIATION : k.LEG_POINT].copy(),
            contact=r[:, k.LEG_SWINGS] == 0.0,
            method=INVERSE_DYNAMICS,
        )

    def _step(self, time: float) -> int:
        return int(
            kernels.step(
                time,
                self._inputs,
                self._channels,
                self._monitors,
                self._settings,
                self._robot,
                self._armature,
                self._index,
                self._balls,
                self._p_imu,
                self._drift,
                self._opening,
                self._x,
                self._P,
                self._information,
                self._excitation,
                self._result,
            )
        )

    def _possible(self) -> bool:
        """Whether a trunk may have that mass, and its CoM lie there."""
        mass, usual = self._x[kernels.MASS], self.model.bodies.mass[0]
        if not LEAST * usual < mass < MOST * usual:  # so also where it is not finite
            return False
        way = self._x[kernels.MOMENT : kernels.MOMENT + 2] / mass - self.center[:2]
        return bool(np.hypot(*way) < self.hip_distance)

    def _estimate(self, time: float) -> TrunkEstimate:
        """C = (m c) / m, and its covariance by dc = (d(m c) - c dm) / m."""
        m = float(self._x[kernels.MASS])
        com = self._x[kernels.MOMENT : kernels.INERTIA] / m
        T = np.hstack([-com[:, None], np.eye(3)]) / m
        covariance = T @ self._P[:4, :4] @ T.T
        covariance[2, 2] += (self.options.height * self.leg_length) ** 2
        status, reason = self._judge(np.sqrt(np.diag(covariance)))
        if 0.0 <= time - self._impossible < MISTRUST:
            status, reason = Status.UNKNOWN, _IMPOSSIBLE
        return TrunkEstimate(
            time=time,
            status=status,
            reason=reason,
            mass=m,
            mass_std=float(np.hypot(np.sqrt(self._P[0, 0]), self._common_gain * self.model.mass)),
            com=com,
            covariance=covariance,
            offset_from_urdf=com - self._urdf_com,
            offset_from_center=com - self.center,
            observable=self._observable(m),
            payload_changed_at=float(self._monitors[kernels.CHANGED_AT]),
        )

    def _judge(self, deviation: Array) -> tuple[Status, str]:
        k, worst = kernels, float(deviation[:2].max())
        if worst > VAGUE * self.hip_distance:
            return Status.UNKNOWN, f"x or y is only known to {worst:.2g} m: let the robot trot"
        dumb = [
            leg.name
            for leg, force in zip(self.legs, self._result[:, k.LEG_FORCE], strict=True)
            if np.isnan(force)
        ]
        if dumb:
            fix = "check their effort in joint_states, and that the legs are not straight"
            return Status.DEGRADED, f"torques do not tell the force on {', '.join(dumb)}: {fix}"
        if self._monitors[k.INNOVATION] > MISFIT:
            how = f"{self._monitors[k.INNOVATION]:.0f} times as far off as expected"
            fix = "check signs and units of effort, the feet's radii, the legs' masses"
            return Status.DEGRADED, f"forces and motion do not fit, {how}: {fix}"
        if self._monitors[k.WITHOUT_ACCELEROMETER] > 0.0:
            return Status.DEGRADED, "no accelerometer: the standing feet tell the acceleration"
        if worst > self.options.converged * self.hip_distance:
            return Status.ESTIMATING, f"x or y is known to {worst:.2g} m so far"
        return Status.CONVERGED, ""

    def _observable(self, mass: float) -> NDArray[np.bool_]:
        """Which components of the CoM a second of data like the last one's would tell alone."""
        known = self._information[1:, 1:] + np.eye(3) * self._start[kernels.MOMENT] ** -2
        deviation = np.sqrt(np.diag(np.linalg.inv(known))) / mass
        signal, noise = self._excitation[:, kernels.MOMENT : kernels.INERTIA]
        return (deviation < TOLD * self.hip_distance) & (signal >= EXCITED * noise)


def leg_length(model: RobotModel, config: RobotConfig, legs: Sequence[Leg]) -> float:
    """Mean height of the hips over the lowest points of the feet, nominal posture, m."""
    R, p = body_poses(model.bodies, config.nominal_posture(model))
    feet = [p[leg.body] + R[leg.body] @ leg.ball for leg in legs]
    drops = [leg.hip[2] - f[2] + leg.radius for leg, f in zip(legs, feet, strict=True)]
    return float(np.mean(drops))


def _imu_link(model: RobotModel, config: RobotConfig) -> int:
    link = model.link_index(config.imu_link or model.root_link)
    if model.bodies.body_of_link[link] != 0:
        problem = f"{config.imu_link!r} moves against the trunk: name a link that is fixed to it"
        raise ConfigError(problem, config.source, "imu.link")
    return link
