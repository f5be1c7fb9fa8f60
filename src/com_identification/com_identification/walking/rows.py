"""From recordings to rows: contacts, windows, the whitened design matrix of a walk.

The kernels eliminate the forces on the feet, sum and whiten.

With D x, T_b and T_l of kernels:

  base rows    [D_b - sum_c A_c D_l] x = 0,   A_c = T_b T_l^-1,   c the feet that may touch
  joint rows   D_j x = 0                      joints of legs surely in the air, and of no leg

summed over test functions sin^2 of a window. A foot that is in the air but counted as touching
costs rows and causes no error; the reverse ruins the fit. If a leg has fewer joints than its
foot's wrench has components, some components cause no torque; base rows along those get a large
variance.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.ndimage import minimum_filter1d

from com_identification.walking.kernels import (
    EquationNoise,
    LegChains,
    MotionSamples,
    foot_loads,
    generalised_rows,
)
from com_identification.walking.log import FORCE_CUTOFF, ConditionedLog, low_pass
from com_identification.walking.unknowns import BLOCK, DesignMatrix, FootLoads
from com_model.arrays import Array, Flags, Indices
from com_model.compiled import compiled
from com_model.contact import LIGHT_LOAD
from com_model.dynamics import GRAVITY
from com_model.dynamics.tree_kernels import Tree


class Windows(NamedTuple):
    """W windows of 2 * half samples, each beginning `half` after the one before.

    Attributes:
        start: (W,) first sample; -1: not used.
        half: samples.
        touching: (W, L) whether each foot may be in contact.
        used: (W, n) joints with their own rows.
        row: (W,) first of its rows.
    """

    start: Indices
    half: int
    touching: Array
    used: Array
    row: Indices


@njit
def _project(
    limbs: LegChains,
    touching: Array,
    rows: tuple[Array, Array, Array],
    variances: Array,
    projected: tuple[Array, Array],
) -> None:
    """Sets the base's rows (6, P) without the touching feet, and their covariance (6, 6)."""
    (D, A, B), (base, covariance) = rows, projected
    base[:], covariance[:] = D[:6], np.diag(variances[:6])
    for c in np.flatnonzero(touching):
        for j in range(limbs.joint_count[c]):
            own = 6 + limbs.joints[c, j]
            for i in range(6):
                a = A[c, i, j]
                for p in range(D.shape[1]):
                    base[i, p] -= a * D[own, p]
                for m in range(6):
                    covariance[i, m] += a * A[c, m, j] * variances[own]
        # N^2 or (N m)^2, variance of wrench components that cause no torque in a leg
        covariance += 1e8 * (B[c] @ B[c].T)


@njit
def _add(
    weight: float,
    used: Array,
    D: Array,
    variances: Array,
    projected: tuple[Array, Array],
    sums: tuple[Array, Array],
) -> None:
    """Adds a sample's rows to a window's sum (6 + n, P) and covariance (6 + n, 6)."""
    (base, own), (total, covariance) = projected, sums
    covariance[:6] += weight * own
    for i in range(6 + len(used)):
        source = base[i] if i < 6 else D[i]
        if i < 6 or used[i - 6]:
            for p in range(D.shape[1]):
                total[i, p] += weight * source[p]
        if i >= 6:
            covariance[i, 0] += weight * variances[i]


@njit
def _write(total: Array, covariance: Array, used: Array, X: Array) -> None:
    """Whitens a window's rows into X (R, P): first those of the base."""
    X[:6] = np.linalg.solve(np.linalg.cholesky(covariance[:6]), total[:6])
    row = 6
    for j in range(len(used)):
        if used[j]:
            X[row] = total[6 + j] / np.sqrt(covariance[6 + j, 0])
            row += 1


@compiled(nogil=True)
def window_rows(
    robot: Tree,
    limbs: LegChains,
    motion: MotionSamples,
    noise: EquationNoise,
    windows: Windows,
    every: int,
    x: Array,
    X: Array,
) -> None:
    """Computes the whitened rows of all windows.

    Args:
        robot: bodies and joints; see generalised_rows.
        limbs: its L legs.
        motion: N samples.
        noise: of the equations.
        windows: of the recording.
        every: one of so many samples is used.
        x: (P,) coefficients; see generalised_rows.
        X: (R, P) set.
    """
    n, L, half = motion.q.shape[1], len(limbs.body), windows.half
    width, count = 6 + n, len(windows.start)
    sums = np.zeros((2, width, X.shape[1]))
    D, projected = (
        np.zeros((width, X.shape[1])),
        (np.empty((6, X.shape[1])), np.empty((6, 6))),
    )
    rows = D, np.zeros((L, 6, limbs.joints.shape[1])), np.zeros((L, 6, 6))
    covariances, variances = np.zeros((2, width, 6)), np.empty(width)
    variances[:3], variances[3:6] = noise.force**2, noise.moment**2
    scale = every / half  # sin^2 sums to half the samples
    for w in range(count):
        if windows.start[w] < 0:
            continue
        old, new = w % 2, 1 - w % 2  # this window's sums and those of the next
        follows = w + 1 < count and windows.start[w + 1] == windows.start[w] + half
        preceded = w > 0 and windows.start[w - 1] == windows.start[w] - half
        if not preceded:
            sums[old], covariances[old] = 0.0, 0.0
        sums[new], covariances[new] = 0.0, 0.0
        touching = windows.touching[w]
        both = touching | windows.touching[w + 1] if follows else touching
        for i in range(half if preceded else 0, 2 * half, every):
            k = windows.start[w] + i
            generalised_rows(robot, limbs, motion, k, both, x, rows)
            for j in range(n):
                s = motion.sign[k, j]
                variances[6 + j] = noise.joint[j] ** 2 + noise.reversal[j] ** 2 * (
                    1.0 - s * s
                )
            weight = scale * np.sin(np.pi * i / (2 * half)) ** 2
            _project(limbs, touching, rows, variances, projected)
            own = sums[old], covariances[old]
            _add(weight, windows.used[w], D, variances, projected, own)
            if follows and i >= half:
                weight = scale * np.sin(np.pi * (i - half) / (2 * half)) ** 2
                if (windows.touching[w + 1] != touching).any():
                    _project(limbs, windows.touching[w + 1], rows, variances, projected)
                own = sums[new], covariances[new]
                _add(weight, windows.used[w + 1], D, variances, projected, own)
        end = windows.row[w] + 6 + windows.used[w].sum()
        _write(sums[old], covariances[old], windows.used[w], X[windows.row[w] : end])


