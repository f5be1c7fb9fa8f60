"""Compiled: what a JointState carries, in the order of the model's joints; see joint_input."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from com_model.compiled import compiled, entry_point

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

NO_VALUES = np.empty(0)


class Stored(NamedTuple):
    """What is known of n joints: rows are position, velocity, effort.

    Attributes:
        values: (3, n), NaN where not known.
        lowest: (3, n) what is believed.
        highest: (3, n) likewise.
        time_ns: (n,) of the last position.
        assumed: (n,) which positions no message has carried.
    """

    values: Array
    lowest: Array
    highest: Array
    time_ns: Indices
    assumed: NDArray[np.bool_]


@cache
def store_kernel() -> Callable[..., bool]:
    """`store`, compiled."""
    indices, values = np.empty(0, dtype=np.intp), np.empty((3, 0))
    stored = Stored(values, values, values, indices, np.empty(0, dtype=np.bool_))
    return entry_point(store, *[NO_VALUES] * 3, indices, indices, stored, 0)


@compiled()
def store(
    position: Array,
    velocity: Array,
    effort: Array,
    source: Indices,
    joints: Indices,
    stored: Stored,
    time_ns: int,
) -> bool:
    """Stores what a message carries in the order of the model.

    Args:
        position: as in the message; one for each name.
        velocity: as in the message; any other number than of positions: not known.
        source: (m,) places in the message.
        joints: (m,) places in the model.
        stored: what is known of all joints.

    Returns:
        Whether a number is not finite or beyond its limits, or velocities have a wrong length.
    """
    values = stored.values
    has_velocity, has_effort = velocity.size == position.size, effort.size == position.size
    clean = has_velocity or velocity.size == 0
    for k in range(joints.size):
        i, j = source[k], joints[k]
        values[0, j] = position[i]
        values[1, j] = velocity[i] if has_velocity else np.nan
        values[2, j] = effort[i] if has_effort else np.nan
        clean &= np.isfinite(position[i]) and (not has_velocity or np.isfinite(velocity[i]))
        stored.time_ns[j], stored.assumed[j] = time_ns, False
    for row in range(3):
        for j in range(values.shape[1]):
            wrong = (
                values[row, j] < stored.lowest[row, j] or values[row, j] > stored.highest[row, j]
            )
            clean &= not wrong
    return not clean
