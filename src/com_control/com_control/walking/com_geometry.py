"""Packs a biped's legs for the map from the pelvis to the CoM (com_control.walking.com_kernels)."""

from __future__ import annotations

import numpy as np

from com_control.walking import com_kernels as kernels
from com_control.walking.biped import Biped, BipedLeg
from com_control.walking.exceptions import BipedError
from com_control.walking.leg_ik import meeting_point
from com_control.walking.upper_body import UpperBody
from com_model.arrays import Array

_LIMIT = 1e-9  # rad, over a limit that is still within
_EXACT = 1e-9  # m, or cosine, by which a leg may miss the pattern


def pack(biped: Biped, q: Array | None = None) -> Array:
    """Packs a robot for the kernels, (kernels.ROBOT_ROWS, 3).

    Args:
        biped: The robot.
        q: (n,) where its upper body is; default: its posture.

    Raises:
        BipedError: A leg does not fit: three axes through the hip, each square to the next; knee
            and ankle pitch parallel; roll square to the pitch, both through the ankle; the ankle in
            the plane of the hip.
    """
    robot = np.zeros((kernels.ROBOT_ROWS, 3))
    for i, leg in enumerate(biped.legs):
        robot[i * kernels.ROWS : (i + 1) * kernels.ROWS] = _pack(leg, biped.model.mass)
    posture = biped.posture if q is None else biped.model.check_q(q)
    robot[kernels.UPPER : kernels.JOINTS] = UpperBody(biped).packed(posture)
    robot[kernels.JOINTS : kernels.PELVIS] = _pack_joints(biped).reshape(16, 3)
    return robot


def _pack_joints(biped: Biped) -> Array:
    """Packs zeros, lower and upper limits and nominal posture of the twelve joints, (4, 12) rad."""
    zeros = np.zeros((2, 6))
    for side, leg in enumerate(biped.legs):
        w1, w2, w3 = leg.axes[:3]
        zeros[side, 1] = np.arctan2(w3 @ w1, w3 @ np.cross(w1, w2))
        n, _ = _normal(leg)
        hip, knee, ankle = _corners(leg)
        thigh, shank = _axes_from(knee - hip, n)[0][0], _axes_from(ankle - knee, n)[0][0]
        turn = np.sign(leg.axes[3] @ n)
        zeros[side, 3] = turn * np.arctan2(n @ np.cross(thigh, shank), thigh @ shank)
    lower = np.concatenate([leg.lower for leg in biped.legs])
    upper = np.concatenate([leg.upper for leg in biped.legs])
    nominal = np.concatenate([leg.nominal for leg in biped.legs])
    return np.ascontiguousarray([zeros.ravel(), lower - _LIMIT, upper + _LIMIT, nominal])


def fits(biped: Biped) -> bool:
    """Whether pack_legs takes the robot's legs."""
    return not any(_misfit(leg) for leg in biped.legs)


def _misfit(leg: BipedLeg) -> str:
    """Says why a leg does not fit; "" when it does."""
    w = leg.axes
    hip, hip_gap = meeting_point(leg.points[:3], w[:3])
    ankle, ankle_gap = meeting_point(leg.points[4:], w[4:])
    if hip_gap > _EXACT:
        return f"the axes of its hip miss each other by {1e3 * hip_gap:.3g} mm"
    if ankle_gap > _EXACT:
        return f"the axes of its ankle miss each other by {1e3 * ankle_gap:.3g} mm"
    names = leg.joint_names
    for a, b in ((0, 1), (1, 2), (4, 5)):
        if abs(w[a] @ w[b]) > _EXACT:
            return f"the axes of {names[a]} and {names[b]} are not square to each other"
    if np.linalg.norm(np.cross(w[3], w[4])) > _EXACT:
        return f"the axes of {names[3]} and {names[4]} are not parallel"
    aside = abs(float(w[3] @ (hip - ankle)))
    if aside > _EXACT:
        return f"its ankle is {1e3 * aside:.3g} mm beside its hip along the axis of {names[3]}"
    if np.linalg.norm(np.cross(w[0], w[2])) < 1e-3:
        return f"the axes of {names[0]} and {names[2]} are parallel at the zero pose"
    return ""


