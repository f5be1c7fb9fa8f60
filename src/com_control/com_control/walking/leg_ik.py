"""The kinematics of a leg of six joints: pose of its sole and Jacobian; compiled by numba.

At the zero pose of com_control.walking.biped, with E_i the rotation of joint i about its line, the
sole is at E_1 E_2 ... E_6 (sole at zero).
"""

from math import atan2, pi, sqrt
from typing import Any

import numpy as np
from numba import njit

from com_control.walking.biped import BipedLeg
from com_control.walking.kernel_basics import LEAST, column, scale, turn, vector
from com_model.arrays import Array
from com_model.compiled import compiled
from com_model.geometry.vector_kernels import Vector, add, cross, dot, row, sub, turned

Record = Any  # an element of an array of LEG

LEG = np.dtype(
    [
        ("axes", "f8", (6, 3)),  # of the joints
        ("points", "f8", (6, 3)),  # that they go through, m
        ("R_sole", "f8", (3, 3)),
        ("p_sole", "f8", 3),  # m
        ("lower", "f8", 6),  # limits, rad
        ("upper", "f8", 6),
        ("masses", "f8", 6),  # kg, of what each joint moves
        ("moments", "f8", (6, 3)),  # their first moments, kg m
    ]
)


def pack_leg(leg: BipedLeg) -> Any:
    """A leg as the kernels read it, (1,) of LEG."""
    packed = np.zeros(1, LEG)
    for name in LEG.names or ():
        packed[name] = getattr(leg, name)
    return packed


def sole_pose(leg: BipedLeg, q: Array) -> tuple[Array, Array]:
    """Pose of the sole in the pelvis' frame, (3, 3) and (3,) m, at joint angles (6,) rad."""
    R, p, lines = np.empty((3, 3)), np.empty(3), np.empty((12, 3))
    forward(pack_leg(leg)[0], q, R, p, lines)
    return R, p


@njit
def pass_joint(leg: Record, i: int, angle: float, M: Array, t: Vector, lines: Array) -> Vector:
    """Takes M (3, 3) and t (3,), the motion of what is before joint i, to that of what is after it.

    Sets the joint's line in lines (12, 3): axes, then points.
    """
    point = row(leg.points, i)
    place, line = add(turned(M, point), t), turned(M, row(leg.axes, i))
    for k in range(3):
        lines[i, k], lines[6 + i, k] = line[k], place[k]
    for j in range(3):
        M[0, j], M[1, j], M[2, j] = turn(line, angle, column(M, j))
    return sub(place, turned(M, point))


@njit
def set_sole(leg: Record, M: Array, t: Vector, R: Array, p: Array) -> None:
    """Sets the sole's pose R (3, 3), p (3,), moved from the zero pose by M, t."""
    for j in range(3):
        R[0, j], R[1, j], R[2, j] = turned(M, column(leg.R_sole, j))
    p[0], p[1], p[2] = add(turned(M, vector(leg.p_sole)), t)


@compiled()
def forward(leg: Record, q: Array, R: Array, p: Array, lines: Array) -> None:
    """Sets the sole's pose R (3, 3), p (3,) and the joints' lines (12, 3): axes, then points."""
    M, t = np.eye(3), (0.0, 0.0, 0.0)
    for i in range(6):
        t = pass_joint(leg, i, q[i], M, t, lines)
    set_sole(leg, M, t, R, p)


@njit
def pose_error(R: Array, p: Array, R_now: Array, p_now: Array, error: Array) -> float:
    """Sets error (6,), translation (m) and rotation (rad) to the wanted pose; returns its size."""
    error[:3] = p - p_now
    n, trace = (0.0, 0.0, 0.0), 0.0
    for j in range(3):
        a, b = column(R_now, j), column(R, j)
        n, trace = add(n, cross(a, b)), trace + dot(a, b)
    sine = 0.5 * sqrt(dot(n, n))
    cosine = 0.5 * (trace - 1.0)
    half = 0.5
    if sine > 1e-9:
        half = 0.5 * atan2(sine, cosine) / sine
    elif cosine <= 0.0:
        half, n = 1.0, (pi, 0.0, 0.0)
    error[3], error[4], error[5] = scale(half, n)
    return sqrt((error * error).sum())


@njit
def fill_jacobian(lines: Array, p: Array, J: Array) -> None:
    """Sets J (6, 6): the sole's linear and angular velocity by the joints' speeds."""
    for i in range(6):
        axis = row(lines, i)
        arm = sub(vector(p), row(lines, 6 + i))
        J[0, i], J[1, i], J[2, i] = cross(axis, arm)
        J[3, i], J[4, i], J[5, i] = axis


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
            L[i, j] = np.sqrt(max(total, LEAST)) if i == j else total / L[j, j]
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
