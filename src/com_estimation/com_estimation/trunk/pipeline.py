"""Processing of a sample for the trunk: checks, estimator and measurement of the feet's forces.

Each check has a state and reports what is wrong and how to fix it, or nothing. Readings that
cannot be used are held back or replaced by NaN; as soon as the input is good again it passes.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import inf, isnan, nan

import numpy as np
from numpy.typing import NDArray

from com_estimation.trunk.gait_check import GaitCheck
from com_estimation.trunk.ground_reaction import ForceMeter
from com_estimation.trunk.interface import Sample, TrunkEstimate, TrunkEstimator
from com_estimation.trunk.sensor_checks import (
    EncoderCheck,
    ImuCheck,
    Problem,
    Severity,
    TorqueCheck,
    Trust,
    reason,
    worst,
)
from com_model import RobotModel
from com_model.legs import Leg
from com_model.status import TRUSTED, Status


class Order(Enum):
    """Decision about a sample by its time.

    Attributes:
        USE: later than the one before.
        DROP: repeated, late, or without a valid time.
        RESTART: time went back far enough for another recording.
    """

    USE = "use"
    DROP = "drop"
    RESTART = "restart"


class TimingCheck:
    """Detects samples whose times are repeated, late, irregular, or too slow.

    Args:
        rate_hz: 1/s, to which the user has set the driver; None: unknown, then the rate must be
            at least 150 Hz.
    """

    def __init__(self, rate_hz: float | None = None) -> None:
        # Hz, and a fraction of the configured rate
        self._least_hz = min(150.0, 0.8 * (rate_hz or math.inf))
        self._begin(-math.inf)

    def _begin(self, time: float) -> None:
        self._last = time
        self._period = math.nan  # s, present
        self._usual = math.nan
        self._count = 0  # periods so far
        self._gaps = 0.0  # fraction of gaps
        self._dropped = ("", -math.inf)  # what was wrong, and when

    def order(self, time: float) -> Order:
        """Decides what to do with a sample by its time.

        Args:
            time: s; not finite where the stamp is wrong.
        """
        if not math.isfinite(time):
            self._dropped = (
                "a stamp is not finite: check the driver's clock",
                self._last,
            )
            return Order.DROP
        if time > self._last:
            self._measure(time)
            return Order.USE
        # s that stamps go back, above which it is another recording and no late sample
        if self._last - time > 0.5:
            # a single stamp before the clock started is no fault
            again = self._count > 0
            self._begin(time)
            if again:
                self._dropped = "the stamps went back: everything starts again", time
            return Order.RESTART
        text = "a stamp of joint_states comes twice: is there a second driver?"
        if time != self._last:
            text = f"a stamp of joint_states went back by {self._last - time:.4f} s: samples must "
            text += "come in order, from one driver"
        self._dropped = f"{text} Such samples are left out", self._last
        return Order.DROP

    def problem(self) -> Problem | None:
        """A DEGRADE for times that are, or were recently, wrong or too slow; or None."""
        text, at = self._dropped
        # s, for which a repeated or late sample is reported
        if text and self._last - at < 1.0:
            return Problem(Severity.DEGRADE, text)
        if math.isnan(self._period):
            return None
        rate, usual = 1.0 / self._period, 1.0 / self._usual
        if rate < self._least_hz:
            text = (
                f"joint_states comes at {rate:.0f} Hz: raise it to {self._least_hz:.0f} Hz or "
                "more, 1000 Hz at best, or set expected_rate_hz to the rate that is intended"
            )
        # of the samples come after a gap: irregular
        elif self._gaps > 0.05:
            text = (
                f"{100 * self._gaps:.0f} % of the joint_states come after a gap: check the "
                "network and the load of the computer"
            )
        # ratio of the present rate and the usual one that counts as another rate
        elif max(rate / usual, usual / rate) >= 1.4:
            text = (
                f"joint_states comes at {rate:.0f} Hz and came at {usual:.0f} Hz before: check "
                "the driver and the load of the computer"
            )
        else:
            return None
        return Problem(Severity.DEGRADE, text)

    def _measure(self, time: float) -> None:
        dt, self._last = time - self._last, time
        if not math.isfinite(dt):
            return
        longest = 2.5  # usual periods between samples; beyond, there is a gap
        self._count += 1
        # samples, among which a first pause is not taken for the usual period
        paused = self._count <= 50 and dt < self._usual / longest
        if math.isnan(self._usual) or paused:
            self._period = self._usual = dt
            return
        gap = dt > longest * self._usual
        self._gaps += min(1.0, self._period / 1.0) * (gap - self._gaps)
        dt = min(dt, 3.0 * self._period)  # one pause does not change the rate
        # s, memory of the present period
        self._period += min(1.0, dt / 0.3) * (dt - self._period)
        # s, memory of the usual one
        self._usual += min(1.0, dt / 10.0) * (dt - self._usual)


@dataclass(frozen=True, eq=False)
class CheckedSample:
    """A sample after the checks, and what is wrong with it.

    Attributes:
        sample: for the estimator, with NaN for readings that must not be used; None: not usable.
        problems: what is wrong.
        restart: the estimator must be reset: time went back.
        watched: for the measurement of the feet's forces; also samples that an estimator must
            not use. None: not usable.
    """

    sample: Sample | None
    problems: tuple[Problem, ...] = ()
    restart: bool = False
    watched: Sample | None = None


class InputChecks:
    """Checks the samples of a quadruped's legs: times, encoders, torques, IMU and gait.

    Args:
        model: the robot, for names and limits of the joints.
        legs: its legs.
        rate_hz: 1/s, of the samples; see TimingCheck.

    Attributes:
        gait: checks the contacts of the feet; updated by the pipeline.
    """

    def __init__(
        self, model: RobotModel, legs: Sequence[Leg], rate_hz: float | None = None
    ) -> None:
        self._joints = np.concatenate([leg.joints for leg in legs])
        self._names = [model.joint_names[j] for j in self._joints]
        self._efforts = model.effort_limits[self._joints]
        self._range = model.lower[self._joints], model.upper[self._joints]
        self._legs = [leg.name for leg in legs]
        self._rate_hz = rate_hz
        self.reset()

    def reset(self) -> None:
        """Forgets all samples."""
        self._timing = TimingCheck(self._rate_hz)
        self._restart()

    def _restart(self) -> None:
        self._torques = TorqueCheck(self._names, self._efforts)
        self._encoders = EncoderCheck(self._names, *self._range)
        self._imu = ImuCheck()
        self.gait = GaitCheck(self._legs)
        self._last = np.full(2 * len(self._names), np.nan)
        self._changed = 0.0

    def check(self, sample: Sample) -> CheckedSample:
        """Checks a sample.

        Args:
            sample: sensor readings of one instant.

        Returns:
            What of the sample may be used, and what is wrong.
        """
        order = self._timing.order(sample.time)
        if order is Order.DROP:
            return CheckedSample(None, _found(self._timing.problem()))
        restart = order is Order.RESTART
        if restart:
            self._restart()
        repeated = self._repeated(sample)  # s; for 0.05 s: the driver hangs
        if repeated > 0.0:  # a copy has no information
            text = f"joint_states repeats itself for {repeated:.2f} s under new stamps: its driver "
            hanging = (
                Problem(Severity.HOLD, f"{text}hangs") if repeated >= 0.05 else None
            )
            problems = _found(hanging, self.gait.problem, self._timing.problem())
            return CheckedSample(None, problems, restart)
        joints, time = self._joints, sample.time
        bad, torque = self._torques.update(time, sample.effort[joints])
        encoder = self._encoders.update(
            time, sample.position[joints], sample.velocity[joints]
        )
        trust, imu = self._imu.update(
            time,
            sample.angular_velocity,
            sample.specific_force,
            attitude=math.isfinite(sample.R_world_imu[2].sum()),
        )
        if encoder:  # nothing is known of the feet then
            self.gait = GaitCheck(self._legs)
        problems = _found(
            torque, encoder, self.gait.problem, imu, self._timing.problem()
        )
        cleaned = _cleaned(sample, joints[bad], trust)
        held = worst(problems) is Severity.HOLD or bad.all()
        return CheckedSample(
            None if held else cleaned, problems, restart, None if encoder else cleaned
        )

    def _repeated(self, sample: Sample) -> float:
        """Time s for which positions and efforts of all joints have been the same."""
        values = np.concatenate(
            (sample.position[self._joints], sample.effort[self._joints])
        )
        if not np.array_equal(values, self._last):
            self._last, self._changed = values, sample.time
        return sample.time - self._changed


def mass_problem(
    estimate: TrunkEstimate,
    urdf_mass: float,
    sigmas: float = 4.0,
    fraction: float = 0.02,
) -> Problem | None:
    """Reports a trunk whose mass clearly differs from the URDF's.

    Args:
        estimate: of the trunk.
        urdf_mass: kg, of the trunk in the URDF.
        sigmas: standard deviations, by which the masses must differ.
        fraction: of the URDF's mass, by which they must differ, too.

    Returns:
        A NOTE when the masses differ by more than both; None otherwise, and for an estimate that is
        not USABLE or CONVERGED.
    """
    difference = estimate.mass - urdf_mass
    allowed = max(sigmas * estimate.mass_std, fraction * urdf_mass)
    if estimate.status not in TRUSTED or not abs(difference) > allowed:
        return None
    more = "more" if difference > 0.0 else "less"
    return Problem(
        Severity.NOTE,
        f"the trunk weighs {abs(difference):.3g} kg {more} than the URDF says ({urdf_mass:.4g} "
        "kg): where that is no payload, correct the masses in the URDF, or the unit of effort",
    )


def with_problems(
    estimate: TrunkEstimate, problems: Iterable[Problem]
) -> TrunkEstimate:
    """The estimate as it may be published while there are problems.

    When samples are held back it keeps its numbers as DEGRADED, or is UNKNOWN if it has none;
    when an input is degraded, a USABLE or CONVERGED one becomes DEGRADED; a note changes the
    reason only.

    Args:
        estimate: from the estimator.
        problems: of the input, at this moment.
    """
    problems = tuple(problems)
    grave, status, text = worst(problems), estimate.status, reason(problems)
    if grave is None:
        return estimate
    held = grave is Severity.HOLD
    missing = grave is Severity.DEGRADE and status in TRUSTED
    if status is not Status.UNKNOWN and (held or missing):
        status = Status.DEGRADED
    if held:
        nothing = np.zeros(3, dtype=np.bool_)
        return replace(estimate, status=status, reason=text, observable=nothing)
    text = f"{text}; {estimate.reason}" if estimate.reason else text
    return replace(estimate, status=status, reason=text)


def _found(*problems: Problem | None) -> tuple[Problem, ...]:
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


SETTLING = 0.5  # s after a fault or a gap, for which an estimate remains DEGRADED


class TrunkPipeline:
    """Turns samples of any quality into estimates with a status and a reason.

    Args:
        estimator: receives the samples that are good enough.
        health: checks each sample.
        meter: measures the forces on the feet, also while samples are held back.
        urdf_mass: kg, of the trunk in the URDF; an estimate far from it is reported.

    Attributes:
        estimator: as given.
        meter: as given.
        estimate: the last one, with the problems of the input.
        restarts: number of times that the stamps went back and everything restarted.
        held: number of samples that were held back.
        seen: number of all samples.
    """

    def __init__(
        self,
        estimator: TrunkEstimator,
        health: InputChecks,
        meter: ForceMeter,
        urdf_mass: float,
    ) -> None:
        self.estimator = estimator
        self.meter = meter
        self._health = health
        self._urdf_mass = urdf_mass
        self.seen = self.held = self.restarts = 0
        self.reset()

    @property
    def dropped(self) -> int:
        """Number of samples that would have made the estimator's state not finite."""
        return getattr(self.estimator, "dropped", 0)

    def reset(self) -> None:
        """Forgets all samples."""
        self._health.reset()
        self._restart()
        self.estimate = self.estimator.latest

    def _restart(self) -> None:
        self.estimator.reset()
        self.meter.reset()
        self._mistrusts = False  # torques that the driver gives
        self._said = -inf  # s, time of the last estimate that was given
        self._used = inf  # s, time of the last sample that reached the estimator
        self._settled = -inf  # s, from when on an estimate may be usable
        self._fault = ""  # what was wrong before that
        # s; NaN: the input is good, and so was the last estimate
        self._degraded_since = nan

    def update(
        self, sample: Sample, problems: Sequence[Problem] = ()
    ) -> TrunkEstimate | None:
        """Processes a sample.

        Args:
            sample: sensor readings of one instant.
            problems: known to the caller; a HOLD among them keeps the sample from the estimator.

        Returns:
            A new estimate, or the old one with the problems when there has been no new one for
            20 ms; None otherwise.
        """
        self.seen += 1
        verdict = self._health.check(sample)
        if verdict.restart:
            self.restarts += 1
            self._restart()
        found = (*problems, *verdict.problems)
        usable = verdict.sample is not None and worst(problems) is not Severity.HOLD
        forces = None if verdict.watched is None else self.meter.update(verdict.watched)
        if forces is not None:
            meter = self.meter
            feet = forces.contact, meter.known, sample.stance
            self._health.gait.update(
                sample.time,
                *feet,
                meter.tilt,
                meter.load,
                meter.clear,
                meter.lift,
            )
        fresh = None
        if usable and verdict.sample is not None:
            lost = np.isnan(verdict.sample.effort) & np.isfinite(sample.effort)
            if lost.any() and not self._mistrusts:
                # a torque that is withdrawn was wrong before that was noticed
                self.estimator.step_back()
            self._mistrusts = bool(lost.any())
            # s between samples that reach the estimator
            if (pause := sample.time - self._used) > 0.1:
                if sample.time >= self._settled:  # else the fault has made the gap
                    self._fault = (
                        f"joint_states with its imu did not come for {pause:.2f} s"
                    )
                self._settled = sample.time + SETTLING
            self._used = sample.time
            fresh = self.estimator.update(verdict.sample)
        self.held += worst(found) is Severity.HOLD
        return self._say(sample.time, fresh, found)

    def hold(self, time: float, problem: Problem) -> TrunkEstimate | None:
        """Reports that there is no sample, if no estimate was returned for 20 ms.

        Args:
            time: s, now.
            problem: why there is no sample, and how to fix it.

        Returns:
            The last estimate with the problem; None when an estimate was returned just before.
        """
        return self._say(time, None, (problem,))

    def _say(
        self, time: float, fresh: TrunkEstimate | None, problems: tuple[Problem, ...]
    ) -> TrunkEstimate | None:
        faulty = (worst(problems) or Severity.NOTE) >= Severity.DEGRADE
        if faulty:
            self._settled, self._fault = time + SETTLING, reason(problems)
            if isnan(self._degraded_since):
                self._degraded_since = time
        if fresh is None and 0.0 <= time - self._said < 0.02:
            return None
        self._said = time
        latest = fresh or replace(self.estimator.latest, time=time)
        if time < self._settled and not faulty:
            problems = (
                *problems,
                Problem(
                    Severity.DEGRADE,
                    "a moment ago the input was faulty or interrupted, the estimate settles "
                    f"({self._fault})",
                ),
            )
        mass = mass_problem(latest, self._urdf_mass)
        self.estimate = self._with_since(
            with_problems(latest, problems if mass is None else (*problems, mass))
        )
        return self.estimate

    def _with_since(self, estimate: TrunkEstimate) -> TrunkEstimate:
        """The estimate; if it is DEGRADED, its reason says since which stamp."""
        if estimate.status is not Status.DEGRADED:
            self._degraded_since = nan
            return estimate
        if isnan(self._degraded_since):
            self._degraded_since = estimate.time
        since = f"{estimate.reason}; since stamp {self._degraded_since:.2f} s"
        return replace(estimate, reason=since)
