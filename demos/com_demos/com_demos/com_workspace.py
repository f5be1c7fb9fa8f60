"""Where a robot can bring its centre of mass ([Cotton] VI.A): samples, their hull, margins.

The centre of mass is the end of a serial chain (com_model.sesc.sesc), so it has a workspace like a
gripper's. It is sampled: joint positions at random within the limits, all at once.

Where a standing robot's centre of mass can be over its feet ([Cotton] VI.A, with the ground).

A foot that stands is the base: the centre of mass is looked at from its sole,
  c_sole = R_sole^T (c - p_sole),
whose z is the height above the ground and whose x and y are the ground projection.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, FrozenArrays, as_array
from com_model.dynamics.kinematics import link_pose_batch, link_poses
from com_model.exceptions import ComModelError, GeometryError
from com_model.geometry.support import SupportPolygon, solid_hull
from com_model.model import RobotModel
from com_model.robot_config import Foot
from com_model.sesc.sesc import Sesc

_BLOCK = 20_000  # configurations at once, a few MB
_TURN = np.pi  # rad, to either side: a joint without limits


@dataclass(frozen=True, eq=False)
class Workspace(FrozenArrays):
    """The convex hull of centres of mass."""

    points: Array  # (N, 3) m, the samples
    vertices: Array  # (k, 3) m, corners of the hull
    faces: Array  # (f, 4) outward unit normals and offsets: inside n . x + offset < 0.
    volume: float  # m^3

    @classmethod
    def from_points(cls, points: ArrayLike) -> "Workspace":
        """Builds the hull of points (N, 3) m; GeometryError where they have no volume."""
        points = as_array("points", points, (None, 3))
        if not np.isfinite(points).all():
            raise GeometryError("points are not finite: leave those out")
        try:
            hull = solid_hull(points)
        except GeometryError as error:
            raise GeometryError(f"{error}: let more joints vary") from error
        return cls(points, points[hull.vertices], hull.equations, float(hull.volume))

    def margin(self, targets: ArrayLike) -> Array:
        """Measures how far inside the hull targets (m, 3) are, m: the distance to the nearest face.

        Positive inside. Outside it is negative, and at most as far as the hull really is. The hull
        of a workspace may hold points that no posture reaches.
        """
        targets = as_array("targets", targets, (None, 3))
        return np.asarray(
            -(targets @ self.faces[:, :3].T + self.faces[:, 3]).max(axis=1)
        )

    def reach(self, directions: ArrayLike) -> Array:
        """How far the centre of mass comes in directions (m, 3), m from the origin."""
        directions = as_array("directions", directions, (None, 3))
        length = np.linalg.norm(directions, axis=1)
        if not (length > 0.0).all():
            raise GeometryError("directions: expected vectors other than zero")
        return np.asarray((self.vertices @ directions.T / length).max(axis=0))


def sample_coms(
    model: RobotModel,
    count: int,
    joints: Sequence[str] | None = None,
    rest: ArrayLike | None = None,
    seed: int = 0,
    threads: int = 1,
) -> Array:
    """Computes the centres of mass (count, 3) m of random postures, in the root link's frame.

    The joints (all by default) vary evenly within their limits, a joint without any within half a
    turn to either side, or half a metre; the others are at rest (n,) rad or m, by default the
    neutral posture. The random numbers depend on the seed.
    """
    draw, sesc = _sampler(model, joints, rest, seed), Sesc(model)
    return np.concatenate(
        [sesc.com_batch(draw(size), threads) for size in _sizes(count, _BLOCK)]
    )


def sample_postures(
    model: RobotModel,
    count: int,
    joints: Sequence[str] | None = None,
    rest: ArrayLike | None = None,
    seed: int = 0,
) -> Array:
    """Draws random postures: those of sample_coms, (count, n) rad or m."""
    return _sampler(model, joints, rest, seed)(*_sizes(count, count))


def _sizes(count: int, most: int) -> list[int]:
    """Sizes of the blocks that make up a number of postures."""
    if count < 1:
        raise ComModelError(f"count: expected 1 or more, got {count}")
    return [min(most, count - start) for start in range(0, count, most)]


def _sampler(
    model: RobotModel, joints: Sequence[str] | None, rest: ArrayLike | None, seed: int
) -> Callable[[int], Array]:
    """Draws so many further postures (N, n) at each call, evenly from the box of the joints."""
    q = model.neutral if rest is None else model.check_q(rest, "rest")
    low, width = np.array(q), np.zeros(model.n_joints)
    names = model.joint_names if joints is None else joints
    for i in map(model.joint_index, names):
        free = 0.5 if model.joint_types[i] == "prismatic" else _TURN
        lower = model.lower[i] if np.isfinite(model.lower[i]) else -free
        upper = model.upper[i] if np.isfinite(model.upper[i]) else free
        low[i], width[i] = lower, upper - lower
    (source,) = np.random.SeedSequence(seed).spawn(1)
    random = np.random.Generator(np.random.SFC64(source))

    def draw(count: int) -> Array:
        Q = random.random((count, len(low)))
        Q *= width
        Q += low
        return Q

    return draw


_SUNK = 1e-3  # m below the ground that still count as on it


@dataclass(frozen=True, eq=False)
class StandingReach(FrozenArrays):
    """Centres of mass of random postures of a robot that stands."""

    feet: tuple[str, ...]
    points: Array  # (N, 3) m, in the frame of the first of them; z is the height above the ground
    margin: Array  # (N,) m, of the ground projection inside the support polygon, negative outside
    support: Array  # (k, 2) m, the corners of the support polygon in that frame

    @property
    def fraction(self) -> float:
        """Fraction of the postures in which the robot can stand at rest."""
        return float((self.margin >= 0.0).mean())

    @property
    def best_margin(self) -> float:
        """The largest margin, m: negative where it stands in no posture."""
        return float(self.margin.max())

    @property
    def heights(self) -> tuple[float, float]:
        """Least and largest height of the CoM where it stands, m; NaN where it never does."""
        standing = self.points[self.margin >= 0.0, 2]
        if not len(standing):
            return float("nan"), float("nan")
        return float(standing.min()), float(standing.max())

    def over_edges(self) -> dict[str, float]:
        """How far the projection comes beyond the support polygon, m (to no edge: negative)."""
        beyond = self.points[:, :2].max(axis=0) - self.support.max(axis=0)
        behind = self.support.min(axis=0) - self.points[:, :2].min(axis=0)
        far = beyond[0], behind[0], beyond[1], behind[1]
        return dict(
            zip(("front", "back", "left", "right"), map(float, far), strict=True)
        )


def reach_on_foot(
    model: RobotModel,
    foot: Foot,
    count: int,
    seed: int = 0,
    others: Sequence[Foot] = (),
) -> StandingReach:
    """Samples a robot that stands on one flat sole, all joints anywhere within their limits.

    Postures that bring its root, the end of a limb or the corner of another foot below the ground
    do not count; GeometryError where none is left, or the foot has no sole.
    """
    _check_soles([foot])
    Q = sample_postures(model, count, seed=seed)
    R, p = link_pose_batch(model, Q, foot.frame)
    above = _lowest(model, Q, others, R[:, :, 2], p) > -_SUNK
    if not above.any():
        raise GeometryError(
            f"on {foot.frame!r} none of {count} postures keeps above the ground: draw more"
        )
    points = np.einsum(
        "nji,nj->ni", R[above], Sesc(model).com_batch(Q[above]) - p[above]
    )
    polygon = SupportPolygon.from_soles([np.eye(3)], [np.zeros(3)], [foot.corners])
    return _reach((foot.frame,), points, polygon)


def reach_on_feet(
    model: RobotModel, feet: Sequence[Foot], rest: ArrayLike, count: int, seed: int = 0
) -> StandingReach:
    """Samples a robot whose feet stay where they are in rest (n,): the joints that move none vary.

    Raises GeometryError where a foot has no sole, or there is none.
    """
    _check_soles(feet)
    q = model.check_q(rest, "rest")
    Q = sample_postures(model, count, joints_off_the_feet(model, feet), q, seed)
    index = [model.link_index(foot.frame) for foot in feet]
    R, p = (part[index] for part in link_poses(model, q))
    points = (Sesc(model).com_batch(Q) - p[0]) @ R[0]
    R_soles, p_soles = R[0].T @ R, (p - p[0]) @ R[0]
    corners = [foot.corners for foot in feet]
    polygon = SupportPolygon.from_soles(R_soles, p_soles, corners, (0.0, 0.0, 1.0))
    return _reach(tuple(foot.frame for foot in feet), points, polygon)


def joints_off_the_feet(model: RobotModel, feet: Sequence[Foot]) -> list[str]:
    """Lists the joints that move none of the feet in the root link's frame."""
    bodies, moving = model.bodies, set[int]()
    for foot in feet:
        path = bodies.path_to(bodies.body_of_link[model.link_index(foot.frame)])
        moving.update(bodies.q_index[path].tolist())
    return [name for i, name in enumerate(model.joint_names) if i not in moving]


