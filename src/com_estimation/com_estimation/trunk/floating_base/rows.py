"""Compiled: rows of the whole robot's dynamics, legs known, trunk unknown, axes of the root.

  sum_i w_i = Y theta,   w_i = -A_i e_i - B_i,   theta = [m, m c, I_O]
  e_i = tau_i - ID_i - armature qdd,   A_i = [1 ; [p_i]x] J_i^-T
  Y = [ a, [dw]x + [w]x^2, 0 ; 0, -[a]x, L(dw) + [w]x L(w) ]

with B_i, ID_i the inverse dynamics of leg i of the robot without its trunk, a the specific force at
the root's origin, p_i, J_i the contact point and its Jacobian (docs/derivations.md). A leg that
swings adds three more rows: e_i = 0.

Errors of sensors and model enter by their first derivatives at no error. Those of encoders and of
the IMU's mounting, which change the whole geometry, are differences of passes of the inverse
dynamics, one joint of all legs at a time; all others are exact.
"""

import math

import numpy as np
from numba import njit

from com_estimation.trunk.floating_base.contact import find_contact_point
from com_estimation.trunk.floating_base.filter_types import (
    ARM,
    BIAS,
    COULOMB,
    DELAY,
    GAIN,
    HIP,
    INERTIA,
    LATE,
    LEG_JOINTS,
    LINK,
    LOAD,
    MASS,
    MOMENT,
    ROTOR,
    SCALE,
    STATES,
    TILT,
    TORQUE_BIAS,
    TRUNK_STATES,
    VISCOUS,
    ZERO,
    Array,
    FilteredMotion,
    FilterModel,
    FootForces,
    LegStates,
    Rows,
    Settings,
)
from com_model.dynamics.inverse_dynamics import (
    Links,
    RootMotion,
    make_links,
    newton_euler,
)
from com_model.geometry.vector_kernels import add, add_cross, cross, dot, row, sub
from com_model.legs import DIAGONALS

SWING_FACTOR = math.sqrt(
    10.0
)  # on the standard deviation of the rows of a leg in the air
_STEP = 1e-6  # rad, of the differences
PAIRS = tuple(DIAGONALS.values())


@njit
def make_rows(model: FilterModel) -> Rows:
    """Allocates the rows of an update.

    Args:
        model: the robot, which determines the sizes.
    """
    legs = len(model.balls)
    return Rows(
        np.empty((6, STATES)),
        np.empty(6),
        np.empty((6, 6)),
        np.empty((legs, 3, STATES)),
        np.empty((legs, 3)),
        np.empty((legs, 3)),
        np.ones(legs, dtype=np.bool_),
        np.ones(legs, dtype=np.bool_),
        _make_legs(legs),
        _make_legs(legs),
        make_links(len(model.bodies.mass)),
        np.empty(len(model.armature)),
    )


@njit
def _make_legs(legs: int) -> LegStates:
    return LegStates(
        np.empty((legs, 3)),
        np.empty((legs, 6)),
        np.empty((legs, 3)),
        np.empty((legs, 6, 3)),
    )


