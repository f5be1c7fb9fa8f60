"""Estimators of the trunk on runs of trotting robots: their estimates against the truth over time.

    result = follow(Case(TrotRun("scalf2", offset=(-0.03, 0.1, 0.0), gait=STANDS), (FLOATING,)))
    result.tracks[FLOATING].mean_error()

The robot stands for a second, which the estimators see, and lifts its first feet at LIFT_OFF.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from baselines.trunk_least_squares import BelievedUrdf, RecursiveLeastSquares
from numpy.typing import NDArray
from scipy.stats import chi2
from trot_lab import TrotLog, TrotRun, run_trot

from com_estimation.trunk.ding import DingEstimator, DingOptions
from com_estimation.trunk.floating_base import FloatingBaseEstimator
from com_estimation.trunk.interface import Sample, TrunkEstimator
from com_model import quadruped_legs
from com_model.status import Status

Array = NDArray[np.float64]

LIFT_OFF = 1.0  # s of standing before
STANDS = {"start_delay": LIFT_OFF}
SETTLED = 1.0  # s after LIFT_OFF, from when on errors count
EVERY = 5  # samples, of which one is kept

FLOATING = "floating base"
WITHOUT_ACCELEROMETER = "floating base, no accelerometer"
DING = "[Ding]"
DING_ALWAYS = "[Ding], every half gait"
LEAST_SQUARES = "recursive least squares"
URDF = "URDF believed"
NAN3 = np.full(3, np.nan)


@dataclass(frozen=True, eq=False)
class Case:
    """A run, and the estimators that see it."""

    run: TrotRun
    methods: Sequence[str] = (FLOATING,)


@dataclass(frozen=True, eq=False)
class Track:
    """What an estimator said in a run, at N times.

    Attributes:
        time: (N,) s since LIFT_OFF.
        error: (N, 3) m, estimated trunk CoM minus the true one; NaN while it says none.
        covariance: (N, 3, 3) m^2, of that.
        mass_error: (N,) kg, of the trunk's mass.
        mass_std: (N,) kg, its standard deviation.
        status: (N,) Status.
        reason: The last one.
        payload_changed_at: s since LIFT_OFF, as said at the end; NaN: never.
    """

    time: Array
    error: Array
    covariance: Array
    mass_error: Array
    mass_std: Array
    status: NDArray[np.int64]
    reason: str
    payload_changed_at: float

    def settled(self) -> Array:
        """Absolute errors (M, 3) m from SETTLED on."""
        return np.abs(self.error[self.time >= SETTLED])

    def distance(self) -> Array:
        """Lengths (N,) m of the error in x and y."""
        return np.asarray(np.linalg.norm(self.error[:, :2], axis=1))

    def distance_at(self, time: float) -> float:
        """Length m of the error in x and y at a time since LIFT_OFF."""
        return float(self.distance()[np.searchsorted(self.time, time - 1e-9)])

    def time_to(self, limit: float, start: float) -> float:
        """How long, s, until the error in x and y stays below a limit; inf: not in this run."""
        after = self.time >= start
        bad = np.flatnonzero(~(self.distance()[after] < limit))
        if bad.size == 0:
            return 0.0
        later = self.time[after][bad[-1] + 1 :]
        return float(later[0] - start) if later.size else np.inf

    def squares(self, time: float = np.inf) -> Array:
        """Squared normalised errors of x, y, z and of all three together, (4,), at a time."""
        k = min(int(np.searchsorted(self.time, time - 1e-9)), len(self.time) - 1)
        error, covariance = self.error[k], self.covariance[k]
        axes = error**2 / np.diag(covariance)
        return np.array([*axes, error @ np.linalg.solve(covariance, error)])


@dataclass(frozen=True, eq=False)
class Followed:
    """Outcome of a case.

    Attributes:
        case: What it was.
        tracks: By method.
        tilt: rad, largest of the trunk.
        trunk_length: m, from the hind hips to the front hips.
    """

    case: Case
    tracks: dict[str, Track]
    tilt: float
    trunk_length: float


def follow(case: Case) -> Followed:
    """Simulates a run and lets estimators see it."""
    log = run_trot(case.run)
    hips = np.array([leg.hip for leg in quadruped_legs(log.model, log.config)])
    return Followed(
        case=case,
        tracks={method: track(log, method) for method in case.methods},
        tilt=float(np.arccos(np.clip(log.R_world_root[:, 2, 2], -1.0, 1.0)).max()),
        trunk_length=float(
            np.linalg.norm(hips[:2].mean(axis=0) - hips[2:].mean(axis=0))
        ),
    )


def track(log: TrotLog, method: str) -> Track:
    """Feeds an estimator with all samples of a log."""
    estimator = make_estimator(log, method)
    rows = []
    for k, sample in enumerate(samples(log, method)):
        estimator.update(sample)
        if k % EVERY == EVERY - 1:
            rows.append((k, estimator.latest))
    kept = np.array([k for k, _ in rows])
    found = [estimate for _, estimate in rows]
    return Track(
        time=log.time[kept] - LIFT_OFF,
        error=np.array([e.com for e in found]) - log.trunk_com[kept],
        covariance=np.array([e.covariance for e in found]),
        mass_error=np.array([e.mass for e in found]) - log.trunk_mass[kept],
        mass_std=np.array([e.mass_std for e in found]),
        status=np.array([int(e.status) for e in found]),
        reason=found[-1].reason,
        payload_changed_at=found[-1].payload_changed_at - LIFT_OFF,
    )


def make_estimator(log: TrotLog, method: str) -> TrunkEstimator:
    """An estimator for the robot of a log, with default options."""
    if method in (FLOATING, WITHOUT_ACCELEROMETER):
        return FloatingBaseEstimator(log.model, log.config)
    if method in (DING, DING_ALWAYS):
        return DingEstimator(
            log.model, log.config, DingOptions(first_half_gait_only=method == DING)
        )
    if method == LEAST_SQUARES:
        return RecursiveLeastSquares(log.model, log.config)
    return BelievedUrdf(log.model, log.config)


def samples(log: TrotLog, method: str) -> Iterator[Sample]:
    """Samples of a log; those without accelerometer lack the specific force."""
    for sample in log.samples():
        if method == WITHOUT_ACCELEROMETER:
            yield replace(sample, specific_force=NAN3)
        else:
            yield sample


def mean_error(tracks: Sequence[Track], while_known: bool = False) -> Array:
    """Mean absolute errors (3,) m of x, y, z over runs and times from SETTLED on.

    Args:
        tracks: Of a method.
        while_known: Leave out times when it does not say any; else they make the mean NaN.
    """
    errors = np.concatenate([t.settled() for t in tracks])
    if while_known:
        errors = errors[np.isfinite(errors[:, 0])]
    return np.asarray(errors.mean(axis=0))


def max_error(tracks: Sequence[Track], while_known: bool = False) -> Array:
    """Largest absolute errors (3,) m of x, y, z; see mean_error."""
    errors = np.concatenate([t.settled() for t in tracks])
    if while_known:
        errors = errors[np.isfinite(errors[:, 0])]
    return np.asarray(errors.max(axis=0))


def band(degrees: int, count: int) -> tuple[float, float]:
    """95 % band of the mean of so many squared normalised errors, over degrees of freedom.

    Args:
        degrees: Of freedom of one of them.
        count: Of independent runs.
    """
    low, high = chi2.ppf([0.025, 0.975], degrees * count) / (degrees * count)
    return float(low), float(high)


def mean_squares(tracks: Sequence[Track], time: float = np.inf) -> Array:
    """NEES: means over runs of Track.squares over their degrees of freedom, (4,), at a time."""
    means = np.mean([t.squares(time) for t in tracks], axis=0)
    return np.asarray(means / [1.0, 1.0, 1.0, 3.0])


def false_alarms(tracks: Sequence[Track]) -> int:
    """In how many runs without a payload a change of it was noticed."""
    return sum(bool(np.isfinite(t.payload_changed_at)) for t in tracks)


def statuses(tracks: Sequence[Track]) -> dict[str, int]:
    """How often each status stood at the end."""
    last = [Status(int(t.status[-1])).name for t in tracks]
    return {name: last.count(name) for name in sorted(set(last))}
