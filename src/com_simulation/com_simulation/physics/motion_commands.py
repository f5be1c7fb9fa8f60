"""Motion commands from outside, checked: trajectories and joint targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from com_simulation.exceptions import CommandError

Array = NDArray[np.float64]

MAX_POINTS = 100_000


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Points that joints pass through, in the robot's order of joints.

    Attributes:
        joints: (k,) numbers of the joints that it moves.
        times: (m,) s, ascending, from its start.
        positions: (m, k) rad or m.
        velocities: (m, k) rad/s or m/s; None for straight lines between the points.
    """

    joints: NDArray[np.int64]
    times: Array
    positions: Array
    velocities: Array | None


def read_trajectory(
    joint_names: Sequence[str],
    names: Sequence[str],
    times: Sequence[float],
    positions: Sequence[Sequence[float]],
    velocities: Sequence[Sequence[float]],
) -> Trajectory:
    """Checks a trajectory that came from outside.

    Args:
        joint_names: The robot's joints.
        names: The joints that the trajectory moves, in any order.
        times: Per point, s from the start.
        positions: Per point, one per joint.
        velocities: Per point, one per joint or none; used when every point has them.

    Raises:
        CommandError: Names what is wrong and what to send instead.
    """
    joints = _joint_numbers(joint_names, names)
    if not times:
        raise CommandError("the trajectory has no points: send at least one")
    if len(times) > MAX_POINTS:
        raise CommandError(f"the trajectory has {len(times)} points: send at most {MAX_POINTS}")
    ascending = np.array(times, dtype=float)
    late = np.flatnonzero(np.diff(ascending) <= 0)
    if late.size or ascending[0] < 0:
        at = int(late[0]) + 1 if late.size else 0
        raise CommandError(
            f"time_from_start of point {at} is {ascending[at]:g} s: times must start at 0 or later "
            "and ascend from point to point"
        )
    with_velocities = any(len(point) for point in velocities)
    return Trajectory(
        joints=joints,
        times=ascending,
        positions=_table("positions", positions, len(joints)),
        velocities=_table("velocities", velocities, len(joints)) if with_velocities else None,
    )


def read_targets(joint_names: Sequence[str], values: ArrayLike) -> Array:
    """Checks joint targets (n,) in the robot's order of joints.

    Raises:
        CommandError: Names what is wrong and what to send instead.
    """
    targets = np.array(values, dtype=float)
    if targets.shape != (len(joint_names),):
        raise CommandError(
            f"got {targets.size} joint commands, expected {len(joint_names)} in the order "
            f"{', '.join(joint_names)}"
        )
    if not np.isfinite(targets).all():
        wrong = joint_names[int(np.flatnonzero(~np.isfinite(targets))[0])]
        raise CommandError(f"the command for '{wrong}' is not a finite number: send one")
    return targets


def _joint_numbers(joint_names: Sequence[str], names: Sequence[str]) -> NDArray[np.int64]:
    if not names:
        raise CommandError("the trajectory names no joints: fill joint_names")
    number = {name: i for i, name in enumerate(joint_names)}
    unknown = [name for name in names if name not in number]
    if unknown:
        raise CommandError(
            f"unknown joint '{unknown[0][:80]}': the robot's joints are {', '.join(joint_names)}"
        )
    if len(set(names)) != len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise CommandError(f"joint '{twice}' is named twice: name each joint once")
    return np.array([number[name] for name in names], dtype=np.int64)


def _table(what: str, rows: Sequence[Sequence[float]], width: int) -> Array:
    for i, row in enumerate(rows):
        if len(row) != width:
            raise CommandError(
                f"point {i} has {len(row)} {what} for {width} joints: send one for each"
            )
    table = np.array(rows, dtype=float)
    if not np.isfinite(table).all():
        i = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise CommandError(f"{what} of point {i} are not all finite numbers: send finite ones")
    return table
