"""What numba compiles for com_estimation.trunk.floating_base: filters, rows, Kalman update.

The six base rows of the whole robot, legs known, trunk unknown, in the axes of the root:

  sum_i [f_i ; p_i x f_i] - B_legs = Y theta,     theta = [m, m c, I_O]
  f_i = J_i^-T (ID_i + armature qdd + friction - (1 - gamma) tau_i)
  Y = [ a, [dw]x + [w]x^2, 0 ; 0, -[a]x, L(dw) + [w]x L(w) ]

with B_legs, ID_i the inverse dynamics of the robot without its trunk, a the specific force at the
root's origin, p_i, J_i the contact point and its Jacobian (docs/derivations.md). A leg that swings
gives three more rows, those of its joints: there f_i = 0.

All of it stands in one file, with com_model.dynamics.inverse_dynamics_kernels watched beside it.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_model.compiled import compiled
from com_model.dynamics.inverse_dynamics_kernels import (
    ACCELERATION,
    CARRIED,
    CARRIED_MASS,
    FORCE,
    JOINT_AXIS,
    OMEGA,
    OMEGA_DOT,
    ORIGIN,
    PASS_COLUMNS,
    ROTATION,
    TORQUE,
    add_cross,
    newton_euler,
)

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

# The state: trunk's parameters, then what falsifies the sensors and the model of the legs.
MASS = 0
MOMENT = 1  # three: m c, kg m
INERTIA = 4  # six: xx, yy, zz, xy, xz, yz about the root's origin, kg m^2
BIAS = 10  # three: of the specific force, m/s^2
GAIN = 13  # twelve: gamma, of the legs' torques
FRICTION = 25  # twelve: Coulomb, N m
SCALE = 37  # four: share by which a leg is heavier than the URDF says
STATES = 41

# Channels of the filter: q (n), tau (n), then these.
GYRO, ACCELEROMETER, UP, TAIL = 0, 3, 6, 9

# Columns of a channel's memory.
FIRST, SECOND, THIRD, INPUT, SETTLING = 0, 1, 2, 3, 4
CHANNEL = 5

# Settings.
BANDWIDTH = 0  # rad/s, of the filter's three equal poles
PERIOD = 1  # s, between updates
TORQUE_SHARE = 2  # standard deviation of a torque over the torque
TORQUE_FLOOR = 3  # N m, added to it
FORCE_NOISE = 4  # N, of the base rows
MOMENT_NOISE = 5  # N m
GATE = 6  # of the normalised innovation
SWING_FORCE = 7  # N, below which a leg may swing
SWING_TIME = 8  # s, for which it must
SLOW = 9  # rad/s, below which Coulomb friction counts as a share
CHANGE_TIME = 10  # s, low pass of the innovation that tells of a payload
CHANGE_LEVEL = 11  # of it, from which on it counts as a change
FREEZE_TIME = 12  # s, for which the torques' gains stay after a change
LONGEST_GAP = 13  # s, between samples
SETTLE = 14  # time constants of the filter until a channel counts
GRAVITY = 15  # m/s^2
SINGULAR = 16  # smallest determinant of a leg's Jacobian over the product of its columns
WORTHLESS = 17  # N m, deviation of a torque that is not known
INFORMATION_TIME = 18  # s, window of what the data tell of now
ACCELEROMETER_NOISE = 19  # m/s^2, of a sample
GYRO_NOISE = 20  # rad/s, of a sample
EXCITED = 21  # power of a regressor over that of its noise from which on it tells something
EXCITED_TIME = 22  # s, over which the power is taken
SWING_SHARE = 23  # deviation of a swinging leg's own torque, over the torque
STAND_FORCE = 24  # N, above which a leg may stand
STAND_TIME = 25  # s, for which it must
FEET_NOISE = 26  # m/s^2, of the acceleration that the feet tell, after the filter
STICKING = 27  # deviation of the torque of a joint that stands, over its Coulomb friction
CHANGE_START = 28  # s of updates, before which nothing counts as a change
GROSS = 29  # normalised innovation above which an update is left out
LOST_TIME = 30  # s of updates left out, more than were made, after which nothing is believed
QUIET_TIME = 31  # s without turning, after which nothing but the trunk is learnt
SETTINGS = 32

# Clock and monitors.
LAST_SAMPLE, LAST_UPDATE, FROZEN_UNTIL, CHANGED_AT, UPDATES, INNOVATION = 0, 1, 2, 3, 4, 5
CHANGE = 6  # three: low-passed normalised innovations of Fz, Mx, My
SWINGING = 9  # four: s, for which each leg has had no force
STANDING = 13  # four: s, for which each leg has carried the robot
WITHOUT_ACCELEROMETER = 17  # 1 while the feet tell the acceleration
LEFT_OUT = 18  # s of updates that were left out, less those that were made
QUIET = 19  # s, for which the trunk has not turned
MONITORS = 20

# What a step says.
FED, UPDATED, NO_MOTION, NO_ATTITUDE, NO_CONTACT, GAP, IMPACT = 0, 1, 2, 3, 4, 5, 6
MISFIT, LOST = 7, 8

# Result columns per leg.
LEG_FORCE, LEG_DEVIATION, LEG_POINT, LEG_SWINGS = 0, 3, 6, 9
LEG_COLUMNS = 10


# --- filters ----------------------------------------------------------------------------------
@njit
def _feed(channel: Array, u: float, dt: float, a: float, settle: float) -> None:
    """One channel of (a / (s + a))^3, exact for an input that is a line between two samples.

    The response to the ramp is known in closed form; what differs from it dies out by itself.
    """
    if not math.isfinite(u):
        channel[SETTLING] = settle
        u = channel[INPUT]
    else:
        channel[SETTLING] = max(channel[SETTLING] - dt, 0.0)
    before = channel[INPUT]
    lag = (u - before) / (a * dt)
    t = a * dt
    e = math.exp(-t)
    d1 = channel[FIRST] - (before - lag)
    d2 = channel[SECOND] - (before - 2.0 * lag)
    d3 = channel[THIRD] - (before - 3.0 * lag)
    channel[FIRST] = u - lag + e * d1
    channel[SECOND] = u - 2.0 * lag + e * (d2 + t * d1)
    channel[THIRD] = u - 3.0 * lag + e * (d3 + t * d2 + 0.5 * t * t * d1)
    channel[INPUT] = u


@njit
def _start(channels: Array, inputs: Array, settle: float) -> None:
    """Lets the channels stand at their inputs."""
    for k in range(len(channels)):
        known = math.isfinite(inputs[k])
        channels[k, :SETTLING] = inputs[k] if known else 0.0
        channels[k, SETTLING] = settle


@njit
def _value(channel: Array) -> float:
    return float(channel[THIRD])


@njit
def _rate(channel: Array, a: float) -> float:
    return float(a * (channel[SECOND] - channel[THIRD]))


@njit
def _rise(channel: Array, a: float) -> float:
    return float(a * a * (channel[FIRST] - 2.0 * channel[SECOND] + channel[THIRD]))


@njit
def _settled(channels: Array, first: int, last: int) -> bool:
    for k in range(first, last):  # noqa: SIM110 (numba compiles no generators)
        if channels[k, SETTLING] > 0.0:
            return False
    return True


# --- motion -----------------------------------------------------------------------------------
@njit
def _read(channels: Array, a: float, n: int, motion: Array, root: Array) -> None:
    """Filtered q, qd, qdd, tau as rows of motion (4, n); w, dw, a, up as rows of root (4, 3)."""
    for i in range(n):
        motion[0, i] = _value(channels[i])
        motion[1, i] = _rate(channels[i], a)
        motion[2, i] = _rise(channels[i], a)
        motion[3, i] = _value(channels[n + i])
    length = 0.0
    for i in range(3):
        root[0, i] = _value(channels[2 * n + GYRO + i])
        root[1, i] = _rate(channels[2 * n + GYRO + i], a)
        root[2, i] = _value(channels[2 * n + ACCELEROMETER + i])
        root[3, i] = _value(channels[2 * n + UP + i])
        length += root[3, i] ** 2
    for i in range(3):
        root[3, i] /= math.sqrt(max(length, 1e-12))


@njit
def _move_to_root(root: Array, p_imu: Array) -> None:
    """Takes the lever arm of the accelerometer out: a -= dw x p + w x (w x p)."""
    slip = np.zeros(3)
    add_cross(root[0], p_imu, 1.0, slip)
    add_cross(root[1], p_imu, -1.0, root[2])
    add_cross(root[0], slip, -1.0, root[2])


@njit
def _contact_point(bodies: Array, leg: Indices, ball: Array, up: Array, point: Array) -> None:
    """Lowest point of a foot's ball: its center minus radius times up."""
    own = bodies[leg[2]]
    for i in range(3):
        row = ROTATION + 3 * i
        reach = own[row] * ball[0] + own[row + 1] * ball[1] + own[row + 2] * ball[2]
        point[i] = own[ORIGIN + i] + reach - ball[3] * up[i]


