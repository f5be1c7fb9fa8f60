"""The equations of the base of a walking robot, filtered to a low band, and their solution.

  sum_f W_f (h_f - tau_f + phi_f p) = Y_base pi     W_f phi_f p: rotors, friction, load friction

Gains of the torques are never free. Friction and rotors are never negative.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.walking.kernels import MotionSamples
from com_identification.walking.log import (
    ConditionedLog,
    Gait,
    find_gait,
    low_pass,
    walking_parts,
)
from com_identification.walking.preparation import PreparedWalk, carrying, prepare
from com_identification.walking.rows import base_rows, find_contacts
from com_identification.walking.unknowns import FRICTIONS, PARAMETERS, Unknowns
from com_model import RobotConfig, RobotModel
from com_model.actuators import LEG_GAIN
from com_model.arrays import Array, Flags, Indices
from com_model.dynamics import GRAVITY
from com_model.dynamics.tree_kernels import tree_of
from com_model.text import listing

_TYPICAL = np.array(
    [0.1, 0.1, 0.15, 0.02, 0.03, 0.03]
)  # of weight, and of weight x 0.3 m


@dataclass(frozen=True, eq=False)
class BaseRows:
    """Unfiltered rows of a recording at about 100 Hz.

    Attributes:
        X: (N, 6, P + 1) N and N m; the last column: by a delay of the torques.
        period: s.
        used: (N,) samples of a walk, carried by the feet, without gaps.
        gait: strides.
    """

    X: Array
    period: float
    used: Flags
    gait: Gait


@dataclass(frozen=True, eq=False)
class BaseFit:
    """A solution of the equations.

    Attributes:
        z: (Z + 1,) the unknowns; the last: s, delay of the torques.
        covariance: (Z + 1, Z + 1).
        information: (K, P + 1, P + 1) of K blocks whose errors are independent.
    """

    z: Array
    covariance: Array
    information: Array


def prepare_walks(
    logs: Sequence[WalkLog], model: RobotModel, config: RobotConfig
) -> tuple[list[WalkLog], PreparedWalk]:
    """Cuts recordings where the robot does not walk, and prepares the parts.

    Args:
        logs: recordings of walking.
        model: as its URDF says.
        config: its feet, drives and the IMU's link.

    Returns:
        Parts of 2 s or more, and what their rows need.

    Raises:
        WalkError: there are none, or they cannot be used; says why.
    """
    least = 2.0  # s
    parts = [part for log in logs for part in walking_parts(log, least)]
    if not parts:
        raise WalkError(
            "the robot never walks for 2 s: expected a recording of walking"
        )
    return parts, prepare(parts, model, config, least)


def make_solver(
    ready: PreparedWalk, data: Sequence[ConditionedLog], with_imu: bool
) -> tuple["BaseSolver", tuple[str, ...]]:
    """Makes the rows of recordings.

    Args:
        ready: what the recordings share.
        data: the recordings.
        with_imu: whether all have an IMU.

    Returns:
        Their solver, and what of them was left out, in words.
    """
    made = [_make_rows(ready, each, with_imu) for each in data]
    notes = tuple(note for _, note in made if note)
    return BaseSolver(ready, [rows for rows, _ in made]), notes


def _make_rows(
    ready: PreparedWalk, data: ConditionedLog, with_imu: bool
) -> tuple[BaseRows, str]:
    """Rows of a recording, and what of it was left out, in words.

    Without an IMU only steady strides count, in which the trunk does not accelerate on average;
    with one the equations hold in any walk.
    """
    robot, limbs, period = tree_of(ready.model.bodies), ready.limbs, data.period
    loads, _ = find_contacts(data, robot, limbs, ready.model.mass)
    gait = find_gait(data.motion.q[:, limbs.joints[limbs.joints >= 0]], period)
    carried = carrying(data, loads, ready.model.mass)
    smooth = MotionSamples(*(low_pass(v, 20.0, period) for v in data.motion))
    qd, w = smooth.qd, smooth.omega
    # rad/s: in a band of 20 Hz the direction of friction is smooth below that
    motion = smooth._replace(
        sign=np.tanh(qd / 0.2),
        qdd=np.gradient(qd, period, axis=0),
        omega_dot=np.gradient(w, period, axis=0),
    )
    every = max(1, round(1.0 / (100.0 * period)))
    chosen = slice(0, len(qd) // every * every, every)
    x = ready.unknowns.coefficients(ready.unknowns.mean)
    X = np.empty((len(qd) // every, 6, len(x) + 1))
    arrays = MotionSamples(*(np.ascontiguousarray(v) for v in motion))
    base_rows(robot, limbs, arrays, every, x, X[:, :, :-1])
    torques = X[:, :, ready.unknowns.gain_columns].sum(axis=2)
    X[:, :, -1] = np.gradient(torques, every * period, axis=0)
    walks = gait.walks if with_imu else gait.steady
    walks = walks if walks.mean() > 0.1 else np.ones_like(walks)
    what = (
        "the joints hardly move"
        if with_imu
        else "the motion does not repeat (standing, rising, slipping, turns)"
    )
    left = {"the feet do not carry the robot": ~carried, what: carried & ~walks}
    texts = [
        f"{period * v.sum():.1f} s in which {k}"
        for k, v in left.items()
        if v.sum() > 1.0 / period
    ]
    used = data.usable & carried & walks
    strided = gait.every(chosen)
    return BaseRows(
        X, every * period, used[chosen], strided
    ), f"left out: {listing(texts)}" if texts else ""


class BaseSolver:
    """Solves rows in a band for the unknowns, with some of them fixed.

    Args:
        ready: what the recordings share.
        rows: of each recording.

    Attributes:
        ready, rows: as given.
        unknowns: with their priors.
        size: (6,) N and N m, typical residuals.
    """

    def __init__(self, ready: PreparedWalk, rows: list[BaseRows]) -> None:
        self.ready, self.rows, self.unknowns = ready, rows, ready.unknowns
        weight = GRAVITY * ready.model.mass
        self.size = _TYPICAL * np.repeat([weight, weight * ready.leg_length / 0.3], 3)
        self._cache: dict[float, tuple[Array, Indices]] = {}

    def filtered(self, band: float) -> tuple[Array, Indices]:
        """Filters the rows.

        Args:
            band: Hz, up to which the rows are kept.

        Returns:
            Rows (R, 6, P + 1) of independent samples, and their blocks (R,).
        """
        if band not in self._cache:
            parts, blocks, since = [], [], 0
            for each in self.rows:
                step = max(1, round(1.0 / (2.0 * band * each.period)))
                flat = low_pass(each.X.reshape(len(each.X), -1), band, each.period)
                used = np.flatnonzero(each.used)[::step]
                parts.append(flat[used].reshape(-1, *each.X.shape[1:]))
                # errors of rows in blocks of 2 s are independent
                own = np.floor(used * each.period / 2.0).astype(int)
                blocks.append(since + np.unique(own, return_inverse=True)[1])
                since = int(blocks[-1].max(initial=since - 1)) + 1
            self._cache[band] = np.concatenate(parts), np.concatenate(blocks)
        return self._cache[band]

    def prior(self, biases: bool, inertials: bool) -> Array:
        """Returns a factor (Z + 1, Z + 1) of the prior's covariance; gains are fixed.

        Args:
            biases: whether torques have biases.
            inertials: whether masses are unknown.
        """
        u, n = self.unknowns, self.unknowns.model.n_joints
        # s, of torques against the IMU
        std = np.append(u.std, 0.004)
        tiny = 1e-4  # of the prior's standard deviation
        std[u.joint_slice("gain")] *= tiny
        if not biases:
            std[u.joint_slice("torque_bias")] *= tiny
        if not inertials:
            std[: u.joint_slice("armature").start] *= tiny
        correlation = np.eye(len(std))
        limbs, masses = self.ready.limbs, PARAMETERS * (np.cumsum(u.bodies) - 1)
        alike = [masses[column[column >= 0]] for column in limbs.path.T]
        for kind in FRICTIONS:
            own = np.arange(n) + u.joint_slice(kind).start
            alike += [own[column[column >= 0]] for column in limbs.joints.T]
        for same in alike:
            # friction and masses of the same parts of different legs are correlated by 0.9
            correlation[np.ix_(same, same)] += 0.9 * (1.0 - np.eye(len(same)))
        return np.asarray(std[:, None] * np.linalg.cholesky(correlation))

    def solve(
        self,
        X: Array,
        blocks: Indices,
        biases: bool = True,
        inertials: bool = True,
        size: Array | None = None,
    ) -> BaseFit:
        """Solves rows (R, 6, P + 1); friction and rotors are never negative.

        Args:
            X: independent rows.
            blocks: (R,) block of each row, whose errors are independent of those of others.
            biases: whether torques have biases.
            inertials: whether masses are unknown.
            size: (6,) N and N m, standard deviations of the rows; None: those of the residuals.
        """
        known, size = size is not None, self.size if size is None else size
        u, L = self.unknowns, self.prior(biases, inertials)
        never = np.arange(
            u.joint_slice(FRICTIONS[0]).start, u.joint_slice(FRICTIONS[-1]).stop
        )
        mean, z = np.append(u.mean, 0.0), np.append(u.mean, 0.0)
        for _ in range(3):
            D = block_diag(u.jacobian(z[:-1]), 1.0)
            x = np.append(u.coefficients(z[:-1]), z[-1])
            A = (X / size[:, None]) @ D
            y = A @ z - (X @ x) / size
            M = (A @ L).reshape(-1, len(z))
            H, g = M.T @ M + np.eye(len(z)), M.T @ (y - A @ mean).ravel()
            z = mean + L @ _bounded(H, g, L[never], mean[never])
            if known:
                continue
            residual = (X @ np.append(u.coefficients(z[:-1]), z[-1])) / size
            size = size * np.maximum(0.3, np.sqrt((residual**2).mean(axis=0)))
        W = X / size[:, None]
        count = int(blocks.max(initial=0)) + 1
        information = np.zeros((count, X.shape[2], X.shape[2]))
        for k in range(count):
            own = W[blocks == k].reshape(-1, X.shape[2])
            information[k] = own.T @ own
        D, x = (
            block_diag(u.jacobian(z[:-1]), 1.0) @ L,
            np.append(u.coefficients(z[:-1]), z[-1]),
        )
        values, axes = np.linalg.eigh(D.T @ information.sum(axis=0) @ D)
        scores = (information @ x) @ D @ axes[:, values > 10.0]
        scores -= scores.mean(axis=0)
        ratio = (scores**2).sum(axis=0) / values[values > 10.0]
        tempering = max(1.0, float(ratio.mean()) if len(ratio) else 1.0)
        H = np.eye(len(z)) + D.T @ information.sum(axis=0) @ D / tempering
        C = L @ np.linalg.solve(H, L.T)
        return BaseFit(z, (C + C.T) / 2.0, information / tempering)

    def gain_errors(self, found: BaseFit) -> Array:
        """Returns how far z moves, (Z + 1, legs), by one standard deviation of each leg's gain.

        Args:
            found: the solution.
        """
        u, joints = self.unknowns, self.ready.limbs.joints
        D = block_diag(u.jacobian(found.z[:-1]), 1.0)
        H = D.T @ found.information.sum(axis=0)
        columns = np.zeros((H.shape[1], len(joints)))
        for c, own in enumerate(joints):
            columns[u.gain_columns.start + own[own >= 0], c] = LEG_GAIN
        return np.asarray(
            -found.covariance @ H @ (columns - columns.mean(axis=1)[:, None])
        )


def trunk_values(u: Unknowns, z: Array) -> tuple[Array, Array]:
    """Returns mass of the robot, kg, and CoM of the trunk, m, root axes, and their derivatives.

    Args:
        u: the unknowns.
        z: (Z,) the estimate.

    Returns:
        (4,) and (4, Z).
    """
    theta, slopes = u.theta(z), np.zeros((4, len(z)))
    mass, com = theta[0, 0], theta[0, 1:4] / theta[0, 0]
    D = u.jacobian(z)
    slopes[0] = u.total_mass(z) * u.mass_direction(z)
    slopes[1:] = (D[1:4] - com[:, None] * D[0]) / mass
    return np.append(u.total_mass(z), com), slopes


def _bounded(H: Array, g: Array, rows: Array, mean: Array) -> Array:
    """Minimises w^T H w / 2 - g^T w with mean + rows w >= 0, those below in turn set to 0."""
    fixed = np.zeros(len(rows), dtype=np.bool_)
    free = w = np.linalg.solve(H, g)
    for _ in range(5):
        below = mean + rows @ w < -1e-9
        if not (below & ~fixed).any():
            break
        fixed |= below
        B = rows[fixed]
        K = np.linalg.solve(H, B.T)
        S = B @ K + 1e-12 * np.eye(len(B))
        w = free - K @ np.linalg.solve(S, B @ free + mean[fixed])
    return np.asarray(w)
