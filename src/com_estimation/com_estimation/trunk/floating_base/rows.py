"""Compiled: the six base rows of the whole robot, legs known, trunk unknown, axes of the root.

  sum_i [f_i ; p_i x f_i] - B_legs = Y theta,     theta = [m, m c, I_O]
  f_i = J_i^-T (ID_i + armature qdd + friction - (1 - gamma) tau_i)
  Y = [ a, [dw]x + [w]x^2, 0 ; 0, -[a]x, L(dw) + [w]x L(w) ]

with B_legs, ID_i the inverse dynamics of the robot without its trunk, a the specific force at the
root's origin, p_i, J_i the contact point and its Jacobian (docs/derivations.md). A leg that swings
gives three more rows, those of its joints: there f_i = 0.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from com_estimation.trunk.floating_base.contact import find_contact_point
from com_estimation.trunk.floating_base.filter_types import (
    BIAS,
    FRICTION,
    GAIN,
    INERTIA,
    LEG_MASS,
    MASS,
    MOMENT,
    STATES,
    TRUNK_STATES,
    Array,
    BaseRows,
    FilteredMotion,
    FilterModel,
    FootForces,
    JointRows,
    Settings,
)
from com_model.dynamics.inverse_dynamics_kernels import (
    ACCELERATION,
    CARRIED,
    CARRIED_MASS,
    FORCE,
    JOINT_AXIS,
    ORIGIN,
    PASS_COLUMNS,
    TORQUE,
    RootMotion,
    add_cross,
    newton_euler,
)


@njit
def make_base_rows(model: FilterModel) -> BaseRows:
    """Memory for the rows of an update."""
    legs = len(model.balls)
    joints = JointRows(
        np.empty((legs, 3)),
        np.empty((legs, 3)),
        np.empty((legs, 3)),
        np.empty((legs, 3)),
        np.empty((legs, 3)),
    )
    return BaseRows(
        np.empty((6, STATES)),
        np.empty(6),
        np.empty((6, 6)),
        joints,
        np.ones(legs, dtype=np.bool_),
        np.empty((len(model.bodies), PASS_COLUMNS)),
        np.empty(len(model.armature)),
    )


@njit
def set_base_rows(
    motion: FilteredMotion,
    averaging: float,
    model: FilterModel,
    settings: Settings,
    x: Array,
    rows: BaseRows,
    forces: FootForces,
) -> None:
    """The six base rows, linearised about x: residual = H (truth - x) + noise.

    Args:
        motion: The filtered motion.
        averaging: Standard deviation of a period's mean over that of a sample.
        model: The robot.
        settings: See Settings.
        x: (STATES,) where they are linearised.
        rows: Set; `known` says which legs' torques are, and is cleared where they are of no use.
        forces: Set, but for what swings.
    """
    H, residual, noise = rows.H, rows.residual, rows.noise
    a = np.empty(3)
    for i in range(3):
        a[i] = motion.specific_force[i] - x[BIAS + i]
    newton_euler(
        model.bodies,
        motion.q,
        motion.qd,
        motion.qdd,
        RootMotion(motion.omega, motion.omega_dot, a),
        rows.bodies,
        rows.torque,
    )
    for i in range(6):
        residual[i] = 0.0
        for c in range(STATES):
            H[i, c] = 0.0
        for k in range(6):
            noise[i, k] = 0.0
    set_trunk_columns(motion.omega, motion.omega_dot, a, H)
    for i in range(6):
        noise[i, i] = (averaging * (settings.force_noise if i < 3 else settings.moment_noise)) ** 2
        for c in range(TRUNK_STATES):
            residual[i] -= H[i, c] * x[c]
    for leg in range(len(model.balls)):
        _add_leg(leg, motion, averaging, model, settings, x, rows, forces)
    _add_bias_columns(rows.bodies, x, H)


# --- the trunk --------------------------------------------------------------------------------
@njit
def set_trunk_columns(w: Array, dw: Array, a: Array, H: Array) -> None:
    """Columns of m, m c and I_O in the six base rows."""
    square = w[0] ** 2 + w[1] ** 2 + w[2] ** 2
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        H[i, MASS] = a[i]
        for c in range(3):  # [dw]x + w w^T - |w|^2 1
            H[i, MOMENT + c] = w[i] * w[c] - (square if i == c else 0.0)
        H[i, MOMENT + j] -= dw[k]
        H[i, MOMENT + k] += dw[j]
        H[3 + i, MOMENT + j] = a[k]  # -[a]x
        H[3 + i, MOMENT + k] = -a[j]
    column = np.empty(3)
    spin = np.empty(3)
    for s in range(6):
        for i in range(3):
            column[i] = _inertia_row(i, s, dw)
            spin[i] = _inertia_row(i, s, w)
        add_cross(w, spin, 1.0, column)
        for i in range(3):
            H[3 + i, INERTIA + s] = column[i]


@njit
def _inertia_row(i: int, s: int, v: Array) -> float:
    """Element i of I v for the unit inertia number s (xx, yy, zz, xy, xz, yz)."""
    if s < 3:
        return float(v[s]) if i == s else 0.0
    first, second = (0, 1) if s == 3 else ((0, 2) if s == 4 else (1, 2))
    if i == first:
        return float(v[second])
    return float(v[first]) if i == second else 0.0


@njit
def _add_bias_columns(bodies: Array, x: Array, H: Array) -> None:
    """Effect of a bias of the specific force: -(total mass, total first moment x)."""
    mass = x[MASS] + bodies[0, CARRIED_MASS]
    h = np.empty(3)
    for i in range(3):
        h[i] = x[MOMENT + i] + bodies[0, CARRIED + i]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        H[i, BIAS + i] -= mass
        H[3 + i, BIAS + j] += h[k]
        H[3 + i, BIAS + k] -= h[j]


# --- a leg ------------------------------------------------------------------------------------
@njit
def _add_leg(
    leg: int,
    motion: FilteredMotion,
    averaging: float,
    model: FilterModel,
    settings: Settings,
    x: Array,
    rows: BaseRows,
    forces: FootForces,
) -> None:
    """Adds a leg to the base rows, and sets its rows of the joints and its force."""
    H, residual, noise, joints = rows.H, rows.residual, rows.noise, rows.joints
    inverse, p = np.empty((3, 3)), np.empty(3)
    find_contact_point(leg, model, rows.bodies, motion.up, p)
    useful = _set_inverse_transposed(leg, model, rows.bodies, p, inverse) > settings.singular
    A = np.zeros((6, 3))  # wrench on the base of a generalised force at each joint
    for j in range(3):
        for i in range(3):
            A[i, j] = inverse[i, j]
        A[3, j] = p[1] * A[2, j] - p[2] * A[1, j]
        A[4, j] = p[2] * A[0, j] - p[0] * A[2, j]
        A[5, j] = p[0] * A[1, j] - p[1] * A[0, j]
    force, variance = np.zeros(3), np.zeros(3)
    _set_joint_rows(leg, motion, averaging, model, settings, x, rows)
    for j in range(3):
        state, tau = 3 * leg + j, motion.tau[model.leg_joints[leg, j]]
        row, direction, std = joints.residual[leg, j], joints.direction[leg, j], joints.std[leg, j]
        for i in range(3):
            force[i] -= inverse[i, j] * row
            variance[i] += (inverse[i, j] * std) ** 2
        for i in range(6):
            if useful:
                residual[i] -= A[i, j] * row
                H[i, GAIN + state] = -A[i, j] * tau
                H[i, FRICTION + state] = -A[i, j] * direction
                for k in range(6):
                    noise[i, k] += A[i, j] * A[k, j] * std**2
    if not useful:  # a straight leg: its force is not known at all
        for i in range(6):
            for k in range(6):
                for j in range(3):
                    unit_i = _unit_wrench(i, j, p)
                    noise[i, k] += unit_i * _unit_wrench(k, j, p) * settings.torque_unknown**2
    first = rows.bodies[model.leg_bodies[leg, 0]]  # what the leg's own motion takes
    own_force, own_moment = first[FORCE : FORCE + 3], np.empty(3)
    for i in range(3):
        own_moment[i] = first[TORQUE + i]
    add_cross(first[ORIGIN : ORIGIN + 3], own_force, 1.0, own_moment)
    scale = 1.0 + x[LEG_MASS + leg]
    for i in range(3):
        residual[i] -= scale * own_force[i]
        residual[3 + i] -= scale * own_moment[i]
    _add_weight_columns(leg, model, A, useful, rows)
    rows.known[leg] &= useful
    for i in range(3):
        forces.point[leg, i] = p[i]
        forces.force[leg, i] = force[i] if rows.known[leg] else math.nan
        forces.std[leg, i] = math.sqrt(variance[i]) if rows.known[leg] else math.nan


@njit
def _set_joint_rows(
    leg: int,
    motion: FilteredMotion,
    averaging: float,
    model: FilterModel,
    settings: Settings,
    x: Array,
    rows: BaseRows,
) -> None:
    """Residuals of a leg's torques, their standard deviations, and what they depend on."""
    joints, known = rows.joints, rows.known[leg]
    for j in range(3):
        q, state = model.leg_joints[leg, j], 3 * leg + j
        tau, torque, friction = motion.tau[q], rows.torque[q], x[FRICTION + state]
        direction = math.tanh(motion.qd[q] / settings.friction_speed)
        rotor = model.armature[q] * motion.qdd[q]
        std = averaging * (settings.torque_floor + settings.torque_relative * abs(tau))
        # The friction of a stationary joint may act either way.
        std = math.hypot(std, settings.sticking * friction * (1.0 - abs(direction)))
        applied = (1.0 - x[GAIN + state]) * tau - friction * direction
        joints.residual[leg, j] = applied - ((1.0 + x[LEG_MASS + leg]) * torque + rotor)
        joints.direction[leg, j] = direction
        joints.std[leg, j] = std if known else settings.torque_unknown
        joints.size[leg, j] = abs(torque) + abs(rotor)