@njit
def _acceleration_from_feet(
    bodies: Array,
    legs: Indices,
    balls: Array,
    monitors: Array,
    settings: Array,
    up: Array,
    out: Array,
) -> bool:
    """Specific force of the root from the feet that stand still: g up - what the legs' motion adds.

    `bodies` is a pass with no acceleration of the root. A foot rolls on its ball without slip: the
    material point that touches the ground is accelerated towards the ball's center only.

    Returns:
        False while a foot is being set down or lifted: then only gravity counts.
    """
    count, settled = 0, True
    total, point, arm = np.zeros(3), np.empty(3), np.empty(3)
    slip, a, g = np.empty(3), np.empty(3), settings[GRAVITY]
    for leg in range(len(legs)):
        stands = monitors[STANDING + leg] >= settings[STAND_TIME]
        settled &= stands or monitors[SWINGING + leg] >= settings[SWING_TIME]
        if not stands:
            continue
        own = bodies[legs[leg, 2]]
        w = own[OMEGA : OMEGA + 3]
        _contact_point(bodies, legs[leg], balls[leg], up, point)
        for i in range(3):
            arm[i] = point[i] - own[ORIGIN + i]
            a[i] = own[ACCELERATION + i]
            slip[i] = 0.0
        add_cross(own[OMEGA_DOT : OMEGA_DOT + 3], arm, 1.0, a)
        add_cross(w, arm, 1.0, slip)
        add_cross(w, slip, 1.0, a)
        centripetal = (w[0] ** 2 + w[1] ** 2 + w[2] ** 2) * balls[leg, 3]
        for i in range(3):
            total[i] += (g + centripetal) * up[i] - a[i]
        count += 1
    for i in range(3):
        out[i] = total[i] / count if settled and count > 0 else g * up[i]
    return settled and count > 0


