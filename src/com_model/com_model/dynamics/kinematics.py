"""Poses of the links: forward kinematics over the moving bodies, in plain numpy.

For display, checks and one-off use; the centre of mass has faster ways (com_model.sesc.sesc).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, as_array, as_rotation
from com_model.bodies import PRISMATIC, Bodies
from com_model.geometry.rotations import rotations_about
from com_model.model import RobotModel

Given = ArrayLike | None  # an argument with a default


def link_poses(
    model: RobotModel,
    q: ArrayLike,
    R_world_root: Given = None,
    p_world_root: Given = None,
) -> tuple[Array, Array]:
    """Computes the poses of all links, in the order of model.link_names.

    Over each joint with position s, axis a (child frame) and constant pose (R_0, d) in its parent:
      R_world_child = R_world_parent R_0 Rot(a, s),  p_child = p_parent + R_world_parent d
    and, where it is prismatic, R_world_parent R_0, and d + R_0 a s in place of d.

    Args:
        model: The robot, L links.
        q: (n,) joint positions, rad or m, in the order of model.joint_names.
        R_world_root: (3, 3) orientation of the root link, identity by default; ComModelError where
            it is no rotation.
        p_world_root: (3,) m, position of the root link's frame; zero by default.

    Returns:
        R (L, 3, 3) with R[i] = R_world_link, and p (L, 3) m, origins of the link frames in the
        world. NaN in q makes the links below that joint NaN.
    """
    R_body, p_body = body_poses(
        model.bodies, model.check_q(q), R_world_root, p_world_root
    )
    body = model.bodies.body_of_link
    R_link = R_body[body] @ model.bodies.R_body_link
    p_link = p_body[body] + np.einsum(
        "lij,lj->li", R_body[body], model.bodies.p_body_link
    )
    return R_link, p_link


def link_pose(
    model: RobotModel,
    q: ArrayLike,
    link: str,
    R_world_root: Given = None,
    p_world_root: Given = None,
) -> tuple[Array, Array]:
    """Computes the pose of one link: R_world_link (3, 3) and its origin (3,) m; see link_poses.

    Args:
        model: The robot.
        q: (n,) joint positions, rad or m.
        link: Name of the link.
        R_world_root: (3, 3) orientation of the root link; identity by default.
        p_world_root: (3,) m, its origin; zero by default.
    """
    index = model.link_index(link)
    R, p = link_poses(model, q, R_world_root, p_world_root)
    return R[index].copy(), p[index].copy()


def link_pose_batch(model: RobotModel, Q: ArrayLike, link: str) -> tuple[Array, Array]:
    """Computes the pose of one link in the root link's frame for many configurations.

    Args:
        model: The robot.
        Q: (N, n) joint positions, rad or m.
        link: Name of the link.

    Returns:
        R_root_link (N, 3, 3), and the origins of the link's frame (N, 3) m.
    """
    index, bodies = model.link_index(link), model.bodies
    Q = as_array(
        "Q", Q, (None, model.n_joints), f"The joints are {', '.join(model.joint_names)}"
    )
    path = bodies.path_to(bodies.body_of_link[index])
    turns, shifts = _poses_in_parents(bodies, path, Q)
    R = np.tile(bodies.R_body_link[index], (len(Q), 1, 1))
    p = np.tile(bodies.p_body_link[index], (len(Q), 1))
    for k in reversed(range(len(path))):
        turn = turns[:, k]
        R, p = turn @ R, np.einsum("nij,nj->ni", turn, p) + shifts[:, k]
    return R, p


def _poses_in_parents(
    bodies: Bodies, which: Sequence[int] | slice, q: Array
) -> tuple[Array, Array]:
    """R (..., K, 3, 3) and p (..., K, 3) m of K bodies in their parents, see link_poses."""
    padded = np.concatenate((q, np.zeros((*q.shape[:-1], 1))), axis=-1)
    position = (
        padded[..., bodies.q_index[which]] * bodies.multiplier[which]
        + bodies.offset[which]
    )
    slides, axis, R = (
        bodies.joint_type[which] == PRISMATIC,
        bodies.axis[which],
        bodies.R[which],
    )
    turn = R @ rotations_about(axis, np.where(slides, 0.0, position))
    travel = np.where(slides, position, 0.0)[..., None] * axis
    return turn, bodies.d[which] + np.einsum("kij,...kj->...ki", R, travel)


def body_poses(
    bodies: Bodies, q: Array, R_world_root: Given = None, p_world_root: Given = None
) -> tuple[Array, Array]:
    """Computes the poses of the moving bodies; see link_poses.

    Bodies that are equally many joints from the root are placed together.

    Args:
        bodies: The bodies of the robot.
        q: (..., n) joint positions, rad or m.
        R_world_root: (3, 3) orientation of the root link; identity by default.
        p_world_root: (3,) m, its origin; zero by default.

    Returns:
        R (..., B, 3, 3), and p (..., B, 3) m.
    """
    R, p = (np.empty((*q.shape[:-1], bodies.count, *shape)) for shape in ((3, 3), (3,)))
    given = (
        np.eye(3) if R_world_root is None else as_rotation("R_world_root", R_world_root)
    )
    R[..., 0, :, :] = given
    p[..., 0, :] = (
        0.0 if p_world_root is None else as_array("p_world_root", p_world_root, (3,))
    )
    turn, shift = _poses_in_parents(bodies, slice(None), q)
    depth = [0]
    for parent in bodies.parent.tolist()[1:]:
        depth.append(depth[parent] + 1)
    for level in range(1, max(depth) + 1):
        own = np.flatnonzero(np.equal(depth, level))
        above = R[..., bodies.parent[own], :, :]
        R[..., own, :, :] = above @ turn[..., own, :, :]
        moved = (above @ shift[..., own, :, None])[..., 0]
        p[..., own, :] = p[..., bodies.parent[own], :] + moved
    return R, p


TURNS = ("roll", "pitch", "yaw")  # about x, y and z


def free_axis(axes: Array, points: Array, R_sole: Array, p_sole: Array) -> int:
    """The axis of its sole, see TURNS, that leaves a leg of five joints the least singular.

    Such a leg does not turn its sole about that axis at will.

    Args:
        axes: (5, 3) unit axes of its joints.
        points: (5, 3) m, a point of each axis, in the same frame as all of these.
        R_sole: (3, 3) orientation of the sole.
        p_sole: (3,) m, its origin.
    """
    J = np.hstack((np.cross(axes, p_sole - points), axes)).T
    columns = np.vstack((np.zeros((3, 3)), R_sole))
    full = [np.column_stack((J, column)) for column in columns.T]
    least = [np.linalg.svd(matrix, compute_uv=False)[-1] for matrix in full]
    return int(np.argmax(least))
