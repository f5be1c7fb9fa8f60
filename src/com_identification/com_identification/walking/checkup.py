"""Why a trotting robot leans or drifts: the base's equations of low_band, with a steady pull.

The unknowns are those of BaseSolver, of which the masses, gains, encoders and the IMU's mounting
have a factory's tolerances, a pull along two horizontal axes, and the mean gain of the legs. The
slope of the floor is no cause: the IMU sees how the trunk is inclined, and the feet only push.
Which joint's encoder is off forces hardly show, so none is named.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.linalg import block_diag

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.walking.causes import (
    GAIN,
    OFF_PULL,
    CheckUp,
    Evidence,
    compare,
    describe_size,
    factory_std,
    robot_causes,
    unknown_sides,
    wide,
)
from com_identification.walking.log import ConditionedLog, low_pass
from com_identification.walking.low_band import (
    BaseFit,
    BaseSolver,
    make_solver,
    prepare_walks,
)
from com_model import RobotConfig, RobotModel
from com_model.actuators import COMMON_GAIN
from com_model.arrays import Array

_PULLS = 2
# Of the information: errors of friction that its laws do not cover are those of all strides. Of 24
# simulated robots 3 were accused without it, 1 with 2, none with 4.
_TEMPERING = 4.0


class PulledSolver(BaseSolver):
    """BaseSolver with a steady outside pull on the trunk's CoM, the last two of y, N.

    Its axes are horizontal; the first is where the root's x pointed when the recording began.

    Args:
        solver: with the rows of the recordings.
    """

    def __init__(self, solver: BaseSolver) -> None:
        ready = solver.ready
        found = [
            replace(
                made,
                X=np.concatenate([made.X, _pulled(ready.model, data, made.X)], axis=2),
            )
            for data, made in zip(ready.data, solver.rows, strict=True)
        ]
        super().__init__(ready, found)

    def prior(self, inertials: bool = True) -> Array:
        """Returns a factor (Y, Y) of the prior's covariance.

        Args:
            inertials: whether masses are unknown.
        """
        return np.asarray(
            block_diag(super().prior(inertials), OFF_PULL * np.eye(_PULLS))
        )

    @property
    def mean(self) -> Array:
        """(Y,) mean of the prior."""
        return np.append(super().mean, np.zeros(_PULLS))


def _pulled(model: RobotModel, data: ConditionedLog, X: Array) -> Array:
    """Columns (N, 6, 2) of a pull of 1 N in the rows (N, 6, Q) of a recording."""
    motion = data.motion
    # up in the root's axes: a trot's accelerations are above 1 Hz
    up = low_pass(motion.force, 0.7, data.period)
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    ahead = np.array([1.0, 0.0, 0.0]) - up[:, :1] * up
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    turned = np.cumsum((motion.omega * up).sum(axis=1))[:, None] * data.period
    cos, sin = np.cos(turned), np.sin(turned)
    left = np.cross(up, ahead)
    force = np.stack([cos * ahead - sin * left, sin * ahead + cos * left], axis=2)
    heaviest = int(np.argmax(model.bodies.mass))
    com = model.bodies.first_moment[heaviest] / model.bodies.mass[heaviest]
    moment = np.cross(com[None, :, None], force, axis=1)
    every = len(motion.q) // len(X)
    return -np.concatenate([force, moment], axis=1)[::every][: len(X)]


def check_up_trot(
    logs: Sequence[WalkLog],
    model: RobotModel,
    config: RobotConfig,
    mass: float | None = None,
) -> CheckUp:
    """Finds why a trotting robot leans or drifts.

    Args:
        logs: trotting, with torques and an IMU; different gaits show more.
        model: as its URDF says, or as it was identified.
        config: its feet, drives and the IMU's link.
        mass: kg, weighed; None: unknown.

    Raises:
        WalkError: the recordings cannot be used; says why.
    """
    parts, ready = prepare_walks(logs, model, config)
    if not all(log.has_imu for log in parts):
        raise WalkError(
            "a check-up needs the IMU's angular velocity and specific force: record imu, too"
        )
    solver = PulledSolver(make_solver(ready, ready.data, True)[0])
    # the band in which a walk is judged
    X, blocks = solver.filtered(5.0)
    if blocks.max(initial=0) < 3:
        raise WalkError("the robot trots for less than 10 s: expected 30 s or more")
    u = solver.unknowns
    evidence = _evidence(solver, solver.solve(X, blocks))
    size, legs = len(evidence.g), np.flatnonzero(u.legs)
    if mass is not None:
        slope = np.zeros(size)
        slope[: len(u.mean)] = u.mass_direction(u.mean)
        change = float(np.log(mass / u.total_mass(u.mean)))
        evidence = evidence.weighed(slope, change)
    choices = robot_causes(u, size, legs)
    pulls = range(size - 1 - _PULLS, size - 1)
    choices["outside pull"] = [wide(size, dict.fromkeys(pulls, OFF_PULL))]
    names = {"torque scale": [ready.model.joint_names[j] for j in legs]}
    causes, none = compare(evidence, choices, names, partial(_describe, ready.model))
    J = np.zeros((2, size))
    J[:, : len(u.mean)] = u.com(u.mean, ready.posture)[1][:2]
    return CheckUp(
        causes,
        none,
        evidence.bound(np.hstack([*choices["payload"], *choices["torso CoM"]]), J),
        "let it sway on all feet (sway_tour) and check that, too",
    )


def _describe(model: RobotModel, kind: str, V: Array, change: Array) -> str:
    """The size of a cause in words."""
    if kind == "encoder zero":
        return "of a leg; which joint a sway on all feet tells"
    axes = "along x and y of where it looked at the beginning"
    return describe_size(model, axes, kind, V, change)


def _evidence(solver: PulledSolver, found: BaseFit) -> Evidence:
    """Information about y and the mean gain of the legs, about the prior's mean.

    Args:
        solver: of the recordings.
        found: its solution, whose residuals are the noise of the rows.
    """
    u = solver.unknowns
    information = found.information.sum(axis=0) / _TEMPERING
    x, D = solver.coefficients(solver.mean)
    gains = np.zeros(len(x))
    gains[u.gain_columns] = x[u.gain_columns]
    J = np.column_stack([D, gains])
    L = block_diag(solver.prior(), 0.0)
    std, own = factory_std(u), np.zeros(len(L), dtype=np.bool_)
    own[: u.joint_slice("armature").start] = True
    for kind in ("gain", "encoder_zero"):
        own[u.joint_slice(kind)] = True
    own[len(u.mean) - 3 : len(u.mean)] = True
    L[own] = 0.0
    factory = np.append(std, np.zeros(len(L) - len(std)))
    L[own, own] = factory[own]
    L[-1 - _PULLS : -1] *= 1e-4  # no outside pull
    n = u.model.n_joints
    L[-1, -1] = np.hypot(GAIN / np.sqrt(n), COMMON_GAIN)
    L = np.hstack([L, *unknown_sides(u, len(L))])
    return Evidence(J.T @ information @ J, -J.T @ (information @ x), L)
