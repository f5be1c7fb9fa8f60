"""Inverse kinematics of the centre of mass: leg angles that put CoM and feet where they are to be.

What is given: the CoM, the poses of both soles, the orientation of the pelvis, and every joint that
is not of the legs. What is left unknown is the pelvis' position: three numbers, found by Newton's
and Broyden's steps on the map from pelvis to CoM, which needs no angles (docs/derivations.md). The
angles follow at the end. That is why it is fast: general solvers iterate on 6 + n numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from com_control.walking import com_kernels as kernels
from com_control.walking.biped import Biped
from com_control.walking.closed_form_legs import pack
from com_control.walking.com_kernels import ComPath, Points
from com_control.walking.kernel_basics import ARRAYS, INDICES, entry_point, records
from com_control.walking.pelvis_map import LIMITED, ROBOT, STRETCHED
from com_control.walking.upper_body import UpperBody
from com_model.arrays import Array, as_array, as_rotation
from com_model.sesc.sesc import Sesc

TOLERANCE = 1e-9  # m
KNEE = 3  # its place among the joints of a leg
_MARGIN = 1e-4  # m and rad, inside limits and reach, of the nearest point
UPRIGHT = np.eye(3)
_ROBOTS = records(ROBOT)
empty = np.empty


class ComPoint(NamedTuple):
    """Joint angles for a point.

    Attributes:
        values: (16,) q, pelvis and error.
        outcome: 0: all is well; else bits of pelvis_map: STALLED, and for the left leg STRETCHED,
            LIMITED, for the right one the same times 16.
    """

    values: Array
    outcome: int

    @property
    def q(self) -> Array:
        """(12,) rad, of the left leg and the right. Of use only where outcome is 0."""
        return self.values[:12]

    @property
    def pelvis(self) -> Array:
        """(3,) m, origin of the pelvis' frame in the world."""
        return self.values[12:15]

    @property
    def error(self) -> float:
        """m, distance of the CoM to its target."""
        return float(self.values[15])


class ComSolution(NamedTuple):
    """Joint angles for a point, with what is known of it.

    Attributes:
        q: (n,) rad or m, all joints of the robot; NaN where the CoM is not reached.
        pelvis: (3,) m, origin of the pelvis' frame in the world; NaN likewise.
        reached: Feet and CoM are where they are to be, within the joints' limits.
        reason: Why not; "" when all is well.
        nearest: (3,) m, the nearest CoM that can be reached with these feet; the target where it is
            reached, NaN where there is none.
    """

    q: Array
    pelvis: Array
    reached: bool
    reason: str
    nearest: Array