def _lowest(
    model: RobotModel, Q: Array, feet: Sequence[Foot], up: Array, ground: Array
) -> Array:
    """Height (N,) m of the lowest of root, ends of limbs and corners of feet over the ground.

    up (N, 3) is out of the ground, through ground (N, 3) m; both in the root link's frame.
    """
    bodies = model.bodies
    ends = np.flatnonzero(bodies.subtree_end == np.arange(bodies.count) + 1)
    corners = {bodies.names[body]: np.zeros((1, 2)) for body in (0, *ends)}
    corners |= {foot.frame: foot.corners for foot in feet if len(foot.corners)}
    lowest = np.full(len(Q), np.inf)
    for link, points in corners.items():
        R, p = link_pose_batch(model, Q, link)
        heights = np.einsum("ni,nij->nj", up, R[:, :, :2]) @ points.T
        heights += np.einsum("ni,ni->n", up, p - ground)[:, None]
        lowest = np.minimum(lowest, heights.min(axis=1))
    return lowest


def _reach(
    feet: tuple[str, ...], points: Array, polygon: SupportPolygon
) -> StandingReach:
    return StandingReach(
        feet, points, np.asarray(polygon.margin(points)), polygon.vertices[:, :2]
    )


def _check_soles(feet: Sequence[Foot]) -> None:
    if not feet:
        raise GeometryError(
            "no feet to stand on: give feet in the robot's configuration"
        )
    for foot in feet:
        if len(foot.corners) < 3:
            raise GeometryError(
                f"foot {foot.frame!r} has no sole to stand on: give its corners"
            )
