"""Plans the postures to capture next: the most informative ones in which the robot can stand.

What is known is the covariance P of the whitened parameters, those of the bodies first, then the
constant errors of the sensors; a posture with whitened rows A updates it to (P^-1 + A^T A)^-1. With
P' that of the errors if the bodies were known, its score is one of

  parameters   1/2 log det(1 + A P A^T) - 1/2 log det(1 + A P' A^T), the information gain on the
               bodies (D-optimality)
  prediction   trace((1 + A P A^T)^-1 A P T P A^T): the decrease of the mean variance trace(P T) of
               the predicted CoM, T the mean of C^T C over postures (I-optimality)

Postures are chosen greedily from many random ones in which the robot stands with a margin, inside
its limits, strong enough and without collision. Then each in turn is exchanged for the one with the
best score in addition to the others: another candidate, or a modification of it.

The efficiency of a plan of N postures is relative to the best plan. A plan has the information
M = P^-1 + sum_i w_i A_i^T A_i with whole numbers w_i that add up to N. With any w_i >= 0 of that
sum the best M is found by convex optimisation, and no plan can be better [Pukelsheim, Optimal
Design of Experiments, ch. 9]. What is made large, f(M), is the logarithm of 1 over a standard
deviation, concave for both criteria; so with the slopes s_i = tr(A_i G A_i^T), G = df/dM,

  f(M*) <= f(M) + N max_i s_i - sum_i w_i s_i   for any w,

which is a bound even before the weights have converged. Where a number of postures should be on one
foot, these and the others are groups, each with its own sum and its own maximum.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from com_identification.planning.feasible import Entry, FeasiblePostures
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture, SensorPrediction
from com_identification.regression.priors import BodyPriors, body_priors
from com_identification.regression.result import Progress
from com_identification.regression.rows import whiten
from com_identification.regression.statics import prediction_rows
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array, Flags, FrozenArrays

Score = Callable[[Array, Array], Array]
"""Takes P (U, U) and the rows of m postures (m, R, U); returns their scores, (m,)."""
Objective = Callable[[Array], tuple[float, Array]]
"""Takes information M (U, U); returns f(M) and its slope (U, U)."""
_ROUNDS = 2  # of exchange
_DRIFTED = 10.0  # steps of the sensors' drift, as white noise


def information_gain(scatter: Array, rows: Array, bodies: int | None = None) -> Array:
    """Computes the information gains (m,), nats, of m postures on the bodies.

    Args:
        scatter: (U, U) covariance P of the parameters before.
        rows: (m, R, U) whitened rows of the postures.
        bodies: number of the bodies' parameters, which are the first; None: all.
    """

    def volume(P: Array) -> Array:
        inner = np.eye(rows.shape[1]) + (rows @ P) @ rows.transpose(0, 2, 1)
        return np.asarray(np.linalg.slogdet(inner)[1] / 2.0)

    if bodies is None or bodies == len(scatter):
        return volume(scatter)
    cross = scatter[:, :bodies]
    return volume(scatter) - volume(
        scatter - cross @ np.linalg.solve(cross[:bodies], cross.T)
    )


def prediction_score(target: Array) -> Score:
    """Returns the score "prediction" of the module's docstring.

    Args:
        target: (U, U) T, mean of C^T C over postures.
    """

    def score(scatter: Array, rows: Array) -> Array:
        cross = rows @ scatter
        inner = np.eye(rows.shape[1]) + cross @ rows.transpose(0, 2, 1)
        drop = (cross @ target) @ cross.transpose(0, 2, 1)
        return np.asarray(np.trace(np.linalg.solve(inner, drop), axis1=1, axis2=2))

    return score


def parameters_objective(bodies: int) -> Objective:
    """Returns the objective of the criterion "parameters", to be maximised.

    -1 times the logarithm of the geometric mean of the bodies' standard deviations:
    f = 1/2b log det (M_bb - M_be M_ee^-1 M_eb) = 1/2b (log det M - log det M_ee), e the errors
    of the sensors.

    Args:
        bodies: number b of the bodies' parameters, which are the first.
    """

    def objective(M: Array) -> tuple[float, Array]:
        slope, errors = np.linalg.inv(M), M[bodies:, bodies:]
        slope[bodies:, bodies:] -= np.linalg.inv(errors)
        value = np.linalg.slogdet(M)[1] - np.linalg.slogdet(errors)[1]
        return float(value) / (2.0 * bodies), np.asarray(slope / (2.0 * bodies))

    return objective


def prediction_objective(target: Array) -> Objective:
    """Returns the objective of the criterion "prediction", to be maximised.

    -1 times the logarithm of the predicted CoM's standard deviation: f = -1/2 log tr(M^-1 T).

    Args:
        target: (U, U) T, mean of C^T C over postures.
    """

    def objective(M: Array) -> tuple[float, Array]:
        P = np.linalg.inv(M)
        variance = float(np.sum(P * target))
        return -0.5 * float(np.log(variance)), P @ target @ P / (2.0 * variance)

    return objective


def plan_efficiency(
    chosen: Array,
    others: Array,
    scatter: Array,
    objective: Objective,
    alone: Flags | None = None,
) -> float:
    """Returns the standard deviation that the relaxed optimum leaves, over that of a plan; <= 1.

    Starting between uniform weights and the plan's, weights are multiplied by their slopes until
    the bound of the module's docstring is close.

    Args:
        chosen: (N, R, U) whitened rows of the plan.
        others: (m, R, U) whitened rows of the other candidates.
        scatter: (U, U) covariance P of the parameters before.
        objective: what is maximised.
        alone: (N + m,) marks postures of which any plan has as many as this one; None: none.
    """
    rows = np.concatenate((chosen, others))
    groups = (
        np.zeros(len(rows), dtype=int)
        if alone is None
        else np.asarray(alone, dtype=int)
    )
    weights = (np.arange(len(rows)) < len(chosen)).astype(float)
    sums = np.bincount(groups, weights)
    A, prior = rows.reshape(-1, rows.shape[2]), np.linalg.inv(scatter)
    reached = bound = np.inf
    for done in range(100):
        M = prior + (A * np.repeat(weights, rows.shape[1])[:, None]).T @ A
        value, G = objective((M + M.T) / 2.0)
        slopes = np.maximum(
            np.sum((A @ G) * A, axis=1).reshape(rows.shape[:2]).sum(axis=1), 0.0
        )
        highest = np.zeros(len(sums))
        np.maximum.at(highest, groups, slopes)
        bound = min(bound, value + float(sums @ highest - weights @ slopes))
        if done == 0:
            reached = value
            weights = (
                weights + (sums / np.maximum(np.bincount(groups), 1))[groups]
            ) / 2.0
            continue
        # until the best plan's standard deviation is known to 0.5 %
        if bound - value <= 0.005:
            break
        weights = weights * slopes
        scale = np.bincount(groups, weights)
        weights *= np.divide(sums, scale, out=np.zeros(len(sums)), where=scale > 0.0)[
            groups
        ]
    return float(np.exp(min(0.0, reached - bound)))


def update_covariance(scatter: Array, rows: Array) -> Array:
    """Computes the covariance after rows (R, U) of unit noise, (P^-1 + A^T A)^-1.

    Args:
        scatter: (U, U) covariance P before.
        rows: (R, U) whitened rows A.
    """
    cross = scatter @ rows.T
    inner = np.eye(len(rows)) + rows @ cross
    scatter = scatter - cross @ np.linalg.solve(inner, cross.T)
    return np.asarray((scatter + scatter.T) / 2.0)


def choose_greedily(
    rows: Array,
    count: int,
    scatter: Array,
    score: Score,
    alone: Flags | None = None,
    fraction: float = 0.0,
) -> list[int]:
    """Chooses postures one after the other, each with the best score after those before it.

    Args:
        rows: (m, R, U) whitened rows of the candidates.
        count: how many to choose.
        scatter: (U, U) covariance of the parameters before.
        score: rates candidates; the largest is the best.
        alone: (m,) marks candidates; None: there are no kinds.
        fraction: 0 to 1, of the chosen ones that should be marked, as far as there are enough of
            both kinds.

    Returns:
        Indices of the candidates, in the order in which they were chosen.
    """
    chosen: list[int] = []
    count = min(count, len(rows))
    for _ in range(count):
        values = score(scatter, rows)
        values[chosen] = -np.inf
        if alone is not None:
            enough = alone[chosen].sum() >= round(fraction * count)
            others = (~alone[chosen]).sum() >= count - round(fraction * count)
            barred = alone if enough else ~alone if others else np.zeros_like(alone)
            if np.isfinite(values[~barred]).any():
                values[barred] = -np.inf
        chosen.append(int(np.argmax(values)))
        scatter = update_covariance(scatter, rows[chosen[-1]])
    return chosen


def covariance_without(scatter: Array, rows: Array, place: int) -> Array:
    """Computes the covariance after all postures (k, R, U) but the one at a place.

    Args:
        scatter: (U, U) covariance before all postures.
        rows: (k, R, U) whitened rows of the postures.
        place: Index of the posture that is left out.
    """
    others = np.delete(rows, place, axis=0).reshape(-1, rows.shape[2])
    information = np.linalg.inv(scatter) + others.T @ others
    return np.asarray(np.linalg.inv((information + information.T) / 2.0))


def _alone(entries: Sequence[Entry]) -> Flags:
    return np.array([len(stand) == 1 for _, stand, _ in entries], dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class PlannedPosture(FrozenArrays):
    """A proposed posture.

    Attributes:
        q: (n,) rad or m.
        feet: names of the soles in contact.
        margin: m, of the URDF's CoM inside their polygon.
        gain: nats, information gain on the bodies after those before it.
        prediction_std: m, standard deviation of the CoM that is predicted in such postures,
            after this one and those before it; horizontal, RMS length.
        efficiency: of the whole plan: the standard deviation that the best plan possible
            could leave, relaxed to fractions of postures, over its own; "parameters":
            geometric mean of the bodies' parameters, "prediction": of the predicted CoM. 1:
            no plan from these candidates is better.
        zeroed_std: m, prediction_std after the whole plan if the force sensors' biases are
            measured before it, with all feet in the air.
    """

    q: Array
    feet: tuple[str, ...]
    margin: float
    gain: float
    prediction_std: float
    efficiency: float = np.nan
    zeroed_std: float = np.nan


class PosturePlanner:
    """Proposes the most informative postures in which a robot can stand.

    Args:
        model: the robot.
        feet: its feet.
        rest: (n,) rad or m, a posture in which it stands without self-collision.
        settings: noise, priors, and the options of plans; None: the defaults.
        priors: of the bodies; None: those that the settings describe.

    Raises:
        IdentificationError: as FlatStance, where the feet have no common ground.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        rest: Array,
        settings: IdentificationSettings | None = None,
        priors: BodyPriors | None = None,
    ) -> None:
        settings = settings or IdentificationSettings()
        gravity, self.plan = settings.fit.gravity, settings.plan
        self._quota = self.plan.alone > 0.0
        self.model, self.feet = model, tuple(feet)
        self._priors = priors = (
            body_priors(model, settings) if priors is None else priors
        )
        self._observations = ObservationModel(
            model, feet, settings.noise, gravity, settings.sensors
        )
        self._imu = settings.fit.use_imu
        self._error_stds = self._observations.errors.stds
        self._errors_used = self._error_stds > 0.0
        self._count = self._priors.count + int(self._errors_used.sum())
        statics = self._observations.statics
        self._prediction = SensorPrediction(statics, feet, priors.parameters, gravity)
        self.feasible = FeasiblePostures(
            statics, self.feet, rest, self.plan, self._prediction
        )
        self._drawn: dict[tuple[int, int], tuple[list[Entry], Array]] = {}

    def propose(
        self,
        count: int,
        taken: Sequence[Posture] = (),
        samples: int = 100,
        progress: Progress | None = None,
    ) -> tuple[PlannedPosture, ...]:
        """Chooses postures in addition to those taken before, the most informative first.

        An exception that `progress` raises ends the computation.

        Args:
            count: how many.
            taken: postures that were captured.
            samples: readings that will be averaged in each.
            progress: called with the fraction done, 0 to 1, and the step in words.

        Raises:
            IdentificationError: hardly any posture is possible; lists why.
        """
        progress = progress or (lambda fraction, step: None)
        wanted = max(self.plan.candidates, count)
        # to find a candidate takes ten times as long as to change a chosen posture
        effort = 10.0 * wanted
        effort /= effort + _ROUNDS * count * (1 + self.plan.refinements)
        pool, drawn = self._candidates(
            wanted, samples, lambda f, step: progress(effort * f, step)
        )
        target = self._target(pool)
        score, objective = prediction_score(target), prediction_objective(target)
        if self.plan.criterion == "parameters":
            score = partial(information_gain, bodies=self._priors.count)
            objective = parameters_objective(self._priors.count)
        scatter = np.eye(self._count)
        for posture in taken:
            scatter = update_covariance(scatter, self._rows(posture))
        alone = _alone(pool) if self._quota else None
        picked, rows = self._exchange(
            pool,
            drawn,
            choose_greedily(drawn, count, scatter, score, alone, self.plan.one_foot),
            scatter,
            score,
            samples,
            lambda f, step: progress(effort + (1.0 - effort) * f, step),
        )
        both = _alone([*picked, *pool]) if self._quota else None
        efficiency = plan_efficiency(rows, drawn, scatter, objective, both)
        planned: list[PlannedPosture] = []
        for i in choose_greedily(rows, count, scatter, score):
            q, stand, margin = picked[i]
            gain = information_gain(scatter, rows[i : i + 1], self._priors.count)
            scatter = update_covariance(scatter, rows[i])
            names = tuple(self.feet[foot].frame for foot in stand)
            left = float(np.sqrt(max(0.0, np.sum(scatter * target))))
            planned.append(
                PlannedPosture(q, names, margin, float(gain[0]), left, efficiency)
            )
        zeroed = update_covariance(scatter, self._zeros())
        left = float(np.sqrt(max(0.0, np.sum(zeroed * target))))
        progress(1.0, "done")
        return tuple(replace(each, zeroed_std=left) for each in planned)

    def _zeros(self) -> Array:
        """Whitened rows (R, U) of a measurement of the wrench biases, before they drift."""
        errors, precision = self._observations.errors, np.zeros(len(self._error_stds))
        for kind in ("force", "moment"):
            prior, step = (
                getattr(errors.priors, f"{kind}_{what}") for what in ("bias", "drift")
            )
            left = max(np.sqrt(_DRIFTED) * step, 1e-3 * prior)
            precision[errors.kinds[f"{kind}_bias"]] = prior / left if prior else 0.0
        return np.pad(
            np.diag(precision[self._errors_used]), ((0, 0), (self._priors.count, 0))
        )

    def _candidates(
        self, count: int, samples: int, progress: Progress
    ) -> tuple[list[Entry], Array]:
        """Returns the candidates and their whitened rows (m, R, U); cached."""
        if (count, samples) not in self._drawn:
            pool = self.feasible.sample(
                count, progress=lambda f, step: progress(0.75 * f, step)
            )
            rows = []
            for i, entry in enumerate(pool):
                if i % 10 == 0:
                    progress(
                        0.75 + 0.25 * i / len(pool),
                        f"predicting the readings of posture {i + 1} of {len(pool)}",
                    )
                rows.append(self._rows(self._predicted(entry, samples)))
            self._drawn = {(count, samples): (pool, np.array(rows))}
        return self._drawn[count, samples]

    def _exchange(
        self,
        pool: Sequence[Entry],
        rows: Array,
        chosen: Sequence[int],
        scatter: Array,
        score: Score,
        samples: int,
        progress: Progress,
    ) -> tuple[list[Entry], Array]:
        """Exchanges each chosen posture in turn for the best one in addition to the others."""
        rng = np.random.default_rng([self.plan.seed, 1])
        picked, kept = [pool[i] for i in chosen], rows[list(chosen)]
        for step in range(_ROUNDS * len(picked)):
            turn, place = divmod(step, len(picked))
            progress(
                step / (_ROUNDS * len(picked)),
                f"improving posture {place + 1} of {len(picked)}, round {turn + 1} of {_ROUNDS}",
            )
            beside = covariance_without(scatter, kept, place)
            values = score(beside, rows)
            if self._quota:
                values[_alone(pool) != _alone([picked[place]])] = -np.inf
            best = int(np.argmax(values))
            changed = self._changes(rng, picked[place])
            offers = [picked[place], pool[best], *changed]
            alternatives = [
                self._rows(self._predicted(change, samples)) for change in changed
            ]
            matrices = np.array([kept[place], rows[best], *alternatives])
            winner = int(np.argmax(score(beside, matrices)))
            picked[place], kept[place] = offers[winner], matrices[winner]
        return picked, kept

    def _changes(self, rng: np.random.Generator, entry: Entry) -> list[Entry]:
        count, n = self.plan.refinements, self.model.n_joints
        low, high = self.feasible.low, self.feasible.high
        # standard deviations of half a joint's range; fractions of the joints that are moved
        steps = rng.choice((0.1, 0.3, 0.6), (count, 1))
        size = rng.normal(0.0, steps, (count, n)) * (high - low) / 2.0
        moved = rng.random((count, n)) < rng.choice((0.1, 0.2, 0.5), (count, 1))
        starts = np.clip(entry[0] + size * moved, low, high)
        found = self.feasible.stand(rng, starts, [entry[1]] * count)
        return [change for change in found if not isinstance(change, str)]

    def _target(self, pool: Sequence[Entry]) -> Array:
        """Returns T (U, U) of the CoM that is predicted in postures like those of the pool."""
        Q, statics = np.array([entry[0] for entry in pool]), self._observations.statics
        up = np.array([self._up(entry) for entry in pool])
        parameters = self._priors.parameters
        slopes = prediction_rows(statics, statics.poses(Q), up, parameters)
        columns = slopes.reshape(-1, len(parameters)) @ self._priors.factor
        target = np.zeros((self._count, self._count))
        bodies = self._priors.count
        target[:bodies, :bodies] = columns.T @ columns / len(pool)
        return target

    def _up(self, entry: Entry) -> Array:
        return np.asarray(
            self.feasible.stances[entry[1]].up_directions(entry[0][None])[0]
        )

    def _predicted(self, entry: Entry, samples: int) -> Posture:
        """Returns what the sensors would read with the prior's parameters."""
        q, stand, _ = entry
        up = self._up(entry)
        posture = self._prediction.posture(q, up, stand, self.plan.efforts, samples)
        return replace(posture, up=up) if self._imu else posture

    def _rows(self, posture: Posture) -> Array:
        """Whitened rows (R, U), with rows of zeros up to the number that any posture may have."""
        zero = np.zeros(self._observations.errors.count)
        rows = self._observations.linearize(posture, self._priors.parameters, zero)
        errors = rows.errors[:, self._errors_used] * self._error_stds[self._errors_used]
        matrix = np.hstack((rows.bodies @ self._priors.factor, errors))
        covariance = rows.total_noise + _DRIFTED * rows.drift @ rows.drift.T
        whitened = whiten(matrix, covariance)
        most = (
            9 + 6 * max(len(self.feet) - 1, 0) + self.plan.efforts * self.model.n_joints
        )
        return np.vstack(
            (whitened, np.zeros((max(0, most - len(whitened)), self._count)))
        )
