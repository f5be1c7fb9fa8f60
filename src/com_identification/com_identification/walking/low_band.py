"""The equations of the base of a walking robot, filtered to a low band, and their solution.

  sum_f W_f (h_f - tau_f + phi_f p) = Y_base pi     W_f phi_f p: rotors, friction, load friction

Of the gains of the torques those of legs against each other are estimated; their mean is 1, as all
of them free would choose half the mass. Friction and rotors are never negative. Where friction has
which direction is not known: s is a mixture of laws, another in each joint, see FrictionLaws.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.walking.fit import temperings
from com_identification.walking.kernels import MotionSamples
from com_identification.walking.log import (
    ConditionedLog,
    Gait,
    directions,
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


@dataclass(frozen=True)
class FrictionLaws:
    """The directions of friction, -1 to 1, that a drive's may be a mixture of.

    A drive slides at once, or winds up first, and neither is known beforehand. Without one of the
    two, robots with such drives are refused, or wrong in z by up to 3 cm (docs/real_data.md).

    Attributes:
        speeds: rad/s or m/s, of the laws tanh(velocity / speed), from a sharp sign to a soft one.
        turns: rad or m, by which a drive turns while its friction reverses (Dahl). Of a real Go2
            1 to 4 mrad explain most; steps by 2, as neighbours of a law cover what lies between.
    """

    speeds: tuple[float, ...] = (0.02, 0.2)
    turns: tuple[float, ...] = (0.00025, 0.0005, 0.001, 0.002, 0.004)

    def __len__(self) -> int:
        """The number of laws."""
        return len(self.speeds) + len(self.turns)

    def signs(self, motion: MotionSamples, period: float) -> Array:
        """Returns the directions (K, N, n) up to 20 Hz, by law.

        Args:
            motion: N samples of n joints.
            period: s, between samples.
        """
        qd = low_pass(motion.qd, 60.0, period)
        signs = [np.tanh(qd / speed) for speed in self.speeds]
        signs += [directions(motion.q, turn) for turn in self.turns]
        return np.array([low_pass(sign, 20.0, period) for sign in signs])


LAWS = FrictionLaws()


@dataclass(frozen=True, eq=False)
class BaseRows:
    """Unfiltered rows of a recording at about 100 Hz.

    Attributes:
        X: (N, 6, Q) N and N m, see BaseSolver.
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
        y: (Y,) the unknowns z, the delay of the torques in s, and parts of laws of friction.
        covariance: (Y, Y).
        information: (K, Q, Q) of K blocks whose errors are independent.
    """

    y: Array
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
    motion = smooth._replace(
        qdd=np.gradient(qd, period, axis=0),
        omega_dot=np.gradient(w, period, axis=0),
    )
    every = max(1, round(1.0 / (100.0 * period)))
    chosen = slice(0, len(qd) // every * every, every)
    x = ready.unknowns.coefficients(ready.unknowns.mean)
    X = np.empty((len(qd) // every, 6, len(x)))
    arrays = MotionSamples(*(np.ascontiguousarray(v) for v in motion))
    base_rows(robot, limbs, arrays, every, x, X)
    torques = X[:, :, ready.unknowns.gain_columns].sum(axis=2)
    late = np.gradient(torques, every * period, axis=0)
    signs = LAWS.signs(data.motion, period)[:, chosen]
    X = _with_laws(ready.unknowns, X, late, signs, motion.tau[chosen])
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


def _with_laws(u: Unknowns, X: Array, late: Array, signs: Array, tau: Array) -> Array:
    """Rows (N, 6, Q) with the columns of a delay and of K laws of friction; see BaseSolver.

    Args:
        u: the unknowns.
        X: (N, 6, P) rows.
        late: (N, 6) by a delay of the torques.
        signs: (K, N, n) directions of friction by the laws.
        tau: (N, n) N m.
    """
    n, gains = u.model.n_joints, u.gain_columns
    unit, columns = X[:, :, gains.stop : gains.stop + n], [X, late[:, :, None]]
    for size, end in ((np.ones_like(tau), 2 * n), (np.abs(tau), 0)):
        parts = unit * (signs * size)[:, :, None]
        own = slice(gains.start - end - n, gains.start - end)
        X[:, :, own] = parts.mean(axis=0)
        columns += list(parts - X[:, :, own])
    return np.concatenate(columns, axis=2)


class BaseSolver:
    """Solves rows in a band for the unknowns, with some of them fixed.

    Besides z these are the delay of the torques and, of Coulomb's and of load friction, how much
    of a joint's follows each of the K laws: all of them alike, plus a part that is added to one.
    No law is chosen; what they leave open is part of the covariance (Y, Y). Q columns are those of
    Unknowns, of the delay, and of the parts of Coulomb's and of load friction, K n each.

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
        # of weight, and of weight x 0.3 m
        self.size = np.array([0.1, 0.1, 0.15, 0.02, 0.03, 0.03]) * np.repeat(
            [weight, weight * ready.leg_length / 0.3], 3
        )
        self._cache: dict[float, tuple[Array, Indices]] = {}

    def filtered(self, band: float) -> tuple[Array, Indices]:
        """Filters the rows.

        Args:
            band: Hz, up to which the rows are kept.

        Returns:
            Rows (R, 6, Q) of independent samples, and their blocks (R,).
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

    def prior(self, inertials: bool = True) -> Array:
        """Returns a factor (Y, Y) of the prior's covariance.

        Args:
            inertials: whether masses are unknown.
        """
        u, n, limbs = self.unknowns, self.unknowns.model.n_joints, self.ready.limbs
        count = len(LAWS)
        std, laws = u.std.copy(), []
        tiny = 1e-4  # of the prior's standard deviation
        if not inertials:
            std[: u.joint_slice(FRICTIONS[0]).start] *= tiny
        starts = [u.joint_slice(kind).start for kind in FRICTIONS]
        for kind in ("coulomb", "load_friction"):
            own = u.joint_slice(kind)
            # the standard deviation of a share that is 1 for one of the laws, 0 for the others
            share = np.sqrt(count - 1.0) / count
            laws += [share * np.hypot(u.mean[own], std[own])] * count
            starts += [len(std) + 1 + (len(laws) - 1 - k) * n for k in range(count)]
        # s, of torques against the IMU
        std = np.concatenate([std, [0.004], *laws])
        correlation = np.eye(len(std))
        masses = PARAMETERS * (np.cumsum(u.bodies) - 1)
        alike = [masses[column[column >= 0]] for column in limbs.path.T]
        alike += [
            start + column[column >= 0] for start in starts for column in limbs.joints.T
        ]
        for same in alike:
            # friction and masses of the same parts of different legs are correlated by 0.9
            correlation[np.ix_(same, same)] += 0.9 * (1.0 - np.eye(len(same)))
        L, gains = std[:, None] * np.linalg.cholesky(correlation), u.joint_slice("gain")
        # those of a leg have their gain in common
        legs = (limbs.joints[:, :, None] == np.arange(n)).any(axis=1)
        own = LEG_GAIN * u.gain_directions.T @ legs.T
        least = (tiny * LEG_GAIN) ** 2 * np.eye(n - 1)
        L[gains, gains] = np.linalg.cholesky(own @ own.T + least)
        return np.asarray(L)

    @property
    def mean(self) -> Array:
        """(Y,) mean of the prior."""
        further = 1 + 2 * len(LAWS) * self.unknowns.model.n_joints
        return np.append(self.unknowns.mean, np.zeros(further))

    def coefficients(self, y: Array) -> tuple[Array, Array]:
        """Returns the coefficients (Q,) of all columns and their derivatives (Q, Y).

        Args:
            y: (Y,) the unknowns.
        """
        u, Z = self.unknowns, len(self.unknowns.mean)
        D = block_diag(u.jacobian(y[:Z]), np.eye(len(y) - Z))
        return np.append(u.coefficients(y[:Z]), y[Z:]), D

    def solve(
        self,
        X: Array,
        blocks: Indices,
        inertials: bool = True,
        size: Array | None = None,
    ) -> BaseFit:
        """Solves rows (R, 6, Q); friction and rotors are never negative.

        Args:
            X: independent rows.
            blocks: (R,) block of each row, whose errors are independent of those of others.
            inertials: whether masses are unknown.
            size: (6,) N and N m, standard deviations of the rows; None: those of the residuals.
        """
        known, size = size is not None, self.size if size is None else size
        u, L = self.unknowns, self.prior(inertials)
        never = np.arange(
            u.joint_slice(FRICTIONS[0]).start, u.joint_slice(FRICTIONS[-1]).stop
        )
        rows = X.transpose(1, 2, 0)
        squares = rows @ rows.transpose(0, 2, 1)  # (6, Q, Q)
        y = mean = self.mean
        for _ in range(3):
            (x, D), G = self.coefficients(y), np.tensordot(size**-2.0, squares, 1)
            M = D @ L
            H = M.T @ G @ M + np.eye(len(y))
            g = M.T @ (G @ (D @ (y - mean) - x))
            y = mean + L @ _bounded(H, g, L[never], mean[never])
            if known:
                continue
            x, _ = self.coefficients(y)
            rms = np.sqrt(np.maximum(squares @ x @ x, 0.0) / len(X))
            size = np.maximum(0.3 * size, rms)
        W = X / size[:, None]
        count = int(blocks.max(initial=0)) + 1
        information = np.zeros((count, X.shape[2], X.shape[2]))
        for k in range(count):
            own = W[blocks == k].reshape(-1, X.shape[2])
            information[k] = own.T @ own
        x, D = self.coefficients(y)
        M = D @ L
        tempering = max([1.0, *temperings(information, M, x)])
        H = np.eye(len(y)) + M.T @ information.sum(axis=0) @ M / tempering
        C = L @ np.linalg.solve(H, L.T)
        return BaseFit(y, (C + C.T) / 2.0, information / tempering)


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
