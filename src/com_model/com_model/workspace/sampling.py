"""Where a robot can bring its centre of mass ([Cotton] VI.A): samples, their hull, slices, margins.

The centre of mass is the end of a serial chain (com_model.sesc.sesc), so it has a workspace like a
gripper's. It is sampled: joint positions at random within the limits, all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, FrozenArrays, as_array
from com_model.exceptions import ComModelError, GeometryError
from com_model.geometry.hull import convex_hull, solid_hull
from com_model.model import RobotModel
from com_model.sesc.sesc import Sesc

_BLOCK = 2048  # configurations that fit a core's cache
_TURN = np.pi  # rad, to either side: a joint without limits


@dataclass(frozen=True, eq=False)
class Workspace(FrozenArrays):
    """The convex hull of centres of mass.

    Attributes:
        points: (N, 3) m, the samples.
        vertices: (k, 3) m, corners of the hull.
        faces: (f, 4) outward unit normals and offsets: inside n . x + offset < 0.
        volume: m^3.
    """

    points: Array
    vertices: Array
    faces: Array
    volume: float

    @classmethod
    def of(cls, points: ArrayLike) -> Workspace:
        """Builds the hull of points (N, 3) m.

        Raises:
            GeometryError: Fewer than four points, all in a plane, or not finite.
        """
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
        return np.asarray(-(targets @ self.faces[:, :3].T + self.faces[:, 3]).max(axis=1))

    def reach(self, directions: ArrayLike) -> Array:
        """How far the centre of mass comes in directions (m, 3), m from the origin."""
        directions = as_array("directions", directions, (None, 3))
        length = np.linalg.norm(directions, axis=1)
        if not (length > 0.0).all():
            raise GeometryError("directions: expected vectors other than zero")
        return np.asarray((self.vertices @ directions.T / length).max(axis=0))

    def slice_at(self, height: float, thickness: float = 0.01) -> Array:
        """Outlines the samples within half a thickness (m) of a height z (m).

        Returns:
            (k, 2) m, convex outline in x and y, counter-clockwise; (0, 2) where there are none.
        """
        near = np.abs(self.points[:, 2] - height) <= thickness / 2.0
        return convex_hull(self.points[near, :2]) if near.any() else np.zeros((0, 2))


def sample_coms(
    model: RobotModel,
    count: int,
    joints: Sequence[str] | None = None,
    rest: ArrayLike | None = None,
    seed: int = 0,
    threads: int = 1,
) -> Array:
    """Computes the centres of mass of random postures.

    Args:
        joints: Those that vary, evenly within their limits (a joint without any within half a
            turn to either side, or half a metre); all by default.
        rest: (n,) rad or m, of the other joints; the neutral posture by default.
        seed: Of the random numbers; they depend on the number of threads, too.

    Returns:
        (count, 3) m, in the root link's frame.

    Raises:
        ComModelError: count or threads is no positive number.
    """
    _check_numbers(count, threads)
    low, width = _box(model, joints, rest)
    sesc, result = Sesc(model), np.empty((count, 3))

    def work(source: np.random.SeedSequence, start: int, stop: int) -> None:
        random = np.random.Generator(np.random.SFC64(source))
        Q = np.empty((_BLOCK, model.n_joints))
        for i in range(start, stop, _BLOCK):
            part = Q[: min(_BLOCK, stop - i)]
            _fill(part, random, low, width)
            result[i : i + len(part)] = sesc.com_batch(part)

    sources = np.random.SeedSequence(seed).spawn(threads)
    starts = np.linspace(0, count, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, sources, starts[:-1], starts[1:]))
    return result


def sample_postures(
    model: RobotModel,
    count: int,
    joints: Sequence[str] | None = None,
    rest: ArrayLike | None = None,
    seed: int = 0,
) -> Array:
    """Draws random postures: those of sample_coms with one thread, (count, n) rad or m."""
    _check_numbers(count, 1)
    (source,) = np.random.SeedSequence(seed).spawn(1)
    Q = np.empty((count, model.n_joints))
    _fill(Q, np.random.Generator(np.random.SFC64(source)), *_box(model, joints, rest))
    return Q


def _check_numbers(count: int, threads: int) -> None:
    if count < 1 or threads < 1:
        raise ComModelError(f"count and threads: expected 1 or more, got {count} and {threads}")


def _fill(Q: Array, random: np.random.Generator, low: Array, width: Array) -> None:
    """Draws the rows of Q evenly from the box, in place."""
    random.random(out=Q)
    Q *= width
    Q += low


def _box(
    model: RobotModel, joints: Sequence[str] | None, rest: ArrayLike | None
) -> tuple[Array, Array]:
    """Least positions (n,) and widths (n,) of the joints."""
    q = model.neutral if rest is None else model.check_q(rest, "rest")
    low, width = np.array(q), np.zeros(model.n_joints)
    names = model.joint_names if joints is None else joints
    for i in map(model.joint_index, names):
        free = 0.5 if model.joint_types[i] == "prismatic" else _TURN
        lower = model.lower[i] if np.isfinite(model.lower[i]) else -free
        upper = model.upper[i] if np.isfinite(model.upper[i]) else free
        low[i], width[i] = lower, upper - lower
    return low, width
