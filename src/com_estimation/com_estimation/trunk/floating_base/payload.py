"""Compiled: whether the payload has changed, and whether an update fits at all."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from com_estimation.trunk.floating_base.filter_types import (
    STATES,
    Array,
    BaseRows,
    FilterMemory,
    FilterModel,
    Outcome,
    Settings,
)
from com_estimation.trunk.floating_base.update import multiply_symmetric


@njit
def vertical_rows(rows: BaseRows) -> tuple[Array, Array, Array]:
    """H, residual and variance of the rows of Fz, Mx, My, before they are whitened."""
    H, residual, variance = np.empty((3, STATES)), np.empty(3), np.empty(3)
    for k in range(3):
        for c in range(STATES):
            H[k, c] = rows.H[2 + k, c]
        residual[k], variance[k] = rows.residual[2 + k], rows.noise[2 + k, 2 + k]
    return H, residual, variance


@njit
def detect_payload_change(
    time: float,
    dt: float,
    vertical: tuple[Array, Array, Array],
    model: FilterModel,
    settings: Settings,
    memory: FilterMemory,
) -> bool:
    """Low-passes the innovations of Fz, Mx, My; where they are large, opens the trunk's states.

    Args:
        time: s.
        dt: s, since the last update.
        vertical: See vertical_rows.
        model: With the variances that are added.
        settings: See Settings.
        memory: P and the monitors are changed.

    Returns:
        Whether the payload has changed.
    """
    monitors, P = memory.monitors[0], memory.P
    H, residual, variance = vertical
    weight = min(dt / settings.change_time, 1.0)
    # Where the feet give the acceleration, impacts make innovations that are large, but short.
    most = 2.0 * settings.change_level if monitors.without_accelerometer > 0.0 else math.inf
    largest, Ph = 0.0, np.empty(STATES)
    for k in range(3):
        S = variance[k]
        multiply_symmetric(P, H[k], Ph)
        for i in range(STATES):
            S += H[k, i] * Ph[i]
        level = max(min(residual[k] / math.sqrt(S), most), -most)
        monitors.change[k] += weight * (level - monitors.change[k])
        largest = max(largest, abs(monitors.change[k]))
    early = monitors.updates * settings.period < settings.change_start
    early |= monitors.left_out > 0.0  # what does not fit at all is no payload
    if early or largest < settings.change_level or time < monitors.frozen_until:
        return False
    for i in range(STATES):
        P[i, i] += model.opening[i]
    for k in range(3):
        monitors.change[k] = 0.0
    monitors.changed_at = time
    monitors.frozen_until = time + settings.freeze_time
    return True


@njit
def leave_out(dt: float, settings: Settings, memory: FilterMemory) -> Outcome:
    """Counts an update that does not fit at all; LOST where there are too many."""
    monitors = memory.monitors[0]
    weight = min(dt / settings.information_time, 1.0)
    monitors.innovation += weight * (settings.outlier / 6.0 - monitors.innovation)
    monitors.left_out += dt
    return Outcome.LOST if monitors.left_out > settings.lost_time else Outcome.OUTLIER
