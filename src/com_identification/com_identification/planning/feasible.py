"""Postures and paths in which a robot stands flat, balanced, within limits, without collision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi

import numpy as np

from com_identification.exceptions import IdentificationError
from com_identification.planning.collision import SelfCollision
from com_identification.planning.stances import Flags, FlatStance
from com_identification.regression.observations import SensorPrediction
from com_identification.regression.statics import Statics
from com_model import Foot
from com_model.arrays import Array
from com_model.parameters import NOT_NEGATIVE, parameter

CRITERIA = ("parameters", "prediction")
_TRIES = 30  # for each candidate that is wanted
_BATCH = 256
_FAR = 0.85  # fraction of the samples with joints near the ends of their ranges
_ENDS = 0.3  # of a beta distribution: below 1 the ends are likelier than the middle
_SLACK = 1e-9  # rad and m
_REASONS = (
    "no flat soles within the limits",
    "margin",
    "effort limits",
    "self-collision",
    "more than the soles on the ground",
    "most_tilt",
)
Entry = tuple[Array, tuple[int, ...], float]  # q (n,), the feet that stand, margin m
_SAME = 1e-6  # rad and m, of the feet's places
_SLACK = 1e-9  # rad or m
_HALVINGS = 6


@dataclass(frozen=True)
class PlanOptions:
    """Which postures may be proposed, and how they are scored.

    Attributes:
        stands: Which feet are in contact, as indices, in turn; all feet by default.
    """

    candidates: int = parameter(200, "How many postures to choose from", (0, 10**9))
    refinements: int = parameter(
        30, "How many changes of each chosen posture are tried", (0, 10**9)
    )
    margin: float = parameter(
        0.015,
        "m, of the URDF's CoM inside the support polygon; more than the URDF may be off by",
        NOT_NEGATIVE,
    )
    limit_fraction: float = parameter(
        0.95, "Fraction of each joint's range, about its middle, that is used", NOT_NEGATIVE
    )
    clearance: float = parameter(
        0.005, "m, between the boxes of links that are not adjacent", NOT_NEGATIVE
    )
    stands: tuple[tuple[int, ...], ...] = ()
    efforts: bool = parameter(False, "Whether joint efforts are measured, too")
    seed: int = parameter(0, "Of the random postures", (0, 10**9))
    keep_feet: bool = parameter(
        False,
        "Whether feet in contact keep their poses relative to each other of the rest "
        "posture, so that the robot needs no step between postures",
    )
    effort_fraction: float = parameter(
        0.9,
        "Fraction of the URDF's effort limits that the joints may need to hold the "
        "posture; 0: not checked. Limits of 0 count as not known",
        NOT_NEGATIVE,
    )
    most_tilt: float = parameter(
        pi,
        "rad, by which the root may tilt against the rest posture; postures in which a "
        "robot bows deeply are informative, but risky",
        NOT_NEGATIVE,
    )
    criterion: str = parameter(
        "parameters",
        "'parameters': minimises the volume of the uncertainty of all parameters. "
        "'prediction': the mean variance of the CoM in postures like the candidates",
    )

    def __post_init__(self) -> None:
        if self.criterion not in CRITERIA:
            raise IdentificationError(
                f"criterion: expected one of {', '.join(CRITERIA)}, got {self.criterion!r}"
            )
        if not self.effort_fraction >= 0.0:
            got = self.effort_fraction
            raise IdentificationError(
                f"effort_fraction: expected a fraction of the limits, 0 or more, got {got}"
            )
        if not self.most_tilt > 0.0:
            raise IdentificationError(
                f"most_tilt: expected an angle above 0 rad, got {self.most_tilt}"
            )


class FeasiblePostures:
    """Finds postures in which the robot can stand, many at once.

    Args:
        statics: Of the robot.
        feet: Its feet, with corners.
        rest: (n,) a posture in which it stands without self-collision.
        prediction: For the joints' efforts.
        plan: What is allowed.

    Raises:
        IdentificationError: A foot has no corners.
    """

    def __init__(
        self,
        statics: Statics,
        feet: Sequence[Foot],
        rest: Array,
        prediction: SensorPrediction,
        plan: PlanOptions,
    ) -> None:
        model = statics.model
        self.statics, self.plan, self._rest = statics, plan, rest
        low, high = np.maximum(model.lower, -np.pi), np.minimum(model.upper, np.pi)
        middle, half = (low + high) / 2.0, plan.limit_fraction * (high - low) / 2.0
        self.low, self.high = middle - half, middle + half
        kept = rest if plan.keep_feet else None
        stands = plan.stands or (tuple(range(len(feet))),)
        limits = self.low, self.high
        self.stances = {
            indices: FlatStance(statics, [feet[i] for i in indices], kept, limits)
            for indices in stands
        }
        self._collision = SelfCollision(statics, rest, plan.clearance)
        self._feet = tuple(feet)
        self._clear_links: dict[tuple[int, ...], Flags] = {}
        self._prediction = prediction
        most = model.effort_limits * plan.effort_fraction
        self._efforts = np.where(most > 0.0, most, np.inf)

    def sample(self, count: int, anywhere: bool = False) -> list[Entry]:
        """Samples postures in which the robot can stand.

        Args:
            count: How many are wanted.
            anywhere: True: joints anywhere in their limits, each place as likely, before the soles
                come to the ground. False: a few so, from close to rest to anywhere, and most
                with joints near the ends of their ranges.

        Raises:
            IdentificationError: Hardly any posture is possible; lists the reasons.
        """
        rng = np.random.default_rng(self.plan.seed)
        refused = dict.fromkeys(_REASONS, 0)
        pool: list[Entry] = []
        stands, tried = tuple(self.stances), 0
        while len(pool) < count and tried < _TRIES * count:
            size = min(max(4 * (count - len(pool)), 16), _BATCH, _TRIES * count - tried)
            starts = self._starts(rng, size, anywhere)
            turn = (tried + np.arange(size)) % len(stands)
            tried += size
            results = self.stand(rng, starts, [stands[i] for i in turn])
            pool += [found for found in results if not isinstance(found, str)]
            for found in results:
                if isinstance(found, str):
                    refused[found] += 1
        if len(pool) < count / 10:
            reasons = ", ".join(f"{number} {reason}" for reason, number in refused.items())
            raise IdentificationError(
                f"only {len(pool)} postures of {tried} are possible (refused: {reasons}): "
                "ask for a smaller margin or clearance, or check the rest posture"
            )
        return pool[:count]

    def _starts(self, rng: np.random.Generator, count: int, anywhere: bool) -> Array:
        """Samples joint positions to start from, (N, n)."""
        fractions = rng.random((count, len(self.low)))
        if anywhere:
            return np.asarray(self.low + fractions * (self.high - self.low))
        far = rng.random(count) < _FAR
        ends = rng.beta(_ENDS, _ENDS, (int(far.sum()), len(self.low)))
        fractions[far] = ends
        spread = rng.uniform(np.where(far, 0.5, 0.2), 1.0)[:, None]
        return np.asarray(
            self._rest + spread * (self.low + fractions * (self.high - self.low) - self._rest)
        )

    def stand(
        self, rng: np.random.Generator, starts: Array, stands: Sequence[tuple[int, ...]]
    ) -> list[Entry | str]:
        """Finds the nearest postures in which the robot stands, or the reason why there is none.

        Args:
            rng: For where the CoM is to be.
            starts: (N, n) joint positions.
            stands: N times the feet in contact.
        """
        results: list[Entry | str] = [_REASONS[0]] * len(starts)
        shift = rng.uniform(-1.0, 1.0, (len(starts), 2))
        for indices, stance in self.stances.items():
            mine = np.array([i for i, feet in enumerate(stands) if feet == indices], dtype=int)
            aims = stance.middles(starts[mine]) + shift[mine] * stance.room(self.plan.margin)
            Q, found = stance.solve_all(starts[mine], aims)
            # The CoM of a planar robot, for example, cannot move sideways: any target will do.
            Q[~found], found[~found] = stance.solve_all(starts[mine][~found])
            judged = self._judge(Q[found], stance, indices)
            for place, result in zip(mine[found], judged, strict=True):
                results[place] = result
        return results

    def allows(self, Q: Array, stance: FlatStance, indices: tuple[int, ...]) -> Flags:
        """Whether postures (N, n) of a stance may be proposed, joint limits apart, (N,)."""
        judged = [not isinstance(result, str) for result in self._judge(Q, stance, indices)]
        return np.array(judged, dtype=np.bool_)

    def _judge(self, Q: Array, stance: FlatStance, indices: tuple[int, ...]) -> list[Entry | str]:
        """Whether a robot on flat soles is balanced, strong enough and free of collisions."""
        strong = self._within_effort_limits(Q, stance, indices)
        touching = self._collision.touching(Q)
        above = self._heights(Q, stance) > 0.0
        clear_of_ground: Flags = np.asarray(
            above[:, self._above_ground(stance, indices)].all(axis=1)
        )
        rest_up = stance.up_directions(self._rest[None])[0]
        leans = stance.up_directions(Q) @ rest_up < np.cos(min(self.plan.most_tilt, np.pi)) - _SLACK
        results: list[Entry | str] = []
        for q, held, touch, clear, lean in zip(
            Q, strong, touching, clear_of_ground, leans, strict=True
        ):
            margin = stance.margin(q)
            if margin < self.plan.margin - _SLACK:
                results.append(_REASONS[1])
            elif lean:
                results.append(_REASONS[5])
            elif not held:
                results.append(_REASONS[2])
            elif not clear:
                results.append(_REASONS[4])
            else:
                results.append(_REASONS[3] if touch else (q, indices, margin))
        return results

    def _heights(self, Q: Array, stance: FlatStance) -> Array:
        """Returns the heights of all links above the ground of the stance, (N, K) m."""
        ups = stance.up_directions(Q)
        sole = self.statics.model.link_index(stance.feet[0].frame)
        _, p = self.statics.link_frames(self.statics.poses(Q), [sole])
        return self._collision.heights(Q, ups, np.einsum("nj,nj->n", p[:, 0], ups))

    def _above_ground(self, stance: FlatStance, indices: tuple[int, ...]) -> Flags:
        """Links that must clear the ground, (K,): not feet in contact, nor those low at rest."""
        if indices not in self._clear_links:
            model, bodies = self.statics.model, self._collision.bodies
            links = [model.link_index(foot.frame) for foot in self._feet]
            own = [int(model.bodies.body_of_link[link]) for link in links]
            standing = np.isin(bodies, [own[i] for i in indices])
            low = self._heights(self._rest[None], stance)[0] <= 0.0
            self._clear_links[indices] = np.asarray(~standing & ~(low & ~np.isin(bodies, own)))
        return self._clear_links[indices]

    def _within_effort_limits(
        self, Q: Array, stance: FlatStance, indices: tuple[int, ...]
    ) -> Flags:
        """Whether the joints' limits of effort allow postures (N, n), (N,)."""
        poses = self.statics.poses(Q)
        _, effort = self._prediction.wrenches_and_efforts(poses, stance.up_directions(Q), indices)
        return np.asarray((np.abs(effort) <= self._efforts).all(axis=1))