@njit
def set_rows(
    motion: FilteredMotion,
    averaging: float,
    model: FilterModel,
    settings: Settings,
    x: Array,
    rows: Rows,
    forces: FootForces,
) -> None:
    """Sets all rows, linearised about the trunk in x: residual = H (truth - x) + noise.

    Args:
        motion: filtered motion of the robot.
        averaging: standard deviation of a period's mean over that of a sample.
        model: the robot.
        settings: noise of torques and base rows.
        x: (STATES,) the estimate.
        rows: set; `known` says which legs' torques are known on entry, and is cleared where they
            cannot be used.
        forces: of the ground; set except for `swings`.
    """
    H, residual, noise = rows.H, rows.residual, rows.noise
    H[:] = 0.0
    noise[:] = 0.0
    rows.joint_rows[:] = 0.0
    rows.regular[:] = True
    _pass(motion, model, rows)
    set_trunk_columns(motion.omega, motion.omega_dot, motion.specific_force, H)
    for i in range(6):
        noise[i, i] = (
            averaging * (settings.force_noise if i < 3 else settings.moment_noise)
        ) ** 2
    residual[:] = 0.0
    _add_products(H, x, 0, TRUNK_STATES, -1.0, residual)
    for leg in range(len(model.balls)):
        # of a leg's Jacobian: its determinant over the lengths of its columns
        rows.regular[leg] = _set_leg(leg, motion, model, rows, rows.legs) > 0.02
        if not rows.regular[leg]:  # a straight leg: its force is not known at all
            _set_leg(leg, motion, model, rows, rows.legs)
        _add_torque_columns(leg, motion, averaging, model, settings, x, rows)
        _add_link_columns(leg, model, rows)
        _add_hip_columns(leg, motion, model, rows)
        residual += rows.legs.wrench[leg]
    _add_bias_columns(motion, model, x, rows)
    _add_zero_columns(motion, model, rows)
    _add_mounting_columns(motion, model, x, rows)
    _add_products(H, x, TRUNK_STATES, STATES, -1.0, residual)
    for leg in range(len(model.balls)):
        _set_force(leg, x, rows, forces)


@njit
def _add_products(
    H: Array, x: Array, first: int, last: int, scale: float, out: Array
) -> None:
    """Adds scale times H[:, first:last] @ x[first:last] to out, without temporary arrays."""
    for i in range(len(out)):
        total = 0.0
        for c in range(first, last):
            total += H[i, c] * x[c]
        out[i] += scale * total


# --- the trunk --------------------------------------------------------------------------------
@njit
def set_trunk_columns(w: Array, dw: Array, a: Array, H: Array) -> None:
    """Sets the columns of m, m c and I_O in the six base rows.

    Args:
        w: (3,) rad/s, angular velocity of the root, root axes.
        dw: (3,) rad/s^2, its derivative.
        a: (3,) m/s^2, specific force at the root's origin.
        H: (6, STATES or TRUNK_STATES); its first TRUNK_STATES columns are set.
    """
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
    column, spin = np.empty(3), np.empty(3)
    for s in range(6):
        _set_inertia_column(s, dw, column)
        _set_inertia_column(s, w, spin)
        add_cross(w, spin, 1.0, column)
        H[3:6, INERTIA + s] = column


@njit
def _set_inertia_column(s: int, v: Array, out: Array) -> None:
    """Sets out to I v for the unit inertia number s (xx, yy, zz, xy, xz, yz)."""
    first, second = (s, s) if s < 3 else (max(s - 4, 0), min(s - 2, 2))
    out[:] = 0.0
    out[first], out[second] = v[second], v[first]


# --- a leg ------------------------------------------------------------------------------------
@njit
def _pass(motion: FilteredMotion, model: FilterModel, rows: Rows) -> None:
    root = RootMotion(motion.omega, motion.omega_dot, motion.specific_force)
    newton_euler(
        model.bodies, motion.q, motion.qd, motion.qdd, root, rows.links, rows.torque
    )


@njit
def _set_leg(
    leg: int, motion: FilteredMotion, model: FilterModel, rows: Rows, out: LegStates
) -> float:
    """Sets a leg by the last pass; returns |det J| over the product of its columns."""
    p, A, e, wrench = out.point[leg], out.A[leg], out.residual[leg], out.wrench[leg]
    find_contact_point(leg, model, rows.links, motion.up, p)
    inverse = np.empty((3, 3))
    result = _set_inverse_transposed(leg, model, rows.links, p, inverse)
    links, first = rows.links, model.leg_bodies[leg, 0]
    for i in range(3):
        wrench[i], wrench[3 + i] = -links.force[first, i], -links.torque[first, i]
    add_cross(links.p[first], links.force[first], -1.0, wrench[3:6])
    for j in range(3):
        column = row(inverse.T, j) if rows.regular[leg] else (0.0, 0.0, 0.0)
        A[0, j], A[1, j], A[2, j] = column
        A[3, j], A[4, j], A[5, j] = cross(p, column)
        q = model.leg_joints[leg, j]
        e[j] = motion.tau[q] - rows.torque[q] - model.armature[q] * motion.qdd[q]
        for i in range(6):
            wrench[i] -= A[i, j] * e[j]
    return result


