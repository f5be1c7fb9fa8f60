"""What is wrong with the samples, before an estimator sees them.

Each watch has a memory and says what is wrong and how to fix it, or nothing. What cannot be used is
held back or replaced by NaN; as soon as the input is sound again it passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from com_estimation.trunk.encoder_watch import EncoderWatch
from com_estimation.trunk.gait_watch import GaitTimes, GaitWatch
from com_estimation.trunk.imu_watch import ImuWatch, Trust
from com_estimation.trunk.interface import Sample, Status, TrunkEstimate
from com_estimation.trunk.problems import Problem, Severity, reason, worst
from com_estimation.trunk.timing_watch import Order, TimingWatch
from com_estimation.trunk.torque_watch import TorqueWatch
from com_model import RobotModel
from com_model.legs import Leg

Flags = NDArray[np.bool_]

FROZEN = 0.05  # s, for which all joints repeat themselves until a driver counts as hanging
MASS_SIGMAS = 4.0
MASS_SHARE = 0.02  # of the URDF's mass: less is not worth a word


@dataclass(frozen=True, eq=False)
class Verdict:
    """What to do with a sample.

    Attributes:
        sample: The sample, with NaN for what must not be used; None: it must not be used at all.
        problems: What is wrong.
        restart: The estimator must forget everything: time went back.
        watched: Likewise, for what watches the feet: also samples that an estimator must not use.
    """

    sample: Sample | None
    problems: tuple[Problem, ...] = ()
    restart: bool = False
    watched: Sample | None = None


class Health:
    """Watches the samples of a quadruped.

    Args:
        model: The robot.
        legs: Its legs (com_model.legs.quadruped_legs); other joints are not watched.
        times: How long the phases of its gait may last.
    """

    def __init__(
        self, model: RobotModel, legs: Sequence[Leg], times: GaitTimes | None = None
    ) -> None:
        self._joints = np.concatenate([leg.joints for leg in legs])
        self._names = [model.joint_names[j] for j in self._joints]
        self._efforts = model.effort_limits[self._joints]
        self._range = model.lower[self._joints], model.upper[self._joints]
        self._legs = [leg.name for leg in legs]
        self._times = times
        self.reset()

    def reset(self) -> None:
        """Forget all that was seen."""
        self._timing = TimingWatch()
        self._restart()

    def _restart(self) -> None:
        self._torques = TorqueWatch(self._names, self._efforts)
        self._encoders = EncoderWatch(self._names, *self._range)
        self._imu = ImuWatch()
        self._gait = GaitWatch(self._legs, self._times)
        self._gait_problem: Problem | None = None
        self._last = np.full(2 * len(self._names), np.nan)
        self._changed = 0.0

    def check(self, sample: Sample) -> Verdict:
        """Look at a sample, newest last."""
        order = self._timing.order(sample.time)
        if order is Order.DROP:
            return Verdict(None, _given(self._timing.problem()))
        restart = order is Order.RESTART
        if restart:
            self._restart()
        repeated = self._repeated(sample)
        if repeated > 0.0:  # a copy tells nothing, the watches included
            problems = _given(_hanging(repeated), self._gait_problem, self._timing.problem())
            return Verdict(None, problems, restart)
        joints, time = self._joints, sample.time
        bad, torque = self._torques.update(time, sample.effort[joints])
        encoder = self._encoders.update(time, sample.position[joints], sample.velocity[joints])
        trust, imu = self._imu.update(time, sample.angular_velocity, sample.specific_force)
        if encoder:  # nothing is known of the feet then
            self._gait, self._gait_problem = GaitWatch(self._legs, self._times), None
        problems = _given(torque, encoder, self._gait_problem, imu, self._timing.problem())
        cleaned = _cleaned(sample, joints[bad], trust)
        held = worst(problems) is Severity.HOLD
        return Verdict(None if held else cleaned, problems, restart, None if encoder else cleaned)

    def watch_gait(
        self,
        time: float,
        contact: Flags,
        known: Flags,
        stance: Flags | None = None,
        tilt: float = 0.0,
        load: float = 1.0,
    ) -> None:
        """Take in which feet stand; what is wrong is said from the next sample on.

        Args:
            time: s.
            contact: (4,) the feet that stand, by their forces.
            known: (4,) the feet whose forces are known.
            stance: (4,) the legs that should stand by the gait's phase; None when not known.
            tilt: rad, of the root link against gravity; NaN when not known.
            load: Of the weight that the feet carry together; NaN when not known.
        """
        self._gait_problem = self._gait.update(time, contact, known, stance, tilt, load)

    def _repeated(self, sample: Sample) -> float:
        """For how long all joints have repeated themselves, efforts and positions alike, s."""
        said = np.concatenate((sample.position[self._joints], sample.effort[self._joints]))
        if not np.array_equal(said, self._last):
            self._last, self._changed = said, sample.time
        return sample.time - self._changed


def _hanging(repeated: float) -> Problem | None:
    if repeated < FROZEN:
        return None
    return Problem(
        Severity.HOLD,
        f"joint_states repeats itself for {repeated:.2f} s under new stamps: its driver hangs",
    )


def mass_problem(estimate: TrunkEstimate, urdf_mass: float) -> Problem | None:
    """A trunk that weighs something else than the URDF says, kg."""
    difference = estimate.mass - urdf_mass
    allowed = max(MASS_SIGMAS * estimate.mass_std, MASS_SHARE * urdf_mass)
    if estimate.status is not Status.CONVERGED or not abs(difference) > allowed:
        return None
    more = "more" if difference > 0.0 else "less"
    return Problem(
        Severity.NOTE,
        f"the trunk weighs {abs(difference):.3g} kg {more} than the URDF says ({urdf_mass:.4g} "
        "kg): where that is no payload, correct the masses in the URDF, or the unit of effort",
    )


def with_problems(estimate: TrunkEstimate, problems: Iterable[Problem]) -> TrunkEstimate:
    """The estimate as it may be published while there are problems.

    When samples are held back it keeps its numbers as DEGRADED, or is UNKNOWN if it has none; when
    something is missing a CONVERGED one becomes DEGRADED; a note changes the reason only.
    """
    problems = tuple(problems)
    grave = worst(problems)
    if grave is None:
        return estimate
    status = estimate.status
    if status is not Status.UNKNOWN and (
        grave is Severity.HOLD or (grave is Severity.DEGRADE and status is Status.CONVERGED)
    ):
        status = Status.DEGRADED
    said = reason(problems)
    text = f"{said}; {estimate.reason}" if estimate.reason else said
    held = grave is Severity.HOLD
    return replace(
        estimate,
        status=status,
        reason=said if held else text,
        observable=np.zeros(3, dtype=np.bool_) if held else estimate.observable,
    )


def _given(*problems: Problem | None) -> tuple[Problem, ...]:
    return tuple(problem for problem in problems if problem is not None)


def _cleaned(sample: Sample, bad_efforts: NDArray[np.int64], trust: Trust) -> Sample:
    """The sample with NaN for what must not be used."""
    if bad_efforts.size:
        effort = sample.effort.copy()
        effort[bad_efforts] = np.nan
        sample = replace(sample, effort=effort)
    if trust < Trust.ALL:
        sample = replace(sample, specific_force=np.full(3, np.nan))
    if trust < Trust.TURNING:
        unknown = np.full((3, 3), np.nan)
        sample = replace(sample, angular_velocity=unknown[0], R_world_imu=unknown)
    return sample