class ComIk:
    """Solver for a biped whose legs fit the closed form (closed_form_legs.fits).

    Calls work in memory of their own object: use one object per thread.

    Args:
        biped: The robot.
        q: (n,) rad or m, where its other joints are; default: the biped's posture.

    Raises:
        BipedError: Its legs do not fit.
        ShapeError: q has another shape.
    """

    def __init__(self, biped: Biped, q: ArrayLike | None = None) -> None:
        self.biped = biped
        self._q = biped.posture.copy() if q is None else biped.model.check_q(q).copy()
        self._robot = pack(biped, self._q)
        self._above = UpperBody(biped)
        self._upper_moment = self._robot["upper_moment"][0]
        self._joints = np.concatenate([leg.joints for leg in biped.legs])
        point = *ARRAYS[1:4], _ROBOTS
        self._solve = entry_point(kernels.solve_one, *point, types.float64, ARRAYS[1])
        self._offset = self._nominal_offset()
        self._cold = True

    def set_upper_body(self, q: ArrayLike) -> None:
        """Moves the joints that are not of the legs to where q (n,), rad or m, has them."""
        checked = type(q) is np.ndarray and q.shape == self._q.shape
        self._q[:] = q if checked else self.biped.model.check_q(q)
        self._above.update_moment(self._q, self._upper_moment)

    def restart(self, pelvis: ArrayLike | None = None) -> None:
        """Forgets the last point.

        Args:
            pelvis: (3,) m, where the next search starts; default: where the CoM would be right in
                the nominal posture.
        """
        self._robot["known"] = self._robot["solved"] = 0
        self._cold = pelvis is None
        if pelvis is not None:
            self._start = as_array("pelvis", pelvis, (3,))

    def step(
        self, com: Array, feet: Array, R_pelvis: Array = UPRIGHT, tolerance: float = TOLERANCE
    ) -> ComPoint:
        """Solves a point next to the last one; a microsecond or so, hence no checks of arguments.

        Args:
            com: (3,) m, target in the world, float64.
            feet: (2, 3, 4) poses [R p] of the soles in the world, left and right, float64.
            R_pelvis: (3, 3) orientation of the pelvis in the world, float64.
            tolerance: m, distance of the CoM to its target that is good enough.
        """
        if self._cold:
            self._start = com - R_pelvis @ self._offset
            self._cold = False
        values = empty(16)
        outcome = self._solve(com, R_pelvis, feet, self._robot, tolerance, values)
        return ComPoint(values, outcome)

    def solve(
        self,
        com: ArrayLike,
        feet: ArrayLike,
        R_pelvis: ArrayLike | None = None,
        tolerance: float = TOLERANCE,
    ) -> ComSolution:
        """Solves a point from scratch and explains what cannot be done; see step.

        Raises:
            ShapeError: An argument has the wrong shape.
            ComModelError: R_pelvis, or the orientation of a foot, is not a rotation.
        """
        target, poses, R = self._checked(com, feet, R_pelvis)
        n = self.biped.model.n_joints
        if not (np.isfinite(target).all() and np.isfinite(poses).all()):
            nan = np.full(3, np.nan)
            return ComSolution(np.full(n, np.nan), nan, False, "the target is not finite", nan)
        self.restart()
        point = self.step(target, poses, R, tolerance)
        if point.outcome == 0:
            return ComSolution(self.full(point.q), point.pelvis, True, "", target.copy())
        self.restart()
        nearest = self._nearest(target, poses, R, point.pelvis)
        reason = self._reason(point, nearest, target)
        return ComSolution(np.full(n, np.nan), np.full(3, np.nan), False, reason, nearest)

    def solve_path(
        self, com: ArrayLike, feet: ArrayLike, R_pelvis: ArrayLike, tolerance: float = TOLERANCE
    ) -> ComPath:
        """Solves the points of a path, each near the one before.

        Args:
            com: (N, 3) m.
            feet: (N, 2, 3, 4) poses of the soles.
            R_pelvis: (N, 3, 3) orientation of the pelvis.
            tolerance: m.

        Raises:
            ShapeError: An argument has the wrong shape.
        """
        targets, poses, R, result = self._batch(com, feet, R_pelvis)
        if len(targets):
            self._start = targets[0] - R[0] @ self._offset
            _compiled_for_many(kernels.solve_path)(
                Points(targets, R, poses), self._robot, tolerance, result
            )
        self.restart()
        return result

    def solve_each(
        self,
        com: ArrayLike,
        feet: ArrayLike,
        R_pelvis: ArrayLike,
        starts: ArrayLike | None = None,
        tolerance: float = TOLERANCE,
    ) -> ComPath:
        """Solves points that have nothing to do with each other; as solve_path.

        Args:
            com: (N, 3) m.
            feet: (N, 2, 3, 4) poses of the soles.
            R_pelvis: (N, 3, 3) orientation of the pelvis.
            starts: (N, 3) m, first guesses of the pelvis' position.
            tolerance: m.

        Raises:
            ShapeError: An argument has the wrong shape.
        """
        targets, poses, R, result = self._batch(com, feet, R_pelvis)
        if starts is None:
            result.pelvis[:] = targets - R @ self._offset
        else:
            result.pelvis[:] = as_array("starts", starts, targets.shape)
        _compiled_for_many(kernels.solve_each)(
            Points(targets, R, poses), self._robot, tolerance, result
        )
        return result

    def full(self, legs: ArrayLike) -> Array:
        """All joints (n,) or (N, n), the others where they are, from the legs' (12,) or (N, 12)."""
        return with_legs(self._q, self._joints, legs)

    def com_at(
        self, pelvis: ArrayLike, feet: ArrayLike, R_pelvis: ArrayLike | None = None
    ) -> Array:
        """The CoM (3,) m with the pelvis somewhere (3,) m: the map that is inverted; see solve."""
        place, poses, R = self._checked(pelvis, feet, R_pelvis)
        return self._at(place, poses, R)[0]

    def _at(self, pelvis: Array, feet: Array, R: Array) -> tuple[Array, Array, int]:
        com, q = np.empty(3), np.empty(12)
        solve = entry_point(kernels.solve_pelvis, *ARRAYS[1:4], _ROBOTS, ARRAYS[1], ARRAYS[1])
        return com, q, solve(pelvis, R, feet, self._robot, com, q)

    @property
    def _start(self) -> Array:
        """Where the next search starts: the pelvis' position (3,) m."""
        return self._robot["pelvis"][0, 0]

    @_start.setter
    def _start(self, pelvis: Array) -> None:
        self._robot["pelvis"][0, 0] = pelvis

    def _nominal_offset(self) -> Array:
        """From the pelvis to the CoM in the biped's posture, in the pelvis' axes, m."""
        q = self._q.copy()
        q[self._joints] = self.biped.posture[self._joints]
        R, p = self.biped.root_in_pelvis(q)
        return p + R @ Sesc(self.biped.model).com(q)

    def _nearest(self, target: Array, feet: Array, R: Array, start: Array) -> Array:
        """The nearest CoM to the target that reach and limits allow; NaN where none is found."""
        low, high = self._robot["lower"][0], self._robot["upper"][0]
        others = np.arange(12) % 6 != KNEE
        low_at, high_at = others & np.isfinite(low), others & np.isfinite(high)

        def margins(pelvis: Array) -> Array:
            q = self._at(pelvis, feet, R)[1]
            above, below = (q - low)[low_at], (high - q)[high_at]
            return np.concatenate((self._reach_margins(pelvis, feet, R), above, below)) - _MARGIN

        def cost(pelvis: Array) -> float:
            away = self._at(pelvis, feet, R)[0] - target
            return 100.0 * float(away @ away)

        for first in (self._middle(feet, R), start):
            if not np.isfinite(first).all():
                continue
            found = minimize(
                cost,
                first,
                method="SLSQP",
                constraints={"type": "ineq", "fun": margins},
                options={"ftol": 1e-10, "maxiter": 200},
            )
            com, _, outcome = self._at(self._pulled_in(found.x, feet, R), feet, R)
            if outcome == 0:
                return com
        return np.full(3, np.nan)

    def _pulled_in(self, pelvis: Array, feet: Array, R: Array) -> Array:
        """Brings a place that limits or reach forbid by a little back towards the middle."""
        middle, inside, outside = self._middle(feet, R), 0.0, 1.0
        if self._at(pelvis, feet, R)[2] == 0:
            return pelvis
        for _ in range(40):
            fraction = 0.5 * (inside + outside)
            fine = self._at(middle + fraction * (pelvis - middle), feet, R)[2] == 0
            inside, outside = (fraction, outside) if fine else (inside, fraction)
        return middle + inside * (pelvis - middle)

    def _middle(self, feet: Array, R: Array) -> Array:
        """A place of the pelvis over the middle of the ankles, with the legs well bent."""
        places = []
        for leg, foot in zip(self._robot["legs"][0], feet, strict=True):
            ankle = foot[:, :3] @ leg["ankle"] + foot[:, 3]
            up = np.array([0.0, 0.0, 0.85 * (leg["l1"] + leg["l2"])])
            places.append(ankle + up - R @ leg["hip"])
        return np.mean(places, axis=0)

    def _reach_margins(self, pelvis: Array, feet: Array, R: Array) -> Array:
        """By how much the hips are inside of what the knees' limits allow, (4,) m."""
        margins = []
        knees = self._robot[0][["zero", "lower", "upper"]]
        for i, foot in enumerate(feet):
            leg, (zero, low, high) = self._robot["legs"][0, i], (k[6 * i + KNEE] for k in knees)
            ankle = foot[:, :3] @ leg["ankle"] + foot[:, 3]
            distance = float(np.linalg.norm(pelvis + R @ leg["hip"] - ankle))
            l1, l2 = leg["l1"], leg["l2"]
            side = leg["sign_beta"] * leg["direction_4"]
            bends = np.clip(np.sort(side * (np.array([low, high]) + zero)), 0.0, np.pi)
            most, least = np.sqrt(l1 * l1 + l2 * l2 + 2.0 * l1 * l2 * np.cos(bends))
            margins += [most - distance, distance - least]
        return np.array(margins)

    def _reason(self, point: ComPoint, nearest: Array, target: Array) -> str:
        problems = []
        for i, leg in enumerate(self.biped.legs):
            bits = point.outcome >> (4 * i)
            if bits & STRETCHED:
                problems.append(f"the {leg.side} leg is too short")
            elif bits & LIMITED:
                angles = point.q[6 * i : 6 * i + 6]
                worst = int(np.argmax(np.maximum(leg.lower - angles, angles - leg.upper)))
                problems.append(
                    f"{leg.joint_names[worst]} would be at {angles[worst]:.3f} rad, its limits are "
                    f"{leg.lower[worst]:.3f} to {leg.upper[worst]:.3f}"
                )
        what = "; ".join(problems) or f"the CoM comes no nearer than {point.error:.3g} m"
        return f"{what}; {describe_nearest(nearest, target)}"

    def _checked(
        self, point: ArrayLike, feet: ArrayLike, R: ArrayLike | None
    ) -> tuple[Array, Array, Array]:
        target = np.ascontiguousarray(as_array("com", point, (3,)))
        poses = np.ascontiguousarray(as_array("feet", feet, (2, 3, 4)))
        rotation = UPRIGHT if R is None else np.ascontiguousarray(as_rotation("R_pelvis", R))
        for i, leg in enumerate(self.biped.legs):
            if np.isfinite(poses[i]).all():
                as_rotation(f"feet[{i}] ({leg.side})", poses[i, :, :3])
        return target, poses, rotation

    def _batch(
        self, com: ArrayLike, feet: ArrayLike, R_pelvis: ArrayLike
    ) -> tuple[Array, Array, Array, ComPath]:
        targets = np.ascontiguousarray(as_array("com", com, (None, 3)))
        n = len(targets)
        poses = np.ascontiguousarray(as_array("feet", feet, (n, 2, 3, 4)))
        R = np.ascontiguousarray(as_array("R_pelvis", R_pelvis, (n, 3, 3)))
        outcomes = np.empty(n, dtype=np.int64)
        result = ComPath(np.empty((n, 12)), np.empty((n, 3)), np.empty(n), outcomes)
        return targets, poses, R, result


def with_legs(q: Array, joints: Array, legs: ArrayLike) -> Array:
    """Postures (n,) or (N, n) with the legs' joints at angles (12,) or (N, 12), the others at q."""
    angles = np.asarray(legs, dtype=float)
    whole = np.empty((*angles.shape[:-1], len(q)))
    whole[...] = q
    whole[..., joints] = angles
    return whole


def describe_nearest(nearest: Array, target: Array) -> str:
    """How far the nearest CoM (3,) m that can be reached is from the target; NaN: there is none."""
    if not np.isfinite(nearest).all():
        return "no CoM can be reached with these feet"
    away = 1e3 * float(np.linalg.norm(nearest - target))
    return f"the nearest CoM that can be reached is {away:.3g} mm from the target"


def _compiled_for_many(kernel: Any) -> Any:
    """Entry point of a kernel for many points."""
    points = types.NamedTuple(ARRAYS[2:5], Points)
    result = types.NamedTuple([ARRAYS[2], ARRAYS[2], ARRAYS[1], INDICES], ComPath)
    return entry_point(kernel, points, _ROBOTS, types.float64, result)
