"""Inverse dynamics of a robot with a moving base: which forces and torques a motion takes.

Recursive Newton-Euler, compiled. All vectors are in the root's axes, so that poses, axes of the
joints and first moments come out beside the torques. With r from the origin of body b's parent to
its own, s, s', s'' the joint's motion about axis z:

  outwards   w_b = w + z s',  dw_b = dw + z s'' + w x z s'
             a_b = a + dw x r + w x (w x r)           (prismatic: + z s'' + 2 w x z s'; w_b = w)
             F_b = m a_b + dw_b x h + w_b x (w_b x h)
             N_b = I dw_b + w_b x (I w_b) + h x a_b   (about the body's origin)
  inwards    F += F_b,  N += N_b + r x F_b,  H += H_b + M_b r,  tau = z . N_b  (prismatic: z . F_b)

with m, h, I a body's mass, first moment and inertia about its origin, a the acceleration of an
origin minus gravity, and H, M the first moment and mass of what a joint carries.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from com_model.arrays import Array, as_array
from com_model.bodies import PRISMATIC, Bodies, Indices
from com_model.compiled import compiled, entry_point
from com_model.dynamics.tree_kernels import set_poses, tree_of
from com_model.geometry.vector_kernels import (
    add,
    add_cross,
    cross,
    dot,
    set_point,
    sub,
    turned,
    turned_back,
)
from com_model.model import RobotModel

ORIGIN = (0.0, 0.0, 0.0)


class Robot(NamedTuple):
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


def robot_of(bodies: Bodies, root: bool = True) -> Robot:
    """Makes the robot of the kernels; without the root's masses if not `root`."""
    robot: Robot = tree_of(bodies, Robot)
    if not root:
        robot.mass[0], robot.first_moment[0], robot.inertia[0] = 0.0, 0.0, 0.0
    return robot


class Links(NamedTuple):
    """What a pass leaves behind of each body, in the root's axes: (B, 3) where not said else."""

    R: Array  # (B, 3, 3) orientations
    p: Array  # m, origins
    axis: Array  # of the joints; of the root not set
    omega: Array  # rad/s
    omega_dot: Array  # rad/s^2
    acceleration: Array  # m/s^2, of the origins, minus gravity
    force: Array  # N, on the body through its joint
    torque: Array  # N m, likewise, about the body's origin
    moment: Array  # kg m, first moment of the body and all that it carries, about its origin
    mass: Array  # (B,) kg, of these


class RootMotion(NamedTuple):
    """Motion of the root, in its axes."""

    omega: Array  # (3,) rad/s
    omega_dot: Array  # (3,) rad/s^2
    acceleration: Array  # (3,) m/s^2, of its origin, minus gravity


@njit
def make_links(count: int) -> Links:
    """Memory for a pass."""
    v = np.empty((8, count, 3))
    R, mass = np.empty((count, 3, 3)), np.empty(count)
    return Links(R, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], mass)


@njit
def _move(robot: Robot, b: int, qd: Array, qdd: Array, links: Links) -> None:
    """Motion of body b from its parent's."""
    up, driver, ratio = robot.parent[b], robot.q_index[b], robot.multiplier[b]
    rate, rise = ratio * qd[driver], ratio * qdd[driver]
    z, w, dw, a = links.axis[b], links.omega[b], links.omega_dot[b], links.acceleration[b]
    set_point(links.R[b], ORIGIN, robot.axis[b], z)
    r = sub(links.p[b], links.p[up])
    w[:], dw[:], a[:] = links.omega[up], links.omega_dot[up], links.acceleration[up]
    add_cross(dw, r, 1.0, a)
    add_cross(w, cross(w, r), 1.0, a)
    if robot.joint_type[b] == PRISMATIC:
        add_cross(w, z, 2.0 * rate, a)
        for i in range(3):
            a[i] += z[i] * rise
    else:
        add_cross(w, z, rate, dw)
        for i in range(3):
            w[i] += z[i] * rate
            dw[i] += z[i] * rise


@njit
def _load(robot: Robot, b: int, links: Links) -> None:
    """Force and torque that body b's own motion takes, and its first moment."""
    R, m, inertia = links.R[b], robot.mass[b], robot.inertia[b]
    w, dw, a, h = links.omega[b], links.omega_dot[b], links.acceleration[b], links.moment[b]
    set_point(R, ORIGIN, robot.first_moment[b], h)
    links.mass[b] = m
    own = turned_back(R, w)  # the body's axes, where its inertia is constant
    rest = add(turned(inertia, turned_back(R, dw)), cross(own, turned(inertia, own)))
    set_point(R, cross(h, a), rest, links.torque[b])
    for i in range(3):
        links.force[b, i] = m * a[i]
    add_cross(dw, h, 1.0, links.force[b])
    add_cross(w, cross(w, h), 1.0, links.force[b])


