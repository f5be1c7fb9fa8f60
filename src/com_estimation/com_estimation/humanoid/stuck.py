"""Compiled: which encoders repeat their last reading.

A reading that moved or jittered at most samples and is then the same to the last bit for 50 ms is
none. An encoder with coarse steps may rest like that: it is stuck only where it has stopped from
speed within a sample. What is stuck stays so until it changes.
"""

import numpy as np

from com_model.arrays import Array
from com_model.compiled import compiled

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
