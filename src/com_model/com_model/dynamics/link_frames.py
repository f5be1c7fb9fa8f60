"""Poses of a few links, compiled: what a node needs at every sample (feet, sensors).

kinematics.link_poses gives all links in plain numpy; this computes only the bodies on the
way to the wanted links, in a few microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from com_model import RobotModel
from com_model.bodies import PRISMATIC
from com_model.compiled import compiled
from com_model.geometry.vector_kernels import set_point, set_product, set_rotation

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class LinkFrames:
    """Frames of k links in the root link's frame; one instance for one thread.

    Args:
        model: the robot.
        links: k link names, repeats allowed.

    Raises:
        UnknownNameError: a link is not the model's; lists those that there are.
    """

    def __init__(self, model: RobotModel, links: Sequence[str]) -> None:
        self._model = model
        self.links = tuple(links)
        index = np.array([model.link_index(link) for link in links], dtype=np.int64)
        bodies = model.bodies
        self._body = bodies.body_of_link[index]
        self._R_link = np.ascontiguousarray(bodies.R_body_link[index])
        self._p_link = np.ascontiguousarray(bodies.p_body_link[index])
        above = {body for own in self._body for body in bodies.path_to(own)}
        self._path = np.array(sorted(above), dtype=np.int64)
        self._slides = bodies.joint_type == PRISMATIC
        self._R = np.tile(np.eye(3), (bodies.count, 1, 1))  # work space, its first row stays
        self._p = np.zeros((bodies.count, 3))

    def poses(self, q: ArrayLike) -> tuple[Array, Array]:
        """Poses at joint positions.

        Along the way to each link, for a joint with position s and axis a, with R_0 and d the
        constant pose of its frame in the parent body:
          R_child = R_parent R_0 Rot(a, s),  p_child = p_parent + R_parent d       (revolute)
          R_child = R_parent R_0,  p_child = p_parent + R_parent (d + R_0 a s)    (prismatic)

        Args:
            q: (n,) rad or m, in the model's order.

        Returns:
            R_root_link (k, 3, 3), and the links' origins in the root frame (k, 3), m.

        Raises:
            ShapeError: q is not (n,).
        """
        q = np.asarray(q, dtype=np.float64)
        if q.shape != (self._model.n_joints,):
            q = self._model.check_q(q)  # raises, and lists the joints
        b = self._model.bodies
        R, p = np.empty((len(self._body), 3, 3)), np.empty((len(self._body), 3))
        _poses(
            q, self._path, self._body, self._R_link, self._p_link, self._slides,
            b.parent, b.R, b.d, b.axis, b.q_index, b.multiplier, b.offset,
            self._R, self._p, R, p,
        )  # fmt: skip
        return R, p


@compiled()
def _poses(
    q: Array,
    path: Indices,
    body: Indices,
    R_link: Array,
    p_link: Array,
    slides: NDArray[np.bool_],
    parent: Indices,
    R_0: Array,
    d: Array,
    axis: Array,
    q_index: Indices,
    multiplier: Array,
    offset: Array,
    R: Array,
    p: Array,
    R_out: Array,
    p_out: Array,
) -> None:
    """Compiled part of LinkFrames.poses.

    R (B, 3, 3) and p (B, 3) hold the poses of the bodies, the root's set already; results go to
    R_out (k, 3, 3) and p_out (k, 3).
    """
    turn, aligned, way = np.empty((3, 3)), np.empty((3, 3)), np.empty(3)
    for b in path:
        s = multiplier[b] * q[q_index[b]] + offset[b]
        set_rotation(axis[b], 0.0 if slides[b] else s, turn)
        set_product(R[parent[b]], R_0[b], aligned)
        set_product(aligned, turn, R[b])
        set_point(R[parent[b]], p[parent[b]], d[b], p[b])
        if slides[b]:
            for i in range(3):
                way[i] = s * axis[b, i]
            set_point(aligned, p[b], way, p[b])
    for n in range(body.size):
        set_product(R[body[n]], R_link[n], R_out[n])
        set_point(R[body[n]], p[body[n]], p_link[n], p_out[n])
