"""Estimates a quadruped's trunk from the base rows of its dynamics, in every phase of its gait.

Where [Ding] assumes massless legs and uses the first half gait only, this estimator models the
whole robot as a floating base: a Kalman filter estimates the trunk together with the errors that
real robots have and no data sheet lists, of the sensors, the joints and the legs' masses, each
with a prior. rows.py has the equations, docs/derivations.md their derivation.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, isnan
from typing import Any

import numpy as np

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
from com_estimation.trunk.floating_base.options import (
    FloatingBaseOptions,
    describe,
    robot_com_std,
    unseen_covariances,
    variance_fractions,
)
from com_estimation.trunk.floating_base.payload import PayloadTest, is_withdrawn
from com_estimation.trunk.floating_base.step import EXCITED, step
from com_estimation.trunk.floating_base.update import widened
from com_estimation.trunk.interface import Sample, TrunkEstimate, unknown_estimate
from com_estimation.trunk.motion import imu_link
from com_model import RobotConfig, RobotModel, Status
from com_model.arrays import Array
from com_model.compiled import entry_point
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import body_poses
from com_model.dynamics.link_frames import tree_of
from com_model.exceptions import ConfigError
from com_model.legs import JOINTS, Leg, quadruped_legs

USABLE = 0.01  # of the leg length, to which a gait has to know the robot's CoM
TESTED = [0, 1, 2]  # states m, m c_x, m c_y: those of the payload test

_INERTIA_ROWS, _INERTIA_COLUMNS = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
_STOPPED = {
    Outcome.NO_MOTION: "joint positions or angular velocity are not known: check joint_states and "
    "the IMU's gyroscope",
    Outcome.NO_ATTITUDE: "neither acceleration nor attitude is known: check the IMU",
}


@dataclass(frozen=True, eq=False)
class _State:
    """State of the filter at one time, to go back to.

    Attributes:
        x: (STATES,) estimate.
        P: (STATES, STATES) its covariance.
        variance: factor on the noise.
    """

    x: Array
    P: Array
    variance: float


@dataclass(eq=False)
class _Pending:
    """An alarm that is not confirmed yet, and the state to go back to when it is withdrawn.

    Attributes:
        state: of the filter at the alarm.
        test: payload test at the alarm.
        before: (3,) m, m c_x, m c_y before the change, kg and kg m.
        left: quarter strides until it is confirmed or withdrawn.
    """

    state: _State
    test: PayloadTest
    before: Array
    left: int = 4


class FloatingBaseEstimator:
    """Estimates mass and CoM of a quadruped's trunk by a Kalman filter; a TrunkEstimator.

    Its state: the trunk's mass, first moment and inertia; bias, scale, tilt, delay and position
    of the IMU; gain, bias, friction, rotor inertia and encoder bias of each leg joint; mass of
    each leg link (filter_types.StateLayout).

    Whole strides are compared to detect a payload: an alarm resets the state to what it was
    before, opens the trunk's covariance, and is confirmed or withdrawn a stride later.

    All samples go through the same low pass, which also provides derivatives; updates come at
    options.rate_hz; each sample is one compiled call. Where torques of a leg are NaN, only the
    moments about its foot are used. Without specific force the feet in contact provide the
    acceleration, if the attitude is known.

    Args:
        model: the robot; its root body is the trunk.
        config: its configuration, with four legs, and drives: load friction and rotors of its
            actuators, else armatures of its servos.
        options: noise, thresholds and priors.

    Attributes:
        model: as given.
        options: as given.
        legs: the four legs, in the order of legs.LEGS.
        center: (3,) m, mean of the four hips, root frame.
        hip_distance: m, between diagonal hips.
        leg_length: m, mean height of the hips above the feet's lowest points.
        dropped: number of samples that would have made the state not finite.
        links: masses (links,), kg, and first moments (links, 3), kg m, of the legs' links in the
            URDF, as STATE.link has them; nominal posture, root axes.
        prior_std: (STATES,) standard deviations of the state at the start.
        latest: the last estimate; UNKNOWN before the first.

    Raises:
        ConfigError: the robot is no quadruped with three joints a leg, the IMU is not on the
            trunk, or the trunk has no mass.
    """

    def __init__(
        self,
        model: RobotModel,
        config: RobotConfig,
        options: FloatingBaseOptions | None = None,
    ) -> None:
        self.model, self.options = model, options or FloatingBaseOptions()
        self.legs = quadruped_legs(model, config)
        bodies = model.bodies
        if bodies.mass[0] <= 0.0:
            problem = (
                "the trunk (root body) has no mass in the URDF: give it its <inertial>"
            )
            raise ConfigError(problem, config.source, "root_link")
        imu = imu_link(model, config)
        self._R_root_imu = bodies.R_body_link[imu]
        hips = np.array([leg.hip for leg in self.legs])
        self.center = hips.mean(axis=0)
        self.hip_distance = float(np.linalg.norm(hips[0] - hips[3]))
        self.leg_length = leg_length(model, config, self.legs)
        self._urdf_com = bodies.first_moment[0] / bodies.mass[0]
        R, p = body_poses(bodies, config.nominal_posture(model))
        own = np.ravel([bodies.path_to(leg.body) for leg in self.legs])
        moments = (
            np.einsum("bij,bj->bi", R, bodies.first_moment) + bodies.mass[:, None] * p
        )
        self.links = bodies.mass[own], moments[own]
        self._of_legs = np.append(bodies.mass[own].sum(), moments[own].sum(axis=0))
        self._settings = self.options.settings(model.mass, self.leg_length)
        trunk_mass = float(bodies.mass[0])
        joints = [joint for leg in self.legs for joint in leg.joints]
        names = np.array(model.joint_names)[joints].reshape(-1, JOINTS)
        drives = [[config.actuators.of(name) for name in row] for row in names.T]
        self._load = np.array(
            [np.mean([d.load_friction or 0.0 for d in row]) for row in drives]
        )
        self.prior_std = self.options.priors.state_std(
            mass=trunk_mass,
            inertia=float(np.trace(bodies.inertia[0])) / 3.0,
            torque=model.mass * GRAVITY * self.leg_length,
            sizes=np.array([self.hip_distance, self.leg_length]),
        )
        # where drives are as those of the simulator, they are one standard deviation off
        self.prior_std[STATE.load] = np.maximum(self.prior_std[STATE.load], self._load)
        rotors = config.rotors(model.joint_names)
        off = np.abs(rotors - config.servo.armature(model.joint_names))
        self.prior_std[STATE.rotor] = np.maximum(
            self.prior_std[STATE.rotor], off[joints]
        )
        walk = np.zeros(STATES)
        walk[STATE.mass] = self.options.drift * trunk_mass
        walk[STATE.moment] = self.options.drift * trunk_mass * self.hip_distance
        self._model = FilterModel(
            bodies=tree_of(bodies, root=False),
            armature=rotors,
            leg_bodies=np.array([bodies.path_to(leg.body) for leg in self.legs]),
            leg_joints=np.array([leg.joints for leg in self.legs]),
            balls=np.array([leg.ball for leg in self.legs]),
            radii=np.array([leg.radius for leg in self.legs]),
            p_root_imu=bodies.p_body_link[imu].copy(),
            R_imu_root=self._R_root_imu.T.copy(),
            drift=walk**2,
        )
        self.dropped = 0
        self.reset()
        # Compiles now, so that the first sample need not wait for it.
        sample = SignalSample(0.0, self._signals)
        self._hip_std = float(self.prior_std[STATE.hip.start])
        self._widen = entry_point(
            widened, self._memory.P, self._memory.x, self._hip_std
        )
        self._step = entry_point(
            step, sample, self._model, self._settings, self._memory
        )

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
            excitation=np.empty((2, TRUNK_STATES)),
            forces=FootForces(
                force=np.full((legs, 3), np.nan),
                std=np.full((legs, 3), np.nan),
                point=np.full((legs, 3), np.nan),
                swings=np.ones(legs, dtype=np.bool_),
            ),
        )
        self._monitors["last_sample"] = np.nan
        self.latest = unknown_estimate(0.0, "no sample yet: start the robot's drivers")
        self._impossible = -np.inf  # s, when the estimate was impossible
        self._begin()

    def _begin(self) -> None:
        """Resets the trunk to the URDF's values; the filters of the signals continue."""
        bodies, memory, monitors = self.model.bodies, self._memory, self._monitors
        monitors["frozen_until"], monitors["variance"] = -np.inf, 1.0
        memory.x[:] = 0.0
        memory.x[STATE.mass] = bodies.mass[0]
        memory.x[STATE.moment] = bodies.first_moment[0]
        memory.x[STATE.inertia] = bodies.inertia[0][_INERTIA_ROWS, _INERTIA_COLUMNS]
        memory.x[STATE.load] = self._load
        memory.P[:] = np.diag(self.prior_std**2)
        # A gain error that all torques have in common looks like a heavier robot and is not
        # identifiable: it is not estimated but counted in the covariance (unseen_covariances).
        common = self.options.priors.torque_gain**2 / (len(self.legs) * JOINTS)
        memory.P[STATE.gain, STATE.gain] -= (1.0 - 1e-6) * common
        memory.excitation[:] = 0.0
        self._test = self._new_test()
        self._past: deque[_State] = deque([self._state()], maxlen=8)
        self._pending: _Pending | None = None
        self._alarm_at, self._changed_at, self._limited_by = -np.inf, np.nan, ""
        self._repeatability, self._remark = np.full(3, np.nan), ""

    def update(self, sample: Sample) -> TrunkEstimate | None:
        """Processes a sample.

        A sample that is not later than the last one, or later by more than 0.1 s, restarts the
        filters of the signals; the estimate of the trunk stays.

        Args:
            sample: sensor readings of one instant.

        Returns:
            The estimate whenever the filter was updated or cannot be; None in between.
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
        """Filters a sample's signals; ArithmeticError, LinAlgError: the state is not finite."""
        signal_sample = SignalSample(time, self._signals)
        outcome = self._step(signal_sample, self._model, self._settings, self._memory)
        if outcome == Outcome.FILTERED:
            return None
        if outcome == Outcome.UPDATED:
            if not isfinite(self._memory.x.sum() + self._memory.P.sum()):
                raise FloatingPointError
            if self._monitors["ended"] > 0.0:
                self._end_window(time)
            if not self._possible():
                self._impossible = time
                self._begin()
            self.latest = self._estimate(time)
        elif outcome in _STOPPED:
            self._stop(time, _STOPPED[outcome])
        else:
            if outcome == Outcome.GAP:
                self._test.pause()
            return None
        return self.latest

    def _stop(self, time: float, reason: str) -> None:
        known = self.latest.status is not Status.UNKNOWN
        status = Status.DEGRADED if known else Status.UNKNOWN
        self.latest = replace(self.latest, time=time, status=status, reason=reason)

    def _state(self) -> _State:
        x, P = self._memory.x.copy(), self._memory.P.copy()
        return _State(x, P, float(self._monitors["variance"]))

    def _restore(self, state: _State) -> None:
        self._memory.x[:], self._memory.P[:] = state.x, state.P
        self._monitors["variance"] = state.variance

    def step_back(self) -> None:
        """Goes back to the state of two strides ago: readings since then were wrong."""
        if self._pending is None:
            self._restore(self._past[0])
            self._clear_window()
            self._test.pause()

    def _drop(self, time: float) -> TrunkEstimate:
        """Resets the state to the end of the last quarter stride; the signals' filters restart."""
        self.dropped += 1
        self._restore(self._past[-1])
        self._clear_window()
        self._test.pause()
        self._monitors["last_sample"] = np.nan
        self._stop(
            time,
            "samples that would have made the estimate not finite were dropped: check the values "
            "of joint_states and imu",
        )
        return self.latest

    # --- payload -----------------------------------------------------------------------------
    def _new_test(self) -> PayloadTest:
        mass, rate = (
            float(self.model.bodies.mass[0]),
            self.options.false_alarms_per_hour,
        )
        return PayloadTest(mass, self.hip_distance, rate)

    def _clear_window(self) -> None:
        self._monitors["information"][:] = 0.0
        self._monitors["weighted"][:] = 0.0

    def _end_window(self, time: float) -> None:
        """Ends a quarter stride: tests for a payload, decides on an alarm, and stores the state."""
        memory, monitors = self._memory, self._monitors
        duration = float(monitors["ended"])
        data = monitors["information"].copy(), monitors["weighted"].copy()
        back = self._test.add(*data, duration, memory.P[:3, :3])
        self._clear_window()
        if self._pending is not None:
            self._pending.left -= 1
            if self._pending.left == 0:
                self._decide(self._pending)
        elif back > 0:
            self.raise_alarm(time, back, duration)
        elif (
            self._test.surplus.any()
        ):  # a lasting change that is too small for an alarm
            memory.P[:3, :3] += np.outer(self._test.surplus, self._test.surplus)
        self._past.append(self._state())
        T = self._com_derivative()
        P = self._widened()
        std = np.sqrt(np.diag(self._covariance(P, T)))
        fractions = variance_fractions(P, T, self._unseen(T))
        limits = describe(fractions, std, self.options.priors)
        self._limited_by = "; ".join(filter(None, (limits, self._remark)))
        self._repeatability = np.full(3, np.nan)
        if self._test.learned:
            one_stride = T[:2, :3] @ self._test.repeatability @ T[:2, :3].T
            self._repeatability[:2] = np.sqrt(np.diag(one_stride))

    def raise_alarm(self, time: float, windows: int, duration: float) -> None:
        """Resets the state to before a change of payload, and holds all states but the trunk.

        They are held for eight quarter strides.

        The trunk's prior variances are added to its covariance, so that it can follow the
        change.

        Args:
            time: s, now.
            windows: number of quarter strides to go back.
            duration: s, of a quarter stride.
        """
        back = self._past[-min(windows, len(self._past))]
        self._pending = _Pending(self._state(), self._test, back.x[TESTED])
        self._restore(back)
        trunk = np.arange(TRUNK_STATES)
        self._memory.P[trunk, trunk] += self.prior_std[:TRUNK_STATES] ** 2
        self._monitors["frozen_until"] = time + 8.0 * duration
        self._test = self._new_test()
        self._test.restart(self._test.options.quiet)
        self._alarm_at = time
        self._past.clear()

    def _decide(self, pending: _Pending) -> None:
        """Confirms an alarm, or restores the state as if it had not been raised."""
        self._pending = None
        if is_withdrawn(pending.test, self._memory.x[TESTED] - pending.before):
            self._restore(pending.state)
            self._test = pending.test
            self._test.pause()
            self._monitors["frozen_until"] = -np.inf
            return
        self._changed_at = self._alarm_at
        lost = pending.before[0] - self._memory.x[0]
        self._remark = ""
        if lost > self.options.lighter * np.sqrt(2.0 * pending.test.scatter[0, 0]):
            self._remark = (
                f"since {self._changed_at:.2f} s the trunk seems {lost:.3g} kg lighter: a payload "
                "was taken off, or a rope or gantry lifts it, which looks the same and makes mass "
                "and CoM wrong: let it trot free"
            )

    @property
    def latest_forces(self) -> FootForces:
        """Forces of the ground on the feet at the last update, by whole-leg inverse dynamics."""
        return FootForces(*(values.copy() for values in self._memory.forces))

    def _possible(self) -> bool:
        """Whether mass and CoM are physically possible for this trunk.

        The mass from a tenth to ten times the URDF's; the CoM between the hips.
        """
        x, usual = self._memory.x, self.model.bodies.mass[0]
        mass = x[0]
        if not 0.1 * usual < mass < 10.0 * usual:  # so also where it is not finite
            return False
        offset = x[STATE.moment] / mass - self.center
        return bool(np.hypot(offset[0], offset[1]) < self.hip_distance)

    def _estimate(self, time: float) -> TrunkEstimate:
        """C = (m c) / m, and its covariance by dc = (d(m c) - c dm) / m."""
        x, P = self._memory.x, self._widened()
        m = float(x[0])
        # kg, by a gain that all torques have in common
        common = self.options.priors.common_gain * (m + float(self._of_legs[0]))
        covariance = self._covariance(P, self._com_derivative())
        com, std = x[STATE.moment] / m, np.sqrt(np.diag(covariance))
        status, reason = self._judge(time, P, std)
        if 0.0 <= time - self._impossible < 1.0:  # s
            status = Status.UNKNOWN
            reason = (
                "forces and motion make no possible trunk, started again: check signs and units of "
                "effort, angular velocity and acceleration, and the masses in the URDF"
            )
        # Observable is what the present motion shows and what is known by it.
        signal, noise = self._memory.excitation[:, STATE.moment]
        prior = self.prior_std[STATE.moment] / m
        return TrunkEstimate(
            time=time,
            status=status,
            reason=reason,
            mass=m,
            mass_std=float(np.hypot(np.sqrt(P[0, 0]), common)),
            com=com,
            covariance=covariance,
            offset_from_urdf=com - self._urdf_com,
            offset_from_center=com - self.center,
            observable=(std < 0.5 * prior) & (signal >= EXCITED * noise),
            payload_changed_at=self._changed_at,
            repeatability=self._repeatability,
            limited_by=self._limited_by,
            robot_com_std=self._robot_std,
        )

    def _com_derivative(self) -> Array:
        """(3, 4) derivative of the CoM by m, m c."""
        m, T = self._memory.x[0], np.eye(3, 4, 1)
        T[:, 0] = self._memory.x[STATE.moment] / -m
        return np.asarray(T / m)

    def _unseen(self, T: Array) -> dict[str, Array]:
        priors = self.options.priors
        return unseen_covariances(
            priors, T, self._memory.x, self.links[0], self._of_legs
        )

    def _widened(self) -> Array:
        memory = self._memory
        return np.asarray(self._widen(memory.P, memory.x, self._hip_std))

    def _covariance(self, P: Array, T: Array) -> Array:
        covariance = T @ P[:4, :4] @ T.T + sum(self._unseen(T).values())
        covariance[2, 2] += (self.options.height * self.leg_length) ** 2
        return np.asarray(covariance)

    def _judge(self, time: float, P: Array, std: Array) -> tuple[Status, str]:
        """Status of the estimate, and the reason.

        UNKNOWN where x or y is known to 5 % of the distance of the hips only; DEGRADED where the
        variance factor is above 25, so that the model does not fit; neither USABLE nor CONVERGED
        for 1 s after an alarm, and where the variance factor has risen to three times that of two
        strides ago, as it does where something heavy drops.

        Args:
            time: s.
            P: (STATES, STATES) covariance of the state.
            std: (3,) m, of the trunk's CoM.
        """
        monitors, worst = self._monitors, float(std[:2].max())
        self._robot_std = np.nan
        if worst > 0.05 * self.hip_distance:
            return (
                Status.UNKNOWN,
                f"x or y is only known to {worst:.2g} m: let the robot trot",
            )
        unknown = [
            leg.name
            for leg, force in zip(
                self.legs, self._memory.forces.force[:, 0].tolist(), strict=True
            )
            if isnan(force)
        ]
        if unknown:
            fix = (
                "check their effort in joint_states, and that the legs are not straight"
            )
            return (
                Status.DEGRADED,
                f"torques do not show the force on {', '.join(unknown)}: {fix}",
            )
        variance = monitors["variance"]
        if variance > 25.0:
            how = f"{np.sqrt(variance):.0f} times the expected error"
            fix = "check signs and units of effort, the feet's radii, the legs' masses"
            return Status.DEGRADED, f"forces and motion do not fit, {how}: {fix}"
        if monitors["without_accelerometer"] > 0.0:
            return (
                Status.DEGRADED,
                "no accelerometer: the standing feet give the acceleration",
            )
        if self._pending is not None or 0.0 <= time - self._alarm_at < 1.0:
            return (
                Status.ESTIMATING,
                "the payload seems to have changed: the next strides decide",
            )
        jump = variance > 3.0 * self._past[0].variance  # in two strides
        if self._test.statistic > self._test.options.unlike or jump:
            return (
                Status.ESTIMATING,
                "this stride is unlike those before: a payload, or the ground",
            )
        self._robot_std = robot_com_std(self._memory.x, P, *self.links)
        # half width of the 95 % interval
        usable = 1.96 * self._robot_std <= USABLE * self.leg_length
        if not usable or worst > self.options.converged * self.hip_distance:
            detail = f"; {self._limited_by}" if self._limited_by else ""
            known = f"x or y of the trunk is known to {worst:.2g} m, of the robot with the URDF's "
            reason = f"{known}legs to {self._robot_std:.2g} m so far{detail}"
            return Status.USABLE if usable else Status.ESTIMATING, reason
        return Status.CONVERGED, self._remark


def leg_length(model: RobotModel, config: RobotConfig, legs: Sequence[Leg]) -> float:
    """Mean height of the hips over the lowest points of the feet in the nominal posture.

    Args:
        model: the robot.
        config: with the nominal posture.
        legs: the four legs.

    Returns:
        The height, m.
    """
    R, p = body_poses(model.bodies, config.nominal_posture(model))
    feet = [p[leg.body] + R[leg.body] @ leg.ball for leg in legs]
    drops = [leg.hip[2] - f[2] + leg.radius for leg, f in zip(legs, feet, strict=True)]
    return float(np.mean(drops))