@compiled(nogil=True)
def base_rows(
    robot: Tree, limbs: LegChains, motion: MotionSamples, every: int, x: Array, X: Array
) -> None:
    """Computes the base's rows of single samples, all feet eliminated; one in the air has no force.

    Args:
        robot: bodies and joints; see generalised_rows.
        limbs: its L legs.
        motion: N samples.
        every: one of so many samples is used.
        x: (P,) coefficients; see generalised_rows.
        X: (N / every, 6, P) N and N m, set.
    """
    n, L = motion.q.shape[1], len(limbs.body)
    D, touching = np.zeros((6 + n, X.shape[2])), np.ones(L) > 0.0
    rows = D, np.zeros((L, 6, limbs.joints.shape[1])), np.zeros((L, 6, 6))
    variances, projected = np.ones(6 + n), (np.empty((6, X.shape[2])), np.empty((6, 6)))
    for i in range(len(X)):
        generalised_rows(robot, limbs, motion, i * every, touching, x, rows)
        _project(limbs, touching, rows, variances, projected)  # type: ignore[arg-type]
        X[i] = projected[0]


def find_contacts(
    data: ConditionedLog, robot: Tree, limbs: LegChains, mass: float
) -> FootLoads:
    """Estimates the loads of the feet, and which feet are surely in the air.

    Args:
        data: a recording of N samples.
        robot: with the current parameters.
        limbs: its L legs.
        mass: kg, of the robot.

    Returns:
        (N, L) N along the ground's normal, and (N, L).
    """
    shape = len(data.motion.q), len(limbs.body)
    loads, heights = np.empty(shape), np.empty(shape)
    foot_loads(robot, limbs, data.motion, loads, heights)
    loads = low_pass(loads, FORCE_CUTOFF, data.period)
    light = loads < LIGHT_LOAD * mass * GRAVITY
    # 1 cm over the lowest foot
    high = heights - heights.min(axis=1, keepdims=True) > 0.01
    # s, to the nearest doubt about a foot in the air
    reach = 2 * round(0.024 / data.period) + 1
    sure = minimum_filter1d((light & high).astype(np.uint8), reach, axis=0)
    return loads, sure.astype(np.bool_)


def make_rows(
    logs: Sequence[ConditionedLog],
    contacts: Sequence[FootLoads],
    robot: Tree,
    limbs: LegChains,
    noise: EquationNoise,
    measured: Flags,
    x: Array,
) -> DesignMatrix:
    """Makes the whitened rows of several recordings; blocks do not cross their borders.

    Args:
        logs: recordings.
        contacts: of each recording.
        robot: with the parameters about which encoder biases and the IMU are linearised.
        limbs: the legs.
        noise: of the equations.
        measured: (n,) joints whose torques are known.
        x: (P,) all coefficients.
    """
    parts, since = [], 0.0
    planned = [
        _plan(data, airborne, limbs, measured)
        for data, (_, airborne) in zip(logs, contacts, strict=True)
    ]
    X = np.empty((sum(count for _, count in planned), len(x)))
    at = 0
    for data, (windows, count) in zip(logs, planned, strict=True):
        # rows at 250 Hz
        every = max(1, round(1.0 / (250.0 * data.period)))
        window_rows(
            robot, limbs, data.motion, noise, windows, every, x, X[at : at + count]
        )
        at += count
        used = windows.start >= 0
        blocks = since + BLOCK * np.floor(windows.start[used] * data.period / BLOCK)
        since += len(data.usable) * data.period
        has = np.pad(windows.used[used], ((0, 0), (6, 0)), constant_values=True)
        parts.append(
            (np.maximum(np.nonzero(has)[1] - 6, -1), np.repeat(blocks, has.sum(axis=1)))
        )
    return DesignMatrix(
        X, *(np.concatenate(column) for column in zip(*parts, strict=True))
    )


def _plan(
    data: ConditionedLog, airborne: Flags, limbs: LegChains, measured: Flags
) -> tuple[Windows, int]:
    """Windows of a recording, and how many rows they have."""
    # windows of 0.08 s
    half = max(2, round(0.04 / data.period))
    half += half % 2  # rows of every second sample meet in the middle
    count = max(len(data.usable) // half - 1, 0)
    start = half * np.arange(count)
    spans = start[:, None] + np.arange(2 * half)
    touching = ~airborne[spans].all(axis=1)
    start = np.where(data.usable[spans].all(axis=1), start, -1)
    used = np.broadcast_to(measured, (count, len(measured))).copy()
    for c in range(len(limbs.body)):
        joints = limbs.joints[c][limbs.joints[c] >= 0]
        used[:, joints] &= ~touching[:, c, None]
    heights = np.where(start >= 0, 6 + used.sum(axis=1), 0)
    row = np.cumsum(heights) - heights
    return Windows(start, half, touching, used, row), int(heights.sum())