# --- rows -------------------------------------------------------------------------------------
@njit
def _inverse_transposed(J: Array, out: Array) -> float:
    """J^-T (3, 3); returns |det J| over the product of the lengths of its columns."""
    c = np.empty((3, 3))
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        for r in range(3):
            s, t = (r + 1) % 3, (r + 2) % 3
            c[r, i] = J[s, j] * J[t, k] - J[t, j] * J[s, k]  # cofactors
    det = J[0, 0] * c[0, 0] + J[1, 0] * c[1, 0] + J[2, 0] * c[2, 0]
    product = 1.0
    for i in range(3):
        product *= math.sqrt(J[0, i] ** 2 + J[1, i] ** 2 + J[2, i] ** 2)
    if det == 0.0 or product == 0.0:
        out[:] = 0.0
        return 0.0
    out[:] = c / det
    return abs(det) / product


@njit
def _trunk_columns(w: Array, dw: Array, a: Array, H: Array) -> None:
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
def _leg_rows(
    leg: int,
    index: Indices,
    ball: Array,
    bodies: Array,
    motion: Array,
    tau_id: Array,
    armature: Array,
    up: Array,
    known: bool,
    whiteness: float,
    x: Array,
    settings: Array,
    H: Array,
    residual: Array,
    noise: Array,
    joint_rows: Array,
    result: Array,
) -> bool:
    """Adds a leg to the base rows; returns whether its torques told anything.

    Fills joint_rows (3, 5): residual, friction's direction, torque of the leg's weight, deviation
    of the torque, size of what the model says of it; and result (LEG_COLUMNS,).
    """
    J, invT, p = np.empty((3, 3)), np.empty((3, 3)), np.empty(3)
    _contact_point(bodies, index, ball, up, p)
    column = np.empty(3)
    for j in range(3):
        own = bodies[index[j]]
        for i in range(3):
            column[i] = p[i] - own[ORIGIN + i]
            J[i, j] = 0.0
        axis = own[JOINT_AXIS : JOINT_AXIS + 3]
        J[0, j] = axis[1] * column[2] - axis[2] * column[1]
        J[1, j] = axis[2] * column[0] - axis[0] * column[2]
        J[2, j] = axis[0] * column[1] - axis[1] * column[0]
    useful = _inverse_transposed(J, invT) > settings[SINGULAR]
    A = np.zeros((6, 3))  # what a generalised force at each joint does to the base
    moment = np.empty(3)
    for j in range(3):
        moment[:] = 0.0
        add_cross(p, invT[:, j], 1.0, moment)
        for i in range(3):
            A[i, j], A[3 + i, j] = invT[i, j], moment[i]
    share = 1.0 + x[SCALE + leg]
    force, variance = np.zeros(3), np.zeros(3)
    for j in range(3):
        q = index[3 + j]
        state = 3 * leg + j
        tau, rate = motion[3, q], motion[1, q]
        direction = math.tanh(rate / settings[SLOW])
        sticking = settings[STICKING] * x[FRICTION + state] * (1.0 - abs(direction))
        rotor = armature[q] * motion[2, q]
        deviation = whiteness * (settings[TORQUE_FLOOR] + settings[TORQUE_SHARE] * abs(tau))
        deviation = math.hypot(deviation, sticking)  # a joint that stands may hold either way
        if not known:
            deviation = settings[WORTHLESS]
        joint_rows[j, 0] = ((1.0 - x[GAIN + state]) * tau - x[FRICTION + state] * direction) - (
            share * tau_id[q] + rotor
        )
        joint_rows[j, 1], joint_rows[j, 3] = direction, deviation
        joint_rows[j, 4] = abs(tau_id[q]) + abs(rotor)
        for i in range(3):
            force[i] -= invT[i, j] * joint_rows[j, 0]
            variance[i] += (invT[i, j] * deviation) ** 2
        for i in range(6):
            if useful:
                residual[i] -= A[i, j] * joint_rows[j, 0]
                H[i, GAIN + state] = -A[i, j] * tau
                H[i, FRICTION + state] = -A[i, j] * direction
            for k in range(6):
                if useful:
                    noise[i, k] += A[i, j] * A[k, j] * deviation**2
    if not useful:  # a straight leg: its force is not known at all
        for i in range(6):
            for k in range(6):
                for j in range(3):
                    unit_i = _wrench_of(i, j, p)
                    noise[i, k] += unit_i * _wrench_of(k, j, p) * settings[WORTHLESS] ** 2
    first = bodies[index[0]]  # what the leg itself takes
    own_force, own_moment = first[FORCE : FORCE + 3], np.empty(3)
    for i in range(3):
        own_moment[i] = first[TORQUE + i]
    add_cross(first[ORIGIN : ORIGIN + 3], own_force, 1.0, own_moment)
    for i in range(3):
        residual[i] -= share * own_force[i]
        residual[3 + i] -= share * own_moment[i]
    _weight_columns(leg, index, bodies, A, useful, H, joint_rows)
    for i in range(3):
        result[LEG_POINT + i] = p[i]
        result[LEG_FORCE + i] = force[i] if useful and known else math.nan
        result[LEG_DEVIATION + i] = math.sqrt(variance[i]) if useful and known else math.nan
    return useful and known


