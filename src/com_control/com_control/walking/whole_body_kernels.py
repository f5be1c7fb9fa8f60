"""What numba compiles for bipeds whose legs have no closed form: Newton's steps on all of it.

Unknown are the pelvis' position t and the twelve joints of the legs; given are both soles' poses
and the CoM: fifteen equations. In the pelvis' axes, with J_i the Jacobian of sole i, K_i that of
the CoM by its leg's joints, e_i the error of the sole's pose and c that of the CoM:

  dq_i = J_i^-1 (e_i - [dt; 0])
  (1 - sum of K_i J_i^-1 [1; 0]) dt = c - sum of K_i J_i^-1 e_i

so that two systems of six and one of three are solved, not one of fifteen.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_control.walking import leg_kernels
from com_control.walking.com_kernels import CONVERGED, LIMITED, STALLED
from com_control.walking.leg_kernels import (
    fill_jacobian,
    pose_error,
    row,
    times,
)
from com_model.compiled import compiled
from com_model.geometry.vector_kernels import add, cross, dot, sub

Array = NDArray[np.float64]

# Rows that a leg has after those of leg_kernels.
MOMENTS = leg_kernels.LEG_ROWS  # six rows: first moments at the zero pose over the robot's mass, m
SHARES = MOMENTS + 6  # two rows: six masses over the robot's
ROWS = SHARES + 2

STEPS = 60
_LONGEST = 0.4  # rad or m, longest step
_JUMP = 0.05  # rad or m, between two points of a path that is not smooth
_LEAST = 1e-300  # least pivot, so that a singular leg makes a step that is too long, not NaN


@njit
def forward_masses(
    leg: Array, q: Array, R: Array, p: Array, lines: Array, columns: Array
) -> tuple[float, float, float]:
    """As leg_kernels.forward; sets columns (3, 6), too, and gives the leg's moment, m.

    columns are the derivatives of the CoM by the joints.
    """
    M, t = np.eye(3), (0.0, 0.0, 0.0)
    for i in range(6):
        t = leg_kernels.pass_joint(leg, i, q[i], M, t, lines)
        mass = leg[SHARES + i // 3, i % 3]
        own = add(times(M, row(leg, MOMENTS + i)), (mass * t[0], mass * t[1], mass * t[2]))
        columns[0, i], columns[1, i], columns[2, i] = own
    leg_kernels.set_sole(leg, M, t, R, p)
    moment, share = (0.0, 0.0, 0.0), 0.0
    for i in range(5, -1, -1):  # what joint i carries, from the foot upwards
        moment = add(moment, (columns[0, i], columns[1, i], columns[2, i]))
        share += leg[SHARES + i // 3, i % 3]
        axis, place = row(lines, i), row(lines, 6 + i)
        arm = (share * place[0], share * place[1], share * place[2])
        columns[0, i], columns[1, i], columns[2, i] = cross(axis, sub(moment, arm))
    return moment


@njit
def evaluate(
    target: Array,
    R: Array,
    feet: Array,
    legs: Array,
    upper: Array,
    t: Array,
    q: Array,
    J: Array,
    K: Array,
    errors: Array,
) -> float:
    """Sets Jacobians J (2, 6, 6), K (2, 3, 6) and errors (15,); gives the size of the errors."""
    sole_R, sole_p, lines = np.empty((3, 3)), np.empty(3), np.empty((12, 3))
    wanted_R, wanted_p = np.empty((3, 3)), np.empty(3)
    com = (upper[0, 0], upper[0, 1], upper[0, 2])
    total = 0.0
    for i in range(2):
        moment = forward_masses(legs[i], q[6 * i : 6 * i + 6], sole_R, sole_p, lines, K[i])
        com = add(com, moment)
        fill_jacobian(lines, sole_p, J[i])
        for k in range(3):
            wanted_p[k] = 0.0
            for j in range(3):
                wanted_p[k] += R[j, k] * (feet[i, j, 3] - t[j])
                wanted_R[k, j] = 0.0
                for m in range(3):
                    wanted_R[k, j] += R[m, k] * feet[i, m, j]
        size = pose_error(wanted_R, wanted_p, sole_R, sole_p, errors[6 * i : 6 * i + 6])
        total += size * size
    for k in range(3):
        errors[12 + k] = -com[k]
        for j in range(3):
            errors[12 + k] += R[j, k] * (target[j] - t[j])
        total += errors[12 + k] * errors[12 + k]
    return np.sqrt(total)


@njit
def solve_damped(J: Array, damping: float, X: Array) -> None:
    """Sets X (6, k) to (J^T J + damping 1)^-1 J^T X, by Cholesky's factors; J (6, 6)."""
    L, y = np.empty((6, 6)), np.empty(6)
    for i in range(6):
        for j in range(i + 1):
            total = damping if i == j else 0.0
            for k in range(6):
                total += J[k, i] * J[k, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = np.sqrt(max(total, _LEAST)) if i == j else total / L[j, j]
    for column in range(X.shape[1]):
        for i in range(6):
            y[i] = 0.0
            for k in range(6):
                y[i] += J[k, i] * X[k, column]
            for k in range(i):
                y[i] -= L[i, k] * y[k]
            y[i] /= L[i, i]
        for i in range(5, -1, -1):
            for k in range(i + 1, 6):
                y[i] -= L[k, i] * y[k]
            y[i] /= L[i, i]
            X[i, column] = y[i]


@njit
def solve_three(A: Array, c: Array, x: Array) -> None:
    """Sets x (3,) to A^-1 c by cross products; A (3, 3)."""
    a, b, d = (A[0, 0], A[1, 0], A[2, 0]), (A[0, 1], A[1, 1], A[2, 1]), (A[0, 2], A[1, 2], A[2, 2])
    v = (c[0], c[1], c[2])
    bd, da, ab = cross(b, d), cross(d, a), cross(a, b)
    volume = dot(a, bd) or _LEAST
    x[0], x[1], x[2] = dot(v, bd) / volume, dot(v, da) / volume, dot(v, ab) / volume


@njit
def newton(J: Array, K: Array, errors: Array, damping: float, step: Array) -> None:
    """Sets step (15,): the pelvis' in its own axes (m), then the joints' (rad)."""
    A, c, X = np.zeros((3, 3)), errors[12:].copy(), np.zeros((2, 6, 4))
    for i in range(2):
        X[i, :, 3] = errors[6 * i : 6 * i + 6]
        for k in range(3):
            X[i, k, k] = 1.0
        solve_damped(J[i], damping, X[i])
        for line in range(3):
            for k in range(6):
                for j in range(3):
                    A[line, j] -= K[i, line, k] * X[i, k, j]
                c[line] -= K[i, line, k] * X[i, k, 3]
    for k in range(3):
        A[k, k] += 1.0 + damping
    solve_three(A, c, step[:3])
    for i in range(2):
        for k in range(6):
            joint = X[i, k, 3]
            for j in range(3):
                joint -= X[i, k, j] * step[j]
            step[3 + 6 * i + k] = joint


@compiled()
def solve_whole(
    target: Array,
    R: Array,
    feet: Array,
    legs: Array,
    upper: Array,
    tolerance: float,
    state: Array,
) -> float:
    """Finds pelvis and legs by damped Newton steps.

    Args:
        target: (3,) m, the CoM in the world.
        R: (3, 3) orientation of the pelvis.
        feet: (2, 3, 4) poses of the soles.
        legs: (2, ROWS, 3).
        upper: (2, 3) moment (m) of the rest in the pelvis' frame, and its share of the mass.
        tolerance: m and rad, size of all errors together.
        state: (15,) first guess of the pelvis' position (m) and the joints (rad); overwritten.

    Returns:
        The size of the errors that remain.
    """
    J, K, errors = np.empty((2, 6, 6)), np.empty((2, 3, 6)), np.empty(15)
    J2, K2, errors2 = np.empty((2, 6, 6)), np.empty((2, 3, 6)), np.empty(15)
    step, trial = np.empty(15), np.empty(15)
    size = evaluate(target, R, feet, legs, upper, state[:3], state[3:], J, K, errors)
    damping = 1e-14
    for _ in range(STEPS):
        if not size > tolerance:
            break
        newton(J, K, errors, damping, step)
        longest = np.max(np.abs(step))
        if longest > _LONGEST:
            step *= _LONGEST / longest
        for k in range(3):
            trial[k] = state[k] + R[k, 0] * step[0] + R[k, 1] * step[1] + R[k, 2] * step[2]
        for k in range(3, 15):
            trial[k] = state[k] + step[k]
        new = evaluate(target, R, feet, legs, upper, trial[:3], trial[3:], J2, K2, errors2)
        if new < size:
            state[:], size = trial, new
            J[:], K[:], errors[:] = J2, K2, errors2
            damping = max(damping * 0.01, 1e-14)
        else:
            damping = max(damping * 100.0, 1e-10)
            if damping > 1e3:
                break
    return size


@njit
def foresee(state: Array) -> None:
    """Makes the last point of a state (30,) the one before it, and the next, on a line, the last.

    After a jump the last point is the best guess.
    """
    farthest = 0.0
    for k in range(15):
        farthest = max(farthest, abs(state[k] - state[15 + k]))
    share = 1.0 if farthest < _JUMP else 0.0
    for k in range(15):
        last = state[k]
        state[k] += share * (last - state[15 + k])
        state[15 + k] = last


@compiled()
def step_whole(
    target: Array,
    R: Array,
    feet: Array,
    legs: Array,
    upper: Array,
    limits: Array,
    tolerance: float,
    state: Array,
    values: Array,
) -> int:
    """Solves a point next to the last one; the first arguments are those of solve_whole.

    Args:
        target: See solve_whole, as the next four.
        R: See there.
        feet: See there.
        legs: See there.
        upper: See there.
        limits: (2, 12) rad, least and greatest angles that still count as within the limits.
        tolerance: See solve_whole.
        state: (30,) the last point and the one before it, from which a smooth path is foreseen;
            overwritten.
        values: (16,) q, pelvis and error; result.

    Returns:
        0: all is well; else bits as in com_kernels.
    """
    foresee(state)
    error = solve_whole(target, R, feet, legs, upper, tolerance, state[:15])
    outcome = CONVERGED if error <= tolerance else STALLED
    for i in range(12):
        values[i] = state[3 + i]
        if not limits[0, i] <= state[3 + i] <= limits[1, i]:
            outcome |= LIMITED << (4 * (i // 6))
    values[12], values[13], values[14], values[15] = state[0], state[1], state[2], error
    return outcome


@compiled()
def errors_whole(
    target: Array, R: Array, feet: Array, legs: Array, upper: Array, state: Array, errors: Array
) -> None:
    """Sets errors (15,) of a state (15,), in the pelvis' axes: soles' poses, then the CoM."""
    J, K = np.empty((2, 6, 6)), np.empty((2, 3, 6))
    evaluate(target, R, feet, legs, upper, state[:3], state[3:], J, K, errors)
