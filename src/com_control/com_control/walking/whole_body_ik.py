"""Inverse kinematics of the centre of mass for any humanoid, with legs of any build.

Arms, waist and head are where set_upper_body puts them.
Where the legs fit the closed form, com_control.walking.com_ik does the work; others are solved by
Newton's steps on pelvis and legs together. Both meet the soles' poses and the CoM at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from com_control.walking import leg_kernels
from com_control.walking import whole_body_kernels as kernels
from com_control.walking.biped import Biped
from com_control.walking.closed_form_legs import fits
from com_control.walking.com_ik import (
    TOLERANCE,
    UPRIGHT,
    ComIk,
    ComPath,
    ComPoint,
    describe_nearest,
    with_legs,
)
from com_control.walking.kernel_basics import ARRAYS, entry_point, records
from com_control.walking.leg_ik import LegIk
from com_control.walking.leg_kernels import LIMIT_TOLERANCE
from com_control.walking.upper_body import UpperBody
from com_model.arrays import Array, as_array, as_rotation

_TRIES = 6
empty = np.empty
_MEETS = 1e-7  # m and rad, error of the soles at the nearest CoM


class WholeBodySolution(NamedTuple):
    """Joint angles of a humanoid, with what is known of them.

    Attributes:
        q: (n,) rad or m, all joints; NaN where feet and CoM are not reached.
        R_world_root: (3, 3) orientation of the root link; NaN likewise.
        p_world_root: (3,) m, its origin; NaN likewise.
        reached: Feet and CoM are where they are to be, within the legs' limits.
        reason: Why not; "" when all is well.
        nearest: (3,) m, the nearest CoM that can be reached with these feet; NaN where none is
            found.
    """

    q: Array
    R_world_root: Array
    p_world_root: Array
    reached: bool
    reason: str
    nearest: Array


class WholeBodyIk:
    """Solver for a humanoid. Calls work in memory of their own object: one object per thread.

    Args:
        biped: The robot.

    Attributes:
        closed: The legs fit the closed form.
    """

    def __init__(self, biped: Biped) -> None:
        self.biped = biped
        self.closed = fits(biped)
        self._fast = ComIk(biped) if self.closed else None
        self._above = UpperBody(biped)
        self._robot = self._pack()
        self._joints = np.concatenate([leg.joints for leg in biped.legs])
        self._lower = np.concatenate([leg.lower for leg in biped.legs])
        self._upper = np.concatenate([leg.upper for leg in biped.legs])
        self._names = [name for leg in biped.legs for name in leg.joint_names]
        self._q = biped.posture.copy()
        self._known = False  # the state is that of a point that was solved
        point = *ARRAYS[1:4], records(kernels.ROBOT)
        self._step = entry_point(kernels.step_whole, *point, float64, ARRAYS[1])

    def set_upper_body(self, q: ArrayLike) -> None:
        """Moves the joints that are not of the legs to where q (n,), rad or m, has them."""
        checked = type(q) is np.ndarray and q.shape == self._q.shape
        self._q[:] = q if checked else self.biped.model.check_q(q)
        if self._fast is not None:
            self._fast.set_upper_body(self._q)
        else:
            self._above.update_moment(self._q, self._robot["upper_moment"][0])

    def step(
        self, com: Array, feet: Array, R_pelvis: Array = UPRIGHT, tolerance: float = TOLERANCE
    ) -> ComPoint:
        """Solves a point next to the last one, without checks of arguments; see ComIk.step."""
        if self._fast is not None:
            return self._fast.step(com, feet, R_pelvis, tolerance)
        if not self._known:
            self._robot["state"] = self._first_guess(feet, R_pelvis)
        values = empty(16)
        outcome = self._step(com, R_pelvis, feet, self._robot, tolerance, values)
        self._known = not outcome
        return ComPoint(values, outcome)

    def solve(
        self,
        com: ArrayLike,
        feet: ArrayLike,
        R_pelvis: ArrayLike | None = None,
        tolerance: float = TOLERANCE,
    ) -> WholeBodySolution:
        """Finds joint angles and the root's pose for a CoM and both soles.

        Args:
            com: (3,) m, in the world.
            feet: (2, 3, 4) poses [R p] of the soles in the world, left and right.
            R_pelvis: (3, 3) orientation of the pelvis, the body from which both legs start, in the
                world; default: upright.
            tolerance: m (and rad) of what may remain.

        Raises:
            ShapeError: An argument has the wrong shape.
            ComModelError: An orientation is not a rotation.
        """
        R = UPRIGHT if R_pelvis is None else np.ascontiguousarray(as_rotation("R_pelvis", R_pelvis))
        if self._fast is not None:
            found = self._fast.solve(com, feet, R, tolerance)
            return self._solution(found.q, found.pelvis, R, found.reason, found.nearest)
        target = np.ascontiguousarray(as_array("com", com, (3,)))
        poses = np.ascontiguousarray(as_array("feet", feet, (2, 3, 4)))
        if not (np.isfinite(target).all() and np.isfinite(poses).all()):
            return self._failed("the target is not finite", np.full(3, np.nan))
        for i, leg in enumerate(self.biped.legs):
            as_rotation(f"feet[{i}] ({leg.side})", poses[i, :, :3])
        return self._search(target, poses, R, tolerance)

    def solve_path(
        self, com: ArrayLike, feet: ArrayLike, R_pelvis: ArrayLike, tolerance: float = TOLERANCE
    ) -> ComPath:
        """Solves the points of a path, each near the one before; see ComIk.solve_path.

        Raises:
            ShapeError: An argument has the wrong shape.
        """
        if self._fast is not None:
            return self._fast.solve_path(com, feet, R_pelvis, tolerance)
        targets = np.ascontiguousarray(as_array("com", com, (None, 3)))
        count = len(targets)
        poses = np.ascontiguousarray(as_array("feet", feet, (count, 2, 3, 4)))
        R = np.ascontiguousarray(as_array("R_pelvis", R_pelvis, (count, 3, 3)))
        values, outcomes = np.empty((count, 16)), np.empty(count, dtype=np.int64)
        self._known = False
        for i in range(count):
            values[i], outcomes[i] = self.step(targets[i], poses[i], R[i], tolerance)
        self._known = False
        return ComPath(values[:, :12], values[:, 12:15], values[:, 15], outcomes)

    def full(self, legs: ArrayLike) -> Array:
        """All joints (n,) or (N, n), the others where they are, from the legs' (12,) or (N, 12)."""
        return with_legs(self._q, self._joints, legs)

    def _pack(self) -> Any:
        """The robot for the kernels, (1,) of kernels.ROBOT."""
        robot = np.zeros(1, kernels.ROBOT)
        for i, leg in enumerate(self.biped.legs):
            packed = robot["legs"][0, i : i + 1]
            packed[:] = LegIk(leg).packed
            packed["masses"] = leg.masses / self.biped.model.mass
            packed["moments"] = leg.moments / self.biped.model.mass
        self._above.update_moment(self.biped.posture, robot["upper_moment"][0])
        return robot

    def _search(self, target: Array, feet: Array, R: Array, tolerance: float) -> WholeBodySolution:
        """Newton's steps from the last solution, from the nominal posture, and from others."""
        best, problem = np.inf, ""
        starts = self._starts(feet, R)
        for start in starts:
            state = start.copy()
            error = self._descend(target, feet, R, state, tolerance)
            middle = 0.5 * (self._lower + self._upper)
            near = np.where(np.isfinite(middle), middle, 0.0)
            q = state[3:]
            q[:] = near + np.remainder(q - near + np.pi, 2.0 * np.pi) - np.pi
            if error <= tolerance:
                problem = self._limit_problem(q)
                if not problem:
                    self._robot["state"], self._known = state, True
                    return self._solution(self.full(q), state[:3], R, "", target.copy())
            best = min(best, error)
        self._known = False
        problem = (
            problem or f"feet and CoM come no nearer than {best:.3g} m to where they are to be"
        )
        nearest = self._nearest(target, feet, R, starts[0])
        return self._failed(f"{problem}; {describe_nearest(nearest, target)}", nearest)

    def _descend(
        self, target: Array, feet: Array, R: Array, state: Array, tolerance: float
    ) -> float:
        return float(kernels.solve_whole(target, R, feet, self._robot, tolerance, state))

    def _starts(self, feet: Array, R: Array) -> list[Array]:
        nominal = np.concatenate([leg.nominal for leg in self.biped.legs])
        first = self._first_guess(feet, R)
        pelvis = first[:3]
        rng = np.random.default_rng(0)
        others = []
        for _ in range(_TRIES):
            q = np.clip(nominal + rng.uniform(-0.4, 0.4, 12), self._lower, self._upper)
            others.append(np.concatenate((pelvis + rng.uniform(-0.05, 0.05, 3), q)))
        last = [self._robot["state"][0, 0].copy()] if self._known else []
        return [*last, first, *others]

    def _first_guess(self, feet: Array, R: Array) -> Array:
        """A first guess (15,): the nominal posture over the feet."""
        nominal = np.concatenate([leg.nominal for leg in self.biped.legs])
        pelvis = feet[:, :, 3].mean(axis=0) - R @ self._soles(nominal)
        return np.concatenate((pelvis, nominal))

    def _soles(self, q: Array) -> Array:
        """Middle of the soles in the pelvis' frame, m."""
        places = []
        for i in range(2):
            R, p, lines = np.empty((3, 3)), np.empty(3), np.empty((12, 3))
            leg_kernels.place_sole(
                self._robot["legs"][0, i : i + 1], q[6 * i : 6 * i + 6].copy(), R, p, lines
            )
            places.append(p)
        return np.mean(places, axis=0)

    def _nearest(self, target: Array, feet: Array, R: Array, start: Array) -> Array:
        """The nearest CoM with both soles in their poses, within the limits; NaN: none found."""

        def errors(state: Array) -> Array:
            result = np.empty(15)
            kernels.find_errors(target, R, feet, self._robot, state, result)
            return result

        def cost(state: Array) -> float:
            away = errors(state)[12:]
            return 100.0 * float(away @ away)

        limits = list(zip(self._lower, self._upper, strict=True))
        found = minimize(
            cost,
            start,
            method="SLSQP",
            bounds=[(None, None)] * 3 + limits,
            constraints={"type": "eq", "fun": lambda state: errors(state)[:12]},
            options={"ftol": 1e-12, "maxiter": 300},
        )
        rest = errors(found.x)
        if np.abs(rest[:12]).max() > _MEETS:
            return np.full(3, np.nan)
        return target - R @ rest[12:]

    def _limit_problem(self, q: Array) -> str:
        over = np.maximum(self._lower - q, q - self._upper)
        worst = int(np.argmax(over))
        if over[worst] <= LIMIT_TOLERANCE:
            return ""
        return (
            f"{self._names[worst]} would be at {q[worst]:.3f} rad, its limits are "
            f"{self._lower[worst]:.3f} to {self._upper[worst]:.3f}"
        )

    def _solution(
        self, q: Array, pelvis: Array, R: Array, reason: str, nearest: Array
    ) -> WholeBodySolution:
        if reason:
            return self._failed(reason, nearest)
        R_root, p_root = self._above.root_in_pelvis(self._q)
        return WholeBodySolution(q, R @ R_root, pelvis + R @ p_root, True, "", nearest)

    def _failed(self, reason: str, nearest: Array) -> WholeBodySolution:
        n = self.biped.model.n_joints
        return WholeBodySolution(
            np.full(n, np.nan), np.full((3, 3), np.nan), np.full(3, np.nan), False, reason, nearest
        )
