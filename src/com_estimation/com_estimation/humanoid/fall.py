"""Compiled: warns of a fall by the divergent component of motion (DCM).

xi = c + c' / sqrt(g / h) leaves the hull of all soles, those in the air projected to the ground
where they are now (a stand-in for the next step), for 30 ms; or a loaded sole tilts by more than 5
degrees against gravity.
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
