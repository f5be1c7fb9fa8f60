"""Compiled kernels of inverse_dynamics: recursive Newton-Euler, in the axes of the root.

The robot comes as the array that inverse_dynamics packs, one row a body. All vectors are in the
root's axes, so that poses, axes of the joints and first moments come out beside the torques. With
r from the origin of body b's parent to its own, s, s', s'' the joint's motion about axis z:

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

from com_model.arrays import Array
from com_model.bodies import PRISMATIC
from com_model.compiled import compiled
from com_model.geometry.vector_kernels import add_cross, set_cross, set_rotation

# Columns of a packed robot.
PARENT, TYPE, DRIVER, MULTIPLIER, OFFSET, MASS = 0, 1, 2, 3, 4, 5
TURN = 6  # nine: rotation from body to parent axes at s = 0
SHIFT = 15  # three: origin in the parent
AXIS = 18  # three: of the joint, own axes
MOMENT = 21  # three: first moment
INERTIA = 24  # nine: about the origin
COLUMNS = 33

# Columns of what a pass leaves behind, per body, root's axes.
ROTATION = 0  # nine: R_root_body by rows
ORIGIN = 9  # three
JOINT_AXIS = 12  # three
OMEGA = 15  # three
OMEGA_DOT = 18  # three
ACCELERATION = 21  # three: of the origin, minus gravity
FORCE = 24  # three: on the body through its joint
TORQUE = 27  # three: likewise, about the body's origin
CARRIED = 30  # three: first moment of the body and all that it carries, about its origin
CARRIED_MASS = 33
PASS_COLUMNS = 34


class RootMotion(NamedTuple):
    """Motion of the root, in its axes."""

    omega: Array  # (3,) rad/s
    omega_dot: Array  # (3,) rad/s^2
    acceleration: Array  # (3,) m/s^2, of its origin, minus gravity


@njit
def _rotate(R: Array, v: Array, out: Array) -> None:
    """R v, R (9,) by rows; out must not be v."""
    for i in range(3):
        out[i] = R[3 * i] * v[0] + R[3 * i + 1] * v[1] + R[3 * i + 2] * v[2]


@njit
def _turned(R: Array, turn: Array, out: Array) -> None:
    """R turn, R and out (9,) by rows, turn (3, 3)."""
    for i in range(3):
        for j in range(3):
            k = 3 * i
            out[k + j] = R[k] * turn[0, j] + R[k + 1] * turn[1, j] + R[k + 2] * turn[2, j]


@njit
def _times(A: Array, B: Array, out: Array) -> None:
    """A B, all (9,) by rows."""
    for i in range(3):
        for j in range(3):
            out[3 * i + j] = A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j]


@njit
def _outwards(
    robot: Array,
    b: int,
    s: float,
    rate: float,
    rise: float,
    bodies: Array,
    turn: Array,
    scratch: Array,
) -> None:
    """Pose and motion of body b from its parent's; its joint at s, moving by `rate` and `rise`."""
    parent, own = bodies[int(robot[b, PARENT])], bodies[b]
    R_parent, z = parent[ROTATION : ROTATION + 9], own[JOINT_AXIS : JOINT_AXIS + 3]
    r, slip, aligned = scratch[0], scratch[1], scratch[2]
    slides = robot[b, TYPE] == PRISMATIC
    axis = robot[b, AXIS : AXIS + 3]
    set_rotation(axis, 0.0 if slides else s, turn)
    _times(R_parent, robot[b, TURN : TURN + 9], aligned)
    _rotate(aligned, axis, z)
    _turned(aligned, turn, own[ROTATION : ROTATION + 9])
    _rotate(R_parent, robot[b, SHIFT : SHIFT + 3], r)
    w, dw = parent[OMEGA : OMEGA + 3], parent[OMEGA_DOT : OMEGA_DOT + 3]
    a = own[ACCELERATION : ACCELERATION + 3]
    w_b, dw_b = own[OMEGA : OMEGA + 3], own[OMEGA_DOT : OMEGA_DOT + 3]
    for i in range(3):
        r[i] += z[i] * s if slides else 0.0
        own[ORIGIN + i] = parent[ORIGIN + i] + r[i]
        w_b[i], dw_b[i], a[i] = w[i], dw[i], parent[ACCELERATION + i]
    set_cross(w, r, slip)
    add_cross(dw, r, 1.0, a)
    add_cross(w, slip, 1.0, a)
    if slides:
        add_cross(w, z, 2.0 * rate, a)
        for i in range(3):
            a[i] += z[i] * rise
    else:
        add_cross(w, z, rate, dw_b)
        for i in range(3):
            w_b[i] += z[i] * rate
            dw_b[i] += z[i] * rise