@njit
def _add_torque_columns(
    leg: int,
    motion: FilteredMotion,
    averaging: float,
    model: FilterModel,
    settings: Settings,
    x: Array,
    rows: Rows,
) -> None:
    """Adds the columns of a leg's torque errors, and their noise, alone and in the base rows."""
    H, noise, A, known = rows.H, rows.noise, rows.legs.A[leg], rows.known[leg]
    for j in range(3):
        q, state, columns = (
            model.leg_joints[leg, j],
            3 * leg + j,
            rows.joint_rows[leg, j],
        )
        tau, rotor = motion.tau[q], model.armature[q] * motion.qdd[q]
        direction = motion.direction[q]
        columns[GAIN + state] = tau
        columns[TORQUE_BIAS + state] = 1.0
        columns[COULOMB + state] = direction
        columns[VISCOUS + state] = motion.qd[q]
        columns[ROTOR + state] = motion.qdd[q]
        columns[LATE] = -motion.tau_rate[q]
        columns[LOAD + j] = abs(tau) * direction
        for i in range(6):
            H[i, LATE] -= A[i, j] * columns[LATE]
            H[i, LOAD + j] -= A[i, j] * columns[LOAD + j]
        for c in range(GAIN + state, ZERO, LEG_JOINTS):
            for i in range(6):
                H[i, c] = -A[i, j] * columns[c]
        std = averaging * (settings.torque_floor + settings.torque_relative * abs(tau))
        # A joint's friction may act either way while it sticks, and then does so all the time.
        friction = abs(x[COULOMB + state]) + abs(x[LOAD + j] * tau)
        stuck = settings.correlation * friction * (1.0 - abs(direction))
        own = settings.swing_relative * abs(rows.torque[q] + rotor)
        rows.joint_std[leg, j] = (
            math.hypot(std, stuck) if known else settings.torque_unknown
        )
        rows.swing_std[leg, j] = SWING_FACTOR * math.hypot(math.hypot(std, stuck), own)
        for i in range(6):
            for k in range(6):
                noise[i, k] += A[i, j] * A[k, j] * rows.joint_std[leg, j] ** 2
    if not rows.regular[leg]:  # any force at its foot
        p, blind = rows.legs.point[leg], np.zeros((6, 3))
        for j in range(3):
            blind[j, j] = settings.torque_unknown
            blind[3 + (j + 1) % 3, j] = settings.torque_unknown * p[(j + 2) % 3]
            blind[3 + (j + 2) % 3, j] = -settings.torque_unknown * p[(j + 1) % 3]
        noise += blind @ blind.T
    rows.known[leg] &= rows.regular[leg]


@njit
def _add_link_columns(leg: int, model: FilterModel, rows: Rows) -> None:
    """Adds the columns of link masses; a link's wrench is its joint's minus the next joint's."""
    force, moment = np.empty(3), np.empty(3)
    A, H, links = rows.legs.A[leg], rows.H, rows.links
    for k in range(3):
        own, column = model.leg_bodies[leg, k], LINK + 3 * leg + k
        force[:], moment[:] = links.force[own], links.torque[own]
        if k < 2:
            following = model.leg_bodies[leg, k + 1]
            force -= links.force[following]
            moment -= links.torque[following]
            arm = sub(links.p[following], links.p[own])
            add_cross(arm, links.force[following], -1.0, moment)
        add_cross(links.p[own], force, 1.0, moment)  # about the root's origin
        H[:3, column], H[3:, column] = force, moment
        for j in range(k + 1):
            joint = model.leg_bodies[leg, j]
            torque = dot(links.axis[joint], sub(moment, cross(links.p[joint], force)))
            rows.joint_rows[leg, j, column] = torque
            for i in range(6):
                H[i, column] -= torque * A[i, j]


