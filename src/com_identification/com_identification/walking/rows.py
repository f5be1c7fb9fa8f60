"""From recordings to rows: legs, contacts, windows, the whitened design matrix of a walk."""

from collections.abc import Sequence

import numpy as np
from scipy.ndimage import minimum_filter1d

from com_identification.walking.kernels import Limbs, foot_loads
from com_identification.walking.log import FORCE_CUTOFF, ConditionedLog, low_pass
from com_identification.walking.unknowns import BLOCK, DesignMatrix, FootLoads
from com_identification.walking.window_kernels import Noise, Windows, window_rows
from com_model.arrays import Array, Flags
from com_model.contact import LIGHT_LOAD
from com_model.dynamics import GRAVITY
from com_model.dynamics.tree_kernels import Tree


def find_contacts(
    data: ConditionedLog, robot: Tree, limbs: Limbs, mass: float
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
    limbs: Limbs,
    noise: Noise,
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
    data: ConditionedLog, airborne: Flags, limbs: Limbs, measured: Flags
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
