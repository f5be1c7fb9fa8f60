"""Checks of motions against the limits of the joints, and motion files made ready to be played."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from com_control.exceptions import MotionError
from com_control.motion.csv_file import Rows, read_rows
from com_control.motion.motion import Motion, MotionLayout, clamped
from com_model.arrays import Array
from com_model.text import listing, quote

KINDS = ("position", "velocity", "acceleration")
_UNITS = {"position": "deg", "velocity": "deg/s", "acceleration": "deg/s^2"}
_TOLERANCE = 1e-6  # fraction of a limit; files are rounded to counts


@dataclass(frozen=True)
class Violation:
    """One joint that breaks one limit."""

    kind: str
    joint: str
    rows: int
    first: int  # the first of them, from 1
    worst: int
    value: float  # what it is there, rad, rad/s or rad/s^2
    limit: float
    # a position: with the opposite sign all rows would be within the limits
    other_sign: bool = False

    def __str__(self) -> str:
        unit = _UNITS[self.kind]
        value, limit = np.degrees(self.value), np.degrees(self.limit)
        text = (
            f"{self.joint}: {self.kind} {value:.2f} {unit} in row {self.worst}, limit "
            f"{limit:.2f} {unit} (over by {abs(value - limit):.2f}; {self.rows} rows, first "
            f"{self.first})"
        )
        if self.other_sign:
            text += "; with the opposite sign all rows are within: check encoder.signs"
        return text


@dataclass(frozen=True)
class MotionReport:
    """What a check found."""

    rows: int
    duration: float  # s
    violations: tuple[Violation, ...]  # by kind (position first), then by joint

    @property
    def ok(self) -> bool:
        """Whether all rows are within the limits."""
        return not self.violations

    def text(self) -> str:
        """Writes it for people."""
        lines = [f"{self.rows} rows, {self.duration:.3f} s"]
        lines += [str(violation) for violation in self.violations]
        return "\n".join([*lines, "within all limits" if self.ok else "NOT within the limits"])


class LimitCheck:
    """Takes rows as they come; memory does not grow with them.

    Velocity is the difference of two rows over the period, acceleration the difference of two
    velocities over the shorter of their periods. The robot stands before the first row, and after
    the last one where end() is called.
    """

    def __init__(self, layout: MotionLayout) -> None:
        self._layout = layout
        count = len(layout.joints)
        self._rows, self._duration = 0, 0.0
        self._position: Array | None = None
        self._velocity = np.zeros(count)
        self._period = np.inf
        self._count = np.zeros((len(KINDS), count), dtype=int)
        self._first = np.zeros((len(KINDS), count), dtype=int)
        self._worst = np.zeros((len(KINDS), count), dtype=int)
        self._excess = np.zeros((len(KINDS), count))
        self._value = np.zeros((len(KINDS), count))
        self._range = np.array([np.full(count, np.inf), np.full(count, -np.inf)])

    def add(self, rows: Rows) -> None:
        """Adds rows that follow those before."""
        x, dt = rows.positions, rows.periods[:, None]
        before = x[:1] if self._position is None else self._position[None]
        velocity = np.diff(x, axis=0, prepend=before) / dt
        shorter = np.minimum(dt, np.concatenate(([[self._period]], dt[:-1])))
        acceleration = np.diff(velocity, axis=0, prepend=self._velocity[None]) / shorter
        limit = self._layout
        over = np.maximum(x - limit.upper, limit.lower - x)
        self._note(0, x, over, np.maximum(np.abs(limit.lower), np.abs(limit.upper)), rows.first)
        for kind, values, most in (
            (1, velocity, limit.velocity),
            (2, acceleration, limit.acceleration),
        ):
            self._note(kind, values, np.abs(values) - most, most, rows.first)
        self._range = np.array(
            [np.fmin(self._range[0], x.min(axis=0)), np.fmax(self._range[1], x.max(axis=0))]
        )
        self._position, self._velocity, self._period = x[-1], velocity[-1], float(dt[-1, 0])
        start = 0.0 if self._rows else float(rows.periods[0])
        self._rows += len(x)
        self._duration += float(rows.periods.sum()) - start

    def end(self) -> None:
        """There are no more rows: the robot is to stand on the last one."""
        if self._rows:
            stop, most = -self._velocity[None] / self._period, self._layout.acceleration
            self._note(2, stop, np.abs(stop) - most, most, self._rows)
        self._velocity = np.zeros_like(self._velocity)

    def report(self) -> MotionReport:
        """Says what there was so far."""
        found = [
            self._violation(kind, joint)
            for kind, joint in zip(*np.nonzero(self._count), strict=True)
        ]
        return MotionReport(self._rows, round(self._duration, 6), tuple(found))

    def _note(self, kind: int, values: Array, over: Array, scale: Array, first: int) -> None:
        with np.errstate(invalid="ignore"):
            bad = over > _TOLERANCE * np.where(np.isfinite(scale), scale, 1.0) + 1e-9
        for joint in np.flatnonzero(bad.any(axis=0)):
            rows = np.flatnonzero(bad[:, joint])
            worst = rows[np.argmax(over[rows, joint])]
            if not self._count[kind, joint]:
                self._first[kind, joint] = first + rows[0]
            self._count[kind, joint] += len(rows)
            if over[worst, joint] > self._excess[kind, joint]:
                self._excess[kind, joint] = over[worst, joint]
                self._worst[kind, joint] = first + worst
                self._value[kind, joint] = values[worst, joint]

    def _violation(self, kind: int, joint: int) -> Violation:
        layout, value = self._layout, self._value[kind, joint]
        if kind == 0:
            limit = layout.upper[joint] if value > layout.upper[joint] else layout.lower[joint]
        else:
            limit = (layout.velocity, layout.acceleration)[kind - 1][joint] * np.sign(value)
        low, high = self._range[:, joint]
        other = kind == 0 and layout.lower[joint] <= -high and -low <= layout.upper[joint]
        return Violation(
            KINDS[kind],
            layout.joints[joint],
            int(self._count[kind, joint]),
            int(self._first[kind, joint]),
            int(self._worst[kind, joint]),
            float(value),
            float(limit),
            bool(other),
        )


def check_rows(layout: MotionLayout, blocks: Iterable[Rows]) -> MotionReport:
    """Checks a file as it is read."""
    check = LimitCheck(layout)
    for rows in blocks:
        check.add(rows)
    check.end()
    return check.report()


def check_motion(layout: MotionLayout, motion: Motion) -> MotionReport:
    """Checks a motion."""
    periods = np.diff(motion.times, prepend=0.0)
    periods[:1] = periods[1] if len(periods) > 1 else layout.period
    return check_rows(layout, [Rows(1, periods, motion.positions)])


_SHOWN = 3  # violations in a message


class LimitError(MotionError):
    """A motion would break limits of the joints.

    Attributes:
        report: What the check found.
    """

    def __init__(self, name: str, report: MotionReport) -> None:
        found = report.violations
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        first = "; ".join(str(violation) for violation in found[:_SHOWN])
        super().__init__(
            f"{name} breaks limits: {first}{more}. Fix the file, or ask for it to be clamped",
            found[0].worst,
        )
        self.report = report


@dataclass(frozen=True)
class LoadedMotion:
    """A motion that keeps all limits."""

    motion: Motion  # as it is to be played
    report: MotionReport  # what the check of the file found
    changes: tuple[str, ...]  # what was clamped, in words; none where the file keeps the limits


def find_motion_file(folder: str | os.PathLike[str], name: str) -> Path:
    """Finds a file of a folder or of one inside it.

    The folder's owner may have put links to files there, as colcon does with --symlink-install;
    no name, and no link to a folder, leads out of it.

    Raises:
        MotionError: It is none, or leads out of the folder.
    """
    top = Path(folder)
    if not top.is_dir():
        raise MotionError(f"the folder of motions, {folder}, is no directory")
    if not name or Path(name).is_absolute() or "\0" in name:
        raise MotionError(f"file {quote(name)}: give the name of a file inside {folder}")
    path = (top / name).parent.resolve() / Path(name).name
    if not path.is_relative_to(top.resolve()):
        raise MotionError(f"file {quote(name)} leads out of {folder}: give one inside")
    if not path.is_file():
        valid = sorted(item.name for item in top.glob("*.csv"))
        raise MotionError(f"file {quote(name)} is not in {folder}; there are: {listing(valid)}")
    return path


def load_motion(
    path: str | os.PathLike[str],
    layout: MotionLayout,
    unit: str = "counts",
    clamp: bool = False,
    most_rows: int = 1_000_000,
) -> LoadedMotion:
    """Reads a file and checks each row; clamps a motion that breaks limits, if that is asked for.

    Args:
        layout: What its columns mean, and the limits.
        unit: Of the positions, as in read_rows.
        clamp: Clip positions and slow the motion down as a whole, instead of refusing.

    Raises:
        LimitError: It breaks limits, and clamp is not asked for.
        MotionError: It cannot be read, or is too long.
    """
    name, check = Path(path).name, LimitCheck(layout)
    blocks = list(_checked(name, read_rows(path, layout, unit), check, most_rows))
    check.end()
    report = check.report()
    if not (report.ok or clamp):
        raise LimitError(name, report)
    periods = np.concatenate([rows.periods for rows in blocks])
    times = np.concatenate(([0.0], np.cumsum(periods[1:])))
    motion = Motion(layout.joints, times, np.vstack([rows.positions for rows in blocks]))
    if report.ok:
        return LoadedMotion(motion, report, ())
    safe = clamped(layout, motion)
    return LoadedMotion(safe, report, tuple(_changes(report, motion, safe)))


def _checked(name: str, blocks: Iterator[Rows], check: LimitCheck, most: int) -> Iterator[Rows]:
    count = 0
    for rows in blocks:
        count += len(rows.periods)
        if count > most:
            raise MotionError(f"{name} has more than {most} rows: cut it into several files")
        check.add(rows)
        yield rows


def _changes(report: MotionReport, motion: Motion, safe: Motion) -> Iterator[str]:
    for found in report.violations:
        if found.kind == "position":
            yield (
                f"{found.joint} clipped at {np.degrees(found.limit):.2f} deg in {found.rows} rows, "
                f"by up to {np.degrees(abs(found.value - found.limit)):.2f} deg"
            )
    if len(motion.times) > 1 and safe.times[-1] > motion.times[-1] * (1.0 + 1e-6):
        factor = safe.times[-1] / motion.times[-1]
        yield (
            f"slowed down {factor:.3f} times, from {motion.times[-1]:.3f} to "
            f"{safe.times[-1]:.3f} s, for its speeds and accelerations"
        )
