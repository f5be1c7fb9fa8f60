"""Compiled rows of one sample of a walk: the equations of motion of base and joints.

In root axes, with the specific force as the acceleration of the base (gravity is inside), D x the
rows of all unknowns in generalised coordinates, T_b (6, d) and T_l (k, d) what a force or wrench on
a foot does to base and leg joints, and A_c = T_b T_l^-1 what eliminates it (window_kernels).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from com_model.arrays import Array, Indices
from com_model.bodies import PRISMATIC
from com_model.compiled import compiled
from com_model.dynamics.inverse_dynamics import (
    Links,
    RootMotion,
    joint_load,
    make_links,
    move_bodies,
    newton_euler,
    pass_on,
)
from com_model.dynamics.tree_kernels import Tree, set_poses
from com_model.geometry.vector_kernels import (
    add,
    add_cross,
    add_scaled,
    cross,
    dot,
    row,
    set_point,
    set_product,
    set_rotation,
    set_row,
    sub,
    turned,
    turned_back,
)

BODY = 10
"""Columns of a body: m, m c (3), I about its origin xx, xy, xz, yy, yz, zz."""
PER_JOINT = 7
"""Columns of a joint, blocks of n: armature, Coulomb, viscous, load friction, gain, torque bias,
encoder zero."""
IMU = 6
"""Last columns: bias of the accelerometer (3, root axes), rotation of its mounting (3)."""


def with_theta(robot: Tree, theta: Array) -> Tree:
    """Returns the robot with other masses, first moments and inertias; subtree_mass as before.

    Args:
        robot: bodies and joints.
        theta: (B, 10) standard parameters; see BODY.
    """
    inertia = theta.take([4, 5, 6, 5, 7, 8, 6, 8, 9], axis=1).reshape(
        -1, 3, 3
    )  # C: of one type
    return robot._replace(
        mass=theta[:, 0].copy(), first_moment=theta[:, 1:4].copy(), inertia=inertia
    )


_ROW, _COLUMN = (0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2)  # of the entries of I


class LegChains(NamedTuple):
    """L legs of at most K joints; -1 pads shorter ones.

    Attributes:
        body: (L,) that carries the foot.
        point: (L, 3) m, centre of the foot's ball or origin of its sole, in that body.
        radius: (L,) m, of the ball.
        size: (L,) components of the ground's wrench: 3 force, 6 force and moment.
        joint_count: (L,) number of joints.
        joints: (L, K) indices in q.
        path: (L, K) bodies from the root to the foot.
    """

    body: Indices
    point: Array
    radius: Array
    size: Indices
    joint_count: Indices
    joints: Indices
    path: Indices


class MotionSamples(NamedTuple):
    """N samples of a robot's motion; vectors in root axes.

    Attributes:
        q: (N, n) rad or m.
        qd: (N, n) rad/s or m/s.
        qdd: (N, n) rad/s^2 or m/s^2.
        tau: (N, n) N m or N, measured.
        sign: (N, n) smoothed sign of qd, -1 to 1.
        omega: (N, 3) rad/s.
        omega_dot: (N, 3) rad/s^2.
        force: (N, 3) m/s^2, acceleration of the root's origin minus gravity.
        up: (N, 3) normal of the ground.
    """

    q: Array
    qd: Array
    qdd: Array
    tau: Array
    sign: Array
    omega: Array
    omega_dot: Array
    force: Array
    up: Array


class EquationNoise(NamedTuple):
    """Standard deviations of the equations' noise.

    Attributes:
        force: N, of the base's force rows.
        moment: N m, of the base's moment rows.
        joint: (n,) N m, of each joint's.
        reversal: (n,) N m, added where its velocity changes sign.
    """

    force: float
    moment: float
    joint: Array
    reversal: Array


@njit
def _place_foot(
    limbs: LegChains, c: int, links: Links, up: Array, point: Array
) -> None:
    """Contact point of foot c with the ground, root axes."""
    b = limbs.body[c]
    set_point(links.R[b], links.p[b], limbs.point[c], point)
    point -= limbs.radius[c] * up


@njit
def _foot_jacobian(
    robot: Tree, limbs: LegChains, c: int, links: Links, point: Array, T: Array
) -> None:
    """T_l^T of foot c into T (6, K): torques of unit forces and moments at a point."""
    T[:] = 0.0
    for b in limbs.path[c]:
        if b < 0:
            break
        z, ratio, column = links.axis[b], robot.multiplier[b], 0
        lever = cross(z, sub(point, links.p[b]))
        while limbs.joints[c, column] != robot.q_index[b]:
            column += 1
        for i in range(3):
            if robot.joint_type[b] == PRISMATIC:
                T[i, column] += ratio * z[i]
            else:
                T[i, column] += ratio * lever[i]
                T[3 + i, column] += ratio * z[i]


@njit
def _inverse(T: Array) -> Array:
    """Inverse (d, k) of T_l (k, d); 0 in directions without torque: straight leg, missing joint."""
    k, d = T.shape
    # squares of the leg's Jacobian below which a force causes no torque
    singular = 1e-14
    if k < d:
        return T.T @ np.linalg.inv(T @ T.T + singular * np.eye(k))
    return np.linalg.inv(T.T @ T + singular * np.eye(d)) @ T.T


@compiled(nogil=True)
def foot_loads(
    robot: Tree, limbs: LegChains, motion: MotionSamples, loads: Array, heights: Array
) -> None:
    """Computes loads and heights of the feet.

    f = T_l^-1 (ID_l - tau_l), with the masses of `robot`.

    Args:
        robot: bodies and joints.
        limbs: its L legs.
        motion: N samples.
        loads: (N, L) N along the ground's normal, set.
        heights: (N, L) m, set.
    """
    n, point = motion.q.shape[1], np.empty(3)
    links, tau = make_links(len(robot.mass)), np.empty(n)
    T = np.empty((6, limbs.joints.shape[1]))
    for k in range(len(motion.q)):
        root = RootMotion(motion.omega[k], motion.omega_dot[k], motion.force[k])
        newton_euler(robot, motion.q[k], motion.qd[k], motion.qdd[k], root, links, tau)
        for c in range(len(limbs.body)):
            size, count = limbs.size[c], limbs.joint_count[c]
            _place_foot(limbs, c, links, motion.up[k], point)
            _foot_jacobian(robot, limbs, c, links, point, T)
            inverse = _inverse(T[:size, :count].T.copy())
            loads[k, c] = heights[k, c] = 0.0
            for i in range(3):
                heights[k, c] += point[i] * motion.up[k, i]
                for j in range(count):
                    own = limbs.joints[c, j]
                    force = inverse[i, j] * (tau[own] - motion.tau[k, own])
                    loads[k, c] += motion.up[k, i] * force


@njit
def _set_load(links: Links, b: int, Y: Array) -> None:
    """Force and torque Y (6, 10) that each of its own parameters takes, about body b's origin."""
    R, a = links.R[b], row(links.acceleration, b)
    w, dw = row(links.omega, b), row(links.omega_dot, b)
    own, rate = turned_back(R, w), turned_back(R, dw)
    Y[:] = 0.0
    for i in range(3):
        Y[i, 0] = a[i]
    for k in range(3):
        h = (R[0, k], R[1, k], R[2, k])
        F, N = add(cross(dw, h), cross(w, cross(w, h))), cross(h, a)
        for i in range(3):
            Y[i, 1 + k], Y[3 + i, 1 + k] = F[i], N[i]
    for k in range(6):
        i, j = _ROW[k], _COLUMN[k]
        spun, load = Y[:3, 4 + k], Y[3:, 4 + k]  # the force is 0 in the end
        spun[i], load[i] = own[j], rate[j]
        spun[j], load[j] = own[i], rate[i]
        add_cross(own, row(Y[:3].T, 4 + k), 1.0, load)
        N = turned(R, row(Y[3:].T, 4 + k))
        for i in range(3):
            spun[i], load[i] = 0.0, N[i]


