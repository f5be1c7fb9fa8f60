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
from com_model.bodies import PRISMATIC
from com_model.compiled import compiled, entry_point
from com_model.dynamics.tree_kernels import Tree, set_poses, tree_of
from com_model.geometry.vector_kernels import (
    add,
    add_scaled,
    cross,
    dot,
    row,
    set_row,
    sub,
    turned,
    turned_back,
)
from com_model.model import RobotModel


class Links(NamedTuple):
    """What a pass leaves behind of each body, in the root's axes: (B, 3) where not said else.

    Attributes:
        R: (B, 3, 3) orientations.
        p: m, origins.
        axis: of the joints; of the root not set.
        omega: rad/s.
        omega_dot: rad/s^2.
        acceleration: m/s^2, of the origins, minus gravity.
        force: N, on the body through its joint.
        torque: N m, likewise, about the body's origin.
        moment: kg m, first moment of the body and all that it carries, about its origin.
        mass: (B,) kg, of these.
    """

    R: Array
    p: Array
    axis: Array
    omega: Array
    omega_dot: Array
    acceleration: Array
    force: Array
    torque: Array
    moment: Array
    mass: Array


class RootMotion(NamedTuple):
    """Motion of the root, in its axes.

    Attributes:
        omega: (3,) rad/s.
        omega_dot: (3,) rad/s^2.
        acceleration: (3,) m/s^2, of its origin, minus gravity.
    """

    omega: Array
    omega_dot: Array
    acceleration: Array


@njit
def make_links(count: int) -> Links:
    """Memory for a pass."""
    v = np.empty((8, count, 3))
    R, mass = np.empty((count, 3, 3)), np.empty(count)
    return Links(R, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], mass)


@compiled()
def newton_euler(
    robot: Tree,
    q: Array,
    qd: Array,
    qdd: Array,
    root: RootMotion,
    links: Links,
    tau: Array,
) -> None:
    """Inverse dynamics of a robot that nothing touches; see com_model.dynamics.inverse_dynamics.

    Args:
        robot: Its bodies.
        q: (n,) rad or m.
        qd: (n,) rad/s or m/s.
        qdd: (n,) rad/s^2 or m/s^2.
        root: Motion of the root link.
        links: Result; its first force and torque are the wrench on the root.
        tau: (n,) result, N m or N.
    """
    R, p = links.R, links.p
    tau[:] = 0.0
    R[0], p[0] = np.eye(3), 0.0
    links.omega[0], links.omega_dot[0], links.acceleration[0] = root
    set_poses(q, robot, range(1, len(p)), R, p)
    move_bodies(robot, 0, len(p), qd, qdd, links)
    pass_on(robot, 0, len(p), links)
    for b in range(1, len(p)):
        tau[robot.q_index[b]] += joint_load(robot, b, links)


@njit
def move_bodies(
    robot: Tree, first: int, end: int, qd: Array, qdd: Array, links: Links
) -> None:
    """Sets how the bodies of a subtree move and what that takes; poses and the parent are set."""
    R, p, axis, omega, omega_dot, acceleration, force, torque, moment, mass = links
    for b in range(first, end):
        up, driver, ratio = (
            max(robot.parent[b], 0),
            robot.q_index[b],
            robot.multiplier[b],
        )
        w, dw, a = row(omega, up), row(omega_dot, up), row(acceleration, up)
        if b > 0:
            rate, rise = ratio * qd[driver], ratio * qdd[driver]
            z, r = turned(R[b], row(robot.axis, b)), sub(row(p, b), row(p, up))
            slip = cross(w, z)
            a = add(add(a, cross(dw, r)), cross(w, cross(w, r)))
            if robot.joint_type[b] == PRISMATIC:
                a = add_scaled(add_scaled(a, 2.0 * rate, slip), rise, z)
            else:
                dw = add_scaled(add_scaled(dw, rate, slip), rise, z)
                w = add_scaled(w, rate, z)
            set_row(axis, b, z)
            set_row(omega, b, w)
            set_row(omega_dot, b, dw)
            set_row(acceleration, b, a)
        m, h = robot.mass[b], turned(R[b], row(robot.first_moment, b))
        # in the body's axes it is constant
        own, I_b = turned_back(R[b], w), robot.inertia[b]
        rest = add(turned(I_b, turned_back(R[b], dw)), cross(own, turned(I_b, own)))
        twist = turned(R[b], rest)
        load = add(cross(dw, h), cross(w, cross(w, h)))
        set_row(force, b, add_scaled(load, m, a))
        set_row(torque, b, add(twist, cross(h, a)))
        set_row(moment, b, h)
        mass[b] = m


