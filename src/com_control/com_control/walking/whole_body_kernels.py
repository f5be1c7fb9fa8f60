"""What numba compiles for bipeds whose legs have no closed form: Newton's method on all of it.

Unknown are the pelvis' position t and the twelve joints of the legs; given are both soles' poses
and the CoM: fifteen equations. In the pelvis' axes, with J_i the Jacobian of sole i, K_i that of
the CoM by its leg's joints, e_i the error of the sole's pose and c that of the CoM:

  dq_i = J_i^-1 (e_i - [dt; 0])
  (1 - sum of K_i J_i^-1 [1; 0]) dt = c - sum of K_i J_i^-1 e_i

so that two systems of six and one of three are solved, not one of fifteen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_control.walking.kernel_basics import (
    column,
    multiply,
    row,
    rows,
    scale,
    vector,
)
from com_control.walking.leg_kernels import (
    LEG,
    LIMIT_TOLERANCE,
    fill_jacobian,
    pass_joint,
    pose_error,
    set_sole,
)
from com_control.walking.pelvis_map import CONVERGED, LIMITED, STALLED
from com_model.compiled import compiled
from com_model.geometry.vector_kernels import add, cross, dot, sub
from com_model.geometry.vectors import Vector

Array = NDArray[np.float64]
Record = Any
"""An element of an array of ROBOT or LEG."""

ROBOT = np.dtype(
    [
        ("legs", LEG, 2),  # left, right
        ("upper_moment", "f8", 3),  # of all but the legs in the pelvis' frame, over the mass, m
        ("state", "f8", (2, 15)),  # position of the pelvis (m) and joints (rad): next, last point
    ]
)
STEPS = 60
_LONGEST = 0.4  # rad or m, longest step
_JUMP = 0.05  # rad or m, between two points of a path that is not smooth
_LEAST = 1e-300  # least pivot, so that a singular leg makes a step that is too long, not NaN


class Target(NamedTuple):
    """CoM (3,) m, orientation of the pelvis (3, 3), poses of the soles (2, 3, 4)."""

    com: Array
    R_pelvis: Array
    feet: Array


class Linearization(NamedTuple):
    """Jacobians of the soles (2, 6, 6) and of the CoM (2, 3, 6), and all errors (15,)."""

    J: Array
    K: Array
    errors: Array


@njit
def make_linearization() -> Linearization:
    """Memory for one."""
    return Linearization(np.empty((2, 6, 6)), np.empty((2, 3, 6)), np.empty(15))


@njit
def find_masses(leg: Record, q: Array, R: Array, p: Array, lines: Array, columns: Array) -> Vector:
    """As leg_kernels.forward; sets columns (3, 6), too, and returns the leg's moment, m.

    columns are the derivatives of the CoM by the joints.
    """
    M, t = np.eye(3), (0.0, 0.0, 0.0)
    for i in range(6):
        t = pass_joint(leg, i, q[i], M, t, lines)
        own = add(multiply(rows(M), row(leg.moments, i)), scale(leg.masses[i], t))
        columns[0, i], columns[1, i], columns[2, i] = own
    set_sole(leg, M, t, R, p)
    moment, mass = (0.0, 0.0, 0.0), 0.0
    for i in range(5, -1, -1):  # what joint i carries, from the foot upwards
        moment, mass = add(moment, column(columns, i)), mass + leg.masses[i]
        arm = sub(moment, scale(mass, row(lines, 6 + i)))
        columns[0, i], columns[1, i], columns[2, i] = cross(row(lines, i), arm)
    return moment


@njit
def linearize(robot: Record, target: Target, state: Array, out: Linearization) -> float:
    """Fills `out` for a state (15,); returns the size of the errors."""
    sole_R, sole_p, lines = np.empty((3, 3)), np.empty(3), np.empty((12, 3))
    wanted_R, wanted_p = np.empty((3, 3)), np.empty(3)
    t, q, errors, R = state[:3], state[3:], out.errors, target.R_pelvis
    com = vector(robot.upper_moment)
    total = 0.0
    for i in range(2):
        own = q[6 * i : 6 * i + 6]
        com = add(com, find_masses(robot.legs[i], own, sole_R, sole_p, lines, out.K[i]))
        fill_jacobian(lines, sole_p, out.J[i])
        foot = target.feet[i]
        for k in range(3):
            axis = column(R, k)
            wanted_p[k] = dot(axis, sub(column(foot, 3), vector(t)))
            for m in range(3):
                wanted_R[k, m] = dot(axis, column(foot, m))
        size = pose_error(wanted_R, wanted_p, sole_R, sole_p, errors[6 * i : 6 * i + 6])
        total += size * size
    for k in range(3):
        errors[12 + k] = dot(column(R, k), sub(vector(target.com), vector(t))) - com[k]
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
    for j in range(X.shape[1]):
        for i in range(6):
            y[i] = 0.0
            for k in range(6):
                y[i] += J[k, i] * X[k, j]
            for k in range(i):
                y[i] -= L[i, k] * y[k]
            y[i] /= L[i, i]
        for i in range(5, -1, -1):
            for k in range(i + 1, 6):
                y[i] -= L[k, i] * y[k]
            y[i] /= L[i, i]
            X[i, j] = y[i]


@njit
def solve_three(A: Array, c: Array, x: Array) -> None:
    """Sets x (3,) to A^-1 c by cross products; A (3, 3)."""
    a, b, d, v = column(A, 0), column(A, 1), column(A, 2), vector(c)
    bd, da, ab = cross(b, d), cross(d, a), cross(a, b)
    volume = dot(a, bd) or _LEAST
    x[0], x[1], x[2] = dot(v, bd) / volume, dot(v, da) / volume, dot(v, ab) / volume


@njit
def find_step(linear: Linearization, damping: float, step: Array) -> None:
    """Sets step (15,): the pelvis' in its own axes (m), then the joints' (rad)."""
    J, K, errors = linear
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


@njit
def find_state(robot: Record, target: Target, tolerance: float, state: Array) -> float:
    """Finds pelvis and legs by damped Newton steps.

    Args:
        robot: Of ROBOT.
        target: CoM and feet.
        tolerance: m and rad, size of all errors together.
        state: (15,) first guess of the pelvis' position (m) and the joints (rad); overwritten.

    Returns:
        The size of the errors that remain.
    """
    now, new = make_linearization(), make_linearization()
    step, trial, R = np.empty(15), np.empty(15), rows(target.R_pelvis)
    size = linearize(robot, target, state, now)
    damping = 1e-14
    for _ in range(STEPS):
        if not size > tolerance:
            break
        find_step(now, damping, step)
        longest = np.max(np.abs(step))
        if longest > _LONGEST:
            step *= _LONGEST / longest
        step[0], step[1], step[2] = multiply(R, vector(step))
        for k in range(15):
            trial[k] = state[k] + step[k]
        new_size = linearize(robot, target, trial, new)
        if new_size < size:
            state[:], size = trial, new_size
            now, new = new, now
            damping = max(damping * 0.01, 1e-14)
        else:
            damping = max(damping * 100.0, 1e-10)
            if damping > 1e3:
                break
    return size


@compiled()
def solve_whole(
    com: Array, R: Array, feet: Array, robots: Array, tolerance: float, state: Array
) -> float:
    """As find_state, for robots (1,) of ROBOT."""
    return find_state(robots[0], Target(com, R, feet), tolerance, state)


@njit
def predict_state(states: Array) -> None:
    """Makes the first of states (2, 15) the second, and the next point, on a line, the first.

    After a jump the last point is the best guess.
    """
    farthest = 0.0
    for k in range(15):
        farthest = max(farthest, abs(states[0, k] - states[1, k]))
    smooth = 1.0 if farthest < _JUMP else 0.0
    for k in range(15):
        last = states[0, k]
        states[0, k] += smooth * (last - states[1, k])
        states[1, k] = last


@compiled()
def step_whole(
    com: Array, R: Array, feet: Array, robots: Array, tolerance: float, values: Array
) -> int:
    """Solves a point next to the last one.

    Args:
        com: (3,) m, the CoM in the world.
        R: (3, 3) orientation of the pelvis.
        feet: (2, 3, 4) poses of the soles.
        robots: (1,) of ROBOT; a smooth path is predicted from its state, which is overwritten.
        tolerance: m and rad, size of all errors together.
        values: (16,) q, pelvis and error; result.

    Returns:
        0: all is well; else bits as in pelvis_map.
    """
    robot = robots[0]
    predict_state(robot.state)
    state = robot.state[0]
    error = find_state(robot, Target(com, R, feet), tolerance, state)
    outcome = CONVERGED if error <= tolerance else STALLED
    for i in range(12):
        leg, q = robot.legs[i // 6], state[3 + i]
        values[i] = q
        low, high = leg.lower[i % 6] - LIMIT_TOLERANCE, leg.upper[i % 6] + LIMIT_TOLERANCE
        if not low <= q <= high:
            outcome |= LIMITED << (4 * (i // 6))
    values[12], values[13], values[14], values[15] = state[0], state[1], state[2], error
    return outcome


@compiled()
def find_errors(
    com: Array, R: Array, feet: Array, robots: Array, state: Array, errors: Array
) -> None:
    """Sets errors (15,) of a state (15,), in the pelvis' axes: soles' poses, then the CoM."""
    result = make_linearization()
    linearize(robots[0], Target(com, R, feet), state, result)
    errors[:] = result.errors