def _pack(leg: BipedLeg, mass: float) -> Array:
    problem = _misfit(leg)
    if problem:
        raise BipedError(f"the {leg.side} leg does not fit the closed form: {problem}")
    w1, w2, w3, w4, w5, w6 = leg.axes
    hip, knee, ankle = _corners(leg)
    n, sign_n = _normal(leg)
    thigh, l1 = _axes_from(knee - hip, n)
    shank, l2 = _axes_from(ankle - knee, n)
    zero_knee = float(np.arctan2(n @ np.cross(thigh[0], shank[0]), thigh[0] @ shank[0]))
    m, c = leg.masses, leg.moments
    out = np.zeros((kernels.ROWS, 3))
    turn_4, turn_5 = np.sign(w4 @ n), np.sign(w5 @ n)
    out[kernels.HIP], out[kernels.AXIS_1], out[kernels.AXIS_2] = hip, w1, w2
    out[kernels.ANKLE] = leg.R_sole.T @ (ankle - leg.p_sole)
    out[kernels.ROLL], out[kernels.PITCH] = leg.R_sole.T @ w6, leg.R_sole.T @ w5
    out[kernels.FOOT] = leg.R_sole.T @ (c[5] - m[5] * ankle) / mass
    out[kernels.FIRST] = _on(w1, w2, c[0] - m[0] * hip) / mass
    out[kernels.SECOND] = _on(w2, w3, c[1] - m[1] * hip) / mass
    out[kernels.THIGH] = thigh @ (c[2] - m[2] * hip + m[3] * (knee - hip)) / mass
    out[kernels.SHANK] = shank @ (c[3] - m[3] * knee) / mass
    out[kernels.COLLAR] = _on(n, w6, c[4] - m[4] * ankle) / mass
    out[kernels.AXIS_3], out[kernels.AXIS_2_THIGH] = thigh @ w3, thigh @ w2
    out[kernels.ROLL_SHANK] = shank @ w6
    out[kernels.LENGTHS] = l1, l2, m[:4].sum() / mass
    out[kernels.SIGNS] = sign_n, _knee_side(leg, zero_knee, turn_4), _second_side(w1, w2, w3)
    out[kernels.TURNS] = turn_4, turn_5, _any(out)
    out[kernels.SHARE, 0] = m[4:].sum() / mass
    return out


def _corners(leg: BipedLeg) -> tuple[Array, Array, Array]:
    """Hip, knee and ankle at the zero pose, m."""
    hip = meeting_point(leg.points[:3], leg.axes[:3])[0]
    return hip, leg.points[3], meeting_point(leg.points[4:], leg.axes[4:])[0]


def _normal(leg: BipedLeg) -> tuple[Array, float]:
    """Unit vector n of the leg's plane at the zero pose, along the knee's axis, and its sign."""
    hip, _, ankle = _corners(leg)
    across = np.cross(hip - ankle, leg.axes[5])
    sign = 1.0 if across @ leg.axes[3] > 0.0 else -1.0
    return sign * across / np.linalg.norm(across), sign


def _axes_from(v: Array, n: Array) -> tuple[Array, float]:
    """Axes (u, n, u x n) as rows, u along v across n; and the length of v across n, m."""
    across = v - n * (n @ v)
    length = float(np.linalg.norm(across))
    u = across / length
    return np.array([u, n, np.cross(u, n)]), length


def _on(a: Array, b: Array, v: Array) -> Array:
    """Components of v on (a, b, a x b)."""
    return np.array([a @ v, b @ v, np.cross(a, b) @ v])


def _knee_side(leg: BipedLeg, zero: float, turn: float) -> float:
    """Side to which the knee bends: the sign of beta is that of the angle from thigh to shank."""
    bend = zero + turn * leg.nominal[3]
    if abs(bend) < 1e-3:  # a straight leg in the nominal posture: the limits tell
        low, high = (zero + turn * value for value in (leg.lower[3], leg.upper[3]))
        bend = low + high if np.isfinite(low + high) and low + high else turn
    return 1.0 if bend > 0.0 else -1.0


def _second_side(w1: Array, w2: Array, w3: Array) -> float:
    return 1.0 if np.cross(w1, w3) @ w2 > 0.0 else -1.0


def _any(packed: Array) -> float:
    """1 where a body of the hip or the ankle has a moment."""
    rows = packed[[kernels.FIRST, kernels.SECOND, kernels.COLLAR]]
    return float(np.abs(rows).max() > 1e-15)
