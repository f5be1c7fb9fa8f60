"""Poses of a few links, compiled: what a node needs at every sample (feet, sensors).

com_model.kinematics.link_poses gives all links in plain numpy; this computes only the bodies on
the way to the wanted links, in a few microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from com_model.bodies import PRISMATIC
from numba import njit
from numpy.typing import ArrayLike, NDArray

from com_model import RobotModel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class LinkFrames:
    """Frames of k links in the root link's frame.

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
        self._path = _ancestors(bodies.parent, self._body)
        self._slides = bodies.joint_type == PRISMATIC

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
        R, p = _poses(
            q, self._path, self._body, self._R_link, self._p_link, self._slides,
            b.parent, b.R, b.d, b.axis, b.q_index, b.multiplier, b.offset,
        )  # fmt: skip
        return R, p


def _ancestors(parent: Indices, bodies: Indices) -> Indices:
    """Indices of the bodies and all their ancestors but the root, ascending."""
    found: set[int] = set()
    for start in bodies.tolist():
        body = start
        while body > 0:
            found.add(body)
            body = int(parent[body])
    return np.array(sorted(found), dtype=np.int64)


@njit(cache=True)
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
) -> tuple[Array, Array]:
    """Compiled part of LinkFrames.poses."""
    R = np.zeros((parent.size, 3, 3))
    p = np.zeros((parent.size, 3))
    R[0] = np.eye(3)
    turn = np.empty((3, 3))
    for b in path:
        up = parent[b]
        s = multiplier[b] * q[q_index[b]] + offset[b]
        x, y, z = axis[b, 0], axis[b, 1], axis[b, 2]
        slide = slides[b]
        sine = 0.0 if slide else np.sin(s)
        versine = 0.0 if slide else 1.0 - np.cos(s)
        # Rot(a, s) = 1 + sin s [a]x + (1 - cos s) [a]x^2 (Rodrigues)
        turn[0, 0] = 1.0 - versine * (y * y + z * z)
        turn[1, 1] = 1.0 - versine * (x * x + z * z)
        turn[2, 2] = 1.0 - versine * (x * x + y * y)
        turn[0, 1] = versine * x * y - sine * z
        turn[1, 0] = versine * x * y + sine * z
        turn[0, 2] = versine * x * z + sine * y
        turn[2, 0] = versine * x * z - sine * y
        turn[1, 2] = versine * y * z - sine * x
        turn[2, 1] = versine * y * z + sine * x
        for i in range(3):
            for j in range(3):
                for k in range(3):
                    for m in range(3):
                        R[b, i, j] += R[up, i, k] * R_0[b, k, m] * turn[m, j]
            p[b, i] = p[up, i]
            for k in range(3):
                shift = d[b, k]
                if slide:
                    shift += s * (R_0[b, k, 0] * x + R_0[b, k, 1] * y + R_0[b, k, 2] * z)
                p[b, i] += R[up, i, k] * shift
    R_out = np.zeros((body.size, 3, 3))
    p_out = np.zeros((body.size, 3))
    for n in range(body.size):
        for i in range(3):
            p_out[n, i] = p[body[n], i]
            for k in range(3):
                p_out[n, i] += R[body[n], i, k] * p_link[n, k]
                for j in range(3):
                    R_out[n, i, j] += R[body[n], i, k] * R_link[n, k, j]
    return R_out, p_out