@njit
def _add_hip_columns(
    leg: int, motion: FilteredMotion, model: FilterModel, rows: Rows
) -> None:
    """Adds a leg to its diagonal's columns: where its hip is off, its wrench acts elsewhere.

    A trot shows the two diagonals' mean errors apart, not those of the two hips of a diagonal. With
    a unit vector d along x or y the leg's links accelerate by a = dw x d + w x (w x d) more:

      d x f on the base, A k - [m a ; h x a],   k_j = a . (axis_j x h_j),   -k_j on joint j
    """
    H, A, links, column = rows.H, rows.legs.A[leg], rows.links, HIP
    force, unit, first = rows.legs.wrench[leg], np.zeros(3), model.leg_bodies[leg, 0]
    for legs in PAIRS[1:]:
        column += 2 * (leg in legs)
    mass, moment = (
        links.mass[first],
        links.moment[first] + links.mass[first] * links.p[first],
    )
    for c in range(column, column + 2):
        unit[c - column], unit[column + 1 - c] = 1.0, 0.0
        a = cross(motion.omega, cross(motion.omega, unit))
        a = add(a, cross(motion.omega_dot, unit))
        arm, lag = cross(unit, force), cross(moment, a)
        for i in range(3):
            H[i, c] -= mass * a[i]
            H[3 + i, c] += arm[i] - lag[i]
        for j in range(3):
            own = model.leg_bodies[leg, j]
            k = dot(cross(links.axis[own], links.moment[own]), a)
            rows.joint_rows[leg, j, c] = -k
            for i in range(6):
                H[i, c] += A[i, j] * k


@njit
def _set_force(leg: int, x: Array, rows: Rows, forces: FootForces) -> None:
    """Sets the force of the ground on a foot, from the torques corrected by the estimate."""
    forces.point[leg], forces.force[leg], forces.std[leg] = (
        rows.legs.point[leg],
        math.nan,
        math.nan,
    )
    if rows.known[leg]:
        A, torque = rows.legs.A[leg], rows.legs.residual[leg].copy()
        for j in range(3):
            for c in range(TRUNK_STATES, STATES):
                torque[j] -= rows.joint_rows[leg, j, c] * x[c]
        for i in range(3):
            (u, v, w), std = row(A, i), rows.joint_std[leg]
            forces.force[leg, i] = -dot(A[i], torque)
            forces.std[leg, i] = math.hypot(
                math.hypot(u * std[0], v * std[1]), w * std[2]
            )


@njit
def _set_inverse_transposed(
    leg: int, model: FilterModel, links: Links, p: Array, out: Array
) -> float:
    """J^-T (3, 3) of a leg's contact point p; returns |det J| over the product of its columns.

    With columns a, b, c of J, those of J^-T are b x c, c x a, a x b over det J.
    """
    bodies = model.leg_bodies[leg]
    hip, thigh, knee = bodies[0], bodies[1], bodies[2]
    a = cross(links.axis[hip], sub(p, links.p[hip]))
    b = cross(links.axis[thigh], sub(p, links.p[thigh]))
    c = cross(links.axis[knee], sub(p, links.p[knee]))
    det = dot(a, cross(b, c))
    product = math.sqrt(dot(a, a) * dot(b, b) * dot(c, c))
    singular = det == 0.0 or product == 0.0
    for j, column in enumerate((cross(b, c), cross(c, a), cross(a, b))):
        for i in range(3):
            out[i, j] = 0.0 if singular else column[i] / det
    return 0.0 if singular else abs(det) / product


