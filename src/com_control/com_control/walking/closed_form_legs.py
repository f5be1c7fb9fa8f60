"""Packs a biped's legs for the map from the pelvis to the CoM (com_control.walking.pelvis_map)."""

from __future__ import annotations

from typing import Any

import numpy as np

from com_control.exceptions import BipedError
from com_control.walking.biped import Biped, BipedLeg
from com_control.walking.leg_ik import meeting_point
from com_control.walking.pelvis_map import ROBOT
from com_control.walking.upper_body import UpperBody
from com_model.arrays import Array

_LIMIT = 1e-9  # rad, over a limit that is still within
_EXACT = 1e-9  # m, or cosine, by which a leg may miss the pattern


def pack(biped: Biped, q: Array | None = None) -> Any:
    """Packs a robot for the kernels, (1,) of pelvis_map.ROBOT.

    Args:
        biped: The robot.
        q: (n,) where its upper body is; default: its posture.

    Raises:
        BipedError: A leg does not fit: three axes through the hip, each square to the next; knee
            and ankle pitch parallel; roll square to the pitch, both through the ankle; the ankle in
            the plane of the hip.
    """
    robot = np.zeros(1, ROBOT)
    for i, leg in enumerate(biped.legs):
        _pack_leg(leg, biped.model.mass, robot["legs"][0, i])
    above = UpperBody(biped)
    posture = biped.posture if q is None else biped.model.check_q(q)
    above.update_moment(posture, robot["upper_moment"][0])
    robot["upper_fraction"] = above.fraction
    robot["zero"] = np.concatenate([_zero_angles(leg) for leg in biped.legs])
    robot["lower"] = np.concatenate([leg.lower for leg in biped.legs]) - _LIMIT
    robot["upper"] = np.concatenate([leg.upper for leg in biped.legs]) + _LIMIT
    robot["nominal"] = np.concatenate([leg.nominal for leg in biped.legs])
    return robot


def _zero_angles(leg: BipedLeg) -> Array:
    """What the closed form calls the angles (6,) at the zero pose, rad."""
    zero = np.zeros(6)
    w1, w2, w3 = leg.axes[:3]
    zero[1] = np.arctan2(w3 @ w1, w3 @ np.cross(w1, w2))
    n, _ = _normal(leg)
    zero[3] = np.sign(leg.axes[3] @ n) * _knee_at_zero(leg, n)
    return zero


def _knee_at_zero(leg: BipedLeg, n: Array) -> float:
    """Angle from thigh to shank about n at the zero pose, rad."""
    hip, knee, ankle = _corners(leg)
    thigh, shank = _axes_from(knee - hip, n)[0][0], _axes_from(ankle - knee, n)[0][0]
    return float(np.arctan2(n @ np.cross(thigh, shank), thigh @ shank))


def fits(biped: Biped) -> bool:
    """Whether pack takes the robot's legs."""
    return not any(_mismatch(leg) for leg in biped.legs)


def _mismatch(leg: BipedLeg) -> str:
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


def _pack_leg(leg: BipedLeg, mass: float, out: Any) -> None:
    """Fills a record of pelvis_map.LEG."""
    problem = _mismatch(leg)
    if problem:
        raise BipedError(f"the {leg.side} leg does not fit the closed form: {problem}")
    w1, w2, w3, w4, w5, w6 = leg.axes
    hip, knee, ankle = _corners(leg)
    n, sign_n = _normal(leg)
    thigh, l1 = _axes_from(knee - hip, n)
    shank, l2 = _axes_from(ankle - knee, n)
    direction_4 = np.sign(w4 @ n)
    m, c = leg.masses, leg.moments
    to_sole = leg.R_sole.T
    out["hip"], out["axis_1"], out["axis_2"] = hip, w1, w2
    out["ankle"] = to_sole @ (ankle - leg.p_sole)
    out["roll"], out["pitch"] = to_sole @ w6, to_sole @ w5
    out["foot"] = to_sole @ (c[5] - m[5] * ankle) / mass
    out["hip_first"] = _on(w1, w2, c[0] - m[0] * hip) / mass
    out["hip_second"] = _on(w2, w3, c[1] - m[1] * hip) / mass
    out["thigh"] = thigh @ (c[2] - m[2] * hip + m[3] * (knee - hip)) / mass
    out["shank"] = shank @ (c[3] - m[3] * knee) / mass
    out["ankle_body"] = _on(n, w6, c[4] - m[4] * ankle) / mass
    out["axis_3_thigh"], out["axis_2_thigh"] = thigh @ w3, thigh @ w2
    out["roll_shank"] = shank @ w6
    out["l1"], out["l2"] = l1, l2
    out["upper_fraction"], out["foot_fraction"] = m[:4].sum() / mass, m[4:].sum() / mass
    out["sign_n"], out["sign_a2"] = sign_n, 1.0 if np.cross(w1, w3) @ w2 > 0.0 else -1.0
    out["sign_beta"] = _knee_side(leg, _knee_at_zero(leg, n), direction_4)
    out["direction_4"], out["direction_5"] = direction_4, np.sign(w5 @ n)
    small = [np.abs(out[name]).max() for name in ("hip_first", "hip_second", "ankle_body")]
    out["small_bodies"] = float(max(small) > 1e-15)


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


def _knee_side(leg: BipedLeg, zero: float, direction: float) -> float:
    """Side to which the knee bends: the sign of beta is that of the angle from thigh to shank."""
    bend = zero + direction * leg.nominal[3]
    if abs(bend) < 1e-3:  # a straight leg in the nominal posture: the limits decide
        low, high = (zero + direction * value for value in (leg.lower[3], leg.upper[3]))
        bend = low + high if np.isfinite(low + high) and low + high else direction
    return 1.0 if bend > 0.0 else -1.0