@njit
def _weight_columns(
    leg: int,
    index: Indices,
    bodies: Array,
    A: Array,
    useful: bool,
    H: Array,
    joint_rows: Array,
) -> None:
    """What the leg's weight does to the base by its joints: columns of the bias and of its mass.

    The leg's mass counts by its weight alone: what its inertia takes is as noisy as the second
    derivatives are, and would pull the mass towards zero.
    """
    a, first = bodies[0, ACCELERATION : ACCELERATION + 3], bodies[index[0]]
    column, h, moment = np.empty(3), np.empty(3), np.zeros(3)
    for i in range(3):
        h[i] = first[CARRIED + i] + first[CARRIED_MASS] * first[ORIGIN + i]
    add_cross(h, a, 1.0, moment)
    for i in range(3):
        H[i, SCALE + leg] += first[CARRIED_MASS] * a[i]
        H[3 + i, SCALE + leg] += moment[i]
    for j in range(3):
        own = bodies[index[j]]
        column[:] = 0.0
        add_cross(own[JOINT_AXIS : JOINT_AXIS + 3], own[CARRIED : CARRIED + 3], 1.0, column)
        weight = column[0] * a[0] + column[1] * a[1] + column[2] * a[2]
        joint_rows[j, 2] = weight
        for i in range(6):
            if useful:
                H[i, SCALE + leg] -= A[i, j] * weight
                for c in range(3):
                    H[i, BIAS + c] += A[i, j] * column[c]


@njit
def _wrench_of(i: int, j: int, p: Array) -> float:
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
def _bias_columns(bodies: Array, x: Array, H: Array) -> None:
    """What a bias of the specific force does to the base: -(total mass, total first moment x)."""
    mass = x[MASS] + bodies[0, CARRIED_MASS]
    h = np.empty(3)
    for i in range(3):
        h[i] = x[MOMENT + i] + bodies[0, CARRIED + i]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        H[i, BIAS + i] -= mass
        H[3 + i, BIAS + j] += h[k]
        H[3 + i, BIAS + k] -= h[j]