@njit
def _loads(robot: Array, b: int, bodies: Array, scratch: Array) -> None:
    """Force and torque that body b's own motion takes, and its first moment."""
    own = bodies[b]
    R, m = own[ROTATION : ROTATION + 9], robot[b, MASS]
    a, w = own[ACCELERATION : ACCELERATION + 3], own[OMEGA : OMEGA + 3]
    dw, h = own[OMEGA_DOT : OMEGA_DOT + 3], own[CARRIED : CARRIED + 3]
    force, torque = own[FORCE : FORCE + 3], own[TORQUE : TORQUE + 3]
    _rotate(R, robot[b, MOMENT : MOMENT + 3], h)
    own[CARRIED_MASS] = m
    body_w, body_dw, spin, rest, slip = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    for i in range(3):  # into the body's axes, where the inertia is constant
        body_w[i] = R[i] * w[0] + R[3 + i] * w[1] + R[6 + i] * w[2]
        body_dw[i] = R[i] * dw[0] + R[3 + i] * dw[1] + R[6 + i] * dw[2]
    inertia = robot[b, INERTIA : INERTIA + 9]
    _rotate(inertia, body_w, spin)
    _rotate(inertia, body_dw, rest)
    add_cross(body_w, spin, 1.0, rest)
    _rotate(R, rest, torque)
    add_cross(h, a, 1.0, torque)
    set_cross(w, h, slip)
    for i in range(3):
        force[i] = m * a[i]
    add_cross(dw, h, 1.0, force)
    add_cross(w, slip, 1.0, force)


@compiled()
def newton_euler(
    robot: Array, q: Array, qd: Array, qdd: Array, root: RootMotion, bodies: Array, tau: Array
) -> None:
    """Inverse dynamics of a robot that nothing touches; see com_model.dynamics.inverse_dynamics.

    Args:
        robot: (B, COLUMNS) packed.
        q, qd, qdd: (n,) rad or m, and their derivatives.
        bodies: (B, PASS_COLUMNS), result: row 0 has in FORCE, TORQUE the wrench on the root.
        tau: (n,) result, N m or N.
    """
    count, turn = len(robot), np.empty((3, 3))
    bodies[0] = 0.0
    tau[:] = 0.0
    for i in range(3):
        bodies[0, ROTATION + 4 * i] = 1.0
        bodies[0, OMEGA + i], bodies[0, OMEGA_DOT + i] = root.omega[i], root.omega_dot[i]
        bodies[0, ACCELERATION + i] = root.acceleration[i]
    scratch = np.empty((5, 9))
    _loads(robot, 0, bodies, scratch)
    for b in range(1, count):
        driver, ratio = int(robot[b, DRIVER]), robot[b, MULTIPLIER]
        position = ratio * q[driver] + robot[b, OFFSET]
        _outwards(
            robot, b, position, ratio * qd[driver], ratio * qdd[driver], bodies, turn, scratch
        )
        _loads(robot, b, bodies, scratch)
    r = scratch[0]
    for b in range(count - 1, 0, -1):
        own, parent = bodies[b], bodies[int(robot[b, PARENT])]
        at = FORCE if robot[b, TYPE] == PRISMATIC else TORQUE
        work = 0.0
        for i in range(3):
            work += own[JOINT_AXIS + i] * own[at + i]
            r[i] = own[ORIGIN + i] - parent[ORIGIN + i]
            parent[FORCE + i] += own[FORCE + i]
            parent[TORQUE + i] += own[TORQUE + i]
            parent[CARRIED + i] += own[CARRIED + i] + own[CARRIED_MASS] * r[i]
        add_cross(r, own[FORCE : FORCE + 3], 1.0, parent[TORQUE : TORQUE + 3])
        parent[CARRIED_MASS] += own[CARRIED_MASS]
        tau[int(robot[b, DRIVER])] += robot[b, MULTIPLIER] * work


@compiled(nogil=True)
def root_wrenches(
    robot: Array,
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
    bodies, tau = np.empty((len(robot), PASS_COLUMNS)), np.empty(q.shape[1])
    for i in range(len(q)):
        root = RootMotion(omega[i], omega_dot[i], acceleration[i])
        newton_euler(robot, q[i], qd[i], qdd[i], root, bodies, tau)
        for k in range(6):
            wrenches[i, k] = bodies[0, FORCE + k]
