"""Poses of a few links, compiled: what a node needs at every sample (feet, sensors).

kinematics.link_poses gives all links in plain numpy; this computes only the bodies on the
way to the wanted links, in a few microseconds.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array
from com_model.bodies import Indices
from com_model.compiled import compiled, entry_point
from com_model.dynamics.tree_kernels import Tree, set_poses, tree_of
from com_model.geometry.vector_kernels import set_point, set_product
from com_model.model import RobotModel


class Links(NamedTuple):
    """k links: their bodies (k,), and their constant poses in those, (k, 3, 3) and (k, 3) m."""

    body: Indices
    R: Array
    p: Array


class Frames(NamedTuple):
    """What set_link_poses needs: the tree, the bodies on the way to the links, and the links.

    R (B, 3, 3) and p (B, 3) m, the poses of the bodies, are work space with the root's set.
    """

    tree: Tree
    path: Indices
    links: Links
    R: Array
    p: Array


class LinkFrames:
    """Frames of k links (repeats allowed) in the root link's frame; one instance for one thread."""

    def __init__(self, model: RobotModel, links: Sequence[str]) -> None:
        self._model = model
        self.links = tuple(links)
        index = np.array([model.link_index(link) for link in links], dtype=np.int64)
        bodies = model.bodies
        self._body = bodies.body_of_link[index]
        links_of = Links(self._body, bodies.R_body_link[index], bodies.p_body_link[index])
        above = {body for own in self._body for body in bodies.path_to(own)}
        path = np.array(sorted(above), dtype=np.int64)
        R = np.tile(np.eye(3), (bodies.count, 1, 1))  # work space, its first row stays
        self.frames = Frames(tree_of(bodies), path, links_of, R, np.zeros((bodies.count, 3)))
        results = np.empty((0, 3, 3)), np.empty((0, 3))
        self._poses = entry_point(set_link_poses, np.empty(0), self.frames, *results)

    def poses(self, q: ArrayLike) -> tuple[Array, Array]:
        """R_root_link (k, 3, 3) and origins (k, 3) m at (n,) rad or m, as link_poses."""
        q = np.asarray(q, dtype=np.float64)
        if q.shape != (self._model.n_joints,):
            q = self._model.check_q(q)  # raises, and lists the joints
        R, p = np.empty((len(self._body), 3, 3)), np.empty((len(self._body), 3))
        self._poses(np.ascontiguousarray(q), self.frames, R, p)
        return R, p


@compiled()
def set_link_poses(q: Array, frames: Frames, R_out: Array, p_out: Array) -> None:
    """Sets the poses of links in the root link's frame, R_out (k, 3, 3) and p_out (k, 3) m."""
    tree, path, links, R, p = frames
    set_poses(q, tree, path, R, p)
    for n in range(links.body.size):
        set_product(R[links.body[n]], links.R[n], R_out[n])
        set_point(R[links.body[n]], p[links.body[n]], links.p[n], p_out[n])
