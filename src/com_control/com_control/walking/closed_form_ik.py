"""Inverse kinematics of the CoM for legs of the usual build; see com_control.walking.com_ik.

The usual build: three axes through the hip, each perpendicular to the next; knee and ankle pitch
parallel; roll perpendicular to the pitch, both through the ankle; the ankle in the plane of the
hip.
"""

from typing import Any

import numpy as np

from com_control.walking import pelvis_search as kernels
from com_control.walking.biped import Biped, BipedLeg, meeting_point
from com_control.walking.newton_ik import Found, NewtonSolver, Solver
from com_control.walking.pelvis_map import LIMITED, ROBOT, STRETCHED
from com_model.arrays import Array
from com_model.compiled import entry_point
from com_model.sesc.sesc import Sesc

_LIMIT = 1e-9  # rad, over a limit, that is within it
_EXACT = 1e-9  # m, or cosine, by which a leg may miss the pattern
_MARGIN = 1e-3  # fraction of the way from the middle to the nearest point that is left


class ClosedFormSolver(Solver):
    """Finds the pelvis with the closed-form map from pelvis to CoM.

    Args:
        biped: whose legs fit the closed form, see fits().
    """

    solve_one, solve_path = (
        staticmethod(kernels.solve_one),
        staticmethod(kernels.solve_path),
    )

    def __init__(self, biped: Biped) -> None:
        robot = np.zeros(1, ROBOT)
        super().__init__(biped, robot)
        zero = [
            _pack_leg(leg, biped.model.mass, packed)
            for leg, packed in zip(biped.legs, robot["legs"][0], strict=True)
        ]
        robot["zero"] = np.concatenate(zero)
        masses = sum(leg.masses.sum() for leg in biped.legs)
        robot["upper_fraction"] = 1.0 - masses / biped.model.mass
        R, p = biped.root_in_pelvis()
        robot["offset"] = p + R @ Sesc(biped.model).com(biped.posture)
        robot["lower"], robot["upper"] = self._lower - _LIMIT, self._upper + _LIMIT
        robot["nominal"] = self._nominal
        point = np.empty(3), np.empty((3, 3)), np.empty((2, 3, 4))
        self._place = entry_point(
            kernels.place_pelvis, *point, robot, np.empty(3), np.empty(12)
        )
        self._solve = entry_point(kernels.solve_one, *point, robot, 0.0, np.empty(16))

    def restart(self, pelvis: Array | None) -> None:
        """Forgets the last point; see Solver.

        Args:
            pelvis: (3,) m, where the next search starts; None: by the nominal posture.
        """
        self.robot["known"] = self.robot["solved"] = 0
        self.robot["warm"] = pelvis is not None
        if pelvis is not None:
            self.robot["pelvis"][0, 0] = pelvis

    def search(self, com: Array, feet: Array, R: Array, tolerance: float) -> Found:
        """Solves a point without an initial guess; see Solver.

        Args:
            com: (3,) m, target in the world.
            feet: (2, 3, 4) poses of the soles in the world.
            R: (3, 3) orientation of the pelvis.
            tolerance: m, of the CoM.

        Returns:
            The solution, or the reason and the nearest CoM.
        """
        self.restart(None)
        values = np.empty(16)
        outcome = self._solve(com, R, feet, self.robot, tolerance, values)
        legs, pelvis = values[:12], values[12:15]
        if outcome == 0:
            return Found(legs, pelvis, "", com)
        self.restart(None)
        nearest = self._nearest(com, feet, R)
        reason = f"the CoM comes no nearer than {values[15]:.3g} m"
        return Found(legs, pelvis, self._reason(legs, outcome) or reason, nearest)

    def place(self, pelvis: Array, feet: Array, R: Array) -> tuple[Array, Array, int]:
        """The map from the pelvis' position to CoM and legs.

        Args:
            pelvis: (3,) m in the world.
            feet: (2, 3, 4) poses of the soles in the world.
            R: (3, 3) orientation of the pelvis.

        Returns:
            CoM (3,) m, legs (12,) rad, and the outcome; see com_ik.ComPoint.
        """
        com, q = np.empty(3), np.empty(12)
        return com, q, self._place(pelvis, R, feet, self.robot, com, q)

    def _nearest(self, target: Array, feet: Array, R: Array) -> Array:
        """The CoM nearest to the target within reach and limits; NaN where none is found."""
        newton = NewtonSolver(self._biped)
        newton.robot["upper_moment"] = self.robot["upper_moment"]
        pelvis = newton.find_nearest(target, feet, R)[:3]
        com, _, outcome = self.place(self._pulled_in(pelvis, feet, R), feet, R)
        return com if outcome == 0 else np.full(3, np.nan)

    def _pulled_in(self, pelvis: Array, feet: Array, R: Array) -> Array:
        """Moves a pelvis position slightly outside limits or reach back towards the middle."""
        middle, inside, outside = self._middle(feet, R), 0.0, 1.0
        for _ in range(40):
            fraction = 0.5 * (inside + outside)
            fine = self.place(middle + fraction * (pelvis - middle), feet, R)[2] == 0
            inside, outside = (fraction, outside) if fine else (inside, fraction)
        return middle + (1.0 - _MARGIN) * inside * (pelvis - middle)

    def _middle(self, feet: Array, R: Array) -> Array:
        """Pelvis position over the middle of the ankles, with the legs well bent."""
        places = []
        for leg, foot in zip(self.robot["legs"][0], feet, strict=True):
            ankle = foot[:, :3] @ leg["ankle"] + foot[:, 3]
            up = np.array([0.0, 0.0, 0.85 * (leg["l1"] + leg["l2"])])
            places.append(ankle + up - R @ leg["hip"])
        return np.mean(places, axis=0)

    def _reason(self, legs: Array, outcome: int) -> str:
        problems = []
        for i, (leg, own) in enumerate(
            zip(self._biped.legs, (legs[:6], legs[6:]), strict=True)
        ):
            bits = outcome >> (4 * i)
            if bits & STRETCHED:
                problems.append(f"the {leg.side} leg is too short")
            elif bits & LIMITED:
                problems.append(leg.limit_problem(own))
        return "; ".join(problems)


def fits(leg: BipedLeg) -> bool:
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
    return free and bool(max(hip_gap, ankle_gap, square, parallel, aside) <= _EXACT)


def _pack_leg(leg: BipedLeg, mass: float, out: Any) -> Array:
    """Fills a record of pelvis_map.LEG; returns the closed form's angles (6,) at zero, rad."""
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
