"""Checks of motions against the limits of the joints, and loading of motion files to play."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from com_control.exceptions import MotionError
from com_control.motion.files import MOST_ROWS, read_motion
from com_control.motion.motion import Motion, MotionLayout, clamped
from com_model.arrays import Array, Indices
from com_model.text import listing, quote

KINDS = ("position", "velocity", "acceleration")
_UNITS = {"position": "deg", "velocity": "deg/s", "acceleration": "deg/s^2"}


@dataclass(frozen=True)
class Violation:
    """A limit that one joint exceeds.

    Attributes:
        kind: "position", "velocity" or "acceleration".
        joint: its name.
        rows: number of rows in which it is exceeded.
        first: the first of them, from 1.
        worst: the row of the largest excess, from 1.
        value: in that row, rad, rad/s or rad/s^2.
        limit: that is exceeded, in the same unit.
        other_sign: a position: with the opposite sign all rows would be within the limits.
    """

    kind: str
    joint: str
    rows: int
    first: int
    worst: int
    value: float
    limit: float
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
    """Result of a check.

    Attributes:
        rows: of the motion.
        duration: s.
        violations: by kind (position first), then by joint.
    """

    rows: int
    duration: float
    violations: tuple[Violation, ...]

    @property
    def ok(self) -> bool:
        """Whether all rows are within the limits."""
        return not self.violations

    def text(self) -> str:
        """The report as text, one line for each violation."""
        lines = [f"{self.rows} rows, {self.duration:.3f} s"]
        lines += [str(violation) for violation in self.violations]
        return "\n".join(
            [*lines, "within all limits" if self.ok else "NOT within the limits"]
        )


def check_motion(layout: MotionLayout, motion: Motion) -> MotionReport:
    """Checks a motion; a velocity or acceleration counts for the row that it leads to.

    Args:
        layout: limits of position, velocity and acceleration.
        motion: of the layout's joints.

    Returns:
        All violations.
    """
    x, (speed, change) = motion.positions, motion.rates()
    rows = np.arange(1, len(x) + 1)
    over = np.maximum(x - layout.upper, layout.lower - x)
    scale = np.maximum(np.abs(layout.lower), np.abs(layout.upper))
    found = list(_violations(layout, 0, x, over, scale, rows))
    for kind, values, most, at in (
        (1, speed, layout.velocity, rows[1:]),
        (2, change, layout.acceleration, np.append(rows[1:], rows[-1:])),
    ):
        found += _violations(layout, kind, values, np.abs(values) - most, most, at)
    duration = round(float(motion.times[-1]), 6) if len(x) else 0.0
    return MotionReport(len(x), duration, tuple(found))


def _violations(
    layout: MotionLayout,
    kind: int,
    values: Array,
    over: Array,
    scale: Array,
    rows: Indices,
) -> Iterator[Violation]:
    """Violations of one kind.

    Args:
        layout: the limits.
        kind: index of KINDS.
        values: (M, k) positions, velocities or accelerations.
        over: (M, k) excess over the limit, negative within it.
        scale: (k,) size of the limit, for the tolerance.
        rows: (M,) number of the row that each counts for.
    """
    # of a limit: files are rounded to counts
    bad = over > 1e-6 * np.where(np.isfinite(scale), scale, 1.0) + 1e-9
    for joint in np.flatnonzero(bad.any(axis=0)):
        at = np.flatnonzero(bad[:, joint])
        worst = at[np.argmax(over[at, joint])]
        value, lower, upper = (
            values[worst, joint],
            layout.lower[joint],
            layout.upper[joint],
        )
        if kind == 0:
            limit = upper if value > upper else lower
        else:
            limit = scale[joint] * np.sign(value)
        low, high = values[:, joint].min(), values[:, joint].max()
        yield Violation(
            KINDS[kind],
            layout.joints[joint],
            len(at),
            int(rows[at[0]]),
            int(rows[worst]),
            float(value),
            float(limit),
            bool(kind == 0 and lower <= -high and -low <= upper),
        )


class LimitError(MotionError):
    """A motion would exceed limits of the joints.

    Args:
        name: of the file.
        report: with at least one violation.

    Attributes:
        report: as given.
    """

    def __init__(self, name: str, report: MotionReport) -> None:
        found = report.violations
        shown = 3  # violations in the message
        more = f" and {len(found) - shown} more" if len(found) > shown else ""
        first = "; ".join(str(violation) for violation in found[:shown])
        super().__init__(
            f"{name} breaks limits: {first}{more}. Fix the file, or ask for it to be clamped",
            found[0].worst,
        )
        self.report = report


@dataclass(frozen=True)
class LoadedMotion:
    """A motion within all limits.

    Attributes:
        motion: to be played.
        report: of the check of the file.
        changes: what was clamped, in words; empty if the file keeps the limits.
    """

    motion: Motion
    report: MotionReport
    changes: tuple[str, ...]


def find_motion_file(folder: str | os.PathLike[str], name: str) -> Path:
    """Finds a file in a folder or its subfolders.

    The folder's owner may have put links to files there, as colcon does with --symlink-install;
    no name, and no link to a folder, leads out of it.

    Args:
        folder: in which files may be read.
        name: path of the file relative to the folder.

    Returns:
        The path of the file.

    Raises:
        MotionError: there is no such file, or it is outside the folder.
    """
    top = Path(folder)
    if not top.is_dir():
        raise MotionError(f"the motion folder {folder} is not a directory")
    if not name or Path(name).is_absolute() or "\0" in name:
        raise MotionError(
            f"file {quote(name)}: give the name of a file inside {folder}"
        )
    path = (top / name).parent.resolve() / Path(name).name
    if not path.is_relative_to(top.resolve()):
        raise MotionError(f"file {quote(name)} is outside {folder}: give one inside")
    if not os.path.isfile(path):  # also where the name is too long
        valid = sorted(item.name for item in top.glob("*.csv"))
        raise MotionError(
            f"file {quote(name)} is not in {folder}; there are: {listing(valid)}"
        )
    return path


def load_motion(
    path: str | os.PathLike[str],
    layout: MotionLayout,
    unit: str = "counts",
    clamp: bool = False,
    most_rows: int = MOST_ROWS,
) -> LoadedMotion:
    """Reads a file and checks each row.

    Args:
        path: of the file.
        layout: joints, encoders, period and limits.
        unit: "counts" or "radians".
        clamp: clip and slow down a motion that exceeds limits, instead of refusing it.
        most_rows: largest number of rows.

    Returns:
        The motion, the report of the check and the changes.

    Raises:
        MotionError: it cannot be read, or is too long.
        LimitError: it exceeds the limits, without clamp.
    """
    motion = read_motion(path, layout, unit, most_rows)
    report = check_motion(layout, motion)
    if report.ok:
        return LoadedMotion(motion, report, ())
    if not clamp:
        raise LimitError(Path(path).name, report)
    safe = clamped(layout, motion)
    return LoadedMotion(safe, report, tuple(_changes(report, motion, safe)))


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
