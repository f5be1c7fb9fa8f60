"""Poses and Jacobians of a few links, compiled: what a node needs at every sample (feet, sensors).

kinematics.link_poses gives all links in plain numpy; this computes only the bodies on the
way to the wanted links, in a few microseconds.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, Indices
from com_model.bodies import PRISMATIC
from com_model.compiled import compiled, entry_point
from com_model.dynamics.tree_kernels import Tree, set_poses, tree_of
from com_model.geometry.vector_kernels import cross, set_point, set_product, sub, turned
from com_model.model import RobotModel


class Frames(NamedTuple):
    """What set_link_poses needs of a tree of B bodies and k links.

    Attributes:
        path: the bodies on the way to the links.
        body: (k,) of the links.
        R_body_link: (k, 3, 3) their constant orientations in those.
        p_body_link: (k, 3) m, likewise.
        R: (B, 3, 3) poses of the bodies, work space with the root's set.
        p: (B, 3) m.
    """

    tree: Tree
    path: Indices
    body: Indices
    R_body_link: Array
    p_body_link: Array
    R: Array
    p: Array


class LinkMotions(NamedTuple):
    """Frames of k links in the root link's frame, and how they move.

    Attributes:
        R: (k, 3, 3) orientations.
        p: (k, 3) m, origins.
        jacobian: (k, 6, n) velocity of the origin over angular velocity, the root at rest.
    """

    R: Array
    p: Array
    jacobian: Array


class LinkFrames:
    """Frames of k links (repeats allowed) in the root link's frame; one instance for one thread.

    Points (k, 3) m of the links, given in their frames, take the place of the origins.
    """

    def __init__(
        self, model: RobotModel, links: Sequence[str], points: ArrayLike | None = None
    ) -> None:
        self._model = model
        self.links = tuple(links)
        index = np.array([model.link_index(link) for link in links], dtype=np.int64)
        bodies = model.bodies
        self._body = bodies.body_of_link[index]
        above = {body for own in self._body for body in bodies.path_to(own)}
        path = np.array(sorted(above), dtype=np.int64)
        R = np.tile(np.eye(3), (bodies.count, 1, 1))  # work space, its first row stays
        R_link, p_link = bodies.R_body_link[index], bodies.p_body_link[index]
        if points is not None:
            p_link = p_link + np.einsum("kij,kj->ki", R_link, np.asarray(points))
        fixed = self._body, R_link, p_link
        self.frames = Frames(
            tree_of(bodies), path, *fixed, R, np.zeros((bodies.count, 3))
        )
        results = np.empty((0, 3, 3)), np.empty((0, 3))
        self._poses = entry_point(set_link_poses, np.empty(0), self.frames, *results)

    def poses(self, q: ArrayLike) -> tuple[Array, Array]:
        """R_root_link (k, 3, 3) and origins (k, 3) m at (n,) rad or m, as link_poses."""
        R, p = np.empty((len(self._body), 3, 3)), np.empty((len(self._body), 3))
        self._poses(self._checked(q), self.frames, R, p)
        return R, p

    def motions(self, q: ArrayLike) -> LinkMotions:
        """The same with Jacobians."""
        motions = self._make_motions()
        self._move(self._checked(q), self.frames, motions)
        return motions

    def _checked(self, q: ArrayLike) -> Array:
        q = np.asarray(q, dtype=np.float64)
        if q.shape != (self._model.n_joints,):
            q = self._model.check_q(q)  # raises, and lists the joints
        return np.ascontiguousarray(q)

    def _make_motions(self) -> LinkMotions:
        k, n = len(self._body), self._model.n_joints
        return LinkMotions(np.empty((k, 3, 3)), np.empty((k, 3)), np.empty((k, 6, n)))

    @cached_property
    def _move(self) -> Callable[..., Any]:
        return entry_point(
            set_link_motions, np.empty(0), self.frames, self._make_motions()
        )


@compiled()
def set_link_poses(q: Array, frames: Frames, R_out: Array, p_out: Array) -> None:
    """Sets the poses of links in the root link's frame.

    Args:
        q: (n,) joint positions, rad or m.
        frames: of the k links; its work arrays are overwritten.
        R_out: (k, 3, 3) set.
        p_out: (k, 3) m, set.
    """
    tree, path, body, R_link, p_link, R, p = frames
    set_poses(q, tree, path, R, p)
    for n in range(body.size):
        set_product(R[body[n]], R_link[n], R_out[n])
        set_point(R[body[n]], p[body[n]], p_link[n], p_out[n])


@compiled()
def set_link_motions(q: Array, frames: Frames, motions: LinkMotions) -> None:
    """Sets poses and Jacobians of links in the root link's frame, the root at rest.

    Args:
        q: (n,) joint positions, rad or m.
        frames: of the k links; its work arrays are overwritten.
        motions: set.
    """
    set_link_poses(q, frames, motions.R, motions.p)
    tree, jacobian = frames.tree, motions.jacobian
    jacobian[:] = 0.0
    for i in range(frames.body.size):
        b = frames.body[i]
        while b > 0:
            j, scale, slides = (
                tree.q_index[b],
                tree.multiplier[b],
                tree.joint_type[b] == PRISMATIC,
            )
            axis = turned(
                frames.R[b], tree.axis[b]
            )  # the joint turns about it, or slides along it
            column = axis if slides else cross(axis, sub(motions.p[i], frames.p[b]))
            for r in range(3):
                jacobian[i, r, j] += scale * column[r]
                jacobian[i, 3 + r, j] += 0.0 if slides else scale * axis[r]
            b = tree.parent[b]
