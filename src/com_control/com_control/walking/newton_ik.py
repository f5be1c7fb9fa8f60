"""Inverse kinematics of the CoM for any legs: Newton's method on pelvis and legs together.

Unknown are the pelvis' position t and the twelve joints of the legs; given are both soles' poses
and the CoM: fifteen equations. In the pelvis' axes, with J_i the Jacobian of sole i, K_i that of
the CoM by its leg's joints, e_i the error of the sole's pose and c that of the CoM:

  dq_i = J_i^-1 (e_i - [dt; 0])
  (1 - sum of K_i J_i^-1 [1; 0]) dt = c - sum of K_i J_i^-1 e_i

so that two systems of six and one of three are solved, not one of fifteen. Solver is what this
method and com_ik.ClosedFormSolver share.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from com_control.walking.biped import LIMIT_TOLERANCE, Biped, pack_leg, sole_pose
from com_control.walking.leg_ik import (
    LEG,
    column,
    fill_jacobian,
    pass_joint,
    pose_error,
    rows,
    scale,
    solve_damped,
    solve_three,
    vector,
)
from com_control.walking.pelvis_map import CONVERGED, LIMITED, STALLED
from com_model.arrays import Array, Indices
from com_model.compiled import compiled, entry_point
from com_model.dynamics.link_frames import LinkFrames
from com_model.geometry.vector_kernels import (
    Vector,
    add,
    cross,
    dot,
    row,
    sub,
    turned,
    turned_back,
)
from com_model.sesc import kernels
from com_model.sesc.sesc import pack

Record = Any  # an element of an array of ROBOT or LEG

ROBOT = np.dtype(
    [
        ("legs", LEG, 2),  # left, right
        (
            "upper_moment",
            "f8",
            3,
        ),  # of all but the legs in the pelvis' frame, over the mass, m
        ("nominal", "f8", 12),  # joints of the legs, rad
        ("soles", "f8", 3),  # middle of the soles then, in the pelvis' frame, m
        (
            "state",
            "f8",
            (2, 15),
        ),  # position of the pelvis (m) and joints (rad): next, last point
        ("warm", "i8"),  # 0: the next search starts from the nominal posture
    ]
)


class Target(NamedTuple):
    """Target of a point, in the world.

    Attributes:
        com: (3,) m.
        R_pelvis: (3, 3) orientation of the pelvis.
        feet: (2, 3, 4) poses of the soles.
    """

    com: Array
    R_pelvis: Array
    feet: Array


class Linearization(NamedTuple):
    """Errors of a state and their Jacobians, in the pelvis' axes.

    Attributes:
        J: (2, 6, 6) of the soles' poses by their legs' joints.
        K: (2, 3, 6) of the CoM by the legs' joints, m/rad.
        errors: (15,) m and rad, of both soles' poses, then of the CoM.
    """

    J: Array
    K: Array
    errors: Array


@njit
def make_linearization() -> Linearization:
    """Allocates a linearization."""
    return Linearization(np.empty((2, 6, 6)), np.empty((2, 3, 6)), np.empty(15))


@njit
def find_masses(
    leg: Record, q: Array, R: Array, p: Array, lines: Array, columns: Array
) -> Vector:
    """Computes pose, mass moment and CoM Jacobian of a leg.

    Args:
        leg: of the robot, with masses over the robot's mass.
        q: (6,) rad.
        R: (3, 3) orientation of the sole, set.
        p: (3,) m, position of the sole, set.
        lines: (12, 3) axes, then points, of the joints, set.
        columns: (3, 6) derivatives of the CoM by the joints, m/rad, set.

    Returns:
        The leg's first moment over the robot's mass, m, pelvis' frame.
    """
    M, t = np.eye(3), (0.0, 0.0, 0.0)
    for i in range(6):
        t = pass_joint(leg, i, q[i], M, t, lines)
        own = add(turned(M, row(leg.moments, i)), scale(leg.masses[i], t))
        columns[0, i], columns[1, i], columns[2, i] = own
    for j in range(3):
        R[0, j], R[1, j], R[2, j] = turned(M, column(leg.R_sole, j))
    p[0], p[1], p[2] = add(turned(M, vector(leg.p_sole)), t)
    moment, mass = (0.0, 0.0, 0.0), 0.0
    for i in range(5, -1, -1):  # what joint i carries, from the foot upwards
        moment, mass = add(moment, column(columns, i)), mass + leg.masses[i]
        arm = sub(moment, scale(mass, row(lines, 6 + i)))
        columns[0, i], columns[1, i], columns[2, i] = cross(row(lines, i), arm)
    return moment


@compiled()
def linearize(robot: Record, target: Target, state: Array, out: Linearization) -> float:
    """Errors of a state, and their derivatives.

    Args:
        robot: constants of the robot.
        target: CoM, feet and pelvis' orientation.
        state: (15,) pelvis' position (m) and the joints (rad).
        out: set.

    Returns:
        The norm of the errors.
    """
    sole_R, sole_p, lines = np.empty((3, 3)), np.empty(3), np.empty((12, 3))
    t, q, errors, R = state[:3], state[3:], out.errors, target.R_pelvis
    wanted_R, wanted_p = np.empty((3, 3)), np.empty(3)
    com = vector(robot.upper_moment)
    total = 0.0
    for i in range(2):
        own = q[6 * i : 6 * i + 6]
        com = add(com, find_masses(robot.legs[i], own, sole_R, sole_p, lines, out.K[i]))
        fill_jacobian(lines, sole_p, out.J[i])
        foot = target.feet[i]
        for j in range(3):
            wanted_R[0, j], wanted_R[1, j], wanted_R[2, j] = turned_back(
                R, column(foot, j)
            )
        wanted_p[0], wanted_p[1], wanted_p[2] = turned_back(R, sub(column(foot, 3), t))
        size = pose_error(wanted_R, wanted_p, sole_R, sole_p, errors[6 * i : 6 * i + 6])
        total += size * size
    rest = sub(turned_back(R, sub(target.com, t)), com)
    errors[12], errors[13], errors[14] = rest
    return np.sqrt(total + dot(rest, rest))


@njit
def find_step(linear: Linearization, damping: float, step: Array) -> None:
    """Sets step to a damped Newton step.

    Args:
        linear: errors and Jacobians.
        damping: of the normal equations.
        step: (15,) set: the pelvis' in its own axes (m), then the joints' (rad).
    """
    J, K, errors = linear
    # A: the system of three, its right-hand side
    A, X = np.zeros((3, 4)), np.zeros((2, 6, 4))
    for k in range(3):
        A[k, k], A[k, 3], X[:, k, k] = 1.0 + damping, errors[12 + k], 1.0
    for i in range(2):
        X[i, :, 3] = errors[6 * i : 6 * i + 6]
        solve_damped(J[i], damping, X[i])
        for line in range(3):
            for j in range(4):
                for k in range(6):
                    A[line, j] -= K[i, line, k] * X[i, k, j]
    solve_three(A, A[:, 3], step[:3])
    for i in range(2):
        for k in range(6):
            step[3 + 6 * i + k] = X[i, k, 3] - dot(X[i, k], step)


@compiled()
def find_state(robot: Record, target: Target, tolerance: float, state: Array) -> float:
    """Finds pelvis and legs by damped Newton steps.

    Args:
        robot: constants of the robot.
        target: CoM, feet and pelvis' orientation.
        tolerance: m and rad, norm of all errors.
        state: (15,) initial guess of the pelvis' position (m) and the joints (rad); overwritten.

    Returns:
        The norm of the errors that remain.
    """
    now, new = make_linearization(), make_linearization()
    step, trial, R = np.empty(15), np.empty(15), rows(target.R_pelvis)
    size = linearize(robot, target, state, now)
    damping = 1e-14
    most = 0.4  # rad or m, longest step
    for _ in range(60):
        if not size > tolerance:
            break
        find_step(now, damping, step)
        longest = np.max(np.abs(step))
        if longest > most:
            step *= most / longest
        step[0], step[1], step[2] = turned(R, vector(step))
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


@njit
def predict_state(states: Array) -> None:
    """Predicts the next point by linear extrapolation; after a jump it is the last point.

    Args:
        states: (2, 15) the last point and the one before; overwritten by prediction and last
            point.
    """
    farthest = 0.0
    for k in range(15):
        farthest = max(farthest, abs(states[0, k] - states[1, k]))
    for k in range(15):
        last = states[0, k]
        # rad or m, between two points of a path that is not smooth
        if farthest < 0.05:
            states[0, k] += last - states[1, k]
        states[1, k] = last


@njit
def reset_state(robot: Record, R: Array, feet: Array) -> None:
    """Sets the state to the nominal posture over the feet.

    Args:
        robot: whose state is set.
        R: (3, 3) orientation of the pelvis.
        feet: (2, 3, 4) poses of the soles.
    """
    for k in range(3):
        robot.state[:, k] = 0.5 * (feet[0, k, 3] + feet[1, k, 3]) - dot(
            R[k], robot.soles
        )
    robot.state[:, 3:] = robot.nominal


@compiled()
def solve_one(
    com: Array, R: Array, feet: Array, robots: Array, tolerance: float, values: Array
) -> int:
    """Solves a point next to the last one; see pelvis_search.solve_one.

    Args:
        com: (3,) m, target in the world.
        R: (3, 3) orientation of the pelvis.
        feet: (2, 3, 4) poses of the soles.
        robots: (1,) of ROBOT; its state is overwritten.
        tolerance: m and rad.
        values: (16,) set to the legs' angles, the pelvis' position, and the size of the errors.

    Returns:
        The outcome.
    """
    robot = robots[0]
    if robot.warm == 0:
        reset_state(robot, R, feet)
    predict_state(robot.state)
    state = robot.state[0]
    error = find_state(robot, Target(com, R, feet), tolerance, state)
    outcome = CONVERGED if error <= tolerance else STALLED
    for i in range(12):
        leg, q = robot.legs[i // 6], state[3 + i]
        low, high = (
            leg.lower[i % 6] - LIMIT_TOLERANCE,
            leg.upper[i % 6] + LIMIT_TOLERANCE,
        )
        if not low <= q <= high:
            outcome |= LIMITED << (4 * (i // 6))
    values[:12], values[12:15], values[15] = state[3:], state[:3], error
    robot.warm = 1 if outcome == 0 else 0
    return outcome


@compiled(nogil=True)
def solve_path(
    com: Array,
    R: Array,
    feet: Array,
    robots: Array,
    tolerance: float,
    values: Array,
    outcomes: Indices,
) -> None:
    """Solves N points one after the other, as solve_one.

    Args:
        com: (N, 3) m.
        R: (N, 3, 3).
        feet: (N, 2, 3, 4).
        robots: (1,) of ROBOT; its state is overwritten.
        tolerance: m and rad.
        values: (N, 16), set.
        outcomes: (N,), set.
    """
    for i in range(len(com)):
        outcomes[i] = solve_one(com[i], R[i], feet[i], robots, tolerance, values[i])


# Of a search without an initial guess: the legs' angles (12,) rad, the pelvis' position (3,) m, why
# this is no solution ("": it is one), and the nearest CoM that can be reached (3,) m, NaN: none.
SearchResult = tuple[Array, Array, str, Array]


class Solver:
    """What both methods share: limits of the legs, and the upper body, which is nominal at first.

    Args:
        biped: the robot.
        robot: (1,) record that its kernels read and write, including upper_moment (3,) m: of all
            but the legs in the pelvis' frame, over the robot's mass.

    Attributes:
        robot: as given.
    """

    def __init__(self, biped: Biped, robot: Any) -> None:
        self._biped, self.robot = biped, robot
        model, self._moment = biped.model, robot["upper_moment"][0]
        legs = biped.legs
        joints = np.concatenate([leg.joints for leg in legs])
        self._lower, self._upper, self._nominal = (  # (12,) rad
            np.concatenate([getattr(leg, name) for leg in legs])
            for name in ("lower", "upper", "nominal")
        )
        self._leg_moment = (
            np.sum([leg.moments.sum(axis=0) for leg in legs], 0) / model.mass
        )
        self._arguments = pack(model.bodies), joints, self._leg_moment, self._moment
        self._find_moment = entry_point(find_moment, np.empty(0), *self._arguments)
        pelvis = [model.bodies.names[biped.pelvis]]
        self._pelvis = LinkFrames(model, pelvis) if biped.pelvis else None
        self.set_upper_body(biped.posture.copy())

    def set_upper_body(self, q: Array) -> None:
        """Sets the joints that are not of the legs; microseconds, hence no checks.

        Args:
            q: (n,) rad or m.
        """
        self._find_moment(q, *self._arguments)
        if self._pelvis is not None:
            (R,), (p,) = self._pelvis.poses(q)
            com = self._moment + self._leg_moment
            self._moment[:] = R.T @ (com - p) - self._leg_moment


@compiled()
def find_moment(
    q: Array, robot: Array, legs: Indices, leg_moment: Array, moment: Array
) -> None:
    """Sets moment to that of all but the legs about the root's origin, over the robot's mass.

    It is the CoM with the legs at their zero pose, by the statically equivalent serial chain,
    minus the legs' part there.

    Args:
        q: (n,) rad or m.
        robot: packed by com_model.sesc; its last rows are overwritten.
        legs: (12,) indices of the legs' joints in q.
        leg_moment: (3,) m, of the legs in the zero pose over the robot's mass.
        moment: (3,) m, set.
    """
    zero = q.copy()
    for i in legs:
        zero[i] = 0.0
    kernels.keep_root(robot)
    kernels.find_com(zero, robot, moment)
    for i in range(3):
        moment[i] -= leg_moment[i]


class NewtonSolver(Solver):
    """Finds pelvis and legs by Newton's steps on both.

    Args:
        biped: the robot.
    """

    solve_one, solve_path = staticmethod(solve_one), staticmethod(solve_path)

    def __init__(self, biped: Biped) -> None:
        robot = np.zeros(1, ROBOT)
        super().__init__(biped, robot)
        for i, leg in enumerate(biped.legs):
            packed = robot["legs"][0, i : i + 1]
            packed[:] = pack_leg(leg)
            packed["masses"] /= biped.model.mass
            packed["moments"] /= biped.model.mass
            robot["soles"] += 0.5 * sole_pose(leg, leg.nominal)[1]
        robot["nominal"] = self._nominal

    def restart(self, pelvis: Array | None) -> None:
        """Forgets the last point.

        Args:
            pelvis: (3,) m, where the next search starts; None: by the nominal posture.
        """
        self.robot["warm"] = pelvis is not None
        if pelvis is not None:
            self.robot["state"] = np.concatenate((pelvis, self._nominal))

    def search(
        self, com: Array, feet: Array, R: Array, tolerance: float
    ) -> SearchResult:
        """Newton's steps from the last solution, from the nominal posture, and from random ones.

        Args:
            com: (3,) m, target in the world.
            feet: (2, 3, 4) poses of the soles in the world.
            R: (3, 3) orientation of the pelvis.
            tolerance: m and rad.

        Returns:
            The solution, or the reason and the nearest CoM.
        """
        best, problem = np.inf, ""
        starts = self._starts(feet, R)
        middle = 0.5 * (self._lower + self._upper)
        near = np.where(np.isfinite(middle), middle, 0.0)
        for start in starts:
            state = start.copy()
            error = float(
                find_state(self.robot[0], Target(com, R, feet), tolerance, state)
            )
            best, q = min(best, error), state[3:]
            q[:] = near + np.remainder(q - near + np.pi, 2.0 * np.pi) - np.pi
            if error <= tolerance:
                sides = zip(self._biped.legs, (q[:6], q[6:]), strict=True)
                problem = "; ".join(
                    filter(None, (leg.limit_problem(own) for leg, own in sides))
                )
                if not problem:
                    self.robot["state"], self.robot["warm"] = state, 1
                    return q, state[:3], "", com
        self.robot["warm"] = 0
        stalled = f"feet and CoM come no nearer than {best:.3g} m to their targets"
        rest = self._errors(com, feet, R)(self.find_nearest(com, feet, R))
        # m and rad, error of the soles at the nearest CoM
        met = np.abs(rest[:12]).max() <= 1e-7
        nearest = com - R @ rest[12:] if met else np.full(3, np.nan)
        return self._nominal, starts[0][:3], problem or stalled, nearest

    def _starts(self, feet: Array, R: Array) -> list[Array]:
        pelvis = feet[:, :, 3].mean(axis=0) - R @ self.robot["soles"][0]
        rng = np.random.default_rng(0)
        others = []
        for _ in range(6):
            q = np.clip(
                self._nominal + rng.uniform(-0.4, 0.4, 12), self._lower, self._upper
            )
            others.append(np.concatenate((pelvis + rng.uniform(-0.05, 0.05, 3), q)))
        last = [self.robot["state"][0, 0].copy()] * int(self.robot["warm"][0])
        return [*last, np.concatenate((pelvis, self._nominal)), *others]

    def _errors(self, target: Array, feet: Array, R: Array) -> Callable[[Array], Array]:
        """Function of the errors (15,) by the state (15,)."""
        out = make_linearization()

        def errors(state: Array) -> Array:
            linearize(self.robot[0], Target(target, R, feet), state, out)
            return out.errors.copy()

        return errors

    def find_nearest(self, target: Array, feet: Array, R: Array) -> Array:
        """Finds the state with both soles in their poses whose CoM is nearest to the target.

        Args:
            target: (3,) m, CoM in the world.
            feet: (2, 3, 4) poses of the soles in the world.
            R: (3, 3) orientation of the pelvis.

        Returns:
            (15,) pelvis' position, m, and the joints, rad.
        """
        from scipy.optimize import minimize  # a fifth of a second, at each node's start

        errors = self._errors(target, feet, R)

        def cost(state: Array) -> float:
            away = errors(state)[12:]
            return 100.0 * float(away @ away)

        found = minimize(
            cost,
            self._starts(feet, R)[0],
            method="SLSQP",
            bounds=[(None, None)] * 3
            + list(zip(self._lower, self._upper, strict=True)),
            constraints={"type": "eq", "fun": lambda state: errors(state)[:12]},
            options={"ftol": 1e-12, "maxiter": 300},
        )
        return np.asarray(found.x)