@njit
def _set_inverse_transposed(
    leg: int, model: FilterModel, bodies: Array, p: Array, out: Array
) -> float:
    """J^-T (3, 3) of a leg's contact point p; returns |det J| over the product of its columns."""
    J, c = np.empty((3, 3)), np.empty((3, 3))
    arm, column = np.empty(3), np.empty(3)
    for j in range(3):
        own = bodies[model.leg_bodies[leg, j]]
        for i in range(3):
            arm[i], column[i] = p[i] - own[ORIGIN + i], 0.0
        add_cross(own[JOINT_AXIS : JOINT_AXIS + 3], arm, 1.0, column)
        for i in range(3):
            J[i, j] = column[i]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        for r in range(3):
            s, t = (r + 1) % 3, (r + 2) % 3
            c[r, i] = J[s, j] * J[t, k] - J[t, j] * J[s, k]  # cofactors
    det = J[0, 0] * c[0, 0] + J[1, 0] * c[1, 0] + J[2, 0] * c[2, 0]
    product = 1.0
    for i in range(3):
        product *= math.sqrt(J[0, i] ** 2 + J[1, i] ** 2 + J[2, i] ** 2)
    singular = det == 0.0 or product == 0.0
    for i in range(3):
        for j in range(3):
            out[i, j] = 0.0 if singular else c[i, j] / det
    return 0.0 if singular else abs(det) / product


