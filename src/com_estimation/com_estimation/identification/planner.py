"""Which postures to take next: those that tell most, and in which the robot can stand.

Of many random postures in which the robot stands with a margin, inside its limits and without
touching itself, the one is taken that adds most to what is known, again and again. What is known is
log det(1 + sum of A_p^T A_p), with the whitened rows A_p in prior deviations: half of it is how
many nats the data take off the volume of the uncertainty (D-optimality under the prior).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from com_estimation.identification.feasible import Entry, FeasiblePostures
from com_estimation.identification.identify import Options, Unknowns
from com_estimation.identification.paths import kept_path
from com_estimation.identification.plan import PlannedPosture, PlanOptions
from com_estimation.identification.postures import Posture
from com_estimation.identification.prediction import Prediction
from com_estimation.identification.priors import BodyPriors, urdf_priors
from com_estimation.identification.rows import RowBuilder
from com_estimation.identification.solve import whiten
from com_model import Foot, RobotModel
from com_model.arrays import Array, as_array

__all__ = ["PlanOptions", "PlannedPosture", "PosturePlanner"]

_STEPS = (0.1, 0.3, 0.6)  # of half a joint's range: how far refinement goes
_MOVED = 0.4  # share of the joints that it moves


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
        self._builder = RowBuilder(model, feet, options.noise, options.gravity)
        statics = self._builder.statics
        priors = urdf_priors(model) if priors is None else priors
        self._unknowns = Unknowns(priors, self._builder.errors.deviations(options.sensors))
        self._prediction = Prediction(statics, feet, priors.parameters, options.gravity)
        self._feasible = FeasiblePostures(
            statics, self.feet, self._rest, self._prediction, self.plan
        )

    def propose(
        self, count: int, taken: Sequence[Posture] = (), samples: int = 100
    ) -> tuple[PlannedPosture, ...]:
        """Chooses postures, the most telling first.

        Args:
            count: How many.
            taken: Postures that were measured already.
            samples: Readings that will be averaged in each.

        Raises:
            IdentificationError: Hardly any posture is possible; says what stood in the way.
        """
        pool = self.feasible(max(self.plan.candidates, count))
        rows = [self._rows(self._predicted(entry, samples)) for entry in pool]
        rng = np.random.default_rng([self.plan.seed, 1])
        scatter = np.eye(self._unknowns.count)
        for posture in taken:
            scatter = _learn(scatter, self._rows(posture))
        chosen: list[PlannedPosture] = []
        left = list(range(len(pool)))
        for _ in range(min(count, len(pool))):
            gains = [_gain(scatter, rows[i]) for i in left]
            best = left.pop(int(np.argmax(gains)))
            entry, matrix = self._refine(rng, pool[best], rows[best], scatter, samples)
            gain = _gain(scatter, matrix)
            scatter = _learn(scatter, matrix)
            names = tuple(self.feet[i].frame for i in entry[1])
            chosen.append(PlannedPosture(entry[0], names, entry[2], gain))
        return tuple(chosen)

    def feasible(self, count: int) -> list[Entry]:
        """Draws postures in which the robot can stand: q, the feet that stand, margin m.

        Raises:
            IdentificationError: Hardly any posture is possible; says what stood in the way.
        """
        return self._feasible.draw(count)

    def path_between(self, start: Array, end: Array, step: float = 0.05) -> Array | None:
        """Finds postures between two, through which the robot moves without lifting a foot.

        All feet keep the places to each other that they have in `start`, and all postures on the
        way are such as may be proposed. The joints go as straight as that allows.

        Args:
            start: (n,) a posture that may be proposed.
            end: (n,) another with the feet at the same places, as `keep_feet` plans them.
            step: rad or m, that no joint exceeds from one posture to the next.

        Returns:
            (k, n) from start to end, or None where the straight way is barred. Then go by way of a
            third posture, that of rest for example.
        """
        start, end = (as_array("posture", q, (self.model.n_joints,)) for q in (start, end))
        return kept_path(self._feasible, self.feet, start, end, step)

    def _refine(
        self, rng: np.random.Generator, entry: Entry, matrix: Array, scatter: Array, samples: int
    ) -> tuple[Entry, Array]:
        """Tries changes of a posture and keeps those that tell more."""
        best, n = _gain(scatter, matrix), self.model.n_joints
        low, high = self._feasible.low, self._feasible.high
        for _ in range(self.plan.refinements):
            size = rng.normal(0.0, rng.choice(_STEPS), n) * (high - low) / 2.0
            start = np.clip(entry[0] + size * (rng.random(n) < _MOVED), low, high)
            found = self._feasible.stand(rng, start[None], [entry[1]])[0]
            if isinstance(found, str):
                continue
            rows = self._rows(self._predicted(found, samples))
            gain = _gain(scatter, rows)
            if gain > best:
                entry, matrix, best = found, rows, gain
        return entry, matrix

    def _predicted(self, entry: Entry, samples: int) -> Posture:
        """What the sensors would read with the prior's parameters."""
        q, stand, _ = entry
        up = self._feasible.stances[stand].ups(q[None])[0]
        return self._prediction.posture(q, up, stand, self.plan.efforts, samples)

    def _rows(self, posture: Posture) -> Array:
        zero = np.zeros(self._builder.errors.count)
        rows = self._builder.rows(posture, self._unknowns.priors.parameters, zero)
        matrix = self._unknowns.columns(rows.bodies, rows.errors)
        return whiten(matrix, rows.residual, rows.covariance).matrix


def _gain(scatter: Array, rows: Array) -> float:
    """Half of log det(1 + A P A^T), nats."""
    _, log_det = np.linalg.slogdet(np.eye(len(rows)) + rows @ scatter @ rows.T)
    return float(log_det / 2.0)


def _learn(scatter: Array, rows: Array) -> Array:
    """The covariance after rows of unit noise, (P^-1 + A^T A)^-1."""
    cross = scatter @ rows.T
    inner = np.eye(len(rows)) + rows @ cross
    scatter = scatter - cross @ np.linalg.solve(inner, cross.T)
    return (scatter + scatter.T) / 2.0