@njit
def pass_on(robot: Tree, first: int, end: int, links: Links) -> None:
    """Adds what the bodies of a subtree take to what their parents take, but for the first one."""
    p, force, torque, moment, mass = (
        links.p,
        links.force,
        links.torque,
        links.moment,
        links.mass,
    )
    for b in range(end - 1, first, -1):
        up, f = robot.parent[b], row(force, b)
        r = sub(row(p, b), row(p, up))
        set_row(force, up, add(row(force, up), f))
        set_row(torque, up, add(add(row(torque, up), row(torque, b)), cross(r, f)))
        set_row(
            moment, up, add(row(moment, up), add_scaled(row(moment, b), mass[b], r))
        )
        mass[up] += mass[b]


@njit
def joint_load(robot: Tree, b: int, links: Links) -> float:
    """Torque or force of the joint above body b, N m or N, by what acts through it."""
    load = links.force if robot.joint_type[b] == PRISMATIC else links.torque
    return robot.multiplier[b] * dot(row(links.axis, b), row(load, b))


@compiled(nogil=True)
def root_wrenches(robot: Tree, joints: Array, root: Array, wrenches: Array) -> None:
    """Sets wrenches on the root at N instants of a motion.

    Args:
        robot: the tree.
        joints: (3, N, n) q, qd and qdd of newton_euler.
        root: (3, N, 3) as RootMotion.
        wrenches: (N, 6) N and N m, set.
    """
    links, tau = make_links(len(robot.mass)), np.empty(joints.shape[2])
    for i in range(len(wrenches)):
        motion = RootMotion(root[0, i], root[1, i], root[2, i])
        newton_euler(
            robot, joints[0, i], joints[1, i], joints[2, i], motion, links, tau
        )
        wrenches[i, :3], wrenches[i, 3:] = links.force[0], links.torque[0]


class Dynamics:
    """Recursive Newton-Euler over the moving bodies of a robot, compiled.

    The reflected inertia of drives, armature (n,) kg m^2 or kg, counts as a torque of its own,
    armature * qdd, as MuJoCo has it. Calls work in memory of their own object: use one object per
    thread. Without trunk the masses of the root body are left out.
    """

    def __init__(
        self, model: RobotModel, armature: ArrayLike | None = None, trunk: bool = True
    ) -> None:
        n = model.n_joints
        self.model = model
        self.armature = (
            np.zeros(n) if armature is None else as_array("armature", armature, (n,))
        )
        self._robot = tree_of(model.bodies, trunk)
        count, root = model.bodies.count, RootMotion(*np.empty((3, 3)))
        R, vectors, mass = (
            np.empty((count, 3, 3)),
            np.empty((8, count, 3)),
            np.empty(count),
        )
        self._links = Links(*(R, *vectors, mass))
        q, qd, qdd, tau = np.empty((4, n))
        own = self._robot, q, qd, qdd, root, self._links, tau
        self._newton_euler = entry_point(newton_euler, *own)

    def inverse_dynamics(
        self, joints: ArrayLike, root: ArrayLike
    ) -> tuple[Array, Array]:
        """Computes the wrench on the root and the joint torques that a motion takes.

        M(q) [a; omega_dot; qdd] + h(q, qd, omega), all that acts from outside being the wrench
        and the torques: contacts, if any, must be taken off by the caller, tau_joint = tau - sum
        of J_i^T f_i.

        Args:
            joints: (3, n) positions q, rad or m, and their derivatives qd, qdd.
            root: (3, 3), of the root link, in its axes: angular velocity omega, rad/s; its
                derivative omega_dot, rad/s^2; specific force a, m/s^2: acceleration of the origin
                minus gravity, what an accelerometer there reads. At rest g upwards.

        Returns:
            The wrench (6,), force N and moment N m about the root's origin, in the root's axes,
            and the torques (n,) N m or N, armature included. NaN in an argument spreads.
        """
        q, qd, qdd = np.array(
            as_array("joints", joints, (3, self.model.n_joints)), order="C"
        )
        motion, tau = (
            RootMotion(*np.array(as_array("root", root, (3, 3)), order="C")),
            np.empty(len(q)),
        )
        self._newton_euler(self._robot, q, qd, qdd, motion, self._links, tau)
        wrench = np.concatenate((self._links.force[0], self._links.torque[0]))
        return wrench, tau + self.armature * qdd

    def root_wrenches(self, joints: ArrayLike, root: ArrayLike) -> Array:
        """Computes the wrench on the root that a motion takes at N instants.

        Args:
            joints: (3, N, n) positions, velocities, accelerations, as in inverse_dynamics.
            root: (3, N, 3) motion of the root, as in inverse_dynamics.

        Returns:
            (N, 6) force N and moment N m, root axes.
        """
        own = np.array(
            as_array("joints", joints, (3, None, self.model.n_joints)), order="C"
        )
        count = own.shape[1]
        motion = np.array(as_array("root", root, (3, count, 3)), order="C")
        wrenches = np.empty((count, 6))
        root_wrenches(
            self._robot, own, motion, wrenches
        )  # read-only ones compile again
        return wrenches
