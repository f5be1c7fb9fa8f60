"""Inverse kinematics of the centre of mass: leg angles for given CoM and feet.

Given are the CoM, the poses of both soles, the orientation of the pelvis, and every joint that
is not of the legs. Unknown are the pelvis' position and the legs' joints. Two solvers find them:
- ClosedFormSolver, for legs of the usual build: three unknowns, Newton's and Broyden's steps on
the map from pelvis to CoM, which needs no angles (docs/derivations.md). That is why it is fast:
general solvers iterate on 6 + n numbers
- NewtonSolver, for any legs: Newton's steps on pelvis and legs together

Where one drive moves a joint of both legs, as NAO's hips, the pelvis' yaw is unknown, too: the
secant method finds the yaw at which both legs need the same angle.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import BipedError
from com_control.walking import pelvis_search
from com_control.walking.biped import JOINTS, Biped
from com_control.walking.closed_form_ik import fits_closed_form, pack_leg
from com_control.walking.newton_ik import NewtonSolver, SearchResult, Solver
from com_control.walking.pelvis_map import LIMITED, ROBOT, STALLED, STRETCHED
from com_model.arrays import Array, Indices, as_array, as_rotation
from com_model.compiled import entry_point
from com_model.geometry.rotations import UP, rotations_about
from com_model.sesc.sesc import Sesc

TOLERANCE = 1e-9  # m; rad, between the angles that two legs ask of one drive
_SAME = 1e-6  # rad, between yaws that count as one
UPRIGHT = np.eye(3)
empty = np.empty


class ComPoint(NamedTuple):
    """Solution of a point.

    Attributes:
        values: (16,) q, pelvis and error.
        outcome: 0 on success; else bits of pelvis_map: STALLED, and for the left leg STRETCHED,
            LIMITED, for the right one the same times 16.
    """

    values: Array
    outcome: int

    @property
    def q(self) -> Array:
        """(12,) rad, of the left leg and the right; valid only where outcome is 0."""
        return self.values[:12]

    @property
    def pelvis(self) -> Array:
        """(3,) m, origin of the pelvis' frame in the world."""
        return self.values[12:15]

    @property
    def error(self) -> float:
        """Distance of the CoM to its target, m; NewtonSolver: with the soles' errors."""
        return float(self.values[15])


class ComPath(NamedTuple):
    """Solutions of N points; see ComPoint.

    Attributes:
        q: (N, 12) rad, of the left legs and the right.
        pelvis: (N, 3) m, origin of the pelvis' frame in the world.
        errors: (N,) m.
        outcomes: (N,).
        R_pelvis: (N, 3, 3) as given, except for the yaw that coupled hips require.
    """

    q: Array
    pelvis: Array
    errors: Array
    outcomes: Indices
    R_pelvis: Array


class ComSolution(NamedTuple):
    """Solution of a point for the whole robot.

    Attributes:
        q: (n,) rad or m, all joints; NaN if not reached.
        pelvis: (3,) m, origin of the pelvis' frame in the world; NaN if not reached.
        R_world_root: (3, 3) orientation of the root link; NaN if not reached.
        p_world_root: (3,) m, its origin; NaN if not reached.
        reached: feet and CoM are at their targets, within the legs' limits.
        reason: why not; "" when they are.
        nearest: (3,) m, the nearest CoM that can be reached with these feet; the target where it
            is reached, NaN where none is found.
    """

    q: Array
    pelvis: Array
    R_world_root: Array
    p_world_root: Array
    reached: bool
    reason: str
    nearest: Array


