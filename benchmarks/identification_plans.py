"""How many random postures determine as much as planned ones.

Random postures are what one takes without a planner: joints anywhere in their limits, each place as
likely, soles brought to the ground, and taken where the robot balances with the same margin, is
strong enough and does not touch itself. Accuracy is that of the identification's covariance, whose
honesty the NEES shows; so the curves are smooth and need no repetition of noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from identification_sagittal import part_rows
from identification_scenario import GRAVITY, NOISE, SAMPLES, Array, Scenario

from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import SensorPrediction
from com_identification.regression.rows import whiten
from com_identification.regression.statics import Statics, prediction_rows
from com_identification.settings import PlanOptions

Stand = tuple[int, ...]
Errors = Mapping[str, float]
Measure = Callable[[Array], Errors]

STANCES: tuple[Stand, ...] = ((0, 1), (0,), (1,))
COUNTS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192)
SHUFFLES = 8
MM = 1e3


@dataclass(frozen=True)
class Comparison:
    """One row of the table.

    Attributes:
        setting: What was planned.
        accuracy: Name of the accuracy.
        planned: Number of planned postures.
        error: Their error, mm.
        same_number: Error of as many random ones, mm.
        random: Number of random ones with the error of the planned ones; NaN beyond the curve.
    """

    setting: str
    accuracy: str
    planned: int
    error: float
    same_number: float
    random: float


class Informer:
    """What postures determine of a robot's bodies.

    Args:
        scenario: The robot.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.statics = scenario, Statics(scenario.model)
        self.factor = scenario.priors.factor
        self._builder = ObservationModel(scenario.model, scenario.feet, NOISE)
        self._zero = np.zeros(self._builder.errors.count)
        parameters = scenario.priors.parameters
        self._prediction = SensorPrediction(
            self.statics, scenario.feet, parameters, GRAVITY
        )

    def up(self, q: Array, stand: Stand) -> Array:
        """Against gravity (3,), root axes."""
        sole = self.scenario.model.link_index(self.scenario.feet[stand[0]].frame)
        R, _ = self.statics.link_frames(self.statics.poses(q[None]), [sole])
        return np.asarray(R[0, 0, :, 2])

    def information(self, q: Array, stand: Stand) -> Array:
        """A^T A (U, U) of one posture, in prior standard deviations."""
        up = self.up(q, stand)
        posture = self._prediction.posture(q, up, stand, efforts=False, samples=SAMPLES)
        rows = self._builder.linearize(
            posture, self.scenario.priors.parameters, self._zero
        )
        A = whiten(rows.bodies @ self.factor, rows.covariance)
        return np.asarray(A.T @ A)

    def prediction(self, postures: Sequence[tuple[Array, Stand]]) -> Array:
        """C (3 N, U) of the predicted CoM, perpendicular to gravity, m."""
        Q = np.array([q for q, _ in postures])
        up = np.array([self.up(q, stand) for q, stand in postures])
        parameters = self.scenario.priors.parameters
        slopes = prediction_rows(self.statics, self.statics.poses(Q), up, parameters)
        return np.asarray(slopes.reshape(-1, len(parameters)) @ self.factor)


def whole_robot(informer: Informer, held_out: Sequence[tuple[Array, Stand]]) -> Measure:
    """Errors of the predicted CoM, and of the combinations of CoMs that postures determine."""
    C = informer.prediction(held_out)
    target = C.T @ C / len(held_out)
    _, s, Vt = np.linalg.svd(C, full_matrices=False)
    observable = Vt[s > 1e-9 * s[0]]

    def errors(scatter: Array) -> Errors:
        combined = observable @ scatter @ observable.T
        std = informer.scenario.priors.com_std.max() * MM
        return {
            "predicted CoM": MM * float(np.sqrt(np.trace(scatter @ target))),
            "combinations, RMS": std
            * float(np.sqrt(np.trace(combined) / len(observable))),
            "combinations, geometric": std
            * float(np.exp(np.linalg.slogdet(combined)[1] / 2.0 / len(observable))),
        }

    return errors


def leg(informer: Informer) -> Measure:
    """Errors (lengths) of the CoMs of trunk, thighs and shanks in the sagittal plane."""
    rows = {part: columns @ informer.factor for part, columns in part_rows().items()}

    def errors(scatter: Array) -> Errors:
        return {
            part: MM * float(np.sqrt(np.trace(L @ scatter @ L.T)))
            for part, L in rows.items()
        }

    return errors


def scatter_of(information: Sequence[Array]) -> Array:
    """The covariance after postures, in prior standard deviations."""
    return np.asarray(
        np.linalg.inv(np.eye(len(information[0])) + np.sum(information, axis=0))
    )


def random_curve(
    information: Sequence[Array], measure: Measure, seed: int = 0
) -> dict[str, tuple[Array, Array]]:
    """Numbers of random postures and their errors, by the accuracy's name."""
    rng = np.random.default_rng(seed)
    counts = [count for count in COUNTS if count <= len(information)]
    errors: dict[str, list[float]] = {}
    for count in counts:
        shuffled: dict[str, list[float]] = {}
        for _ in range(SHUFFLES):
            some = [information[i] for i in rng.permutation(len(information))[:count]]
            for name, value in measure(scatter_of(some)).items():
                shuffled.setdefault(name, []).append(value)
        for name, values in shuffled.items():
            errors.setdefault(name, []).append(float(np.mean(values)))
    return {
        name: (np.array(counts), np.array(values)) for name, values in errors.items()
    }


def compare(
    setting: str,
    informer: Informer,
    plan: PlanOptions,
    counts: Sequence[int],
    curve: Mapping[str, tuple[Array, Array]],
    measure: Measure,
) -> list[Comparison]:
    """Plans postures and finds how many random ones do the same."""
    feet = [foot.frame for foot in informer.scenario.feet]
    results = []
    for count in counts:
        planned = informer.scenario.planned(plan, count)
        stands = [
            tuple(feet.index(name) for name in posture.feet) for posture in planned
        ]
        information = [
            informer.information(posture.q, stand)
            for posture, stand in zip(planned, stands, strict=True)
        ]
        for name, error in measure(scatter_of(information)).items():
            numbers, errors = curve[name]
            same = float(
                np.exp(np.interp(np.log(count), np.log(numbers), np.log(errors)))
            )
            results.append(
                Comparison(
                    setting, name, count, error, same, _equal(numbers, errors, error)
                )
            )
    return results


def _equal(numbers: Array, errors: Array, error: float) -> float:
    """The number at which a falling curve has an error; beyond it as its last part goes on."""
    if error > errors[0]:
        return float("nan")
    if error >= errors[-1]:
        return float(
            np.exp(np.interp(-np.log(error), -np.log(errors), np.log(numbers)))
        )
    slope = np.log(numbers[-1] / numbers[-3]) / np.log(errors[-3] / errors[-1])
    return float(numbers[-1] * (errors[-1] / error) ** slope)