# --- Kalman -----------------------------------------------------------------------------------
@njit
def _whiten(noise: Array, H: Array, residual: Array) -> None:
    """Cholesky factor L of the noise, then L^-1 H and L^-1 residual, in place."""
    size = len(noise)
    for i in range(size):
        for j in range(i + 1):
            total = noise[i, j]
            for k in range(j):
                total -= noise[i, k] * noise[j, k]
            noise[i, j] = math.sqrt(max(total, 1e-12)) if i == j else total / noise[j, j]
    for i in range(size):
        for k in range(i):
            residual[i] -= noise[i, k] * residual[k]
            for c in range(H.shape[1]):
                H[i, c] -= noise[i, k] * H[k, c]
        residual[i] /= noise[i, i]
        for c in range(H.shape[1]):
            H[i, c] /= noise[i, i]


@njit
def _distance(H: Array, residual: Array, P: Array) -> float:
    """r^T (H P H^T + 1)^-1 r of whitened rows."""
    size = len(residual)
    HP = H @ P
    S = HP @ H.T
    for i in range(size):
        S[i, i] += 1.0
    solved = np.linalg.solve(S, residual)
    return float((solved * residual).sum())


@njit
def _take_in(
    h: Array, r: float, variance: float, held: Flags, x: Array, P: Array, Ph: Array
) -> None:
    """Scalar update by a row h with residual r; states that are held stay as they are.

    Schmidt's rule: the gain of a held state is zero, its uncertainty is accounted for.
    """
    size = len(x)
    S = variance
    for i in range(size):
        total = 0.0
        for c in range(size):
            total += P[i, c] * h[c]
        Ph[i] = total
    for i in range(size):
        S += h[i] * Ph[i]
    for i in range(size):
        if not held[i]:
            x[i] += Ph[i] * r / S
        for c in range(i + 1):
            if held[i] and held[c]:
                continue
            P[i, c] -= Ph[i] * Ph[c] / S
            P[c, i] = P[i, c]


@njit
def _take_in_all(
    H: Array, residual: Array, inflation: float, held: Flags, x: Array, P: Array
) -> None:
    """Takes whitened rows in one by one."""
    start = x.copy()
    Ph = np.empty(len(x))
    for i in range(len(residual)):
        r = residual[i]
        for c in range(len(x)):
            r -= H[i, c] * (x[c] - start[c])
        _take_in(H[i], r, inflation, held, x, P, Ph)


@njit
def _watch_for_payload(
    time: float,
    dt: float,
    H: Array,
    residual: Array,
    variance: Array,
    P: Array,
    opening: Array,
    settings: Array,
    monitors: Array,
) -> bool:
    """Low-passes the innovations of Fz, Mx, My; far off, opens the trunk's parameters.

    Returns:
        Whether they were opened.
    """
    share = min(dt / settings[CHANGE_TIME], 1.0)
    # Where the feet tell the acceleration, impacts make innovations that are large, but short.
    most = 2.0 * settings[CHANGE_LEVEL] if monitors[WITHOUT_ACCELEROMETER] > 0.0 else math.inf
    far = 0.0
    for k in range(3):
        S = variance[k]
        for i in range(STATES):
            total = 0.0
            for c in range(STATES):
                total += P[i, c] * H[k, c]
            S += H[k, i] * total
        level = residual[k] / math.sqrt(S)
        level = max(min(level, most), -most)
        monitors[CHANGE + k] += share * (level - monitors[CHANGE + k])
        far = max(far, abs(monitors[CHANGE + k]))
    early = monitors[UPDATES] * settings[PERIOD] < settings[CHANGE_START]
    early |= monitors[LEFT_OUT] > 0.0  # what does not fit at all is no payload
    if early or far < settings[CHANGE_LEVEL] or time < monitors[FROZEN_UNTIL]:
        return False
    for i in range(GAIN):
        P[i, i] += opening[i]
    monitors[CHANGE : CHANGE + 3] = 0.0
    monitors[CHANGED_AT] = time
    monitors[FROZEN_UNTIL] = time + settings[FREEZE_TIME]
    return True


@njit
def _leave_out(dt: float, settings: Array, monitors: Array) -> int:
    """Counts an update that does not fit at all; MISFIT, or LOST where there are too many."""
    share = min(dt / settings[INFORMATION_TIME], 1.0)
    monitors[INNOVATION] += share * (settings[GROSS] / 6.0 - monitors[INNOVATION])
    monitors[LEFT_OUT] += dt
    return LOST if monitors[LEFT_OUT] > settings[LOST_TIME] else MISFIT


