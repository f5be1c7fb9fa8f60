"""Inverse kinematics of a leg of six joints: joint angles for a pose of the sole.

Where the first three axes meet in one point (the hip) and the last two in another (the ankle), in
whatever order and at whatever angles, the solution is closed: the knee follows from the distance
of hip and ankle, the ankle from the direction to the hip in the foot, the hip from the rotation
that is left (docs/derivations.md). Other legs are solved by damped Newton steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_control.walking import leg_kernels as kernels
from com_control.walking.biped import BipedLeg
from com_control.walking.leg_kernels import LIMIT_TOLERANCE
from com_model.arrays import Array, as_array, as_rotation, freeze

_MEET = 1e-9  # m, distance of axes that count as meeting
_NEARLY = 0.02  # m, distance of axes that meet well enough for a first guess
_LEAST_ANGLE = 1e-3  # sine of the angle between axes that can be solved for
_SOLVED = 1e-9  # m and rad, error that counts as reached
_TRIES = 12  # starts of the numerical solution
_STEPS = 60


@dataclass(frozen=True, eq=False)
class LegPose:
    """Joint angles for a pose of the sole.

    Attributes:
        q: (6,) rad; NaN when the pose is out of reach.
        reached: The sole is where it is to be.
        within_limits: The joints' limits allow q.
        reason: Why it is not reached, or which limit forbids it; "" when all is well.
    """

    q: Array
    reached: bool
    within_limits: bool
    reason: str

    def __post_init__(self) -> None:
        freeze(self)


class LegIk:
    """Inverse kinematics of one leg, in the pelvis' frame.

    Args:
        leg: The leg.

    Attributes:
        closed: Solved in closed form; else by Newton steps.
        packed: (1,) of leg_kernels.LEG, what the kernels read.
    """

    def __init__(self, leg: BipedLeg) -> None:
        self.leg = leg
        hip, hip_gap = meeting_point(leg.points[:3], leg.axes[:3])
        ankle, ankle_gap = meeting_point(leg.points[4:], leg.axes[4:])
        pairs = ((0, 1), (1, 2), (4, 5))
        square = all(
            float(np.linalg.norm(np.cross(leg.axes[a], leg.axes[b]))) > _LEAST_ANGLE
            for a, b in pairs
        )
        levers = [np.cross(leg.axes[3], point - leg.points[3]) for point in (hip, ankle)]
        square = square and min(float(np.linalg.norm(lever)) for lever in levers) > 1e-6
        gap = max(hip_gap, ankle_gap)
        self.closed = square and gap < _MEET
        self._guess = square and gap < _NEARLY
        self.packed = np.zeros(1, kernels.LEG)
        for name in ("axes", "points", "R_sole", "p_sole", "lower", "upper"):
            self.packed[name] = getattr(leg, name)
        self.packed["hip"], self.packed["ankle"] = hip, ankle
        b, c = hip - leg.points[3], leg.points[3] - ankle
        along = float(leg.axes[3] @ (b + c))
        lengths = [float(np.linalg.norm(np.cross(leg.axes[3], v))) for v in (b, c)]
        self.reach = (
            float(np.hypot(lengths[0] - lengths[1], along)),
            float(np.hypot(lengths[0] + lengths[1], along)),
        )

    def pose(self, q: ArrayLike) -> tuple[Array, Array]:
        """Pose of the sole in the pelvis' frame, (3, 3) and (3,) m, at joint angles (6,) rad."""
        R, p, lines = np.empty((3, 3)), np.empty(3), np.empty((12, 3))
        kernels.place_sole(self.packed, _floats("q", q, (6,)), R, p, lines)
        return R, p

    def jacobian(self, q: ArrayLike) -> Array:
        """Linear and angular velocity of the sole by the joints' speeds, (6, 6), pelvis' axes."""
        R, p, lines = np.empty((3, 3)), np.empty(3), np.empty((12, 3))
        kernels.place_sole(self.packed, _floats("q", q, (6,)), R, p, lines)
        return np.vstack((np.cross(lines[:6], p - lines[6:]).T, lines[:6].T))

    def solve(self, R: ArrayLike, p: ArrayLike, near: ArrayLike | None = None) -> LegPose:
        """Finds the joint angles that bring the sole to a pose.

        Args:
            R: (3, 3) orientation of the sole in the pelvis' frame.
            p: (3,) m, its origin there.
            near: (6,) rad; of several solutions within the limits, the nearest to it. Default: the
                nominal posture.

        Raises:
            ShapeError: An argument has the wrong shape.
            ComModelError: R is not a rotation.
        """
        R = np.ascontiguousarray(as_rotation("R", R))
        p = _floats("p", p, (3,))
        start = _floats("near", self.leg.nominal if near is None else near, (6,))
        q = np.full(6, np.nan)
        if not (np.isfinite(p).all() and np.isfinite(start).all()):
            return LegPose(q, False, False, "the pose that is asked for is not finite")
        if self.closed:
            outcome = kernels.solve_leg(self.packed, R, p, start, q)
            if outcome != kernels.REACHED:
                return LegPose(np.full(6, np.nan), False, False, self._why(outcome, R, p))
        else:
            q, error = self._search(R, p, start)
            if error > _SOLVED:
                reason = f"the {self.leg.side} sole comes no nearer than {error:.3g} m to its pose"
                return LegPose(np.full(6, np.nan), False, False, reason)
        problem = self.limit_problem(q)
        return LegPose(q, True, not problem, problem)

    def limit_problem(self, q: ArrayLike) -> str:
        """Which joint is out of its limits; "" when none is."""
        leg = self.leg
        values = _floats("q", q, (6,))
        for name, value, low, high in zip(
            leg.joint_names, values, leg.lower, leg.upper, strict=True
        ):
            if not low - LIMIT_TOLERANCE <= value <= high + LIMIT_TOLERANCE:
                return f"{name} would be at {value:.3f} rad, its limits are {low:.3f} to {high:.3f}"
        return ""

    def _search(self, R: Array, p: Array, start: Array) -> tuple[Array, float]:
        """Newton steps from several starts, until one meets the pose within the limits."""
        best, least = start.copy(), np.inf
        for q in self._starts(R, p, start):
            error = float(kernels.descend_leg(self.packed, R, p, q, _STEPS))
            q = start + np.remainder(q - start + np.pi, 2.0 * np.pi) - np.pi
            allowed = error <= _SOLVED and not self.limit_problem(q)
            if allowed:
                return q, error
            if error < least and not (least <= _SOLVED):
                best, least = q, error
        return best, least

    def _starts(self, R: Array, p: Array, start: Array) -> list[Array]:
        starts = []
        guess = start.copy()
        arguments = self.packed, R, p, start, guess
        if self._guess and kernels.solve_leg(*arguments) == kernels.REACHED:
            starts.append(guess)
        low = np.where(np.isfinite(self.leg.lower), self.leg.lower, -np.pi)
        high = np.where(np.isfinite(self.leg.upper), self.leg.upper, np.pi)
        rng = np.random.default_rng(0)
        others = [rng.uniform(low, high) for _ in range(_TRIES)]
        return [*starts, start.copy(), self.leg.nominal.copy(), *others]

    def _why(self, outcome: int, R: Array, p: Array) -> str:
        side = self.leg.side
        if outcome == kernels.KNEE:
            ankle = p + R @ self.leg.R_sole.T @ (self.packed["ankle"][0] - self.leg.p_sole)
            distance = float(np.linalg.norm(ankle - self.packed["hip"][0]))
            return (
                f"the {side} ankle would be {distance:.3f} m from its hip, the leg reaches "
                f"{self.reach[0]:.3f} to {self.reach[1]:.3f} m"
            )
        joint = "ankle" if outcome == kernels.ANKLE else "hip"
        return f"no rotation of the {side} {joint} brings the sole into its pose"


def meeting_point(points: Array, axes: Array) -> tuple[Array, float]:
    """Point nearest to lines (k, 3), in the least squares' sense, and its largest distance, m.

    Along directions in which all lines agree it is that of the first point.
    """
    across = np.eye(3) - np.einsum("ki,kj->kij", axes, axes)
    offsets = points - points[0]
    wanted = np.einsum("kij,kj->i", across, offsets)
    point = points[0] + np.linalg.lstsq(across.sum(axis=0), wanted, rcond=1e-9)[0]
    gaps = np.linalg.norm(np.einsum("kij,kj->ki", across, point - points), axis=1)
    return point, float(gaps.max())


def _floats(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(as_array(name, value, shape))
