"""The trunk's CoM of a quadruped from the base rows of its dynamics, in every phase of its gait.

Where [Ding] takes the legs as massless and the first half gait only, this takes the whole robot as
a floating base: the legs are known, the trunk is not, and a Kalman filter estimates the trunk
together with errors of the sensors. rows.py has the equations, docs/derivations.md their
derivation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from com_estimation.trunk.floating_base.filter_types import (
    CHANNEL,
    JOINT_SIGNALS,
    MONITORS,
    SIGNAL,
    STATE,
    STATES,
    TRUNK_STATES,
    FilterMemory,
    FilterModel,
    FootForces,
    Outcome,
    SignalSample,
)
from com_estimation.trunk.floating_base.options import EXCITED, FloatingBaseOptions
from com_estimation.trunk.floating_base.step import bind_types
from com_estimation.trunk.ground_reaction import INVERSE_DYNAMICS, GroundReaction
from com_estimation.trunk.interface import Sample, Status, TrunkEstimate, unknown_estimate
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.dynamics.inverse_dynamics import pack
from com_model.dynamics.kinematics import body_poses
from com_model.exceptions import ConfigError
from com_model.legs import JOINTS, Leg, quadruped_legs

VAGUE = 0.05  # standard deviation of x or y over the distance of the hips, above which: UNKNOWN
OBSERVABLE = 0.03  # likewise, which a second of data alone must reach for a component to be so
LEAST, MOST = 0.1, 10.0  # of the trunk's mass in the URDF: another mass cannot be
MISTRUST = 1.0  # s, for which an impossible estimate is reported
ALMOST = 1.0 - 1e-6  # keeps a covariance positive definite
INCONSISTENT = 4.0  # mean normalised innovation per row, above which the model does not fit

_IMPOSSIBLE = (
    "forces and motion make no possible trunk, started again: check signs and units of effort, "
    "angular velocity and acceleration, and the masses in the URDF"
)
_NOT_FINITE = (
    "samples that would have made the estimate not finite were dropped: check the values of "
    "joint_states and imu"
)
_INERTIA_ROWS, _INERTIA_COLUMNS = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
_STOPPED = {
    Outcome.NO_MOTION: "joint positions or angular velocity are not known: check joint_states and "
    "the IMU's gyroscope",
    Outcome.NO_ATTITUDE: "neither acceleration nor attitude is known: check the IMU",
}


class FloatingBaseEstimator:
    """Estimates mass and CoM of the trunk by a Kalman filter; a TrunkEstimator.

    Its state: the trunk's mass, first moment and inertia; bias of the accelerometer; gain error of
    each leg torque; Coulomb friction of each leg joint; error of each leg's mass
    (filter_types.StateLayout). All samples go through the same low pass, which gives derivatives,
    too; updates come at options.rate_hz; each sample is one compiled call. Torques that are NaN
    take their leg out: only the moments about its foot are used. Without specific force the feet
    that stand give the acceleration, where the attitude is known.

    Args:
        model: The robot as its URDF has it.
        config: Its configuration, with four legs; armatures of its servos count as reflected
            inertias of the drives.
        options: What is known beforehand.

    Attributes:
        dropped: Samples that would have made the state not finite.

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
        hips = np.array([leg.hip for leg in self.legs])
        self.center = hips.mean(axis=0)
        self.hip_distance = float(np.linalg.norm(hips[0] - hips[3]))
        self.leg_length = leg_length(model, config, self.legs)
        self._urdf_com = bodies.first_moment[0] / bodies.mass[0]
        self._settings = self.options.settings(model.mass, self.leg_length)
        self._start, walk = self.options.state_std(
            mass=float(bodies.mass[0]),
            inertia=float(np.trace(bodies.inertia[0])) / 3.0,
            torque=model.mass * self._settings.gravity * self.leg_length,
            hip_distance=self.hip_distance,
        )
        self._common_gain = self.options.torque_gain / np.sqrt(len(self.legs) * JOINTS)
        opening = np.zeros(STATES)
        opening[:TRUNK_STATES] = self._start[:TRUNK_STATES] ** 2
        self._model = FilterModel(
            bodies=pack(bodies, root=False),
            armature=config.servo.armature(model.joint_names),
            leg_bodies=np.array([bodies.path_to(leg.body) for leg in self.legs]),
            leg_joints=np.array([leg.joints for leg in self.legs]),
            balls=np.array([leg.ball for leg in self.legs]),
            radii=np.array([leg.radius for leg in self.legs]),
            p_root_imu=bodies.p_body_link[imu].copy(),
            drift=walk**2,
            opening=opening,
        )
        self.dropped = 0
        self.reset()
        # Compiles, which must not wait for the first sample.
        sample = SignalSample(0.0, self._signals)
        self._step = bind_types(sample, self._model, self._settings, self._memory)
        self.reset()

    def reset(self) -> None:
        """Forgets everything but the model and the options."""
        legs, signals = len(self.legs), JOINT_SIGNALS + 2 * self.model.n_joints
        self._signals = np.full(signals, np.nan)
        monitors = np.zeros(1, MONITORS)
        self._monitors: Any = monitors[0]
        self._memory = FilterMemory(
            channels=np.zeros(signals, CHANNEL),
            monitors=monitors,
            x=np.zeros(STATES),
            P=np.empty((STATES, STATES)),
            information=np.empty((4, 4)),
            excitation=np.empty((2, TRUNK_STATES)),
            forces=FootForces(
                force=np.full((legs, 3), np.nan),
                std=np.full((legs, 3), np.nan),
                point=np.full((legs, 3), np.nan),
                swings=np.ones(legs, dtype=np.bool_),
            ),
        )
        self._monitors["last_sample"] = np.nan
        self._saved: list[Any] = []  # the memory at the last update
        self._latest = unknown_estimate(0.0, "no sample yet: start the robot's drivers")
        self._impossible = -np.inf  # s, when the estimate was so
        self._begin()

    def _begin(self) -> None:
        """Sets the trunk to what the URDF says; the filters of the signals go on."""
        bodies, memory, monitors = self.model.bodies, self._memory, self._monitors
        monitors["frozen_until"], monitors["changed_at"] = -np.inf, np.nan
        monitors["updates"] = monitors["innovation"] = monitors["left_out"] = 0.0
        monitors["change"][:] = 0.0
        memory.x[:] = 0.0
        memory.x[STATE.mass] = bodies.mass[0]
        memory.x[STATE.moment] = bodies.first_moment[0]
        memory.x[STATE.inertia] = bodies.inertia[0][_INERTIA_ROWS, _INERTIA_COLUMNS]
        memory.P[:] = np.diag(self._start**2)
        # A gain error that all torques have in common looks like a heavier robot and is not
        # identifiable: it is not estimated but counted in the standard deviation of the mass.
        memory.P[STATE.gain, STATE.gain] -= ALMOST * self._common_gain**2
        memory.information[:] = 0.0
        memory.excitation[:] = 0.0

    def update(self, sample: Sample) -> TrunkEstimate | None:
        """Uses a sample; returns an estimate whenever the filter made one, else None.

        A sample that is not later than the last one, or later by more than 0.1 s, restarts the
        filters of the signals; what is known of the trunk stays.
        """
        signals, n, R = self._signals, self.model.n_joints, self._R_root_imu
        np.dot(R, sample.angular_velocity, out=signals[SIGNAL.angular_velocity])
        np.dot(R, sample.specific_force, out=signals[SIGNAL.specific_force])
        np.dot(R, sample.R_world_imu[2], out=signals[SIGNAL.up])
        signals[JOINT_SIGNALS : JOINT_SIGNALS + n] = sample.position
        signals[JOINT_SIGNALS + n :] = sample.effort
        try:
            return self._use(sample.time)
        except (ArithmeticError, np.linalg.LinAlgError):
            return self._drop(sample.time)

    def _use(self, time: float) -> TrunkEstimate | None:
        """Filters the signals of a sample; see update.

        Raises:
            ArithmeticError, LinAlgError: the state is not finite any more.
        """
        signal_sample = SignalSample(time, self._signals)
        outcome = self._step(signal_sample, self._model, self._settings, self._memory)
        if outcome == Outcome.FILTERED:
            return None
        if outcome in (Outcome.UPDATED, Outcome.OUTLIER, Outcome.LOST):
            if not isfinite(self._memory.x.sum() + self._memory.P.sum()):
                raise FloatingPointError
            self._save()
        if outcome == Outcome.LOST:
            self._begin()
            self._monitors["changed_at"] = time
        if outcome in (Outcome.UPDATED, Outcome.OUTLIER, Outcome.LOST):
            if not self._possible():
                self._impossible = time
                self._begin()
            self._latest = self._estimate(time)
        elif outcome in _STOPPED:
            self._stop(time, _STOPPED[outcome])
        else:
            return None
        return self._latest

    def _stop(self, time: float, reason: str) -> None:
        known = self._latest.status is not Status.UNKNOWN
        status = Status.DEGRADED if known else Status.UNKNOWN
        self._latest = replace(self._latest, time=time, status=status, reason=reason)

    def _save(self) -> None:
        arrays = _arrays(self._memory)
        if not self._saved:
            self._saved = [array.copy() for array in arrays]
        for saved, array in zip(self._saved, arrays, strict=True):
            np.copyto(saved, array)

    def _drop(self, time: float) -> TrunkEstimate:
        """Goes back to the last update, as if what came since had not been."""
        self.dropped += 1
        if self._saved:
            for saved, array in zip(self._saved, _arrays(self._memory), strict=True):
                np.copyto(array, saved)
        else:
            self.reset()
        self._stop(time, _NOT_FINITE)
        return self._latest

    @property
    def latest(self) -> TrunkEstimate:
        """The last estimate; UNKNOWN before the first."""
        return self._latest

    @property
    def latest_forces(self) -> GroundReaction:
        """Forces of the ground on the feet at the last update, by whole-leg inverse dynamics."""
        forces = self._memory.forces
        return GroundReaction(
            forces=forces.force.copy(),
            std=forces.std.copy(),
            contact=~forces.swings,
            method=INVERSE_DYNAMICS,
        )

    def _possible(self) -> bool:
        """Whether a trunk may have that mass, and its CoM be there."""
        x, usual = self._memory.x, self.model.bodies.mass[0]
        mass = x[0]
        if not LEAST * usual < mass < MOST * usual:  # so also where it is not finite
            return False
        offset = x[STATE.moment] / mass - self.center
        return bool(np.hypot(offset[0], offset[1]) < self.hip_distance)

    def _estimate(self, time: float) -> TrunkEstimate:
        """C = (m c) / m, and its covariance by dc = (d(m c) - c dm) / m."""
        x, P = self._memory.x, self._memory.P
        m = float(x[0])
        com = x[STATE.moment] / m
        T = np.eye(3, 4, 1)
        T[:, 0] = -com
        T /= m
        covariance = T @ P[:4, :4] @ T.T
        covariance[2, 2] += (self.options.height * self.leg_length) ** 2
        status, reason = self._judge(np.sqrt(np.diag(covariance)))
        if 0.0 <= time - self._impossible < MISTRUST:
            status, reason = Status.UNKNOWN, _IMPOSSIBLE
        return TrunkEstimate(
            time=time,
            status=status,
            reason=reason,
            mass=m,
            mass_std=float(np.hypot(np.sqrt(P[0, 0]), self._common_gain * self.model.mass)),
            com=com,
            covariance=covariance,
            offset_from_urdf=com - self._urdf_com,
            offset_from_center=com - self.center,
            observable=self._observable(m),
            payload_changed_at=float(self._monitors["changed_at"]),
        )

    def _judge(self, std: Array) -> tuple[Status, str]:
        monitors, worst = self._monitors, float(std[:2].max())
        if worst > VAGUE * self.hip_distance:
            return Status.UNKNOWN, f"x or y is only known to {worst:.2g} m: let the robot trot"
        unknown = [
            leg.name
            for leg, force in zip(self.legs, self._memory.forces.force[:, 0].tolist(), strict=True)
            if isnan(force)
        ]
        if unknown:
            fix = "check their effort in joint_states, and that the legs are not straight"
            return Status.DEGRADED, f"torques do not show the force on {', '.join(unknown)}: {fix}"
        innovation = monitors["innovation"]
        if innovation > INCONSISTENT:
            how = f"{innovation:.0f} times the expected error"
            fix = "check signs and units of effort, the feet's radii, the legs' masses"
            return Status.DEGRADED, f"forces and motion do not fit, {how}: {fix}"
        if monitors["without_accelerometer"] > 0.0:
            return Status.DEGRADED, "no accelerometer: the standing feet give the acceleration"
        if worst > self.options.converged * self.hip_distance:
            return Status.ESTIMATING, f"x or y is known to {worst:.2g} m so far"
        return Status.CONVERGED, ""

    def _observable(self, mass: float) -> NDArray[np.bool_]:
        """Which components of the CoM a second of data like the last one's would give alone."""
        known = self._memory.information[1:, 1:] + np.eye(3) * self._start[STATE.moment] ** -2
        std = np.sqrt(np.diag(np.linalg.inv(known))) / mass
        signal, noise = self._memory.excitation[:, STATE.moment]
        return (std < OBSERVABLE * self.hip_distance) & (signal >= EXCITED * noise)


def _arrays(memory: FilterMemory) -> list[Array]:
    forces = memory.forces
    return [*memory[:-1], forces.force, forces.std, forces.point, forces.swings]


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
