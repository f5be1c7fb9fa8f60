"""Which postures to take next: those that tell most, and in which the robot can stand.

Of many random postures in which the robot stands with a margin, inside its limits and without
touching itself, the one is taken that adds most to what is known, again and again. What is known is
log det(1 + sum of A_p^T A_p), with the whitened rows A_p in prior deviations: half of it is how
many nats the data take off the volume of the uncertainty (D-optimality under the prior).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_estimation.identification.collision import SelfCollision
from com_estimation.identification.exceptions import IdentificationError
from com_estimation.identification.identify import Options, Unknowns
from com_estimation.identification.postures import Posture, make_posture
from com_estimation.identification.priors import BodyPriors, urdf_priors
from com_estimation.identification.rows import RowBuilder
from com_estimation.identification.solve import whiten
from com_estimation.identification.stances import FlatStance
from com_model import Foot, RobotModel
from com_model.arrays import Array, as_array, freeze

_TRIES = 30  # for each candidate that is wanted
_STEPS = (0.1, 0.3, 0.6)  # of half a joint's range: how far refinement goes
_MOVED = 0.4  # share of the joints that it moves

_REASONS = ("no flat soles within the limits", "margin", "self-collision")

Entry = tuple[Array, tuple[int, ...], float]  # q (n,), the feet that stand, margin m


@dataclass(frozen=True)
class PlanOptions:
    """What postures may be proposed.

    Attributes:
        candidates: How many postures to choose from.
        refinements: How many changes of each chosen posture are tried.
        margin: m, of the URDF's CoM inside the support polygon; more than the URDF may be off by.
        limit_share: Share of each joint's range, about its middle, that is used.
        clearance: m, between the boxes of links that are no neighbours.
        stands: Which feet stand, as indices, in turn; all feet by default.
        efforts: Whether joint efforts are read too.
        seed: Of the random postures.
    """

    candidates: int = 300
    refinements: int = 10
    margin: float = 0.015
    limit_share: float = 0.95
    clearance: float = 0.005
    stands: tuple[tuple[int, ...], ...] = ()
    efforts: bool = False
    seed: int = 0


@dataclass(frozen=True, eq=False)
class PlannedPosture:
    """A posture to take.

    Attributes:
        q: (n,) rad or m.
        feet: Names of the soles that stand.
        margin: m, of the URDF's CoM inside their polygon.
        gain: Nats that it takes off the uncertainty, after those before it.
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
        self._builder = RowBuilder(model, feet, options.noise, options.gravity)
        statics = self._builder.statics
        priors = urdf_priors(model) if priors is None else priors
        self._unknowns = Unknowns(priors, self._builder.errors.deviations(options.sensors))
        stands = self.plan.stands or (tuple(range(len(self.feet))),)
        self._stances = [
            (indices, FlatStance(statics, [self.feet[i] for i in indices])) for indices in stands
        ]
        self._collision = SelfCollision(statics, self._rest, self.plan.clearance)
        low, high = np.maximum(model.lower, -np.pi), np.minimum(model.upper, np.pi)
        middle, half = (low + high) / 2.0, self.plan.limit_share * (high - low) / 2.0
        self._low, self._high = middle - half, middle + half

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
        rng = np.random.default_rng(self.plan.seed)
        refused = dict.fromkeys(_REASONS, 0)
        pool: list[Entry] = []
        for attempt in range(_TRIES * count):
            indices, stance = self._stances[attempt % len(self._stances)]
            spread = rng.uniform(0.2, 1.0)
            start = self._rest + spread * (rng.uniform(self._low, self._high) - self._rest)
            found = self._stand(rng, start, indices, stance)
            if isinstance(found, str):
                refused[found] += 1
                continue
            pool.append(found)
            if len(pool) == count:
                return pool
        if len(pool) < count / 10:
            reasons = ", ".join(f"{number} {reason}" for reason, number in refused.items())
            raise IdentificationError(
                f"only {len(pool)} postures of {_TRIES * count} are possible (refused: {reasons}): "
                "ask for a smaller margin or clearance, or check the rest posture"
            )
        return pool

    def _stand(
        self, rng: np.random.Generator, start: Array, indices: tuple[int, ...], stance: FlatStance
    ) -> Entry | str:
        """The posture nearest to one in which the robot stands, or why there is none."""
        aim = stance.middle(start) + rng.uniform(-1.0, 1.0, 2) * self._room(stance)
        q = stance.solve(start, aim)
        if q is None:  # the CoM of a planar robot, say, cannot be moved sideways
            q = stance.solve(start)
        if q is None or (q < self._low).any() or (q > self._high).any():
            return _REASONS[0]
        margin = stance.margin(q)
        if margin < self.plan.margin:
            return _REASONS[1]
        return _REASONS[2] if self._collision.touches(q) else (q, indices, margin)

    def _refine(
        self, rng: np.random.Generator, entry: Entry, matrix: Array, scatter: Array, samples: int
    ) -> tuple[Entry, Array]:
        """Tries changes of a posture and keeps those that tell more."""
        stance = next(stance for indices, stance in self._stances if indices == entry[1])
        best, n = _gain(scatter, matrix), self.model.n_joints
        half = (self._high - self._low) / 2.0
        for _ in range(self.plan.refinements):
            change = rng.normal(0.0, rng.choice(_STEPS), n) * half * (rng.random(n) < _MOVED)
            start = np.clip(entry[0] + change, self._low, self._high)
            found = self._stand(rng, start, entry[1], stance)
            if isinstance(found, str):
                continue
            rows = self._rows(self._predicted(found, samples))
            gain = _gain(scatter, rows)
            if gain > best:
                entry, matrix, best = found, rows, gain
        return entry, matrix

    def _room(self, stance: FlatStance) -> Array:
        """How far the CoM may be aimed off the middle: the sole's half size less the margin."""
        corners = stance.feet[0].corners
        return np.maximum(np.ptp(corners, axis=0) / 2.0 - self.plan.margin, 0.0)

    def _predicted(self, entry: Entry, samples: int) -> Posture:
        """What the sensors would read with the prior's parameters, the weight shared evenly."""
        q, stand, _ = entry
        statics, n = self._builder.statics, self.model.n_joints
        links = [self.model.link_index(foot.wrench_frame) for foot in self.feet]
        poses = statics.poses(q[None])
        R, p = statics.link_frames(poses, links)
        sole, _ = statics.link_frames(poses, [self.model.link_index(self.feet[stand[0]].frame)])
        a = self._builder.gravity * sole[:, 0, :, 2]
        wrench, torque = statics.wrench_and_torques(poses, a, self._unknowns.priors.parameters)
        wrenches = np.zeros((len(self.feet), 6))
        force = wrench[0, :3] / len(stand)
        rest = wrench[0, 3:] - sum(np.cross(p[0, i], force) for i in stand)
        for i in stand:
            wrenches[i] = np.concatenate((R[0, i].T @ force, R[0, i].T @ rest / len(stand)))
        joints = statics.contact_maps(poses, links)[1][0]
        effort = torque[0] - np.einsum("fij,fj->i", joints, wrenches)
        signs = np.array([foot.wrench_sign for foot in self.feet])[:, None]
        return make_posture(
            self.model,
            q,
            signs * wrenches,
            effort if self.plan.efforts else np.full(n, np.nan),
            samples=samples,
        )

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
