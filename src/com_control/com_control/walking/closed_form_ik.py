"""Legs that the closed form of com_control.walking.com_ik solves, and their record.

The usual build: three axes through the hip, each perpendicular to the next; knee and ankle pitch
parallel; roll perpendicular to the pitch, both through the ankle; the ankle in the plane of the
hip.
"""

from typing import Any

import numpy as np

from com_control.walking.biped import BipedLeg, meeting_point
from com_model.arrays import Array


def fits_closed_form(leg: BipedLeg) -> bool:
    """Whether the closed form can solve a leg.

    Args:
        leg: of the robot.
    """
    w = leg.axes
    hip, hip_gap = meeting_point(leg.points[:3], w[:3])
    ankle, ankle_gap = meeting_point(leg.points[4:], w[4:])
    square = max(abs(w[0] @ w[1]), abs(w[1] @ w[2]), abs(w[4] @ w[5]))
    parallel, aside = (
        np.linalg.norm(np.cross(w[3], w[4])),
        abs(float(w[3] @ (hip - ankle))),
    )
    free = float(np.linalg.norm(np.cross(w[0], w[2]))) >= 1e-3
    # m, or cosine, by which a leg may miss the pattern
    return free and bool(max(hip_gap, ankle_gap, square, parallel, aside) <= 1e-9)


def pack_leg(leg: BipedLeg, mass: float, out: Any) -> Array:
    """Fills the record of a leg.

    Args:
        leg: whose build fits_closed_form the closed form, see fits_closed_form().
        mass: kg, of the whole robot.
        out: element of an array of pelvis_map.LEG, which is filled.

    Returns:
        (6,) rad, the closed form's angles where the leg's joints are at 0.
    """
    w1, w2, w3, w4, w5, w6 = leg.axes
    hip, knee = meeting_point(leg.points[:3], leg.axes[:3])[0], leg.points[3]
    ankle = meeting_point(leg.points[4:], leg.axes[4:])[0]
    across = np.cross(
        hip - ankle, w6
    )  # n: of the leg's plane at the zero pose, along the knee
    sign_n = 1.0 if across @ w4 > 0.0 else -1.0
    n = sign_n * across / np.linalg.norm(across)
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
    knee_at_zero = float(
        np.arctan2(n @ np.cross(thigh[0], shank[0]), thigh[0] @ shank[0])
    )
    out["sign_beta"] = _knee_side(leg, knee_at_zero, direction_4)
    out["direction_4"], out["direction_5"] = direction_4, np.sign(w5 @ n)
    small = [
        np.abs(out[name]).max() for name in ("hip_first", "hip_second", "ankle_body")
    ]
    out["small_bodies"] = float(max(small) > 1e-15)
    second = np.arctan2(w3 @ w1, w3 @ np.cross(w1, w2))
    return np.array([0.0, second, 0.0, direction_4 * knee_at_zero, 0.0, 0.0])


def _axes_from(v: Array, n: Array) -> tuple[Array, float]:
    """Axes (u, n, u x n) as rows, u along v perpendicular to n; and the length of that part, m."""
    across = v - n * (n @ v)
    length = float(np.linalg.norm(across))
    u = across / length
    return np.array([u, n, np.cross(u, n)]), length


def _on(a: Array, b: Array, v: Array) -> Array:
    """Components of v on (a, b, a x b)."""
    return np.array([a @ v, b @ v, np.cross(a, b) @ v])


def _knee_side(leg: BipedLeg, zero: float, direction: float) -> float:
    """Side to which the knee bends, 1 or -1: the sign of beta.

    Beta has the sign of the angle from thigh to shank.
    """
    bend = zero + direction * leg.nominal[3]
    if abs(bend) < 1e-3:  # a straight leg in the nominal posture: the limits decide
        low, high = (zero + direction * value for value in (leg.lower[3], leg.upper[3]))
        bend = low + high if np.isfinite(low + high) and low + high else direction
    return 1.0 if bend > 0.0 else -1.0
