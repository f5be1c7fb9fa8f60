"""Self-collision and ground clearance of a robot, with convex hulls for its links."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from com_identification.regression.priors import solid_boxes
from com_identification.regression.statics import Statics
from com_model import RobotModel
from com_model.arrays import Array, as_array
from com_model.shapes.hulls import Hull, Hulls, hull_of, read_shapes

_BOX = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)


class SelfCollision:
    """Hulls of the links that could touch each other; links keep a margin, m.

    They are those of the <collision> shapes: boxes, balls, capsules and convex meshes are exact. A
    link without one that can be read is approximated by the solid box with its mass and inertia
    (`approximated`), and not checked without inertia (`unchecked`). Pairs that touch in the posture
    rest (n,) are left out, and adjacent links, whose shapes overlap on purpose; of approximated
    links also those two joints away.
    """

    def __init__(self, statics: Statics, rest: Array, margin: float = 0.0) -> None:
        self.statics, self._margin = statics, margin
        model = statics.model
        shapes = [s for s in read_shapes(model)[0] if s.link in model.link_names]
        self._link = [model.link_index(shape.link) for shape in shapes]
        guesses = _solid_boxes(model, set(self._link))
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
        pairs = [pair for pair in combinations(range(len(hulls)), 2) if self._may_touch(*pair)]
        self._pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        rest = as_array("rest", rest, (model.n_joints,))
        self._pairs = self._pairs[~self._overlap(rest[None])[0]]

    def _may_touch(self, i: int, j: int) -> bool:
        """Whether two hulls belong to bodies that are not adjacent in the chain."""
        bodies, links = self.statics.model.bodies, (self._link[i], self._link[j])
        guess = any(self.statics.model.link_names[link] in self.approximated for link in links)
        a, b = (int(bodies.body_of_link[link]) for link in links)
        near = 2 if guess else 1
        return b not in _ancestors(bodies.parent, a, near) and a not in _ancestors(
            bodies.parent, b, near
        )

    def touching(self, Q: Array) -> NDArray[np.bool_]:
        """Whether links touch in postures (N, n), (N,)."""
        return np.asarray(self._overlap(Q).any(axis=1))

    @property
    def bodies(self) -> NDArray[np.int64]:
        """Body of each height that heights() gives, (K,)."""
        return np.asarray(self.statics.model.bodies.body_of_link[[*self._link, *self._without]])

    def heights(self, Q: Array, ups: Array, levels: Array) -> Array:
        """How high above the ground all links are, (N, K) m above levels (N,) m along ups (N, 3).

        From the root, of the lowest point of each hull, less half its margin; then of the frames of
        links without one.
        """
        poses = self.statics.poses(Q)
        _, p = self.statics.link_frames(poses, self._without)
        lowest = self._hulls.lowest(ups, poses.R, poses.p) - self._margin / 2.0
        frames = np.einsum("nkj,nj->nk", p, ups)
        return np.concatenate((lowest, frames), axis=1) - levels[:, None]

    def _overlap(self, Q: Array) -> NDArray[np.bool_]:
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