@compiled()
def newton_euler(
    robot: Robot, q: Array, qd: Array, qdd: Array, root: RootMotion, links: Links, tau: Array
) -> None:
    """Inverse dynamics of a robot that nothing touches; see com_model.dynamics.inverse_dynamics.

    Args:
        q, qd, qdd: (n,) rad or m, and their derivatives.
        links: Result; its first force and torque are the wrench on the root.
        tau: (n,) result, N m or N.
    """
    p, force, torque, moment, mass = links.p, links.force, links.torque, links.moment, links.mass
    tau[:] = 0.0
    links.R[0], p[0] = np.eye(3), 0.0
    links.omega[0], links.omega_dot[0], links.acceleration[0] = root
    set_poses(q, robot, range(1, len(p)), links.R, p)
    _load(robot, 0, links)
    for b in range(1, len(p)):
        _move(robot, b, qd, qdd, links)
        _load(robot, b, links)
    for b in range(len(p) - 1, 0, -1):
        up, r = robot.parent[b], sub(p[b], p[robot.parent[b]])
        load = force[b] if robot.joint_type[b] == PRISMATIC else torque[b]
        tau[robot.q_index[b]] += robot.multiplier[b] * dot(links.axis[b], load)
        for i in range(3):
            force[up, i] += force[b, i]
            torque[up, i] += torque[b, i]
            moment[up, i] += moment[b, i] + mass[b] * r[i]
        add_cross(r, force[b], 1.0, torque[up])
        mass[up] += mass[b]


@compiled(nogil=True)
def root_wrenches(
    robot: Robot,
    q: Array,
    qd: Array,
    qdd: Array,
    omega: Array,
    omega_dot: Array,
    acceleration: Array,
    wrenches: Array,
) -> None:
    """Sets wrenches (N, 6) on the root at N instants of a motion; see newton_euler and RootMotion.

    q, qd, qdd are (N, n); omega, omega_dot, acceleration (N, 3).
    """
    links, tau = make_links(len(robot.mass)), np.empty(q.shape[1])
    for i in range(len(q)):
        root = RootMotion(omega[i], omega_dot[i], acceleration[i])
        newton_euler(robot, q[i], qd[i], qdd[i], root, links, tau)
        wrenches[i, :3], wrenches[i, 3:] = links.force[0], links.torque[0]


class Dynamics:
    """Recursive Newton-Euler over the moving bodies of a robot, compiled.

    The reflected inertia of drives, armature (n,) kg m^2 or kg, counts as a torque of its own,
    armature * qdd, as MuJoCo has it. Calls work in memory of their own object: use one object per
    thread.
    """

    def __init__(self, model: RobotModel, armature: ArrayLike | None = None) -> None:
        n = model.n_joints
        self.model = model
        self.armature = np.zeros(n) if armature is None else as_array("armature", armature, (n,))
        self._robots = {trunk: robot_of(model.bodies, trunk) for trunk in (True, False)}
        count, root = model.bodies.count, RootMotion(*np.empty((3, 3)))
        R, vectors, mass = np.empty((count, 3, 3)), np.empty((8, count, 3)), np.empty(count)
        self._links = Links(*(R, *vectors, mass))
        q, qd, qdd, tau = np.empty((4, n))
        self._newton_euler = entry_point(
            newton_euler, self._robots[True], q, qd, qdd, root, self._links, tau
        )

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        omega: ArrayLike,
        omega_dot: ArrayLike,
        specific_force: ArrayLike,
        trunk: bool = True,
    ) -> tuple[Array, Array]:
        """Computes the wrench on the root and the joint torques that a motion takes.

        M(q) [a; omega_dot; qdd] + h(q, qd, omega), all that acts from outside being the wrench and
        the torques: contacts, if any, must be taken off by the caller,
        tau_joint = tau - sum of J_i^T f_i.

        Args:
            q, qd, qdd: (n,) joint positions, rad or m, and their derivatives.
            omega: (3,) rad/s, angular velocity of the root link, in its axes.
            omega_dot: (3,) rad/s^2, its derivative.
            specific_force: (3,) m/s^2, acceleration of the root's origin minus gravity, in its
                axes: what an accelerometer there reads. At rest g upwards.
            trunk: False leaves out the masses of the root body.

        Returns:
            The wrench (6,), force N and moment N m about the root's origin, in the root's axes,
            and the torques (n,) N m or N, armature included. NaN in an argument spreads.
        """
        n, q = self.model.n_joints, np.ascontiguousarray(self.model.check_q(q))
        rate, rise = _rows((n,), qd=qd, qdd=qdd)
        root = RootMotion(
            *_rows((3,), omega=omega, omega_dot=omega_dot, specific_force=specific_force)
        )
        tau = np.empty(n)
        self._newton_euler(self._robots[trunk], q, rate, rise, root, self._links, tau)
        wrench = np.concatenate((self._links.force[0], self._links.torque[0]))
        return wrench, tau + self.armature * rise

    def root_wrenches(
        self,
        Q: ArrayLike,
        Qd: ArrayLike,
        Qdd: ArrayLike,
        omega: ArrayLike,
        omega_dot: ArrayLike,
        specific_force: ArrayLike,
    ) -> Array:
        """Computes the wrench on the root (N, 6) that a motion takes at N instants.

        Arguments and results are those of inverse_dynamics, with N rows each.
        """
        positions = as_array("Q", Q, (None, self.model.n_joints))
        count = len(positions)
        joints = _rows(positions.shape, Qd=Qd, Qdd=Qdd)
        root = _rows((count, 3), omega=omega, omega_dot=omega_dot, specific_force=specific_force)
        wrenches = np.empty((count, 6))
        own = (np.array(rows, order="C") for rows in (positions, *joints, *root))
        root_wrenches(self._robots[True], *own, wrenches)  # read-only ones compile again
        return wrenches


def _rows(shape: tuple[int, ...], **arrays: ArrayLike) -> list[Array]:
    """Arguments by name as arrays of a shape."""
    return [np.ascontiguousarray(as_array(name, v, shape)) for name, v in arrays.items()]
