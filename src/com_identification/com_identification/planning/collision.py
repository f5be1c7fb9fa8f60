"""Self-collision and ground clearance of a robot, with boxes and balls for its links."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from com_identification.regression.statics import Statics
from com_model import RobotModel
from com_model.arrays import Array, as_array
from com_model.urdf.shapes import SCHEMA_WITH_SHAPES, Primitive, read_primitive
from com_model.urdf.xml_reader import read_xml

_BATCH = 64  # postures at once


class SelfCollision:
    """Boxes of the bodies that could touch each other.

    Boxes and balls of a <collision> are exact, a cylinder is replaced by the box around it. Meshes
    are ignored: a link that has nothing else is approximated by the solid box with its mass and
    inertia (`approximated`), and not checked without inertia (`unchecked`). Pairs that touch in
    the rest posture are left out, and adjacent links, whose shapes overlap on purpose; of
    approximated links also those two joints away.

    Args:
        statics: Of the robot.
        rest: (n,) a posture without self-collision, rad or m.
        margin: m, distance that boxes keep.
    """

    def __init__(self, statics: Statics, rest: Array, margin: float = 0.0) -> None:
        model = statics.model
        self.statics = statics
        node, _ = read_xml(model.xml, SCHEMA_WITH_SHAPES)
        boxes = [
            (model.link_index(link.attributes["name"]), box.center, box.R, box.half, _radius(box))
            for link in node.all("link")
            if link.attributes["name"] in model.link_names
            for box in map(read_primitive, link.all("collision"))
            if box is not None
        ]
        guesses = _solid_boxes(model, {box[0] for box in boxes})
        self.approximated = tuple(model.link_names[box[0]] for box in guesses)
        boxes += guesses
        self._link = [box[0] for box in boxes]
        self._center = np.array([box[1] for box in boxes]).reshape(-1, 3)
        self._turn = np.array([box[2] for box in boxes]).reshape(-1, 3, 3)
        self._half = np.array([box[3] for box in boxes]).reshape(-1, 3) + margin / 2.0
        self._radius = np.array([box[4] for box in boxes]) + margin / 2.0  # NaN: no ball
        known = set(self._link)
        self.unchecked = tuple(
            name
            for i, name in enumerate(model.link_names)
            if model.link_masses[i] > 0.0 and i not in known
        )
        self._without_box = [model.link_index(name) for name in self.unchecked]
        pairs = [pair for pair in combinations(range(len(boxes)), 2) if self._may_touch(*pair)]
        self._pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        rest = as_array("rest", rest, (model.n_joints,))
        self._pairs = self._pairs[~self._overlap(rest[None])[0]]

    def _may_touch(self, i: int, j: int) -> bool:
        """Whether two boxes belong to bodies that are not adjacent in the chain."""
        bodies, links = self.statics.model.bodies, (self._link[i], self._link[j])
        guess = any(self.statics.model.link_names[link] in self.approximated for link in links)
        a, b = (int(bodies.body_of_link[link]) for link in links)
        near = 2 if guess else 1
        return b not in _ancestors(bodies.parent, a, near) and a not in _ancestors(
            bodies.parent, b, near
        )

    def touches(self, q: Array) -> tuple[str, str] | None:
        """Names two links that touch in a posture (n,); None where none do."""
        hit = np.flatnonzero(self._overlap(q[None])[0])
        if not len(hit):
            return None
        names = self.statics.model.link_names
        i, j = self._pairs[hit[0]]
        return names[self._link[i]], names[self._link[j]]

    def touching(self, Q: Array) -> NDArray[np.bool_]:
        """Whether links touch in postures (N, n), (N,)."""
        parts = [self._overlap(Q[i : i + _BATCH]).any(axis=1) for i in range(0, len(Q), _BATCH)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)

    @property
    def bodies(self) -> NDArray[np.int64]:
        """Body of each height that heights() gives, (K,)."""
        return np.asarray(self.statics.model.bodies.body_of_link[[*self._link, *self._without_box]])

    def heights(self, Q: Array, ups: Array, levels: Array) -> Array:
        """Computes how high above the ground all links are.

        Args:
            Q: (N, n) postures.
            ups: (N, 3) directions against gravity, root axes.
            levels: (N,) m, of the ground along those, from the root.

        Returns:
            (N, K) m, of the lowest point of each box with its margin; then of the frames of links
            without a box.
        """
        R, p = self.statics.link_frames(self.statics.poses(Q), [*self._link, *self._without_box])
        count = len(self._link)
        boxes = R[:, :count]
        center = p.copy()
        center[:, :count] += (boxes @ self._center[..., None])[..., 0]
        heights = np.einsum("nkj,nj->nk", center, ups) - levels[:, None]
        along = np.einsum("nkji,nj->nki", boxes @ self._turn, ups)
        heights[:, :count] -= np.einsum("nki,ki->nk", np.abs(along), self._half)
        return np.asarray(heights)

    def _overlap(self, Q: Array) -> NDArray[np.bool_]:
        """Which pairs overlap, (N, pairs): no axis separates them (separating axis theorem)."""
        if not len(self._pairs):
            return np.zeros((len(Q), 0), dtype=np.bool_)
        R, p = self.statics.link_frames(self.statics.poses(Q), self._link)
        turn = R @ self._turn
        center = p + (R @ self._center[..., None])[..., 0]
        i, j = self._pairs.T
        gap = center[:, j] - center[:, i]
        # Balls around the boxes first: most pairs are far apart.
        ball = np.isfinite(self._radius)
        reach = np.where(ball, self._radius, np.linalg.norm(self._half, axis=1))
        near = np.linalg.norm(gap, axis=2) <= reach[i] + reach[j]
        near_balls, near_boxes = near & (ball[i] & ball[j]), near & ~(ball[i] | ball[j])
        hit = np.array(near_balls)
        which, pair = np.nonzero(near_boxes)
        k, m = i[pair], j[pair]
        sides = turn[which, k], turn[which, m], self._half[k], self._half[m]
        hit[which, pair] = ~_apart(gap[which, pair], *sides)
        which, pair = np.nonzero(near & (ball[i] != ball[j]))
        first = ball[i[pair]]
        k, m = np.where(first, i[pair], j[pair]), np.where(first, j[pair], i[pair])
        hit[which, pair] = (
            _distance_to_box(gap[which, pair], turn[which, m], self._half[m]) <= self._radius[k]
        )
        return hit


def _apart(gap: Array, A: Array, B: Array, a: Array, b: Array) -> NDArray[np.bool_]:
    """Whether an axis separates pairs of boxes with axes A, B (K, 3, 3) and half sizes a, b."""
    edges = np.cross(A.transpose(0, 2, 1)[:, :, None], B.transpose(0, 2, 1)[:, None])
    edges = edges.reshape(len(gap), 9, 3)
    axes = np.concatenate((A.transpose(0, 2, 1), B.transpose(0, 2, 1), edges), axis=1)
    reach = np.abs(axes @ A) @ a[..., None] + np.abs(axes @ B) @ b[..., None]
    apart = np.abs(axes @ gap[..., None]) > reach + 1e-12
    return np.asarray(apart[..., 0].any(axis=1))


def _distance_to_box(gap: Array, axes: Array, half: Array) -> Array:
    """Distance (K,) of points to boxes that are `gap` (K, 3) apart from their centres, m."""
    outside = np.maximum(np.abs(np.einsum("kji,kj->ki", axes, gap)) - half, 0.0)
    return np.asarray(np.linalg.norm(outside, axis=1))


def _ancestors(parent: NDArray[np.int64], body: int, steps: int) -> list[int]:
    """A body and those that carry it, up to some joints away."""
    chain = [body]
    while len(chain) <= steps and parent[chain[-1]] >= 0:
        chain.append(int(parent[chain[-1]]))
    return chain


def _solid_boxes(
    model: RobotModel, known: set[int]
) -> list[tuple[int, Array, Array, Array, float]]:
    """Boxes with mass and inertia of the links without a known one: link, box, no radius.

    Half sizes a, b, c of a solid box: I_a = m (b^2 + c^2) / 3, so a^2 = 3 (I_b + I_c - I_a) / 2m.
    """
    found = []
    for link in range(len(model.link_names)):
        mass, inertia = float(model.link_masses[link]), model.link_inertias[link]
        if link in known or mass <= 0.0 or not np.isfinite(inertia).all():
            continue
        moments, axes = np.linalg.eigh(inertia)
        square = 1.5 * (moments.sum() - 2.0 * moments) / mass
        if (square > 0.0).all():
            found.append((link, model.link_coms[link], axes, np.sqrt(square), np.nan))
    return found


def _radius(primitive: Primitive) -> float:
    """Of a ball, m; NaN of another shape."""
    return float(primitive.half[0]) if primitive.tag == "sphere" else np.nan