# --- the IMU, and the encoders ------------------------------------------------------------------
@njit
def _add_bias_columns(
    motion: FilteredMotion, model: FilterModel, x: Array, rows: Rows
) -> None:
    """Adds the columns of the specific force's bias, lever arm and scales."""
    H, links = rows.H, rows.links
    mass, h = x[MASS] + links.mass[0], x[MOMENT : MOMENT + 3] + links.moment[0]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        H[i, BIAS + i] -= mass
        H[3 + i, BIAS + j] += h[k]
        H[3 + i, BIAS + k] -= h[j]
    for leg in range(len(model.balls)):
        for j in range(3):
            own = model.leg_bodies[leg, j]
            column = cross(links.axis[own], links.moment[own])
            for c in range(3):
                rows.joint_rows[leg, j, BIAS + c] = -column[c]
                for i in range(6):
                    H[i, BIAS + c] += rows.legs.A[leg, i, j] * column[c]
            _set_arm_columns(motion, model, rows.joint_rows[leg, j])
    for i in range(6):
        _set_arm_columns(motion, model, H[i])


@njit
def _set_arm_columns(motion: FilteredMotion, model: FilterModel, row: Array) -> None:
    """Sets those of lever arm and scales from the bias's: times [dw]x + [w]x^2, and R diag(R a)."""
    w, bias = motion.omega, row[BIAS : BIAS + 3]
    for i in range(3):
        row[ARM + i] = dot(bias, w) * w[i] - dot(w, w) * bias[i]
        axis = model.R_imu_root[i]
        row[SCALE + i] = dot(bias, axis) * dot(axis, motion.specific_force)
    add_cross(bias, motion.omega_dot, 1.0, row[ARM : ARM + 3])


@njit
def _add_zero_columns(motion: FilteredMotion, model: FilterModel, rows: Rows) -> None:
    """Columns of the encoders' zeros: q_measured = q + zero."""
    for j in range(3):
        for leg in range(len(model.balls)):
            motion.q[model.leg_joints[leg, j]] += _STEP
        _pass(motion, model, rows)
        for leg in range(len(model.balls)):
            _set_leg(leg, motion, model, rows, rows.changed)
            _add_difference(leg, ZERO + 3 * leg + j, 1.0 / _STEP, rows)
        for leg in range(len(model.balls)):
            motion.q[model.leg_joints[leg, j]] -= _STEP


@njit
def _add_difference(leg: int, column: int, scale: float, rows: Rows) -> None:
    """Adds the scaled difference between changed and measured legs to a column."""
    legs, changed = rows.legs, rows.changed
    for i in range(6):
        rows.H[i, column] += scale * (changed.wrench[leg, i] - legs.wrench[leg, i])
    for j in range(3):
        change = changed.residual[leg, j] - legs.residual[leg, j]
        rows.joint_rows[leg, j, column] = scale * change


@njit
def _add_mounting_columns(
    motion: FilteredMotion, model: FilterModel, x: Array, rows: Rows
) -> None:
    """Adds the columns of the IMU's tilt, which rotates all of its readings, and of its delay."""
    trunk, axis, kept = np.zeros((6, TRUNK_STATES)), np.empty(3), np.empty((4, 3))
    measured = (motion.omega, motion.omega_dot, motion.specific_force, motion.up)
    for state in range(TILT, DELAY + 1):
        for i in range(3):
            axis[i] = 1.0 if TILT + i == state else 0.0
        for k, v in enumerate(measured):
            kept[k] = v
            if state == DELAY:
                v += _STEP * motion.rates[k]
            add_cross(axis, kept[k], _STEP, v)
        _pass(motion, model, rows)
        for leg in range(len(model.balls)):
            _set_leg(leg, motion, model, rows, rows.changed)
            _add_difference(leg, state, -1.0 / _STEP, rows)
        set_trunk_columns(motion.omega, motion.omega_dot, motion.specific_force, trunk)
        trunk -= rows.H[:, :TRUNK_STATES]
        _add_products(trunk, x, 0, TRUNK_STATES, 1.0 / _STEP, rows.H[:, state])
        for k, v in enumerate(measured):
            v[:] = kept[k]
