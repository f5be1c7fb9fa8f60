"""Plans the postures to take next: the most informative ones in which the robot can stand.

What is known is the covariance P of the whitened parameters; a posture with whitened rows A updates
it to (P^-1 + A^T A)^-1. Its score is one of

  parameters   1/2 log det(1 + A P A^T), the information gain in nats (D-optimality)
  prediction   trace((1 + A P A^T)^-1 A P T P A^T): the decrease of the mean variance trace(P T) of
               the predicted CoM, T the mean of C^T C over postures (I-optimality)

Postures are chosen greedily from many random ones in which the robot stands with a margin, inside
its limits, strong enough and without collision. Then each in turn is exchanged for the one with the
best score beside the others: another candidate, or a change of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.planning.feasible import (
    Entry,
    FeasiblePostures,
    PlanOptions,
    path_with_soles_in_place,
)
from com_identification.regression.identify import Options
from com_identification.regression.observations import ObservationModel, SensorPrediction
from com_identification.regression.postures import Posture
from com_identification.regression.priors import BodyPriors, WhitenedParameters, urdf_priors
from com_identification.regression.solve import whiten
from com_identification.regression.statics import Poses, Statics
from com_model import Foot, RobotModel
from com_model.arrays import Array, as_array, freeze
from com_model.postures import TimedPath, time_path

Score = Callable[[Array, Array], Array]
"""Takes P (U, U) and the rows of m postures (m, R, U); returns their scores, (m,)."""
_STEPS = (0.1, 0.3, 0.6)  # of half a joint's range: how far refinement goes
_MOVED = (0.1, 0.2, 0.5)  # fraction of the joints that it moves
_ROUNDS = 2  # of exchange


def information_gain(scatter: Array, rows: Array) -> Array:
    """Computes the information gains of m postures in nats, (m,): 1/2 log det(1 + A P A^T)."""
    inner = np.eye(rows.shape[1]) + (rows @ scatter) @ rows.transpose(0, 2, 1)
    return np.asarray(np.linalg.slogdet(inner)[1] / 2.0)


def prediction_score(target: Array) -> Score:
    """Returns the score "prediction"; target is T (U, U)."""

    def score(scatter: Array, rows: Array) -> Array:
        cross = rows @ scatter
        inner = np.eye(rows.shape[1]) + cross @ rows.transpose(0, 2, 1)
        drop = (cross @ target) @ cross.transpose(0, 2, 1)
        return np.asarray(np.trace(np.linalg.solve(inner, drop), axis1=1, axis2=2))

    return score


def prediction_rows(statics: Statics, poses: Poses, up: Array, parameters: Array) -> Array:
    """Computes the derivatives of the horizontal CoM relative to the root, (N, 3, 4 B).

    With N theta the first moment about the root's origin and M the mass,
    dCoM = (1 - up up^T) (N - CoM 1^T) / M.

    Args:
        statics: Of the robot.
        poses: N configurations.
        up: (N, 3) against gravity, root axes.
        parameters: (4 B,) to linearise about.
    """
    columns, mass = statics.first_moment(poses), statics.mass()
    total = float(mass @ parameters)
    com = columns @ parameters / total
    slopes = (columns - com[..., None] * mass) / total
    return np.asarray(slopes - up[..., None] * (up[:, None] @ slopes))


def update_covariance(scatter: Array, rows: Array) -> Array:
    """Computes the covariance after rows (R, U) of unit noise, (P^-1 + A^T A)^-1."""
    cross = scatter @ rows.T
    inner = np.eye(len(rows)) + rows @ cross
    scatter = scatter - cross @ np.linalg.solve(inner, cross.T)
    return np.asarray((scatter + scatter.T) / 2.0)


def choose_greedily(rows: Array, count: int, scatter: Array, score: Score) -> list[int]:
    """Chooses postures one after the other, each with the best score after those before it.

    Args:
        rows: (m, R, U) whitened rows of the postures.
        count: How many.
        scatter: P before.
        score: The criterion.
    """
    chosen: list[int] = []
    for _ in range(min(count, len(rows))):
        values = score(scatter, rows)
        values[chosen] = -np.inf
        chosen.append(int(np.argmax(values)))
        scatter = update_covariance(scatter, rows[chosen[-1]])
    return chosen


def covariance_without(scatter: Array, rows: Array, place: int) -> Array:
    """Computes the covariance after all postures but one.

    Args:
        scatter: P before.
        rows: (k, R, U) of the postures.
        place: Which one is left out.
    """
    others = np.delete(rows, place, axis=0).reshape(-1, rows.shape[2])
    information = np.linalg.inv(scatter) + others.T @ others
    return np.asarray(np.linalg.inv((information + information.T) / 2.0))


@dataclass(frozen=True, eq=False)
class PlannedPosture:
    """A posture that is proposed.

    Attributes:
        q: (n,) rad or m.
        feet: Names of the soles that stand.
        margin: m, of the URDF's CoM inside their polygon.
        gain: Information gain after those before it, nats.
    """

    q: Array
    feet: tuple[str, ...]
    margin: float
    gain: float

    def __post_init__(self) -> None:
        freeze(self)


class PosturePlanner:
    """Proposes postures.

    Args:
        model: The robot.
        feet: Its feet, with corners.
        rest: (n,) a posture in which it stands and does not touch itself.
        priors: What is known of the bodies; as for identify().
        options: Noise and unknown errors of the sensors; as for identify().
        plan: What postures may be proposed.

    Raises:
        IdentificationError: A foot has no corners.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        rest: Array,
        priors: BodyPriors | None = None,
        options: Options | None = None,
        plan: PlanOptions | None = None,
    ) -> None:
        options, self.plan = options or Options(), plan or PlanOptions()
        self.model, self.feet = model, tuple(feet)
        self._rest = as_array("rest", rest, (model.n_joints,))
        self._observations = ObservationModel(model, feet, options.noise, options.gravity)
        statics = self._observations.statics
        priors = urdf_priors(model) if priors is None else priors
        self._parameters = WhitenedParameters(
            priors, self._observations.errors.prior_stds(options.sensors)
        )
        self._prediction = SensorPrediction(statics, feet, priors.parameters, options.gravity)
        self._feasible = FeasiblePostures(
            statics, self.feet, self._rest, self._prediction, self.plan
        )
        self._drawn: dict[tuple[int, int], tuple[list[Entry], Array]] = {}

    def propose(
        self, count: int, taken: Sequence[Posture] = (), samples: int = 100
    ) -> tuple[PlannedPosture, ...]:
        """Chooses postures, the most informative first.

        Args:
            count: How many.
            taken: Postures that have been captured.
            samples: Readings that will be averaged in each.

        Raises:
            IdentificationError: Hardly any posture is possible; lists the reasons.
        """
        pool, rows = self._candidates(max(self.plan.candidates, count), samples)
        score = self._score(pool)
        scatter = np.eye(self._parameters.count)
        for posture in taken:
            scatter = update_covariance(scatter, self._rows(posture))
        chosen = choose_greedily(rows, count, scatter, score)
        picked, rows = self._exchange(pool, rows, chosen, scatter, score, samples)
        planned: list[PlannedPosture] = []
        for i in choose_greedily(rows, count, scatter, score):
            q, stand, margin = picked[i]
            gain = float(information_gain(scatter, rows[i : i + 1])[0])
            scatter = update_covariance(scatter, rows[i])
            names = tuple(self.feet[foot].frame for foot in stand)
            planned.append(PlannedPosture(q, names, margin, gain))
        return tuple(planned)

    def _candidates(self, count: int, samples: int) -> tuple[list[Entry], Array]:
        """Returns the candidates and their whitened rows (m, R, U); cached."""
        if (count, samples) not in self._drawn:
            pool = self.feasible(count)
            rows = [self._rows(self._predicted(entry, samples)) for entry in pool]
            self._drawn = {(count, samples): (pool, np.array(rows))}
        return self._drawn[count, samples]

    def feasible(self, count: int, anywhere: bool = False) -> list[Entry]:
        """Samples postures in which the robot can stand: q, the feet in contact, margin m.

        Args:
            count: How many.
            anywhere: True: joints anywhere in their limits, each place as likely, before the soles
                come to the ground. False: as for planning, from close to rest to the ends.

        Raises:
            IdentificationError: Hardly any posture is possible; lists the reasons.
        """
        return self._feasible.sample(count, anywhere)

    def path_between(self, start: Array, end: Array, step: float = 0.05) -> Array | None:
        """Finds postures between two, through which the robot moves without lifting a foot.

        All feet keep their poses relative to each other, and all postures on the path could be
        proposed. The joints move as straight as that allows.

        Args:
            start: (n,) a posture that may be proposed.
            end: (n,) another with the feet at the same places, as `keep_feet` plans them.
            step: rad or m, that no joint exceeds from one posture to the next.

        Returns:
            (k, n) from start to end, or None where there is no such path. Then go through a third
            posture, the rest posture for example.
        """
        start, end = (as_array("posture", q, (self.model.n_joints,)) for q in (start, end))
        return path_with_soles_in_place(self._feasible, self.feet, start, end, step)

    def _exchange(
        self,
        pool: Sequence[Entry],
        rows: Array,
        chosen: Sequence[int],
        scatter: Array,
        score: Score,
        samples: int,
    ) -> tuple[list[Entry], Array]:
        """Exchanges each chosen posture in turn for the best one beside the others."""
        rng = np.random.default_rng([self.plan.seed, 1])
        picked, kept = [pool[i] for i in chosen], rows[list(chosen)]
        for _ in range(_ROUNDS):
            for place in range(len(picked)):
                beside = covariance_without(scatter, kept, place)
                best = int(np.argmax(score(beside, rows)))
                changed = self._changes(rng, picked[place])
                offers = [picked[place], pool[best], *changed]
                alternatives = [self._rows(self._predicted(change, samples)) for change in changed]
                matrices = np.array([kept[place], rows[best], *alternatives])
                winner = int(np.argmax(score(beside, matrices)))
                picked[place], kept[place] = offers[winner], matrices[winner]
        return picked, kept

    def _changes(self, rng: np.random.Generator, entry: Entry) -> list[Entry]:
        """Samples changes of a posture in which the robot can stand."""
        count, n = self.plan.refinements, self.model.n_joints
        low, high = self._feasible.low, self._feasible.high
        size = rng.normal(0.0, rng.choice(_STEPS, (count, 1)), (count, n)) * (high - low) / 2.0
        moved = rng.random((count, n)) < rng.choice(_MOVED, (count, 1))
        starts = np.clip(entry[0] + size * moved, low, high)
        found = self._feasible.stand(rng, starts, [entry[1]] * count)
        return [change for change in found if not isinstance(change, str)]

    def _score(self, pool: Sequence[Entry]) -> Score:
        """Returns the score; the CoM is predicted in postures like those of the pool."""
        if self.plan.criterion == "parameters":
            return information_gain
        Q, statics = np.array([entry[0] for entry in pool]), self._observations.statics
        up = np.array([self._up(entry) for entry in pool])
        parameters = self._parameters.priors.parameters
        slopes = prediction_rows(statics, statics.poses(Q), up, parameters)
        columns = slopes.reshape(-1, len(parameters)) @ self._parameters.factor
        target = np.zeros((self._parameters.count, self._parameters.count))
        bodies = self._parameters.bodies
        target[:bodies, :bodies] = columns.T @ columns / len(pool)
        return prediction_score(target)

    def _up(self, entry: Entry) -> Array:
        return np.asarray(self._feasible.stances[entry[1]].up_directions(entry[0][None])[0])

    def _predicted(self, entry: Entry, samples: int) -> Posture:
        """Returns what the sensors would read with the prior's parameters."""
        q, stand, _ = entry
        return self._prediction.posture(q, self._up(entry), stand, self.plan.efforts, samples)

    def _rows(self, posture: Posture) -> Array:
        zero = np.zeros(self._observations.errors.count)
        rows = self._observations.linearize(posture, self._parameters.priors.parameters, zero)
        matrix = self._parameters.columns(rows.bodies, rows.errors)
        return whiten(matrix, rows.residual, rows.covariance).matrix


