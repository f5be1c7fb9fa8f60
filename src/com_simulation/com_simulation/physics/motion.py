"""Targets of the servos: validated commands, and targets as piecewise cubics."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from com_model.arrays import Array
from com_simulation.exceptions import CommandError

LARGEST = 1e6  # rad, m, rad/s or m/s that may be commanded; beyond, slopes overflow


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Points that joints pass through.

    Attributes:
        joints: (k,) indices of the joints that it moves.
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
    """Validates a trajectory received from outside.

    Args:
        joint_names: of the robot's n joints, in its order.
        names: of the k joints that the trajectory moves, in any order.
        times: s from the start, ascending, one for each point.
        positions: rad or m, k at each point.
        velocities: rad/s or m/s, k or none at each point; used when any point has them.

    Returns:
        The trajectory with indices of joints.

    Raises:
        CommandError: something does not fit; it says what to send instead.
    """
    joints = _joint_numbers(joint_names, names)
    if not times:
        raise CommandError("the trajectory has no points: send at least one")
    most_points = 100_000
    if len(times) > most_points:
        raise CommandError(
            f"the trajectory has {len(times)} points: send at most {most_points}"
        )
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
        velocities=_table("velocities", velocities, len(joints))
        if with_velocities
        else None,
    )


def read_targets(joint_names: Sequence[str], values: ArrayLike) -> Array:
    """Validates joint targets received from outside.

    Args:
        joint_names: of the robot's n joints, in its order.
        values: n targets, rad or m, in that order.

    Returns:
        (n,) targets.

    Raises:
        CommandError: something does not fit; it says what to send instead.
    """
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


def _joint_numbers(
    joint_names: Sequence[str], names: Sequence[str]
) -> NDArray[np.int64]:
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
    """Targets of n joints over time; constant before the first piece and after the last one.

    Piece k, from starts[k] on, is c0 + c1 s + c2 s^2 + c3 s^3 with s = t - starts[k].

    Args:
        posture: (n,) rad or m, initial targets.
    """

    def __init__(self, posture: ArrayLike) -> None:
        self._starts = np.zeros(1)
        self._pieces = np.zeros((1, 4, np.size(posture)))
        self._pieces[0, 0] = posture
        # end of the last trajectory, and its velocities
        self._arrival = -np.inf, np.zeros(0)

    def target(self, t: float) -> Array:
        """Targets at a time.

        Args:
            t: s.

        Returns:
            (n,) rad or m.
        """
        return self.targets(np.array([t]))[0]

    def targets(self, times: Array, rates: bool = False) -> Array:
        """Targets, or their rates, at several times.

        Args:
            times: (k,) s.
            rates: return derivatives by time instead.

        Returns:
            (k, n), rad or m; with rates rad/s or m/s.
        """
        k = np.maximum(np.searchsorted(self._starts, times, side="right") - 1, 0)
        s = (times - self._starts[k])[:, None]
        c0, c1, c2, c3 = self._pieces[k].transpose(1, 0, 2)
        if rates:
            return np.asarray(c1 + s * (2.0 * c2 + s * 3.0 * c3))
        return np.asarray(c0 + s * (c1 + s * (c2 + s * c3)))

    def moving(self, t: float) -> bool:
        """Whether targets change at a time or later.

        Args:
            t: s.
        """
        return bool(t < self._starts[-1])

    def hold(self, now: float, targets: Array) -> None:
        """Jumps to targets and stays there.

        Args:
            now: s, from when on.
            targets: (n,) rad or m.
        """
        self._go_on(np.array([now]), targets[None], np.zeros((0, 2, len(targets))))
        self._arrival = -np.inf, np.zeros(0)

    def follow(self, now: float, start: float, trajectory: Trajectory) -> None:
        """Follows a trajectory.

        Earlier motions continue up to its start; from then on the joints that the trajectory
        does not name stand. The motion leads from the present targets to the first point in the
        future; points in the past are skipped. A single point at time 0 is jumped to. Cubics
        that begin where the last trajectory ended begin with its final velocity.

        Args:
            now: s.
            start: s, from which the times of the trajectory count.
            trajectory: see `read_trajectory`.

        Raises:
            CommandError: all points are in the past.
        """
        begin, joints = max(now, start), trajectory.joints
        position = self.target(begin)
        due = start + trajectory.times > begin
        rounding = 1e-9  # s
        if not due.any():
            late = begin - (start + float(trajectory.times[-1]))
            if late > rounding:
                raise CommandError(
                    f"the trajectory ended {late:.3g} s before it came: stamp it later, or leave "
                    "its stamp 0 to start at once"
                )
            position[joints] = trajectory.positions[-1]
            self.hold(begin, position)
            return
        times = np.append(begin, start + trajectory.times[due])
        knots = np.tile(position, (len(times), 1))
        knots[1:, joints] = trajectory.positions[due]
        slopes = np.diff(knots, axis=0) / np.diff(times)[:, None]
        ends, arrival = np.stack((slopes, slopes), axis=1), np.zeros(len(position))
        if trajectory.velocities is not None:
            again = abs(self._arrival[0] - begin) < rounding
            rates = np.zeros_like(knots)
            before = (
                self._arrival[1] if again else self.targets(times[:1], rates=True)[0]
            )
            rates[0, joints] = before[joints]
            rates[1:, joints] = trajectory.velocities[due]
            ends, arrival = np.stack((rates[:-1], rates[1:]), axis=1), rates[-1]
        self._go_on(times, knots, ends)
        self._arrival = float(times[-1]), arrival

    def forget(self, now: float) -> None:
        """Drops the pieces that are over.

        Args:
            now: s.
        """
        current = max(int(np.searchsorted(self._starts, now, side="right")) - 1, 0)
        self._starts, self._pieces = self._starts[current:], self._pieces[current:]

    def _go_on(self, times: Array, knots: Array, ends: Array) -> None:
        """Replaces the motion from times[0] on by cubics through knots, and stays at the last.

        Args:
            times: (m,) s.
            knots: (m, n) rad or m.
            ends: (m - 1, 2, n) rates at both ends of each piece; for a line both are its slope.
        """
        h = np.diff(times)[:, None]
        slope, (v0, v1) = np.diff(knots, axis=0) / h, ends.transpose(1, 0, 2)
        pieces = np.zeros((len(times), 4, knots.shape[1]))
        pieces[:, 0], pieces[:-1, 1] = knots, v0
        pieces[:-1, 2] = (3.0 * slope - 2.0 * v0 - v1) / h
        pieces[:-1, 3] = (v0 + v1 - 2.0 * slope) / h**2
        kept = self._starts < times[0]
        self._starts = np.concatenate((self._starts[kept], times))
        self._pieces = np.concatenate((self._pieces[kept], pieces))