@njit
def _swing_rows(
    leg: int,
    rows: Array,
    motion: Array,
    index: Indices,
    held: Flags,
    settings: Array,
    x: Array,
    P: Array,
) -> None:
    """A leg without contact: its torques are its inverse dynamics.

    They tell of friction and of the leg's mass, but not of the torques' gains: what moves in the
    air is small, and the reflected inertia of the drives is not known that well.
    """
    H, residual = np.zeros((3, STATES)), np.empty(3)
    holds = held.copy()
    holds[GAIN:FRICTION] = True
    for j in range(3):
        state = 3 * leg + j
        deviation = math.hypot(rows[j, 3], settings[SWING_SHARE] * rows[j, 4])
        residual[j] = rows[j, 0] / deviation
        H[j, GAIN + state] = motion[3, index[3 + j]] / deviation
        H[j, FRICTION + state] = rows[j, 1] / deviation
        H[j, SCALE + leg] = rows[j, 2] / deviation
    inflation = max(_distance(H, residual, P) / settings[GATE], 1.0)
    _take_in_all(H, residual, inflation, holds, x, P)


@njit
def _note_contacts(result: Array, monitors: Array, dt: float, settings: Array) -> None:
    """Counts for how long each leg has carried nothing, or the robot; unknown counts as neither."""
    for leg in range(len(result)):
        force = 0.0
        for i in range(3):
            force += result[leg, LEG_FORCE + i] ** 2
        force = math.sqrt(force)
        swings, stands = force < settings[SWING_FORCE], force > settings[STAND_FORCE]
        monitors[SWINGING + leg] = monitors[SWINGING + leg] + dt if swings else 0.0
        monitors[STANDING + leg] = monitors[STANDING + leg] + dt if stands else 0.0
        result[leg, LEG_SWINGS] = 1.0 if monitors[SWINGING + leg] >= settings[SWING_TIME] else 0.0


@njit
def base_rows(
    motion: Array,
    root: Array,
    known: Flags,
    whiteness: float,
    settings: Array,
    robot: Array,
    armature: Array,
    legs: Indices,
    balls: Array,
    x: Array,
    bodies: Array,
    H: Array,
    residual: Array,
    noise: Array,
    joint_rows: Array,
    result: Array,
) -> None:
    """The six base rows, linearised about x: residual = H (truth - x) + noise.

    Args:
        motion: (4, n) q, qd, qdd, tau.
        root: (4, 3) angular velocity, its derivative, specific force of the root's origin, up.
        known: (4,) whether each leg's torques are; False where they turn out to tell nothing.
        whiteness: Deviation of a period's mean over that of a sample.
        settings: See step; likewise robot, armature, legs, balls, x, result.
        robot: See step.
        armature: See step.
        legs: See step.
        balls: See step.
        x: See step.
        bodies: (B, PASS_COLUMNS) for the dynamics to work in; holds their pass afterwards.
        H: (6, STATES) result.
        residual: (6,) result.
        noise: (6, 6) result, its covariance.
        joint_rows: (4, 3, 5) result, see _leg_rows.
        result: (4, LEG_COLUMNS) result.
    """
    a, tau_id = np.empty(3), np.empty(len(armature))
    for i in range(3):
        a[i] = root[2, i] - x[BIAS + i]
    newton_euler(robot, motion[0], motion[1], motion[2], root[0], root[1], a, bodies, tau_id)
    H[:], residual[:], noise[:] = 0.0, 0.0, 0.0
    _trunk_columns(root[0], root[1], a, H)
    for i in range(6):
        noise[i, i] = (whiteness * settings[FORCE_NOISE if i < 3 else MOMENT_NOISE]) ** 2
        for c in range(BIAS):
            residual[i] -= H[i, c] * x[c]
    for leg in range(len(legs)):
        known[leg] = _leg_rows(
            leg,
            legs[leg],
            balls[leg],
            bodies,
            motion,
            tau_id,
            armature,
            root[3],
            known[leg],
            whiteness,
            x,
            settings,
            H,
            residual,
            noise,
            joint_rows[leg],
            result[leg],
        )
    _bias_columns(bodies, x, H)


