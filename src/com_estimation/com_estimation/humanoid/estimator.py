"""Diagnoses a moving humanoid from its joints, IMU and foot wrenches, and corrects its CoM.

    estimator = HumanoidEstimator(model, config, rate_hz=200.0)
    at each sample: estimator.update(time, q, R_world_root, wrenches)       # some 10 us
    in another thread or now and then: estimator.process()                  # windows, inference

`update` never waits for `process`. When a wrench or the orientation is missing or impossible,
and when the robot falls, the estimates are frozen, with the mode and the reason.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike

from com_estimation.humanoid import fall, step
from com_estimation.humanoid.diagnosis import Diagnosis, Finding
from com_estimation.humanoid.layout import Culprit, make_layout
from com_estimation.humanoid.windows import SUPPORT, make_window
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.compiled import entry_point
from com_model.contact import SUPPORT_LOAD
from com_model.sesc import Sesc
from com_model.urdf.editing import Inertial, correct_body, edit_inertials

RATE = 200.0  # Hz, to which faster samples are averaged
TIPPED = np.radians(2.0)  # of the loaded sole in a fall: models no longer hold
RECOVERY = 2.0  # s, after a fall warning or a fault, before windows count again


class Mode(IntEnum):
    """What the estimator does; values of com_msgs/CentroidalDiagnosis.

    Attributes:
        UNKNOWN: no data yet.
        STANDING: estimating; the CoM hardly accelerates.
        MOVING: estimating; the CoM accelerates enough to separate causes.
        IN_EVENT: a push or a change, not yet known which.
        FALLING: estimates frozen, since a fall is imminent or was within the last seconds.
        FROZEN: an input is missing or impossible: see the reason.
    """

    UNKNOWN = 0
    STANDING = 1
    MOVING = 2
    IN_EVENT = 3
    FALLING = 4
    FROZEN = 5


@dataclass(frozen=True, eq=False)
class Estimate:
    """CoM, its correction and the state of balance after a sample; axes of the root link.

    Attributes:
        time: s, of the sample.
        mode: what the estimator does.
        reason: why it is frozen and how to fix it; else empty.
        com: (3,) m, corrected; NaN without all inputs.
        covariance: (3, 3) m^2, of com; NaN before the first inference.
        correction: (3,) m, com minus the model's CoM.
        mass_correction: kg, that the model lacks.
        mass_std: kg, standard deviation of mass_correction.
        dcm: (2,) m, divergent component of motion, x and y in the world's axes, from the middle
            of the feet.
        margin: m, signed distance of the DCM to the hull of all soles, positive inside.
        fall_warning: a fall is imminent, or was a second ago.
    """

    time: float
    mode: Mode
    reason: str
    com: Array
    covariance: Array
    correction: Array
    mass_correction: float
    mass_std: float
    dcm: Array
    margin: float
    fall_warning: bool


class HumanoidEstimator:
    """Diagnoses one robot from its samples, corrects its CoM and warns of falls.

    Args:
        model: the robot.
        config: its feet with force sensors and their soles, its IMU and joint groups.
        rate_hz: 1/s, of the samples; above RATE, samples are averaged to about RATE.

    Attributes:
        layout: parameters and possible causes.
        lock: guards `diagnosis` between `process` and readers in other threads.
        diagnosis: state of the windows; use it under `lock`.
        closed: windows that `process` has not used yet.
        warned_at: s, when the last fall warning began; NaN: none since the start.
        warned_of: text of that warning; kept until the robot has stood or moved for 2 s after
            it, else empty.

    Raises:
        ConfigError: the configuration has fewer than two feet, or belongs to another robot.
    """

    def __init__(
        self, model: RobotModel, config: RobotConfig, rate_hz: float = RATE
    ) -> None:
        self.layout, self._model = make_layout(model, config), model
        self.lock = Lock()
        self.diagnosis = Diagnosis(self.layout)
        self._every = max(1, round(rate_hz / RATE))
        self._period = self._every / rate_hz
        self._length = 3 * max(3, round(SUPPORT / 3.0 / self._period))
        self._frames = [foot.frame for foot in config.feet]
        points = [foot.points for foot in config.feet]
        owner = np.repeat(
            np.arange(len(points), dtype=np.int64), [len(p) for p in points]
        )
        flat = np.array([len(p) > 2 for p in points], dtype=np.float64)
        corners = np.concatenate(points)
        self._corners = fall.Soles(corners, owner, flat, self.layout.weight)
        plant = self.layout.plant
        self._memory = step.make_memory(plant)
        self._fall = fall.make_fall_state(len(points))
        at = plant.blocks.flexibility
        self._give = slice(at, at + 2)
        joints = plant.tree.q_index[plant.joint[:, 0]]
        self._given, self._loads = np.zeros(2), np.full(len(joints), np.nan)
        self._bent = np.zeros(model.n_joints)  # positions less what the joints give
        own = joints, self._memory.torque, plant.blocks.light
        self._giving = (*own, self._given, self._loads, self._bent)
        given = self._bent, np.zeros(2), 0.0, *self._giving
        self._take_out = entry_point(fall.take_out_give, *given)
        self._q, feet = np.zeros(model.n_joints), len(plant.foot_body)
        sample = (
            self._q,
            np.eye(3),
            np.zeros((feet, 6)),
            0.0,
            self._length,
            self._memory,
        )
        self._step = entry_point(step.step, plant, *sample)
        watch = self._corners, self._memory, np.zeros(3), 0.0, self._fall
        self._watch = entry_point(fall.watch_fall, *watch)
        jacobian = Sesc(model).com_and_jacobian(config.nominal_posture(model))[1]
        lever = np.linalg.norm(jacobian, axis=0)
        # a joint that hardly moves the CoM may be stuck
        self._matters = (lever > 1e-3 * self.layout.height).astype(np.float64)
        self._encoders, self._names = fall.make_watch(model.n_joints), model.joint_names
        readings = self._q, self._matters, 0.0, self._encoders
        self._find_stuck = entry_point(fall.find_stuck, *readings)
        self._wrenches = np.zeros((feet, 8))
        wrenches = np.zeros((feet, 6)), 0.0, self.layout.weight, self._wrenches
        self._find_frozen = entry_point(fall.find_frozen, *wrenches)
        self.closed: deque[tuple[float, Array, Array, Array]] = deque(maxlen=50)
        self.restart()

    def restart(self) -> None:
        """Clears all state, for another recording or after a change of the clock."""
        with self.lock:
            self.diagnosis.restart()
            self._theta = np.zeros(self.layout.count)  # by the last inference
            self._sigma = np.full((3, 3), np.nan), np.nan
        # rad/(N m), and rad of backlash: used so far; inferred
        self._given[:], self._found_give = 0.0, np.zeros(2)
        self._give_std = float(self.layout.tolerance[self._give.start])  # rad/(N m)
        self.closed.clear()
        self._time, self._frozen_until = -np.inf, -np.inf
        self._wrong_load, self._reason, self.warned_at, self.warned_of = (
            0.0,
            "",
            np.nan,
            "",
        )
        self._repeated = ""  # why the positions are outdated
        self._warning_until = self._began = -np.inf
        # positions that stay
        self._held, self._stale = (-np.inf, np.empty(0), np.empty(0)), False
        self._wrenches[:] = 0.0
        self._rows: list[Array] = []
        for part in self._fall:
            part[:] = 0.0
        self._encoders[:] = fall.make_watch(len(self._names))
        self._memory.phase[:] = -1

    def update(
        self,
        time: float,
        q: ArrayLike,
        R_world_root: ArrayLike,
        wrenches: ArrayLike | None,
    ) -> Estimate | None:
        """Processes one sample; takes some 10 us and never waits for `process`.

        Args:
            time: s.
            q: (n,) joint positions, rad or m.
            R_world_root: (3, 3) orientation of the root link from the IMU, world z up; NaN where
                unknown.
            wrenches: (f, 6) force N and moment N m of the ground on each foot, in the axes and
                about the origin of its sensor; None or NaN where unknown.

        Returns:
            The estimate at this sample; None while samples are averaged.
        """
        feet = len(self.layout.plant.foot_body)
        w = (
            np.full((feet, 6), np.nan)
            if wrenches is None
            else np.asarray(wrenches, dtype=float)
        )
        self._rows.append(w)
        if len(self._rows) == (self._every + 1) // 2:  # encoders and IMU in the middle
            self._middle = (
                time,
                np.ascontiguousarray(q),
                np.ascontiguousarray(R_world_root),
            )
        if len(self._rows) < self._every:
            return None
        w = np.ascontiguousarray(np.mean(self._rows, axis=0)) if self._every > 1 else w
        self._rows = []
        return self._use(*self._middle, w)

    def _use(self, time: float, q: Array, R: Array, wrenches: Array) -> Estimate:
        problem = self._input_problem(q, R, wrenches)
        dt = time - self._time
        self._time = time
        if problem:
            return self._refuse(time, problem)
        if not 0.5 * self._period < dt < 1.5 * self._period:
            self._memory.phase[:] = -1
        begins = self._memory.phase[0] < 0
        plant, memory = self.layout.plant, self._memory
        if memory.phase[0] < 2:  # the torques are of another time
            self._loads[:] = np.nan
        moved = self._take_out(q, self._found_give, self._period, *self._giving)
        closed = self._step(
            plant, self._bent, R, wrenches, self._period, self._length, memory
        )
        self._check_load(time)
        if begins:
            self._fall.model_xi[0] = np.nan
            self._began = time
        else:
            offset = self._correction()[0]
            loaded = int(np.argmax(memory.load))
            warns = self._watch(self._corners, memory, offset, self._period, self._fall)
            # s after a start or gap, until the soles' rates are known
            warns &= time - self._began > 0.1
            # What the legs give by as the load moves looks like a sole that tips.
            wrong = abs(float(self._found_give[0] - self._given[0]))
            # of the flexibility, by which joints differ; and half of it in motion, since torques
            # of feet that touch down are not those of the joints, nor of the same moment
            wrong += self._give_std + 0.5 * float(self._given[0])
            tilts = wrong * moved
            tilts += 2.0 * self._given[1]  # a joint on its way to the other side
            warns &= tilts < fall.FALL.tips or self._fall.margin[0] < 0.0
            if warns and (not self._reason or self._reason == self._repeated):
                tilt = self._fall.angle[loaded]
                if time > self._warning_until:
                    self.warned_at = time
                    self.warned_of = (
                        f"fall warning: DCM margin {self._fall.margin[0]:.3f} m, "
                    )
                    self.warned_of += (
                        f"loaded sole tilted by {np.degrees(tilt):.1f} degrees"
                    )
                self._warning_until = time + 0.5 * RECOVERY
                if tilt > TIPPED:
                    self._frozen_until = time + RECOVERY
        joint, jumping, stopped = self._find_stuck(
            q, self._matters, self._period, self._encoders
        )
        foot = self._find_frozen(
            wrenches, self._period, self.layout.weight, self._wrenches
        )
        problem = ""
        if foot >= 0:
            problem = (
                f"the wrench of {self._frames[foot]} stays the same to the last bit although "
                "the robot moves: check its sensor"
            )
        elif jumping >= 0:
            problem = (
                f"the position of {self._names[jumping]} jumps back and forth between two values: "
                "two drivers publish joint_states, stop one"
            )
        elif joint >= 0:
            problem = (
                f"the position of {self._names[joint]} stays the same to the last bit "
            )
            problem += "although it moved: check its encoder and driver"
        elif not self._wrong_load and self._is_stale(time, q, wrenches):
            problem = (
                "joint positions stay the same while the wrenches change: check the "
                "joints' driver"
            )
        if problem:
            self._repeated = problem
            return self._refuse(time, problem)
        if time >= self._frozen_until:
            self._reason = ""
            if time > self._warning_until + 0.5 * RECOVERY:
                self.warned_of = ""
            if closed and not stopped:
                copies = memory.closed.copy(), memory.closed_stats.copy()
                self.closed.append((time, *copies, self._given.copy()))
        return self.estimate(time)

    def _input_problem(self, q: Array, R: Array, wrenches: Array) -> str:
        if not np.isfinite(wrenches).all():
            return "a foot's wrench is missing or not finite: check the force sensors' drivers"
        if not np.isfinite(R).all():
            return "the imu gives no orientation: check its driver"
        return (
            ""
            if np.isfinite(q).all()
            else "a joint's position is not known: check its driver"
        )

    def _is_stale(self, time: float, q: Array, wrenches: Array) -> bool:
        """Whether the joint positions are outdated: unchanged while the wrenches change."""
        since, held, then = self._held
        if not np.array_equal(q, held) or time < since:
            self._held, self._stale = (time, q.copy(), wrenches), False
        elif not self._stale:
            weight, change = self.layout.weight, np.abs(wrenches - then)
            # Positions that stay the same to the last bit while a foot's reading changes by more
            # than 5 % of the weight or 5 mm are stale.
            moved = change[:, 2].max() > 0.05 * weight
            moved |= change[:, 3:5].max() > 0.005 * weight
            self._stale = bool(moved) and time - since > 0.1
            if not moved and time - since > 1.0:
                self._held = time, held, wrenches
        return self._stale

    def _check_load(self, time: float) -> None:
        """Freezes when the feet do not carry the robot, or the loaded sole is not horizontal."""
        memory, weight = self._memory, self.layout.weight
        load = float(memory.load.sum())
        # cosine of the tilt of a loaded sole, by the IMU
        tilted = (
            self.layout.flat and memory.R_sole[int(np.argmax(memory.load)), 2, 2] < 0.7
        )
        # more on all feet is a wrong unit or gain of the sensors, no contact
        wrong = not SUPPORT_LOAD * weight < load < 2.5 * weight or tilted
        self._wrong_load = self._wrong_load + self._period if wrong else 0.0
        if self._wrong_load <= 0.1:  # s
            return
        if tilted:
            reason = "the sole that carries the robot is far from horizontal by the imu: the robot "
            reason += "has fallen, or the imu's link or orientation is wrong"
        elif load < -SUPPORT_LOAD * weight:
            reason = "the feet are pulled down: check the signs of the wrenches (wrench.sign)"
        elif load < SUPPORT_LOAD * weight:
            reason = "the feet do not carry the robot: it is lifted or jumps, or a sensor is dead"
        else:
            reason = (
                "the feet carry more than 2.5 times the robot: check the sensors' units"
            )
        self._freeze(time, reason)

    def _refuse(self, time: float, reason: str) -> Estimate:
        """Freezes; the estimate has no CoM, since the posture of this sample cannot be used."""
        self._freeze(time, reason)
        unknown = np.full((3, 3), np.nan)
        return replace(self.estimate(time), com=unknown[0], covariance=unknown)

    def _freeze(self, time: float, reason: str) -> None:
        self._reason, self._frozen_until = reason, time + RECOVERY
        self._memory.phase[:] = -1

    def process(self) -> bool:
        """Adds the windows closed since the last call to the diagnosis; updates the correction.

        May run in another thread than `update`.

        Returns:
            Whether there is a new verdict.
        """
        new = False
        while self.closed:
            time, closed, stats, given = self.closed.popleft()
            # The parameters are all of the give, also what the positions contain already.
            closed[:, -1] += closed[:, self._give] @ given
            window = make_window(time, self.layout, closed, stats)
            with self.lock:
                new |= self.diagnosis.add(window)
        if new:
            jacobian = self._memory.R[1, 0].T @ self._memory.jacobian
            with self.lock:
                theta, cov, std = self.diagnosis.correction(jacobian)
            self._theta, self._sigma = theta, (cov, std)
            # rad/(N m) and rad, upper bounds: legs that give by more would sink by a tenth of
            # their length
            self._found_give = np.clip(theta[self._give], 0.0, (1e-3, 1e-2))
            row = np.eye(self.layout.count)[[self._give.start]]
            _, ((variance,),) = self.diagnosis.inference.average(row)
            self._give_std = float(np.sqrt(variance))
        return new

    def _correction(self) -> tuple[Array, float]:
        """Correction of the CoM (3,) m, axes of W, and the mass that the model lacks, kg."""
        mass = float(self.layout.mass_columns @ self._theta)
        scale = self.layout.mass / (self.layout.mass + mass)
        theta = self._theta.copy()
        theta[self._give] -= self._given  # the positions contain it
        return scale * (self._memory.jacobian @ theta), mass

    @property
    def orientation(self) -> Array:
        """R_world_root (3, 3) of the last sample."""
        return self._memory.R[1, 0].copy()

    def point(self, payload: Culprit) -> Array:
        """CoM of the body that carries a payload, at the last sample.

        Args:
            payload: cause of the kind PAYLOAD.

        Returns:
            (3,) m, in the axes of the root link from its origin.
        """
        points = self.layout.plant.point
        body = int(points[points[:, 1] == payload.columns[0], 0][0])
        memory = self._memory
        return np.asarray(memory.R[1, 0].T @ (memory.com[1, body] - memory.root))

    def corrected_urdf(self, payloads: Iterable[Finding]) -> str:
        """The URDF with payloads added to the inertial of the bodies that carry them.

        Args:
            payloads: findings of the kind PAYLOAD, with mass and first moment.

        Returns:
            The URDF as XML.

        Raises:
            UrdfError: a body would have no mass left.
        """
        bodies, plant = self._model.bodies, self.layout.plant
        changes: dict[str, Inertial] = {}
        for found in payloads:
            b = bodies.names.index(self.layout.culprits[found.culprit].parts[0])
            mass, moment = found.parameters[0], plant.triad[b] @ found.parameters[1:]
            total = bodies.mass[b] + mass
            center = (bodies.first_moment[b] + mass * plant.com[b] + moment) / total
            changes |= correct_body(self._model, total, center, b)
        return edit_inertials(self._model.xml, changes)

    def axes(self, culprit: Culprit) -> Array:
        """Axes in which the parameters of a cause are expressed.

        Args:
            culprit: the cause.

        Returns:
            (3, 3) R_body_triad of the body that the cause is about; the identity where it has
            none.
        """
        names = self._model.bodies.names
        part = culprit.parts[0] if culprit.parts else ""
        return (
            self.layout.plant.triad[names.index(part)] if part in names else np.eye(3)
        )

    def estimate(self, time: float) -> Estimate:
        """The estimate from the last sample and the last inference.

        Args:
            time: s, of the sample.

        Returns:
            The estimate, with mode and reason.
        """
        memory, diagnosis = self._memory, self.diagnosis
        falling = time < self._warning_until
        mode, reason = Mode.MOVING if diagnosis.excited else Mode.STANDING, self._reason
        if diagnosis.holding:
            mode = Mode.IN_EVENT
        if memory.phase[0] < 0 and not reason:
            mode = Mode.UNKNOWN
        if diagnosis.implausible:
            reason = reason or (
                "the wrenches do not balance the robot's weight: check their signs, frames and the "
                "order of the feet, and the imu's link"
            )
        if diagnosis.unexplained:
            reason = reason or (
                "no known culprit explains the wrenches: check encoders and force sensors, then "
                "reset"
            )
        if reason:
            mode = Mode.FROZEN
        elif time < self._frozen_until:
            mode, reason = (
                Mode.FALLING,
                "a fall is imminent, or was within the last seconds",
            )
        offset, dm = self._correction()
        dc, (cov, dm_std) = memory.R[1, 0].T @ offset, self._sigma
        com = memory.R[1, 0].T @ (memory.total[1] - memory.root) + dc
        middle = memory.root[:2] + memory.sole[1, :, :2].mean(axis=0)
        return Estimate(
            time, mode, reason, com, cov, dc, dm, dm_std, self._fall.xi - middle,
            float(self._fall.margin[0]), falling,
        )  # fmt: skip
