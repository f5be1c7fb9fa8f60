"""The moving bodies of a robot: links and what is fixed to them, as flat arrays for kernels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_model.arrays import Array, FrozenArrays, Indices
from com_model.urdf.elements import Joint, Tree

ROOT, REVOLUTE, PRISMATIC = 0, 1, 2
"""Values of Bodies.joint_type; a continuous joint is REVOLUTE here."""


@dataclass(frozen=True, eq=False)
class Bodies(FrozenArrays):
    """B moving bodies, depth-first: the root, then one per joint that moves, mimic ones included.

    A body is the child link of its joint with all links that fixed joints tie to it; its frame is
    that link's frame. At joint position s = multiplier * q[q_index] + offset,
      R_parent_body = R Rot(axis, s)              origin in the parent: d               (revolute)
      R_parent_body = R                           origin in the parent: d + R axis s    (prismatic)
    The bodies of the subtree of b are b .. subtree_end[b] - 1.

    Attributes:
        names: Name of each body's first link; names[0] is the root link.
        joint_names: Name of the joint above each body; "" for the root.
        parent: (B,) index of the parent body, -1 for the root; always smaller than the own index.
        joint_type: (B,) ROOT, REVOLUTE or PRISMATIC.
        R: (B, 3, 3) rotation from body to parent body axes at s = 0; identity for the root.
        d: (B, 3) m, origin of the joint in the parent body's frame; zero for the root.
        axis: (B, 3) unit axis in the body's own frame; zero for the root.
        q_index: (B,) index into q of the joint that moves it (a mimic joint's master); -1 root.
        multiplier: (B,) 1 for joints that follow no other, 0 for the root.
        offset: (B,) rad or m; 0 for joints that follow no other.
        mass: (B,) kg, with all links of the body.
        first_moment: (B, 3) kg m, sum of mass times centre of mass in the body's frame.
        inertia: (B, 3, 3) kg m^2, about the origin of the body's frame, in its axes.
        subtree_mass: (B,) kg, of the body and all below it.
        subtree_end: (B,) one past the last body of the subtree.
        body_of_link: (L,) index of the body that each link of the model belongs to.
        R_body_link: (L, 3, 3) constant rotation from link to body axes.
        p_body_link: (L, 3) m, constant origin of the link's frame in the body's frame.
    """

    names: tuple[str, ...]
    joint_names: tuple[str, ...]
    parent: Indices
    joint_type: Indices
    R: Array
    d: Array
    axis: Array
    q_index: Indices
    multiplier: Array
    offset: Array
    mass: Array
    first_moment: Array
    inertia: Array
    subtree_mass: Array
    subtree_end: Indices
    body_of_link: Indices
    R_body_link: Array
    p_body_link: Array

    @property
    def count(self) -> int:
        """Number of bodies, B = 1 + number of moving joints (mimic ones included)."""
        return len(self.names)

    def path_to(self, body: int | np.integer) -> list[int]:
        """Lists the bodies from the root, which is left out, to a body, which is included."""
        path, b = [], int(body)
        while b > 0:
            path.append(b)
            b = int(self.parent[b])
        return path[::-1]


def independent_joints(tree: Tree) -> tuple[Joint, ...]:
    """Lists the joints that move by themselves, depth-first: the order of q."""
    return tuple(j for j in tree.joints if j and j.kind != "fixed" and j.mimic is None)


def build_bodies(tree: Tree) -> Bodies:
    """Folds the fixed joints of a tree into their parents."""
    count = len(tree.links)
    body_of_link, p_link = np.zeros(count, dtype=np.int64), np.zeros((count, 3))
    R_link = np.tile(np.eye(3), (count, 1, 1))
    heads, joints, parents, R, d = [0], list[Joint](), [-1], [np.eye(3)], [np.zeros(3)]
    for i, (joint, up) in enumerate(zip(tree.joints, tree.parents, strict=True)):
        if joint is None:
            continue
        R_here, p_here = R_link[up] @ joint.R, p_link[up] + R_link[up] @ joint.d
        if joint.kind == "fixed":
            body_of_link[i], R_link[i], p_link[i] = body_of_link[up], R_here, p_here
            continue
        body_of_link[i] = len(heads)
        heads.append(i)
        joints.append(joint)
        parents.append(int(body_of_link[up]))
        R.append(R_here)
        d.append(p_here)
    parent, each = np.array(parents, dtype=np.int64), np.arange(len(heads))
    q_index, multiplier, offset = _drives(tree, joints)
    mass, first_moment, inertia = _sum_links(
        tree, body_of_link, R_link, p_link, len(heads)
    )
    kinds = [PRISMATIC if joint.kind == "prismatic" else REVOLUTE for joint in joints]
    return Bodies(
        names=tuple(tree.links[i].name for i in heads),
        joint_names=("", *(joint.name for joint in joints)),
        parent=parent,
        joint_type=np.array([ROOT, *kinds], dtype=np.int64),
        R=np.array(R),
        d=np.array(d),
        axis=np.array([np.zeros(3), *(joint.axis for joint in joints)]),
        q_index=q_index,
        multiplier=multiplier,
        offset=offset,
        mass=mass,
        first_moment=first_moment,
        inertia=inertia,
        subtree_mass=sum_over_subtrees(parent, mass),
        subtree_end=each
        + sum_over_subtrees(parent, np.ones(len(heads))).astype(np.int64),
        body_of_link=body_of_link,
        R_body_link=R_link,
        p_body_link=p_link,
    )


def sum_over_subtrees(parent: Sequence[int] | Indices, values: Array) -> Array:
    """Adds up values over each element's subtree; parents stand before their children.

    Args:
        parent: (B,) index of each element's parent, -1 for the root.
        values: (B, ...) values to add up.

    Returns:
        (B, ...) sums of each element and all below it.
    """
    total = np.array(values, dtype=np.float64)
    for i in range(len(parent) - 1, 0, -1):
        total[parent[i]] += total[i]
    return total


def _drives(tree: Tree, joints: Sequence[Joint]) -> tuple[Indices, Array, Array]:
    """Finds for each body what drives it: index into q, multiplier, offset."""
    index = {joint.name: i for i, joint in enumerate(independent_joints(tree))}
    drives = [tree.drives[joint.name] for joint in joints]
    return (
        np.array([-1, *(index[drive.master] for drive in drives)], dtype=np.int64),
        np.array([0.0, *(drive.multiplier for drive in drives)]),
        np.array([0.0, *(drive.offset for drive in drives)]),
    )


def steiner(r: Array) -> Array:
    """|r|^2 1 - r r^T of lever arms (..., 3): the inertia of unit masses, (..., 3, 3)."""
    square = (r * r).sum(axis=-1)[..., None, None]
    return np.asarray(square * np.eye(3) - r[..., :, None] * r[..., None, :])


def loads_about(
    bodies: Bodies, R: Array, p: Array, body: int, any_axis: bool = False
) -> list[tuple[float, Array]]:
    """Computes what the bodies on either side of a joint are to it.

    With any_axis the results hold for all other postures too: the largest inertia about an axis
    through the joint, and the sum of m r.

    Args:
        bodies: The bodies of the robot.
        R: (B, 3, 3) orientations of the bodies in the posture.
        p: (B, 3) m, their origins.
        body: Index of the body above which the joint is.
        any_axis: Whether the joint's axis may have any direction.

    Returns:
        For the bodies beyond the joint, then for all others: the inertia about its axis a, kg m^2,
        and a x sum of m r, (3,) kg m, with r from the joint (times gravity (3,) m/s^2 its torque).
        Of a prismatic joint the mass m, kg, and a m.
    """
    axis, beyond = R[body] @ bodies.axis[body], np.zeros(bodies.count, dtype=np.bool_)
    beyond[body : bodies.subtree_end[body]] = True
    coms = bodies.first_moment / np.maximum(bodies.mass, 1e-12)[:, None]
    own = (
        R
        @ (bodies.inertia - bodies.mass[:, None, None] * steiner(coms))
        @ R.transpose(0, 2, 1)
    )
    arms, found = np.einsum("bij,bj->bi", R, coms) + p - p[body], []
    inertias = own + bodies.mass[:, None, None] * steiner(arms)
    for which in (beyond, ~beyond):
        mass = bodies.mass[which]
        inertia, first = inertias[which].sum(axis=0), mass @ arms[which]
        load = float(axis @ inertia @ axis), np.cross(axis, first)
        load = (float(np.linalg.eigvalsh(inertia)[-1]), first) if any_axis else load
        slides = bodies.joint_type[body] == PRISMATIC
        found.append((float(mass.sum()), axis * mass.sum()) if slides else load)
    return found


def _sum_links(
    tree: Tree, body: Indices, R: Array, p: Array, count: int
) -> tuple[Array, Array, Array]:
    """Mass, first moment and inertia of the bodies, about their origins.

    I = sum over the links of R I_c R^T + m (|r|^2 1 - r r^T), r from the body's origin.
    """
    m = np.array([link.mass for link in tree.links])
    r = p + np.einsum("lij,lj->li", R, np.array([link.com for link in tree.links]))
    turned = R @ np.array([link.inertia for link in tree.links]) @ R.transpose(0, 2, 1)
    mass, first_moment, inertia = (
        np.zeros(count),
        np.zeros((count, 3)),
        np.zeros((count, 3, 3)),
    )
    np.add.at(mass, body, m)
    np.add.at(first_moment, body, m[:, None] * r)
    np.add.at(inertia, body, turned + m[:, None, None] * steiner(r))
    return mass, first_moment, inertia
