"""Compiled: warns of a fall by the divergent component of motion (DCM).

xi = c + c' / sqrt(g / h) leaves the hull of all soles, those in the air projected to the ground
where they are now (a stand-in for the next step), for 30 ms; or a loaded sole tilts by more than 5
degrees against gravity.

Beside it: which encoders repeat their last reading. One that moved or jittered at most samples and
is then the same to the last bit for 50 ms is stuck, until it changes. An encoder with coarse steps
may rest like that: it is stuck only where it has stopped from speed within a sample.
"""

from math import pi
from typing import NamedTuple

import numpy as np

from com_estimation.humanoid.step import Memory
from com_model.arrays import Array, Indices
from com_model.compiled import compiled
from com_model.dynamics import GRAVITY
from com_model.geometry.hull_kernels import set_hull, signed_distance
from com_model.geometry.vector_kernels import dot

PATIENCE = 0.03  # s
CUTOFF = 10.0  # Hz, of the CoM's velocity, two poles
TILT = 5.0 * pi / 180.0  # of a sole
STANDS = 0.3  # fraction of the weight on such a sole
LEAST_HEIGHT = 0.1  # m, of the CoM, for its frequency
XI, MARGIN, OUTSIDE, TILTED, VELOCITY = 0, 2, 3, 4, 5


class Soles(NamedTuple):
    """Corners of the soles in their frames, one after the other; those of foot f: foot == f."""

    corners: Array  # (k, 3) m
    foot: Indices  # (k,)


@compiled()
def watch_fall(soles: Soles, memory: Memory, offset: Array, dt: float, state: Array) -> bool:
    """Follows the DCM; whether to warn.

    Args:
        offset: (3,) m, correction of the CoM, axes of W.
        state: (9,) DCM (2) m, its distance to the hull, positive inside, m; times outside and
            tilted, s; two stages of the CoM's velocity (2 + 2) m/s.
    """
    m, k = memory, len(soles.foot)
    gain = 1.0 - np.exp(-2.0 * pi * CUTOFF * dt)
    ground, total, tilted = 0.0, 0.0, False
    for f in range(len(m.load)):
        load = max(m.load[f], 0.0)
        ground, total = ground + load * (m.sole[1, f, 2] + m.root[2]), total + load
    for f in range(len(m.load)):
        tilted |= m.load[f] > STANDS * total and m.R_sole[f, 2, 2] < np.cos(TILT)
    points, hull = np.empty((k, 2)), np.empty((2 * k + 1, 2))
    for n in range(k):
        f = soles.foot[n]
        for i in range(2):
            points[n, i] = m.root[i] + m.sole[1, f, i] + dot(m.R_sole[f, i], soles.corners[n])
    height = m.total[1, 2] + offset[2] - (ground / total if total > 0.0 else m.total[1, 2])
    omega = np.sqrt(GRAVITY / max(height, LEAST_HEIGHT))
    speed, smooth = state[VELOCITY : VELOCITY + 2], state[VELOCITY + 2 :]
    for i in range(2):
        speed[i] += gain * ((m.total[1, i] - m.total[0, i]) / dt - speed[i])
        smooth[i] += gain * (speed[i] - smooth[i])
        state[XI + i] = m.total[1, i] + offset[i] + smooth[i] / omega
    state[MARGIN] = signed_distance(hull, set_hull(points, hull), state[XI], state[XI + 1])
    state[OUTSIDE] = state[OUTSIDE] + dt if state[MARGIN] < 0.0 else 0.0
    state[TILTED] = state[TILTED] + dt if tilted else 0.0
    return state[OUTSIDE] >= PATIENCE or state[TILTED] >= PATIENCE


STUCK_TIME = 0.05  # s
MEMORY = 0.1  # s, of what a reading did before
FINE, COARSE = 1e-7, 1e-6  # rad or m: less is no motion; smallest step of an encoder that may rest
OFTEN = 0.7  # fraction of samples in which a reading that cannot rest has moved
ABRUPT = 0.1  # rad/s or m/s
LAST, DWELL, MOVED, SPEED, LEAST, STUCK = range(6)


def make_watch(joints: int) -> Array:
    """State (6, n): reading, s since it changed, fraction of samples, speed, step, 1 if stuck."""
    watch = np.zeros((6, joints))
    watch[LAST], watch[LEAST] = np.nan, np.inf
    return watch


@compiled()
def find_stuck(q: Array, matters: Array, dt: float, watch: Array) -> tuple[int, bool]:
    """The first stuck joint of those that matter (n,), or -1; and whether one has just stopped."""
    gain, found, stopped = min(dt / MEMORY, 1.0), -1, False
    for j in range(len(q)):
        change = q[j] - watch[LAST, j]
        watch[LAST, j] = q[j]
        if not np.isfinite(change):
            continue
        size = abs(change)
        if size > 0.0:
            watch[DWELL, j], watch[STUCK, j] = 0.0, 0.0
            watch[LEAST, j] = min(watch[LEAST, j], size)
        else:
            watch[DWELL, j] += dt
        fine = watch[LEAST, j] < COARSE and watch[MOVED, j] > OFTEN
        if matters[j] and (fine or watch[SPEED, j] > ABRUPT) and watch[DWELL, j] > STUCK_TIME:
            watch[STUCK, j] = 1.0
        if watch[STUCK, j] > 0.0 and found < 0:
            found = j
        stopped |= matters[j] > 0.0 and fine and watch[DWELL, j] > 1.5 * dt
        if size > 0.0 or not fine:
            watch[MOVED, j] += gain * ((size > FINE) - watch[MOVED, j])
            watch[SPEED, j] += gain * (size / dt - watch[SPEED, j])
    return found, stopped