class TourPaths:
    """Finds paths from posture to posture for a robot that moves through a plan.

    Args:
        model: The robot.
        feet: Its feet, with corners.
        nominal: (n,) posture in which it stands; feet in contact keep its foot poses.
        margin: m, of the URDF's CoM inside the support polygon on the path.
        speed: rad/s or m/s, of any joint at most.
        velocity_fraction: Of the model's velocity limits that is used at most.

    Raises:
        IdentificationError: A foot has no corners.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        nominal: Array,
        margin: float,
        speed: float,
        velocity_fraction: float,
    ) -> None:
        # The planner of the postures has checked the efforts at either end.
        plan = PlanOptions(keep_feet=True, margin=margin, effort_fraction=0.0)
        self._planner = PosturePlanner(model, feet, nominal, plan=plan)
        self._nominal = nominal
        limits = np.where(model.velocity_limits > 0.0, model.velocity_limits, np.inf)
        self.speeds = np.minimum(speed, velocity_fraction * limits)

    def standing(self, start: Array, end: Array) -> list[TimedPath]:
        """Returns paths in sequence that keep the feet in place; empty where there is none."""
        direct = self._planner.path_between(start, end)
        if direct is not None:
            return [time_path(direct, self.speeds)]
        stations = (start, self._nominal), (self._nominal, end)
        parts = [self._planner.path_between(*ends) for ends in stations]
        if any(part is None for part in parts):
            return []
        return [time_path(part, self.speeds) for part in parts if part is not None]

    def in_air(self, start: Array, end: Array) -> list[TimedPath]:
        """Returns the paths of a lifted robot, through the nominal posture to avoid collisions."""
        stations = (start, self._nominal), (self._nominal, end)
        return [time_path(np.array(ends), self.speeds) for ends in stations]