@njit
def _add_weight_columns(
    leg: int, model: FilterModel, A: Array, useful: bool, rows: BaseRows
) -> None:
    """Effect of the leg's weight on the base by its joints: columns of the bias and of its mass.

    The leg's mass counts by its weight alone: what its inertia takes is as noisy as the second
    derivatives are, and would pull the mass towards zero.
    """
    H, bodies = rows.H, rows.bodies
    a, first = bodies[0, ACCELERATION : ACCELERATION + 3], bodies[model.leg_bodies[leg, 0]]
    column, h, moment = np.empty(3), np.empty(3), np.zeros(3)
    for i in range(3):
        h[i] = first[CARRIED + i] + first[CARRIED_MASS] * first[ORIGIN + i]
    add_cross(h, a, 1.0, moment)
    for i in range(3):
        H[i, LEG_MASS + leg] += first[CARRIED_MASS] * a[i]
        H[3 + i, LEG_MASS + leg] += moment[i]
    for j in range(3):
        own = bodies[model.leg_bodies[leg, j]]
        for i in range(3):
            column[i] = 0.0
        add_cross(own[JOINT_AXIS : JOINT_AXIS + 3], own[CARRIED : CARRIED + 3], 1.0, column)
        weight = column[0] * a[0] + column[1] * a[1] + column[2] * a[2]
        rows.joints.weight[leg, j] = weight
        for i in range(6):
            if useful:
                H[i, LEG_MASS + leg] -= A[i, j] * weight
                for c in range(3):
                    H[i, BIAS + c] += A[i, j] * column[c]


@njit
def _unit_wrench(i: int, j: int, p: Array) -> float:
    """Element i of the wrench about the root's origin of a unit force along j at p."""
    if i < 3:
        return 1.0 if i == j else 0.0
    i -= 3
    if i == j:
        return 0.0
    k = 3 - i - j
    sign = 1.0 if (j - k) % 3 == 1 else -1.0
    return float(sign * p[k])


@njit
def swing_rows(
    leg: int, motion: FilteredMotion, model: FilterModel, settings: Settings, joints: JointRows
) -> tuple[Array, Array]:
    """Whitened rows H (3, STATES) and residual (3,) of a leg without contact.

    Its torques are its inverse dynamics: they show friction and the leg's mass.
    """
    H, residual = np.zeros((3, STATES)), np.empty(3)
    for j in range(3):
        state = 3 * leg + j
        std = math.hypot(joints.std[leg, j], settings.swing_relative * joints.size[leg, j])
        residual[j] = joints.residual[leg, j] / std
        H[j, GAIN + state] = motion.tau[model.leg_joints[leg, j]] / std
        H[j, FRICTION + state] = joints.direction[leg, j] / std
        H[j, LEG_MASS + leg] = joints.weight[leg, j] / std
    return H, residual