@njit
def _hold_unexcited(
    H: Array,
    noise: Array,
    variances: Array,
    share: float,
    level: float,
    excitation: Array,
    held: Flags,
) -> None:
    """Holds those of m c and I whose regressors are not well above their noise.

    A regressor that is nothing but noise tells nothing, yet least squares takes it for a message
    and pulls what it multiplies towards zero (errors in variables): m c_z multiplies the specific
    force along x and y, which is noise while the trunk does not tilt.

    Args:
        H: (6, STATES) whitened rows.
        noise: (6, 6) the factor L that whitened them.
        variances: (2,) of specific force and angular acceleration after the filter.
        share: Of this update in the averages.
        level: By how much a regressor's square must exceed that of its noise.
        excitation: (2, BIAS) averages: the columns' squares, and those of their noise.
        held: (STATES,) result.
    """
    N, unit, zero = np.empty((6, BIAS)), np.zeros(3), np.zeros(3)
    square, noise_square = np.zeros(BIAS), np.zeros(BIAS)
    for c in range(BIAS):
        for i in range(6):
            square[c] += H[i, c] ** 2
    for source in range(6):
        unit[:] = 0.0
        unit[source % 3] = 1.0
        N[:] = 0.0
        if source < 3:
            _trunk_columns(zero, zero, unit, N)
        else:
            _trunk_columns(zero, unit, zero, N)
        for c in range(MOMENT, BIAS):
            for i in range(6):
                for k in range(i):
                    N[i, c] -= noise[i, k] * N[k, c]
                N[i, c] /= noise[i, i]
                noise_square[c] += variances[source // 3] * N[i, c] ** 2
    for c in range(MOMENT, BIAS):
        excitation[0, c] += share * (square[c] - excitation[0, c])
        excitation[1, c] += share * (noise_square[c] - excitation[1, c])
        held[c] |= excitation[0, c] < level * excitation[1, c]


@compiled()
def step(
    time: float,
    inputs: Array,
    channels: Array,
    monitors: Array,
    settings: Array,
    robot: Array,
    armature: Array,
    legs: Indices,
    balls: Array,
    p_imu: Array,
    drift: Array,
    opening: Array,
    x: Array,
    P: Array,
    information: Array,
    excitation: Array,
    result: Array,
) -> int:
    """Feeds a sample; when an update is due, makes it.

    Args:
        time: s.
        inputs: (2 n + TAIL,) q, tau, then in the root's axes angular velocity, specific force at
            the IMU, up; NaN where not known.
        channels: (2 n + TAIL, CHANNEL) memory of the filter.
        monitors: (MONITORS,) clock and monitors; LAST_SAMPLE is NaN at the start.
        settings: (SETTINGS,).
        robot: Packed, without the root's masses.
        armature: (n,) kg m^2.
        legs: (4, 6) bodies of each leg's joints from the hip on, then their indices in q.
        balls: (4, 4) center of the ball in the last body's frame, radius, m.
        p_imu: (3,) m, in the root's frame.
        drift: (STATES,) variance per second of each state's random walk.
        opening: (GAIN,) variance added when the payload changes.
        x: (STATES,) estimate.
        P: (STATES, STATES) its covariance.
        information: (4, 4) what a second of recent data tells of m, m c, the other states known.
        excitation: (2, BIAS) how large the trunk's regressors have been, and their noise.
        result: (4, LEG_COLUMNS) forces of the ground, root's axes.

    Returns:
        FED, UPDATED, or why an update was not made.
    """
    n = len(armature)
    gap = time - monitors[LAST_SAMPLE]
    monitors[LAST_SAMPLE] = time
    settle = settings[SETTLE] / settings[BANDWIDTH]
    if not 0.0 < gap <= settings[LONGEST_GAP]:
        _start(channels, inputs, settle)
        monitors[LAST_UPDATE] = time
        monitors[SWINGING : SWINGING + 4] = 0.0
        monitors[STANDING : STANDING + 4] = 0.0
        return GAP
    for k in range(len(channels)):
        _feed(channels[k], inputs[k], gap, settings[BANDWIDTH], settle)
    dt = time - monitors[LAST_UPDATE]
    if dt < settings[PERIOD] - 0.5 * gap:
        return FED
    monitors[LAST_UPDATE] = time
    motion, root = np.empty((4, n)), np.empty((4, 3))
    bodies = np.empty((len(robot), PASS_COLUMNS))
    code = _motion(channels, monitors, settings, robot, legs, balls, p_imu, motion, root, bodies)
    if code not in (UPDATED, NO_CONTACT):
        return code
    for i in range(STATES):
        P[i, i] += drift[i] * dt
    # White noise, averaged over a period, whatever the filter makes of it in between.
    whiteness = math.sqrt(min(gap / dt, 1.0))
    H, residual, noise = np.empty((6, STATES)), np.empty(6), np.empty((6, 6))
    joint_rows, known = np.empty((len(legs), 3, 5)), np.empty(len(legs), dtype=np.bool_)
    for leg in range(len(legs)):
        known[leg] = True
        for j in range(3):
            known[leg] &= channels[n + legs[leg, 3 + j], SETTLING] == 0.0
    base_rows(
        motion,
        root,
        known,
        whiteness,
        settings,
        robot,
        armature,
        legs,
        balls,
        x,
        bodies,
        H,
        residual,
        noise,
        joint_rows,
        result,
    )
    _note_contacts(result, monitors, dt, settings)
    if code != UPDATED:
        return code
    without = monitors[WITHOUT_ACCELEROMETER] > 0.0
    if without:
        force = (x[MASS] + bodies[0, CARRIED_MASS]) * settings[FEET_NOISE]
        reach = settings[MOMENT_NOISE] / settings[FORCE_NOISE]
        for i in range(6):
            noise[i, i] += (force if i < 3 else force * reach) ** 2
    plain = H[2:5].copy(), residual[2:5].copy(), np.diag(noise)[2:5].copy()
    _whiten(noise, H, residual)
    distance = _distance(H, residual, P)
    if distance > settings[GROSS]:
        return _leave_out(dt, settings, monitors)
    if _watch_for_payload(time, dt, plain[0], plain[1], plain[2], P, opening, settings, monitors):
        distance = _distance(H, residual, P)
    inflation = max(distance / settings[GATE], 1.0)
    if without and inflation > 1.0:
        return IMPACT  # the feet do not tell how the trunk is accelerated then
    share = min(dt / settings[INFORMATION_TIME], 1.0)
    monitors[INNOVATION] += share * (distance / 6.0 - monitors[INNOVATION])
    _count_information(H, share, inflation * dt, information)
    held = np.zeros(STATES, dtype=np.bool_)
    if time < monitors[FROZEN_UNTIL]:
        held[GAIN:SCALE] = True
    variances, window = _filtered_variances(settings, gap), min(dt / settings[EXCITED_TIME], 1.0)
    bias = (P[BIAS, BIAS] + P[BIAS + 1, BIAS + 1]) / 2.0
    variances[0] += bias
    if without:
        variances[0] += settings[FEET_NOISE] ** 2
    _hold_unexcited(H, noise, variances, window, settings[EXCITED], excitation, held)
    quiet = held[INERTIA] and held[INERTIA + 1]
    monitors[QUIET] = monitors[QUIET] + dt if quiet else 0.0
    if monitors[QUIET] > settings[QUIET_TIME]:  # what stands still tells no sensor from another
        held[BIAS:] = True
    _take_in_all(H, residual, inflation, held, x, P)
    for leg in range(len(legs)):
        if known[leg] and result[leg, LEG_SWINGS] > 0.0:
            _swing_rows(leg, joint_rows[leg], motion, legs[leg], held, settings, x, P)
    monitors[UPDATES] += 1.0
    monitors[LEFT_OUT] = max(monitors[LEFT_OUT] - dt, 0.0)
    return UPDATED


@njit
def _motion(
    channels: Array,
    monitors: Array,
    settings: Array,
    robot: Array,
    legs: Indices,
    balls: Array,
    p_imu: Array,
    motion: Array,
    root: Array,
    bodies: Array,
) -> int:
    """Reads the filters into motion and root; says why that cannot be, else UPDATED."""
    n = motion.shape[1]
    if not (_settled(channels, 0, n) and _settled(channels, 2 * n, 2 * n + ACCELEROMETER)):
        return NO_MOTION
    _read(channels, settings[BANDWIDTH], n, motion, root)
    with_attitude = _settled(channels, 2 * n + UP, 2 * n + TAIL)
    if _settled(channels, 2 * n + ACCELEROMETER, 2 * n + UP):
        _move_to_root(root, p_imu)
        if not with_attitude:  # only the side on which a small ball touches the ground
            root[3] = root[2] / math.sqrt((root[2] ** 2).sum() + 1e-12)
        monitors[WITHOUT_ACCELEROMETER] = 0.0
        return UPDATED
    if not with_attitude:
        return NO_ATTITUDE
    monitors[WITHOUT_ACCELEROMETER] = 1.0
    still, tau_id = np.zeros(3), np.empty(n)
    newton_euler(robot, motion[0], motion[1], motion[2], root[0], root[1], still, bodies, tau_id)
    if not _acceleration_from_feet(bodies, legs, balls, monitors, settings, root[3], root[2]):
        return NO_CONTACT
    return UPDATED


@njit
def _filtered_variances(settings: Array, gap: float) -> Array:
    """Variances of specific force and angular acceleration after the filter, (2,).

    White noise of density s^2 T passes (a / (s + a))^3 with 3 a / 16, its derivative with a^3 / 16.
    """
    a, result = settings[BANDWIDTH], np.empty(2)
    result[0] = settings[ACCELEROMETER_NOISE] ** 2 * gap * 3.0 * a / 16.0
    result[1] = settings[GYRO_NOISE] ** 2 * gap * a**3 / 16.0
    return result


@njit
def _count_information(H: Array, share: float, weight: float, information: Array) -> None:
    """Averages what whitened rows tell of m, m c in a second."""
    for i in range(4):
        for c in range(4):
            total = 0.0
            for row in range(6):
                total += H[row, i] * H[row, c]
            information[i, c] += share * (total / weight - information[i, c])
