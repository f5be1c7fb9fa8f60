"""Postures and paths in which a robot stands on flat soles, balanced and without collision."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from com_identification.exceptions import IdentificationError
from com_identification.regression.postures import SensorPrediction
from com_identification.regression.priors import solid_boxes
from com_identification.regression.stances import FlatStance
from com_identification.regression.statics import Statics
from com_identification.settings import PlanOptions
from com_model import Foot, RobotModel
from com_model.arrays import Array, Flags, as_array
from com_model.joint_path import JointPath
from com_model.postures import time_path
from com_model.shapes.hulls import Hull, Hulls, hull_of, read_shapes

_SLACK = 1e-9  # rad and m
_BOX = np.array(
    [[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float
)
Entry = tuple[Array, tuple[int, ...], float]  # q (n,), feet in contact, margin m


class SelfCollision:
    """Collision checks between the links of a robot, which keep a margin.

    Links are represented by the convex hulls of their <collision> shapes: boxes, balls, capsules
    and convex meshes are exact. A link without a readable shape is approximated by the solid box
    with its mass and inertia, and not checked without inertia. Pairs that touch in the rest
    posture are left out, and adjacent links, whose shapes overlap on purpose; of approximated
    links also those two joints away.

    Args:
        statics: of the robot.
        rest: (n,) rad or m, a posture without self-collision.
        margin: m, between links.

    Attributes:
        approximated: names of the links with an approximated shape.
        unchecked: names of the links with mass that are not checked.
    """

    def __init__(self, statics: Statics, rest: Array, margin: float = 0.0) -> None:
        self.statics, self._margin = statics, margin
        model = statics.model
        shapes = [s for s in read_shapes(model)[0] if s.link in model.link_names]
        self._link = [model.link_index(shape.link) for shape in shapes]
        guesses = _solid_boxes(model, set(self._link))
        self._guesses = set(guesses)
        self.approximated = tuple(model.link_names[link] for link in guesses)
        hulls = [*(hull_of(shape, model) for shape in shapes), *guesses.values()]
        self._link += list(guesses)
        self._hulls = Hulls(hulls)
        self.unchecked = tuple(
            name
            for i, name in enumerate(model.link_names)
            if model.link_masses[i] > 0.0 and i not in self._link
        )
        self._without = [model.link_index(name) for name in self.unchecked]
        pairs = [
            pair
            for pair in combinations(range(len(hulls)), 2)
            if self._may_touch(*pair)
        ]
        self._pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        rest = as_array("rest", rest, (model.n_joints,))
        self._pairs = self._pairs[~self._overlap(rest[None])[0]]

    def _may_touch(self, i: int, j: int) -> bool:
        """Whether two hulls belong to bodies that are not adjacent in the chain."""
        bodies, links = self.statics.model.bodies, (self._link[i], self._link[j])
        a, b = (int(bodies.body_of_link[link]) for link in links)
        near = 1 if self._guesses.isdisjoint(links) else 2
        return b not in _ancestors(bodies.parent, a, near) and a not in _ancestors(
            bodies.parent, b, near
        )

    def touching(self, Q: Array) -> Flags:
        """Returns in which postures links touch, (N,).

        Args:
            Q: (N, n) rad or m.
        """
        return np.asarray(self._overlap(Q).any(axis=1))

    @property
    def bodies(self) -> NDArray[np.int64]:
        """Body of each height that heights() returns, (K,)."""
        return np.asarray(
            self.statics.model.bodies.body_of_link[[*self._link, *self._without]]
        )

    def heights(self, Q: Array, ups: Array, levels: Array) -> Array:
        """Returns the heights of all links above the ground, (N, K) m.

        Of the lowest point of each hull, less half its margin; then of the frames of links
        without one.

        Args:
            Q: (N, n) rad or m.
            ups: (N, 3) unit vectors against gravity in root axes.
            levels: (N,) m, height of the ground along ups, from the root.
        """
        poses = self.statics.poses(Q)
        _, p = self.statics.link_frames(poses, self._without)
        lowest = self._hulls.lowest(ups, poses.R, poses.p) - self._margin / 2.0
        frames = np.einsum("nkj,nj->nk", p, ups)
        return np.concatenate((lowest, frames), axis=1) - levels[:, None]

    def _overlap(self, Q: Array) -> Flags:
        """Which pairs overlap, (N, pairs)."""
        poses = self.statics.poses(Q)
        return self._hulls.overlap(self._pairs, poses.R, poses.p, self._margin)


def _ancestors(parent: NDArray[np.int64], body: int, steps: int) -> list[int]:
    """A body and those that carry it, up to some joints away."""
    chain = [body]
    while len(chain) <= steps and parent[chain[-1]] >= 0:
        chain.append(int(parent[chain[-1]]))
    return chain


def _solid_boxes(model: RobotModel, known: set[int]) -> dict[int, Hull]:
    """Boxes with mass and inertia of the links without a known shape, by link."""
    found, bodies = {}, model.bodies
    for link, center, axes, half in solid_boxes(model):
        if link not in known:
            points = center + (_BOX * half) @ axes.T
            R, p = bodies.R_body_link[link], bodies.p_body_link[link]
            found[link] = Hull(int(bodies.body_of_link[link]), points @ R.T + p)
    return found


class FeasiblePostures:
    """Samples postures in which the robot can stand.

    Args:
        statics: of the robot.
        feet: its feet.
        rest: (n,) rad or m, a posture in which it stands without self-collision.
        plan: limits, margins and feet in contact.
        prediction: predicts the joint efforts, which are checked; None: they are not.

    Raises:
        IdentificationError: as FlatStance, where the feet have no common ground.
    """

    def __init__(
        self,
        statics: Statics,
        feet: Sequence[Foot],
        rest: Array,
        plan: PlanOptions,
        prediction: SensorPrediction | None = None,
    ) -> None:
        model = statics.model
        self.statics, self.plan, self._feet = statics, plan, tuple(feet)
        self._rest = as_array("rest", rest, (model.n_joints,))
        low, high = np.maximum(model.lower, -np.pi), np.minimum(model.upper, np.pi)
        middle, half = (low + high) / 2.0, plan.limit_fraction * (high - low) / 2.0
        self.low, self.high = middle - half, middle + half
        kept = self._rest if plan.keep_feet else None
        limits = self.low, self.high
        soles = [
            (i,)
            for i, foot in enumerate(feet)
            if plan.alone > 0.0 and len(foot.corners)
        ]
        self.stances = {
            indices: FlatStance(statics, [feet[i] for i in indices], kept, limits)
            for indices in plan.stands or [tuple(range(len(feet))), *soles]
        }
        self._collision = SelfCollision(statics, self._rest, plan.clearance)
        self._clear_links: dict[tuple[int, ...], Flags] = {}
        self._prediction = prediction
        most = model.effort_limits * plan.effort_fraction
        self._efforts = np.where(most > 0.0, most, np.inf)

    def sample(
        self,
        count: int,
        anywhere: bool = False,
        progress: Callable[[float, str], None] | None = None,
    ) -> list[Entry]:
        """Samples postures in which the robot can stand.

        Joint positions are sampled before the soles are brought to the ground: most near the ends
        of their ranges, some from close to rest to anywhere, and all nearer to rest where hardly
        any stand.

        Args:
            count: how many.
            anywhere: whether joints are sampled uniformly within their limits instead.
            progress: called with the fraction done, 0 to 1, and the step in words.

        Returns:
            Of each posture q (n,), the indices of the feet in contact, and the CoM's margin, m.

        Raises:
            IdentificationError: hardly any posture is possible; lists why.
        """
        rng = np.random.default_rng(self.plan.seed)
        refused: Counter[str] = Counter()
        pool: list[Entry] = []
        stands, tried, reach = tuple(self.stances), 0, 1.0
        tries = 30  # for each requested candidate
        while len(pool) < count and tried < tries * count:
            if progress is not None:
                progress(
                    max(len(pool) / count, tried / (tries * count)),
                    f"{len(pool)} of {count} postures found in which the robot can stand",
                )
            # at most 256 starts are solved at a time
            size = min(max(4 * (count - len(pool)), 16), 256, tries * count - tried)
            starts = self._starts(rng, size, anywhere)
            starts = self._rest + reach * (starts - self._rest)
            before = len(pool)
            turn = (tried + np.arange(size)) % len(stands)
            tried += size
            for found in self.stand(rng, starts, [stands[i] for i in turn]):
                if isinstance(found, str):
                    refused[found] += 1
                else:
                    pool.append(found)
            # where less than 2 % can stand, the next ones are nearer to rest
            if len(pool) - before < 0.02 * size and not anywhere:
                # nearer to rest each time, down to 5 % of the ranges
                reach = max(0.05, 0.6 * reach)
        if len(pool) < count / 10:
            reasons = ", ".join(
                f"{number} {reason}" for reason, number in refused.most_common()
            )
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
        # 85 % of the samples have joints near the ends of their ranges
        far = rng.random(count) < 0.85
        # a beta distribution below 1: the ends are more probable than the middle
        ends = rng.beta(0.3, 0.3, (int(far.sum()), len(self.low)))
        fractions[far] = ends
        spread = rng.uniform(np.where(far, 0.5, 0.2), 1.0)[:, None]
        return np.asarray(
            self._rest
            + spread * (self.low + fractions * (self.high - self.low) - self._rest)
        )

    def stand(
        self, rng: np.random.Generator, starts: Array, stands: Sequence[tuple[int, ...]]
    ) -> list[Entry | str]:
        """Finds the nearest postures in which the robot stands.

        Args:
            rng: draws the targets of the CoM.
            starts: (N, n) rad or m, joint positions.
            stands: N times the indices of the feet in contact.

        Returns:
            Of each start the posture as in sample(), or the reason why there is none.
        """
        results: list[Entry | str] = ["no flat soles within the limits"] * len(starts)
        shift = rng.uniform(-1.0, 1.0, (len(starts), 2))
        for indices, stance in self.stances.items():
            mine = np.array(
                [i for i, feet in enumerate(stands) if feet == indices], dtype=int
            )
            aims = stance.middles(starts[mine]) + shift[mine] * stance.room(
                self.plan.margin, self._rest
            )
            Q, found = stance.solve_all(starts[mine], aims)
            # The CoM of a planar robot, for example, cannot move sideways: any target will do.
            Q[~found], found[~found] = stance.solve_all(starts[mine][~found])
            judged = self._judge(Q[found], stance, indices)
            for place, result in zip(mine[found], judged, strict=True):
                results[place] = result
        return results

    def _judge(
        self, Q: Array, stance: FlatStance, indices: tuple[int, ...]
    ) -> list[Entry | str]:
        """Returns postures (N, n) on flat soles with their margins, or why one is not allowed."""
        ups, rest_up = (
            stance.up_directions(Q),
            stance.up_directions(self._rest[None])[0],
        )
        margins = [stance.margin(q) for q in Q]
        above = self._heights(Q, stance)[:, self._above_ground(stance, indices)] > 0.0
        strong: Flags = np.ones(len(Q), dtype=np.bool_)
        if self._prediction is not None:
            _, effort = self._prediction.wrenches_and_efforts(
                self.statics.poses(Q), ups, indices
            )
            strong = np.asarray((np.abs(effort) <= self._efforts).all(axis=1))
        checks = {
            "margin": np.array(margins) >= self.plan.margin - _SLACK,
            "most_tilt": ups @ rest_up
            >= np.cos(min(self.plan.most_tilt, np.pi)) - _SLACK,
            "effort limits": strong,
            "more than the soles on the ground": above.all(axis=1),
            "self-collision": ~self._collision.touching(Q),
        }
        results: list[Entry | str] = []
        for i, q in enumerate(Q):
            refused = next(
                (reason for reason, passed in checks.items() if not passed[i]), None
            )
            results.append(refused or (q, indices, margins[i]))
        return results

    def _heights(self, Q: Array, stance: FlatStance) -> Array:
        """Returns the heights of all links above the ground of the stance, (N, K) m."""
        return self._collision.heights(Q, stance.up_directions(Q), stance.levels(Q))

    def _above_ground(self, stance: FlatStance, indices: tuple[int, ...]) -> Flags:
        """Links that must clear the ground, (K,): not feet in contact, nor those low at rest."""
        if indices not in self._clear_links:
            model, bodies = self.statics.model, self._collision.bodies
            links = [model.link_index(foot.frame) for foot in self._feet]
            own = [int(model.bodies.body_of_link[link]) for link in links]
            standing = np.isin(bodies, [own[i] for i in indices])
            low = self._heights(self._rest[None], stance)[0] <= 0.0
            self._clear_links[indices] = np.asarray(
                ~standing & ~(low & ~np.isin(bodies, own))
            )
        return self._clear_links[indices]

    def path_between(
        self, start: Array, end: Array, step: float = 0.05
    ) -> Array | None:
        """Finds postures between two, through which the robot moves without lifting a foot.

        All feet keep their poses relative to each other, and all postures on the path are
        allowed. The straight line in the joints is projected to where the soles are in place and
        the CoM projects on the straight line between its two projections, which stays inside the
        polygon. Where two such postures are more than a step apart, the line between them is
        halved. Joints stay within the fraction of their range that is used, or of start and end
        where these are beyond.

        Args:
            start: (n,) rad or m, an allowed posture.
            end: (n,) rad or m, an allowed posture with the feet at the same places, as
                `keep_feet` plans.
            step: rad or m, largest change of a joint between two postures.

        Returns:
            (k, n) rad or m; None where there is no such path: then use a third posture on the
            way, such as the rest posture.
        """
        start, end = (as_array("posture", q, self._rest.shape) for q in (start, end))
        stance = FlatStance(self.statics, self._feet, start)
        # rad and m, of the feet's poses
        if np.abs(stance.residuals(end[None])[0]).max(initial=0.0) > 1e-6:
            return None
        low = np.minimum(np.minimum(start, end), self.low) - _SLACK
        high = np.maximum(np.maximum(start, end), self.high) + _SLACK
        aims = stance.projections(np.array([start, end]))
        count = max(1, int(np.ceil(np.abs(end - start).max() / step)))
        fractions = np.linspace(0.0, 1.0, count + 1)
        for _ in range(6):
            parts = fractions[1:-1, None]
            middle, found = stance.solve_all(
                start + parts * (end - start), aims[0] + parts * (aims[1] - aims[0])
            )
            Q = np.vstack((start, middle, end))
            if not found.all():
                return None
            wide = np.abs(np.diff(Q, axis=0)).max(axis=1) > step
            if not wide.any():
                judged = self._judge(Q, stance, tuple(range(len(self._feet))))
                allowed = not any(isinstance(result, str) for result in judged)
                return Q if allowed and ((low <= Q) & (high >= Q)).all() else None
            fractions = np.sort(
                np.concatenate(
                    (fractions, (fractions[:-1] + fractions[1:])[wide] / 2.0)
                )
            )
        return None  # it is not continuous


class GuidedRobot:
    """A robot that moves from posture to posture of a plan.

    Args:
        model: the robot.
        feet: its feet; those in contact keep their poses of the nominal posture.
        nominal: (n,) rad or m, in which it stands without self-collision.
        margin: m, of the URDF's CoM inside the support polygon on the path.
        speed: rad/s or m/s, largest of a joint.
        velocity_fraction: 0 to 1, of the model's velocity limits that is used.

    Attributes:
        target: (n,) rad or m, the posture that the robot was sent to last.
        speeds: (n,) rad/s or m/s, largest of each joint.

    Raises:
        IdentificationError: as FlatStance, where the feet have no common ground.
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
        # Without prediction: the planner of the postures has checked the efforts at either end.
        plan = PlanOptions(keep_feet=True, margin=margin, most_tilt=np.pi)
        self._feasible = FeasiblePostures(Statics(model), feet, nominal, plan)
        self.model, self.nominal, self.target = model, nominal, nominal
        limits = np.where(model.velocity_limits > 0.0, model.velocity_limits, np.inf)
        self.speeds = np.minimum(speed, velocity_fraction * limits)

    def farthest(self, q: Array, target: Array, most: float) -> str:
        """Returns the joint that is farthest from a target, and by how much, in words.

        Args:
            q: (n,) rad or m.
            target: (n,) rad or m.
            most: rad or m, by which joints may differ.

        Returns:
            "" where none differs by more.
        """
        off = np.abs(q - target)
        worst = int(np.argmax(off))
        if off[worst] <= most:
            return ""
        return f"joint {self.model.joint_names[worst]!r} is {off[worst]:.2f} off"

    def standing(self, end: Array) -> list[JointPath]:
        """Returns paths in sequence from the target to a posture that keep the feet in place.

        Args:
            end: (n,) rad or m.

        Returns:
            One path, or two through the nominal posture; [] where there is none.
        """
        between = self._feasible.path_between
        parts = [between(self.target, end)]
        if parts[0] is None:
            parts = [between(self.target, self.nominal), between(self.nominal, end)]
        ways = [time_path(part, self.speeds) for part in parts if part is not None]
        return ways if len(ways) == len(parts) else []

    def in_air(self, start: Array, end: Array) -> list[JointPath]:
        """Returns the paths of a lifted robot, through the nominal posture to avoid collisions.

        Args:
            start: (n,) rad or m.
            end: (n,) rad or m.
        """
        stations = (start, self.nominal), (self.nominal, end)
        return [time_path(np.array(ends), self.speeds) for ends in stations]