class ClosedFormSolver(Solver):
    """Finds the pelvis with the closed-form map from pelvis to CoM.

    Args:
        biped: whose legs fit the closed form, see fits_closed_form().
    """

    solve_one, solve_path = (
        staticmethod(pelvis_search.solve_one),
        staticmethod(pelvis_search.solve_path),
    )

    def __init__(self, biped: Biped) -> None:
        robot = np.zeros(1, ROBOT)
        super().__init__(biped, robot)
        zero = [
            pack_leg(leg, biped.model.mass, packed)
            for leg, packed in zip(biped.legs, robot["legs"][0], strict=True)
        ]
        robot["zero"] = np.concatenate(zero)
        masses = sum(leg.masses.sum() for leg in biped.legs)
        robot["upper_fraction"] = 1.0 - masses / biped.model.mass
        R, p = biped.root_in_pelvis()
        robot["offset"] = p + R @ Sesc(biped.model).com(biped.posture)
        robot["lower"], robot["upper"] = self._lower - 1e-9, self._upper + 1e-9
        robot["nominal"] = self._nominal
        point = np.empty(3), np.empty((3, 3)), np.empty((2, 3, 4))
        self._place = entry_point(
            pelvis_search.place_pelvis, *point, robot, np.empty(3)
        )
        self._solve = entry_point(
            pelvis_search.solve_one, *point, robot, 0.0, np.empty(16)
        )

    def restart(self, pelvis: Array | None) -> None:
        """Forgets the last point.

        Args:
            pelvis: (3,) m, where the next search starts; None: by the nominal posture.
        """
        self.robot["known"] = self.robot["solved"] = 0
        self.robot["warm"] = pelvis is not None
        if pelvis is not None:
            self.robot["pelvis"][0, 0] = pelvis

    def search(
        self, com: Array, feet: Array, R: Array, tolerance: float
    ) -> SearchResult:
        """Solves a point without an initial guess.

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
            return legs, pelvis, "", com
        self.restart(None)
        nearest = self._nearest(com, feet, R)
        reason = f"the CoM comes no nearer than {values[15]:.3g} m"
        return legs, pelvis, self._reason(legs, outcome) or reason, nearest

    def map_pelvis(self, pelvis: Array, feet: Array, R: Array) -> tuple[Array, int]:
        """The map from the pelvis' position to the CoM.

        Args:
            pelvis: (3,) m in the world.
            feet: (2, 3, 4) poses of the soles in the world.
            R: (3, 3) orientation of the pelvis.

        Returns:
            CoM (3,) m, and the outcome; see ComPoint.
        """
        com = np.empty(3)
        return com, self._place(pelvis, R, feet, self.robot, com)

    def _nearest(self, target: Array, feet: Array, R: Array) -> Array:
        """The CoM nearest to the target within reach and limits; NaN where none is found."""
        newton = NewtonSolver(self._biped)
        newton.robot["upper_moment"] = self.robot["upper_moment"]
        pelvis = newton.find_nearest(target, feet, R)[:3]
        com, outcome = self.map_pelvis(self._pulled_in(pelvis, feet, R), feet, R)
        return com if outcome == 0 else np.full(3, np.nan)

    def _pulled_in(self, pelvis: Array, feet: Array, R: Array) -> Array:
        """Moves a pelvis position slightly outside limits or reach back towards the middle."""
        middle, inside, outside = self._middle(feet, R), 0.0, 1.0
        for _ in range(40):
            fraction = 0.5 * (inside + outside)
            fine = (
                self.map_pelvis(middle + fraction * (pelvis - middle), feet, R)[1] == 0
            )
            inside, outside = (fraction, outside) if fine else (inside, fraction)
        # a thousandth of the way from the middle to the nearest point is left
        return middle + (1.0 - 1e-3) * inside * (pelvis - middle)

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


class ComIk:
    """Solver for a robot on two legs.

    Calls change the state of their object: use one object per thread.

    Args:
        biped: the robot.

    Attributes:
        biped: as given.
        closed: the closed form solves both legs.
    """

    def __init__(self, biped: Biped) -> None:
        self.biped, self._coupled = biped, biped.coupled
        self.closed = all(fits_closed_form(leg) for leg in biped.legs)
        self._q = biped.posture.copy()
        self._solver = ClosedFormSolver(biped) if self.closed else NewtonSolver(biped)
        self._robot = self._solver.robot
        self._solver.set_upper_body(self._q)
        self._joints = np.concatenate([leg.joints for leg in biped.legs])
        own = [
            JOINTS * i + np.arange(len(leg.joints)) for i, leg in enumerate(biped.legs)
        ]
        self._own = np.concatenate(own)  # of the legs' (12,) those that q has
        point = empty(3), empty((3, 3)), empty((2, 3, 4))
        self._solve = entry_point(
            self._solver.solve_one, *point, self._robot, 0.0, empty(16)
        )

    def set_upper_body(self, q: ArrayLike) -> None:
        """Sets the joints that are not of the legs.

        Args:
            q: (n,) rad or m; the legs' joints in it are ignored.
        """
        checked = type(q) is np.ndarray and q.shape == self._q.shape
        self._q[:] = q if checked else self.biped.model.check_q(q)
        self._solver.set_upper_body(self._q)

    def restart(self, pelvis: ArrayLike | None = None) -> None:
        """Forgets the last point.

        Args:
            pelvis: (3,) m, where the next search starts; None: by the nominal posture.
        """
        self._solver.restart(
            None if pelvis is None else as_array("pelvis", pelvis, (3,))
        )

    def step(
        self,
        com: Array,
        feet: Array,
        R_pelvis: Array = UPRIGHT,
        tolerance: float = TOLERANCE,
    ) -> ComPoint:
        """Solves a point next to the last one; takes about a microsecond, hence without checks.

        Args:
            com: (3,) m, target in the world, float64.
            feet: (2, 3, 4) poses [R p] of the soles in the world, left and right, float64.
            R_pelvis: (3, 3) orientation of the pelvis in the world, float64.
            tolerance: m, largest distance of the CoM to its target.

        Returns:
            The solution, valid where its outcome is 0.
        """
        if self._coupled:
            path = self.solve_path(com[None], feet[None], R_pelvis[None], tolerance)
            values = np.concatenate((path.q[0], path.pelvis[0], path.errors))
            return ComPoint(values, int(path.outcomes[0]))
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
        """Solves a point without an initial guess, and explains what is not possible.

        Args:
            com: (3,) m, in the world.
            feet: (2, 3, 4) poses [R p] of the soles in the world, left and right.
            R_pelvis: (3, 3) orientation of the pelvis, the body from which both legs start, in
                the world; None: upright.
            tolerance: m (and rad), largest error.

        Returns:
            The solution, or the reason and the nearest CoM.

        Raises:
            ComModelError: R_pelvis, or the orientation of a foot, is not a rotation.
        """
        target = np.ascontiguousarray(as_array("com", com, (3,)))
        poses = np.ascontiguousarray(as_array("feet", feet, (2, 3, 4)))
        R = np.ascontiguousarray(
            as_rotation("R_pelvis", UPRIGHT if R_pelvis is None else R_pelvis)
        )
        if not (np.isfinite(target).all() and np.isfinite(poses).all()):
            return self._failed("the target is not finite", np.full(3, np.nan))
        for i, leg in enumerate(self.biped.legs):
            as_rotation(f"feet[{i}] ({leg.side})", poses[i, :, :3])
        if self._coupled:
            R = self.solve_path(target[None], poses[None], R[None], tolerance).R_pelvis[
                0
            ]
        legs, pelvis, reason, nearest = self._solver.search(target, poses, R, tolerance)
        if self._coupled and not reason and not abs(legs[0] - legs[JOINTS]) < _SAME:
            reason = "no yaw of the pelvis lets one drive move both hips"
        if reason:
            return self._failed(
                f"{reason}; {_describe_nearest(nearest, target)}", nearest
            )
        q = self.full(legs)
        R_root, p_root = self.biped.root_in_pelvis(q)
        return ComSolution(
            q, pelvis, R @ R_root, pelvis + R @ p_root, True, "", target.copy()
        )

    def solve_path(
        self,
        com: ArrayLike,
        feet: ArrayLike,
        R_pelvis: ArrayLike,
        tolerance: float = TOLERANCE,
    ) -> ComPath:
        """Solves the points of a path, each from the one before.

        Args:
            com: (N, 3) m.
            feet: (N, 2, 3, 4) poses of the soles.
            R_pelvis: (N, 3, 3) orientation of the pelvis.
            tolerance: m, of the CoM.

        Returns:
            The solutions, each valid where its outcome is 0.
        """
        targets, poses, R = check_points(com, feet, R_pelvis)
        values, outcomes = (
            empty((len(targets), 16)),
            empty(len(targets), dtype=np.int64),
        )

        def gap(yaw: Array) -> Array:
            self.restart()
            turned = _turned(R, yaw)
            self._solve_path(
                targets, turned, poses, self._robot, tolerance, values, outcomes
            )
            return np.asarray(values[:, 0] - values[:, JOINTS])

        yaw = np.zeros(len(R))
        if len(targets):
            away = gap(yaw)
            if self._coupled and np.abs(away).max() > TOLERANCE:
                yaw = _find_root(gap, yaw, away)
                away = values[:, 0] - values[:, JOINTS]
                outcomes[~(np.abs(away) < _SAME)] |= STALLED
        self.restart()
        return ComPath(
            values[:, :12], values[:, 12:15], values[:, 15], outcomes, _turned(R, yaw)
        )

    def solve_in_steps(
        self, com: ArrayLike, feet: ArrayLike, R_pelvis: ArrayLike, start: ArrayLike
    ) -> ComPath:
        """Solves a path by [CCGD] Table 2: the pelvis moves to its position in steps of 1 mm.

        Its accuracy is about half of that.

        Args:
            com: (N, 3) m.
            feet: (N, 2, 3, 4) poses of the soles.
            R_pelvis: (N, 3, 3) orientation of the pelvis.
            start: (3,) m, first position of the pelvis.

        Returns:
            The solutions, each valid where its outcome is 0.

        Raises:
            BipedError: the legs are not of the usual build.
        """
        if not self.closed or self._coupled:
            raise BipedError("[CCGD] cannot solve these legs: use the method exact")
        targets, poses, R = check_points(com, feet, R_pelvis)
        values, outcomes = (
            empty((len(targets), 16)),
            empty(len(targets), dtype=np.int64),
        )
        place = np.array(
            as_array("start", start, (3,))
        )  # writable: one type for the kernel
        pelvis_search.solve_in_steps(
            targets, R, poses, self._robot, place, values, outcomes
        )
        return ComPath(values[:, :12], values[:, 12:15], values[:, 15], outcomes, R)

    @cached_property
    def _solve_path(self) -> Callable[..., Any]:
        many = empty((0, 3)), empty((0, 3, 3)), empty((0, 2, 3, 4))
        result = empty((0, 16)), empty(0, dtype=np.int64)
        return entry_point(self._solver.solve_path, *many, self._robot, 0.0, *result)

    def full(self, legs: ArrayLike) -> Array:
        """All joints of the robot from those of the legs; the others keep their positions.

        Args:
            legs: (12,) or (N, 12) rad.

        Returns:
            (n,) or (N, n) rad or m.
        """
        angles = np.asarray(legs, dtype=float)
        whole = np.empty((*angles.shape[:-1], len(self._q)))
        whole[...] = self._q
        whole[..., self._joints] = angles[..., self._own]
        return whole

    def _failed(self, reason: str, nearest: Array) -> ComSolution:
        q, p = np.full(self.biped.model.n_joints, np.nan), np.full(3, np.nan)
        return ComSolution(
            q, p, np.full((3, 3), np.nan), p.copy(), False, reason, nearest
        )


def check_points(
    com: ArrayLike, feet: ArrayLike, R_pelvis: ArrayLike
) -> tuple[Array, Array, Array]:
    """Checks the shapes of N points.

    Args:
        com: (N, 3) m.
        feet: (N, 2, 3, 4) poses of the soles.
        R_pelvis: (N, 3, 3) orientation of the pelvis.

    Returns:
        The same as contiguous float64 arrays.

    Raises:
        ShapeError: a shape is wrong.
    """
    targets = np.ascontiguousarray(as_array("com", com, (None, 3)))
    n = len(targets)
    poses = np.ascontiguousarray(as_array("feet", feet, (n, 2, 3, 4)))
    return (
        targets,
        poses,
        np.ascontiguousarray(as_array("R_pelvis", R_pelvis, (n, 3, 3))),
    )


def _turned(R: Array, yaw: Array) -> Array:
    """Orientations R (N, 3, 3) rotated by (N,) rad about the world's z axis."""
    if not yaw.any():
        return R
    return np.ascontiguousarray(rotations_about(UP, yaw[:, None])[:, 0] @ R)


def _find_root(function: Callable[[Array], Array], x: Array, y: Array) -> Array:
    """Elementwise roots (N,) of a function by secants, from x with y = f(x)."""
    new = x + 1e-3
    for _ in range(8):
        last, y = y, function(new)
        steps, left = np.zeros(len(x)), (np.abs(y) > TOLERANCE) & (y != last)
        np.divide(y * (new - x), y - last, out=steps, where=left)
        x, new = new, new - steps
        if not left.any():
            break
    return x


def _describe_nearest(nearest: Array, target: Array) -> str:
    """Distance of the nearest reachable CoM (3,) m from the target, in words; NaN: none."""
    if not np.isfinite(nearest).all():
        return "no CoM can be reached with these feet"
    away = 1e3 * float(np.linalg.norm(nearest - target))
    return f"the nearest CoM that can be reached is {away:.3g} mm from the target"
