"""Compiled forward kinematics over a tree of bodies: the pose of a body from its parent's."""

from typing import NamedTuple

import numpy as np
from numba import njit

from com_model.arrays import Array, Indices
from com_model.bodies import PRISMATIC, Bodies
from com_model.compiled import compiled
from com_model.geometry.vector_kernels import set_point, set_product, set_rotation


class Tree(NamedTuple):
    """Arrays of com_model.bodies.Bodies by the same names."""

    parent: Indices
    joint_type: Indices
    q_index: Indices
    multiplier: Array
    offset: Array
    R: Array
    d: Array
    axis: Array
    mass: Array
    first_moment: Array
    inertia: Array
    subtree_mass: Array
    subtree_end: Indices


def tree_of(bodies: Bodies, root: bool = True) -> Tree:
    """Makes a Tree of arrays that can be written to.

    Numba makes a difference between arrays that are read-only and those that are not.

    Args:
        bodies: of the robot.
        root: keep the root's masses; else they are 0.
    """
    tree = Tree(*(np.array(getattr(bodies, name)) for name in Tree._fields))
    if not root:
        tree.mass[0], tree.first_moment[0], tree.inertia[0] = 0.0, 0.0, 0.0
    return tree


@njit
def set_poses(q: Array, tree: Tree, path: Indices | range, R: Array, p: Array) -> None:
    """Sets the poses of bodies whose parents' are set or come earlier.

    Over a joint with position s, axis a and constant pose (R_0, d) in the parent:
      R_b = R_parent R_0 Rot(a, s),  p_b = p_parent + R_parent d      (revolute)
      R_b = R_parent R_0,            p_b = p_parent + R_parent d + R_b a s   (prismatic)

    q (n,) is in rad or m; the path has bodies, ascending, without the root, whose pose in
    R (B, 3, 3), p (B, 3) m is set.
    """
    turn, aligned, travel = np.empty((3, 3)), np.empty((3, 3)), np.empty(3)
    for b in path:
        up = tree.parent[b]
        s = tree.multiplier[b] * q[tree.q_index[b]] + tree.offset[b]
        slides = tree.joint_type[b] == PRISMATIC
        set_rotation(tree.axis[b], 0.0 if slides else s, turn)
        set_product(R[up], tree.R[b], aligned)
        set_product(aligned, turn, R[b])
        set_point(R[up], p[up], tree.d[b], p[b])
        if slides:
            for i in range(3):
                travel[i] = s * tree.axis[b, i]
            set_point(aligned, p[b], travel, p[b])


@compiled()
def set_pose_batch(Q: Array, tree: Tree, R: Array, p: Array) -> None:
    """Sets the poses of all bodies at N configurations.

    Args:
        Q: (N, n) joint positions, rad or m.
        tree: of the robot.
        R: (N, B, 3, 3) set; that of the root is given.
        p: (N, B, 3) m, likewise.
    """
    for k in range(len(Q)):
        set_poses(Q[k], tree, range(1, p.shape[1]), R[k], p[k])