@njit
def _set_body_columns(robot: Tree, links: Links, D: Array) -> None:
    """The inertial columns of the generalised rows D (6 + n, P)."""
    Y = np.empty((6, BODY))
    for b in range(len(robot.mass)):
        if robot.mass[b] <= 0.0:
            continue
        _set_load(links, b, Y)
        at, p, c = BODY * b, row(links.p, b), b
        for k in range(BODY):
            moment = cross(p, row(Y.T, k))
            for i in range(3):
                D[i, at + k], D[3 + i, at + k] = Y[i, k], Y[3 + i, k] + moment[i]
        while c > 0:
            z, ratio = row(links.axis, c), robot.multiplier[c]
            lever, turn = cross(z, sub(p, row(links.p, c))), z
            if robot.joint_type[c] == PRISMATIC:
                lever, turn = z, (0.0, 0.0, 0.0)
            own = D[6 + robot.q_index[c]]
            for k in range(BODY):
                moved = lever[0] * Y[0, k] + lever[1] * Y[1, k] + lever[2] * Y[2, k]
                turned_by = turn[0] * Y[3, k] + turn[1] * Y[4, k] + turn[2] * Y[5, k]
                own[at + k] += ratio * (moved + turned_by)
            c = robot.parent[c]


@njit
def _set_imu_columns(robot: Tree, force: Array, links: Links, D: Array) -> None:
    """Columns of the accelerometer: -M_a, and -M_a [a]x; M_a (6 + n, 3) of the mass matrix."""
    at = D.shape[1] - IMU
    M_a = D[:, at : at + 3]  # with this sign until it is used
    for i in range(3):
        M_a[i, i] = links.mass[0]
        M_a[3 + (i + 1) % 3, i] = links.moment[0, (i + 2) % 3]
        M_a[3 + (i + 2) % 3, i] = -links.moment[0, (i + 1) % 3]
    for b in range(1, len(robot.mass)):
        z, own = row(links.axis, b), M_a[6 + robot.q_index[b]]
        moment = cross(z, row(links.moment, b))
        for i in range(3):
            load = (
                links.mass[b] * z[i] if robot.joint_type[b] == PRISMATIC else moment[i]
            )
            own[i] += robot.multiplier[b] * load
    for r in range(len(D)):
        turn = cross(force, row(M_a, r))
        for i in range(3):
            D[r, at + i], D[r, at + 3 + i] = -D[r, at + i], turn[i]


