"""What the servos are asked to do: commands from outside, checked; targets as piecewise cubics."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from com_model.arrays import Array
from com_simulation.exceptions import CommandError

MAX_POINTS = 100_000
LARGEST = 1e6  # rad, m, rad/s or m/s that may be commanded; beyond, slopes overflow
SAME_TIME = 1e-9  # s


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Points that joints pass through, in the robot's order of joints."""

    joints: NDArray[np.int64]  # (k,) numbers of the joints that it moves
    times: Array  # (m,) s, ascending, from its start
    positions: Array  # (m, k) rad or m
    velocities: Array | None  # (m, k) rad/s or m/s; None for straight lines between the points


def read_trajectory(
    joint_names: Sequence[str],
    names: Sequence[str],
    times: Sequence[float],
    positions: Sequence[Sequence[float]],
    velocities: Sequence[Sequence[float]],
) -> Trajectory:
    """Checks a trajectory that came from outside, or a CommandError says what to send instead.

    Its joints are named in any order, times are s from the start. Velocities, one per joint or none
    at each point, are used when any point has them.
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
    """Checks joint targets (n,) in the robot's order, or a CommandError says what to send."""
    targets = np.array(values, dtype=float)
    if targets.shape != (len(joint_names),):
        raise CommandError(
            f"got {targets.size} joint commands, expected {len(joint_names)} in the order "
            f"{', '.join(joint_names)}"
        )
    absurd = ~(np.abs(targets) <= LARGEST)
    if absurd.any():
        wrong = joint_names[int(np.flatnonzero(absurd)[0])]
        raise CommandError(
            f"the command for '{wrong}' is not a finite number up to {LARGEST:g}: send one"
        )
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
    absurd = ~(np.abs(table) <= LARGEST).all(axis=1)
    if absurd.any():
        raise CommandError(
            f"{what} of point {int(np.flatnonzero(absurd)[0])} are not all finite numbers up to "
            f"{LARGEST:g}: send such"
        )
    return table


class JointMotion:
    """Targets of n joints over time; before the first piece and after the last one they stand.

    Piece k, from starts[k] on, is c0 + c1 s + c2 s^2 + c3 s^3 with s = t - starts[k].
    """

    def __init__(self, posture: ArrayLike) -> None:
        self._starts: list[float] = [0.0]
        self._pieces: list[Array] = [_constant(np.array(posture, dtype=float))]
        self._arrival = -np.inf, np.zeros(0)  # end of the last trajectory, and its velocities

    def target(self, t: float) -> Array:
        """Targets (n,), rad or m, at time t."""
        return self._value(t)[0]

    def targets(self, times: Array) -> Array:
        """Targets (k, n), rad or m, at times (k,), at least one, in ascending order."""
        pieces = [max(bisect_right(self._starts, t) - 1, 0) for t in times.tolist()]
        first, end = pieces[0], pieces[-1] + 1
        which = np.array(pieces) - first
        s = (times - np.array(self._starts[first:end])[which])[:, None]
        c0, c1, c2, c3 = np.array(self._pieces[first:end])[which].transpose(1, 0, 2)
        return np.asarray(c0 + s * (c1 + s * (c2 + s * c3)))

    def moving(self, t: float) -> bool:
        """Whether targets change at time t or later."""
        return t < self._starts[-1]

    def hold(self, now: float, targets: Array) -> None:
        """Jumps to targets (n,) at time `now` and stays there."""
        self._cut(now)
        self._append(now, _constant(targets))
        self._arrival = -np.inf, np.zeros(0)

    def follow(self, now: float, start: float, trajectory: Trajectory) -> None:
        """Lets joints follow a trajectory that begins at time `start`.

        What was asked before stays up to then; from then on the joints that the trajectory does not
        name stand. From where the targets are, the motion leads to the first point that is still to
        come; points that are due already are passed over. A single point at time 0 is jumped to.
        Cubics that begin where the last trajectory ended begin as fast as it ended.
        Raises CommandError when all points are in the past.
        """
        begin = max(now, start)
        position, velocity = self._value(begin)
        if abs(self._arrival[0] - begin) < SAME_TIME:
            velocity = self._arrival[1]
        due = np.flatnonzero(start + trajectory.times > begin)
        if not due.size:
            self._jump(begin, start, position, trajectory)
            return
        self._cut(begin)
        joints, speeds = trajectory.joints, trajectory.velocities
        knots = np.tile(position, (len(due) + 1, 1))
        rates = np.zeros_like(knots)
        knots[1:, joints] = trajectory.positions[due]
        if speeds is not None:
            rates[0, joints], rates[1:, joints] = velocity[joints], speeds[due]
        times = np.append(begin, start + trajectory.times[due])
        for k in range(len(due)):
            ends = None if speeds is None else (rates[k], rates[k + 1])
            self._append(times[k], _cubic(knots[k], knots[k + 1], times[k + 1] - times[k], ends))
        self._append(times[-1], _constant(knots[-1]))
        self._arrival = float(times[-1]), rates[-1]

    def forget(self, now: float) -> None:
        """Drops the pieces that are over at time `now`."""
        current = max(bisect_right(self._starts, now) - 1, 0)
        del self._starts[:current], self._pieces[:current]

    def _jump(self, begin: float, start: float, position: Array, trajectory: Trajectory) -> None:
        late = begin - (start + float(trajectory.times[-1]))
        if late > SAME_TIME:
            raise CommandError(
                f"the trajectory ended {late:.3g} s before it came: stamp it later, or leave its "
                "stamp 0 to start at once"
            )
        position = position.copy()
        position[trajectory.joints] = trajectory.positions[-1]
        self.hold(begin, position)

    def _value(self, t: float) -> tuple[Array, Array]:
        k = max(bisect_right(self._starts, t) - 1, 0)
        c0, c1, c2, c3 = self._pieces[k]
        s = t - self._starts[k]
        return c0 + s * (c1 + s * (c2 + s * c3)), c1 + s * (2.0 * c2 + s * 3.0 * c3)

    def _cut(self, t: float) -> None:
        """Drops the pieces that would begin at time t or later."""
        while self._starts and self._starts[-1] >= t:
            del self._starts[-1], self._pieces[-1]

    def _append(self, start: float, piece: Array) -> None:
        self._starts.append(float(start))
        self._pieces.append(piece)


def _constant(position: Array) -> Array:
    piece = np.zeros((4, len(position)))
    piece[0] = position
    return piece


def _cubic(q0: Array, q1: Array, duration: float, ends: tuple[Array, Array] | None) -> Array:
    """Coefficients (4, n) of the line, or with end velocities the cubic, from q0 to q1."""
    slope = (q1 - q0) / duration
    if ends is None:
        zero = np.zeros_like(q0)
        return np.array([q0, slope, zero, zero])
    v0, v1 = ends
    c2 = (3.0 * slope - 2.0 * v0 - v1) / duration
    c3 = (v0 + v1 - 2.0 * slope) / duration**2
    return np.array([q0, v0, c2, c3])