def path_with_soles_in_place(
    feasible: FeasiblePostures, feet: Sequence[Foot], start: Array, end: Array, step: float
) -> Array | None:
    """Finds a path between two postures with all soles in place.

    The straight line in the joints is projected to where the soles are in place and the CoM
    projects on the straight line between its two projections, which stays inside the polygon.
    Where two such postures are more than a step apart, the line between them is halved. Joints stay
    within the fraction of their range that is used, or of start and end where these are beyond.

    Args:
        feasible: What postures are allowed.
        feet: All feet of the robot, with corners.
        start: (n,) rad or m.
        end: (n,).
        step: rad or m, that no joint exceeds from one posture to the next.

    Returns:
        (k, n) from start to end, or None.
    """
    stance = FlatStance(feasible.statics, feet, start)
    if np.abs(stance.residuals(end[None])[0]).max(initial=0.0) > _SAME:
        return None
    low = np.minimum(np.minimum(start, end), feasible.low) - _SLACK
    high = np.maximum(np.maximum(start, end), feasible.high) + _SLACK
    aims = stance.projections(np.array([start, end]))
    count = max(1, int(np.ceil(np.abs(end - start).max() / step)))
    fractions = np.linspace(0.0, 1.0, count + 1)
    for _ in range(_HALVINGS):
        parts = fractions[1:-1, None]
        middle, found = stance.solve_all(
            start + parts * (end - start), aims[0] + parts * (aims[1] - aims[0])
        )
        Q = np.vstack((start, middle, end))
        if not found.all():
            return None
        wide = np.abs(np.diff(Q, axis=0)).max(axis=1) > step
        if not wide.any():
            within = ((low <= Q) & (high >= Q)).all()
            allowed = feasible.allows(Q, stance, tuple(range(len(feet)))).all()
            return Q if within and allowed else None
        fractions = np.sort(
            np.concatenate((fractions, (fractions[:-1] + fractions[1:])[wide] / 2.0))
        )
    return None  # it jumps