@njit
def _support(links: Links, b: int, point: Array, wrench: Array) -> None:
    """Subtracts a wrench (6,) of the ground at a point from that through the joint of body b."""
    f, arm = (
        (wrench[0], wrench[1], wrench[2]),
        sub((point[0], point[1], point[2]), row(links.p, b)),
    )
    moment = add((wrench[3], wrench[4], wrench[5]), cross(arm, f))
    set_row(links.force, b, sub(row(links.force, b), f))
    set_row(links.torque, b, sub(row(links.torque, b), moment))


@njit
def _set_zero_columns(
    robot: Tree,
    limbs: LegChains,
    motion: MotionSamples,
    k: int,
    links: Links,
    wrenches: Array,
    D: Array,
) -> None:
    """Columns of the encoder zeros at sample k: -d(ID - J^T f) / dq, by differences.

    A joint is rotated a little with all that it carries; the other bodies stay. The last ones
    come first, so that parents are in their places. wrenches (L, 6) act on the feet.
    """
    n, at, point = motion.q.shape[1], BODY * len(robot.mass), np.empty(3)
    for c in range(len(limbs.body)):
        _place_foot(limbs, c, links, motion.up[k], point)
        _support(links, 0, point, wrenches[c])
        for b in limbs.path[c]:
            if b >= 0:
                _support(links, b, point, wrenches[c])
    there, turn = make_links(len(robot.mass)), np.empty((3, 3))
    there.R[:], there.p[:], there.omega[:] = links.R, links.p, links.omega
    there.omega_dot[:], there.acceleration[:] = links.omega_dot, links.acceleration
    step = 1e-6  # rad, of differences
    for b in range(len(robot.mass) - 1, 0, -1):
        end, slides = robot.subtree_end[b], robot.joint_type[b] == PRISMATIC
        if slides:
            set_row(there.p, b, add_scaled(row(links.p, b), step, row(links.axis, b)))
        else:
            set_rotation(robot.axis[b], step, turn)
            set_product(links.R[b], turn, there.R[b])
        set_poses(motion.q[k], robot, range(b + 1, end), there.R, there.p)
        move_bodies(robot, b, end, motion.qd[k], motion.qdd[k], there)
        for c in range(len(limbs.body)):
            if b <= limbs.body[c] < end:
                _place_foot(limbs, c, there, motion.up[k], point)
                _support(there, limbs.body[c], point, wrenches[c])
        own, per = at + 6 * n + robot.q_index[b], -robot.multiplier[b] / step
        pass_on(robot, b, end, there)
        for c in range(b, end):
            change = joint_load(robot, c, there) - joint_load(robot, c, links)
            D[6 + robot.q_index[c], own] += per * change
        force, old = row(there.force, b), row(links.force, b)
        moment = add(row(there.torque, b), cross(row(there.p, b), force))
        moment = sub(moment, add(row(links.torque, b), cross(row(links.p, b), old)))
        force = sub(force, old)
        for i in range(3):
            D[i, own] += per * force[i]
            D[3 + i, own] += per * moment[i]
        c = robot.parent[b]
        while c > 0:
            about = force
            if robot.joint_type[c] != PRISMATIC:
                about = sub(moment, cross(row(links.p, c), force))
            load = robot.multiplier[c] * dot(row(links.axis, c), about)
            D[6 + robot.q_index[c], own] += per * load
            c = robot.parent[c]


