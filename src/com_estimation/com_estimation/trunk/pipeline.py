"""Processing of a sample for the trunk: checks, estimator and measurement of the feet's forces."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isnan, nan

import numpy as np

from com_estimation.trunk.ground_reaction import ForceMeter
from com_estimation.trunk.input_checks import InputChecks, mass_problem, with_problems
from com_estimation.trunk.interface import Sample, TrunkEstimate, TrunkEstimator
from com_estimation.trunk.sensor_checks import Problem, Severity, reason, worst
from com_model.status import Status

SETTLING = 0.5  # s after a fault or a gap, for which an estimate remains DEGRADED

_SETTLES = "a moment ago the input was faulty or interrupted, the estimate settles ({})"
_GAP = "joint_states with its imu did not come for {:.2f} s"


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
                    self._fault = _GAP.format(pause)
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
                Problem(Severity.DEGRADE, _SETTLES.format(self._fault)),
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