@compiled(nogil=True)
def generalised_rows(
    robot: Tree,
    limbs: LegChains,
    motion: MotionSamples,
    k: int,
    touching: Array,
    x: Array,
    rows: tuple[Array, Array, Array],
) -> None:
    """Computes the rows of one sample.

    Args:
        robot: bodies and joints, with the parameters about which encoder biases are linearised.
        limbs: its L legs.
        motion: samples.
        k: index of the sample.
        touching: (L,) feet in contact.
        x: (P,) coefficients, for the forces on these feet that encoder biases displace:
            d(ID - J^T f) / dq.
        rows: set: D (6 + n, P), A_c (L, 6, K), and B_c (L, 6, 6), the components of the feet's
            wrenches that cause no torque.
    """
    D, A, B = rows
    n, at = motion.q.shape[1], BODY * len(robot.mass)
    links, tau = make_links(len(robot.mass)), np.empty(n)
    root = RootMotion(motion.omega[k], motion.omega_dot[k], motion.force[k])
    newton_euler(robot, motion.q[k], motion.qd[k], motion.qdd[k], root, links, tau)
    D[:], A[:], B[:] = 0.0, 0.0, 0.0
    _set_body_columns(robot, links, D)
    for j in range(n):
        D[6 + j, at + j] = motion.qdd[k, j]
        D[6 + j, at + n + j] = motion.sign[k, j]
        D[6 + j, at + 2 * n + j] = motion.qd[k, j]
        D[6 + j, at + 3 * n + j] = motion.sign[k, j] * abs(motion.tau[k, j])
        D[6 + j, at + 4 * n + j] = -motion.tau[k, j]
        D[6 + j, at + 5 * n + j] = 1.0
    T, point = np.empty((6, limbs.joints.shape[1])), np.empty(3)
    base, wrenches = np.zeros((6, 6)), np.zeros((len(limbs.body), 6))
    for c in range(len(limbs.body)):
        size, count = limbs.size[c], limbs.joint_count[c]
        _place_foot(limbs, c, links, motion.up[k], point)
        _foot_jacobian(robot, limbs, c, links, point, T)
        leg = T[:size, :count].T.copy()
        inverse = _inverse(leg)
        base[:] = np.eye(6)
        for i in range(3):  # the moment of a unit force: point x e_i
            base[3 + (i + 1) % 3, i] = point[(i + 2) % 3]
            base[3 + (i + 2) % 3, i] = -point[(i + 1) % 3]
        part = base[:, :size].copy()
        A[c, :, :count] = part @ inverse
        B[c, :, :size] = part @ (np.eye(size) - inverse @ leg)
        if touching[c]:
            for i in range(size):
                for j in range(count):
                    own = limbs.joints[c, j]
                    wrenches[c, i] += inverse[i, j] * (D[6 + own] @ x)
    _set_imu_columns(robot, motion.force[k], links, D)
    _set_zero_columns(robot, limbs, motion, k, links, wrenches, D)
